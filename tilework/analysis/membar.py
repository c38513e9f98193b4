"""Where threads must wait for each other's accesses to shared memory.

    ttg.local_store %x, %m           writes bytes 0 to 4096
    ttg.local_load %m                reads them: a barrier before, or a thread reads what another has not written yet
    ttg.local_store %y, %m           writes what others may still be reading: a barrier again

The state on the way through a function is what was read and written since the last barrier. An op that touches bytes
which are pending, one of the two a write, needs a barrier in front. An op with scratch memory writes it, waits in itself
and reads it, so behind it only that read is pending; not so a layout conversion that waits only within its warps.
Copies in the background are over at their wait, for the thread that started them: behind it comes a barrier. Loops are
followed until nothing changes. A call may write the whole frame of its callee; behind it, what the callee leaves
pending is.

All warps meet where `ttg.warp_specialize` begins and ends, and the regions order their accesses with mbarriers: within
each one nothing is pending at its start. What an mbarrier orders by itself may be exempted by a filter.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from tilework.analysis.allocation import Allocation, callee_name, module_allocation
from tilework.analysis.liveness import FOREVER, Interval
from tilework.ir import gpu, tt, ttg, ttng
from tilework.ir.encodings import layout_of
from tilework.ir.ttg.types import is_memdesc
from tilework.layouts.conversion import conversion

Access = tuple[Interval, Operation]
Accesses = frozenset[Access]
Filter = Callable[[Operation, Operation], bool]
NONE: Accesses = frozenset()
EVERYTHING = Interval(0, FOREVER)
BARRIERS = frozenset({gpu.GpuBarrierOp, ttg.LocalBarrierOp})
WAITS = frozenset({ttg.AsyncWaitOp, ttng.AsyncTMAStoreWaitOp})

# The operands that an op reads and writes, by number from the front or from the end.
READS: dict[type[Operation], tuple[int, ...]] = {
    ttg.LocalLoadOp: (0,),
    ttng.WarpGroupDotOp: (0, 1),
    ttng.AsyncTMACopyLocalToGlobalOp: (-1,),
    ttng.AsyncTMAReduceOp: (-1,),
    ttng.AsyncTMAScatterOp: (-1,),
    ttng.WaitBarrierOp: (0,),
}
WRITES: dict[type[Operation], tuple[int, ...]] = {
    ttg.LocalStoreOp: (1,),
    ttg.AsyncCopyGlobalToLocalOp: (1,),
    ttng.AsyncTMACopyGlobalToLocalOp: (-2, -3),
    ttng.AsyncTMAGatherOp: (-2, -3),
    ttng.InitBarrierOp: (0,),
    ttng.InvalBarrierOp: (0,),
    ttng.BarrierExpectOp: (0,),
    ttng.WaitBarrierOp: (0,),
    ttng.AsyncCopyMbarrierArriveOp: (0,),
}


@dataclass(frozen=True)
class Pending:
    """What was read and written since the last barrier."""

    reads: Accesses = NONE
    writes: Accesses = NONE

    def join(self, other: "Pending") -> "Pending":
        if other == self:
            return self
        return Pending(self.reads | other.reads, self.writes | other.writes)

    def conflicts(self, later: "Pending", exempt: Filter | None) -> bool:
        """Whether `later` touches pending bytes, one of the two writing them."""
        return (
            meet(self.writes, later.reads, exempt)
            or meet(self.reads, later.writes, exempt)
            or meet(self.writes, later.writes, exempt)
        )


def meet(earlier: Accesses, later: Accesses, exempt: Filter | None) -> bool:
    return any(
        mine.overlaps(theirs) and not (exempt is not None and exempt(before, after))
        for mine, before in earlier
        for theirs, after in later
    )


CLEAN = Pending()


@dataclass
class Barriers:
    """The ops that need a barrier in front of them, or behind them."""

    before: dict[Operation, None] = field(default_factory=dict)
    after: dict[Operation, None] = field(default_factory=dict)


def barriers(module: ModuleOp, capability: int, exempt: Filter | None = None) -> Barriers:
    """The barriers of a module whose buffers lie where `module_allocation` puts them."""
    found = Barriers()
    summaries: dict[str, Pending] = {}
    for name, allocation in module_allocation(module, capability).items():
        walk = Walk(allocation, summaries, found, exempt)
        walk.region(allocation.function.regions[0], CLEAN)
        summaries[name] = walk.returned
    return found


class Walk:
    """One function; callees are done."""

    def __init__(
        self, allocation: Allocation, summaries: dict[str, Pending], found: Barriers, exempt: Filter | None
    ) -> None:
        self.allocation, self.summaries, self.found, self.exempt = allocation, summaries, found, exempt
        self.returned = CLEAN
        self.own: dict[Operation, Pending] = {}

    def region(self, region: Region, state: Pending) -> Pending:
        """The state at the end of a region entered in `state`; for several blocks, at all their ends together."""
        blocks = region.blocks
        if not blocks:
            return state
        if len(blocks) == 1:
            return self.block(blocks[0], state)
        entered: dict[Block, Pending] = {blocks[0]: state}
        left = CLEAN
        open_blocks = [blocks[0]]
        while open_blocks:
            block = open_blocks.pop(0)
            behind = self.block(block, entered[block])
            following = block.last_op.successors if block.last_op is not None else ()
            if not following:
                left = left.join(behind)
            for successor in following:
                known = entered.get(successor)
                joined = behind if known is None else known.join(behind)
                if joined != known:
                    entered[successor] = joined
                    if successor not in open_blocks:
                        open_blocks.append(successor)
        return left

    def block(self, block: Block, state: Pending) -> Pending:
        for op in block.ops:
            state = self.op(op, state)
        return state

    def op(self, op: Operation, state: Pending) -> Pending:
        """The state behind `op`."""
        kind = type(op)
        if (rule := REGION_RULES.get(kind)) is not None:
            return rule(self, op, state)
        if kind in BARRIERS:
            return CLEAN
        if kind in WAITS:
            following = op.next_op
            if following is None or type(following) not in BARRIERS:
                self.found.after[op] = None
            return CLEAN
        if kind is tt.ReturnOp:
            self.returned = self.returned.join(state)
            return state
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
            return state.join(shifted(self.summaries.get(callee_name(op), CLEAN), scratch.offset, op))
        if waits or not is_warp_synchronous(op):
            state = CLEAN
        return state.join(Pending(reads=frozenset({(scratch.bytes, op)})))

    def accesses(self, op: Operation) -> Pending:
        """What `op` itself reads and writes."""
        if (known := self.own.get(op)) is None:
            known = self.own[op] = self.find_accesses(op)
        return known

    def find_accesses(self, op: Operation) -> Pending:
        kind = type(op)
        scratch = self.allocation.scratch.get(op)
        if scratch is not None:
            return Pending(writes=frozenset({(scratch.bytes, op)}))
        if kind is ttg.LocalAllocOp:
            return Pending(writes=self.touched(op, op.results)) if op.operands else CLEAN
        if kind is ttng.ArriveBarrierOp:
            everything: Accesses = frozenset({(EVERYTHING, op)})
            return Pending(everything, everything)
        read = [op.operands[index] for index in READS.get(kind, ())]
        written = [op.operands[index] for index in WRITES.get(kind, ())]
        return Pending(self.touched(op, read), self.touched(op, written)) if read or written else CLEAN

    def touched(self, op: Operation, values: Sequence[SSAValue]) -> Accesses:
        """The bytes behind memory descriptors; other values touch nothing."""
        return frozenset(
            (buffer.bytes, op)
            for value in values
            if is_memdesc(value.type)
            for buffer in self.allocation.buffers_of(value)
        )

    def loop(self, op: Operation, state: Pending) -> Pending:
        """A body that runs any number of times."""
        while True:
            joined = state.join(self.region(op.regions[0], state))
            if joined == state:
                return state
            state = joined

    def while_loop(self, op: Operation, state: Pending) -> Pending:
        while True:
            checked = self.region(op.regions[0], state)
            joined = state.join(self.region(op.regions[1], checked))
            if joined == state:
                return checked
            state = joined

    def branches(self, op: Operation, state: Pending) -> Pending:
        left = CLEAN
        for region in op.regions:
            left = left.join(self.region(region, state))
        return left

    def specialized(self, op: Operation, state: Pending) -> Pending:
        assert isinstance(op, ttg.WarpSpecializeOp)
        for region in (op.default_region, *op.partitions):
            self.region(region, CLEAN)
        return CLEAN


REGION_RULES: dict[type[Operation], Callable[[Walk, Operation, Pending], Pending]] = {
    scf.ForOp: Walk.loop,
    scf.WhileOp: Walk.while_loop,
    scf.IfOp: Walk.branches,
    scf.ExecuteRegionOp: Walk.branches,
    ttg.MaskOp: Walk.branches,
    ttg.WarpSpecializeOp: Walk.specialized,
}


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
