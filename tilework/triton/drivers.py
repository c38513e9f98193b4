"""The drivers under Triton's names, and the folders that C programs need to compile against them.

>>> ty_to_cpp("*fp32"), ty_to_cpp("i32"), hip_ty_to_cpp("*fp32")
('CUdeviceptr', 'int32_t', 'hipDeviceptr_t')
"""

import os
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Protocol

from tilework import knobs
from tilework.knobs.cuda_tools import TOOLKIT, in_wheels
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.devices.cuda.driver import CudaDriver
from tilework.runtime.devices.driver import Driver as DriverBase
from tilework.runtime.devices.gpu.described_launch import (
    ARG_CONSTEXPR,
    ARG_KERNEL,
    ARG_TUPLE,
    PyKernelArg,
    signature_metadata,
)
from tilework.runtime.devices.hip_driver import HipDriver as HIPDriver


class Benchmarker(Protocol):
    """A function that times a call, in milliseconds."""

    def __call__(
        self, kernel_call: Callable[[], Any], *, quantiles: Sequence[float] | None = None, **kwargs: Any
    ) -> Any: ...


class GPUDriver(DriverBase):
    """The base of drivers for GPUs that torch uses too: the current device and stream are torch's."""

    def __init__(self) -> None:
        self.cuda = cuda = import_module("torch.cuda")  # torch is optional: only this driver needs it
        self.get_device_capability = cuda.get_device_capability
        self.get_current_device = cuda.current_device
        self.set_current_device = cuda.set_device

    def get_current_stream(self, device: int) -> int:
        """Return the handle of the stream that torch launches on."""
        return self.cuda.current_stream(device).cuda_stream

    def assemble_tensormap_to_arg(self, tensormaps_info: Any, args: Any) -> Any:
        """Return the arguments with the tensor maps in them; nothing to add by default."""
        return args


libraries = ["libcuda.so.1"]


def header_folders() -> list[str]:
    """Return the folders with NVIDIA's headers: of a toolkit, and of wheels."""
    toolkit = knobs.getenv("CUDA_HOME") or TOOLKIT
    found = [os.path.join(toolkit, "include", "cuda.h"), *in_wheels(os.path.join("include", "cuda.h"))]
    return [os.path.dirname(path) for path in found if os.path.isfile(path)]


@cache
def libcuda_dirs() -> list[str]:
    """Return the folders with NVIDIA's driver library; an error where it is not installed."""
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
    """Return the library folders of programs that use the driver."""
    return [*([libdevice_dir] if libdevice_dir else []), *libcuda_dirs()]


def launcher(src: Any, metadata: Any) -> Any:
    """Return the launcher of a compiled kernel on the active device."""
    return driver.active.launcher_cls(src, metadata)


CudaLauncher = launcher


def expand_signature(
    signature: Sequence[Any], tensordesc_meta: Sequence[Any] | None, map_type: str = "nvTmaDesc"
) -> list[Any]:
    """Return the types with those of the values that each descriptor of the host becomes.

    `tensordesc_meta` has, for each descriptor in order, what the compiler says about its tensor map, or None; a map is
    of type `map_type`.

    >>> expand_signature(["tensordesc<fp16[64]>", "i32"], [{"swizzle": 3}])
    ['nvTmaDesc', 'i32', 'i64', 'i32']
    """
    metas = iter(tensordesc_meta or ())
    found: list[Any] = []
    for type in signature:
        if not (isinstance(type, str) and type.startswith("tensordesc")):
            found.append(type)
            continue
        element, _, rest = type.removeprefix("tensordesc<").partition("[")
        rank = rest.partition("]")[0].count(",") + 1
        if next(metas, None) is None:
            found += [f"*{element}", *["i64"] * (2 * rank), "i1", "i1"]
        else:
            found.append(map_type)
        found += [*["i32"] * rank, *["i64"] * rank]
    return found


def hip_expand_signature(signature: Sequence[Any], tensordesc_meta: Sequence[Any] | None) -> list[Any]:
    """Return the same for AMD GPUs."""
    return expand_signature(signature, tensordesc_meta, "tensordesc")


def make_kernel_signature(signature: Iterable[Any]) -> bytes:
    """Return one byte for each value that the kernel takes: tuples are flattened, constants left out."""
    return signature_metadata(list(kernel_types(signature)))


def kernel_types(signature: Iterable[Any]) -> Iterator[str]:
    for type in signature:
        if isinstance(type, tuple | list):
            yield from kernel_types(type)
        elif type != "constexpr":
            yield type


def annotate_arguments(signature: Iterable[Any]) -> list[PyKernelArg]:
    """Return how each argument is passed."""
    return [
        PyKernelArg(annotate_arguments(type), ARG_TUPLE)
        if isinstance(type, tuple | list)
        else PyKernelArg(None, ARG_CONSTEXPR if type == "constexpr" else ARG_KERNEL)
        for type in signature
    ]


def ty_to_cpp(ty: str) -> str:
    """Return the C type of an argument with this signature code."""
    return CudaDriver.map_python_to_cpp_type(CudaDriver(), ty)


include_dirs = header_folders()
libdevice_dir = os.path.dirname(knobs.nvidia.find_libdevice() or "")


ROCM = "/opt/rocm"
hip_include_dirs = [
    folder
    for folder in (os.path.join(knobs.getenv("ROCM_PATH") or ROCM, "include"),)
    if os.path.isdir(os.path.join(folder, "hip"))
]


def hip_ty_to_cpp(ty: str) -> str:
    """Return the C type of an argument with this signature code, for AMD GPUs."""
    return HIPDriver.map_python_to_cpp_type(HIPDriver(), ty)
