"""The driver library of a vendor through ctypes: its functions by name, its errors as exceptions.

    >>> cuda = libcuda.library()
    >>> count = ctypes.c_int()
    >>> cuda.cuDeviceGetCount(ctypes.byref(count))        # RuntimeError("Triton Error [CUDA]: ...")
    >>> cuda.count_devices(ctypes.byref(count))           # the same, by the name that all vendors share
    >>> cuda.code("cuCtxSetLimit", 1, 1 << 20)            # the result code, for callers that expect failures

A vendor (`nvidia/libcuda.py`, `amd/libhip.py`) says how it calls `CALLS`, what else it has, and how a thread uses a
device. Nothing is loaded before `FoundLibrary.library()` is called.
"""

import ctypes
import os
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from ctypes import c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any, ClassVar, Generic, TypeVar

from tilework.process.forks import held_at_fork

SUCCESS, INVALID_VALUE, NOT_INITIALIZED = 0, 1, 3

# attributes of functions, of pointers, flags: both vendors have the same values
FUNCTION_MAX_THREADS, FUNCTION_SHARED, FUNCTION_LOCAL, FUNCTION_REGISTERS, FUNCTION_MAX_DYNAMIC_SHARED = 0, 1, 3, 4, 8
POINTER_DEVICE_ADDRESS = 3
STREAM_NON_BLOCKING, EVENT_DISABLE_TIMING, CAPTURE_RELAXED = 1, 2, 2
LAUNCH_COOPERATIVE = 2

OUT = c_void_p  # the address of a result
# the symbol behind the prefix of a vendor, if both call it so, and the arguments
CALLS: dict[str, tuple[Any, ...]] = {
    "driver_version": ("DriverGetVersion", OUT),
    "count_devices": ("", OUT),
    "synchronize": ("",),
    "load_module": ("ModuleLoadDataEx", OUT, c_void_p, c_uint, c_void_p, c_void_p),
    "find_function": ("ModuleGetFunction", OUT, c_void_p, ctypes.c_char_p),
    "unload_module": ("ModuleUnload", c_void_p),
    "get_function_attribute": ("FuncGetAttribute", OUT, c_int, c_void_p),
    "allocate": ("", OUT, c_size_t),
    "free": ("", c_uint64),
    "copy_in": ("MemcpyHtoDAsync", c_uint64, c_void_p, c_size_t, c_void_p),
    "copy_out": ("MemcpyDtoHAsync", c_void_p, c_uint64, c_size_t, c_void_p),
    "fill": ("MemsetD8Async", c_uint64, ctypes.c_ubyte, c_size_t, c_void_p),
    "pin": ("", OUT, c_size_t, c_uint),
    "unpin": ("", c_void_p),
    "get_pointer_attribute": ("PointerGetAttribute", OUT, c_int, c_uint64),
    "create_stream": ("", OUT, c_uint),
    "destroy_stream": ("StreamDestroy", c_void_p),
    "wait_for_stream": ("StreamSynchronize", c_void_p),
    "begin_capture": ("StreamBeginCapture", c_void_p, c_int),
    "end_capture": ("StreamEndCapture", c_void_p, OUT),
    "get_capture_status": ("StreamIsCapturing", c_void_p, OUT),
    "make_executable": ("GraphInstantiateWithFlags", OUT, c_void_p, ctypes.c_ulonglong),
    "launch_graph": ("GraphLaunch", c_void_p, c_void_p),
    "destroy_executable": ("GraphExecDestroy", c_void_p),
    "destroy_graph": ("GraphDestroy", c_void_p),
    "create_event": ("", OUT, c_uint),
    "record_event": ("EventRecord", c_void_p, c_void_p),
    "wait_in_stream": ("StreamWaitEvent", c_void_p, c_void_p, c_uint),
    "wait_for_event": ("EventSynchronize", c_void_p),
    "elapsed_time": ("EventElapsedTime", OUT, c_void_p, c_void_p),
    "destroy_event": ("EventDestroy", c_void_p),
}  # fmt: skip


def names_of(prefix: str, second: Collection[str], own: Mapping[str, str]) -> dict[str, str]:
    """A vendor's names of `CALLS`: some in their second version, some with names of its `own`.

    >>> names_of("cu", ["destroy_event"], {"free": "cuMemFree_v2"})["destroy_event"]
    'cuEventDestroy_v2'
    """
    return {name: f"{prefix}{call[0]}{'_v2' * (name in second)}" for name, call in CALLS.items()} | dict(own)


def arguments_of(names: Mapping[str, str]) -> dict[str, tuple[Any, ...]]:
    """The types of the arguments of `CALLS`, by symbol."""
    return {names[name]: call[1:] for name, call in CALLS.items()}


class LaunchConfig(ctypes.Structure):
    """The configuration of a grid launch: CUlaunchConfig, HIP_LAUNCH_CONFIG."""

    _fields_ = (
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared", c_uint),
        ("stream", c_void_p),
        ("attributes", c_void_p),
        ("attribute_count", c_uint),
    )


# what a kernel did, after which every call fails: illegal address, timeout, assert, stack, instruction, alignment,
# space, pc, other
STICKY = (700, 702, 710, 714, 715, 716, 717, 718, 719)
DEAD = (
    "\nA kernel that was launched before did this. The GPU cannot be used again in this process, arrays of the host"
    " can. With TRITON_SANITIZE=1 the error names the line"
)

FORKED = (
    "\nThis process was forked from one that had used the GPU, which a driver does not allow: start processes with"
    ' multiprocessing.get_context("spawn") or "forkserver", or before the first use of the GPU (docs/multi-process.md)'
)


class DriverError(RuntimeError):
    """A function of a driver failed; `code` is what it returned."""

    form: ClassVar[str]

    def __init__(self, code: int, text: str, detail: str = "") -> None:
        said = self.form.format(code=code, text=text)
        super().__init__(f"{said}{detail}{DEAD if code in STICKY else ''}")
        self.code = code


class DriverLibrary(ABC):
    """The functions of a loaded library as methods that raise errors; see the module docstring."""

    vendor: ClassVar[str]  # as users call its software: CUDA
    names: ClassVar[Mapping[str, str]]  # of `CALLS`, and of those for contexts and launches, in the library
    functions: ClassVar[Mapping[str, tuple[Any, ...]]]
    results: ClassVar[Mapping[str, Any]] = {}  # of those that return no code
    error: ClassVar[type[DriverError]]

    def __init__(self, loaded: Any) -> None:
        self.loaded = loaded
        self.process = os.getpid()
        self.raw: dict[str, Callable[..., int]] = {}

    def function(self, name: str) -> Callable[..., int]:
        """A function as it is in the library: it returns a code, 0 for success."""
        if (found := self.raw.get(name)) is not None:
            return found
        symbol = self.names.get(name, name)
        found = getattr(self.loaded, symbol, None)
        if found is None:
            raise RuntimeError(
                f"Triton Error [{self.vendor}]: the driver has no function {symbol}: it is too old, update it"
            )
        if isinstance(self.loaded, ctypes.CDLL):
            found.argtypes, found.restype = self.functions[symbol], self.results.get(symbol, c_int)
        self.raw[name] = found
        return found

    def address(self, name: str) -> int:
        """The address of a function, for machine code that calls it."""
        function = self.function(name)
        if isinstance(self.loaded, ctypes.CDLL):
            return ctypes.cast(function, c_void_p).value or 0  # pyright: ignore[reportArgumentType]
        return self.loaded.address(self.names.get(name, name))

    def has(self, name: str) -> bool:
        """Return True if this version of the driver has a function."""
        return name in self.raw or getattr(self.loaded, self.names.get(name, name), None) is not None

    def code(self, name: str, *args: Any) -> int:
        """Call a function; return its result code."""
        return self.function(name)(*args)

    def destroy(self, name: str, handle: int, is_ending: Callable[[], bool] = sys.is_finalizing) -> None:
        """Destroy or free a handle; what is left when Python ends goes with the process, and modules are gone by
        then.
        """
        if not is_ending():
            self.code(name, handle)

    def check(self, code: int, detail: str = "") -> None:
        """Raise the error of a result code."""
        if code:
            is_forked = code == NOT_INITIALIZED and self.process != os.getpid()
            raise self.error(code, self.error_text(code), detail + FORKED * is_forked)

    def __getattr__(self, name: str) -> Callable[..., None]:
        symbol = self.names.get(name, name)
        if symbol not in self.functions:
            raise AttributeError(name)
        function = self.function(name)

        def call(*args: Any) -> None:
            if code := function(*args):
                self.check(code, f" ({symbol})")

        setattr(self, name, call)
        return call

    def function_attribute(self, attribute: int, function: int) -> int:
        found = c_int()
        self.get_function_attribute(ctypes.byref(found), attribute, function)
        return found.value

    # what each vendor does in a way of its own

    @abstractmethod
    def start(self) -> None:
        """Make it usable, once; an error says why that cannot be."""

    def forget_error(self) -> None:  # noqa: B027  most keep none
        """Clear an expected failure, so that the next call does not report it."""

    @abstractmethod
    def error_text(self, code: int) -> str:
        """The driver's text for an error code."""

    @abstractmethod
    def context(self) -> int:
        """Return the context or device that is current in this thread, as "get_context" gives it."""

    @abstractmethod
    def has_context(self) -> bool:
        """Return True if this thread can use a device."""

    @abstractmethod
    def use_device(self, device: int) -> None:
        """Let this thread use a device, as torch and the vendor's runtime do."""

    @abstractmethod
    def current_device(self) -> int:
        """The index of the device that this thread uses."""


Library = TypeVar("Library", bound=DriverLibrary)
SYSTEM_NAMES = {"linux": "Linux", "win32": "Windows", "darwin": "macOS"}


class FoundLibrary(Generic[Library]):
    """The library of a vendor in this process, loaded at its first use.

    `systems` are those that the vendor has a driver for, as `sys.platform` names them.
    """

    def __init__(
        self, make: Callable[[Any], Library], load_file: Callable[[], Any], systems: tuple[str, ...] = ("linux",)
    ) -> None:
        self.make, self.load_file, self.systems = make, load_file, systems
        self.found: Library | None = None
        self.lock = held_at_fork(threading.RLock())

    def library(self) -> Library:
        """The library, initialised; RuntimeError says why there is none."""
        if self.found is None:
            with self.lock:
                if self.found is None:
                    made = self.make(self.load())
                    made.start()
                    self.found = made
        return self.found

    def load(self) -> Any:
        """Load the file; RuntimeError says why that cannot be."""
        if sys.platform not in self.systems:
            theirs = " and ".join(SYSTEM_NAMES[system] for system in self.systems)
            here = SYSTEM_NAMES.get(sys.platform, sys.platform)
            raise RuntimeError(f"their driver is used on {theirs}, and this is {here}")
        return self.load_file()

    def use(self, loaded: Any) -> None:
        """Take another library, which has the same functions, from now on."""
        with self.lock:
            self.found = self.make(loaded)
            self.found.start()

    def is_installed(self) -> bool:
        """Return True if the library is there; it is not initialised for this, which costs time and memory on the
        GPU.
        """
        if self.found is not None:
            return True
        try:
            self.load()
        except RuntimeError:
            return False
        return True

    def why_unusable(self) -> str | None:
        """Return the reason why no GPU of this vendor can be used, or None if one can."""
        count = c_int()
        try:
            self.library().count_devices(ctypes.byref(count))
        except RuntimeError as error:
            return str(error)
        return None if count.value else "the driver finds no GPU"
