"""NVIDIA's CUPTI, as far as times of kernels need it: which kernels ran from when to when, whoever launched them.

    cupti = Cupti.found()                   # None where the library is not, or cannot be used
    cupti.begin()
    ...                                     # launches of this process, of any library
    for kernel in cupti.kernels(): ...      # those that are done, after the device was waited for
    cupti.end()

The library is looked for where TRITON_CUPTI_LIB_PATH says, among what the process has loaded (torch brings one), in the CUDA toolkit, in
NVIDIA's package, and where the system's loader looks. Records come in buffers that CUPTI asks for and hands back; a number that is
pushed goes with all launches of the thread until it is popped.
"""

import atexit
import ctypes
import sys
from collections.abc import Iterator
from ctypes import POINTER, byref, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any, NamedTuple

from tilework import knobs

KERNEL, DRIVER, RUNTIME, EXTERNAL = 10, 4, 5, 39  # kinds of records: kernels, calls, and the numbers that go with calls
OURS = 3  # whose numbers they are: CUSTOM0
FORCED = 1
BUFFER, ALIGNED = 1 << 20, 8
NAMES = ("libcupti.so.13", "libcupti.so.12", "libcupti.so")
PLACES = ("lib64", "extras/CUPTI/lib64", "lib")  # below the toolkit's folder

Request = ctypes.CFUNCTYPE(None, POINTER(c_void_p), POINTER(c_size_t), POINTER(c_size_t))
Done = ctypes.CFUNCTYPE(None, c_void_p, c_uint32, c_void_p, c_size_t, c_size_t)


class KernelRecord(ctypes.Structure):
    """The begin of `CUpti_ActivityKernel9` and of what came after it."""

    _fields_ = (
        ("kind", c_uint32),
        ("settings", c_uint32 * 3),
        ("start", c_uint64),
        ("end", c_uint64),
        ("completed", c_uint64),
        ("device", c_uint32),
        ("context", c_uint32),
        ("stream", c_uint32),
        ("extents", c_uint32 * 10),
        ("correlation", c_uint32),
        ("grid_number", c_uint64),
        ("name", ctypes.c_char_p),
        ("unused", c_uint64 * 4),
        ("node", c_uint64),
        ("memory", c_uint32),
        ("graph", c_uint32),
    )


class ExternalRecord(ctypes.Structure):
    """`CUpti_ActivityExternalCorrelation`."""

    _fields_ = (
        ("kind", c_uint32),
        ("owner", c_uint32),
        ("number", c_uint64),
        ("correlation", c_uint32),
        ("reserved", c_uint32),
    )


class Kernel(NamedTuple):
    """A kernel that ran: times are nanoseconds of CUPTI's clock; `number` is what was pushed when it was launched, or 0."""

    launch: int
    name: str
    start: int
    end: int
    device: int
    stream: int
    is_graph: bool
    number: int


class Cupti:
    """See the module docstring."""

    def __init__(self, library: Any) -> None:
        self.library = library
        self.taken: dict[int, Any] = {}  # buffers that CUPTI has
        self.full: list[tuple[Any, int]] = []  # those that came back, with how much of them is used
        self.callbacks = Request(self.request), Done(self.done)
        self.is_registered, self.is_on, self.has_numbers = False, False, False

    @classmethod
    def found(cls) -> "Cupti | None":
        """The one of this process."""
        if not FOUND:
            FOUND.append(next((cls(library) for library in libraries()), None))
        return FOUND[0]

    # buffers

    def request(self, place: Any, size: Any, most: Any) -> None:
        """CUPTI wants a buffer."""
        memory = (c_uint64 * (BUFFER // ALIGNED))()
        self.taken[ctypes.addressof(memory)] = memory
        place[0], size[0], most[0] = ctypes.addressof(memory), BUFFER, 0

    def done(self, context: Any, stream: int, place: int, size: int, used: int) -> None:
        """CUPTI gives one back."""
        memory = self.taken.pop(place, None)
        if memory is not None and used:
            self.full.append((memory, used))

    # sessions

    def begin(self) -> bool:
        """Write records from now on; False if CUPTI refuses, for example because another profiler uses it."""
        if not self.is_registered:
            if self.library.cuptiActivityRegisterCallbacks(*self.callbacks):
                return False
            self.is_registered = True
            atexit.register(self.end)  # no buffer must come back when Python is gone
        self.is_on = not self.library.cuptiActivityEnable(KERNEL)
        return self.is_on

    def end(self) -> None:
        """Write no more."""
        if self.is_on:
            for kind in (KERNEL, *(NUMBERED if self.has_numbers else ())):
                self.library.cuptiActivityDisable(kind)
            self.library.cuptiActivityFlushAll(FORCED)
            self.is_on, self.has_numbers = False, False
            self.full.clear()

    def now(self) -> int:
        """CUPTI's clock."""
        moment = c_uint64()
        self.library.cuptiGetTimestamp(byref(moment))
        return moment.value

    def push(self, number: int) -> None:
        """This number goes with what this thread launches, until `pop`. It is written beside records of calls, so those are needed."""
        if not self.has_numbers:
            self.has_numbers = True
            for kind in NUMBERED:
                self.library.cuptiActivityEnable(kind)
        self.library.cuptiActivityPushExternalCorrelationId(OURS, c_uint64(number))

    def pop(self) -> None:
        self.library.cuptiActivityPopExternalCorrelationId(OURS, byref(c_uint64()))

    def kernels(self) -> list[Kernel]:
        """What has run since the last time, in the order of launches; what is not done has no end, and is not told of again."""
        self.library.cuptiActivityFlushAll(FORCED)
        return self.full_buffers()

    def full_buffers(self) -> list[Kernel]:
        """As `kernels`, but without asking CUPTI for buffers that are not full yet."""
        full, self.full = self.full, []
        numbers: dict[int, int] = {}
        found: list[tuple[KernelRecord, str]] = []
        for memory, used in full:
            for address in self.records(memory, used):
                kind = c_uint32.from_address(address).value
                if kind == EXTERNAL:
                    record = ExternalRecord.from_address(address)
                    numbers[record.correlation] = record.number
                elif kind == KERNEL:
                    kernel = KernelRecord.from_buffer_copy(ctypes.string_at(address, ctypes.sizeof(KernelRecord)))
                    found.append((kernel, (kernel.name or b"").decode(errors="replace")))
        made = [
            Kernel(
                r.correlation, name, r.start, r.end, r.device, r.stream, bool(r.graph), numbers.get(r.correlation, 0)
            )
            for r, name in found
        ]
        return sorted(made)

    def records(self, memory: Any, used: int) -> Iterator[int]:
        """The addresses of the records in a buffer."""
        place, next_record = c_void_p(), self.library.cuptiActivityGetNextRecord
        start = ctypes.addressof(memory)
        while not next_record(start, used, byref(place)):
            assert place.value is not None
            yield place.value


NUMBERED = (EXTERNAL, DRIVER, RUNTIME)
FOUND: list[Cupti | None] = []  # once it was looked for
SIGNATURES = {
    "cuptiActivityRegisterCallbacks": (Request, Done),
    "cuptiActivityEnable": (c_int,),
    "cuptiActivityDisable": (c_int,),
    "cuptiActivityFlushAll": (c_uint32,),
    "cuptiActivityGetNextRecord": (c_void_p, c_size_t, POINTER(c_void_p)),
    "cuptiActivityPushExternalCorrelationId": (c_int, c_uint64),
    "cuptiActivityPopExternalCorrelationId": (c_int, POINTER(c_uint64)),
    "cuptiGetTimestamp": (POINTER(c_uint64),),
}


def libraries() -> Iterator[Any]:
    """Those that can be loaded, and have what is needed."""
    for path in paths():
        try:
            library = ctypes.CDLL(path)
            for name, types in SIGNATURES.items():
                getattr(library, name).argtypes = types
        except (OSError, AttributeError):
            continue
        yield library


def paths() -> Iterator[str]:
    """Where the library may be."""
    if asked := knobs.proton.cupti_lib_dir:
        yield from (str(Path(asked) / name) for name in NAMES)
    yield from loaded()
    if toolkit := knobs.getenv("CUDA_HOME"):
        yield from (str(Path(toolkit) / place / name) for place in PLACES for name in NAMES)
    for folder in sys.path:
        yield from map(str, sorted(Path(folder).glob("nvidia/*/lib/libcupti.so.*"), reverse=True) if folder else ())
    yield from (str(Path("/usr/local/cuda") / place / name) for place in PLACES for name in NAMES)
    yield from NAMES


def loaded() -> list[str]:
    """What this process has loaded already."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return []
    return sorted({line.split()[-1] for line in lines if "/libcupti.so" in line})
