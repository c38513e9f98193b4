"""Barriers between threads: bar.sync, bar.arrive and bar.red, barrier.cluster, bar.warp.sync, setmaxnreg.

    bar.sync 1, 64        all threads of two warps arrive, here or with bar.arrive, before any waiting thread continues

A waiting thread is in no strand; it is in a `Barrier`, with the run where it continues. A barrier that is still there
when no thread can run is a deadlock; the error names the missing threads.

"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tilework.oracles.emulator.memory import Array
from tilework.oracles.emulator.syntax import EmulatorError, Imm, Instruction
from tilework.oracles.emulator.translate import WARP, Block, Translator, Unsupported

if TYPE_CHECKING:
    from tilework.oracles.emulator.machine import Run

FULL_WARP = 0xFFFF_FFFF
CLUSTER = 16  # id of the cluster's barrier, after those of the first block
NEXT_BLOCK = 32  # id of barrier 0 of the second block


class Stuck(EmulatorError):
    """A deadlocked block: some threads wait for others that never arrive."""


@dataclass(eq=False)
class Barrier:
    """Threads that arrived at one barrier of a block. `waiting` are (run where they continue, mask), `finish` the
    actions at the release."""

    arrived: Array
    expected: int = 0
    waiting: list[tuple[Any, Array]] = field(default_factory=list)
    finish: list[Callable[[], None]] = field(default_factory=list)
    votes: Array | None = None


class BarrierWaits:
    """The part of a machine that blocks threads at barriers. The machine itself schedules the threads that can run."""

    block: Block
    barriers: dict[int, Barrier]
    warp_barriers: dict[tuple[int, int], Barrier]  # lanes at bar.warp.sync, by warp and member mask
    registers: Array  # per thread, for each warp
    limit: int  # registers per thread at the start
    register_requests: list[Any]  # warps at setmaxnreg: (where they continue, threads, warp, registers)
    finished: Array
    progress: int
    go: Callable[[int, "Run | None", Array], None]
    failure: Callable[..., EmulatorError]
    is_whole: Callable[[Array], bool]

    def arrive(self, group: int, run: "Run", end: Instruction, mask: Array) -> None:
        """bar.sync, bar.arrive and bar.red, and barrier.*, their other names."""
        kinds = set(end.modifiers)
        if "warp" in kinds:
            return self.sync_warp(group, run, end, mask)
        if "cluster" in kinds:
            return self.arrive_in_cluster(group, run, end, mask)
        for rank, part in self.by_block(mask):
            self.arrive_in_block(group, run, end, part, rank)
        return None

    def by_block(self, mask: Array) -> list[tuple[int, Array]]:
        """Return (rank of a block in the cluster, the threads of `mask` in it) for each block."""
        if self.block.blocks == 1:
            return [(0, mask)]
        ranks = self.block.ranks
        return [(rank, mask & (ranks == rank)) for rank in np.unique(ranks[mask]).tolist()]

    def arrive_in_block(self, group: int, run: "Run", end: Instruction, mask: Array, rank: int) -> None:
        kinds, translator = set(end.modifiers), run.code.translator
        operands = list(end.operands)
        target = operands.pop(0) if "red" in kinds else None
        barrier_id = self.uniform(translator, operands[0], mask, end)
        vote = operands.pop() if "red" in kinds else None
        count = self.uniform(translator, operands[1], mask, end) if len(operands) > 1 else 0
        if not 0 <= barrier_id < 16:
            raise EmulatorError(f"barrier {barrier_id} is not one of 0 to 15")
        if count % WARP:
            raise EmulatorError(f"a barrier for {count} threads, which is not a multiple of {WARP}")
        key = barrier_id + rank * NEXT_BLOCK
        barrier = self.barriers.setdefault(key, Barrier(np.zeros(self.block.threads, bool)))
        if np.count_nonzero(again := barrier.arrived & mask):
            raise self.failure(f"a thread arrives at barrier {barrier_id} twice", end, again)
        if barrier.expected and count and barrier.expected != count:
            raise EmulatorError(
                f"barrier {barrier_id} is for {barrier.expected} threads and for {count} threads at once"
            )
        barrier.expected = count or barrier.expected
        barrier.arrived |= mask
        if vote is not None and target is not None:
            self.vote(barrier, translator, end, vote, target, mask)
        if "arrive" in kinds:
            self.go(group, run.next(), mask)
        else:
            barrier.waiting.append(((group, run.next(), end), mask))
        self.release(group, key)

    def sync_warp(self, group: int, run: "Run", end: Instruction, mask: Array) -> None:
        """bar.warp.sync: lanes wait until all lanes in the member mask arrive with the same mask, or have exited."""
        members = np.broadcast_to(run.code.translator.read(end.operands[0], np.uint32), mask.shape)
        if members[mask].all() and int(members[mask].min()) == FULL_WARP and self.is_whole(mask):
            self.warp_synced(mask)
            return self.go(group, run.next(), mask)
        lanes = self.block.everyone % WARP
        if np.count_nonzero(outside := mask & (members >> lanes.astype(np.uint32) & np.uint32(1) == 0)):
            raise self.failure("a lane that the member mask does not name is at the barrier", end, outside)
        for warp in np.flatnonzero(mask.reshape(-1, WARP).any(axis=1)).tolist():
            mine = mask & (self.block.everyone // WARP == warp)
            for value in np.unique(members[mine]).tolist():
                here = mine & (members == value)
                warp_barrier = self.warp_barriers.setdefault((warp, value), Barrier(np.zeros(self.block.threads, bool)))
                warp_barrier.arrived |= here
                warp_barrier.waiting.append(((group, run.next(), end), here))
                self.release_warp(warp, value)
        return None

    def release_warp(self, warp: int, members: int) -> None:
        """Release the lanes at a bar.warp.sync if all have arrived."""
        warp_barrier = self.warp_barriers[(warp, members)]
        named = np.array([members >> lane & 1 for lane in range(WARP)], bool)
        here = (warp_barrier.arrived | self.finished).reshape(-1, WARP)[warp]
        if not here[named].all():
            return
        del self.warp_barriers[(warp, members)]
        self.progress += 1
        self.warp_synced(warp_barrier.arrived)
        for (own, run, _), mask in warp_barrier.waiting:
            self.go(own, run, mask)

    def warp_synced(self, mask: Array) -> None:
        """Called when lanes have synchronised at bar.warp.sync; a hook for subclasses."""

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
        """setmaxnreg: warps that request more registers wait until others of their block have released as many. A
        kernel without a register limit has enough."""
        count = self.uniform(run.code.translator, end.operands[0], mask, end)
        if not 24 <= count <= 256 or count % 8:
            raise Unsupported(end, f"{count} registers; a multiple of 8 from 24 to 256 is possible")
        for warp in np.flatnonzero(mask.reshape(-1, WARP).any(axis=1)).tolist():
            self.register_requests.append(
                ((group, run.next(), end), mask & (self.block.everyone // WARP == warp), warp, count)
            )
        waiting: list[Any] = []
        for want in sorted(
            self.register_requests, key=lambda want: want[3] - self.registers[want[2]]
        ):  # releases first
            (own, next, _), threads, warp, wanted = want
            mine = self.registers.reshape(self.block.blocks, -1)[warp * WARP // self.block.width]
            if wanted > self.registers[warp] and mine.sum() + wanted - self.registers[warp] > self.limit * len(mine):
                waiting.append(want)
            else:
                self.registers[warp] = wanted
                self.progress += 1
                self.go(own, next, threads)
        self.register_requests = waiting

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
            raise Unsupported(end, "the id of a barrier differs between threads that arrive together")
        return int(values[0])

    def release(self, group: int, barrier_id: int) -> None:
        """Release the threads at a barrier if all expected threads have arrived."""
        barrier = self.barriers[barrier_id]
        warps = barrier.arrived.reshape(-1, WARP).any(axis=1)
        if barrier.expected:
            whole = (barrier.arrived | self.finished).reshape(-1, WARP)[warps].all(axis=1)
            complete = int(whole.sum()) * WARP >= barrier.expected
        else:
            here = self.block.ranks == barrier_id // NEXT_BLOCK if barrier_id != CLUSTER else slice(None)
            complete = bool((barrier.arrived | self.finished)[here].all())
        if not complete:
            return
        del self.barriers[barrier_id]
        self.progress += 1
        for finish in barrier.finish:
            finish()
        self.released(barrier_id, barrier)
        for (own, run, _), mask in barrier.waiting:
            self.go(own, run, mask)

    def released(self, barrier_id: int, barrier: Barrier) -> None:
        """Called when all threads of a barrier have arrived; a hook for subclasses."""

    def check_stuck(self) -> None:
        if self.register_requests:
            (_, _, end), mask, warp, count = self.register_requests[0]
            what = f"warp {warp} waits for {count} registers of each thread, which others do not give up"
            raise self.failure(what, end, mask, Stuck)
        if self.warp_barriers:
            (warp, members), warp_barrier = next(iter(self.warp_barriers.items()))
            named = np.array([members >> lane & 1 for lane in range(WARP)], bool)
            missing = np.flatnonzero(named & ~(warp_barrier.arrived | self.finished).reshape(-1, WARP)[warp])
            (_, _, end), mask = warp_barrier.waiting[0]
            what = f"lanes of warp {warp} wait for lanes {spans(missing)}, which do not come"
            raise self.failure(what, end, mask, Stuck)
        barrier_id, barrier = next(iter(self.barriers.items()))
        if not barrier.waiting:
            return  # threads arrived without waiting, and no thread waits
        here = (
            self.block.exists
            if barrier_id == CLUSTER
            else self.block.exists & (self.block.ranks == barrier_id // NEXT_BLOCK)
        )
        missing = np.flatnonzero(~barrier.arrived & here)
        waits = [str(index % NEXT_BLOCK) for index in self.barriers]
        (_, _, end), mask = barrier.waiting[0]
        arrived = int(barrier.arrived.sum())
        what = f"barrier {barrier_id % NEXT_BLOCK} is not reached by all threads: {arrived} have arrived"
        if len(missing):
            noun, verb = ("thread", "has") if len(missing) == 1 else ("threads", "have")
            what += f", {noun} {spans(missing)} {verb} not"
        if len(waits) > 1:
            what += f" (threads wait at barriers {', '.join(waits)})"
        raise self.failure(what, end, mask, Stuck)


def spans(values: Array) -> str:
    """Format integers as ranges: ``0-31, 40``."""
    found: list[list[int]] = []
    for value in values.tolist():
        if found and found[-1][1] == value - 1:
            found[-1][1] = value
        else:
            found.append([value, value])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in found[:8]) + (", ..." if len(found) > 8 else "")
