"""The driver for NVIDIA GPUs under Triton's names, and where a C program finds what it needs to use one.

>>> ty_to_cpp("*fp32"), ty_to_cpp("i32"), ty_to_cpp("u64")
('CUdeviceptr', 'int32_t', 'uint64_t')
"""

# pyright: reportUnusedImport=false

import os
import subprocess
from functools import cache
from typing import Any

from tilework import knobs
from tilework.knobs.cuda_tools import TOOLKIT, in_wheels
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.devices.cuda.driver import CudaDriver, CudaUtils
from tilework.targets.base import GPUTarget
from tilework.triton.backends.driver import GPUDriver
from tilework.triton.runtime.build import compile_module_from_src

libraries = ["libcuda.so.1"]


def header_folders() -> list[str]:
    """The folders with NVIDIA's headers: of a toolkit, and of wheels; empty where there is none."""
    toolkit = knobs.getenv("CUDA_HOME") or TOOLKIT
    found = [os.path.join(toolkit, "include", "cuda.h"), *in_wheels(os.path.join("include", "cuda.h"))]
    return [os.path.dirname(path) for path in found if os.path.isfile(path)]


@cache
def libcuda_dirs() -> list[str]:
    """The folders with NVIDIA's driver library; an error where it is not installed."""
    if (named := knobs.nvidia.libcuda_path) is not None:
        return [named]
    folders = [folder for folder in (knobs.getenv("LD_LIBRARY_PATH") or "").split(":") if folder]
    try:
        listed = subprocess.check_output(["/sbin/ldconfig", "-p"], text=True)
        folders += [os.path.dirname(line.split()[-1]) for line in listed.splitlines() if "libcuda.so.1" in line]
    except (OSError, subprocess.CalledProcessError):
        pass
    found = [folder for folder in dict.fromkeys(folders) if os.path.exists(os.path.join(folder, "libcuda.so.1"))]
    if not found:
        raise RuntimeError(
            "libcuda.so.1 is not on this machine: NVIDIA's driver is not installed (or set TRITON_LIBCUDA_PATH)"
        )
    return found


def library_dirs() -> list[str]:
    """The folders that a program which uses the driver is linked with."""
    return [*([libdevice_dir] if libdevice_dir else []), *libcuda_dirs()]


def CudaLauncher(src: Any, metadata: Any) -> Any:
    """What launches a compiled kernel on the active device."""
    return driver.active.launcher_cls(src, metadata)


def ty_to_cpp(ty: str) -> str:
    """The C type of an argument with this signature code."""
    return CudaDriver.map_python_to_cpp_type(CudaDriver(), ty)


include_dirs = header_folders()
libdevice_dir = os.path.dirname(knobs.nvidia.find_libdevice() or "")
