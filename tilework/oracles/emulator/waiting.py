"""Threads that wait for one another: bar.sync, bar.arrive and bar.red, the barrier of a cluster, bar.warp.sync, setmaxnreg.

    bar.sync 1, 64        all threads of two warps come here, or arrive with bar.arrive, before any of those that wait goes on

A thread that waits is in no strand; it is in a `Barrier`, with the run it goes on at. A barrier that is still there when no thread can
run is an error that says who is missing.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tilework.oracles.emulator.arenas import Array
from tilework.oracles.emulator.syntax import EmulatorError, Imm, Instruction
from tilework.oracles.emulator.translate import WARP, Block, Translator, Unsupported

if TYPE_CHECKING:
    from tilework.oracles.emulator.machine import Run

FULL_WARP = 0xFFFF_FFFF
CLUSTER = 16  # the number of the cluster's barrier, after those of the first block
NEXT_BLOCK = 32  # the number of barrier 0 of the second block


class Stuck(EmulatorError):
    """A block that cannot go on: some threads wait for others that will not come."""


@dataclass(eq=False)
class Barrier:
    """Threads that arrived at one barrier of a block; `waiting` are (run to go on at, mask), `finish` what to do at the release."""

    arrived: Array
    expected: int = 0
    waiting: list[tuple[Any, Array]] = field(default_factory=list)
    finish: list[Callable[[], None]] = field(default_factory=list)
    votes: Array | None = None


class Waiting:
    """The part of a machine that holds threads back. Where threads are and what they do next is the machine's."""

    block: Block
    barriers: dict[int, Barrier]
    meetings: dict[tuple[int, int], Barrier]  # lanes at bar.warp.sync, by warp and member mask
    registers: Array  # of a thread of each warp
    limit: int  # what they are together, for each warp
    wanting: list[Any]  # warps at setmaxnreg: (where they go on, threads, warp, registers)
    finished: Array
    progress: int
    go: Callable[[int, "Run | None", Array], None]
    failure: Callable[..., EmulatorError]
    is_whole: Callable[[Array], bool]

    def arrive(self, group: int, run: "Run", end: Instruction, mask: Array) -> None:
        """bar.sync, bar.arrive and bar.red, and barrier.* which are the same with other names."""
        kinds = set(end.modifiers)
        if "warp" in kinds:
            return self.meet(group, run, end, mask)
        if "cluster" in kinds:
            return self.arrive_in_cluster(group, run, end, mask)
        for rank, part in self.by_block(mask):
            self.arrive_in_block(group, run, end, part, rank)
        return None

    def by_block(self, mask: Array) -> list[tuple[int, Array]]:
        """(number of a block in the cluster, those of the threads that are in it)."""
        if self.block.blocks == 1:
            return [(0, mask)]
        ranks = self.block.ranks
        return [(rank, mask & (ranks == rank)) for rank in np.unique(ranks[mask]).tolist()]

    def arrive_in_block(self, group: int, run: "Run", end: Instruction, mask: Array, rank: int) -> None:
        kinds, translator = set(end.modifiers), run.code.translator
        operands = list(end.operands)
        target = operands.pop(0) if "red" in kinds else None
        number = self.uniform(translator, operands[0], mask, end)
        vote = operands.pop() if "red" in kinds else None
        count = self.uniform(translator, operands[1], mask, end) if len(operands) > 1 else 0
        if not 0 <= number < 16:
            raise EmulatorError(f"barrier {number} is not one of 0 to 15")
        if count % WARP:
            raise EmulatorError(f"a barrier for {count} threads, which is not a multiple of {WARP}")
        key = number + rank * NEXT_BLOCK
        barrier = self.barriers.setdefault(key, Barrier(np.zeros(self.block.threads, bool)))
        if np.count_nonzero(again := barrier.arrived & mask):
            raise self.failure(f"a thread arrives at barrier {number} twice", end, again)
        if barrier.expected and count and barrier.expected != count:
            raise EmulatorError(f"barrier {number} is for {barrier.expected} threads and for {count} threads at once")
        barrier.expected = count or barrier.expected
        barrier.arrived |= mask
        if vote is not None and target is not None:
            self.vote(barrier, translator, end, vote, target, mask)
        if "arrive" in kinds:
            self.go(group, run.next(), mask)
        else:
            barrier.waiting.append(((group, run.next(), end), mask))
        self.release(group, key)

    def meet(self, group: int, run: "Run", end: Instruction, mask: Array) -> None:
        """bar.warp.sync: lanes wait until all lanes that the member mask names are at one with the same mask, or have ended."""
        members = np.broadcast_to(run.code.translator.read(end.operands[0], np.uint32), mask.shape)
        if members[mask].all() and int(members[mask].min()) == FULL_WARP and self.is_whole(mask):
            self.met(mask)
            return self.go(group, run.next(), mask)
        lanes = self.block.everyone % WARP
        if np.count_nonzero(outside := mask & (members >> lanes.astype(np.uint32) & np.uint32(1) == 0)):
            raise self.failure("a lane that the member mask does not name is at the barrier", end, outside)
        for warp in np.flatnonzero(mask.reshape(-1, WARP).any(axis=1)).tolist():
            mine = mask & (self.block.everyone // WARP == warp)
            for value in np.unique(members[mine]).tolist():
                here = mine & (members == value)
                meeting = self.meetings.setdefault((warp, value), Barrier(np.zeros(self.block.threads, bool)))
                meeting.arrived |= here
                meeting.waiting.append(((group, run.next(), end), here))
                self.part(warp, value)
        return None

    def part(self, warp: int, members: int) -> None:
        """Let the lanes at a bar.warp.sync go if all have come."""
        meeting = self.meetings[(warp, members)]
        named = np.array([members >> lane & 1 for lane in range(WARP)], bool)
        here = (meeting.arrived | self.finished).reshape(-1, WARP)[warp]
        if not here[named].all():
            return
        del self.meetings[(warp, members)]
        self.progress += 1
        self.met(meeting.arrived)
        for (own, run, _), mask in meeting.waiting:
            self.go(own, run, mask)

    def met(self, mask: Array) -> None:
        """Lanes have met at bar.warp.sync; for those who watch."""

    def arrive_in_cluster(self, group: int, run: "Run", end: Instruction, mask: Array) -> None:
        """barrier.cluster.arrive and .wait: one more barrier, of the threads of all blocks."""
        barrier = self.barriers.get(CLUSTER)
        if "wait" in end.modifiers:
            if barrier is None or not np.count_nonzero(barrier.arrived & mask):
                return self.go(group, run.next(), mask)  # the phase they arrived in is over
            if np.count_nonzero(early := mask & ~barrier.arrived):
                self.go(group, run.next(), early)
            barrier.waiting.append(((group, run.next(), end), mask & barrier.arrived))
            return None
        barrier = self.barriers.setdefault(CLUSTER, Barrier(np.zeros(self.block.threads, bool)))
        if np.count_nonzero(again := barrier.arrived & mask):
            raise self.failure("a thread arrives at the cluster's barrier twice", end, again)
        barrier.arrived |= mask
        self.go(group, run.next(), mask)
        self.release(group, CLUSTER)
        return None

    def change_registers(self, group: int, run: "Run", end: Instruction, mask: Array) -> None:
        """setmaxnreg: warps that want more registers wait until others of their block have given up as many; a kernel
        that does not say how many there are has enough."""
        count = self.uniform(run.code.translator, end.operands[0], mask, end)
        if not 24 <= count <= 256 or count % 8:
            raise Unsupported(end, f"{count} registers; a multiple of 8 from 24 to 256 is possible")
        for warp in np.flatnonzero(mask.reshape(-1, WARP).any(axis=1)).tolist():
            self.wanting.append(((group, run.next(), end), mask & (self.block.everyone // WARP == warp), warp, count))
        waiting: list[Any] = []
        for want in sorted(self.wanting, key=lambda want: want[3] - self.registers[want[2]]):  # those that give first
            (own, next, _), threads, warp, wanted = want
            mine = self.registers.reshape(self.block.blocks, -1)[warp * WARP // self.block.width]
            if wanted > self.registers[warp] and mine.sum() + wanted - self.registers[warp] > self.limit * len(mine):
                waiting.append(want)
            else:
                self.registers[warp] = wanted
                self.progress += 1
                self.go(own, next, threads)
        self.wanting = waiting

    def vote(
        self, barrier: Barrier, translator: Translator, end: Instruction, vote: Any, target: Any, mask: Array
    ) -> None:
        if barrier.votes is None:
            barrier.votes = np.zeros(self.block.threads, bool)
        np.copyto(barrier.votes, translator.predicate(vote)(), where=mask)
        kind = next(kind for kind in end.modifiers if kind in ("popc", "and", "or"))

        def finish() -> None:
            votes = barrier.votes[barrier.arrived]  # type: ignore[index]
            value = {"popc": votes.sum, "and": votes.all, "or": votes.any}[kind]()
            out = translator.registers[target.name]
            np.copyto(out, np.asarray(value).astype(out.dtype), where=mask)

        barrier.finish.append(finish)

    def uniform(self, translator: Translator, operand: Any, mask: Array, end: Instruction) -> int:
        if isinstance(operand, Imm):
            return operand.value
        values = np.unique(np.broadcast_to(translator.read(operand, np.uint32), mask.shape)[mask])
        if len(values) != 1:
            raise Unsupported(end, "the number of a barrier differs between threads that arrive together")
        return int(values[0])

    def release(self, group: int, number: int) -> None:
        """Let the threads at a barrier go if all that it waits for have come."""
        barrier = self.barriers[number]
        warps = barrier.arrived.reshape(-1, WARP).any(axis=1)
        if barrier.expected:
            whole = (barrier.arrived | self.finished).reshape(-1, WARP)[warps].all(axis=1)
            complete = int(whole.sum()) * WARP >= barrier.expected
        else:
            here = self.block.ranks == number // NEXT_BLOCK if number != CLUSTER else slice(None)
            complete = bool((barrier.arrived | self.finished)[here].all())
        if not complete:
            return
        del self.barriers[number]
        self.progress += 1
        for finish in barrier.finish:
            finish()
        self.released(number, barrier)
        for (own, run, _), mask in barrier.waiting:
            self.go(own, run, mask)

    def released(self, number: int, barrier: Barrier) -> None:
        """All threads of a barrier have come; for those who watch."""

    def check_stuck(self) -> None:
        if self.wanting:
            (_, _, end), mask, warp, count = self.wanting[0]
            what = f"warp {warp} waits for {count} registers of each thread, which others do not give up"
            raise self.failure(what, end, mask, Stuck)
        if self.meetings:
            (warp, members), meeting = next(iter(self.meetings.items()))
            named = np.array([members >> lane & 1 for lane in range(WARP)], bool)
            missing = np.flatnonzero(named & ~(meeting.arrived | self.finished).reshape(-1, WARP)[warp])
            (_, _, end), mask = meeting.waiting[0]
            what = f"lanes of warp {warp} wait for lanes {spans(missing)}, which do not come"
            raise self.failure(what, end, mask, Stuck)
        number, barrier = next(iter(self.barriers.items()))
        if not barrier.waiting:
            return  # arrived without waiting, and nobody waits
        here = (
            self.block.exists if number == CLUSTER else self.block.exists & (self.block.ranks == number // NEXT_BLOCK)
        )
        missing = np.flatnonzero(~barrier.arrived & here)
        waits = [str(index % NEXT_BLOCK) for index in self.barriers]
        (_, _, end), mask = barrier.waiting[0]
        what = f"barrier {number % NEXT_BLOCK} is not reached by all threads: {int(barrier.arrived.sum())} have arrived"
        if len(missing):
            what += f", {'thread' if len(missing) == 1 else 'threads'} {spans(missing)} {'has' if len(missing) == 1 else 'have'} not"
        if len(waits) > 1:
            what += f" (threads wait at barriers {', '.join(waits)})"
        raise self.failure(what, end, mask, Stuck)


def spans(numbers: Array) -> str:
    """Numbers as ranges: ``0-31, 40``."""
    found: list[list[int]] = []
    for number in numbers.tolist():
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in found[:8]) + (", ..." if len(found) > 8 else "")
