"""The rules of builtins that create, view and reduce blocks, and of subscripts.

Subscripts have NumPy's meaning: ``x[3]``, ``x[i]``, ``x[2:10]``, ``x[..., ::2]``, ``x[:, 0] = v``. Bounds of slices are
known at compile time, since shapes are; an index may be a run-time scalar. The rules decide which elements are
selected; `extracted` and `inserted` of the carriers move them.
"""

import builtins
from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from tilework.language.compile_time import slice, tuple
from tilework.language.typing.carrier import Body, Pair
from tilework.language.typing.operators import Elementwise
from tilework.language.typing.promotion import plain
from tilework.language.typing.python_names import describe_type
from tilework.language.typing.shapes import (
    beyond_triton,
    check_broadcast_to,
    check_gather,
    check_order,
    check_range,
    check_reshape,
    common_input_shape,
    incompatible,
    normal_axis,
    plain_shape,
    shape_of,
)
from tilework.language.values import Value, is_full_slice, tensor
from tilework.process.triton_version import follows


class Views(Elementwise):
    """Ranges, views, `gather` and `histogram`; `reduce`, `scan` and `map_elementwise`."""

    def arange(self, start: int, end: int) -> tensor:
        """The int32 block ``[start, start + 1, ..., end - 1]``."""
        check_range(start, end)
        if beyond_triton((end - start,)) is not None:
            self.beyond_triton(ValueError("arange's range must be a power of 2"))
        return self.counting(start, end)

    def broadcast_to(self, value: Value, shape: Sequence[int]) -> tensor:
        """`value` repeated to exactly `shape`; a block must have the same rank already."""
        value = self.to_tensor(value)
        wanted = self.checked_shape(plain_shape(shape))
        if value.type.is_block():
            check_broadcast_to(shape_of(value), wanted)
        return self.stretch(value, wanted)

    def expand_dims(self, value: Value, axis: int) -> tensor:
        """A new axis of size 1 at position `axis` of the result."""
        value = self.to_tensor(value)
        return self.with_axis(value, normal_axis(axis, len(shape_of(value)) + 1))

    def reshape(self, value: Value, shape: Sequence[int], can_reorder: bool = False) -> tensor:
        """The same elements in row-major order (in any order with `can_reorder`) under another shape."""
        value, wanted = self.to_tensor(value), self.checked_shape(plain_shape(shape))
        check_reshape(shape_of(value), wanted)
        return self.reshaped(value, wanted, can_reorder and not self.options.reproducible)

    def permute(self, value: tensor, dims: Sequence[int]) -> tensor:
        """Axis i of the result is axis ``dims[i]`` of `value`."""
        order = plain_shape(dims)
        check_order(order, shape_of(value))
        return self.permuted(value, order)

    def transposed(self, value: tensor) -> tensor:
        """``x.T``."""
        if len(shape := shape_of(value)) != 2:
            words = f"permute dims must have the same length as input shape, got {len(shape)} and 2"
            raise ValueError(f"{words}: `.T` needs a 2-D block\nhelp: use tl.permute(x, dims)")
        return self.permute(value, (1, 0))

    def cat(self, lhs: tensor, rhs: tensor, can_reorder: bool, dim: int = 0) -> tensor:
        """Both blocks in one, twice as long along `dim`; two of rank 1 in no particular order if `can_reorder`."""
        if not isinstance(lhs, tensor) or not isinstance(rhs, tensor):
            raise TypeError(f"cat takes two blocks, got {lhs} and {rhs}")
        if not can_reorder or follows("cat-in-order"):
            return self.cat_in_order(lhs, rhs, dim)
        if len(shape_of(lhs)) != 1 or len(shape_of(rhs)) != 1:
            raise ValueError(f"shape not supported by cat. Expecting rank-1 inputs, got {lhs.type} and {rhs.type}")
        assert lhs.type == rhs.type, f"cat takes two blocks of one type, got {lhs.type} and {rhs.type}"
        self.checked_shape((2 * shape_of(lhs)[0],))
        return self.cat_in_order(lhs, rhs, 0) if self.options.reproducible else self.concatenated(lhs, rhs)

    def cat_in_order(self, lhs: tensor, rhs: tensor, dim: int) -> tensor:
        """The elements of `lhs` along `dim`, then those of `rhs`."""
        shape, other = shape_of(lhs), shape_of(rhs)
        assert len(shape) == len(other), f"tensors must have the same rank, got {len(shape)} and {len(other)}"
        axis = normal_axis(dim, len(shape))
        for index, (size, wanted) in enumerate(zip(other, shape, strict=True)):
            assert size == wanted or index == axis, (
                f"tensor dims must match except in the concat dimension {axis}, got {list(shape)} and {list(other)}"
            )
        if shape != other:  # `join` broadcasts, but the parts of one axis are not repeated
            raise incompatible(shape, other, axis)
        order = [*range(axis), len(shape), *range(axis, len(shape))]
        longer = (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :])
        return self.reshape(self.permute(self.join(lhs, rhs), order), longer)

    def join(self, lhs: Value, rhs: Value) -> tensor:
        """Both values side by side on a new last axis of size 2."""
        lhs, rhs = self.broadcast(self.to_tensor(lhs), self.to_tensor(rhs))
        if lhs.dtype != rhs.dtype:
            raise ValueError(
                f"join takes values of one element type, got {lhs.dtype} and {rhs.dtype}; cast one of them"
            )
        self.checked_shape((*shape_of(lhs), 2))
        return self.joined(lhs, rhs)

    def split(self, value: tensor) -> Pair:
        """The two halves of the last axis, which has size 2; two scalars for shape (2,)."""
        shape = shape_of(value)
        assert shape and shape[-1] == 2, f"split needs a last axis of size 2, got shape {list(shape)}"
        return self.halves(value)

    def gather(self, src: tensor, index: tensor, axis: int) -> tensor:
        """``out[i, j] = src[i, index[i, j]]`` for axis 1; the result has the shape of `index`."""
        return self.gathered(src, index, check_gather(src, index, axis))

    def histogram(self, value: tensor, num_bins: int, mask: Value | None = None) -> tensor:
        """Return the number of occurrences of each of 0 .. num_bins-1 among the elements where `mask` is true."""
        shape = shape_of(value)
        assert len(shape) == 1, f"histogram only supports 1D input, got shape {list(shape)}"
        assert value.dtype.is_int(), f"histogram only supports integer input, got {value.dtype}"
        if follows("histogram-of-32-bits") and value.dtype.primitive_bitwidth != 32:
            raise ValueError(f"histogram only supports 32-bit integers in Triton 3.8, got {value.dtype}: cast them")
        (bins,) = self.checked_shape(plain_shape((num_bins,)))
        condition = self.optional_tensor(mask)
        if condition is not None:
            if not condition.dtype.is_bool():
                raise ValueError(f"histogram's mask must have boolean scalar type, got {condition.dtype}")
            condition = self.broadcast_to(condition, shape)
        return self.counted(value, bins, condition)

    def reduce(self, inputs: Sequence[tensor], axis: int | None, region_builder: Body) -> builtins.tuple[tensor, ...]:
        """Combine all elements along `axis` (of the whole block for None)."""
        shape = common_input_shape(inputs, "reduce")
        if axis is None:
            inputs = [self.reshape(value, (prod(shape),), True) for value in inputs]
            return self.reduced(inputs, 0, region_builder)
        return self.reduced(inputs, normal_axis(axis, len(shape)), region_builder)

    def scan(
        self, inputs: Sequence[tensor], axis: int, region_builder: Body, reverse: bool
    ) -> builtins.tuple[tensor, ...]:
        """Each element combined with all before it along `axis` (with all after it if `reverse`)."""
        shape = common_input_shape(inputs, "scan")
        return self.scanned(inputs, normal_axis(axis, len(shape)), region_builder, bool(reverse))

    def map_elementwise(self, args: Sequence[Any], pack: int, region_builder: Body) -> builtins.tuple[tensor, ...]:
        """`region_builder` applied to each element (to `pack` elements at once); one result per value it returns.

        With pack 2 the function of two arguments sees ``a0, a1, b0, b1`` and returns ``x0, x1, y0, y1``.
        """
        if not args:
            raise ValueError("map_elementwise needs at least one tensor")
        if pack < 1 or pack & (pack - 1):
            raise ValueError(f"map_elementwise's pack must be a power of 2, got {pack}")
        blocks = self.broadcast_all([self.to_tensor(value) for value in args])
        if not blocks[0].type.is_block():
            blocks = [self.splat(value, (1,)) for value in blocks]
        shape = shape_of(blocks[0])
        elements = prod(shape)
        assert elements % pack == 0, f"a block of {elements} elements cannot be split into groups of {pack}"
        if shape[-1] % pack == 0 or beyond_triton(shape) is None:
            return self.mapped(blocks, pack, region_builder)
        flat = [self.reshape(value, (elements,)) for value in blocks]  # groups are along the last axis
        return builtins.tuple(self.reshape(value, shape) for value in self.mapped(flat, pack, region_builder))


class Part(NamedTuple):
    """The selected part of one axis: every `step`-th element from `start`, `count` of them; an axis that is `picked`
    is dropped."""

    start: int | tensor
    step: int
    count: int
    picked: bool = False

    def is_whole(self, size: int) -> bool:
        return not self.picked and (self.start, self.step, self.count) == (0, 1, size)


def index_items(index: object) -> list[Any]:
    """The items of a subscript, which may be one."""
    index = plain(index)
    return [plain(item) for item in (index if isinstance(index, list | tuple | builtins.tuple) else [index])]


def is_plain_view(index: object) -> bool:
    """Return True if an index has only ``:`` and None, the items that Triton accepts."""
    return all(item is None or is_full_slice(item) for item in index_items(index))


def is_slice(item: object) -> bool:
    return isinstance(item, slice | builtins.slice)


def python_slice(item: object) -> object:
    return item.to_python() if isinstance(item, slice) else item


NOT_AN_ARRAY = "a pointer is not an array"  # `advice.py` says what to write


def about_parts(owner: Any) -> str:
    """Return the replacement for ``owner[i] = v`` where the parts of a value cannot be changed."""
    if isinstance(owner, tuple):
        return "a list or tuple does not change: make a new one, such as `r = (x, *r[1:])`"
    return "only parts of blocks can, which makes a new block"


def is_one_pointer(x: object) -> bool:
    """Return True for a pointer that is no tile."""
    return isinstance(x, tensor) and x.dtype.is_ptr() and not x.type.is_block()


class Indexing(Views):
    """Parts of blocks, read and replaced."""

    def subscript(self, x: tensor, index: object) -> tensor:
        """``x[index]``."""
        parts, new_axes = self.parts(x, index)
        if not all(part.is_whole(size) for part, size in zip(parts, shape_of(x), strict=True)):
            self.checked_shape(sizes_of(parts))
            x = self.extracted(x, parts)
        for axis in new_axes:
            x = self.expand_dims(x, axis)
        return x

    def with_subscript(self, x: tensor, index: object, value: Value) -> tensor:
        """Return `x` after ``x[index] = value``."""
        parts, new_axes = self.parts(x, index, may_be_empty=True)
        value = self.cast(self.to_tensor(value), x.dtype)
        shape = [part.count for part in parts if not part.picked]
        for axis in new_axes:
            shape.insert(axis, 1)
        own = shape_of(value)
        while len(own) > len(shape) and own[0] == 1:
            own = own[1:]
        value = self.reshape(value, own)
        check_broadcast_to(own, builtins.tuple(shape[max(len(shape) - len(own), 0) :]))
        if not all(shape):
            return x
        for axis in reversed(new_axes):
            at = axis - len(shape)  # from the end, where shapes meet
            shape.pop(axis)
            if len(own := shape_of(value)) >= -at:
                value = self.reshape(value, [size for position, size in enumerate(own, -len(own)) if position != at])
        return self.inserted(x, parts, value)

    def parts(self, x: tensor, index: object, *, may_be_empty: bool = False) -> builtins.tuple[list[Part], list[int]]:
        """Return the selected part of each axis, and the positions of new axes in the result."""
        shape, items = shape_of(x), index_items(index)
        used = sum(item is not None and item is not Ellipsis for item in items)
        if used > len(shape):
            if is_one_pointer(x):
                raise IndexError(f"unsupported tensor index: {NOT_AN_ARRAY}")
            raise IndexError(f"unsupported tensor index: too many indices, {used} for a block of shape {list(shape)}")
        dots = [position for position, item in enumerate(items) if item is Ellipsis]
        if len(dots) > 1:
            raise IndexError("an index can have only one `...`")
        rest: list[Any] = [builtins.slice(None)] * (len(shape) - used)
        at = dots[0] if dots else len(items)
        items[at : at + 1] = rest
        parts: list[Part] = []
        new_axes: list[int] = []
        position = 0
        for item in items:
            if item is None:
                new_axes.append(position)
            else:
                parts.append(self.part(item, len(parts), shape[len(parts)], may_be_empty))
            position += item is None or not parts[-1].picked
        return parts, new_axes

    def part(self, item: object, axis: int, size: int, may_be_empty: bool) -> Part:
        """One item of a subscript for an axis of `size` elements."""
        item = python_slice(item)
        if isinstance(item, builtins.slice):
            if any(isinstance(bound, tensor) for bound in (item.start, item.stop, item.step)):
                raise TypeError(
                    "the bounds of a slice must be known at compile time"
                    "\nhelp: x[i] may be any scalar; load what you need, or use tl.gather"
                )
            selected = range(*item.indices(size))
            if not selected and not may_be_empty:
                raise IndexError(f"{shown_slice(item)} takes nothing of axis {axis}, which has {size} elements")
            return Part(selected.start, selected.step, len(selected))
        if isinstance(item, tensor):
            return Part(self.checked_index(item, axis, size), 1, 1, True)
        if isinstance(item, bool) or not isinstance(item, int):
            raise TypeError(
                f"unsupported tensor index: {item!r}"
                "\nhelp: an index is an integer, a slice, None or `...`; tl.gather takes blocks of indices"
            )
        if not -size <= item < size:
            raise IndexError(f"index {item} is outside axis {axis}, which has {size} elements")
        return Part(item % size, 1, 1, True)

    def checked_index(self, index: tensor, axis: int, size: int) -> tensor:
        """Return a run-time index, counted from the start; debug builds check it."""
        if index.type.is_block() or not index.dtype.is_int() or index.dtype.is_bool():
            raise TypeError(
                f"unsupported tensor index: {describe_type(index.type)}"
                "\nhelp: a run-time index is an integer scalar; tl.gather takes blocks of"
                " indices, tl.where masks"
            )
        if index.dtype.is_int_signed():
            index = self.where(self.less_than(index, 0), self.add(index, size, False), index)
        if self.asserts():
            inside = self.and_(self.greater_equal(index, 0), self.less_than(index, size))
            self.asserted(inside, f"index is outside axis {axis}, which has {size} elements")
        return index


def shown_slice(item: builtins.slice) -> str:
    """``2:10`` as it is written."""
    text = ":".join("" if part is None else str(part) for part in (item.start, item.stop))
    return text if item.step is None else f"{text}:{item.step}"


def sizes_of(parts: Sequence[Part]) -> builtins.tuple[int, ...]:
    """The shape of what is taken."""
    return builtins.tuple(part.count for part in parts if not part.picked)
