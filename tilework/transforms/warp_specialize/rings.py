"""Buffers with barriers, and what producer and consumers do at each load.

    %buffers = ttg.local_alloc : () -> !ttg.memdesc<3x128x64xf16>        for each channel
    %full, %empty = three barriers each                                  full: one arrival and the bytes; empty: all consumers
    producer    wait_barrier %empty[i], phase ^ 1;  barrier_expect %full[i], bytes;  copies to %buffers[i]
    consumer    wait_barrier %full[i], phase;  reads %buffers[i] ...     arrive_barrier %empty[i] (`releases.py`)

The index and the phase are carried by all loops around a ring, each program for itself, so that they run on from tile to
tile. A barrier that nobody has arrived at lets pass who waits for the phase before its first: the producer starts at once.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import LocationAttr, UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from tilework.ir import tt, ttg, ttng
from tilework.ir.create import clone_into, create_op
from tilework.ir.functions import ops_in_order
from tilework.ir.nesting import body_of, end_of, ops_around, start_of
from tilework.ir.rewrite import erase_op, replace_all_uses
from tilework.ir.scf_ext import also_carry, also_give, also_yield, both_sides
from tilework.ir.ttg.memdesc_types import memdesc_type
from tilework.ir.types import element_type, i1, i32, i64, shape_of
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.ttg.pipeline.lower_copies import async_copy, read_instead
from tilework.transforms.ttg.pipeline.lower_tma import BARRIER_LAYOUT, copy_block
from tilework.transforms.ttg.pipeline.lowering import next_in_turn
from tilework.transforms.warp_specialize.channels import Ring

Turn = tuple[SSAValue, SSAValue]  # index of a stage, and phase of its barriers


@dataclass(eq=False)
class Memory:
    """The buffers of the channels of a ring, and its barriers; what is used once is never empty again.

    Each warp of a consumer arrives at "empty" for itself, `warps` in all: so they need not wait for each other.
    """

    buffers: list[SSAValue]
    full: SSAValue
    empty: SSAValue | None
    warps: int


def make_memory(code: Emitter, ring: Ring, producers: int, consumers: int, warps: int) -> Memory:
    """Buffers, and barriers for `producers` threads that copy, or one that starts TMA, and consumers of `warps` warps."""
    buffers: list[SSAValue] = []
    for channel in ring.channels:
        result = channel.load.results[0].type
        shape = (ring.stages, *shape_of(result))
        kind = memdesc_type(shape, element_type(result), channel.encoding, True)
        buffers.append(code.append(ttg.LocalAllocOp.make(None, kind, channel.load.location)))
    by_thread = any(channel.contiguity for channel in ring.channels)
    by_descriptor = any(not channel.contiguity for channel in ring.channels)
    full = make_barriers(code, ring.stages, producers * by_thread + by_descriptor)
    empty = make_barriers(code, ring.stages, consumers * warps) if ring.turns else None
    return Memory(buffers, full, empty, warps)


def make_barriers(code: Emitter, count: int, arrivals: int) -> SSAValue:
    memory = code.append(ttg.LocalAllocOp.make(None, memdesc_type((count, 1), i64, BARRIER_LAYOUT, True), code.loc))
    for position in range(count):
        one = code.append(ttg.MemDescIndexOp.make(memory, code.constant(position, i32), code.loc))
        code.ops.append(ttng.InitBarrierOp.make(one, arrivals, code.loc))
    return memory


@dataclass(eq=False)
class Program:
    """A copy of a function's body that becomes a region, and where the originals are in it."""

    region: Region
    clones: dict[Operation, Operation]
    blocks: dict[Block, Block]
    turns: dict[tuple[frozenset[Block], int], dict[Block, Turn]] = field(default_factory=dict)
    loads: set[Operation] = field(default_factory=set)  # the originals of what it loads

    @classmethod
    def copy(cls, function: Operation) -> "Program":
        """The arguments of the function stay its arguments."""
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

    def turn(self, ring: Ring, loc: LocationAttr) -> Turn:
        """Index and phase where an execution of the ring's block starts."""
        key = (frozenset(self.blocks[block] for block in ring.blocks), ring.stages)
        if key not in self.turns:
            found = carry(key[0], self.root, 2, lambda code, turn: step(code, turn, ring.stages), loc)
            self.turns[key] = {block: (index, phase) for block, (index, phase) in found.items()}
        return self.turns[key][self.blocks[ring.block]]


def carry(
    blocks: frozenset[Block],
    root: Block,
    count: int,
    step: Callable[[Emitter, list[SSAValue]], list[SSAValue]],
    loc: LocationAttr,
) -> dict[Block, list[SSAValue]]:
    """Let everything around `blocks` carry `count` numbers, at first 0, that step once in each of them; what they find there."""
    around = {op for block in blocks for op in ops_from(block)}
    entered: dict[Block, list[SSAValue]] = {}

    def visit(block: Block, turn: list[SSAValue]) -> list[SSAValue]:
        """What the turn is behind `block`."""
        if block in blocks:
            entered[block] = turn
            turn = step(code, turn)
            code.insert_before(end_of(block))
            return turn
        for op in [op for op in block.ops if op in around]:
            if type(op) is scf.ForOp:
                left = visit(body_of(op), list(also_carry(op, turn)))
                also_yield(body_of(op), left)
                turn = list(op.results[-len(left) :])
            else:
                turn = visit_branches(op, turn)
        return turn

    def visit_branches(branch: Operation, turn: list[SSAValue]) -> list[SSAValue]:
        for side in both_sides(branch):
            also_yield(side, visit(side, turn))
        return [also_give(branch, value.type) for value in turn]

    code = Emitter(loc)
    first = [code.constant(0, i32) for _ in range(count)]
    code.insert_before(start_of(root))
    visit(root, first)
    return entered


def ops_from(block: Block) -> list[Operation]:
    """The ops around `block`, from the inside."""
    op = block.parent_op()
    return [] if op is None else [op, *ops_around(op)]


def step(code: Emitter, turn: list[SSAValue], stages: int) -> list[SSAValue]:
    """The stage after this one, and the other phase where they start again."""
    zero, one = code.constant(0, i32), code.constant(1, i32)
    index, wraps = next_in_turn(code, turn[0], code.constant(stages, i32), zero, one)
    return [index, code.select(wraps, code.binary(arith.XOrIOp, turn[1], one), turn[1])]


def produce(program: Program, ring: Ring, memory: Memory) -> None:
    """Fill a stage of the ring where its last load is."""
    loads = [program.clones[channel.load] for channel in ring.channels]
    code = Emitter(loads[-1].location)
    index, phase = program.turn(ring, code.loc)
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


@dataclass(eq=False)
class Reading:
    """A ring as a consumer sees it: the stage that it reads, and the views of it."""

    ring: Ring
    memory: Memory
    block: Block
    index: SSAValue
    wait: Operation
    views: list[SSAValue] = field(default_factory=list)


def consume(program: Program, ring: Ring, memory: Memory) -> Reading:
    """Read a stage of the ring where its loads are, behind the wait for it."""
    index, phase = program.turn(ring, ring.anchor.location)
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
            read_instead(own.results[0], view)
            erase_op(own)
        result = load.results[0]
        if result.first_use is not None:
            replace_all_uses(result, code.append(ttg.LocalLoadOp.make(view, result.type, load.location)))
        code.insert_before(load)
        erase_op(load)
    return reading


def stage_of(code: Emitter, memory: SSAValue, index: SSAValue) -> SSAValue:
    """One of several buffers or barriers."""
    return code.append(ttg.MemDescIndexOp.make(memory, index, code.loc))
