"""Accesses to shared memory that nothing has ordered yet, followed through the control flow of a function.

`Walk` visits the ops in the order they run. The state on the way is `Pending`: the bytes that were read and written,
and by which op. Where ways meet the states are joined, and loops are followed until nothing changes. What an op does to
the state is left to the analysis that derives from it: barriers between threads (`membar.py`), and fences between the
two ways to shared memory (`proxy_fences.py`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from tilework.analysis.allocation import Allocation
from tilework.analysis.liveness import FOREVER, Interval
from tilework.ir import amdg, tt, ttg, ttng
from tilework.ir.module_facts import find_num_warps
from tilework.ir.nesting import successors
from tilework.ir.ttg.memdesc_types import is_memdesc

Access = tuple[Interval, Operation]
Accesses = frozenset[Access]
Filter = Callable[[Operation, Operation], bool]
NONE: Accesses = frozenset()
EVERYTHING = Interval(0, FOREVER)

# The operands that an op reads and writes, by number from the front or from the end.
READS: dict[type[Operation], tuple[int, ...]] = {
    ttg.LocalLoadOp: (0,),
    ttg.LocalDotOp: (0, 1),
    ttng.WarpGroupDotOp: (0, 1),
    ttng.AsyncTMACopyLocalToGlobalOp: (-1,),
    ttng.AsyncTMAReduceOp: (-1,),
    ttng.AsyncTMAScatterOp: (-1,),
    ttng.WaitBarrierOp: (0,),
    ttng.TakeTurnOp: (0,),
}
WRITES: dict[type[Operation], tuple[int, ...]] = {
    ttg.LocalStoreOp: (1,),
    ttg.AsyncCopyGlobalToLocalOp: (1,),
    amdg.BufferLoadToLocalOp: (0,),
    ttng.AsyncTMACopyGlobalToLocalOp: (-2, -3),
    ttng.AsyncTMAGatherOp: (-2, -3),
    ttng.InitBarrierOp: (0,),
    ttng.InvalBarrierOp: (0,),
    ttng.BarrierExpectOp: (0,),
    ttng.ArriveBarrierOp: (0,),
    ttng.WaitBarrierOp: (0,),
    ttng.AsyncCopyMbarrierArriveOp: (0,),
    ttng.TakeTurnOp: (0,),
    ttng.GiveTurnOp: (0,),
}


def arrive_by_warps(op: Operation) -> int:
    """How often a lane of each warp arrives, behind what its own warp has done; 0: one thread arrives, behind a barrier."""
    count, warps = op.properties["count"], find_num_warps(op) or 1
    assert isinstance(count, IntegerAttr)
    return 0 if count.value.data % warps else count.value.data // warps


@dataclass(frozen=True)
class Pending:
    """What was read and written since the last barrier, and what products in the background may still read behind it."""

    reads: Accesses = NONE
    writes: Accesses = NONE
    running: Accesses = NONE

    def join(self, other: "Pending") -> "Pending":
        if other == self:
            return self
        return Pending(self.reads | other.reads, self.writes | other.writes, self.running | other.running)

    def behind_barrier(self) -> "Pending":
        return Pending(running=self.running) if self.running else CLEAN

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


class Walk:
    """Follows the accesses of one function."""

    def __init__(self, allocation: Allocation) -> None:
        self.allocation = allocation
        self.returned = CLEAN
        self.own: dict[Operation, Pending] = {}

    def visit(self, op: Operation, state: Pending) -> Pending:
        """The state behind `op`, which holds no region that runs on its own."""
        raise AssertionError(f"{type(self).__name__} does not say what {op.name} does")

    def run(self, entered: Pending = CLEAN) -> Pending:
        """Visit the whole function; what is pending where it returns."""
        self.region(self.allocation.function.regions[0], entered)
        return self.returned

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
            if not successors(block):
                left = left.join(behind)
            for successor in successors(block):
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
        if (rule := REGION_RULES.get(type(op))) is not None:
            return rule(self, op, state)
        if type(op) is tt.ReturnOp:
            self.returned = self.returned.join(state)
            return state
        return self.visit(op, state)

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
        if kind is ttng.ArriveBarrierOp and not arrive_by_warps(op):
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
        self.visit(op, state)  # the captured values are stored
        for region in (op.default_region, *op.partitions):
            self.region(region, CLEAN)
        return CLEAN


REGION_RULES: dict[type[Operation], Callable[[Walk, Operation, Pending], Pending]] = {
    scf.ForOp: lambda walk, op, state: walk.loop(op, state),
    scf.WhileOp: Walk.while_loop,
    scf.IfOp: Walk.branches,
    scf.ExecuteRegionOp: Walk.branches,
    ttg.MaskOp: Walk.branches,
    ttg.WarpSpecializeOp: lambda walk, op, state: walk.specialized(op, state),
}
