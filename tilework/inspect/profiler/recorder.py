"""The recorder of launches, which listens while a session is active, and passes launches to the sessions.

Launches in machine code come as lines of a log, some hundred at a time (`runtime/launch/native/launch_log.py`); those
through Python one by one. On the host a launch takes as long as its programs run, on a GPU as long as CUPTI says,
or, where that cannot be used, the time between two events (`clocks.py`).
"""

import ctypes
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from tilework.inspect.profiler import stacks
from tilework.inspect.profiler.clocks import Cupti, CuptiClock, EventClock
from tilework.inspect.profiler.launches import Launches, Path, Unread, Value
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.devices.launcher import Extent, Launcher, Scratch
from tilework.runtime.launch.native import launch_log
from tilework.runtime.launch.native.layout import ALL_FIT, LINE_FIELDS, NONE_FIT, SAME_INTEGERS_FIT
from tilework.targets.cpu.run.pool import ARENAS

OURS = __name__.partition(".")[0]
FIELDS = {name: index for index, name in enumerate(LINE_FIELDS)}


class Sink(Protocol):
    """A session, as the recorder sees it."""

    context: str

    def add(self, launches: Launches) -> None: ...
    def add_metrics(self, path: Path, metrics: dict[str, Value]) -> None: ...
    def touch(self, path: Path) -> None: ...


class Operation(NamedTuple):
    """The name and metrics of the next launch of this thread, from the launch hook."""

    name: str
    metrics: dict[str, Value | Unread]


WorkOf = Callable[[Launcher, Extent, Any], Any]


class Recorder:
    """See the module docstring. There is one, and it listens while a session is active."""

    def __init__(self) -> None:
        self.tools: Sequence[Sink] = []  # that listen beside all sessions, like `tilework profile`
        self.sinks: Sequence[Sink] = []
        self.clock: EventClock | CuptiClock | None = None
        self.thread = threading.local()  # its `operation`, of the launch that follows
        self.lock = threading.RLock()
        self.work_of: WorkOf | None = None
        self.unread: deque[Launches] = deque()  # with metrics on a device
        self.streams: dict[int, int] = {}  # on the host each thread is one

    # sessions

    def set_sinks(self, sinks: Sequence[Sink]) -> None:
        """Give launches to these sessions from now on; what was launched until now belongs to the ones before."""
        self.settle()
        sinks = [*self.tools, *sinks]
        before, self.sinks = self.sinks, sinks
        if before:
            launch_log.end()
            stacks.BEFORE_CHANGE.remove(launch_log.flush)
            stacks.AFTER_CHANGE.remove(self.enter)
            if self.clock is not None and not sinks:
                self.clock.stop()
        if sinks:
            is_python = any(sink.context == "python" for sink in sinks)
            fits = NONE_FIT if is_python else SAME_INTEGERS_FIT if self.work_of is not None else ALL_FIT
            launch_log.begin(self, fits=fits)
            stacks.BEFORE_CHANGE.append(launch_log.flush)
            stacks.AFTER_CHANGE.append(self.enter)
            if (gpus := getattr(driver.active, "gpus", None)) is not None:
                if self.clock is not None and not before and not self.clock.start():
                    self.clock = None
                self.clock_of(gpus)

    def enter(self, path: Path) -> None:
        """Note the new path of this thread."""
        if self.clock is not None:
            self.clock.enter(path)

    def add_metrics(self, path: Path, metrics: dict[str, Value]) -> None:
        """Add metrics to a scope."""
        for sink in self.sinks:
            sink.add_metrics(path, metrics)

    def touch(self, path: Path) -> None:
        """Record that a scope was entered."""
        for sink in self.sinks:
            sink.touch(path)

    def settle(self) -> None:
        """Wait for all launches, and add them to the sessions."""
        launch_log.flush()
        self.give_settled(everything=True)

    def give_settled(self, *, everything: bool) -> None:
        """Launches on a GPU whose times are known."""
        with self.lock:
            for launches in self.clock.settled(everything=everything) if self.clock is not None else ():
                self.give(launches)
            while everything and self.unread:
                self.give(self.unread.popleft().read())
            if everything and self.clock is not None and self.clock.untimed:
                print(
                    f"tilework.profiler: {self.clock.untimed} launches have no times and are left out: they were"
                    " captured in a graph, or went to another GPU than the current one",
                    file=sys.stderr,
                )
                self.clock.untimed = 0

    def give(self, launches: Launches) -> None:
        """Pass launches to the sessions, or keep them until their metrics are read."""
        if not launches.is_read:
            self.unread.append(launches)
            return
        for sink in self.sinks:
            sink.add(launches)

    # launches through Python

    def watch(
        self, launcher: Launcher, grid: Extent, stream: int, function: Any, args: Any, scratch: Scratch, metadata: Any
    ) -> Any:
        """Start a launch, and see how long it takes."""
        work = self.work_of(launcher, grid, args) if self.work_of is not None else None
        operation: Operation | None = getattr(self.thread, "operation", None)
        self.thread.operation = None
        kind = device_type(launcher)
        clock = self.clock_of(getattr(launcher, "gpus", None)) if kind != "CPU" else None
        if clock is None:
            ARENAS.last_run = None
            start = time.perf_counter_ns()
            launcher.start(grid, stream, function, args, scratch)
            start, took = ARENAS.last_run or (start, time.perf_counter_ns() - start)
            stream = self.stream_of(threading.get_ident())
        else:
            start, took = 0, 0
            around: Any = clock.before(stream)
            launcher.start(grid, stream, function, args, scratch)
            clock.behind(around, stream)
        name, metrics = operation or (launcher.name, {})
        python = python_path() if any(sink.context == "python" for sink in self.sinks) else ()
        device = driver.active.get_current_device()
        found = Launches(
            stacks.current(), name, kind, device, stream, [start], [took], work=work, metrics=metrics, python=python
        )
        if clock is None:
            self.give(found)
        else:
            with self.lock:
                clock.wait_for(around, found)  # pyright: ignore[reportPossiblyUnboundVariable]
        return work

    # launches in machine code

    def lines(self, data: bytes) -> None:
        """Launches of the log: those of one entry and thread go together."""
        import numpy as np  # lazily: sessions in which nothing is launched need none

        rows = np.frombuffer(data, np.int64).reshape(-1, len(FIELDS))
        identities, threads = rows[:, FIELDS["identity"]], rows[:, FIELDS["thread"]]
        several = (threads != threads[0]).any()
        for thread in np.unique(threads) if several else threads[:1]:
            is_here = threads == thread
            for identity in np.unique(identities[is_here]):
                self.entry(int(identity), int(thread), rows[is_here & (identities == identity)])
        if self.clock is not None:
            self.clock.refill()
            self.give_settled(everything=False)

    def entry(self, identity: int, thread: int, rows: Any) -> None:
        """Launches of one entry by one thread."""
        logged = launch_log.LOGGED.get(identity)
        launcher = None if logged is None else launcher_of(logged.result)
        name = "a kernel that is gone" if launcher is None else launcher.name
        kind = device_type(launcher)
        column = {field: rows[:, index] for field, index in FIELDS.items()}
        starts, took = column["start" if kind == "CPU" else "called"].tolist(), column["took"].tolist()
        calls = column["returned"] - column["called"]
        overheads = calls.tolist() if kind != "CPU" else (calls - column["took"]).tolist()
        if kind == "CPU" and 0 in starts:  # Python ran the grid, as for the first launches on several threads
            starts = [start or called for start, called in zip(starts, column["called"].tolist(), strict=True)]
            took = [time if time >= 0 else call for time, call in zip(took, calls.tolist(), strict=True)]
            overheads = [max(overhead, 0) for overhead in overheads]
        work = logged.work if logged is not None else None
        stream = self.stream_of(thread) if kind == "CPU" else 0
        device = driver.active.get_current_device() if kind != "CPU" else 0
        found = Launches(stacks.path_of(thread), name, kind, device, stream, starts, took, overheads, work)
        if kind == "CPU":
            self.give(found)
        elif self.clock is not None:
            with self.lock:
                self.clock.wait(found, column["events"].tolist())

    def stream_of(self, thread: int) -> int:
        """0 for the first thread that launches on the host, and so on."""
        return self.streams.setdefault(thread, len(self.streams))

    def clock_of(self, gpus: Any) -> EventClock | CuptiClock:
        """The clock of a GPU: CUPTI's for NVIDIA's own driver, else one that has events for launches in machine
        code."""
        with self.lock:
            if self.clock is None or self.clock.library is not gpus.library():
                self.clock = started_clock(gpus)
            self.clock.refill()
            return self.clock


def started_clock(gpus: Any) -> EventClock | CuptiClock:
    library = gpus.library()
    if library.vendor == "CUDA" and isinstance(library.loaded, ctypes.CDLL) and (cupti := Cupti.found()) is not None:
        clock = CuptiClock(gpus, cupti)
        if clock.start():
            return clock
    return EventClock(gpus)


def launcher_of(result: Any) -> Any:
    """The launcher of an entry: it launches a compiled kernel, or is one."""
    return result if isinstance(result, Launcher) else result._loaded.launch


def device_type(launcher: Any) -> str:
    """Return the type of a launcher's device, as files of profiles name it."""
    gpus = getattr(launcher, "gpus", None)
    return "CPU" if gpus is None else gpus.library().vendor


def python_path() -> Path:
    """The Python call stack, outermost first: ``file:line@function``; our own frames and those of the interpreter's
    start are left out."""
    frames, frame = [], sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] != OURS:
            code = frame.f_code
            frames.append(f"{code.co_filename}:{frame.f_lineno}@{code.co_name}")
        frame = frame.f_back
    return tuple(reversed(frames))


RECORDER = Recorder()
