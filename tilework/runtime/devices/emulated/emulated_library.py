"""A driver library without a GPU: what the libraries of all vendors do, called as through ctypes, on top of an
emulator.

    cuda = libcuda.Cuda(EmulatedCuda())             # where `libcuda.library()` has one of NVIDIA's
    cuda.cuLaunchKernelEx(...)                      # real PTX is executed
    cuda.loaded.launches[0].stream

A vendor's class says what its functions are called (`names`) and take (`functions`), how a thread chooses a device, and
how code is loaded and launched. Work is queued and runs when its stream, an event or the device is synchronised, so
that what should be asynchronous is seen to be. The clock of events moves by one millisecond per kernel, or, where
launches are counted, by one for each thing that they count.
"""

import ctypes
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar, Protocol

from tilework.oracles.emulator.counters import Counters
from tilework.oracles.emulator.findings import CheckFailed, Finding
from tilework.oracles.emulator.memory import Extent, MemoryFault
from tilework.oracles.emulator.syntax import EmulatorError
from tilework.targets import driver_library


class Result(IntEnum):
    """Result codes of driver functions: CUDA and HIP have the same."""

    OK = 0
    INVALID_VALUE = 1
    OUT_OF_MEMORY = 2
    NOT_INITIALIZED = 3
    NO_DEVICE = 100
    INVALID_DEVICE = 101
    INVALID_IMAGE = 200
    INVALID_CONTEXT = 201
    NO_BINARY = 209
    INVALID_PTX = 218
    INVALID_HANDLE = 400
    NOT_FOUND = 500
    NOT_READY = 600
    ILLEGAL_ADDRESS = 700
    LAUNCH_FAILED = 719
    NOT_SUPPORTED = 801
    CAPTURE_UNSUPPORTED = 900


TEXTS: dict[int, str] = {
    Result.INVALID_VALUE: "invalid argument",
    Result.OUT_OF_MEMORY: "out of memory",
    Result.NOT_INITIALIZED: "initialization error",
    Result.NO_DEVICE: "no capable device is detected",
    Result.INVALID_DEVICE: "invalid device ordinal",
    Result.INVALID_IMAGE: "device kernel image is invalid",
    Result.INVALID_CONTEXT: "invalid device context",
    Result.NO_BINARY: "no kernel image is available for execution on the device",
    Result.INVALID_PTX: "a PTX JIT compilation failed",
    Result.INVALID_HANDLE: "invalid resource handle",
    Result.NOT_FOUND: "named symbol not found",
    Result.NOT_READY: "device not ready",
    Result.NOT_SUPPORTED: "operation not supported",
    Result.ILLEGAL_ADDRESS: "an illegal memory access was encountered",
    Result.LAUNCH_FAILED: "unspecified launch failure",
    Result.CAPTURE_UNSUPPORTED: "operation not permitted when stream is capturing",
}


def given(target: Any, value: Any) -> int:
    """Write a result through a pointer of the caller's, and return success."""
    target._obj.value = value
    return Result.OK


LEGACY_STREAM, THREAD_STREAM = 1, 2
PATIENCE = 10_000_000  # instructions of a block, some minutes


class Observer(Protocol):
    """The observer around a launch on memory of this process: it is lent `extents`; `done`, `failed` may raise."""

    extents: list[Extent]

    def done(self, findings: Sequence[Finding], counters: Counters | None) -> None: ...
    def failed(self, error: EmulatorError) -> None: ...


@dataclass
class Launched:
    """One launch."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    stream: int
    attributes: dict[int, Any]
    parameters: list[bytes]
    device: int


@dataclass
class Happening:
    """An event."""

    timed: bool
    moment: float | None = None
    recorded: tuple[int, Callable[[], Any]] | None = None  # where, and what does it


class EmulatedLibrary:
    """The functions of a library; everything else is for tests to look at."""

    names: ClassVar[Mapping[str, str]]
    functions: ClassVar[Mapping[str, tuple[Any, ...]]]  # the types of their arguments, for machine code that calls them
    # by symbol: the arguments of the function in Python, from those that machine code passes, where they differ
    adapted: ClassVar[Mapping[str, Callable[..., tuple[Any, ...]]]] = {}

    def __init_subclass__(cls) -> None:
        """Give the functions named in `CALLS` the vendor's names."""
        for name, symbol in cls.names.items():
            if not hasattr(cls, symbol) and hasattr(cls, name):
                setattr(cls, symbol, getattr(cls, name))

    def __init__(self, devices: Sequence[Any]) -> None:
        self.devices = devices  # each has a `memory`
        self.objects: dict[int, Any] = {}
        self.queue: list[tuple[int, Callable[[], Any]]] = []
        self.captures: dict[int, list[Callable[[], Any]]] = {}
        self.launches: list[Launched] = []
        self.thread = threading.local()
        self.clock, self.failure, self.fault = 0.0, Result.OK, ""
        self.cleared = 0  # bytes that were set
        self.lock = threading.RLock()
        self.callbacks: dict[str, Any] = {}

    # what the functions below share

    def current(self) -> int | None:
        """The index of the device that this thread uses; None if it uses none."""
        raise NotImplementedError

    @property
    def device(self) -> Any:
        return self.devices[self.current() or 0]

    def has_context(self) -> bool:
        return self.current() is not None

    def keep(self, thing: object) -> int:
        handle = 0x1000 + 16 * len(self.objects)
        self.objects[handle] = thing
        return handle

    def enqueue(self, stream: int | None, work: Callable[[], object]) -> int:
        stream = 0 if stream == LEGACY_STREAM else stream
        if stream and stream != THREAD_STREAM and stream not in self.objects:
            return Result.INVALID_HANDLE
        if self.failure:
            return self.failure
        with self.lock:
            if (recording := self.captures.get(stream or 0)) is not None:
                recording.append(work)
            else:
                self.queue.append((stream or 0, work))
        return Result.OK

    def run(self, is_due: Callable[[int], bool]) -> int:
        """Do the work of some streams, in order."""
        with self.lock:
            before, due = self.queue, [work for stream, work in self.queue if is_due(stream)]
            self.queue = [(stream, work) for stream, work in self.queue if not is_due(stream)]
            while due:
                try:
                    due.pop(0)()
                except EmulatorError as error:
                    self.failure = Result.ILLEGAL_ADDRESS if is_bad_access(error) else Result.LAUNCH_FAILED
                    self.fault = str(error)
                except BaseException:  # of an observer: what comes after it waits for the next time
                    self.queue = [*((stream, work) for stream, work in before if work in due), *self.queue]
                    raise
        return self.failure

    def address(self, name: str) -> int:
        """The address at which machine code calls a function."""
        if name not in self.callbacks:
            self.callbacks[name] = self.callback(name)
        return ctypes.cast(self.callbacks[name], ctypes.c_void_p).value or 0

    def callback(self, symbol: str) -> Any:
        """Return a function of the library as one of C."""
        arguments = self.adapted.get(symbol, lambda library, *given: given)
        call = lambda *given: getattr(self, symbol)(*arguments(self, *given))  # noqa: E731
        return ctypes.CFUNCTYPE(ctypes.c_int, *self.functions[symbol])(call)

    @contextmanager
    def observed(self, observer: Observer) -> Iterator[None]:
        """Surround the launches of this thread in the block by an observer, whenever they run."""
        self.thread.observer = observer
        try:
            yield
        finally:
            self.thread.observer = None

    def watched(
        self,
        device: Any,
        launch: Callable[[], None],
        outcome: Callable[[], tuple[Sequence[Finding], Counters | None, int]],
    ) -> Callable[[], None]:
        """The work that a launch by this thread puts into the queue; `outcome` returns the findings, the counters and
        the steps of the clock.
        """
        observer: Observer | None = getattr(self.thread, "observer", None)

        def work() -> None:
            if observer is None:
                self.clock += 1.0
                return launch()
            with device.memory.lend(observer.extents):
                try:
                    launch()
                except CheckFailed:
                    pass  # which `outcome` returns
                except EmulatorError as error:
                    observer.failed(error)
            findings, counters, steps = outcome()
            self.clock += steps
            return observer.done(findings, counters)

        return work

    # devices

    def count_devices(self, count: object) -> int:
        return given(count, len(self.devices))

    def synchronize(self) -> int:
        if not self.has_context():
            return Result.INVALID_CONTEXT
        return Result.CAPTURE_UNSUPPORTED if self.captures else self.run(lambda stream: True)

    def unload_module(self, module: int) -> int:
        self.objects[module] = None
        return Result.OK

    # memory

    def allocate(self, address: object, size: int) -> int:
        if not self.has_context():
            return Result.INVALID_CONTEXT
        try:
            return given(address, self.device.memory.allocate(size))
        except EmulatorError:
            return Result.OUT_OF_MEMORY

    def free(self, address: int) -> int:
        for device in self.devices:
            if device.memory.index(address) is not None:
                device.memory.free(address)
                return Result.OK
        return Result.INVALID_VALUE

    def pin(self, address: object, size: int, flags: int) -> int:
        return self.allocate(address, size)

    def unpin(self, address: ctypes.c_void_p) -> int:
        return self.free(address.value or 0)

    def get_pointer_attribute(self, value: Any, attribute: int, address: int) -> int:
        assert attribute == driver_library.POINTER_DEVICE_ADDRESS
        if not any(device.memory.index(address) is not None for device in self.devices):
            return Result.INVALID_VALUE
        return given(value, address)

    def copy_in(self, target: int, source: int, size: int, stream: int) -> int:
        data, device = ctypes.string_at(source, size), self.device
        return self.enqueue(stream, lambda: device.memory.write(target, data))

    def copy_out(self, target: int, source: int, size: int, stream: int) -> int:
        device = self.device
        return self.enqueue(stream, lambda: ctypes.memmove(target, device.memory.read(source, size), size))

    def fill(self, target: int, value: int, size: int, stream: int) -> int:
        device = self.device

        def work() -> None:
            device.memory.bytes.data[device.memory.span(target, size)] = value
            self.cleared += size

        return self.enqueue(stream, work)

    # streams, graphs, events

    def create_stream(self, stream: object, flags: int) -> int:
        if not self.has_context():
            return Result.INVALID_CONTEXT
        return given(stream, self.keep("stream"))

    def destroy_stream(self, stream: int) -> int:
        return self.run(lambda one: one == stream)

    def wait_for_stream(self, stream: int) -> int:
        return Result.CAPTURE_UNSUPPORTED if stream in self.captures else self.run(lambda one: one == stream)

    def begin_capture(self, stream: int, mode: int) -> int:
        if not stream:
            return Result.CAPTURE_UNSUPPORTED
        self.captures[stream] = []
        return Result.OK

    def end_capture(self, stream: int, graph: object) -> int:
        if stream not in self.captures:
            return Result.INVALID_VALUE
        return given(graph, self.keep(self.captures.pop(stream)))

    def get_capture_status(self, stream: int, status: object) -> int:
        return given(status, int((stream or 0) in self.captures))

    def make_executable(self, executable: object, graph: int, flags: int) -> int:
        return given(executable, self.keep(list(self.objects[graph])))

    def launch_graph(self, executable: int, stream: int) -> int:
        work = self.objects[executable]
        return self.enqueue(stream, lambda: [step() for step in work])

    def create_event(self, event: object, flags: int) -> int:
        if not self.has_context():
            return Result.INVALID_CONTEXT
        return given(event, self.keep(Happening(not flags & driver_library.EVENT_DISABLE_TIMING)))

    def record_event(self, event: int, stream: int) -> int:
        happening: Happening = self.objects[event]

        def work() -> None:
            happening.moment = self.clock

        happening.recorded = 0 if stream == LEGACY_STREAM else stream or 0, work
        return self.enqueue(stream, work)

    def wait_in_stream(self, stream: int, event: int, flags: int) -> int:
        recorded = self.objects[event].recorded
        return self.enqueue(stream, lambda: self.run_until(*recorded)) if recorded else Result.OK

    def run_until(self, stream: int, last: Callable[[], object]) -> None:
        """Do the work of a stream up to something that may be done already."""
        while any(work is last for _, work in self.queue):
            first = next(index for index, (owner, _) in enumerate(self.queue) if owner == stream)
            self.queue.pop(first)[1]()

    def wait_for_event(self, event: int) -> int:
        return self.run(lambda stream: True)

    def elapsed_time(self, milliseconds: object, start: int, end: int) -> int:
        first, last = self.objects[start], self.objects[end]
        if not (first.timed and last.timed):
            return Result.INVALID_HANDLE
        if first.moment is None or last.moment is None:
            return Result.NOT_READY
        return given(milliseconds, last.moment - first.moment)

    def destroy_event(self, event: int) -> int:
        return Result.OK

    destroy_executable = destroy_graph = destroy_event


def is_bad_access(error: EmulatorError) -> bool:
    findings = error.findings if isinstance(error, CheckFailed) else ()
    return isinstance(error, MemoryFault) or any(finding.address is not None for finding in findings)


class Reference:
    """The equivalent of `ctypes.byref` for an address that machine code passes."""

    def __init__(self, type: Any, address: int) -> None:
        self._obj = type.from_address(address)


def address_array(address: int, parameters: Sequence[object]) -> Any:
    """The addresses of what a launch passes."""
    return (ctypes.c_void_p * len(parameters)).from_address(address)
