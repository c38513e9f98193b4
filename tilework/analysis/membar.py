"""Barriers between accesses of threads to shared memory, and fences between its generic and async proxy.

    ttg.local_store %x, %m           writes bytes 0 to 4096
    ttg.local_load %m                reads them: a barrier before, or a thread reads what another has not written yet
    ttg.local_store %y, %m           writes what others may still be reading: a barrier again

`Walk` visits the ops in execution order. The state on the way is `Pending`: the bytes that were read and written since
the last barrier, and by which op. States are joined where paths meet, and loops are followed to a fixpoint.
`BarrierWalk` and `FenceWalk` define the effect of an op on the state.

An op that accesses pending bytes, one of the two a write, needs a barrier in front. An op with scratch memory writes
it, waits in itself and reads it, so after it nothing else is pending, except for a layout conversion that waits only
within its warps. That one needs no barrier for itself, from one iteration of a loop to the next, and neither do stores
by TMA that warps make on their own (`single_warp.py`). Asynchronous copies are complete at their wait, for the thread
that started them: a barrier follows it. An asynchronous dot reads until its wait, each warp for itself: a barrier
between the two orders nothing of it. What is pending only in front of a loop is waited for there, not in each
iteration. A call may write the whole frame of its callee; after it, what the callee leaves pending is.

Two parts of a buffer that have no element in common need no order. All warps synchronise where `ttg.warp_specialize`
begins and ends, and the regions order their accesses with mbarriers: within each one nothing is pending at its start. A
filter may exempt accesses that an mbarrier orders.

The async proxy needs a fence before it writes shared memory that threads have accessed through the generic proxy, and
before it reads what `cp.async` has written there:

    %x = ttg.local_load %m                                        through the generic proxy
    ttng.async_tma_copy_global_to_local %d[...] %n, ...           through the async proxy, into the same bytes

TMA may overtake the load: between the two belongs a `ttng.fence_async_shared` (PTX ISA, "Async proxy"). Pending is what
was read and written since the last fence, by address: two buffers may have the same bytes, one after the other. Reads
of tensor cores and writes of TMA loads do not count; they are async proxy too. Nor do stores of threads to memory that
tensor cores or TMA read next: code generation fences these at once.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import field, replace

from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from tilework.analysis.alias import in_other_slots
from tilework.analysis.allocation import (
    FOREVER,
    Allocation,
    Allocations,
    Interval,
    allocations,
    allocations_by_module,
    async_regions,
)
from tilework.analysis.global_order import COPIES_IN, COPIES_OUT
from tilework.analysis.scratch import sort_trips
from tilework.analysis.single_warp import BY_ONE_THREAD, FirstWarp, WarpStores, first_warp, warp_stores
from tilework.ir import amdg, scf, tt, ttg, ttng
from tilework.ir.attr_text import is_true
from tilework.ir.encodings import layout_of, shared_of
from tilework.ir.functions import callee_of, is_private, ops_in_order
from tilework.ir.module_facts import find_num_warps
from tilework.ir.nesting import successors
from tilework.ir.ttg.memory_types import is_memdesc
from tilework.ir.types import array_values, int_property, shape_of
from tilework.layouts.conversion import conversion
from tilework.light_dataclass import light_dataclass
from tilework.target import Target

Access = tuple[Interval, Operation]
Accesses = frozenset[Access]
Filter = Callable[[Operation, Operation], bool]
NONE: Accesses = frozenset()
EVERYTHING = Interval(0, FOREVER)

# The operands that an op reads and writes, as indices from the front or from the end.
READS: dict[type[Operation], tuple[int, ...]] = {
    ttg.LocalLoadOp: (0,),
    ttg.LocalDotOp: (0, 1),
    ttg.LocalGatherOp: (0,),
    amdg.LocalLoadPackedTransposedOp: (0,),
    amdg.AsyncCopyLocalToGlobalOp: (0,),
    ttng.WarpGroupDotOp: (0, 1),
    ttng.AsyncTMACopyLocalToGlobalOp: (-1,),
    ttng.AsyncTMAReduceOp: (-1,),
    ttng.AsyncTMAScatterOp: (-1,),
    ttng.WaitBarrierOp: (0,),
    ttng.PingPongWaitOp: (0,),
}
WRITES: dict[type[Operation], tuple[int, ...]] = {
    ttg.LocalStoreOp: (1,),
    ttg.LocalScatterOp: (0,),
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
    ttng.PingPongWaitOp: (0,),
    ttng.PingPongSignalOp: (0,),
}


def arrive_by_warps(op: Operation) -> int:
    """Return how often a lane of each warp arrives, after what its own warp has done; 0: one thread arrives, after a
    barrier."""
    count, warps = op.properties["count"], find_num_warps(op) or 1
    assert isinstance(count, IntegerAttr)
    return 0 if count.value.data % warps else count.value.data // warps


@light_dataclass
class Pending:
    """The accesses since the last barrier, and those that asynchronous dots may still make after it."""

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
        """Return True if `later` accesses pending bytes and one of the two writes them."""
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
        """Return the state after `op`, which has no region that runs on its own."""
        raise AssertionError(f"{type(self).__name__} does not say what {op.name} does")

    def run(self, entered: Pending = CLEAN) -> Pending:
        """Visit the whole function; return what is pending where it returns."""
        self.region(self.allocation.function.regions[0], entered)
        return self.returned

    def region(self, region: Region, state: Pending) -> Pending:
        """Return the state at the end of a region entered in `state`; for several blocks, at all their ends
        together."""
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
        """Return the state after `op`."""
        if (rule := REGION_RULES.get(type(op))) is not None:
            return rule(self, op, state)
        if type(op) is tt.ReturnOp:
            self.returned = self.returned.join(state)
            return state
        return self.visit(op, state)

    def accesses(self, op: Operation) -> Pending:
        """Return what `op` itself reads and writes."""
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
        """Return the bytes behind memory descriptors; other values access nothing."""
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


WAITS = frozenset({amdg.AsyncWaitOp, ttg.AsyncWaitOp, ttng.AsyncTMAStoreWaitOp})


@light_dataclass(frozen=False)
class Barriers:
    """The ops that need a barrier before them, or after them. `stores` are stores by single warps, which need none;
    `alone` has the ops that only the first warp executes."""

    before: dict[Operation, None] = field(default_factory=dict)
    after: dict[Operation, None] = field(default_factory=dict)
    stores: WarpStores = field(default_factory=WarpStores)
    alone: FirstWarp = field(default_factory=FirstWarp)


def barriers(
    module: ModuleOp, target: Target, exempt: Filter | None = None, own: Allocations | None = None
) -> Barriers:
    """Return the barriers of a module; buffers have the offsets of `module_allocation`, and `own` are the offsets for
    `module` itself if they are known."""
    found = Barriers(stores=warp_stores(module), alone=first_warp(module))
    for _, functions in allocations_by_module(module, target, own):
        summaries: dict[str, Pending] = {}
        for name, allocation in functions.items():
            summaries[name] = BarrierWalk(allocation, summaries, found, exempt).run()
    return found


class BarrierWalk(Walk):
    """Finds the barriers of one function, after those of its callees."""

    def __init__(
        self,
        allocation: Allocation,
        summaries: dict[str, Pending],
        found: Barriers,
        exempt: Filter | None,
    ) -> None:
        super().__init__(allocation)
        self.summaries, self.found, self.alone = summaries, found, found.alone
        exempt = either(in_other_parts, exempt)
        self.exempt = either(found.stores.are_ordered, exempt) if found.stores.rows else exempt

    def op(self, op: Operation, state: Pending) -> Pending:
        """A run that the first warp executes alone is one access: no barrier can be in it."""
        if op in self.alone.inside:
            if (run := self.alone.runs.get(op)) is None:
                return state
            own = CLEAN
            for inner in (inner for one in run for inner in one.walk()):
                own = own.join(self.accesses(inner))
            return self.touch(op, own, state)
        return super().op(op, state)

    def loop(self, op: Operation, state: Pending) -> Pending:
        """A body. If each iteration would wait for what is pending only in front of the loop, all wait there."""
        if op in self.found.before:
            return super().loop(op, state.behind_barrier())
        known = dict(self.found.before)
        behind = super().loop(op, state)
        each_iteration = self.found.before
        if len(each_iteration) == len(known):
            return behind
        self.found.before = known
        alone = super().loop(op, state.behind_barrier())
        # maybe others: these are for what the loop itself leaves pending
        if len(self.found.before) >= len(each_iteration):
            self.found.before = each_iteration
            return behind
        self.found.before[op] = None
        return alone

    def visit(self, op: Operation, state: Pending) -> Pending:
        """Return the state after `op`."""
        kind = type(op)
        if ttg.is_local_barrier(op):
            return state.behind_barrier()
        if kind is ttng.WarpGroupDotWaitOp:
            return behind_dots(state, int_property(op, "pendings") == 0)
        if op in self.found.stores.waits:
            return state
        if kind in WAITS:
            # each thread fences before they synchronise
            last = fence if type(fence := op.next_op) is ttng.FenceAsyncSharedOp else op
            if not ttg.is_local_barrier(last.next_op):
                self.found.after[last] = None
            return state.behind_barrier()
        return self.access(op, state)

    def access(self, op: Operation, state: Pending) -> Pending:
        """Let `op` access memory, after a barrier if it must."""
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
        is_started = is_true(op.properties["isAsync"])  # a synchronous one waits for all asynchronous ones, too
        return replace(behind, running=behind.running | own.reads) if is_started else behind_dots(behind, True)

    def waits(self, op: Operation, own: Pending, state: Pending) -> bool:
        """Return True if `op`, which makes the accesses `own`, needs a barrier in front."""
        if op in self.found.before or state.conflicts(own, self.exempt) or may_overtake(op, state):
            self.found.before[op] = None
            return True
        return False


def behind_dots(state: Pending, all_done: bool) -> Pending:
    """Asynchronous dots are complete, some or all of them, for the warp that waited: other warps may still read."""
    if not state.running:
        return state
    return Pending(state.reads | state.running, state.writes, NONE if all_done else state.running)


def either(first: Filter, second: Filter | None) -> Filter:
    return lambda before, after: first(before, after) or (second is not None and second(before, after))


def in_other_parts(before: Operation, after: Operation) -> bool:
    """Return True if two accesses are to parts of one buffer that have no element in common."""
    mine, theirs = part_of(before), part_of(after)
    if mine is None or theirs is None or mine[0] is not theirs[0]:
        return False
    pairs = zip(mine[1], theirs[1], strict=True)
    return any(not one.overlaps(other) for one, other in pairs)


# The operand by which an op accesses the only buffer that it accesses.
ONLY_BUFFER: dict[type[Operation], int] = {ttg.LocalLoadOp: 0, ttg.LocalStoreOp: 1, ttg.AsyncCopyGlobalToLocalOp: 1}


def part_of(op: Operation) -> tuple[SSAValue, tuple[Interval, ...]] | None:
    """Return the buffer of which `op` accesses a part, and the indices in each dimension."""
    if (index := ONLY_BUFFER.get(type(op))) is None:
        return None
    memory = op.operands[index]
    sizes = shape_of(memory.type)
    starts = [0] * len(sizes)
    while isinstance(memory.owner, ttg.MemDescSubsliceOp):
        starts = [start + offset for start, offset in zip(starts, array_values(memory.owner.offsets), strict=True)]
        memory = memory.owner.src
    return memory, tuple(Interval(start, start + size) for start, size in zip(starts, sizes, strict=True))


def may_overtake(op: Operation, state: Pending) -> bool:
    """Return True if one thread of a partition continues while other warps of it still wait for a phase, which may then
    pass twice."""
    if type(op) not in BY_ONE_THREAD or not async_regions(op) or find_num_warps(op) == 1:
        return False
    return any(type(before) is ttng.WaitBarrierOp for _, before in state.reads)


# The first thread arms an mbarrier, one lane starts the copies that it counts, threads or warps arrive and wait on
# their own. They may execute these in any order: a phase ends only when it is armed, all have arrived and its bytes are
# there.
PHASES = frozenset({
    ttng.BarrierExpectOp, ttng.WaitBarrierOp, ttng.AsyncCopyMbarrierArriveOp,
    ttng.AsyncTMACopyGlobalToLocalOp, ttng.AsyncTMAGatherOp, ttng.PingPongWaitOp, ttng.PingPongSignalOp,
})  # fmt: skip
BY_FIRST_THREAD = frozenset({ttng.InitBarrierOp, ttng.InvalBarrierOp})
READERS = frozenset({ttng.WarpGroupDotOp, ttg.LocalDotOp, ttg.LocalLoadOp, ttg.LocalGatherOp})


def ordered_by_mbarrier(before: Operation, after: Operation) -> bool:
    """Return True if an mbarrier orders two accesses as a barrier of all threads would, or one thread makes both.

    What TMA writes is read after a wait of the reading thread, to which a barrier would add nothing. Different slots
    of a ring buffer need no order at all.
    """
    if in_other_slots(before, after):
        return True
    first, second = type(before), type(after)
    if first in COPIES_IN and second in READERS:
        return True
    if first is second is ttg.AsyncCopyGlobalToLocalOp:
        return bool(async_regions(before)) and are_alike(before, after)
    return (is_phase(before) and is_phase(after)) or (first is second and first in BY_FIRST_THREAD)


def is_phase(op: Operation) -> bool:
    return type(op) in PHASES or (type(op) is ttng.ArriveBarrierOp and arrive_by_warps(op) > 0)


def are_alike(copy: Operation, other: Operation) -> bool:
    """Return True if each thread copies to the same parts of the buffers, for which it has waited itself in a
    partition."""
    return [value.type for value in copy.operands[:2]] == [value.type for value in other.operands[:2]]


def waits_for_itself(op: Operation) -> bool:
    """Return True if each warp accesses the same bytes in every iteration of a loop, and waits for its lanes before it
    writes there again."""
    return type(op) is ttg.ConvertLayoutOp and is_warp_synchronous(op)


def without(state: Pending, op: Operation) -> Pending:
    """Return what is pending of other ops."""
    reads, writes = (frozenset(one for one in some if one[1] is not op) for some in (state.reads, state.writes))
    return Pending(reads, writes)


def shifted(summary: Pending, offset: int, call: Operation) -> Pending:
    """Return what a callee leaves pending, in its frame in the caller."""

    def moved(accesses: Accesses) -> Accesses:
        return frozenset((Interval(bytes.start + offset, bytes.end + offset), call) for bytes, _ in accesses)

    return Pending(moved(summary.reads), moved(summary.writes))


def is_warp_synchronous(op: Operation) -> bool:
    """Return True for conversions through shared memory in which each warp reads only what it wrote."""
    if type(op) is tt.SortRunsOp:
        return all(trip.in_warps for trip in sort_trips(op))
    if type(op) is not ttg.ConvertLayoutOp:
        return False
    return conversion(layout_of(op.operands[0].type), layout_of(op.results[0].type)).kind == "warp"


def proxy_fences(module: ModuleOp, target: Target, own: Allocations | None = None) -> list[Operation]:
    """Return the ops that need a fence in front of them, in program order; `own` is as for `barriers`."""
    found: dict[Operation, None] = {}
    kinds = {type(op) for op in ops_in_order(*module.regions)}
    if kinds.isdisjoint(COPIES_IN) and (kinds.isdisjoint(ASYNC_READS) or kinds.isdisjoint(FILLS)):
        return []
    for allocation in allocations(module, target, own):
        # callers have used the memory of a function that is called
        everything: Accesses = frozenset({(EVERYTHING, allocation.function)})
        FenceWalk(allocation, found).run(Pending(everything, everything) if is_private(allocation.function) else CLEAN)
    return [op for op in ops_in_order(*module.regions) if op in found] if found else []


ASYNC_READS = frozenset({ttng.WarpGroupDotOp, *COPIES_OUT})
STORES: dict[type[Operation], Callable[[Operation], SSAValue]] = {
    ttg.LocalStoreOp: lambda op: op.operands[1],
    ttg.LocalScatterOp: lambda op: op.operands[0],
    ttg.LocalAllocOp: lambda op: op.results[0],
}
FILLS = frozenset({ttg.AsyncCopyGlobalToLocalOp, *STORES})


def is_visible(before: Operation, _: Operation) -> bool:
    """Return True if the async proxy sees what `before` has written, or does not read it: stores are fenced at once."""
    if (memory := STORES.get(type(before))) is not None:
        return (layout := shared_of(memory(before).type)) is not None and layout.is_matrix_tile
    return type(before) is not ttg.AsyncCopyGlobalToLocalOp


class FenceWalk(Walk):
    """Finds the fences of one function."""

    def __init__(self, allocation: Allocation, found: dict[Operation, None]) -> None:
        super().__init__(allocation)
        self.found = found

    def visit(self, op: Operation, state: Pending) -> Pending:
        kind = type(op)
        if kind is ttng.FenceAsyncSharedOp:
            return CLEAN
        if kind in COPIES_IN:
            written = Pending(writes=self.touched(op, [op.operands[-2]]))
            if op in self.found or state.conflicts(written, None):
                self.found[op] = None
                return CLEAN
            return state
        if kind in ASYNC_READS:
            read = Pending(reads=self.touched(op, op.operands))
            if op in self.found or state.conflicts(read, is_visible):
                self.found[op] = None
                state = CLEAN
        return state if kind is ttng.WarpGroupDotOp else state.join(self.accesses(op))

    def specialized(self, op: Operation, state: Pending) -> Pending:
        """Partitions do not see earlier accesses, so a fence for those comes before all of them. What one partition
        fills another may read, behind a barrier, so it is pending when that begins."""
        assert isinstance(op, ttg.WarpSpecializeOp)
        inner = list(op.walk())
        written = self.touched_by(inner, COPIES_IN, lambda copy: [copy.operands[-2]])
        read = self.touched_by(inner, ASYNC_READS, lambda reader: reader.operands)
        if (
            op in self.found
            or state.conflicts(Pending(writes=written), None)
            or state.conflicts(Pending(reads=read), is_visible)
        ):
            self.found[op] = None
            state = CLEAN
        regions = (op.default_region, *op.partitions)
        for region in regions:
            others = [each for other in regions if other is not region for each in ops_in_order(other)]
            filled = self.touched_by(others, FILLS, lambda fill: [*fill.operands, *fill.results])
            state = state.join(self.region(region, self.accesses(op).join(Pending(writes=filled))))
        return state

    def touched_by(
        self,
        ops: Iterable[Operation],
        kinds: Collection[type[Operation]],
        memory: Callable[[Operation], Sequence[SSAValue]],
    ) -> Accesses:
        """Return the bytes that the ops of some kinds access through the memory descriptors that `memory` returns."""
        return frozenset(access for op in ops if type(op) in kinds for access in self.touched(op, memory(op)))
