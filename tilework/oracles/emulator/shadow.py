"""Shadow memory: for every byte, who wrote it last and who has read it since.

    byte 12 of shared memory    written by agent 0 in step 1, read by agent 37 in step 1
    now thread 0 writes byte 12, and does not know of step 1 of agent 37: a race

As long as all accesses are of whole words, a word is kept instead of its four bytes, which are then the same: `Shadow.unit`.

Readers are kept per warp (modulo `slots`), two of each, so that of many threads that read a byte one is found that is not
the writer. A write that was ordered after all readers replaces them; one that was not has been reported.
"""

from dataclasses import dataclass

import numpy as np

from tilework.oracles.emulator.arenas import Array
from tilework.oracles.emulator.clocks import Clocks

# STRONG: atomic, volatile, relaxed and so on; COMBINED: by copies that add or the like
PLAIN, STRONG, ASYNC, COMBINED = range(4)
NEVER_RACE = (STRONG, COMBINED)  # two of the same
WARP = 32
PAGE = 4096  # units
LARGEST = 4  # bytes of a unit, at first


@dataclass(frozen=True)
class Accesses:
    """One access per unit of memory: its number, who does it (and in which step), and the thread on whose behalf, which knows what it
    knows."""

    at: Array
    agents: Array
    steps: Array
    threads: Array
    ins: int  # number of the instruction
    kind: int  # PLAIN, STRONG, ASYNC or COMBINED
    unit: int = 1  # bytes

    def __len__(self) -> int:
        return len(self.at)

    def address(self, index: int) -> int:
        return int(self.at[index]) * self.unit


@dataclass(frozen=True)
class Conflict:
    """The `index`-th of the accesses races with one by `agent` of `block`, which was instruction `ins`."""

    index: int
    agent: int
    block: int
    ins: int
    was_write: bool


class Shadow:
    """The shadow of `size` units. An agent is stored as its number + 1; 0 is nobody, and then the other fields mean nothing. Fields are
    indexed [cell, unit]: cell 0 is the last write, 1 + 2s and 2 + 2s are readers of slot s."""

    def __init__(self, size: int, slots: int, unit: int = LARGEST) -> None:
        self.size, self.slots, self.unit = size, slots, unit
        shape = (1 + 2 * slots, size)
        self.agent = np.zeros(shape, np.int32)
        self.step, self.block, self.ins = (np.empty(shape, np.int32) for _ in range(3))
        self.kind = np.empty(shape, np.uint8)
        self.is_used = False

    def clear(self) -> None:
        if self.is_used:
            self.agent[:] = 0
            self.is_used = False

    def unit_of(self, addresses: Array, size: int) -> int:
        """The unit, from now on, that accesses of `size` bytes at these addresses are whole numbers of."""
        together = int(np.bitwise_or.reduce(addresses)) | size if len(addresses) else 0
        if together & (self.unit - 1):
            self.refine(together & -together)
        return self.unit

    def refine(self, unit: int) -> None:
        """What is known of a unit is known of its parts."""
        parts = self.unit // unit
        for name in ("agent", "step", "block", "ins", "kind"):
            setattr(self, name, np.repeat(getattr(self, name), parts, axis=1))
        self.size, self.unit = self.size * parts, unit

    def grow(self, size: int) -> None:
        """Make room for `size` units or more."""
        if size <= self.size:
            return
        new = Shadow(max(size, 2 * self.size), self.slots)
        for name in ("agent", "step", "block", "ins", "kind"):
            getattr(new, name)[:, : self.size] = getattr(self, name)
            setattr(self, name, getattr(new, name))
        self.size = new.size

    def locate(self, at: Array) -> Array:
        """Where the shadows of these units are."""
        return at

    def unwritten(self, accesses: Accesses) -> Array:
        """Which of the units nobody has written."""
        return self.agent[0, accesses.at] == 0

    def conflicts(self, cell: int, accesses: Accesses, clocks: Clocks) -> Array:
        """Which accesses are not ordered after what is in this cell."""
        at = accesses.at
        there = self.agent[cell, at]
        suspects = there > 0
        if accesses.kind in NEVER_RACE:
            suspects &= self.kind[cell, at] != accesses.kind
        if not np.count_nonzero(suspects):
            return suspects
        some = np.flatnonzero(suspects)
        places = at[some]
        before = clocks.ordered(
            accesses.threads[some], self.block[cell, places], there[some] - 1, self.step[cell, places]
        )
        suspects[some] = ~before
        return suspects

    def conflict(self, index: int, cell: int, accesses: Accesses) -> Conflict:
        at = accesses.at[index]
        return Conflict(
            index, int(self.agent[cell, at]) - 1, int(self.block[cell, at]), int(self.ins[cell, at]), cell == 0
        )

    def read(self, accesses: Accesses, clocks: Clocks) -> Conflict | None:
        """Note reads; the first one that races."""
        racing = self.conflicts(0, accesses, clocks)
        if np.count_nonzero(racing):
            racing &= ~self.is_replica(0, accesses, accesses.ins, clocks.block)
        found = self.conflict(int(racing.argmax()), 0, accesses) if np.count_nonzero(racing) else None
        self.note_warps(accesses, clocks.block)
        slots = accesses.threads // WARP % self.slots
        first, last = 1 + 2 * slots, 2 + 2 * slots
        at = accesses.at
        old = self.agent[first, at]
        keep = (old > 0) & (old != accesses.agents + 1) & (self.block[first, at] == clocks.block)
        if np.count_nonzero(keep):
            some = np.flatnonzero(keep)
            cells, places = first[some], at[some]
            keep[some] = ~clocks.ordered(
                accesses.threads[some], self.block[cells, places], old[some] - 1, self.step[cells, places]
            )
        replace = np.flatnonzero(~keep)[::-1]  # backwards, so that the first of several readers of a byte stays
        self.put(first[replace], accesses, replace, clocks.block)
        self.put(last, accesses, slice(None), clocks.block)
        return found

    def write(self, accesses: Accesses, clocks: Clocks, harmless: Array | None = None) -> Conflict | None:
        """Note writes; the first one that races. `harmless` are writes of what is there already."""
        found = None
        racing = self.conflicts(0, accesses, clocks)
        if harmless is not None:
            racing &= ~(harmless & (self.kind[0, accesses.at] < ASYNC))
        if np.count_nonzero(racing):
            found = self.conflict(int(racing.argmax()), 0, accesses)
        self.note_own_read(accesses, clocks.block)
        read = () if found is not None else 1 + np.flatnonzero(self.agent[1:, accesses.at].any(axis=1))
        for cell in map(int, read):
            if found is None and np.count_nonzero(racing := self.conflicts(cell, accesses, clocks)):
                racing &= ~self.is_replica(cell, accesses, self.ins[cell, accesses.at], clocks.block)
                found = self.conflict(int(racing.argmax()), cell, accesses) if np.count_nonzero(racing) else None
        self.agent[1:, accesses.at] = 0
        self.put(0, accesses, slice(None), clocks.block)
        return found

    # loads that several warps make for one of them

    def note_warps(self, accesses: Accesses, block: int) -> None:
        """Reads by these warps."""

    def note_own_read(self, accesses: Accesses, block: int) -> None:
        """Writes by these warps."""

    def is_replica(self, cell: int, accesses: Accesses, ins: Array | int, block: int) -> Array:
        """Which conflicts are none: a read that the writer has made as well."""
        return np.zeros(len(accesses), bool)

    def put(self, cell: Array | int, accesses: Accesses, which: Array | slice, block: int) -> None:
        self.is_used = True
        at = accesses.at[which]
        self.agent[cell, at] = accesses.agents[which] + 1
        self.step[cell, at] = accesses.steps[which]
        self.block[cell, at], self.ins[cell, at], self.kind[cell, at] = block, accesses.ins, accesses.kind


class PagedShadow(Shadow):
    """The shadow of a large memory of which little is touched: pages get their place when they are first needed."""

    def __init__(self, slots: int) -> None:
        super().__init__(4 * PAGE, slots)
        self.table: dict[int, int] = {}  # page of the memory: page of the shadow

    def refine(self, unit: int) -> None:
        parts = self.unit // unit
        super().refine(unit)
        self.table = {
            page * parts + part: place * parts + part for page, place in self.table.items() for part in range(parts)
        }

    def page(self, number: int) -> int:
        if number not in self.table:
            self.table[number] = len(self.table)
            self.grow(len(self.table) * PAGE)
        return self.table[number]

    def locate(self, at: Array) -> Array:
        pages = at // PAGE
        first = int(pages[0])
        if (pages == first).all():
            return at + (self.page(first) - first) * PAGE
        different, which = np.unique(pages, return_inverse=True)
        return np.array([self.page(int(number)) for number in different])[which] * PAGE + at % PAGE


class ReplicaShadow(PagedShadow):
    """One for code of tilework. Where a tile has fewer elements than a block has threads, each element is loaded by several warps, and stored
    by one of them: what the others have loaded, before or after that, nobody uses. So a read does not race with the write of a
    warp of its block that has read the byte with the same instruction."""

    def __init__(self, slots: int) -> None:
        super().__init__(slots)
        self.last = np.zeros(
            (4, self.size), np.int64
        )  # instruction, block and warps (a bit each) of reads; what the writer had read

    def refine(self, unit: int) -> None:
        self.last = np.repeat(self.last, self.unit // unit, axis=1)
        super().refine(unit)

    def grow(self, size: int) -> None:
        super().grow(size)
        if self.last.shape[1] < self.size:
            self.last = np.concatenate([self.last, np.zeros((4, self.size - self.last.shape[1]), np.int64)], axis=1)

    def note_warps(self, accesses: Accesses, block: int) -> None:
        at, warps = accesses.at, np.int64(1) << accesses.threads.astype(np.int64) // WARP
        other = (self.last[0, at] != accesses.ins + 1) | (self.last[1, at] != block)
        self.last[2, at[other]] = 0
        self.last[0, at], self.last[1, at] = accesses.ins + 1, block
        np.bitwise_or.at(self.last[2], at, warps)

    def note_own_read(self, accesses: Accesses, block: int) -> None:
        at, warps = accesses.at, accesses.threads.astype(np.int64) // WARP
        own = (self.last[1, at] == block) & (self.last[2, at] >> warps & 1).astype(bool)
        self.last[3, at] = np.where(own, self.last[0, at], 0)

    def is_replica(self, cell: int, accesses: Accesses, ins: Array | int, block: int) -> Array:
        return (self.last[3, accesses.at] == ins + 1) & (self.block[cell, accesses.at] == block)
