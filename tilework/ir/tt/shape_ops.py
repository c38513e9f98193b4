"""`tt` ops that make tensors or change their shape; none computes on the elements."""

from collections.abc import Callable
from functools import cache
from math import prod
from typing import Any

from xdsl.dialects.builtin import NoneAttr, TensorType, UnitAttr
from xdsl.ir import Attribute
from xdsl.traits import NoMemoryEffect, Pure
from xdsl.utils.exceptions import VerifyException

from tilework.ir.constraints import I32_ARRAY, I32_PROPERTY, SCALAR, TENSOR, SameElement, SameEncoding, TensorSize
from tilework.ir.declare import Op
from tilework.ir.encodings import distributed_of, encoding_attr, encoding_of
from tilework.ir.fields import CONVERSION, operand_def, opt_prop_def, prop_def, result_def, traits_def
from tilework.ir.types import NO_ENCODING, Shape, Tensor, array_values, element_type, i32, shape_of, tensor_type
from tilework.layouts.encodings import DotOperand, Encoding, NvidiaMma
from tilework.layouts.infer import infer_expand_dims, infer_join, infer_reduce, infer_reshape, infer_split, infer_trans
from tilework.layouts.linear import LayoutError
from tilework.layouts.to_linear import to_linear

# ---- The types that ops give their results, with encodings: `layouts/infer.py` on types.
#
#     expand_dims   tensor<64xf32, #ttg.slice<{dim = 1, parent = #blocked}>>   gives   tensor<64x1xf32, #blocked>
#     reduce        tensor<64x32xf32, #blocked>, axis 1                        gives   tensor<64xf32, #slice of dim 1>
#
# A tensor without an encoding gives one without. An op builds its result with these functions and is verified against
# them; where no layout fits, the message is that of the layout rule.


def laid_out(shape: Shape, source: Attribute, rule: Callable[..., Encoding], *arguments: Any) -> Tensor:
    """A tensor of `shape` with the elements of `source`, in the encoding that `rule` gives for that of `source`."""
    before = encoding_of(source)
    encoding = NO_ENCODING if before is None else encoding_attr(rule(before, *arguments))
    return tensor_type(shape, element_type(source), encoding)


@cache
def expanded_type(type: Tensor, axis: int) -> Tensor:
    """`type` with a dimension of size 1 inserted at `axis`."""
    shape = shape_of(type)
    return laid_out((*shape[:axis], 1, *shape[axis:]), type, infer_expand_dims, axis)


@cache
def joined_type(type: Tensor) -> Tensor:
    """`type` with a last dimension of size 2."""
    return laid_out((*shape_of(type), 2), type, infer_join, shape_of(type))


@cache
def half_type(type: Tensor) -> Tensor:
    """`type` without its last dimension."""
    return laid_out(shape_of(type)[:-1], type, infer_split, shape_of(type))


@cache
def transposed_type(type: Tensor, order: tuple[int, ...]) -> Tensor:
    """`type` with dimension i taken from dimension ``order[i]``."""
    shape = shape_of(type)
    return laid_out(tuple(shape[axis] for axis in order), type, infer_trans, order, shape)


@cache
def reduced_type(type: Tensor, axis: int) -> Attribute:
    """`type` without dimension `axis`; a scalar when none is left."""
    shape = shape_of(type)
    rest = (*shape[:axis], *shape[axis + 1 :])
    return laid_out(rest, type, infer_reduce, axis) if rest else type.element_type


def verify_result(result: Attribute, infer: Callable[..., Attribute], *arguments: Any) -> None:
    """`result` is the type that `infer` gives, perhaps with another name for the same layout."""
    try:
        inferred = infer(*arguments)
    except LayoutError as error:
        raise VerifyException(str(error)) from error
    if inferred != result and not is_same_layout(encoding_of(inferred), encoding_of(result), shape_of(result)):
        raise VerifyException(
            f"inferred type(s) '{inferred}' are incompatible with return type(s) of operation '{result}'"
        )


def verify_order(name: str, order: Shape, source: Attribute, result: Attribute) -> None:
    """`order` names each dimension of `source` once, and `result` has them in that order."""
    shape = shape_of(source)
    if len(order) != len(shape):
        raise VerifyException(f"order must have the same size as the rank of the operand and result: {list(order)}")
    if sorted(order) != list(range(len(shape))):
        raise VerifyException(f"order must be a permutation of [0, ..., rank - 1], got {list(order)}")
    if shape_of(result) != tuple(shape[axis] for axis in order):
        raise VerifyException(
            "result shape must match the permutation of the source shape: "
            f"{name} of {source} by {list(order)} cannot give {result}"
        )


def is_same_layout(left: Encoding | None, right: Encoding | None, shape: Shape) -> bool:
    """Both put every element of a tensor of `shape`, or of each of several buffers, at the same location."""
    if left is None or right is None or left == right:
        return left == right
    part = shape[len(shape) - left.rank :]
    return left.rank == right.rank == len(part) and to_linear(left, part) == to_linear(right, part)


def verify_reshaped(source: Attribute, result: Attribute) -> None:
    """Check the layouts of a reshape that must not reorder: every element remains in its register."""
    before, after = encoding_of(source), encoding_of(result)
    if before is None or after is None:
        return
    inferred = infer_reshape(shape_of(source), before, shape_of(result), False)  # pyright: ignore[reportArgumentType]
    if not is_same_layout(inferred, after, shape_of(result)):
        raise VerifyException(f"Expected result encoding {encoding_attr(inferred)} but was {encoding_attr(after)}")


def verify_joined(part: Attribute, whole: Attribute) -> None:
    """Raise VerifyException unless splitting `whole` results in the layout of `part`."""
    before, after = encoding_of(part), encoding_of(whole)
    if before is None and after is None:
        return
    if before is None or after is None:
        raise VerifyException(f"both or neither of the operands and the result have an encoding: {part}, {whole}")
    try:
        halves = infer_split(after, shape_of(whole))  # pyright: ignore[reportArgumentType]
    except LayoutError as error:
        raise VerifyException(f"incompatible join layout: {error}") from error
    if not is_same_layout(halves, before, shape_of(part)):
        raise VerifyException(f"incompatible join layout: {part} cannot give {whole}")


def verify_dot_operands(a: Attribute, b: Attribute, d: Attribute) -> None:
    """Check that A and B, if they have encodings, are dot operands 0 and 1 of the layout of the result, with the same
    kWidth."""
    result = distributed_of(d)
    factors = [encoding_of(a), encoding_of(b)]
    if all(factor is None for factor in factors):
        return
    if result is None or None in factors:
        raise VerifyException(f"mismatching encoding between A and B operands: {a}, {b}, {d}")
    for index, (factor, type) in enumerate(zip(factors, (a, b), strict=True)):
        if not isinstance(factor, DotOperand):
            raise VerifyException(f"Dot's a/b's encoding should be of DotOperandEncodingAttr: {type}")
        if factor.op_idx != index:
            raise VerifyException(f"Wrong opIdx: operand {index} is {type}")
        try:
            result.check_operand_parent(index, factor.parent)
        except LayoutError as error:
            raise VerifyException(f"{error}: {type}, {d}") from error
    left, right = factors
    assert isinstance(left, DotOperand) and isinstance(right, DotOperand)
    if isinstance(result, NvidiaMma) and left.k_width != right.k_width:
        raise VerifyException(f"mismatching kWidth between A and B operands: {left.k_width}, {right.k_width}")


# ---- `tt` ops that make tensors or change their shape; none computes on the elements.


class SplatOp(Op):
    """Copy one scalar into every element: ``%t = tt.splat %x : f32 -> tensor<128xf32>``."""

    name = "tt.splat"
    src = operand_def(SCALAR)
    result = result_def(TENSOR)
    form = CONVERSION
    traits = traits_def(Pure(), TensorSize())

    def verify_(self) -> None:
        scalar, element = self.src.type, element_type(self.result.type)
        if scalar != element:
            raise VerifyException(
                f"requires the same element type for all operands and results, got {scalar}, {element}"
            )


class UnsplatOp(Op):
    """The only element of a tensor: ``%x = tt.unsplat %t : tensor<1xf32>``."""

    name = "tt.unsplat"
    src = operand_def(TENSOR)
    result = result_def(SCALAR)
    form = "$src {} : type($src)"
    infer = {"result": (element_type, "src")}
    traits = traits_def(Pure(), TensorSize())

    def verify_(self) -> None:
        if prod(shape_of(self.src.type)) != 1:
            raise VerifyException(f"tt.unsplat needs exactly one element, but got {self.src.type}")
        if (element := element_type(self.src.type)) != self.result.type:
            raise VerifyException(f"tt.unsplat of {element} cannot give {self.result.type}")


class ExpandDimsOp(Op):
    """Insert a unit dimension: ``%y = tt.expand_dims %x {axis = 0 : i32} : tensor<8xf32> -> tensor<1x8xf32>``."""

    name = "tt.expand_dims"
    src = operand_def(TENSOR)
    result = result_def(TENSOR)
    axis = prop_def(I32_PROPERTY)
    form = CONVERSION
    infer = {"result": (expanded_type, "src", "axis")}
    traits = traits_def(Pure(), SameElement(), TensorSize())

    def verify_(self) -> None:
        source, result, axis = shape_of(self.src.type), shape_of(self.result.type), self.axis.value.data
        if not 0 <= axis <= len(source):
            raise VerifyException(f"axis {axis} is out of range for {self.src.type}")
        if result != (*source[:axis], 1, *source[axis:]):
            raise VerifyException(f"tt.expand_dims of {self.src.type} at axis {axis} cannot give {self.result.type}")
        verify_result(self.result.type, expanded_type, self.src.type, axis)


class ReshapeOp(Op):
    """The same elements in another shape, in row-major order unless ``allow_reorder``.

    ``%y = tt.reshape %x allow_reorder : tensor<64xf32> -> tensor<8x8xf32>``
    """

    name = "tt.reshape"
    src = operand_def(TENSOR)
    result = result_def(TENSOR)
    allow_reorder = opt_prop_def(UnitAttr)
    efficient_layout = opt_prop_def(UnitAttr)
    form = "$src(? $allow_reorder)(? $efficient_layout) {} : type($src) -> type($result)"
    traits = traits_def(Pure(), SameElement(), TensorSize())

    def verify_(self) -> None:
        source, result = self.src.type, self.result.type
        assert isinstance(source, TensorType) and isinstance(result, TensorType)
        if prod(shape_of(source)) != prod(shape_of(result)):
            raise VerifyException(f"number of src and dst elements of reshape must be the same: {source}, {result}")
        if isinstance(source.encoding, NoneAttr) != isinstance(result.encoding, NoneAttr):
            raise VerifyException(
                "Op requires that either (a) src and dst both have encodings, or (b) neither does.  "
                f"Got {source} and {result}"
            )
        if self.allow_reorder is None:
            verify_reshaped(source, result)


class BroadcastOp(Op):
    """Repeat along dimensions of size 1: ``%y = tt.broadcast %x : tensor<1x8xf32> -> tensor<4x8xf32>``."""

    name = "tt.broadcast"
    src = operand_def(TENSOR)
    result = result_def(TENSOR)
    form = CONVERSION
    traits = traits_def(Pure(), SameElement(), SameEncoding(), TensorSize())

    def verify_(self) -> None:
        source, result = shape_of(self.src.type), shape_of(self.result.type)
        if len(source) != len(result):
            raise VerifyException(f"rank of source must be same as rank of result: {self.src.type}, {self.result.type}")
        for axis, (before, after) in enumerate(zip(source, result, strict=True)):
            if before not in (1, after):
                raise VerifyException(
                    f"Different dimensions at index {axis} between source and result.  "
                    f"Broadcast requires the source dimension to be 1. Got {before} and {after}"
                )


class ResizeOp(Op):
    """The first elements along each dimension; where the result is larger, the new elements are undefined.

    ``%y = tt.resize %x : tensor<96xf32> -> tensor<128xf32>``
    """

    name = "tt.resize"
    src = operand_def(TENSOR)
    result = result_def(TENSOR)
    form = CONVERSION
    traits = traits_def(Pure(), SameElement(), SameEncoding(), TensorSize())

    def verify_(self) -> None:
        if len(shape_of(self.src.type)) != len(shape_of(self.result.type)):
            raise VerifyException(f"rank of source must be same as rank of result: {self.src.type}, {self.result.type}")


class CatOp(Op):
    """Concatenate, in an order that is not specified: ``%z = tt.cat %x, %y : tensor<8xf32> -> tensor<16xf32>``."""

    name = "tt.cat"
    lhs = operand_def(TENSOR)
    rhs = operand_def(TENSOR)
    result = result_def(TENSOR)
    form = "$lhs, $rhs {} : type($lhs) -> type($result)"
    infer = {"rhs": "lhs"}
    traits = traits_def(NoMemoryEffect(), SameElement(), TensorSize())

    def verify_(self) -> None:
        lhs, rhs, result = (shape_of(value.type) for value in (self.lhs, self.rhs, self.result))
        if not lhs or lhs != rhs or result != (lhs[0] + rhs[0], *lhs[1:]):
            raise VerifyException(
                f"tt.cat of {self.lhs.type} and {self.rhs.type} along axis 0 cannot give {self.result.type}"
            )


class JoinOp(Op):
    """Pair the elements in a new last dimension: ``%z = tt.join %x, %y : tensor<8xf32> -> tensor<8x2xf32>``."""

    name = "tt.join"
    lhs = operand_def(TENSOR)
    rhs = operand_def(TENSOR)
    result = result_def(TENSOR)
    form = "$lhs, $rhs {} : type($lhs) -> type($result)"
    infer = {"rhs": "lhs", "result": (joined_type, "lhs")}
    traits = traits_def(Pure(), SameElement(), TensorSize())

    def verify_(self) -> None:
        if self.lhs.type != self.rhs.type or shape_of(self.result.type) != (*shape_of(self.lhs.type), 2):
            raise VerifyException(f"tt.join of {self.lhs.type} and {self.rhs.type} cannot give {self.result.type}")
        verify_joined(self.lhs.type, self.result.type)


class SplitOp(Op):
    """Undo a join: ``%x, %y = tt.split %z : tensor<8x2xf32> -> tensor<8xf32>``."""

    name = "tt.split"
    src = operand_def(TENSOR)
    out_lhs = result_def(TENSOR)
    out_rhs = result_def(TENSOR)
    form = "$src {} : type($src) -> type($out_lhs)"
    infer = {"out_lhs": (half_type, "src"), "out_rhs": "out_lhs"}
    traits = traits_def(Pure(), SameElement(), TensorSize())

    def verify_(self) -> None:
        source = shape_of(self.src.type)
        if not source or source[-1] != 2:
            raise VerifyException(f"last dimension of input tensor must be 2: {self.src.type}")
        if self.out_lhs.type != self.out_rhs.type or shape_of(self.out_lhs.type) != source[:-1]:
            raise VerifyException(
                f"tt.split of {self.src.type} cannot give {self.out_lhs.type} and {self.out_rhs.type}"
            )
        verify_result(self.out_lhs.type, half_type, self.src.type)


class TransOp(Op):
    """Permute dimensions; dimension i of the result is dimension ``order[i]`` of the source.

    ``%y = tt.trans %x {order = array<i32: 1, 0>} : tensor<4x8xf32> -> tensor<8x4xf32>``
    """

    name = "tt.trans"
    src = operand_def(TENSOR)
    result = result_def(TENSOR)
    order = prop_def(I32_ARRAY)
    form = CONVERSION
    infer = {"result": (transposed_type, "src", "order")}
    traits = traits_def(Pure(), SameElement(), TensorSize())

    def verify_(self) -> None:
        order = array_values(self.order)
        verify_order(self.name, order, self.src.type, self.result.type)
        verify_result(self.result.type, transposed_type, self.src.type, order)


@cache
def range_type(start: int, end: int) -> Attribute:
    """Return the type of the i32 values from `start` to `end - 1`."""
    return tensor_type((end - start,), i32)


class MakeRangeOp(Op):
    """Consecutive integers: ``%r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>``."""

    name = "tt.make_range"
    start = prop_def(I32_PROPERTY)
    end = prop_def(I32_PROPERTY)
    result = result_def(TENSOR)
    form = "{} : type($result)"
    infer = {"result": (range_type, "start", "end")}
    traits = traits_def(Pure(), TensorSize())

    def verify_(self) -> None:
        start, end = self.start.value.data, self.end.value.data
        shape = shape_of(self.result.type)
        if start >= end:
            raise VerifyException(f"start must be less than end: {start}, {end}")
        if len(shape) != 1:
            raise VerifyException(f"return type must be a 1D tensor: {self.result.type}")
        if element_type(self.result.type) != i32:
            raise VerifyException(f"returned tensor must have i32 elements: {self.result.type}")
        if shape[0] != end - start:
            raise VerifyException(
                f"number of elements in returned tensor, {shape[0]}, must match size of range [{start}, {end}), "
                f"which has {end - start} elements"
            )
