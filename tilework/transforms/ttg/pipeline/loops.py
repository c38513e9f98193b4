"""Queries about `scf.for` for the pipeliner, and the number of its stages.

A loop is pipelined only if it is *innermost*, and if every value it carries is computed in the preceding iteration: a
yield of an argument (`yield %b` for `%a`) would need a value of two iterations ago.
"""

from collections.abc import Iterator, Sequence
from math import ceil

from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from tilework.analysis.cost import carried_registers, loop_cost, occupancy
from tilework.ir import scf, tt, ttg, ttng
from tilework.ir.functions import function_around, ops_in_order
from tilework.ir.module_facts import find_target, integer
from tilework.ir.nesting import body_of, enclosing_op, end_of, is_inside
from tilework.ir.scf import LOOPS, SKIPS
from tilework.ir.types import i32, int_attr, tile_bits
from tilework.transforms.remarks import remark

LATENCY = "tt.latency"
SELF_LATENCY = "tt.self_latency"
IN_REGISTERS = "tt.in_registers"  # of a load that starts early, but not as a copy to shared memory
STAGE = "loop.stage"
CLUSTER = "loop.cluster"
MAX_STAGE = "tt.scheduled_max_stage"
NUM_STAGES = "tt.num_stages"

DOTS: frozenset[type[Operation]] = frozenset({tt.DotOp, tt.DotScaledOp, ttng.WarpGroupDotOp})
LOADS: frozenset[type[Operation]] = frozenset({tt.LoadOp, tt.DescriptorLoadOp, tt.DescriptorGatherOp})
# A copy for a later iteration must not overtake a barrier, nor fault before an assertion about its addresses fails.
REFUSED: dict[type[Operation], str] = {ttg.BarrierOp: "it has a barrier", tt.AssertOp: "it has an assertion"}


def loops_in(root: Operation) -> list[Operation]:
    """Return the `scf.for` ops under `root`, inner ones first."""
    ordered: list[Operation] = []
    around: list[Operation] = []
    for op in ops_in_order(*root.regions):
        if type(op) is scf.ForOp:
            while around and not is_inside(op, around[-1]):
                ordered.append(around.pop())
            around.append(op)
    return [*ordered, *reversed(around)]


def body_ops(loop: Operation) -> list[Operation]:
    """Return the ops of the body, without the yield."""
    return list(body_of(loop).ops)[:-1]


def yield_of(loop: Operation) -> Operation:
    """Return the terminator of the body."""
    return end_of(body_of(loop))


def group_dots(root: Operation) -> list[Operation]:
    """Return the warp-group dots under `root`."""
    return [op for op in ops_in_order(*root.regions) if type(op) is ttng.WarpGroupDotOp]


def set_integer(op: Operation, name: str, value: int) -> None:
    """Set the attribute ``name = value : i32``."""
    op.attributes[name] = int_attr(value, i32)


def num_stages(loop: Operation, default: int) -> int:
    """Return the stages that the loop requests, or `default`."""
    requested = integer(loop.attributes, NUM_STAGES)
    return default if requested is None else requested


def refusal(loop: Operation) -> str | None:
    """Return the reason why `loop` is never pipelined, or None."""
    for op in body_of(loop).walk():
        if type(op) in LOOPS:
            return "it has another loop inside"
        if (reason := REFUSED.get(type(op))) is not None:
            return reason
    if any(isinstance(value, BlockArgument) for value in yield_of(loop).operands):
        return "it carries a value over more than one iteration"
    if "unsignedCmp" in loop.properties:
        return "its counter is unsigned"
    return None


def used_values(op: Operation) -> Iterator[SSAValue]:
    """Yield the operands of `op` and of all ops inside it."""
    if not op.regions:
        yield from op.operands
        return
    for inner in op.walk():
        yield from inner.operands


def producers(op: Operation, block: Block) -> Iterator[Operation]:
    """Yield the ops of `block` whose results `op` uses, in the same iteration."""
    for value in used_values(op):
        if isinstance(value, OpResult) and value.op.parent is block and value.op is not op:
            yield value.op


def users_in(op: Operation, block: Block) -> Iterator[Operation]:
    """Yield the ops of `block` that use a result of `op`, directly or inside; the terminator is one of them."""
    for result in op.results:
        for use in result.uses:
            if (user := enclosing_op(use.operation, block)) is not None:
                yield user


def carried_producer(argument: SSAValue, loop: Operation) -> Operation | None:
    """Return the op of the body that computes the value of this argument for the next iteration."""
    body = body_of(loop)
    if not isinstance(argument, BlockArgument) or argument.block is not body or argument.index == 0:
        return None
    value = yield_of(loop).operands[argument.index - 1]
    return value.op if isinstance(value, OpResult) and value.op.parent is body else None


def dots_in(loop: Operation) -> list[Operation]:
    """Return the dots of the body, and where `continue` skips some, the branches that contain them."""
    found = [op for op in body_ops(loop) if type(op) in DOTS]
    if SKIPS in loop.attributes:
        branches = (op for op in body_ops(loop) if type(op) is scf.IfOp)
        found += [op for op in branches if any(type(inner) in DOTS for inner in op.walk())]
    return found


# More stages where shared memory would be idle.
#
# A block whose accumulators leave no registers for another block has the whole shared memory of its multiprocessor. If
# the requested stages load tiles more slowly than dots consume them, it gets as many as keep tensor cores busy: one
# that dots read, one that they have just read, and as many as hide the memory latency. A tile of 256x128x32 in bf16
# keeps tensor cores busy for 512 cycles and memory takes 700: 4 stages. Blocks that share a multiprocessor hide each
# other's latency, and fewer of them would fit with more stages.

OTHERS = 24  # registers of a thread besides the accumulators
SHARE = 0.75  # of shared memory that stages may take


def enough_stages(loop: Operation, stages: int, loads: Sequence[Operation]) -> int:
    """Return the stages of `loop`, whose dots read `loads`: those requested, or more."""
    rates = find_target(loop).rates
    if rates is None or stages < 2 or NUM_STAGES in loop.attributes or not has_only_dots(loop):
        return stages
    cost = loop_cost(loop)
    held = occupancy(loop, carried_registers(function_around(loop)) + OTHERS, 0)
    if cost is None or held is None or held.blocks > 1:
        return stages
    enough = 2 + ceil(rates.memory_cycles / cost.bound)
    tiles = sum(tile_bits(load.results[0].type) // 8 for load in loads)
    fitting = int(rates.shared_memory * SHARE) // tiles
    if min(enough, fitting) <= stages:
        return stages
    remark(loop, f"{min(enough, fitting)} stages instead of {stages}: its registers leave no room for another block")
    return min(enough, fitting)


def has_only_dots(loop: Operation) -> bool:
    """Return True if all warp-group dots of the function are in `loop`: the needs of other loops are unknown."""
    dots = group_dots(function_around(loop))
    return bool(dots) and all(dot.parent_op() is loop for dot in dots)
