"""Questions about `scf.for` that the pipeliner asks.

A loop is pipelined only if it is *innermost*, and if every value it carries is computed in the iteration before: a yield
of an argument (`yield %b` for `%a`) would need a value of two iterations ago.
"""

from collections.abc import Iterator

from xdsl.dialects import scf
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from tilework.ir import tt, ttg, ttng
from tilework.ir.functions import ops_in_order
from tilework.ir.llvm import GpuBarrierOp
from tilework.ir.module_facts import integer
from tilework.ir.nesting import LOOPS, body_of, enclosing_op, end_of, is_inside
from tilework.ir.scf_ext import SKIPS
from tilework.ir.types import i32, int_attr

LATENCY = "tt.latency"
SELF_LATENCY = "tt.self_latency"
STAGE = "loop.stage"
CLUSTER = "loop.cluster"
MAX_STAGE = "tt.scheduled_max_stage"
NUM_STAGES = "tt.num_stages"

DOTS: frozenset[type[Operation]] = frozenset({tt.DotOp, tt.DotScaledOp, ttng.WarpGroupDotOp})
LOADS: frozenset[type[Operation]] = frozenset({tt.LoadOp, tt.DescriptorLoadOp, tt.DescriptorGatherOp})
BARRIERS: frozenset[type[Operation]] = frozenset({GpuBarrierOp, ttg.LocalBarrierOp})


def loops_in(root: Operation) -> list[Operation]:
    """The `scf.for` ops under `root`, inner ones first."""
    ordered: list[Operation] = []
    around: list[Operation] = []
    for op in ops_in_order(*root.regions):
        if type(op) is scf.ForOp:
            while around and not is_inside(op, around[-1]):
                ordered.append(around.pop())
            around.append(op)
    return [*ordered, *reversed(around)]


def body_ops(loop: Operation) -> list[Operation]:
    """The ops of the body, without the yield."""
    return list(body_of(loop).ops)[:-1]


def yield_of(loop: Operation) -> Operation:
    """The terminator of the body."""
    return end_of(body_of(loop))


def integer_attribute(op: Operation, name: str) -> int | None:
    """The number in the attribute `name` of `op`."""
    return integer(op.attributes, name)


def group_dots(root: Operation) -> list[Operation]:
    """The products of warp groups under `root`."""
    return [op for op in ops_in_order(*root.regions) if type(op) is ttng.WarpGroupDotOp]


def set_integer(op: Operation, name: str, value: int) -> None:
    """``name = value : i32``."""
    op.attributes[name] = int_attr(value, i32)


def num_stages(loop: Operation, default: int) -> int:
    """What the loop asks for, or `default`."""
    asked = integer_attribute(loop, NUM_STAGES)
    return default if asked is None else asked


def refusal(loop: Operation) -> str | None:
    """Why `loop` has a form that is never pipelined, or None."""
    for op in body_of(loop).walk():
        if type(op) in LOOPS:
            return "it has another loop inside"
        if type(op) in BARRIERS:
            return "it has a barrier"
    if any(isinstance(value, BlockArgument) for value in yield_of(loop).operands):
        return "it carries a value over more than one iteration"
    if "unsignedCmp" in loop.properties:
        return "it counts without signs"
    return None


def used_values(op: Operation) -> Iterator[SSAValue]:
    """The operands of `op` and of everything inside it."""
    if not op.regions:
        yield from op.operands
        return
    for inner in op.walk():
        yield from inner.operands


def producers(op: Operation, block: Block) -> Iterator[Operation]:
    """The ops of `block` whose results `op` uses, in the same iteration."""
    for value in used_values(op):
        if isinstance(value, OpResult) and value.op.parent is block and value.op is not op:
            yield value.op


def users_in(op: Operation, block: Block) -> Iterator[Operation]:
    """The ops of `block` that use a result of `op`, itself or inside; the terminator is one of them."""
    for result in op.results:
        for use in result.uses:
            if (user := enclosing_op(use.operation, block)) is not None:
                yield user


def carried_producer(argument: SSAValue, loop: Operation) -> Operation | None:
    """The op of the body that computes, for the next iteration, the value of this argument of it."""
    body = body_of(loop)
    if not isinstance(argument, BlockArgument) or argument.block is not body or argument.index == 0:
        return None
    value = yield_of(loop).operands[argument.index - 1]
    return value.op if isinstance(value, OpResult) and value.op.parent is body else None


def products_in(loop: Operation) -> list[Operation]:
    """The products of the body, and where `continue` skips some, the branches that they are in."""
    found = [op for op in body_ops(loop) if type(op) in DOTS]
    if SKIPS in loop.attributes:
        branches = (op for op in body_ops(loop) if type(op) is scf.IfOp)
        found += [op for op in branches if any(type(inner) in DOTS for inner in op.walk())]
    return found


def ops_outside_loops(block: Block, *kinds: type[Operation]) -> Iterator[Operation]:
    """The ops of `kinds` under `block`, but not in loops inside of it."""
    for op in block.ops:
        if type(op) in kinds:
            yield op
        elif type(op) not in LOOPS:
            for region in op.regions:
                for inner in region.blocks:
                    yield from ops_outside_loops(inner, *kinds)
