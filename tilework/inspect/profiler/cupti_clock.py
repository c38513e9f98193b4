"""How long kernels ran on an NVIDIA GPU, as CUPTI's records say: also those of torch, of cuBLAS and of graphs.

Launches in machine code leave lines in the log, and records come later, without a word about the line. Both are in the order of the launches,
so the lines of a kernel belong to the records of its name one by one, as long as there are as many. Other records, and launches through
Python, are told apart by numbers that go with what a thread launches: one for each path of scopes, one for each launch through Python.
"""

import ctypes
import itertools
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from tilework.inspect.profiler import stacks
from tilework.inspect.profiler.cupti import Cupti, Kernel
from tilework.inspect.profiler.launches import Launches
from tilework.inspect.profiler.stacks import Path


class Line(NamedTuple):
    """A launch of the log: when it was called, and which of some launches it is."""

    called: int
    order: int
    launches: Launches
    index: int


class CuptiClock:
    """What waits for records; see the module docstring."""

    def __init__(self, gpus: Any, cupti: Cupti) -> None:
        gpus.ensure_context()
        self.library, self.cupti = gpus.library(), cupti
        self.offset = time.perf_counter_ns() - cupti.now()
        self.numbers = itertools.count(1)
        self.paths: dict[Path, int] = {}
        self.single: dict[int, Launches] = {}  # through Python
        self.lines: defaultdict[str, list[Line]] = defaultdict(list)
        self.pushed: dict[int, bool] = {}  # whether a thread has a path
        self.kernels: list[Kernel] = []
        self.untimed = 0

    def start(self) -> bool:
        """Records are written from now on; False if they cannot."""
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
        """Nothing has to be there for the launches that follow."""
        self.kernels += self.cupti.full_buffers()

    def enter(self, path: Path) -> None:
        """This thread is somewhere else."""
        thread = stacks.LOCAL.stack
        if self.pushed.pop(id(thread), False):
            self.cupti.pop()
        if path:
            self.cupti.push(self.paths.setdefault(path, next(self.numbers)))
            self.pushed[id(thread)] = True

    # launches

    def before(self, stream: int) -> int:
        """A launch through Python comes next in this thread."""
        number = next(self.numbers)
        self.cupti.push(number)
        return number

    def behind(self, number: int, stream: int) -> None:
        """It is in the stream."""
        self.cupti.pop()

    def wait_for(self, number: int, launches: Launches) -> None:
        """What it was."""
        self.single[number] = launches

    def wait(self, launches: Launches, places: list[int]) -> None:
        """Launches in machine code; their `starts` are when they were called."""
        known = self.lines[launches.name]
        known += [Line(called, len(known) + i, launches, i) for i, called in enumerate(launches.starts)]

    # records

    def settled(self, *, everything: bool) -> Iterator[Launches]:
        """All launches with their times, after waiting for the device; before, nothing is known for sure."""
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
            if (launches := self.single.get(kernel.number)) is not None:
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
        paths = {number: path for path, number in self.paths.items()}
        places: defaultdict[tuple[Path, int, int], list[Kernel]] = defaultdict(list)
        for kernel in kernels:
            places[paths.get(kernel.number, ()), kernel.device, kernel.stream].append(kernel)
        for (path, device, stream), found in places.items():
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
