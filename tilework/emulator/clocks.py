"""Who knows of whose work: vector clocks of the threads of a block, and of what works on their behalf.

Every agent counts its own steps, and every thread keeps, for each agent, the last step it is known to have finished:

    known[5, 3] >= 7        thread 5 comes after step 7 of agent 3, so what agent 3 did then is visible to it

A barrier takes the maximum over those that arrive and gives it to those that wait. Agents 0 to threads - 1 are the threads; the
others are copy engines and tensor cores, one per thread or warp and kind, and mbarriers, for the copies that signal them. An
access is ordered before another exactly if the thread of the second knows its step. `proxied` is the same for what a
`fence.proxy.async` has made visible to copies and tensor cores.
"""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from tilework.emulator.memory import Array

Foreign = dict[int, Array]  # serial number of another block: what is known of its agents


@dataclass(frozen=True)
class Stamp:
    """Knowledge on its way from one thread to another."""

    known: Array
    proxied: Array
    foreign: Foreign
    block: int

    def merged(self, other: "Stamp | None") -> "Stamp":
        if other is None:
            return self
        assert self.block == other.block, "stamps of two blocks are kept apart"
        foreign = join_foreign(self.foreign, other.foreign)
        return Stamp(longest_max(self.known, other.known), longest_max(self.proxied, other.proxied), foreign, self.block)


def longest_max(a: Array, b: Array) -> Array:
    """The maximum; a missing end counts as zero."""
    if len(a) < len(b):
        a, b = b, a
    found = a.copy()
    np.maximum(found[: len(b)], b, out=found[: len(b)])
    return found


def join_foreign(a: Foreign, b: Foreign) -> Foreign:
    if a is b or not b:
        return a
    found = dict(a)
    for block, known in b.items():
        found[block] = longest_max(found[block], known) if block in found else known
    return found


class Clocks:
    """The clocks of one block, whose serial number in the launch is `block`."""

    def __init__(self, threads: int, block: int) -> None:
        self.threads, self.block = threads, block
        self.agents = threads
        self.known = np.zeros((threads, threads + 64), np.int32)
        self.proxied = np.zeros_like(self.known)
        everyone = np.arange(threads)
        self.known[everyone, everyone] = 1
        self.foreign: list[Foreign] = [{}] * threads
        self.columns: dict[Hashable, int] = {}
        self.owners: dict[int, tuple[int, int]] = {}  # first agent of a name: (how many, threads that each one works for)

    def column(self, key: Hashable, count: int = 1) -> int:
        """The first of `count` agents that go by this name; they work for the threads of the block in turn, or for one mbarrier."""
        if key not in self.columns:
            self.columns[key] = self.agents
            self.owners[self.agents] = (count, self.threads // count)
            self.agents += count
            if self.agents > self.known.shape[1]:
                missing = self.agents - self.known.shape[1] + 64
                self.known = np.pad(self.known, ((0, 0), (0, missing)))
                self.proxied = np.pad(self.proxied, ((0, 0), (0, missing)))
        return self.columns[key]

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
        return Stamp(self.known[threads].max(axis=0), self.proxied[threads].max(axis=0), foreign, self.block)

    def deliver(self, threads: Array, stamp: Stamp) -> None:
        foreign = stamp.foreign
        if stamp.block == self.block:
            for mine, theirs in ((self.known, stamp.known), (self.proxied, stamp.proxied)):
                mine[threads, : len(theirs)] = np.maximum(mine[threads, : len(theirs)], theirs)
        else:
            foreign = join_foreign(foreign, {stamp.block: stamp.known})
        if foreign:
            for thread in threads.tolist():
                self.foreign[thread] = join_foreign(self.foreign[thread], foreign)

    def fence_proxy(self, threads: Array) -> None:
        """What the threads know of is visible to copies and tensor cores from now on."""
        self.proxied[threads] = np.maximum(self.proxied[threads], self.known[threads])

    def ordered(self, threads: Array, blocks: Array, agents: Array, steps: Array) -> Array:
        """Whether each thread comes after that step of that agent of that block."""
        here = blocks == self.block
        found = here & (self.known[threads, np.where(here, agents, 0)] >= steps)
        if here.all():
            return found
        for index in np.flatnonzero(~here).tolist():
            known = self.foreign[int(threads[index])].get(int(blocks[index]))
            agent = int(agents[index])
            found[index] = known is not None and agent < len(known) and known[agent] >= steps[index]
        return found
