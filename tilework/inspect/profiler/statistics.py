"""What `tilework profile` collects: times of each kernel at each place of the program, its launches and compilations."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tilework.inspect.profiler import stacks
from tilework.inspect.profiler.flags import flags
from tilework.inspect.profiler.launches import Launches
from tilework.inspect.profiler.metric_names import Number
from tilework.inspect.profiler.recorder import RECORDER
from tilework.inspect.profiler.stacks import Path
from tilework.inspect.profiler.trace import TraceData
from tilework.inspect.profiler.tree import TreeData
from tilework.inspect.profiler.work import Work, work_of
from tilework.knobs.hooks import LISTENERS


@dataclass
class Compilation:
    """One kernel that was compiled, or found in the cache."""

    kernel: Any
    hit: bool
    seconds: float
    end: int  # when, on the host's clock

    @property
    def name(self) -> str:
        return self.kernel.name


@dataclass
class KernelTimes:
    """Launches of one kernel at one place. Times are nanoseconds; overheads are known of launches in machine code only."""

    path: Path
    name: str
    device_type: str
    count: int = 0
    total: int = 0
    shortest: int | None = None
    longest: int = 0
    overhead: int = 0
    overhead_count: int = 0
    works: dict[Work, list[int]] = field(default_factory=dict)  # launches and nanoseconds of each kind

    def add(self, launches: Launches) -> None:
        times = launches.durations
        total = sum(times)
        self.count += len(times)
        self.total += total
        self.shortest = min(times) if self.shortest is None else min(self.shortest, *times)
        self.longest = max(self.longest, *times)
        self.overhead += sum(launches.overheads)
        self.overhead_count += len(launches.overheads)
        if launches.work is not None:
            seen = self.works.setdefault(launches.work, [0, 0])
            seen[0] += len(times)
            seen[1] += total


class Statistics:
    """A session of `tilework profile`."""

    context = "shadow"

    def __init__(self, *, traces: bool = False) -> None:
        self.kernels: dict[tuple[Path, str, str], KernelTimes] = {}
        self.compilations: list[Compilation] = []
        self.tree = TreeData()
        self.trace = TraceData() if traces else None
        self.started = self.ended = 0

    def add(self, launches: Launches) -> None:
        key = (launches.path, launches.name, launches.device_type)
        found = self.kernels.get(key)
        if found is None:
            found = self.kernels[key] = KernelTimes(*key)
        found.add(launches)
        self.tree.add(launches)
        if self.trace is not None:
            self.trace.add(launches)

    def add_metrics(self, path: Path, metrics: dict[str, Number]) -> None:
        self.tree.add_metrics(path, metrics)

    def touch(self, path: Path) -> None:
        self.tree.touch(path)

    def listen(self, what: str, facts: dict[str, Any]) -> None:
        """Events of the runtime: compilations, and configurations that an autotuner measures."""
        if what == "compiled":
            self.compilations.append(
                Compilation(facts["kernel"], facts["hit"], facts["seconds"], time.perf_counter_ns())
            )
        elif what == "measuring":
            stacks.set_state(f"autotuning {facts['tuner'].__name__}" if facts["begins"] else None)

    def compilations_of(self, launcher: Any) -> list[Any]:
        """The kernel that a launcher launches, if it was compiled here."""
        return [one.kernel for one in self.compilations if one.kernel._loaded.launch is launcher]

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Collect inside of the block."""
        self.started = time.perf_counter_ns()
        LISTENERS.append(self.listen)
        RECORDER.work_of, RECORDER.tools, flags.profiling_on = work_of, [self], True
        RECORDER.set_sinks([])
        try:
            yield
        finally:
            self.ended = time.perf_counter_ns()
            RECORDER.work_of, RECORDER.tools, flags.profiling_on = None, [], False
            RECORDER.set_sinks([])
            LISTENERS.remove(self.listen)

    @property
    def seconds(self) -> float:
        return (self.ended - self.started) / 1e9
