"""Races between programs: memory that remembers who has read and written it.

    memory = RaceMemory(programs=4, granule=4)          # in place of `Memory`
    memory.begin(0), memory.begin(1), ...               # programs run one after another; on a device they run at once

Two accesses to the same place race if they come from different programs, at least one writes, not both are atomic, and nothing
orders them. Each *cell* of memory (`granule` bytes) has its last writer, two readers of different programs, and its last atomic
update; more readers need not be known, as a writer races with one of two if it races with any.

What orders programs is followed exactly, as far as it happened in this run. The time of a program is cut into *segments*, by
its atomics: segment numbers grow, and never repeat. An atomic on an address takes over what was known there (`known[q]`: up to
which segment everything of program q is visible), and leaves what this program knows:

    program 0    store x         segment 1                   program 1    atomic on flag       known[0] = 1
                 atomic on flag  leaves {0: 1} there                      load x               segment 1 is known: no race

So locks and counters order what they guard, whatever their `sem`. A volatile load counts as an atomic one that takes over what
the last writer of its cell did; a scalar store to a cell that the same program has updated atomically (the release of a
lock) as an atomic update. Atomics of many lanes at once (histograms) order nothing.

Of two writes the second is `harmless` if it does not change what is in memory: programs that all write the same agree whatever
their order is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import Operation

from tilework.ir import tt
from tilework.ir.types import PointerType, element_type
from tilework.numerics.rounding import Array
from tilework.oracles.evaluator.evaluation_errors import Fault
from tilework.oracles.evaluator.floats import memory_bytes
from tilework.oracles.evaluator.global_memory import Extent, Memory

MOST_LOOKS = 2000  # of a program that waits
SYNCHRONISING = 32  # lanes of an atomic that orders programs
ATOMIC = (tt.AtomicRMWOp, tt.AtomicCASOp, tt.DescriptorReduceOp)
ACCESSES = (
    *ATOMIC,
    tt.LoadOp,
    tt.StoreOp,
    tt.DescriptorLoadOp,
    tt.DescriptorStoreOp,
    tt.DescriptorGatherOp,
    tt.DescriptorScatterOp,
)
READS, WRITES, UPDATES = "reads", "writes", "updates"


@dataclass(frozen=True)
class Race:
    """Two accesses that nothing orders; the second one is that of the running program."""

    first: Operation
    second: Operation
    verbs: tuple[str, str]
    programs: tuple[int, int]
    name: str
    element: int
    is_harmless: bool


class RaceFound(Exception):
    """A race that is not harmless."""

    def __init__(self, race: Race) -> None:
        super().__init__(f"program {race.programs[1]} {race.verbs[1]} what program {race.programs[0]} {race.verbs[0]}")
        self.race = race


class Cells:
    """What happened to the memory from `start` to `end`: by kind of access the segment (0: none) and the number of the op."""

    def __init__(self, start: int, end: int, granule: int) -> None:
        self.start, self.end = start, end
        count = -(-(end - start) // granule)
        self.writer, self.reader, self.other, self.updater = (np.zeros((2, count), np.int32) for _ in range(4))

    def take(self, old: "Cells", granule: int) -> None:
        """Remember what was known about a part."""
        place = slice((old.start - self.start) // granule, (old.start - self.start) // granule + old.writer.shape[1])
        for name in ("writer", "reader", "other", "updater"):
            getattr(self, name)[:, place] = getattr(old, name)


def granule_of(root: Operation) -> int:
    """The size of the smallest element that a module accesses."""
    found = [element_type(op.operands[0].type) for op in root.walk() if type(op) in ACCESSES]
    return min((memory_bytes(type.pointee) for type in found if isinstance(type, PointerType)), default=1)


class RaceMemory(Memory):
    """See the module docstring."""

    def __init__(self, programs: int, granule: int, foreign: bool = False) -> None:
        super().__init__(foreign)
        self.granule = granule
        self.cells: list[Cells] = []
        self.of_extent: dict[int, Cells] = {}
        self.program, self.segment = 0, 0
        self.idle, self.looked_at = 0, 0
        self.owners = np.full(1024, -1, np.int32)  # the program of each segment
        self.known = np.zeros(programs, np.int32)
        self.left: dict[int, Array] = {}  # by address, what programs have left there
        self.ops: list[Operation] = []
        self.numbers: dict[Operation, int] = {}
        self.op: Operation | None = None
        self.harmless: dict[tuple[Operation, Operation], Race] = {}

    def begin(self, program: int) -> None:
        """Another program starts, and knows nothing of the others."""
        self.program = program
        self.known[:] = 0
        self.idle = self.looked_at = 0
        self.new_segment()

    def new_segment(self) -> None:
        self.segment += 1
        if self.segment == self.owners.size:
            self.owners = np.concatenate([self.owners, np.full(self.owners.size, -1, np.int32)])
        self.owners[self.segment] = self.program

    def watched(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """The rule of an op that accesses memory."""

        def run(machine: Any, op: Operation, *operands: Any) -> Any:
            self.op = op
            try:
                return rule(machine, op, *operands)
            finally:
                self.op = None

        return run

    def gather(self, pointer: Array, size: int) -> Array:
        words = super().gather(pointer, size)
        if self.op is not None and type(self.op) not in ATOMIC:
            volatile: Any = self.op.properties.get("isVolatile")
            look = self.read
            if volatile is not None and volatile.value.data:
                look = self.acquire
                self.wait(pointer)
            for extent, cells, index, _ in self.cells_of(pointer, size, READS):
                look(extent, cells, index)
        return words

    def scatter(self, pointer: Array, words: Array, size: int) -> None:
        if self.op is None:
            return super().scatter(pointer, words, size)
        places = self.cells_of(pointer, size, WRITES)
        if type(self.op) in ATOMIC:
            if pointer.size == 1 and bool((super().gather(pointer, size) == words).all()):
                self.wait(pointer)
            for extent, cells, index, _ in places:
                self.update(extent, cells, index)
            return super().scatter(pointer, words, size)
        before = super().gather(pointer, size)
        changed = before != words
        for extent, cells, index, lanes in places:
            if pointer.size == 1 and bool((self.owners[cells.updater[0, index]] == self.program).all()):
                self.update(extent, cells, index)
            else:
                self.write(extent, cells, index, np.repeat(changed[lanes], max(1, size // self.granule)))
        super().scatter(pointer, words, size)

    def wait(self, pointer: Array) -> None:
        """The same look at the same place: while programs run one after another, nobody else changes what is there."""
        place = int(pointer.reshape(-1)[0]) if pointer.size == 1 else 0
        self.idle = self.idle + 1 if place == self.looked_at else 0
        self.looked_at = place
        if place and self.idle > MOST_LOOKS:
            raise Fault(f"waits for another program: it has looked {MOST_LOOKS} times at what does not change")

    def cells_of(self, pointer: Array, size: int, verb: str) -> list[tuple[Extent, Cells, Array, Any]]:
        """The cells of an access, those of one lane next to each other; scratch memory of a program is its own."""
        found = []
        for extent, lanes, offset in self.places(pointer, size, verb):
            if extent.name == "scratch memory":
                continue
            cells = self.of_extent.get(id(extent)) or self.add_cells(extent)
            index = (offset + (extent.start - cells.start)) // self.granule
            if size > self.granule:
                index = (index[:, None] + np.arange(size // self.granule)).reshape(-1)
            found.append((extent, cells, index, lanes))
        return found

    def add_cells(self, extent: Extent) -> Cells:
        """Arrays that overlap share their cells."""
        same = [cells for cells in self.cells if cells.start < extent.end and extent.start < cells.end]
        start = min([extent.start, *(cells.start for cells in same)])
        made = Cells(start, max([extent.end, *(cells.end for cells in same)]), self.granule)
        for old in same:
            made.take(old, self.granule)
            self.cells.remove(old)
        self.cells.append(made)
        for other in self.extents:
            if made.start <= other.start and other.end <= made.end and other.end > other.start:
                self.of_extent[id(other)] = made
        return made

    # accesses

    def read(self, extent: Extent, cells: Cells, index: Array) -> None:
        self.refuse(extent, cells, index, cells.writer, (WRITES, READS))
        self.refuse(extent, cells, index, cells.updater, (UPDATES, READS))
        owner = self.owners[cells.reader[0, index]]
        first = (owner == self.program) | (cells.reader[0, index] == 0)
        self.leave(cells.reader, index[first])
        self.leave(cells.other, index[~first])

    def write(self, extent: Extent, cells: Cells, index: Array, changed: Array) -> None:
        self.refuse(extent, cells, index, cells.writer, (WRITES, WRITES), ~changed)
        self.refuse(extent, cells, index, cells.reader, (READS, WRITES))
        self.refuse(extent, cells, index, cells.other, (READS, WRITES))
        self.refuse(extent, cells, index, cells.updater, (UPDATES, WRITES))
        self.leave(cells.writer, index)

    def update(self, extent: Extent, cells: Cells, index: Array) -> None:
        orders = index.size <= SYNCHRONISING
        if orders:
            self.take_over(cells, index)
        for accesses, verb in ((cells.writer, WRITES), (cells.reader, READS), (cells.other, READS)):
            self.refuse(extent, cells, index, accesses, (verb, UPDATES))
        self.leave(cells.updater, index)
        if orders:
            mine = self.known.copy()
            mine[self.program] = self.segment
            for place in index.tolist():
                address = cells.start + place * self.granule
                self.left[address] = np.maximum(self.left[address], mine) if address in self.left else mine
            self.new_segment()

    def acquire(self, extent: Extent, cells: Cells, index: Array) -> None:
        """A volatile load."""
        self.take_over(cells, index)
        segments = cells.writer[0, index]
        segments = segments[segments > 0]
        np.maximum.at(self.known, self.owners[segments], segments)

    def take_over(self, cells: Cells, index: Array) -> None:
        """What other programs have left at these places is known from now on."""
        for place in index.tolist():
            if (left := self.left.get(cells.start + place * self.granule)) is not None:
                np.maximum(self.known, left, out=self.known)

    def leave(self, accesses: Array, index: Array) -> None:
        accesses[0, index] = self.segment
        accesses[1, index] = self.number()

    def number(self) -> int:
        """That of the op which is running."""
        assert self.op is not None
        if self.op not in self.numbers:
            self.numbers[self.op] = len(self.ops)
            self.ops.append(self.op)
        return self.numbers[self.op]

    def refuse(
        self,
        extent: Extent,
        cells: Cells,
        index: Array,
        accesses: Array,
        verbs: tuple[str, str],
        harmless: Array | None = None,
    ) -> None:
        """A race where one of `accesses` is of another program, and not known to have happened before."""
        segments = accesses[0, index]
        owners = self.owners[segments]
        bad = (segments > self.known[owners]) & (owners != self.program) & (segments > 0)
        if not bad.any():
            return
        if harmless is not None and (wrong := bad & ~harmless).any():
            bad, harmless = wrong, None
        lane = int(np.flatnonzero(bad)[0])
        place = cells.start + int(index[lane]) * self.granule
        assert self.op is not None
        race = Race(
            self.ops[accesses[1, index[lane]]],
            self.op,
            verbs,
            (int(owners[lane]), self.program),
            extent.name,
            (place - extent.array.__array_interface__["data"][0]) // extent.array.itemsize,
            harmless is not None,
        )
        if not race.is_harmless:
            raise RaceFound(race)
        self.harmless.setdefault((race.first, race.second), race)
