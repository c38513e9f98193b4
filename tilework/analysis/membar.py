"""Where threads must wait for each other's accesses to shared memory.

    ttg.local_store %x, %m           writes bytes 0 to 4096
    ttg.local_load %m                reads them: a barrier before, or a thread reads what another has not written yet
    ttg.local_store %y, %m           writes what others may still be reading: a barrier again

The state on the way through a function is what was read and written since the last barrier. An op that touches bytes
which are pending, one of the two a write, needs a barrier in front. An op with scratch memory writes it, waits in
itself and reads it, so behind it nothing else is pending; not so a layout conversion that waits only within its warps.
Copies in the background are over at their wait, for the thread that started them: behind it comes a barrier. Loops are
followed until nothing changes. A call may write the whole frame of its callee; behind it, what the callee leaves
pending is.

All warps meet where `ttg.warp_specialize` begins and ends, and the regions order their accesses with mbarriers: within
each one nothing is pending at its start. What an mbarrier orders by itself may be exempted by a filter.
"""

from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from tilework.analysis.allocation import Allocation, module_allocation
from tilework.analysis.liveness import Interval
from tilework.analysis.pending import CLEAN, Accesses, Filter, Pending, Walk
from tilework.ir import gpu, tt, ttg, ttng
from tilework.ir.encodings import layout_of
from tilework.ir.functions import callee_of, modules
from tilework.layouts.conversion import conversion
from tilework.target import Target

BARRIERS = frozenset({gpu.GpuBarrierOp, ttg.LocalBarrierOp})
WAITS = frozenset({ttg.AsyncWaitOp, ttng.AsyncTMAStoreWaitOp})


@dataclass
class Barriers:
    """The ops that need a barrier in front of them, or behind them."""

    before: dict[Operation, None] = field(default_factory=dict)
    after: dict[Operation, None] = field(default_factory=dict)


def barriers(module: ModuleOp, target: Target, exempt: Filter | None = None) -> Barriers:
    """The barriers of a module whose buffers lie where `module_allocation` puts them."""
    found = Barriers()
    for table in modules(module):
        summaries: dict[str, Pending] = {}
        for name, allocation in module_allocation(table, target).items():
            summaries[name] = BarrierWalk(allocation, summaries, found, exempt).run()
    return found


class BarrierWalk(Walk):
    """One function; callees are done."""

    def __init__(
        self, allocation: Allocation, summaries: dict[str, Pending], found: Barriers, exempt: Filter | None
    ) -> None:
        super().__init__(allocation)
        self.summaries, self.found, self.exempt = summaries, found, exempt

    def visit(self, op: Operation, state: Pending) -> Pending:
        """The state behind `op`."""
        kind = type(op)
        if kind in BARRIERS:
            return CLEAN
        if kind in WAITS:
            following = op.next_op
            if following is None or type(following) not in BARRIERS:
                self.found.after[op] = None
            return CLEAN
        return self.access(op, state)

    def access(self, op: Operation, state: Pending) -> Pending:
        """Let `op` touch memory, behind a barrier if it must."""
        own = self.accesses(op)
        if own == CLEAN:
            return state
        waits = op in self.found.before or state.conflicts(own, self.exempt)
        if waits:
            self.found.before[op] = None
            state = CLEAN
        scratch = self.allocation.scratch.get(op)
        if scratch is None:
            return state.join(own)
        if type(op) is tt.CallOp:
            return state.join(shifted(self.summaries.get(callee_of(op), CLEAN), scratch.offset, op))
        if waits or not is_warp_synchronous(op):
            state = CLEAN
        return state.join(Pending(own.writes, own.writes))


# The first thread arms an mbarrier, one lane starts the copies that it counts, every thread waits for itself. Threads may
# come to these in any order: a phase ends only when it is armed and its bytes are there.
PHASES = frozenset({ttng.BarrierExpectOp, ttng.WaitBarrierOp, ttng.AsyncTMACopyGlobalToLocalOp, ttng.AsyncTMAGatherOp})
BY_ONE_THREAD = frozenset({ttng.InitBarrierOp, ttng.InvalBarrierOp})
COPIES = frozenset({ttng.AsyncTMACopyGlobalToLocalOp, ttng.AsyncTMAGatherOp})
READERS = frozenset({ttng.WarpGroupDotOp, ttg.LocalLoadOp})


def ordered_by_mbarrier(before: Operation, after: Operation) -> bool:
    """Whether an mbarrier does for two accesses what a barrier of all threads would do, or one thread makes both.

    What TMA writes is read behind a wait of the reading thread, to which a barrier would add nothing.
    """
    first, second = type(before), type(after)
    if first in COPIES and second in READERS:
        return True
    return (first in PHASES and second in PHASES) or (first is second and first in BY_ONE_THREAD)


def shifted(summary: Pending, offset: int, call: Operation) -> Pending:
    """What a callee leaves pending, in the frame that it has in the caller."""

    def moved(accesses: Accesses) -> Accesses:
        return frozenset((Interval(bytes.start + offset, bytes.end + offset), call) for bytes, _ in accesses)

    return Pending(moved(summary.reads), moved(summary.writes))


def is_warp_synchronous(op: Operation) -> bool:
    """A conversion through shared memory in which each warp reads only what it wrote."""
    if type(op) is not ttg.ConvertLayoutOp:
        return False
    return conversion(layout_of(op.operands[0].type), layout_of(op.results[0].type)).kind == "warp"
