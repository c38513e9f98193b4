"""Where threads must wait for each other's accesses to shared memory.

    ttg.local_store %x, %m           writes bytes 0 to 4096
    ttg.local_load %m                reads them: a barrier before, or a thread reads what another has not written yet
    ttg.local_store %y, %m           writes what others may still be reading: a barrier again

The state on the way through a function is what was read and written since the last barrier. An op that touches bytes
which are pending, one of the two a write, needs a barrier in front. An op with scratch memory writes it, waits in
itself and reads it, so behind it nothing else is pending; not so a layout conversion that waits only within its warps. That one
needs no barrier for itself, from one round of a loop to the next, and so do stores by TMA that warps make for themselves
(`warp_stores.py`).
Copies in the background are over at their wait, for the thread that started them: behind it comes a barrier. A product in the
background reads until its wait, each warp for itself: a barrier between the two orders nothing of it. Loops are
followed until nothing changes; what is pending only in front of one is waited for there, not in each round. A call may
write the whole frame of its callee; behind it, what the callee leaves pending is.

All warps meet where `ttg.warp_specialize` begins and ends, and the regions order their accesses with mbarriers: within
each one nothing is pending at its start. What an mbarrier orders by itself may be exempted by a filter.
"""

from dataclasses import dataclass, field, replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilework.analysis.allocation import Allocation, async_regions, module_allocation
from tilework.analysis.first_warp import BY_ONE_THREAD, FirstWarp, first_warp
from tilework.analysis.liveness import Interval
from tilework.analysis.pending import CLEAN, NONE, Accesses, Filter, Pending, Walk, arrive_by_warps
from tilework.analysis.ring_slots import in_other_slots
from tilework.analysis.scratch import sort_trips
from tilework.analysis.warp_stores import WarpStores, warp_stores
from tilework.ir import amdg, gpu, tt, ttg, ttng
from tilework.ir.encodings import layout_of
from tilework.ir.functions import callee_of, modules
from tilework.ir.module_facts import find_num_warps
from tilework.ir.property_text import is_true
from tilework.ir.types import number_of
from tilework.layouts.conversion import conversion
from tilework.target import Target

BARRIERS = frozenset({gpu.GpuBarrierOp, ttg.LocalBarrierOp})
WAITS = frozenset({amdg.AsyncWaitOp, ttg.AsyncWaitOp, ttng.AsyncTMAStoreWaitOp})


@dataclass
class Barriers:
    """The ops that need a barrier in front of them, or behind them; `stores` need none, which warps make for themselves."""

    before: dict[Operation, None] = field(default_factory=dict)
    after: dict[Operation, None] = field(default_factory=dict)
    stores: WarpStores = field(default_factory=WarpStores)


def barriers(
    module: ModuleOp, target: Target, exempt: Filter | None = None, own: dict[str, Allocation] | None = None
) -> Barriers:
    """The barriers of a module whose buffers lie where `module_allocation` puts them; `own` are those of `module` if known."""
    found, alone = Barriers(stores=warp_stores(module)), first_warp(module)
    for table in modules(module):
        summaries: dict[str, Pending] = {}
        places = own if table is module and own is not None else module_allocation(table, target)
        for name, allocation in places.items():
            summaries[name] = BarrierWalk(allocation, summaries, found, exempt, alone).run()
    return found


class BarrierWalk(Walk):
    """One function; callees are done."""

    def __init__(
        self,
        allocation: Allocation,
        summaries: dict[str, Pending],
        found: Barriers,
        exempt: Filter | None,
        alone: FirstWarp,
    ) -> None:
        super().__init__(allocation)
        self.summaries, self.found, self.alone = summaries, found, alone
        self.exempt = either(found.stores.have, exempt) if found.stores.rows else exempt

    def op(self, op: Operation, state: Pending) -> Pending:
        """What the first warp does alone is one access: no barrier can be in it."""
        if op in self.alone.inside:
            if (run := self.alone.runs.get(op)) is None:
                return state
            own = CLEAN
            for inner in (inner for one in run for inner in one.walk()):
                own = own.join(self.accesses(inner))
            return self.touch(op, own, state)
        return super().op(op, state)

    def loop(self, op: Operation, state: Pending) -> Pending:
        """A body. If each round of it would wait for what is pending only in front of the loop, all wait there."""
        if op in self.found.before:
            return super().loop(op, state.behind_barrier())
        known = dict(self.found.before)
        behind = super().loop(op, state)
        each_round = self.found.before
        if len(each_round) == len(known):
            return behind
        self.found.before = known
        alone = super().loop(op, state.behind_barrier())
        if len(self.found.before) >= len(each_round):  # maybe others: these are for what the loop itself leaves
            self.found.before = each_round
            return behind
        self.found.before[op] = None
        return alone

    def visit(self, op: Operation, state: Pending) -> Pending:
        """The state behind `op`."""
        kind = type(op)
        if kind in BARRIERS:
            return state.behind_barrier()
        if kind is ttng.WarpGroupDotWaitOp:
            return behind_dots(state, number_of(op, "pendings") == 0)
        if op in self.found.stores.waits:
            return state
        if kind in WAITS:
            last = (
                fence if type(fence := op.next_op) is ttng.FenceAsyncSharedOp else op
            )  # each thread's, before they meet
            if last.next_op is None or type(last.next_op) not in BARRIERS:
                self.found.after[last] = None
            return state.behind_barrier()
        return self.access(op, state)

    def access(self, op: Operation, state: Pending) -> Pending:
        """Let `op` touch memory, behind a barrier if it must."""
        own = self.accesses(op)
        if own == CLEAN:
            return state
        scratch = self.allocation.scratch.get(op)
        if scratch is None:
            return self.touch(op, own, state)
        waits = self.waits(op, own, without(state, op) if waits_for_itself(op) else state)
        state = state.behind_barrier() if waits else state
        if type(op) is tt.CallOp:
            return state.join(shifted(self.summaries.get(callee_of(op), CLEAN), scratch.offset, op))
        if waits or not is_warp_synchronous(op):
            state = state.behind_barrier()
        return state.join(Pending(own.writes, own.writes))

    def touch(self, op: Operation, own: Pending, state: Pending) -> Pending:
        behind = (state.behind_barrier() if self.waits(op, own, state) else state).join(own)
        if type(op) is not ttng.WarpGroupDotOp:
            return behind
        is_started = is_true(op.properties["isAsync"])  # one that is not waits for all that were, too
        return replace(behind, running=behind.running | own.reads) if is_started else behind_dots(behind, True)

    def waits(self, op: Operation, own: Pending, state: Pending) -> bool:
        """Whether `op`, which makes the accesses `own`, needs a barrier in front."""
        if op in self.found.before or state.conflicts(own, self.exempt) or may_overtake(op, state):
            self.found.before[op] = None
            return True
        return False


def behind_dots(state: Pending, all_done: bool) -> Pending:
    """Products in the background are done, some or all of them, for the warp that waited: other warps may still read."""
    if not state.running:
        return state
    return Pending(state.reads | state.running, state.writes, NONE if all_done else state.running)


def either(first: Filter, second: Filter | None) -> Filter:
    return lambda before, after: first(before, after) or (second is not None and second(before, after))


def may_overtake(op: Operation, state: Pending) -> bool:
    """Whether one thread of a partition goes on while other warps of it still wait for a phase, which may then pass twice."""
    if type(op) not in BY_ONE_THREAD or not async_regions(op) or find_num_warps(op) == 1:
        return False
    return any(type(before) is ttng.WaitBarrierOp for _, before in state.reads)


# The first thread arms an mbarrier, one lane starts the copies that it counts, threads or warps arrive and wait for themselves.
# They may come to these in any order: a phase ends only when it is armed, all have arrived and its bytes are there.
PHASES = frozenset({
    ttng.BarrierExpectOp, ttng.WaitBarrierOp, ttng.AsyncCopyMbarrierArriveOp,
    ttng.AsyncTMACopyGlobalToLocalOp, ttng.AsyncTMAGatherOp, ttng.TakeTurnOp, ttng.GiveTurnOp,
})  # fmt: skip
BY_FIRST_THREAD = frozenset({ttng.InitBarrierOp, ttng.InvalBarrierOp})
COPIES = frozenset({ttng.AsyncTMACopyGlobalToLocalOp, ttng.AsyncTMAGatherOp})
READERS = frozenset({ttng.WarpGroupDotOp, ttg.LocalDotOp, ttg.LocalLoadOp})


def ordered_by_mbarrier(before: Operation, after: Operation) -> bool:
    """Whether an mbarrier does for two accesses what a barrier of all threads would do, or one thread makes both.

    What TMA writes is read behind a wait of the reading thread, to which a barrier would add nothing. Different buffers of a
    ring need no order at all.
    """
    if in_other_slots(before, after):
        return True
    first, second = type(before), type(after)
    if first in COPIES and second in READERS:
        return True
    if first is second is ttg.AsyncCopyGlobalToLocalOp:
        return bool(async_regions(before)) and are_alike(before, after)
    return (is_phase(before) and is_phase(after)) or (first is second and first in BY_FIRST_THREAD)


def is_phase(op: Operation) -> bool:
    return type(op) in PHASES or (type(op) is ttng.ArriveBarrierOp and arrive_by_warps(op) > 0)


def are_alike(copy: Operation, other: Operation) -> bool:
    """Whether each thread copies to the same parts of the buffers, which it has waited for itself in a partition."""
    return [value.type for value in copy.operands[:2]] == [value.type for value in other.operands[:2]]


def waits_for_itself(op: Operation) -> bool:
    """In a loop: each warp is where it was in the round before, and waits for its lanes before it writes there again."""
    return type(op) is ttg.ConvertLayoutOp and is_warp_synchronous(op)


def without(state: Pending, op: Operation) -> Pending:
    """What is pending of others."""
    reads, writes = (frozenset(one for one in some if one[1] is not op) for some in (state.reads, state.writes))
    return Pending(reads, writes)


def shifted(summary: Pending, offset: int, call: Operation) -> Pending:
    """What a callee leaves pending, in the frame that it has in the caller."""

    def moved(accesses: Accesses) -> Accesses:
        return frozenset((Interval(bytes.start + offset, bytes.end + offset), call) for bytes, _ in accesses)

    return Pending(moved(summary.reads), moved(summary.writes))


def is_warp_synchronous(op: Operation) -> bool:
    """Conversions through shared memory in which each warp reads only what it wrote."""
    if type(op) is tt.SortRunsOp:
        return all(trip.in_warps for trip in sort_trips(op))
    if type(op) is not ttg.ConvertLayoutOp:
        return False
    return conversion(layout_of(op.operands[0].type), layout_of(op.results[0].type)).kind == "warp"
