"""The types that ops give their results, with encodings: `layouts/infer.py` on types.

    expand_dims   tensor<64xf32, #ttg.slice<{dim = 1, parent = #blocked}>>   gives   tensor<64x1xf32, #blocked>
    reduce        tensor<64x32xf32, #blocked>, axis 1                        gives   tensor<64xf32, #slice of dim 1>

A tensor without an encoding gives one without. An op builds its result with these functions and is verified against
them; where no layout fits, the message is that of the layout rule.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from tilework.ir.encodings import encoding_attr, encoding_of
from tilework.ir.types import NO_ENCODING, Shape, Tensor, element_type, shape_of, tensor_type
from tilework.layouts.encodings import DotOperand, Encoding, NvidiaMma
from tilework.layouts.infer import infer_expand_dims, infer_join, infer_reduce, infer_reshape, infer_split, infer_trans
from tilework.layouts.linear import LayoutError
from tilework.layouts.to_linear import to_linear


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
    """Without permission to reorder, every element remains in its register."""
    before, after = encoding_of(source), encoding_of(result)
    if before is None or after is None:
        return
    inferred = infer_reshape(shape_of(source), before, shape_of(result), False)  # pyright: ignore[reportArgumentType]
    if not is_same_layout(inferred, after, shape_of(result)):
        raise VerifyException(f"Expected result encoding {encoding_attr(inferred)} but was {encoding_attr(after)}")


def verify_joined(part: Attribute, whole: Attribute) -> None:
    """Splitting `whole` gives back the layout of `part`."""
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
    """With encodings, A and B are dot operands 0 and 1 of the layout of the result, of one kWidth."""
    result = encoding_of(d)
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
        if factor.parent != result:
            raise VerifyException(f"Incompatible parent encoding: {type}, {d}")
    left, right = factors
    assert isinstance(left, DotOperand) and isinstance(right, DotOperand)
    if isinstance(result, NvidiaMma) and left.k_width != right.k_width:
        raise VerifyException(f"mismatching kWidth between A and B operands: {left.k_width}, {right.k_width}")
