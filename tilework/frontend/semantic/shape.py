"""Shapes: ranges, splats, broadcasts and the views that move no data.

Two values of one operation are first brought to one shape. A scalar is copied, missing leading axes are added, and
axes of size 1 are repeated:

    a : (64,)      ->  tt.expand_dims  ->  (1, 64)   ->  tt.broadcast  ->  (32, 64)
    b : (32, 1)                                          tt.broadcast  ->  (32, 64)

Every binary operation of the language passes through `broadcast`, so it first looks for the two cases that cost
nothing: equal types, and a constant scalar, which becomes a dense constant instead of a `tt.splat`.
"""

# A method of a mixin sees the whole `Semantic`, which pyright does not accept as the type of `self`.
# pyright: reportGeneralTypeIssues=false

from collections.abc import Sequence
from functools import cache
from math import isnan, prod
from typing import TYPE_CHECKING, Any

from xdsl.ir import SSAValue

from tilework.ir import tt
from tilework.ir.rewrite import constant_value
from tilework.ir.types import Shape, element_type, tensor_type
from tilework.language import core as tl
from tilework.language.dtypes import block_type, dtype, int32, validate_block_shape

if TYPE_CHECKING:
    from . import Semantic


@cache
def check_shape(shape: Shape) -> Shape:
    """`shape`, if a block may have it."""
    validate_block_shape(shape)
    return shape


@cache
def block(element: dtype, shape: Shape) -> dtype:
    """The type of a block of `element`, or `element` itself for shape (); interned, so equal types are one object."""
    return block_type(element, shape) if shape else element


def plain_shape(shape: Sequence[object]) -> Shape:
    """The elements of `shape` as Python ints; anything that is no compile-time int is a `TypeError`."""
    sizes: list[int] = []
    for i, size in enumerate(shape):
        plain = size.value if isinstance(size, tl.constexpr) else size
        if not isinstance(plain, int):
            raise TypeError(f"Shape element {i} must have type `constexpr[int]`, got {plain!r}")
        sizes.append(plain)
    return tuple(sizes)


def shape_of(value: tl.tensor) -> Shape:
    """The shape of a value as a plain tuple: () for a scalar."""
    type = value.type
    return tuple(type.shape.values) if isinstance(type, block_type) else ()


def with_shape(value: tl.tensor, handle: SSAValue, shape: Shape) -> tl.tensor:
    """`handle` as a value with the element type of `value`."""
    return tl.tensor(handle, block(value.type.scalar, shape))


def normal_axis(axis: int, rank: int) -> int:
    """`axis` counted from 0: ``normal_axis(-1, 3)`` is 2."""
    if not -rank <= axis < rank:
        raise ValueError(f"invalid axis {axis}. Expected {-rank} <= axis < {rank}")
    return axis + rank if axis < 0 else axis


class ShapeMixin:
    """Operations that create ranges or change shapes."""

    def arange(self: "Semantic", start: int, end: int) -> tl.tensor:
        """The int32 block ``[start, start + 1, ..., end - 1]``."""
        if type(start) is not int or type(end) is not int:
            raise ValueError(f"arange's arguments must be of type tl.constexpr, got {start!r} and {end!r}")
        if start < 0 or end >= 1 << 31:
            raise ValueError(f"arange must fit in int32 and start at 0 or above, got [{start}, {end})")
        if end <= start:
            raise ValueError(f"arange's end argument must be greater than the start argument: [{start}, {end})")
        if (length := end - start) & (length - 1):
            raise ValueError("arange's range must be a power of 2")
        check_shape((length,))
        op = self.builder.insert(tt.MakeRangeOp.make(start, end, self.builder.loc))
        return tl.tensor(op.results[0], block(int32, (length,)))

    def splat(self: "Semantic", value: tl.tensor, shape: Sequence[int]) -> tl.tensor:
        """Copy a scalar into every element of a block; a known constant becomes a dense constant."""
        if value.type.is_block():
            raise ValueError(f"Cannot splat a block: expected a scalar, got {value.type}")
        sizes = tuple(shape)
        if not sizes:
            return value
        check_shape(sizes)
        return with_shape(value, self._splat_handle(value.handle, sizes), sizes)

    def _splat_handle(self: "Semantic", scalar: SSAValue, shape: Shape) -> SSAValue:
        type = tensor_type(shape, scalar.type)
        known = constant_value(scalar)
        if known is not None and not isnan(known):  # a NaN keeps its payload only through tt.splat
            return self.builder.constant(known, type)
        return self.builder.insert(tt.SplatOp.make(scalar, type, self.builder.loc)).results[0]

    def broadcast(self: "Semantic", lhs: tl.tensor, rhs: tl.tensor) -> tuple[tl.tensor, tl.tensor]:
        """Both values in their common shape (two scalars stay scalars)."""
        left_type, right_type = lhs.type, rhs.type
        if left_type is right_type:
            return lhs, rhs
        left_is_block, right_is_block = left_type.is_block(), right_type.is_block()
        if not left_is_block:
            return (self.splat(lhs, shape_of(rhs)), rhs) if right_is_block else (lhs, rhs)
        if not right_is_block:
            return lhs, self.splat(rhs, shape_of(lhs))
        left, right = shape_of(lhs), shape_of(rhs)
        if left == right:
            return lhs, rhs
        common = common_shape(left, right)
        return self._stretch(lhs, common), self._stretch(rhs, common)

    def broadcast_all(self: "Semantic", values: Sequence[tl.tensor]) -> list[tl.tensor]:
        """All values in one common shape: `broadcast` for any number of them."""
        common: Shape = ()
        for value in values:
            if (shape := shape_of(value)) != common:
                common = common_shape(common, shape)
        return [self._stretch(value, common) for value in values]

    def _stretch(self: "Semantic", value: tl.tensor, shape: Shape) -> tl.tensor:
        """`value` in `shape`, which is known to be reachable: leading axes are added, unit axes repeated."""
        if not value.type.is_block():
            return self.splat(value, shape)
        while len(shape_of(value)) < len(shape):
            value = self.expand_dims(value, 0)
        return self._repeat_unit_axes(value, shape)

    def _repeat_unit_axes(self: "Semantic", value: tl.tensor, shape: Shape) -> tl.tensor:
        if shape_of(value) == shape:
            return value
        handle = value.handle
        type = tensor_type(shape, element_type(handle.type))
        op = self.builder.insert(tt.BroadcastOp.make(handle, type, self.builder.loc))
        return with_shape(value, op.results[0], shape)

    def broadcast_to(self: "Semantic", value: tl.tensor, shape: Sequence[int]) -> tl.tensor:
        """`value` repeated to exactly `shape`; a block must have the same rank already."""
        value = self.to_tensor(value)
        wanted = check_shape(plain_shape(shape))
        if not value.type.is_block():
            return self.splat(value, wanted)
        have = shape_of(value)
        if have == wanted:
            return value
        if len(have) != len(wanted):
            raise ValueError(f"Cannot broadcast, rank mismatch: {list(have)}, {list(wanted)}")
        for i, (size, target) in enumerate(zip(have, wanted)):
            if size != target and size != 1:
                raise ValueError(
                    f"Cannot broadcast, the expanded size of the tensor ({target}) must match the existing size "
                    f"({size}) at non-singleton dimension {i}: {list(have)}, {list(wanted)}"
                )
        return self._repeat_unit_axes(value, wanted)

    def expand_dims(self: "Semantic", value: tl.tensor, axis: int) -> tl.tensor:
        """A new axis of size 1 at position `axis` of the result."""
        value = self.to_tensor(value)
        shape = shape_of(value)
        axis = normal_axis(axis, len(shape) + 1)
        if not shape:
            return self.splat(value, (1,))
        op = self.builder.insert(tt.ExpandDimsOp.make(value.handle, axis, self.builder.loc))
        return with_shape(value, op.results[0], (*shape[:axis], 1, *shape[axis:]))

    def reshape(self: "Semantic", value: tl.tensor, shape: Sequence[int], can_reorder: bool = False) -> tl.tensor:
        """The same elements in row-major order (in any order with `can_reorder`) under another shape."""
        value = self.to_tensor(value)
        wanted, have = check_shape(plain_shape(shape)), shape_of(value)
        if prod(wanted) != prod(have):
            raise ValueError(
                f"reshape() cannot change total number of elements in tensor: {list(have)} has {prod(have)}, "
                f"{list(wanted)} has {prod(wanted)}"
            )
        if not wanted:
            return self.unsplat(value)
        if not have:
            return self.splat(value, wanted)
        if wanted == have and not can_reorder:
            return value
        handle = value.handle
        type = tensor_type(wanted, element_type(handle.type))
        op = self.builder.insert(tt.ReshapeOp.make(handle, type, self.builder.loc, allow_reorder=can_reorder))
        return with_shape(value, op.results[0], wanted)

    def unsplat(self: "Semantic", value: tl.tensor) -> tl.tensor:
        """The only element of a one-element block, as a scalar."""
        shape = shape_of(value)
        if not shape:
            return value
        assert prod(shape) == 1, f"only a block with one element has an item, got shape {list(shape)}"
        op = self.builder.insert(tt.UnsplatOp.make(value.handle, self.builder.loc))
        return with_shape(value, op.results[0], ())

    def permute(self: "Semantic", value: tl.tensor, dims: Sequence[int]) -> tl.tensor:
        """Axis i of the result is axis ``dims[i]`` of `value`."""
        shape, order = shape_of(value), plain_shape(dims)
        if len(order) != len(shape):
            raise ValueError(f"permute dims must have the same length as the input shape: {order} for {list(shape)}")
        if sorted(order) != list(range(len(shape))):
            raise ValueError(f"permute dims must be a permutation of 0, 1, ..., n-1, but were {list(order)}")
        op = self.builder.insert(tt.TransOp.make(value.handle, order, self.builder.loc))
        return with_shape(value, op.results[0], tuple(shape[axis] for axis in order))

    def cat(self: "Semantic", lhs: tl.tensor, rhs: tl.tensor, can_reorder: bool) -> tl.tensor:
        """The elements of both blocks in one block twice as long, in no particular order."""
        assert can_reorder, "cat does not keep the order of the elements: pass can_reorder=True, or use join"
        assert lhs.type == rhs.type and len(shape_of(lhs)) == 1, (
            f"cat takes two 1-D blocks of one type, got {lhs.type} and {rhs.type}"
        )
        shape = check_shape((2 * shape_of(lhs)[0],))
        type = tensor_type(shape, element_type(lhs.handle.type))
        op = self.builder.insert(tt.CatOp.make(lhs.handle, rhs.handle, type, self.builder.loc))
        return with_shape(lhs, op.results[0], shape)

    def join(self: "Semantic", lhs: tl.tensor, rhs: tl.tensor) -> tl.tensor:
        """Both values side by side on a new last axis of size 2."""
        lhs, rhs = self.broadcast(self.to_tensor(lhs), self.to_tensor(rhs))
        if lhs.type.scalar != rhs.type.scalar:
            raise ValueError(
                f"join takes values of one element type, got {lhs.type.scalar} and {rhs.type.scalar}; cast one of them"
            )
        if are_scalars := not lhs.type.is_block():
            lhs, rhs = self.expand_dims(lhs, 0), self.expand_dims(rhs, 0)
        op = self.builder.insert(tt.JoinOp.make(lhs.handle, rhs.handle, self.builder.loc))
        joined = with_shape(lhs, op.results[0], check_shape((*shape_of(lhs), 2)))
        return self.reshape(joined, (2,)) if are_scalars else joined

    def split(self: "Semantic", value: tl.tensor) -> tuple[tl.tensor, tl.tensor]:
        """The two halves of the last axis, which has size 2; two scalars for shape (2,)."""
        shape = shape_of(value)
        assert shape and shape[-1] == 2, f"split needs a last axis of size 2, got shape {list(shape)}"
        if to_scalars := len(shape) == 1:
            value = self.expand_dims(value, 0)
            shape = (1, 2)
        op = self.builder.insert(tt.SplitOp.make(value.handle, self.builder.loc))
        left, right = (with_shape(value, result, shape[:-1]) for result in op.results)
        return (self.unsplat(left), self.unsplat(right)) if to_scalars else (left, right)

    def gather(self: "Semantic", src: tl.tensor, index: tl.tensor, axis: int) -> tl.tensor:
        """``out[i, j] = src[i, index[i, j]]`` for axis 1; the result has the shape of `index`."""
        assert index.type.scalar.is_int(), f"gather's index must be an integer block, got {index.type}"
        shape, wanted = shape_of(src), shape_of(index)
        assert shape and len(shape) == len(wanted), (
            f"gather's source and index must have the same rank, got {list(shape)} and {list(wanted)}"
        )
        assert -len(shape) <= axis < len(shape), f"gather axis {axis} must be in [{-len(shape)}, {len(shape)})"
        axis %= len(shape)
        for i, (size, other) in enumerate(zip(shape, wanted)):
            assert i == axis or size == other, (
                f"gather's source and index may differ only on axis {axis}, but axis {i} is {size} and {other}"
            )
        op = self.builder.insert(tt.GatherOp.make(src.handle, index.handle, axis, self.builder.loc))
        return with_shape(src, op.results[0], wanted)

    def histogram(
        self: "Semantic", value: tl.tensor, num_bins: int, mask: tl.tensor | tl.constexpr | bool | None = None
    ) -> tl.tensor:
        """How often each of 0 .. num_bins-1 occurs among the elements where `mask` is true."""
        shape = shape_of(value)
        assert len(shape) == 1, f"histogram only supports 1D input, got shape {list(shape)}"
        assert value.type.scalar.is_int(), f"histogram only supports integer input, got {value.type.scalar}"
        bins = check_shape(plain_shape((num_bins,)))
        if value.type.scalar.is_int_signed() and bins[0] > value.type.scalar.get_int_max_value() + 1:
            value = self.cast(value, int32)  # the op reads bits: -1 would be the last bin of an 8-bit type
        condition = self.optional_tensor(mask)
        if condition is not None:
            if not condition.type.scalar.is_bool():
                raise ValueError(f"histogram's mask must have boolean scalar type, got {condition.type.scalar}")
            condition = self.broadcast_to(condition, shape).handle
        op = self.builder.insert(tt.HistogramOp.make(value.handle, condition, bins[0], self.builder.loc))
        return tl.tensor(op.results[0], block(int32, bins))

    def optional_tensor(self: "Semantic", value: Any) -> tl.tensor | None:
        """None for None and ``constexpr(None)``, else the value as a tensor."""
        if value is None or (isinstance(value, tl.constexpr) and value.value is None):
            return None
        return self.to_tensor(value)


@cache
def common_shape(left: Shape, right: Shape) -> Shape:
    """The shape both broadcast to: ``common_shape((64,), (32, 1))`` is (32, 64)."""
    rank = max(len(left), len(right))
    left, right = (1,) * (rank - len(left)) + left, (1,) * (rank - len(right)) + right
    for i, (a, b) in enumerate(zip(left, right)):
        if a != b and a != 1 and b != 1:
            raise ValueError(
                f"Cannot make_shape_compatible: incompatible dimensions at index {i}: {a} and {b}; the shapes are "
                f"{list(left)} and {list(right)}"
            )
    return tuple(b if a == 1 else a for a, b in zip(left, right))
