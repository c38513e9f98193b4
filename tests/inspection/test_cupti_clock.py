"""Records of CUPTI and what they belong to; the library is one of Python here, a GPU is needed for the real one."""

import ctypes
from ctypes import addressof, memmove, sizeof
from types import SimpleNamespace
from typing import Any

from tilework.inspect.profiler import stacks
from tilework.inspect.profiler.clocks import EXTERNAL, KERNEL, Cupti, CuptiClock, ExternalRecord, KernelRecord
from tilework.inspect.profiler.launches import Launches

LATER = 500  # the host's clock is ahead of CUPTI's


class FakeLibrary:
    """Kernels of a microsecond, one after the other, each of which is a call with the number that its thread has
    pushed."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.records: list[ctypes.Structure] = []
        self.kinds: set[int] = set()
        self.calls, self.keep = 0, []

    def run(self, name: bytes, *, graph: int = 0, took: int = 1000) -> None:
        self.calls += 1
        if self.numbers and {EXTERNAL, 4, 5} <= self.kinds:
            self.records.append(ExternalRecord(EXTERNAL, 3, self.numbers[-1], self.calls))
        start = 10_000 * self.calls
        record = KernelRecord(
            kind=KERNEL, start=start, end=start + took, correlation=self.calls, name=name, graph=graph
        )
        self.records.insert(0, record)  # they come in any order

    def cuptiActivityRegisterCallbacks(self, request: Any, done: Any) -> int:
        self.request, self.done = request, done
        return 0

    def cuptiActivityEnable(self, kind: int) -> int:
        self.kinds.add(kind)
        return 0

    def cuptiActivityDisable(self, kind: int) -> int:
        self.kinds.remove(kind)
        return 0

    def cuptiGetTimestamp(self, index: Any) -> int:
        index._obj.value = 0
        return 0

    def cuptiActivityPushExternalCorrelationId(self, kind: int, number: Any) -> int:
        self.numbers.append(number.value)
        return 0

    def cuptiActivityPopExternalCorrelationId(self, kind: int, index: Any) -> int:
        self.numbers.pop()
        return 0

    def cuptiActivityFlushAll(self, flag: int) -> int:
        index, size, most = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
        self.request(ctypes.pointer(index), ctypes.pointer(size), ctypes.pointer(most))
        at = index.value or 0
        self.offsets = []
        for record in self.records:
            memmove(at, addressof(record), sizeof(record))
            self.offsets.append(at)
            self.keep.append(record)
            at += sizeof(record)
        self.records = []
        self.done(None, 0, index.value, size.value, at - (index.value or 0))
        return 0

    def cuptiActivityGetNextRecord(self, start: int, used: int, index: Any) -> int:
        if not self.offsets:
            return 12
        index._obj.value = self.offsets.pop(0)
        return 0


def test_records_find_their_launches() -> None:
    """Lines of the log by name and order, launches through Python and kernels of others by number, graphs by their
    path."""
    library = FakeLibrary()
    driver = SimpleNamespace(code=lambda name, *args: 0)
    clock = CuptiClock(SimpleNamespace(ensure_context=lambda: None, library=lambda: driver), Cupti(library))
    clock.offset = LATER
    assert clock.start() and library.kinds == {KERNEL}, "calls are not recorded while no correlation is needed"
    library.run(b"mine", took=1)
    library.run(b"other", took=5)
    library.run(b"mine", took=2)
    stacks.AFTER_CHANGE.append(clock.enter)
    try:
        stacks.enter("scope")
        library.run(b"_Z3addPfS_", took=7)
        library.run(b"mine", graph=1, took=100)
        around = clock.before(0)
        library.run(b"mine", took=9)
        clock.behind(around, 0)
        stacks.leave("scope")
    finally:
        stacks.AFTER_CHANGE.remove(clock.enter)
    library.run(b"mine", took=3)
    one, two = (Launches((), "mine", "CUDA", 0, 0, called, [0] * len(called)) for called in ([10, 40], [30]))
    clock.wait(two, [0])
    clock.wait(one, [0, 0])
    clock.wait_for(around, Launches(("scope",), "renamed", "CUDA", 0, 0, [0], [0], metrics={"flops": 2}))
    found = {
        (item.path, item.name, tuple(item.starts)): list(item.durations) for item in clock.settled(everything=True)
    }
    assert found == {
        ((), "mine", (10_000 + LATER, 70_000 + LATER)): [1, 3],
        ((), "mine", (30_000 + LATER,)): [2],
        ((), "other", (20_000 + LATER,)): [5],
        (("scope",), "add(float*, float*)", (40_000 + LATER,)): [7],
        (("scope",), "mine", (50_000 + LATER,)): [100],
        (("scope",), "renamed", (60_000 + LATER,)): [9],
    }
    clock.stop()
    assert not library.kinds and not library.numbers
