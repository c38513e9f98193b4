"""Who knows of whose work: vector clocks of the threads of a block, and of what works on their behalf.

Every agent counts its own steps, and every thread keeps, for each agent, the last step it is known to have finished:

    known[5, 3] >= 7        thread 5 comes after step 7 of agent 3, so what agent 3 did then is visible to it

A barrier takes the maximum over those that arrive and gives it to those that wait. Agents 0 to threads - 1 are the threads; the
others are copy engines and tensor cores, one per thread or warp and kind, and mbarriers, for the copies that signal them. An
access is ordered before another exactly if the thread of the second knows its step. `proxied` is the same for what fences have
made visible to copies and tensor cores, one for each of `PROXIES`: shared memory, global memory (`fence.proxy.async`) and the
tensor maps in it (`fence.proxy.tensormap`). A fence counts wherever it stands between the two accesses, in another block too.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilework.oracles.emulator.arenas import Array

Foreign = dict[int, Array]  # serial number of another block: what is known of its agents
HANDED = "handed"  # not a proxy: what threads had read when they arrived at an mbarrier, and need not be fenced before it is overwritten
PROXIES = ("shared", "global", "tensormap", HANDED)


@dataclass(frozen=True)
class Stamp:
    """Knowledge on its way from one thread to another."""

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
    """The maximum; a missing end counts as zero."""
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


def fenced_at(place: int, known: Foreign, fenced: tuple[Foreign, ...]) -> tuple[Foreign, ...]:
    """All that is `known` is behind a fence of one of `PROXIES`."""
    return (*fenced[:place], join_foreign(fenced[place], known), *fenced[place + 1 :]) if known else fenced


class Clocks:
    """The clocks of one block, whose serial number in the launch is `block`."""

    def __init__(self, threads: int, block: int) -> None:
        self.threads, self.block = threads, block
        self.agents = threads
        self.known = np.zeros((threads, threads + 64), np.int32)
        self.proxied = np.zeros((len(PROXIES), *self.known.shape), np.int32)
        self.has_fences = False  # otherwise `proxied` is zero
        everyone = np.arange(threads)
        self.known[everyone, everyone] = 1
        self.foreign: list[Foreign] = [{}] * threads
        self.foreign_proxied: list[tuple[Foreign, ...]] = [({},) * len(PROXIES)] * threads
        self.columns: dict[Hashable, int] = {}
        self.owners: dict[int, tuple[int, int]] = {}  # first agent of a name: (how many, threads that each works for)

    def column(self, key: Hashable, count: int = 1) -> int:
        """The first of `count` agents that go by this name; they work for the threads of the block in turn, or for one mbarrier."""
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
        """Which of the agents go by this name."""
        first = self.columns.get(key, self.agents)
        return (agents >= first) & (agents < first + self.owners.get(first, (0, 0))[0])

    def owner(self, agent: int) -> tuple[int, int] | None:
        """The first and the last thread that an agent works for, if that is not the whole block."""
        for first, (count, width) in self.owners.items():
            if first <= agent < first + count and count > 1:
                return (agent - first) * width, (agent - first + 1) * width - 1
        return None

    def own(self, threads: Array) -> Array:
        """The steps the threads are in."""
        return self.known[threads, threads]

    def tick(self, threads: Array) -> None:
        """What the threads do from now on is a new step."""
        self.known[threads, threads] += 1

    def learn(self, threads: Array, agents: Array | int, steps: Array | int) -> None:
        """Each thread knows that its agent has finished a step."""
        self.known[threads, agents] = np.maximum(self.known[threads, agents], steps)

    def collect(self, threads: Array) -> Stamp:
        """All that these threads know together."""
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
        """What threads know of other blocks becomes what `learn` makes of it; most of them know the same."""
        learned: dict[tuple[int, int], tuple[Any, Any]] = {}  # by identity: with what stood there, which lasts as long
        for thread in threads.tolist():
            before = self.foreign[thread], self.foreign_proxied[thread]
            key = id(before[0]), id(before[1])
            if key not in learned:
                learned[key] = before, learn(*before)
            self.foreign[thread], self.foreign_proxied[thread] = learned[key][1]

    def fence_proxy(self, threads: Array, proxies: Sequence[str] = PROXIES[:2]) -> None:
        """What the threads know of is visible to copies and tensor cores from now on."""
        self.has_fences = True
        for place in map(PROXIES.index, proxies):
            self.proxied[place, threads] = np.maximum(self.proxied[place, threads], self.known[threads])
            if any(map(self.foreign.__getitem__, threads.tolist())):
                self.learn_foreign(threads, lambda known, fenced, at=place: (known, fenced_at(at, known, fenced)))

    def visible(self, proxy: str, threads: Array, blocks: Array, agents: Array, steps: Array) -> Array:
        """Whether a fence has made that step of that agent of that block visible to the copies that each thread starts."""
        place = PROXIES.index(proxy)
        return self.reached(
            self.proxied[place], lambda at: self.foreign_proxied[at][place], threads, blocks, agents, steps
        )

    def ordered(self, threads: Array, blocks: Array, agents: Array, steps: Array) -> Array:
        """Whether each thread comes after that step of that agent of that block."""
        return self.reached(self.known, self.foreign.__getitem__, threads, blocks, agents, steps)

    def reached(
        self, own: Array, foreign: Callable[[int], Foreign], threads: Array, blocks: Array, agents: Array, steps: Array
    ) -> Array:
        """Whether what a thread has in `own`, or of other blocks in `foreign`, is at least that step."""
        here = blocks == self.block
        if np.count_nonzero(here) == len(here):
            return own[threads, agents] >= steps
        found = here & (own[threads, np.where(here, agents, 0)] >= steps)
        for index in np.flatnonzero(~here).tolist():
            known = foreign(int(threads[index])).get(int(blocks[index]))
            agent = int(agents[index])
            found[index] = known is not None and agent < len(known) and known[agent] >= steps[index]
        return found
