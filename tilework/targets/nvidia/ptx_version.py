"""Names of processors, and the version of PTX to write.

>>> cpu_name("sm90"), cpu_name("sm80"), cpu_name("sm_100f")
('sm_90a', 'sm_80', 'sm_100f')
>>> ptx_of_cuda("12.8"), ptx_of_cuda("13.0")
(87, 90)

The version is the newest that the reader of the PTX supports: ptxas, or without one the driver. A machine that has
neither gets the lowest version that has the processor. The option `ptx_version` overrides both.
"""

import ctypes

from tilework.errors import StageError
from tilework.targets.nvidia import libcuda
from tilework.targets.nvidia.arch import parts_of

# the lowest PTX version of each processor; LLVM aborts for less, and treats an unknown name as an old GPU
LOWEST = {
    "sm_70": 60, "sm_72": 61, "sm_75": 63, "sm_80": 70, "sm_86": 71, "sm_87": 74, "sm_88": 90, "sm_89": 78,
    "sm_90": 78, "sm_90a": 80, "sm_100": 86, "sm_100a": 86, "sm_100f": 88, "sm_101": 86, "sm_101a": 86, "sm_101f": 88,
    "sm_103": 88, "sm_103a": 88, "sm_103f": 88, "sm_110": 90, "sm_110a": 90, "sm_110f": 90, "sm_120": 87, "sm_120a": 87,
    "sm_120f": 88, "sm_121": 88, "sm_121a": 88, "sm_121f": 88,
}  # fmt: skip
KNOWN = (*range(60, 66), *range(70, 79), *range(80, 89), 90)  # what LLVM 22 writes
SPECIFIC = 90  # from here on instructions exist only for one architecture, whose name ends with "a"


def cpu_name(arch: str) -> str:
    """Return the processor of an `arch` option; from Hopper on, architecture-specific ("a") unless it has a suffix."""
    version, suffix = parts_of(arch)
    name = f"sm_{version}{suffix or ('a' if version >= SPECIFIC else '')}"
    if name not in LOWEST:
        raise ValueError(f"no GPU is called {name}; known: {', '.join(LOWEST)}")
    return name


def ptx_of_cuda(release: str) -> int:
    """Return the PTX version of a release of the CUDA toolkit or driver."""
    major, minor = (int(part) for part in release.split(".")[:2])
    if major >= 13:
        return 10 * (major - 4) + minor
    if major == 12:  # 12.5 and 12.6 read the same PTX
        return 80 + minor - (minor >= 6)
    return 70 + minor if major == 11 else 63 + minor


def chosen_version(cpu: str, wanted: int | None, reader: str | None) -> int:
    """Return the PTX version for `cpu`: `wanted`, else the newest that ptxas or driver `reader` reads."""
    lowest = LOWEST[cpu]
    if wanted is not None:
        if wanted < lowest:
            raise ValueError(f"ptx_version={wanted} is too old for {cpu}, which needs {lowest} or more")
        return wanted
    if reader is None:
        return lowest
    newest = ptx_of_cuda(reader)
    if newest < lowest:
        raise StageError(
            f"{cpu} needs PTX {dotted(lowest)}, and CUDA {reader} reads PTX up to {dotted(newest)}: a newer ptxas is"
            " needed. Install nvidia-cuda-nvcc, or set TRITON_PTXAS_PATH (from sm_100 on TRITON_PTXAS_BLACKWELL_PATH)"
        )
    return newest


def written_version(version: int) -> int:
    """Return the newest version that LLVM can write and that is not newer than `version`."""
    return max(known for known in KNOWN if known <= version)


def dotted(version: int) -> str:
    """Return a version as text: 87 -> "8.7"."""
    return f"{version // 10}.{version % 10}"


def driver_release() -> str | None:
    """Return the CUDA release of the driver, as "13.0"; None on a machine without an NVIDIA GPU."""
    if libcuda.FOUND.why_unusable() is not None:
        return None
    version = ctypes.c_int()
    libcuda.library().cuDriverGetVersion(ctypes.byref(version))
    return f"{version.value // 1000}.{version.value % 1000 // 10}"
