"""The builtins that make, view and fold blocks; their rules are in `shapes.py`."""

from collections.abc import Sequence
from math import prod
from typing import Any

from tilework.language.typing.carrier import Body, Pair
from tilework.language.typing.operators import Operators
from tilework.language.typing.shapes import (
    beyond_triton,
    check_broadcast_to,
    check_gather,
    check_order,
    check_range,
    check_reshape,
    common_input_shape,
    normal_axis,
    plain_shape,
    shape_of,
)
from tilework.language.values import tensor


class Views(Operators):
    """Ranges, views, `gather` and `histogram`; `reduce`, `scan` and `map_elementwise`."""

    def arange(self, start: int, end: int) -> tensor:
        """The int32 block ``[start, start + 1, ..., end - 1]``."""
        check_range(start, end)
        if beyond_triton((end - start,)) is not None:
            self.beyond_triton(ValueError("arange's range must be a power of 2"))
        return self.counting(start, end)

    def broadcast_to(self, value: Any, shape: Sequence[int]) -> tensor:
        """`value` repeated to exactly `shape`; a block must have the same rank already."""
        value = self.to_tensor(value)
        wanted = self.checked_shape(plain_shape(shape))
        if value.type.is_block():
            check_broadcast_to(shape_of(value), wanted)
        return self.stretch(value, wanted)

    def expand_dims(self, value: Any, axis: int) -> tensor:
        """A new axis of size 1 at position `axis` of the result."""
        value = self.to_tensor(value)
        return self.with_axis(value, normal_axis(axis, len(shape_of(value)) + 1))

    def reshape(self, value: Any, shape: Sequence[int], can_reorder: bool = False) -> tensor:
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
            shown = f"{value.dtype}{list(shape) or ''}"
            raise ValueError(f"`.T` needs a 2-D block, this one is {shown}\nhelp: use tl.permute(x, dims)")
        return self.permute(value, (1, 0))

    def cat(self, lhs: tensor, rhs: tensor, can_reorder: bool) -> tensor:
        """The elements of both blocks in one block twice as long, in no particular order."""
        assert can_reorder, (
            "current implementation of `cat` always may reorder elements: pass can_reorder=True, or use join"
        )
        assert lhs.type == rhs.type and len(shape_of(lhs)) == 1, (
            f"cat takes two 1-D blocks of one type, got {lhs.type} and {rhs.type}"
        )
        self.checked_shape((2 * shape_of(lhs)[0],))
        if self.options.reproducible:  # in the order of both
            return self.reshape(self.permute(self.join(lhs, rhs), (1, 0)), (2 * shape_of(lhs)[0],))
        return self.concatenated(lhs, rhs)

    def join(self, lhs: Any, rhs: Any) -> tensor:
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

    def histogram(self, value: tensor, num_bins: int, mask: Any = None) -> tensor:
        """How often each of 0 .. num_bins-1 occurs among the elements where `mask` is true."""
        shape = shape_of(value)
        assert len(shape) == 1, f"histogram only supports 1D input, got shape {list(shape)}"
        assert value.dtype.is_int(), f"histogram only supports integer input, got {value.dtype}"
        (bins,) = self.checked_shape(plain_shape((num_bins,)))
        condition = self.optional_tensor(mask)
        if condition is not None:
            if not condition.dtype.is_bool():
                raise ValueError(f"histogram's mask must have boolean scalar type, got {condition.dtype}")
            condition = self.broadcast_to(condition, shape)
        return self.counted(value, bins, condition)

    def reduce(self, inputs: Sequence[tensor], axis: int | None, region_builder: Body) -> tuple[tensor, ...]:
        """Combine all elements along `axis` (of the whole block for None)."""
        shape = common_input_shape(inputs, "reduce")
        if axis is None:
            inputs = [self.reshape(value, (prod(shape),), True) for value in inputs]
            return self.reduced(inputs, 0, region_builder)
        return self.reduced(inputs, normal_axis(axis, len(shape)), region_builder)

    def scan(self, inputs: Sequence[tensor], axis: int, region_builder: Body, reverse: bool) -> tuple[tensor, ...]:
        """Each element combined with all before it along `axis` (with all after it if `reverse`)."""
        shape = common_input_shape(inputs, "scan")
        return self.scanned(inputs, normal_axis(axis, len(shape)), region_builder, bool(reverse))

    def map_elementwise(self, args: Sequence[Any], pack: int, region_builder: Body) -> tuple[tensor, ...]:
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
        return tuple(self.reshape(value, shape) for value in self.mapped(flat, pack, region_builder))
