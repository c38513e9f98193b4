"""Compute before repeating: move splats and broadcasts behind elementwise ops.

    %x = tt.splat %a : f32 -> tensor<128xf32>           %s = arith.addf %a, %b : f32
    %y = tt.splat %b : f32 -> tensor<128xf32>    ==>    %z = tt.splat %s : f32 -> tensor<128xf32>
    %z = arith.addf %x, %y : tensor<128xf32>

    %w = tt.broadcast %e : 16x1 -> 16x32                %n = tt.splat %k : 16x1
    %n = tt.splat %k : 16x32                     ==>    %m = arith.muli %e, %n : 16x1
    %m = arith.muli %w, %n : 16x32                      %w = tt.broadcast %m : 16x1 -> 16x32

A splat constant counts as a splat. Any other operand (a block argument, a dense constant, a load) blocks the rewrite,
and so do broadcasts from different shapes.
Stage: TTIR to TTIR. Cost: one visit per op.
"""

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue

from tilework.ir import tt
from tilework.ir.effects import ELEMENTWISE, is_pure
from tilework.ir.rewrite import recreate
from tilework.ir.types import Shape, element_type, is_tensor, shape_of, with_shape
from tilework.transforms.common.canonicalize import FOLDS
from tilework.transforms.folding.arith import producer
from tilework.transforms.folding.structured import simplify_blocks
from tilework.transforms.folding.tiles import known_scalar, rewrite_broadcast, rewrite_expand_dims, splat_of
from tilework.transforms.folding.worklist import Driver, Rewrite, rule_table
from tilework.transforms.passes import function_pass


@function_pass("triton-reorder-broadcast")
def reorder_broadcast(function: Operation) -> None:
    Driver(RULES).run(function, simplify_blocks)


def rewrite_elementwise(op: Operation, driver: Driver) -> bool:
    """Move splats, or else broadcasts, behind `op`."""
    for result in op.results:
        if not is_tensor(result.type):
            return False
    operands = op._operands
    repeated = [value for value in operands if type(value.owner) in (tt.SplatOp, tt.BroadcastOp)]
    if not repeated or not is_pure(op) or packed_elements(op) > 1:
        return False
    if any(type(value.owner) is tt.BroadcastOp for value in repeated):
        return move_broadcast_after(op, operands, driver)
    return move_splat_after(op, operands, driver)


def packed_elements(op: Operation) -> int:
    """The number of adjacent elements that inline assembly processes at a time; it cannot run on fewer."""
    packed = op.properties.get("packed_element")
    return packed.value.data if isinstance(packed, IntegerAttr) else 1


def move_splat_after(op: Operation, operands: Sequence[SSAValue], driver: Driver) -> bool:
    """Compute on scalars if all operands are splats."""
    if any(splat_of(value) is None and known_scalar(value) is None for value in operands):
        return False
    scalars = [splat_of(value) or scalar_constant(value, op, driver) for value in operands]
    types = [element_type(result.type) for result in op.results]
    return compute_small(op, scalars, types, tt.SplatOp, driver)


def compute_small(
    op: Operation, operands: Sequence[SSAValue], types: Sequence[Attribute], repeat: Any, driver: Driver
) -> bool:
    """Compute `op` on `operands`, and `repeat` its results."""
    small = driver.insert(op, recreate(op, operands=operands, result_types=types))
    pairs = zip(small.results, op.results, strict=True)
    wide = [driver.insert(op, repeat.make(value, result.type, op.location)).results[0] for value, result in pairs]
    return driver.replace(op, wide)


def scalar_constant(value: SSAValue, op: Operation, driver: Driver) -> SSAValue:
    """The element of a splat constant, as a scalar in front of `op`."""
    return driver.constant(op, cast("int | float", known_scalar(value)), element_type(value.type))


def move_broadcast_after(op: Operation, operands: Sequence[SSAValue], driver: Driver) -> bool:
    """Compute in the smaller shape if all operands are splats or broadcasts from that shape."""
    sources = [producer(value, tt.BroadcastOp) for value in operands]
    shapes = {shape_of(source._operands[0].type) for source in sources if source is not None}
    if len(shapes) != 1:
        return False
    for value, source in zip(operands, sources, strict=True):
        if source is None and splat_of(value) is None and (known_scalar(value) is None or not is_tensor(value.type)):
            return False
    (shape,) = shapes
    small = [
        source._operands[0] if source is not None else in_shape(value, shape, op, driver)
        for value, source in zip(operands, sources, strict=True)
    ]
    types = [with_shape(result.type, shape) for result in op.results]
    return compute_small(op, small, types, tt.BroadcastOp, driver)


def in_shape(value: SSAValue, shape: Shape, op: Operation, driver: Driver) -> SSAValue:
    """The splat or splat constant `value` again, in `shape`."""
    type_ = with_shape(value.type, shape)
    if (scalar := splat_of(value)) is not None:
        return driver.insert(op, tt.SplatOp.make(scalar, type_, op.location)).results[0]
    return driver.constant(op, cast("int | float", known_scalar(value)), type_)


REWRITES: dict[type[Operation], Rewrite] = {
    **dict.fromkeys(ELEMENTWISE, rewrite_elementwise),
    tt.BroadcastOp: rewrite_broadcast,
    tt.ExpandDimsOp: rewrite_expand_dims,
}
RULES = rule_table(FOLDS, REWRITES)
