"""Rules of `canonicalize` for `tt` ops.

tt.broadcast (tt.splat %x)          -> tt.splat %x, in the larger shape
tt.expand_dims (tt.broadcast %x)    -> tt.broadcast (tt.expand_dims %x)
tt.addptr %p, 0                     -> %p
tt.load %p, dense<true>, %other     -> tt.load %p
tt.load %p, dense<false>, %other    -> %other
tt.make_range {start = 7, end = 8}  -> dense<7>
"""

from typing import Any, cast

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from tilework.ir import arith, tt
from tilework.ir.rewrite import constant_value, recreate
from tilework.ir.types import Tensor, array_values, axis_of, i32_array, shape_of, with_shape
from tilework.transforms.folding.arith import constant_int, producer
from tilework.transforms.folding.worklist import Driver, Fold, Rewrite, Scalar, is_same

SEGMENTS = "operandSegmentSizes"


def known_scalar(value: SSAValue) -> Scalar | None:
    """The value of a constant, or of every element of a splat constant, or None."""
    return constant_value(value) if type(value.owner) is arith.ConstantOp else None


def known_elements(value: SSAValue, type_: Attribute) -> Attribute | None:
    """The elements of a dense constant, in order, in the shape of `type_`; None if `value` is no such constant."""
    if (op := producer(value, arith.ConstantOp)) is None:
        return None
    elements = op.properties["value"]
    if not isinstance(elements, DenseIntOrFPElementsAttr):
        return None
    return DenseIntOrFPElementsAttr(cast("TensorType[Any]", type_), elements.data)


def fold_broadcast(op: Operation) -> SSAValue | Scalar | None:
    """Drop a broadcast to the same type, or fold a splat constant."""
    (source,) = op._operands
    return source if is_same(source.type, op.results[0].type) else known_scalar(source)


def fold_shape(op: Operation) -> SSAValue | Scalar | Attribute | None:
    """`expand_dims` keeps the elements of a constant in order."""
    (source,) = op._operands
    if (known := known_scalar(source)) is not None:
        return known
    return known_elements(source, op.results[0].type)


def fold_reshape(op: Operation) -> SSAValue | Scalar | Attribute | None:
    """Drop a reshape to the same type, or fold a constant."""
    (source,) = op._operands
    if "allow_reorder" not in op.properties and is_same(source.type, op.results[0].type):
        return source
    return fold_shape(op)


def fold_trans(op: Operation) -> SSAValue | Scalar | None:
    """Drop a transposition that changes nothing, of a tile or of memory, or fold a splat constant."""
    (source,) = op._operands
    order = array_values(op.properties["order"])
    if order == tuple(range(len(order))) and is_same(source.type, op.results[0].type):
        return source
    return known_scalar(source)


def fold_make_range(op: Operation) -> int | None:
    start, end = (op.properties[name].value.data for name in ("start", "end"))  # pyright: ignore
    return start if end - start == 1 else None


def fold_advance(op: Operation) -> SSAValue | None:
    pointer, *offsets = op._operands
    return pointer if all(constant_int(offset) == 0 for offset in offsets) else None


def fold_fp_to_fp(op: Operation) -> SSAValue | Scalar | None:
    """Fold zeros; other constants would need the rounding of the target."""
    (source,) = op._operands
    if is_same(source.type, op.results[0].type):
        return source
    known = known_scalar(source)
    return known if known == 0 else None


def fold_load(op: Operation) -> SSAValue | None:
    """Return `other` where the mask is false everywhere."""
    if len(op._operands) == 3 and constant_int(op._operands[1]) == 0:
        return op._operands[2]
    return None


# Rewrites


def splat_of(value: SSAValue) -> SSAValue | None:
    """The scalar that `value` repeats, or None."""
    splat = producer(value, tt.SplatOp)
    return None if splat is None else splat._operands[0]


def resplat(op: Operation, driver: Driver) -> bool:
    """Replace `op`, a view of a splat, by a splat into its result type."""
    if (scalar := splat_of(op._operands[0])) is None:
        return False
    return driver.replace_with(op, tt.SplatOp.make(scalar, cast(Tensor, op.results[0].type), op.location))


def rewrite_expand_dims(op: Operation, driver: Driver) -> bool:
    if (broadcast := producer(op._operands[0], tt.BroadcastOp)) is not None:
        small = broadcast._operands[0]
        result = cast(Tensor, op.results[0].type)
        axis = axis_of(op)
        shape = list(shape_of(small.type))
        shape.insert(axis, 1)
        expanded = recreate(op, operands=(small,), result_types=(with_shape(result, tuple(shape)),))
        return driver.replace_with(op, expanded, tt.BroadcastOp.make(expanded.results[0], result, op.location))
    return resplat(op, driver)


def rewrite_broadcast(op: Operation, driver: Driver) -> bool:
    if (inner := producer(op._operands[0], tt.BroadcastOp)) is not None:
        return driver.set_operands(op, inner._operands)
    return resplat(op, driver)


def rewrite_reshape(op: Operation, driver: Driver) -> bool:
    if "efficient_layout" in op.properties:
        return False
    inner = producer(op._operands[0], tt.ReshapeOp)
    if inner is not None and "efficient_layout" not in inner.properties:
        if "allow_reorder" in inner.properties:
            op.properties["allow_reorder"] = inner.properties["allow_reorder"]
        return driver.set_operands(op, inner._operands)
    return resplat(op, driver)


def rewrite_trans(op: Operation, driver: Driver) -> bool:
    """Merge two transpositions: dimension i of the result is dimension inner[outer[i]] of the source."""
    if (inner := producer(op._operands[0], type(op))) is None:
        return False
    first = array_values(inner.properties["order"])
    op.properties["order"] = i32_array(*(first[axis] for axis in array_values(op.properties["order"])))
    return driver.set_operands(op, inner._operands)


def rewrite_subslice(op: Operation, driver: Driver) -> bool:
    """Take a part of a part from the whole: the offsets add up."""
    if (outer := producer(op._operands[0], type(op))) is None:
        return False
    pairs = zip(array_values(outer.properties["offsets"]), array_values(op.properties["offsets"]), strict=True)
    op.properties["offsets"] = i32_array(*map(sum, pairs))
    return driver.set_operands(op, outer._operands)


def rewrite_load(op: Operation, driver: Driver) -> bool:
    """Drop a mask that is true everywhere, and `other`."""
    if len(op._operands) < 2 or constant_int(op._operands[1]) != 1:
        return False
    op.properties[SEGMENTS] = i32_array(1, 0, 0)
    return driver.set_operands(op, op._operands[:1])


def rewrite_store(op: Operation, driver: Driver) -> bool:
    """Drop a mask that is true everywhere; drop the store if it is false everywhere."""
    if len(op._operands) < 3 or (mask := constant_int(op._operands[2])) is None:
        return False
    if not mask:
        return driver.erase(op)
    if SEGMENTS in op.properties:
        op.properties[SEGMENTS] = i32_array(1, 1, 0)
    return driver.set_operands(op, op._operands[:2])


def is_zero(value: SSAValue) -> bool:
    """True for a constant or splat constant 0, 0.0 or -0.0."""
    known = known_scalar(value)
    return known is not None and known == 0


FOLDS: dict[type[Operation], Fold] = {
    tt.SplatOp: lambda op: known_scalar(op._operands[0]),
    tt.BroadcastOp: fold_broadcast,
    tt.ExpandDimsOp: fold_shape,
    tt.ReshapeOp: fold_reshape,
    tt.TransOp: fold_trans,
    tt.MakeRangeOp: fold_make_range,
    **dict.fromkeys((tt.AddPtrOp, tt.AdvanceOp), fold_advance),
    tt.FpToFpOp: fold_fp_to_fp,
    tt.LoadOp: fold_load,
}
REWRITES: dict[type[Operation], Rewrite] = {
    tt.ExpandDimsOp: rewrite_expand_dims,
    tt.BroadcastOp: rewrite_broadcast,
    tt.ReshapeOp: rewrite_reshape,
    tt.TransOp: rewrite_trans,
    tt.LoadOp: rewrite_load,
    tt.StoreOp: rewrite_store,
}
