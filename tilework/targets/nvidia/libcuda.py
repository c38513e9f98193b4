"""The CUDA driver library: its names for the functions of `targets/driver_library.py`, its own functions and
structures.

The knob `nvidia.libcuda_path` (TRITON_LIBCUDA_PATH: the file, or its folder) names it, else the system's loader finds
``libcuda.so.1``. The names are those of the symbols: many functions have a version 2, to which the headers map the
plain name.
"""

import ctypes
import os
from ctypes import c_int, c_size_t, c_uint, c_void_p
from typing import Any

from tilework import knobs
from tilework.targets.driver_library import OUT, DriverError, DriverLibrary, FoundLibrary, arguments_of, names_of
from tilework.targets.likely_drivers import LIBCUDA

# attributes of devices
MAX_THREADS_PER_BLOCK, WARP_SIZE, MAX_REGISTERS, CLOCK_RATE, MULTIPROCESSORS, COOPERATIVE_LAUNCH = 1, 10, 12, 13, 16, 95
MEMORY_CLOCK_RATE, MEMORY_BUS_WIDTH, MAJOR, MINOR, MAX_SHARED_OPTIN = 36, 37, 75, 76, 97
FUNCTION_NON_PORTABLE_CLUSTER = 14  # an attribute of functions
LAUNCH_CLUSTER, LAUNCH_CLUSTER_POLICY, LAUNCH_PROGRAMMATIC = 4, 5, 6  # attributes of launches
# options of the assembler in the driver
JIT_ERROR_LOG, JIT_ERROR_LOG_SIZE = 5, 6
LIMIT_PRINTF_FIFO = 1

OWN_NAMES = {
    "count_devices": "cuDeviceGetCount",
    "get_context": "cuCtxGetCurrent",
    "set_context": "cuCtxSetCurrent",
    "synchronize": "cuCtxSynchronize",
    "launch": "cuLaunchKernelEx",
    "launch_cooperative": "cuLaunchKernelEx",  # with an attribute
    "allocate": "cuMemAlloc_v2",
    "free": "cuMemFree_v2",
    "pin": "cuMemHostAlloc",
    "unpin": "cuMemFreeHost",
    "create_stream": "cuStreamCreate",
    "create_event": "cuEventCreate",
}
SECOND = ("copy_in", "copy_out", "destroy_stream", "begin_capture", "destroy_event")
NAMES = names_of("cu", SECOND, OWN_NAMES)
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    **arguments_of(NAMES),
    "cuInit": (c_uint,),
    "cuGetErrorString": (c_int, OUT),
    "cuDeviceGetAttribute": (OUT, c_int, c_int),
    "cuDevicePrimaryCtxRetain": (OUT, c_int),
    "cuCtxGetCurrent": (OUT,),
    "cuCtxSetCurrent": (c_void_p,),
    "cuCtxGetDevice": (OUT,),
    "cuCtxSetLimit": (c_int, c_size_t),
    "cuCtxGetLimit": (OUT, c_int),
    "cuFuncSetAttribute": (c_void_p, c_int, c_int),
    "cuFuncGetParamInfo": (c_void_p, c_size_t, OUT, OUT),
    "cuLaunchKernelEx": (c_void_p, c_void_p, c_void_p, c_void_p),
    "cuTensorMapEncodeIm2col": (
        OUT, c_int, c_uint, *[c_void_p] * 5, c_uint, c_uint, c_void_p, *[c_int] * 4
    ),
    "cuTensorMapEncodeTiled": (OUT, c_int, c_uint, *[c_void_p] * 5, *[c_int] * 4),
}  # fmt: skip


class LaunchAttributeValue(ctypes.Union):
    """CUlaunchAttributeValue: 64 bytes, of which these forms are used."""

    _fields_ = (("pad", ctypes.c_char * 64), ("flag", c_int), ("dimensions", c_uint * 3))


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute."""

    _fields_ = (("id", c_int), ("pad", ctypes.c_char * 4), ("value", LaunchAttributeValue))


class CudaError(DriverError):
    """A function of the driver failed; `code` is its CUresult."""

    form = "Triton Error [CUDA]: {text}"


class Cuda(DriverLibrary):
    """The functions of a loaded library."""

    vendor, names, functions, error = "CUDA", NAMES, FUNCTIONS, CudaError

    def start(self) -> None:
        self.cuInit(0)

    def error_text(self, code: int) -> str:
        text = ctypes.c_char_p()
        self.code("cuGetErrorString", code, ctypes.byref(text))
        return text.value.decode() if text.value else f"error {code}"

    def device_attribute(self, attribute: int, device: int) -> int:
        found = c_int()
        self.cuDeviceGetAttribute(ctypes.byref(found), attribute, device)
        return found.value

    def context(self) -> int:
        """Return the current context of this thread; 0 if it has none."""
        context = c_void_p()
        self.cuCtxGetCurrent(ctypes.byref(context))
        return context.value or 0

    def has_context(self) -> bool:
        return self.context() != 0

    def use_device(self, device: int) -> None:
        """Make the primary context of the device current; it lives as long as the process."""
        context = c_void_p()
        self.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
        self.cuCtxSetCurrent(context)

    def current_device(self) -> int:
        device = c_int()
        self.cuCtxGetDevice(ctypes.byref(device))
        return device.value


def load() -> ctypes.CDLL:
    """Load the library that the knob or the system names."""
    name = LIBCUDA
    if path := knobs.nvidia.libcuda_path:
        name = os.path.join(path, name) if os.path.isdir(path) else path
    try:
        return ctypes.CDLL(name)
    except OSError as error:
        hint = "TRITON_LIBCUDA_PATH names it" if path else "NVIDIA's driver has it; TRITON_LIBCUDA_PATH can name it"
        raise RuntimeError(f"the CUDA driver library cannot be loaded ({error}); {hint}") from None


FOUND = FoundLibrary(Cuda, load, ("linux", "win32"))
library = FOUND.library
