"""Happens-before between threads (vector clocks), and the last accesses to each byte (shadow memory).

Every agent counts its own steps, and every thread keeps, for each agent, the last step that is ordered before it:

    known[5, 3] >= 7        step 7 of agent 3 happens before what thread 5 does now, so it is visible to thread 5

A barrier takes the maximum over the arriving threads and gives it to the waiting ones. Agents 0 to threads - 1 are the
threads; the others are copy engines and tensor cores, one per thread or warp and kind, and mbarriers, for the copies
that signal them. An access is ordered before another exactly if the thread of the second knows its step. `proxied` is
the same for what fences have made visible to copies and tensor cores, one for each of `PROXIES`: shared memory, global
memory (`fence.proxy.async`) and the tensor maps in it (`fence.proxy.tensormap`). A fence counts anywhere between the
two accesses, also in another block.

The shadow keeps the last writer and the readers since then:

    byte 12 of shared memory    written by agent 0 in step 1, read by agent 37 in step 1
    now thread 0 writes byte 12, and step 1 of agent 37 is not ordered before that: a race

As long as all accesses are of whole 32-bit units, one entry describes all four bytes: `Shadow.unit`.

Readers are kept per warp (modulo `slots`), two of each, so that of many threads that read a byte one is found that is
not the writer. A write that is ordered after all readers replaces them; one that is not has been reported.

"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilework.oracles.emulator.memory import Array

Foreign = dict[int, Array]  # index of another block: the steps of its agents that are known
HANDED = "handed"  # not a proxy: reads before an arrival at an mbarrier, which need no fence before an overwrite
PROXIES = ("shared", "global", "tensormap", HANDED)


@dataclass(frozen=True)
class Stamp:
    """A snapshot of vector clocks, on its way from one thread to another."""

    known: Array
    proxied: Array
    foreign: Foreign
    block: int
    foreign_proxied: tuple[Foreign, ...] = ({},) * len(PROXIES)

    def merged(self, other: "Stamp | None") -> "Stamp":
        if other is None:
            return self
        assert self.block == other.block, "stamps of two blocks are kept apart"
        foreign = join_foreign(self.foreign, other.foreign)
        proxied = join_all(self.foreign_proxied, other.foreign_proxied)
        return Stamp(
            longest_max(self.known, other.known), longest_max(self.proxied, other.proxied), foreign, self.block, proxied
        )


def longest_max(a: Array, b: Array) -> Array:
    """Return the element-wise maximum; a missing end counts as zero."""
    if a.shape == b.shape:
        return np.maximum(a, b)
    if a.shape[-1] < b.shape[-1]:
        a, b = b, a
    found, common = a.copy(), b.shape[-1]
    np.maximum(found[..., :common], b, out=found[..., :common])
    return found


def join_foreign(a: Foreign, b: Foreign) -> Foreign:
    if a is b or not b:
        return a
    found = dict(a)
    for block, known in b.items():
        found[block] = longest_max(found[block], known) if block in found else known
    return found


def join_all(a: tuple[Foreign, ...], b: tuple[Foreign, ...]) -> tuple[Foreign, ...]:
    return tuple(join_foreign(mine, theirs) for mine, theirs in zip(a, b, strict=True))


def fenced_for(proxy: int, known: Foreign, fenced: tuple[Foreign, ...]) -> tuple[Foreign, ...]:
    """Return `fenced` with all that is `known` behind a fence of one of `PROXIES`."""
    return (*fenced[:proxy], join_foreign(fenced[proxy], known), *fenced[proxy + 1 :]) if known else fenced


class Clocks:
    """The vector clocks of one block, the `block`-th of the launch."""

    def __init__(self, threads: int, block: int) -> None:
        self.threads, self.block = threads, block
        self.agents = threads
        self.known = np.zeros((threads, threads + 64), np.int32)
        self.proxied = np.zeros((len(PROXIES), *self.known.shape), np.int32)
        self.has_fences = False  # if False, `proxied` is zero
        everyone = np.arange(threads)
        self.known[everyone, everyone] = 1
        self.foreign: list[Foreign] = [{}] * threads
        self.foreign_proxied: list[tuple[Foreign, ...]] = [({},) * len(PROXIES)] * threads
        self.columns: dict[Hashable, int] = {}
        self.owners: dict[int, tuple[int, int]] = {}  # first agent of a name: (count, threads per agent)

    def column(self, key: Hashable, count: int = 1) -> int:
        """Return the first of `count` agents with this name; each works for as many consecutive threads of the block,
        or for one mbarrier."""
        if key not in self.columns:
            self.columns[key] = self.agents
            self.owners[self.agents] = (count, self.threads // count)
            self.agents += count
            if self.agents > self.known.shape[1]:
                missing = self.agents - self.known.shape[1] + 64
                self.known = np.pad(self.known, ((0, 0), (0, missing)))
                self.proxied = np.pad(self.proxied, ((0, 0), (0, 0), (0, missing)))
        return self.columns[key]

    def works_as(self, agents: Array, key: Hashable) -> Array:
        """Return which of the agents have this name."""
        first = self.columns.get(key, self.agents)
        return (agents >= first) & (agents < first + self.owners.get(first, (0, 0))[0])

    def owner(self, agent: int) -> tuple[int, int] | None:
        """Return the first and the last thread that an agent works for, if that is not the whole block."""
        for first, (count, width) in self.owners.items():
            if first <= agent < first + count and count > 1:
                return (agent - first) * width, (agent - first + 1) * width - 1
        return None

    def own(self, threads: Array) -> Array:
        """Return the current steps of the threads."""
        return self.known[threads, threads]

    def tick(self, threads: Array) -> None:
        """Begin a new step of the threads."""
        self.known[threads, threads] += 1

    def learn(self, threads: Array, agents: Array | int, steps: Array | int) -> None:
        """Record that a step of an agent happens before what each thread does from now on."""
        self.known[threads, agents] = np.maximum(self.known[threads, agents], steps)

    def collect(self, threads: Array) -> Stamp:
        """Return the joined clocks of these threads."""
        foreign: Foreign = {}
        for found in {id(self.foreign[thread]): self.foreign[thread] for thread in threads.tolist()}.values():
            foreign = join_foreign(foreign, found)
        proxied = ({},) * len(PROXIES)
        for found in {
            id(self.foreign_proxied[thread]): self.foreign_proxied[thread] for thread in threads.tolist()
        }.values():
            proxied = join_all(proxied, found)
        fenced = self.proxied[:, threads].max(axis=1) if self.has_fences else np.zeros_like(self.proxied[:, 0])
        return Stamp(self.known[threads].max(axis=0), fenced, foreign, self.block, proxied)

    def deliver(self, threads: Array, stamp: Stamp) -> None:
        foreign, proxied = stamp.foreign, stamp.foreign_proxied
        if stamp.block == self.block:
            count = len(stamp.known)
            self.known[threads, :count] = np.maximum(self.known[threads, :count], stamp.known)
            if np.count_nonzero(stamp.proxied):
                self.has_fences = True
                count = stamp.proxied.shape[-1]
                self.proxied[:, threads, :count] = np.maximum(self.proxied[:, threads, :count], stamp.proxied[:, None])
        else:
            foreign = join_foreign(foreign, {stamp.block: stamp.known})
            proxied = join_all(proxied, tuple({stamp.block: row} for row in stamp.proxied))
        if foreign:
            self.learn_foreign(threads, lambda known, fenced: (join_foreign(known, foreign), join_all(fenced, proxied)))

    def learn_foreign(
        self, threads: Array, learn: Callable[[Foreign, tuple[Foreign, ...]], tuple[Foreign, tuple[Foreign, ...]]]
    ) -> None:
        """Replace the clocks that threads have of other blocks by those that `learn` returns; most threads share
        them."""
        learned: dict[tuple[int, int], tuple[Any, Any]] = {}  # by identity; keeps the old values alive
        for thread in threads.tolist():
            before = self.foreign[thread], self.foreign_proxied[thread]
            key = id(before[0]), id(before[1])
            if key not in learned:
                learned[key] = before, learn(*before)
            self.foreign[thread], self.foreign_proxied[thread] = learned[key][1]

    def fence_proxy(self, threads: Array, proxies: Sequence[str] = PROXIES[:2]) -> None:
        """Make what happens before the threads visible to copies and tensor cores."""
        self.has_fences = True
        for proxy in map(PROXIES.index, proxies):
            self.proxied[proxy, threads] = np.maximum(self.proxied[proxy, threads], self.known[threads])
            if any(map(self.foreign.__getitem__, threads.tolist())):
                self.learn_foreign(threads, lambda known, fenced, at=proxy: (known, fenced_for(at, known, fenced)))

    def visible(self, proxy: str, threads: Array, blocks: Array, agents: Array, steps: Array) -> Array:
        """Return whether a fence has made a step of an agent of a block visible to the copies that each thread
        starts."""
        row = PROXIES.index(proxy)
        return self.reached(self.proxied[row], lambda at: self.foreign_proxied[at][row], threads, blocks, agents, steps)

    def ordered(self, threads: Array, blocks: Array, agents: Array, steps: Array) -> Array:
        """Return whether a step of an agent of a block happens before each thread."""
        return self.reached(self.known, self.foreign.__getitem__, threads, blocks, agents, steps)

    def reached(
        self, own: Array, foreign: Callable[[int], Foreign], threads: Array, blocks: Array, agents: Array, steps: Array
    ) -> Array:
        """Return whether the clocks in `own`, or for other blocks in `foreign`, have reached the step."""
        here = blocks == self.block
        if np.count_nonzero(here) == len(here):
            return own[threads, agents] >= steps
        found = here & (own[threads, np.where(here, agents, 0)] >= steps)
        for index in np.flatnonzero(~here).tolist():
            known = foreign(int(threads[index])).get(int(blocks[index]))
            agent = int(agents[index])
            found[index] = known is not None and agent < len(known) and known[agent] >= steps[index]
        return found


# STRONG: atomic, volatile, relaxed and so on; COMBINED: by copies that add or the like
PLAIN, STRONG, ASYNC, COMBINED = range(4)
NEVER_RACE = (STRONG, COMBINED)  # two of the same
WARP = 32
PAGE = 4096  # units
LARGEST = 4  # bytes of a unit, at first


@dataclass(frozen=True)
class Accesses:
    """One access per unit of memory: the unit's index, the agent and its step, and the thread that the agent works for,
    whose clocks count."""

    at: Array
    agents: Array
    steps: Array
    threads: Array
    ins: int  # id of the instruction
    kind: int  # PLAIN, STRONG, ASYNC or COMBINED
    unit: int = 1  # bytes

    def __len__(self) -> int:
        return len(self.at)

    def address(self, index: int) -> int:
        return int(self.at[index]) * self.unit


@dataclass(frozen=True)
class Conflict:
    """The `index`-th of the accesses races with one by `agent` of `block` in instruction `ins`."""

    index: int
    agent: int
    block: int
    ins: int
    was_write: bool


class Shadow:
    """The shadow of `size` units. An agent is stored as its index + 1; 0 means none, and then the other fields are
    undefined. Fields are indexed [cell, unit]: cell 0 is the last write, 1 + 2s and 2 + 2s are readers of slot s."""

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
        """Return the unit, refined if necessary, that divides accesses of `size` bytes at these addresses."""
        together = int(np.bitwise_or.reduce(addresses)) | size if len(addresses) else 0
        if together & (self.unit - 1):
            self.refine(together & -together)
        return self.unit

    def refine(self, unit: int) -> None:
        """Split every unit into smaller ones with the same entries."""
        parts = self.unit // unit
        for name in ("agent", "step", "block", "ins", "kind"):
            setattr(self, name, np.repeat(getattr(self, name), parts, axis=1))
        self.size, self.unit = self.size * parts, unit

    def grow(self, size: int) -> None:
        """Grow to at least `size` units."""
        if size <= self.size:
            return
        new = Shadow(max(size, 2 * self.size), self.slots)
        for name in ("agent", "step", "block", "ins", "kind"):
            getattr(new, name)[:, : self.size] = getattr(self, name)
            setattr(self, name, getattr(new, name))
        self.size = new.size

    def locate(self, at: Array) -> Array:
        """Return the indices of these units in the shadow."""
        return at

    def unwritten(self, accesses: Accesses) -> Array:
        """Return which of the units have never been written."""
        return self.agent[0, accesses.at] == 0

    def conflicts(self, cell: int, accesses: Accesses, clocks: Clocks) -> Array:
        """Return which accesses are not ordered after the one in this cell."""
        at = accesses.at
        there = self.agent[cell, at]
        suspects = there > 0
        if accesses.kind in NEVER_RACE:
            suspects &= self.kind[cell, at] != accesses.kind
        if not np.count_nonzero(suspects):
            return suspects
        some = np.flatnonzero(suspects)
        units = at[some]
        before = clocks.ordered(
            accesses.threads[some], self.block[cell, units], there[some] - 1, self.step[cell, units]
        )
        suspects[some] = ~before
        return suspects

    def conflict(self, index: int, cell: int, accesses: Accesses) -> Conflict:
        at = accesses.at[index]
        return Conflict(
            index, int(self.agent[cell, at]) - 1, int(self.block[cell, at]), int(self.ins[cell, at]), cell == 0
        )

    def read(self, accesses: Accesses, clocks: Clocks) -> Conflict | None:
        """Record reads; return the first one that races."""
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
            cells, units = first[some], at[some]
            keep[some] = ~clocks.ordered(
                accesses.threads[some], self.block[cells, units], old[some] - 1, self.step[cells, units]
            )
        replace = np.flatnonzero(~keep)[::-1]  # backwards, so that the first of several readers of a byte is kept
        self.put(first[replace], accesses, replace, clocks.block)
        self.put(last, accesses, slice(None), clocks.block)
        return found

    def write(self, accesses: Accesses, clocks: Clocks, harmless: Array | None = None) -> Conflict | None:
        """Record writes; return the first one that races. `harmless` are writes of the value that is there already."""
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

    # redundant loads by several warps

    def note_warps(self, accesses: Accesses, block: int) -> None:
        """Record the warps of reads."""

    def note_own_read(self, accesses: Accesses, block: int) -> None:
        """Record the reads of warps that write."""

    def is_replica(self, cell: int, accesses: Accesses, ins: Array | int, block: int) -> Array:
        """Return which conflicts are harmless: a read that the writer has made as well."""
        return np.zeros(len(accesses), bool)

    def put(self, cell: Array | int, accesses: Accesses, which: Array | slice, block: int) -> None:
        self.is_used = True
        at = accesses.at[which]
        self.agent[cell, at] = accesses.agents[which] + 1
        self.step[cell, at] = accesses.steps[which]
        self.block[cell, at], self.ins[cell, at], self.kind[cell, at] = block, accesses.ins, accesses.kind


class PagedShadow(Shadow):
    """The shadow of a large memory of which little is touched: pages are allocated when they are first needed."""

    def __init__(self, slots: int) -> None:
        super().__init__(4 * PAGE, slots)
        self.table: dict[int, int] = {}  # page of the memory: page of the shadow

    def refine(self, unit: int) -> None:
        parts = self.unit // unit
        super().refine(unit)
        self.table = {
            page * parts + part: entry * parts + part for page, entry in self.table.items() for part in range(parts)
        }

    def page(self, page: int) -> int:
        if page not in self.table:
            self.table[page] = len(self.table)
            self.grow(len(self.table) * PAGE)
        return self.table[page]

    def locate(self, at: Array) -> Array:
        pages = at // PAGE
        first = int(pages[0])
        if (pages == first).all():
            return at + (self.page(first) - first) * PAGE
        different, which = np.unique(pages, return_inverse=True)
        return np.array([self.page(int(page)) for page in different])[which] * PAGE + at % PAGE


class ReplicaShadow(PagedShadow):
    """A shadow for code of tilework. If a tile has fewer elements than a block has threads, several warps load each
    element and one of them stores it; the values that the others have loaded, before or after that, are unused. So a
    read does not race with the write of a warp of its block that has read the byte with the same instruction."""

    def __init__(self, slots: int) -> None:
        super().__init__(slots)
        # rows: instruction, block and warps (a bit each) of reads; the instruction of the writer's own read
        self.last = np.zeros((4, self.size), np.int64)

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
