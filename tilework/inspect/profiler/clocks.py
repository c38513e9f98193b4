"""The times of kernels on a GPU: from CUPTI's records, or from a pair of events around each launch.

    cupti = Cupti.found()                   # None where the library is missing, or cannot be used
    cupti.begin()
    ...                                     # launches of this process, by any library
    for kernel in cupti.kernels(): ...      # those that have ended, after synchronizing with the device
    cupti.end()

`Cupti` looks for its library in TRITON_CUPTI_LIB_PATH, among the libraries of the process (torch brings one), in the
CUDA toolkit, in NVIDIA's package, and where the system's loader looks. Records come in buffers that CUPTI requests and
returns; an id that is pushed goes with all launches of the thread until it is popped.

`CuptiClock` also times kernels of torch, of cuBLAS and of graphs. Native launches leave lines in the log, and records
come later without a reference to the line. Both are in launch order, so the lines of a kernel belong to the records of
its name one by one, as long as there are as many. Other records, and launches through Python, are identified by pushed
ids: one for each path of scopes, one for each launch through Python.

`EventClock` records an event in the stream before and after each launch. Native launches take pairs of events from a
block (`launch_log.give_events`), launches through Python single pairs; the times are read later.
Launches inside of a graph that is being captured have no time of their own: their events belong to the graph.
"""

import atexit
import ctypes
import itertools
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from ctypes import POINTER, byref, c_int, c_size_t, c_uint32, c_uint64, c_void_p
from dataclasses import replace
from functools import cache
from pathlib import Path as FilePath
from typing import Any, NamedTuple

from tilework import knobs
from tilework.inspect.profiler import stacks
from tilework.inspect.profiler.launches import Launches, Path
from tilework.runtime.launch.native import launch_log

KERNEL, DRIVER, RUNTIME, EXTERNAL = 10, 4, 5, 39  # kinds of records: kernels, calls, and the ids that go with calls
OURS = 3  # the owner of the ids: CUSTOM0
FORCED = 1
BUFFER, ALIGNED = 1 << 20, 8
NAMES = ("libcupti.so.13", "libcupti.so.12", "libcupti.so")
FOLDERS = ("lib64", "extras/CUPTI/lib64", "lib")  # below the toolkit's folder

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
        ("id", c_uint64),
        ("correlation", c_uint32),
        ("reserved", c_uint32),
    )


class Kernel(NamedTuple):
    """A kernel that ran: times are nanoseconds of CUPTI's clock; `id` was pushed at its launch, or is 0."""

    launch: int
    name: str
    start: int
    end: int
    device: int
    stream: int
    is_graph: bool
    id: int


class Cupti:
    """See the module docstring."""

    def __init__(self, library: Any) -> None:
        self.library = library
        self.taken: dict[int, Any] = {}  # buffers that CUPTI has
        self.full: list[tuple[Any, int]] = []  # those that came back, with how much of them is used
        self.callbacks = Request(self.request), Done(self.done)
        self.is_registered, self.is_on, self.has_ids = False, False, False

    @classmethod
    def found(cls) -> "Cupti | None":
        """Return the instance of this process."""
        if not FOUND:
            FOUND.append(next((cls(library) for library in libraries()), None))
        return FOUND[0]

    # buffers

    def request(self, buffer: Any, size: Any, most: Any) -> None:
        """Hand CUPTI a buffer."""
        memory = (c_uint64 * (BUFFER // ALIGNED))()
        self.taken[ctypes.addressof(memory)] = memory
        buffer[0], size[0], most[0] = ctypes.addressof(memory), BUFFER, 0

    def done(self, context: Any, stream: int, buffer: int, size: int, used: int) -> None:
        """Take a buffer back from CUPTI."""
        memory = self.taken.pop(buffer, None)
        if memory is not None and used:
            self.full.append((memory, used))

    # sessions

    def begin(self) -> bool:
        """Start writing records; return False if CUPTI refuses, for example because another profiler uses it."""
        if not self.is_registered:
            if self.library.cuptiActivityRegisterCallbacks(*self.callbacks):
                return False
            self.is_registered = True
            atexit.register(self.end)  # no buffer must come back when Python is gone
        self.is_on = not self.library.cuptiActivityEnable(KERNEL)
        return self.is_on

    def end(self) -> None:
        """Stop writing records."""
        if self.is_on:
            for kind in (KERNEL, *(WITH_IDS if self.has_ids else ())):
                self.library.cuptiActivityDisable(kind)
            self.library.cuptiActivityFlushAll(FORCED)
            self.is_on, self.has_ids = False, False
            self.full.clear()

    def now(self) -> int:
        """Return the time of CUPTI's clock."""
        moment = c_uint64()
        self.library.cuptiGetTimestamp(byref(moment))
        return moment.value

    def push(self, id: int) -> None:
        """Attach an id to the launches of this thread until `pop`. CUPTI writes it beside records of calls, so those
        are enabled."""
        if not self.has_ids:
            self.has_ids = True
            for kind in WITH_IDS:
                self.library.cuptiActivityEnable(kind)
        self.library.cuptiActivityPushExternalCorrelationId(OURS, c_uint64(id))

    def pop(self) -> None:
        self.library.cuptiActivityPopExternalCorrelationId(OURS, byref(c_uint64()))

    def kernels(self) -> list[Kernel]:
        """Return the kernels that ran since the last call, in launch order; one that has not ended has no end, and is
        not repeated."""
        self.library.cuptiActivityFlushAll(FORCED)
        return self.full_buffers()

    def full_buffers(self) -> list[Kernel]:
        """Return the kernels in the buffers that are full, as `kernels` does for all buffers."""
        full, self.full = self.full, []
        ids: dict[int, int] = {}
        found: list[tuple[KernelRecord, str]] = []
        for memory, used in full:
            for address in self.records(memory, used):
                kind = c_uint32.from_address(address).value
                if kind == EXTERNAL:
                    record = ExternalRecord.from_address(address)
                    ids[record.correlation] = record.id
                elif kind == KERNEL:
                    kernel = KernelRecord.from_buffer_copy(ctypes.string_at(address, ctypes.sizeof(KernelRecord)))
                    found.append((kernel, (kernel.name or b"").decode(errors="replace")))
        made = [
            Kernel(r.correlation, name, r.start, r.end, r.device, r.stream, bool(r.graph), ids.get(r.correlation, 0))
            for r, name in found
        ]
        return sorted(made)

    def records(self, memory: Any, used: int) -> Iterator[int]:
        """The addresses of the records in a buffer."""
        record, next_record = c_void_p(), self.library.cuptiActivityGetNextRecord
        start = ctypes.addressof(memory)
        while not next_record(start, used, byref(record)):
            assert record.value is not None
            yield record.value


WITH_IDS = (EXTERNAL, DRIVER, RUNTIME)
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
    """Yield the libraries that can be loaded and have all needed functions."""
    for path in paths():
        try:
            library = ctypes.CDLL(path)
            for name, types in SIGNATURES.items():
                getattr(library, name).argtypes = types
        except (OSError, AttributeError):
            continue
        yield library


def paths() -> Iterator[str]:
    """Candidate paths of the library."""
    if named := knobs.proton.cupti_lib_dir:
        yield from (str(FilePath(named) / name) for name in NAMES)
    yield from loaded()
    if toolkit := knobs.getenv("CUDA_HOME"):
        yield from (str(FilePath(toolkit) / folder / name) for folder in FOLDERS for name in NAMES)
    for folder in sys.path:
        yield from map(str, sorted(FilePath(folder).glob("nvidia/*/lib/libcupti.so.*"), reverse=True) if folder else ())
    yield from (str(FilePath("/usr/local/cuda") / folder / name) for folder in FOLDERS for name in NAMES)
    yield from NAMES


def loaded() -> list[str]:
    """The CUPTI libraries that this process has loaded."""
    try:
        lines = FilePath("/proc/self/maps").read_text().splitlines()
    except OSError:
        return []
    return sorted({line.split()[-1] for line in lines if "/libcupti.so" in line})


class Line(NamedTuple):
    """A launch of the log: when it was called, and which of some launches it is."""

    called: int
    order: int
    launches: Launches
    index: int


class CuptiClock:
    """Launches that wait for CUPTI's records; see the module docstring."""

    def __init__(self, gpus: Any, cupti: Cupti) -> None:
        gpus.ensure_context()
        self.library, self.cupti = gpus.library(), cupti
        self.offset = time.perf_counter_ns() - cupti.now()
        self.ids = itertools.count(1)
        self.paths: dict[Path, int] = {}
        self.single: dict[int, Launches] = {}  # through Python
        self.lines: defaultdict[str, list[Line]] = defaultdict(list)
        self.pushed: dict[int, bool] = {}  # whether a thread has a path
        self.kernels: list[Kernel] = []
        self.untimed = 0

    def start(self) -> bool:
        """Start writing records; return False if this fails."""
        if not self.cupti.begin():
            return False
        self.enter(stacks.current())
        return True

    def stop(self) -> None:
        if self.pushed:
            self.enter(())
        self.pushed.clear()
        self.cupti.end()

    def refill(self) -> None:
        """Collect the kernels of full buffers; later launches need no preparation."""
        self.kernels += self.cupti.full_buffers()

    def enter(self, path: Path) -> None:
        """Note the new path of this thread."""
        thread = stacks.LOCAL.stack
        if self.pushed.pop(id(thread), False):
            self.cupti.pop()
        if path:
            self.cupti.push(self.paths.setdefault(path, next(self.ids)))
            self.pushed[id(thread)] = True

    # launches

    def before(self, stream: int) -> int:
        """Called before a launch through Python in this thread."""
        id = next(self.ids)
        self.cupti.push(id)
        return id

    def behind(self, id: int, stream: int) -> None:
        """Called when the launch is enqueued in the stream."""
        self.cupti.pop()

    def wait_for(self, id: int, launches: Launches) -> None:
        """Associate the id with the launch."""
        self.single[id] = launches

    def wait(self, launches: Launches, addresses: list[int]) -> None:
        """Launches in machine code; their `starts` are when they were called."""
        known = self.lines[launches.name]
        known += [Line(called, len(known) + i, launches, i) for i, called in enumerate(launches.starts)]

    # records

    def settled(self, *, everything: bool) -> Iterator[Launches]:
        """Yield all launches with their times, after waiting for the device; without `everything`, yield none, because
        the times are not final before that."""
        if not everything:
            return
        self.library.code("synchronize")
        self.kernels += self.cupti.kernels()
        kernels, self.kernels = sorted(self.kernels), []
        self.untimed += sum(not kernel.end for kernel in kernels)
        by_name: defaultdict[str, list[Kernel]] = defaultdict(list)
        for kernel in kernels:
            if not kernel.end:
                continue
            if (launches := self.single.get(kernel.id)) is not None:
                yield self.timed(launches, [kernel])
            else:
                by_name[kernel.name].append(kernel)
        self.single.clear()
        for name, found in by_name.items():
            yield from self.of_name(name, found, self.lines.pop(name, []))
        self.lines.clear()

    def of_name(self, name: str, kernels: list[Kernel], lines: list[Line]) -> Iterator[Launches]:
        direct = [kernel for kernel in kernels if not kernel.is_graph]
        if len(direct) == len(lines):
            kernels = [kernel for kernel in kernels if kernel.is_graph]
            together: defaultdict[int, list[tuple[int, Kernel]]] = defaultdict(list)
            by_id = {id(line.launches): line.launches for line in lines}
            for line, kernel in zip(sorted(lines, key=lambda line: line[:2]), direct, strict=True):
                together[id(line.launches)].append((line.index, kernel))
            for key, pairs in together.items():
                yield self.timed(by_id[key], [kernel for _, kernel in sorted(pairs)])
        paths = {id: path for path, id in self.paths.items()}
        groups: defaultdict[tuple[Path, int, int], list[Kernel]] = defaultdict(list)
        for kernel in kernels:
            groups[paths.get(kernel.id, ()), kernel.device, kernel.stream].append(kernel)
        for (path, device, stream), found in groups.items():
            yield self.timed(Launches(path, plain_name(name), "CUDA", device, stream, (), ()), found)

    def timed(self, launches: Launches, kernels: list[Kernel]) -> Launches:
        return replace(
            launches,
            starts=[kernel.start + self.offset for kernel in kernels],
            durations=[kernel.end - kernel.start for kernel in kernels],
        )


@cache
def demangler() -> Any:
    """`__cxa_demangle`, if C++'s library is there."""
    try:
        found = ctypes.CDLL("libstdc++.so.6")["__cxa_demangle"]
    except (OSError, AttributeError):
        return None
    found.restype = ctypes.c_void_p
    return found


@cache
def plain_name(name: str) -> str:
    """A kernel of C++ as its source calls it: ``_Z3addPfS_`` is ``add(float*, float*)``."""
    if not name.startswith("_Z") or (call := demangler()) is None:
        return name
    status = ctypes.c_int()
    text = call(name.encode(), None, None, ctypes.byref(status))
    if not text:
        return name
    try:
        return (ctypes.c_char_p(text).value or name.encode()).decode(errors="replace")
    finally:
        free = ctypes.CDLL(None).free
        free.argtypes = (ctypes.c_void_p,)
        free(text)


WITH_TIMES = 0  # flags of an event
HANDLE = ctypes.sizeof(ctypes.c_void_p)
PYTHON_PAIRS = 64
MOST_BLOCKS = 3  # that are waited for


class EventBlock:
    """Handles of events, two for each launch."""

    def __init__(self, library: Any, pairs: int) -> None:
        self.library = library
        self.handles = (ctypes.c_void_p * (2 * pairs))()
        self.start = ctypes.addressof(self.handles)
        self.end = self.start + 2 * pairs * HANDLE
        for address in range(self.start, self.end, HANDLE):
            library.create_event(ctypes.byref(ctypes.c_void_p.from_address(address)), WITH_TIMES)

    def pairs(self) -> list[tuple[int, int]]:
        return list(zip(self.handles[::2], self.handles[1::2], strict=True))


class Waiting(NamedTuple):
    """Launches whose times are not known yet: their events, and the block these are from (None: single pairs)."""

    launches: Launches
    events: list[tuple[int, int]]
    block: EventBlock | None


class EventClock:
    """The events of the current device, and the launches that wait for them."""

    def __init__(self, gpus: Any) -> None:
        gpus.ensure_context()
        self.library = gpus.library()
        self.blocks: list[EventBlock] = []
        self.free_pairs: list[tuple[int, int]] = []
        self.given: EventBlock | None = None
        self.waiting: list[Waiting] = []
        self.untimed = 0
        self.base, _ = self.pair()
        self.library.record_event(self.base, gpus.current_stream())
        self.library.wait_for_event(self.base)
        self.base_moment = time.perf_counter_ns()

    # events

    def pair(self) -> tuple[int, int]:
        """Return two events for a launch through Python."""
        if not self.free_pairs:
            self.free_pairs = EventBlock(self.library, PYTHON_PAIRS).pairs()
        return self.free_pairs.pop()

    def refill(self) -> None:
        """Provide events for all launches until the log is read again."""
        if self.given is not None and launch_log.events_left() >= launch_log.MOST_LINES:
            return
        used = {id(item.block) for item in self.waiting}
        free = [block for block in self.blocks if id(block) not in used and block is not self.given]
        if not free:
            free = [EventBlock(self.library, 2 * launch_log.MOST_LINES)]
            self.blocks += free
        self.given = free[0]
        launch_log.give_events(self.library.address("record_event"), self.given.start, self.given.end)

    def start(self) -> bool:
        return True

    def stop(self) -> None:
        """Keep the events for the next session."""

    def enter(self, path: Path) -> None:
        """Launches record their path themselves."""

    def before(self, stream: int) -> tuple[int, int]:
        """Called before a launch through Python in this thread."""
        pair = self.pair()
        self.library.code("record_event", pair[0], stream)
        return pair

    def behind(self, pair: tuple[int, int], stream: int) -> None:
        """Called when the launch is enqueued in the stream."""
        self.library.code("record_event", pair[1], stream)

    def wait_for(self, pair: tuple[int, int], launches: Launches) -> None:
        """Associate the events with the launch."""
        self.waiting.append(Waiting(launches, [pair], None))

    # times

    def wait(self, launches: Launches, addresses: list[int]) -> None:
        """Native launches have used the events at these addresses."""
        holding = [block for block in self.blocks if block.start <= max(addresses, default=0) < block.end]
        self.waiting.append(
            Waiting(launches, [pair_at(address) for address in addresses], holding[0] if holding else None)
        )

    def settled(self, *, everything: bool) -> Iterator[Launches]:
        """Yield launches with their times: with `everything` all, after waiting for the device, else the oldest ones if
        too many wait."""
        while self.waiting and (everything or len({id(item.block) for item in self.waiting}) > MOST_BLOCKS):
            item = self.waiting.pop(0)
            times = [self.elapsed(*pair) if pair[0] else None for pair in item.events]
            known = [index for index, time in enumerate(times) if time is not None]
            self.untimed += len(times) - len(known)
            if item.block is None:
                self.free_pairs += item.events
            if known:
                launches = item.launches
                yield replace(
                    launches,
                    starts=[self.moment(item.events[index][0]) for index in known],
                    durations=[times[index] or 0 for index in known],
                    overheads=[launches.overheads[index] for index in known] if launches.overheads else (),
                )

    def elapsed(self, first: int, last: int) -> int | None:
        """Nanoseconds between two events, once they are reached; None if one was not recorded in a stream."""
        milliseconds = ctypes.c_float()
        failed = self.library.code("wait_for_event", last)
        failed = failed or self.library.code("elapsed_time", ctypes.byref(milliseconds), first, last)
        if failed:
            self.library.forget_error()
            return None
        return round(milliseconds.value * 1e6)

    def moment(self, handle: int) -> int:
        """The time of an event on the host's clock."""
        return self.base_moment + (self.elapsed(self.base, handle) or 0)


def pair_at(address: int) -> tuple[int, int]:
    """The handles of the two events at an address; zeros at address 0."""
    if not address:
        return 0, 0
    first, last = (ctypes.c_void_p.from_address(address + HANDLE * index).value or 0 for index in range(2))
    return first, last
