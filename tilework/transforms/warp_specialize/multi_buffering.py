"""Ring buffers with barriers, and the code of producer and consumers at each load.

    %buffers = ttg.local_alloc : () -> !ttg.memdesc<3x128x64xf16>        for each channel
    %full, %empty = three barriers each                                  full: one arrival and the bytes;
                                                                         empty: an arrival of each consumer warp
    producer    wait_barrier %empty[i], phase ^ 1;  barrier_expect %full[i], bytes;  copies to %buffers[i]
    consumer    wait_barrier %full[i], phase;  reads %buffers[i] ...     arrive_barrier %empty[i] (`release`)

All loops around a ring buffer carry the index and the phase, separately in producer and consumers, so that they
continue from tile to tile. A wait on a fresh barrier for the phase before the first one returns at once, so the
producer starts immediately.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field

from xdsl.dialects.builtin import LocationAttr, UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from tilework.analysis.alias import aliases
from tilework.ir import arith, scf, tt, ttg, ttng
from tilework.ir.attr_text import is_true
from tilework.ir.create import clone_into, create_op
from tilework.ir.functions import ops_in_order
from tilework.ir.nesting import body_of, enclosing_op, end_of, ops_around, ops_behind, start_of
from tilework.ir.rewrite import erase_op, insert_after, replace_all_uses
from tilework.ir.scf import also_carry, also_give, also_yield, both_sides
from tilework.ir.ttg.memory_types import barrier_type, memdesc_type
from tilework.ir.types import element_type, i1, i32, int_property, shape_of
from tilework.light_dataclass import light_dataclass
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.ttg.pipeline.lower_loads import (
    async_copy,
    circular_increment,
    copy_block,
    replace_memory,
)
from tilework.transforms.ttg.pipeline.wgmma import wait_for
from tilework.transforms.warp_specialize.channels import Ring, readers_of

RingPosition = tuple[SSAValue, SSAValue]  # the index of a stage, and the phase of its barriers


@light_dataclass(frozen=False, eq=False)
class Memory:
    """The buffers of the channels of a ring, and its barriers. A buffer that is written once needs no `empty` barrier.

    Each warp of a consumer arrives on "empty" separately, `warps` in all, so that warps need not wait for each other.
    """

    buffers: list[SSAValue]
    full: SSAValue
    empty: SSAValue | None
    warps: int


def make_memory(code: Emitter, ring: Ring, producers: int, consumers: int, warps: int) -> Memory:
    """Allocate buffers and barriers, for `producers` copying threads or one that issues TMA, and consumers of `warps`
    warps.
    """
    buffers: list[SSAValue] = []
    for channel in ring.channels:
        result = channel.load.results[0].type
        shape = (ring.stages, *shape_of(result))
        kind = memdesc_type(shape, element_type(result), channel.encoding, True)
        buffers.append(code.append(ttg.LocalAllocOp.make(None, kind, channel.load.location)))
    by_thread = any(channel.contiguity for channel in ring.channels)
    by_descriptor = any(not channel.contiguity for channel in ring.channels)
    full = make_barriers(code, ring.stages, producers * by_thread + by_descriptor)
    empty = make_barriers(code, ring.stages, consumers * warps) if ring.is_reused else None
    return Memory(buffers, full, empty, warps)


def make_barriers(code: Emitter, count: int, arrivals: int) -> SSAValue:
    memory = code.append(ttg.LocalAllocOp.make(None, barrier_type(1, count), code.loc))
    for position in range(count):
        one = code.append(ttg.MemDescIndexOp.make(memory, code.constant(position, i32), code.loc))
        code.ops.append(ttng.InitBarrierOp.make(one, arrivals, code.loc))
    return memory


@light_dataclass(frozen=False, eq=False)
class Program:
    """A copy of a function's body that becomes a region, and the maps from original ops and blocks to it."""

    region: Region
    clones: dict[Operation, Operation]
    blocks: dict[Block, Block]
    positions: dict[tuple[frozenset[Block], int], dict[Block, RingPosition]] = field(default_factory=dict)
    loads: set[Operation] = field(default_factory=set)  # the original loads that it executes

    @classmethod
    def copy(cls, function: Operation) -> "Program":
        """Copy the body of a function; the copy uses the function's own arguments."""
        source = function.regions[0]
        arguments = source.blocks[0].args
        values: dict[SSAValue, SSAValue] = {}
        values.update(zip(arguments, arguments, strict=True))
        region = Region()
        blocks: dict[Block, Block] = {}
        clone_into(region, source, values, blocks)
        block = region.blocks[0]
        for own, argument in zip(tuple(block.args), arguments, strict=True):
            replace_all_uses(own, argument)
            block.erase_arg(own)
        return cls(region, dict(zip(ops_in_order(source), ops_in_order(region), strict=True)), blocks)

    @property
    def root(self) -> Block:
        return self.region.blocks[0]

    def position(self, ring: Ring, loc: LocationAttr) -> RingPosition:
        """Return index and phase at the start of an execution of the ring's block."""
        key = (frozenset(self.blocks[block] for block in ring.blocks), ring.stages)
        if key not in self.positions:
            found = carry(key[0], self.root, 2, lambda code, position: step(code, position, ring.stages), loc)
            self.positions[key] = {block: (index, phase) for block, (index, phase) in found.items()}
        return self.positions[key][self.blocks[ring.block]]


def carry(
    blocks: frozenset[Block],
    root: Block,
    count: int,
    step: Callable[[Emitter, list[SSAValue]], list[SSAValue]],
    loc: LocationAttr,
) -> dict[Block, list[SSAValue]]:
    """Let all loops and branches around `blocks` carry `count` integers, initially 0, that step once in each execution
    of one of them; return their values there.
    """
    around = {op for block in blocks for op in ops_around(start_of(block))}
    entered: dict[Block, list[SSAValue]] = {}

    def visit(block: Block, position: list[SSAValue]) -> list[SSAValue]:
        """Return the ring position after `block`."""
        if block in blocks:
            entered[block] = position
            position = step(code, position)
            code.insert_before(end_of(block))
            return position
        for op in [op for op in block.ops if op in around]:
            if type(op) is scf.ForOp:
                left = visit(body_of(op), list(also_carry(op, position)))
                also_yield(body_of(op), left)
                position = list(op.results[-len(left) :])
            else:
                position = visit_branches(op, position)
        return position

    def visit_branches(branch: Operation, position: list[SSAValue]) -> list[SSAValue]:
        for side in both_sides(branch):
            also_yield(side, visit(side, position))
        return [also_give(branch, value.type) for value in position]

    code = Emitter(loc)
    first = [code.constant(0, i32) for _ in range(count)]
    code.insert_before(start_of(root))
    visit(root, first)
    return entered


def step(code: Emitter, position: list[SSAValue], stages: int) -> list[SSAValue]:
    """Return the next stage; the phase flips where the index wraps around."""
    zero, one = code.constant(0, i32), code.constant(1, i32)
    index, wraps = circular_increment(code, position[0], code.constant(stages, i32), zero, one)
    return [index, code.select(wraps, code.binary(arith.XOrIOp, position[1], one), position[1])]


def produce(program: Program, ring: Ring, memory: Memory) -> None:
    """Emit the code that fills a stage of the ring, at its last load."""
    loads = [program.clones[channel.load] for channel in ring.channels]
    code = Emitter(loads[-1].location)
    index, phase = program.position(ring, code.loc)
    if memory.empty is not None:
        before = code.binary(arith.XOrIOp, phase, code.constant(1, i32))
        code.ops.append(ttng.WaitBarrierOp.make(stage_of(code, memory.empty, index), before, None, (), code.loc))
    full = stage_of(code, memory.full, index)
    always = code.constant(1, i1)
    if total := sum(channel.bytes for channel in ring.channels if not channel.contiguity):
        code.ops.append(ttng.BarrierExpectOp.make(full, total, always, code.loc))
    for channel, load, buffer in zip(ring.channels, loads, memory.buffers, strict=True):
        target = stage_of(code, buffer, index)
        if isinstance(load, tt.LoadOp):
            code.append(async_copy(load, load.ptr, target, load.mask, load.other, channel.contiguity))
        else:
            code.ops.append(copy_block(load, target, full, always))
    if any(channel.contiguity for channel in ring.channels):
        own = {"noIncrement": UnitAttr()}
        code.ops.append(create_op(ttng.AsyncCopyMbarrierArriveOp, (full,), (), code.loc, own))
    code.insert_before(loads[-1])


@light_dataclass(frozen=False, eq=False)
class Reading:
    """A ring in a consumer: the stage that it reads, and the views of it."""

    ring: Ring
    memory: Memory
    block: Block
    index: SSAValue
    wait: Operation
    views: list[SSAValue] = field(default_factory=list)


def consume(program: Program, ring: Ring, memory: Memory) -> Reading:
    """Replace the loads of a ring by reads of a stage, after a wait for it."""
    index, phase = program.position(ring, ring.anchor.location)
    code = Emitter(ring.anchor.location)
    full = stage_of(code, memory.full, index)
    code.ops.append(wait := ttng.WaitBarrierOp.make(full, phase, None, (), code.loc))
    reading = Reading(ring, memory, program.blocks[ring.block], index, wait)
    code.insert_before(program.clones[ring.anchor])
    for channel, buffer in zip(ring.channels, memory.buffers, strict=True):
        load = program.clones[channel.load]
        code = Emitter(load.location)
        reading.views.append(view := stage_of(code, buffer, index))
        for alloc in channel.allocs:
            own = program.clones[alloc]
            replace_memory(own.results[0], view)
            erase_op(own)
        result = load.results[0]
        if result.first_use is not None:
            replace_all_uses(result, code.append(ttg.LocalLoadOp.make(view, result.type, load.location)))
        code.insert_before(load)
        erase_op(load)
    return reading


def stage_of(code: Emitter, memory: SSAValue, index: SSAValue) -> SSAValue:
    """Select one of several buffers or barriers."""
    return code.append(ttg.MemDescIndexOp.make(memory, index, code.loc))


# A consumer releases a stage after the wait for the last dot that reads it:
#
#     %d = warp_group_dot %a[i], %b[i], %acc {isAsync}              dot k
#     warp_group_dot_wait %d {pendings = 1}                         dot k - 1 is complete
#     arrive_barrier %empty[i - 1], 4, %not_first                   its operands may be overwritten
#
# Dots complete in the order in which they were started. A wait for all but n of them covers a dot if at least n others
# were started after it, in this iteration or in the next one, which then releases the stage of the preceding iteration;
# the last stage is released after the loop.
#
# Code after the last stage may reuse the memory of the buffers. The producer fills exactly the stages that are waited
# for, so its only consumer is the last user, and deallocates them:
#
#     scf.for ... { ... }
#     warp_group_dot_wait ... {pendings = 0}
#     local_dealloc %buffers                                        free for layout conversions of the result

ENDS_OF_USE = frozenset({ttng.WarpGroupDotOp, ttng.WarpGroupDotWaitOp, ttng.WaitBarrierOp})
ReadEnd = tuple[bool, Operation]  # in the next iteration, after an op


def release(reading: Reading) -> None:
    """Release the stage of `reading` after its last reader."""
    if reading.memory.empty is None:
        return
    block = reading.block
    readers = {enclosing_op(op, block) for view in reading.views for op in readers_of(view)}
    ends = [end_of_reading(op, block, reading.ring.stages > 1) for op in readers if op is not None]
    if not ends:  # loaded but never read
        ends = [(False, start_of(block))]
    order = {op: position for position, op in enumerate(block.ops)}
    is_late, behind = max(ends, key=lambda end: (end[0], order[end[1]]))
    if is_late:
        release_late(reading, behind)
    else:
        arrive(reading, reading.index, behind)


def end_of_reading(op: Operation, block: Block, may_be_late: bool) -> ReadEnd:
    """Return the op of `block` after which the reads of `op` are complete."""
    if not (type(op) is ttng.WarpGroupDotOp and is_true(op.properties["isAsync"])):
        following = op.next_op  # a loop may leave dots pending, which the next op waits for
        return False, following if following is not None and type(following) is ttng.WarpGroupDotWaitOp else op
    started = 0
    for is_late, current in ends_behind(op, block, may_be_late):
        if type(current) is ttng.WarpGroupDotOp:
            started += 1
        elif type(current) is ttng.WarpGroupDotWaitOp and int_property(current, "pendings") <= started:
            return is_late, current
    return False, wait_for(op.results, 0, behind=op)


def ends_behind(op: Operation, block: Block, also_next: bool) -> Iterator[ReadEnd]:
    """Yield the ops of `block` after `op`, and those of the next iteration."""
    yield from ((False, following) for following in ops_behind(op))
    if also_next and type(block.parent_op()) is scf.ForOp:
        yield from ((True, current) for current in block.ops)


def arrive(reading: Reading, index: SSAValue, behind: Operation, condition: SSAValue | None = None) -> None:
    """Emit an arrival on the "empty" barrier of a stage, after the op `behind`."""
    assert reading.memory.empty is not None
    code = Emitter(behind.location)
    arrive_here(code, reading, index, condition)
    insert_after(behind, *code.ops)


def arrive_here(code: Emitter, reading: Reading, index: SSAValue, condition: SSAValue | None) -> None:
    memory = reading.memory
    assert memory.empty is not None
    barrier = stage_of(code, memory.empty, index)
    code.ops.append(ttng.ArriveBarrierOp.make(barrier, memory.warps, condition, code.loc))


def release_late(reading: Reading, behind: Operation) -> None:
    """Release the stage of the preceding iteration, and the last one after the loop."""
    loop = reading.block.parent_op()
    assert type(loop) is scf.ForOp
    lower, upper = loop.operands[:2]
    code = Emitter(behind.location)
    is_next = code.compare("ne", reading.block.args[0], lower)
    arrive_here(code, reading, before(code, reading, reading.index), is_next)
    insert_after(behind, *code.ops)
    index = reading.index
    assert index.owner is reading.block
    left = loop.results[index.index - 1]  # pyright: ignore[reportAttributeAccessIssue]
    code = Emitter(loop.location)
    has_run = code.compare("slt", lower, upper)
    arrive_here(code, reading, before(code, reading, left), has_run)
    last: Operation = loop
    while last.next_op is not None and type(last.next_op) is ttng.WarpGroupDotWaitOp:
        last = last.next_op
    insert_after(last, *code.ops)


def before(code: Emitter, reading: Reading, index: SSAValue) -> SSAValue:
    """Return the stage before `index`."""
    zero, one = code.constant(0, i32), code.constant(1, i32)
    last = code.constant(reading.ring.stages - 1, i32)
    return code.select(code.compare("eq", index, zero), last, code.binary(arith.SubiOp, index, one))


def free(buffers: Iterable[SSAValue], consumer: ttg.WarpSpecializeOp) -> None:
    """Deallocate `buffers` after the last read and the last wait of the default region, their only consumer."""
    block, known = consumer.default_region.block, aliases(consumer)
    for buffer in buffers:
        named = {value for value, of in known.items() if buffer in of} | {buffer}
        using = [op for op in block.ops if any(is_using(inner, named) for inner in (op, *ops_in_order(*op.regions)))]
        insert_after(using[-1], ttg.LocalDeallocOp.make(buffer, using[-1].location))


def is_using(op: Operation, memory: set[SSAValue]) -> bool:
    return type(op) in ENDS_OF_USE or any(value in memory for value in op.operands)
