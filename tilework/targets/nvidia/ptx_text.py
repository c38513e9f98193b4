"""Read facts about kernels from PTX text, make small changes to it, and choose its version.

>>> entries(".entry add(.param .u64 p) .reqntid 128 { ret; }")
{'add': {'reqntid': (128,)}}

Two requirements of a launch cannot be read from the instructions: the sizes of dynamic shared memory and of scratch
memory. A comment in the first lines has them, which the compiler copies from LLVM text to PTX:

    // tilework: {"shared": 4096, "global_scratch_size": 128, "global_scratch_align": 16}

Names of processors and versions of PTX:

>>> cpu_name("sm90"), cpu_name("sm80"), cpu_name("sm_100f")
('sm_90a', 'sm_80', 'sm_100f')
>>> ptx_of_cuda("12.8"), ptx_of_cuda("13.0")
(87, 90)

The version is the newest that the reader of the PTX supports: ptxas, or without one the driver. A machine that has
neither gets the lowest version that has the processor. The option `ptx_version` overrides both.
"""

import ctypes
import json
import re
from typing import Any

from tilework.errors import StageError
from tilework.targets.nvidia import libcuda
from tilework.targets.nvidia.arch import parts_of

COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
ENTRY = re.compile(r"\.entry\s+([\w$%]+)\s*(?:\([^)]*\))?([^{;]*)(?=\{)")
DIRECTIVE = re.compile(r"\.(reqntid|maxntid|minnctapersm|maxnreg|reqnctapercluster)\s+(\d+(?:\s*,\s*\d+)*)")
DYNAMIC = re.compile(r"\.extern\s+\.shared\b[^;]*\[\s*\]")
METADATA = re.compile(r"^[ \t]*(?://|;)[ \t]*tilework:(.*)$", re.MULTILINE)
KEYS = (
    "shared", "global_scratch_size", "global_scratch_align", "profile_scratch_size", "profile_scratch_align",
    "tmem_size", "tensordesc_meta", "fp_contract", "sanitizer", "rectangles", "num_warps", "orders_programs",
    "shows_locations",
)  # fmt: skip
WARP = 32


def entries(text: str) -> dict[str, dict[str, tuple[int, ...]]]:
    """Return the kernels by name, each with its directives."""
    plain = COMMENTS.sub("", text)
    return {
        found[1]: {name: tuple(map(int, sizes.split(","))) for name, sizes in DIRECTIVE.findall(found[2])}
        for found in ENTRY.finditer(plain)
    }


def has_dynamic_shared(text: str) -> bool:
    """Return True if there is shared memory whose size the launch determines."""
    return DYNAMIC.search(COMMENTS.sub("", text)) is not None


def metadata(text: str) -> dict[str, Any]:
    """Return the contents of the metadata comment; empty without one."""
    found = METADATA.search(text)
    if found is None:
        return {}
    try:
        facts = json.loads(found[1])
    except ValueError as error:
        raise ValueError(f"{found[0].strip()}: not JSON: {error}") from None
    unknown = [name for name in facts if name not in KEYS] if isinstance(facts, dict) else [facts]
    if unknown:
        raise ValueError(f"{found[0].strip()}: {unknown[0]!r} is not one of {', '.join(KEYS)}")
    return facts


def with_metadata(text: str, facts: dict[str, Any]) -> str:
    """Return PTX with a metadata comment at its top."""
    return f"// tilework: {json.dumps(facts)}\n{text}" if facts else text


def with_maxnreg(text: str, registers: int) -> str:
    """Return PTX in which every kernel is limited to so many registers; other functions are left alone."""
    plain = COMMENTS.sub(lambda found: " " * len(found[0]), text)  # offsets are those of the text
    parts, at = [], 0
    for found in ENTRY.finditer(plain):
        for old in re.finditer(r"\.maxnreg\s+\d+", plain[found.start(2) : found.end(2)]):
            parts.append(text[at : found.start(2) + old.start()])
            at = found.start(2) + old.end()
        parts.append(f"{text[at : found.end()].rstrip()}\n.maxnreg {registers}\n")
        at = found.end()
    return "".join((*parts, text[at:]))


def with_version(text: str, version: str) -> str:
    """Return PTX with another ``.version``: ``with_version(text, "9.1")``."""
    return re.sub(r"^(\s*\.version\s+)\S+", rf"\g<1>{version}", text, count=1, flags=re.MULTILINE)


def without_debug(text: str) -> str:
    """Return PTX whose ``.target`` does not disable optimisation by ``debug``; line tables remain."""
    return re.sub(r"^(\s*\.target\s+[^\n]*?)\s*,\s*debug\b", r"\1", text, flags=re.MULTILINE)


def launch_facts(kernel: str, directives: dict[str, tuple[int, ...]], num_warps: int | None) -> dict[str, Any]:
    """Return the launch requirements of a kernel; `num_warps` is the user's request, None if there is none.

    ``.reqntid`` is the size of a block. ``.maxntid`` is a bound, and the default unless the user requests less.
    """
    facts: dict[str, Any] = {}
    if (block := directives.get("reqntid")) is not None:
        warps, rest = divmod(block[0], WARP)
        if rest or any(size != 1 for size in block[1:]):
            raise ValueError(
                f"{kernel} runs in blocks of {block} threads (.reqntid); tilework launches whole warps along x only"
            )
        if num_warps not in (None, warps):
            raise ValueError(
                f"{kernel} runs in blocks of {warps} warps (.reqntid), but num_warps={num_warps} was requested"
            )
        facts["num_warps"] = warps
    elif (most := directives.get("maxntid")) is not None:
        threads = 1
        for size in most:
            threads *= size
        if threads < WARP or (num_warps is not None and num_warps * WARP > threads):
            raise ValueError(
                f"{kernel} allows {threads} threads (.maxntid), but num_warps={num_warps or 1} was requested"
            )
        facts["num_warps"] = num_warps or threads // WARP
    if (cluster := directives.get("reqnctapercluster")) is not None:
        sizes = (*cluster, 1, 1)[:3]
        facts |= {"num_ctas": sizes[0] * sizes[1] * sizes[2], "cluster_dims": sizes}
    return facts


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
