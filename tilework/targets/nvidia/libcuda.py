"""NVIDIA's driver library through ctypes: its functions by name, its errors as exceptions, its structures.

    >>> cuda = library()
    >>> count = ctypes.c_int()
    >>> cuda.cuDeviceGetCount(ctypes.byref(count))        # RuntimeError("Triton Error [CUDA]: no CUDA-capable device ...")
    >>> cuda.code("cuCtxSetLimit", 1, 1 << 20)            # the CUresult, for callers that expect failures

Nothing is loaded before `library()` is called. It is found where the knob `nvidia.libcuda_path` (TRITON_LIBCUDA_PATH: the
file, or its folder) says, else where the system's loader finds ``libcuda.so.1``. The names are those of the symbols: many
functions of the driver have a second version, which is the one that headers give the plain name.
"""

import ctypes
import os
import sys
import threading
from collections.abc import Callable
from ctypes import c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any

from tilework import knobs

SUCCESS, INVALID_VALUE = 0, 1

# attributes of devices
MAX_THREADS_PER_BLOCK, WARP_SIZE, MAX_REGISTERS, CLOCK_RATE, MULTIPROCESSORS, COOPERATIVE_LAUNCH = 1, 10, 12, 13, 16, 95
MEMORY_CLOCK_RATE, MEMORY_BUS_WIDTH, MAJOR, MINOR, MAX_SHARED_OPTIN = 36, 37, 75, 76, 97
# attributes of functions
FUNCTION_MAX_THREADS, FUNCTION_SHARED, FUNCTION_LOCAL, FUNCTION_REGISTERS = 0, 1, 3, 4
FUNCTION_MAX_DYNAMIC_SHARED, FUNCTION_NON_PORTABLE_CLUSTER = 8, 14
# attributes of launches
LAUNCH_COOPERATIVE, LAUNCH_CLUSTER, LAUNCH_CLUSTER_POLICY, LAUNCH_PROGRAMMATIC = 2, 4, 5, 6
# options of the assembler in the driver
JIT_ERROR_LOG, JIT_ERROR_LOG_SIZE = 5, 6
LIMIT_PRINTF_FIFO = 1
POINTER_DEVICE_ADDRESS = 3
STREAM_NON_BLOCKING, EVENT_DISABLE_TIMING, CAPTURE_RELAXED = 1, 2, 2

OUT = c_void_p  # the address of a result
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuDriverGetVersion": (OUT,),
    "cuGetErrorString": (c_int, OUT),
    "cuDeviceGetCount": (OUT,),
    "cuDeviceGet": (OUT, c_int),
    "cuDeviceGetAttribute": (OUT, c_int, c_int),
    "cuDevicePrimaryCtxRetain": (OUT, c_int),
    "cuCtxGetCurrent": (OUT,),
    "cuCtxSetCurrent": (c_void_p,),
    "cuCtxGetDevice": (OUT,),
    "cuCtxSynchronize": (),
    "cuCtxSetLimit": (c_int, c_size_t),
    "cuCtxGetLimit": (OUT, c_int),
    "cuModuleLoadDataEx": (OUT, c_void_p, c_uint, c_void_p, c_void_p),
    "cuModuleGetFunction": (OUT, c_void_p, ctypes.c_char_p),
    "cuModuleUnload": (c_void_p,),
    "cuFuncGetAttribute": (OUT, c_int, c_void_p),
    "cuFuncSetAttribute": (c_void_p, c_int, c_int),
    "cuFuncGetParamInfo": (c_void_p, c_size_t, OUT, OUT),
    "cuLaunchKernelEx": (c_void_p, c_void_p, c_void_p, c_void_p),
    "cuMemAlloc_v2": (OUT, c_size_t),
    "cuMemFree_v2": (c_uint64,),
    "cuMemcpyHtoDAsync_v2": (c_uint64, c_void_p, c_size_t, c_void_p),
    "cuMemcpyDtoHAsync_v2": (c_void_p, c_uint64, c_size_t, c_void_p),
    "cuMemsetD8Async": (c_uint64, ctypes.c_ubyte, c_size_t, c_void_p),
    "cuMemHostAlloc": (OUT, c_size_t, c_uint),
    "cuMemFreeHost": (c_void_p,),
    "cuPointerGetAttribute": (OUT, c_int, c_uint64),
    "cuStreamCreate": (OUT, c_uint),
    "cuStreamDestroy_v2": (c_void_p,),
    "cuStreamSynchronize": (c_void_p,),
    "cuStreamBeginCapture_v2": (c_void_p, c_int),
    "cuStreamEndCapture": (c_void_p, OUT),
    "cuGraphInstantiateWithFlags": (OUT, c_void_p, ctypes.c_ulonglong),
    "cuGraphLaunch": (c_void_p, c_void_p),
    "cuGraphExecDestroy": (c_void_p,),
    "cuGraphDestroy": (c_void_p,),
    "cuEventCreate": (OUT, c_uint),
    "cuEventRecord": (c_void_p, c_void_p),
    "cuEventSynchronize": (c_void_p,),
    "cuEventElapsedTime": (OUT, c_void_p, c_void_p),
    "cuEventDestroy_v2": (c_void_p,),
    "cuTensorMapEncodeTiled": (OUT, c_int, c_uint, *[c_void_p] * 5, *[c_int] * 4),
}  # fmt: skip


class LaunchAttributeValue(ctypes.Union):
    """CUlaunchAttributeValue: 64 bytes, of which these forms are used."""

    _fields_ = (("pad", ctypes.c_char * 64), ("flag", c_int), ("dimensions", c_uint * 3))


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute."""

    _fields_ = (("id", c_int), ("pad", ctypes.c_char * 4), ("value", LaunchAttributeValue))


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared", c_uint),
        ("stream", c_void_p),
        ("attributes", c_void_p),
        ("attribute_count", c_uint),
    )


# what a kernel did, after which every call fails: illegal address, timeout, assert, stack, instruction, alignment, space, pc, other
STICKY = (700, 702, 710, 714, 715, 716, 717, 718, 719)
DEAD = (
    "\nA kernel that was launched before did this. The GPU cannot be used again in this process, arrays of the host can."
    " With TRITON_SANITIZE=1 the program is told the line"
)


class CudaError(RuntimeError):
    """A function of the driver failed; `code` is its CUresult."""

    def __init__(self, code: int, text: str, detail: str = "") -> None:
        super().__init__(f"Triton Error [CUDA]: {text}{detail}{DEAD if code in STICKY else ''}")
        self.code = code


class Cuda:
    """The functions of a loaded library as methods that raise `CudaError`; see the module docstring."""

    def __init__(self, loaded: Any) -> None:
        self.loaded = loaded
        self.raw: dict[str, Callable[..., int]] = {}

    def function(self, name: str) -> Callable[..., int]:
        """A function as it is in the library: it returns a CUresult."""
        if (found := self.raw.get(name)) is not None:
            return found
        found = getattr(self.loaded, name, None)
        if found is None:
            raise RuntimeError(f"Triton Error [CUDA]: the driver has no function {name}: it is too old, update it")
        if isinstance(self.loaded, ctypes.CDLL):
            found.argtypes, found.restype = FUNCTIONS[name], c_int
        self.raw[name] = found
        return found

    def address(self, name: str) -> int:
        """Where a function is, for machine code that calls it."""
        function = self.function(name)
        if isinstance(self.loaded, ctypes.CDLL):
            return ctypes.cast(function, c_void_p).value or 0  # pyright: ignore[reportArgumentType]
        return self.loaded.address(name)

    def has(self, name: str) -> bool:
        """Whether this version of the driver has a function."""
        return name in self.raw or getattr(self.loaded, name, None) is not None

    def code(self, name: str, *args: Any) -> int:
        """Call a function; its CUresult."""
        return self.function(name)(*args)

    def check(self, code: int, detail: str = "") -> None:
        """Raise the error that a CUresult stands for."""
        if code:
            raise CudaError(code, self.error_text(code), detail)

    def error_text(self, code: int) -> str:
        """What the driver says about a CUresult."""
        text = ctypes.c_char_p()
        self.code("cuGetErrorString", code, ctypes.byref(text))
        return text.value.decode() if text.value else f"error {code}"

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name not in FUNCTIONS:
            raise AttributeError(name)
        function = self.function(name)

        def call(*args: Any) -> None:
            if code := function(*args):
                self.check(code)

        setattr(self, name, call)
        return call

    # what one call alone does not do

    def device_attribute(self, attribute: int, device: int) -> int:
        found = c_int()
        self.cuDeviceGetAttribute(ctypes.byref(found), attribute, device)
        return found.value

    def function_attribute(self, attribute: int, function: int) -> int:
        found = c_int()
        self.cuFuncGetAttribute(ctypes.byref(found), attribute, function)
        return found.value

    def context(self) -> int:
        """The context of this thread, through which it uses a device; 0 if it has none."""
        context = c_void_p()
        self.cuCtxGetCurrent(ctypes.byref(context))
        return context.value or 0

    def has_context(self) -> bool:
        """Whether this thread can use a device."""
        return self.context() != 0

    def use_primary_context(self, device: int) -> None:
        """Let this thread use a device through its primary context, which torch and the CUDA runtime use too.

        The context stays for the life of the process, as theirs does.
        """
        context = c_void_p()
        self.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
        self.cuCtxSetCurrent(context)


_lock = threading.Lock()
_library: Cuda | None = None


def library() -> Cuda:
    """The driver library, initialised; RuntimeError says why there is none."""
    global _library
    if _library is None:
        with _lock:
            if _library is None:
                cuda = Cuda(load())
                cuda.cuInit(0)
                _library = cuda
    return _library


def use(loaded: Any) -> None:
    """Take another library, which has the same functions, from now on."""
    global _library
    with _lock:
        _library = Cuda(loaded)
        _library.cuInit(0)


def load() -> ctypes.CDLL:
    """The library that the knob or the system names."""
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    if path := knobs.nvidia.libcuda_path:
        name = os.path.join(path, name) if os.path.isdir(path) else path
    try:
        return ctypes.CDLL(name)
    except OSError as error:
        hint = "TRITON_LIBCUDA_PATH names it" if path else "NVIDIA's driver has it; TRITON_LIBCUDA_PATH can name it"
        raise RuntimeError(f"the CUDA driver library cannot be loaded ({error}); {hint}") from None


def is_installed() -> bool:
    """Whether the library is there; it is not initialised for this, which costs time and memory on the GPU."""
    if _library is not None:
        return True
    try:
        load()
    except RuntimeError:
        return False
    return True


def why_unusable() -> str | None:
    """Why no NVIDIA GPU can be used here; None if one can."""
    count = c_int()
    try:
        library().cuDeviceGetCount(ctypes.byref(count))
    except RuntimeError as error:
        return str(error)
    return None if count.value else "the driver finds no GPU"
