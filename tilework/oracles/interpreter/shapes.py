"""Shapes: ranges, broadcasting, reshaping, transposing, gathering, counting."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tilework.language import core as tl
from tilework.language.dtypes import int32, validate_block_shape
from tilework.oracles.interpreter.element_functions import Elementwise
from tilework.oracles.interpreter.failures import at_run_time
from tilework.oracles.interpreter.tensors import plain, sizes_of, tensor


class Shapes(Elementwise):
    """Functions that move elements and compute nothing."""

    def arange(self, start: int, end: int) -> tl.tensor:
        if type(start) is not int or type(end) is not int:
            raise ValueError(f"arange's arguments must be of type tl.constexpr, got {start!r} and {end!r}")
        if start < 0 or end >= 1 << 31:
            raise ValueError(f"arange must fit in int32 and start at 0 or above, got [{start}, {end})")
        if end <= start:
            raise ValueError(f"arange's end argument must be greater than the start argument: [{start}, {end})")
        if (length := end - start) & (length - 1):
            raise ValueError("arange's range must be a power of 2")
        return tensor(np.arange(start, end, dtype=np.int32), int32)

    def splat(self, x: tl.tensor, shape: Sequence[int]) -> tl.tensor:
        """A scalar in every element of a block."""
        if x.handle.shape:
            raise ValueError(f"Cannot splat a block: expected a scalar, got {x.type}")
        return self.stretch(x, tuple(shape))

    def broadcast_to(self, x: Any, shape: Sequence[int]) -> tl.tensor:
        value, wanted = self.to_tensor(x), sizes_of(shape)
        validate_block_shape(wanted)
        have = value.handle.shape
        if have and len(have) != len(wanted):
            raise ValueError(f"Cannot broadcast, rank mismatch: {list(have)}, {list(wanted)}")
        for axis, (size, target) in enumerate(zip(have, wanted, strict=False)):
            if size not in (target, 1):
                raise ValueError(
                    f"Cannot broadcast, the expanded size of the tensor ({target}) must match the existing size "
                    f"({size}) at non-singleton dimension {axis}: {list(have)}, {list(wanted)}"
                )
        return self.stretch(value, wanted)

    def expand_dims(self, x: Any, axis: int) -> tl.tensor:
        value = self.to_tensor(x)
        rank = value.handle.ndim + 1
        if not -rank <= axis < rank:
            # an extra `:` beyond the rank is accepted, an extra None is not
            raise ValueError(f"invalid axis {axis}. Expected {-rank} <= axis < {rank}")
        return tensor(np.expand_dims(value.handle, axis), value.dtype)

    def reshape(self, x: Any, shape: Sequence[int], can_reorder: bool = False) -> tl.tensor:
        value, wanted = self.to_tensor(x), sizes_of(shape)
        validate_block_shape(wanted)
        have = value.handle.shape
        if prod(wanted) != prod(have):
            raise ValueError(
                f"reshape() cannot change total number of elements in tensor: {list(have)} has {prod(have)}, "
                f"{list(wanted)} has {prod(wanted)}"
            )
        return tensor(value.handle.reshape(wanted), value.dtype)

    def permute(self, x: tl.tensor, dims: Sequence[int]) -> tl.tensor:
        order, shape = sizes_of(dims), x.handle.shape
        if len(order) != len(shape):
            raise ValueError(f"permute dims must have the same length as the input shape: {order} for {list(shape)}")
        if sorted(order) != list(range(len(shape))):
            raise ValueError(f"permute dims must be a permutation of 0, 1, ..., n-1, but were {list(order)}")
        return tensor(np.transpose(x.handle, order), x.dtype)

    def transposed(self, x: tl.tensor) -> tl.tensor:
        """``x.T``."""
        if x.handle.ndim != 2:
            raise ValueError(f"`.T` needs a 2-D block, this one has shape {x.shape}")
        return self.permute(x, [1, 0])

    def cat(self, a: tl.tensor, b: tl.tensor, can_reorder: bool) -> tl.tensor:
        assert can_reorder, "cat does not keep the order of the elements: pass can_reorder=True, or use join"
        assert a.type == b.type and a.handle.ndim == 1, (
            f"cat takes two 1-D blocks of one type, got {a.type} and {b.type}"
        )
        return tensor(np.concatenate((a.handle, b.handle)), a.dtype)

    def join(self, a: Any, b: Any) -> tl.tensor:
        left, right = self.broadcast(self.to_tensor(a), self.to_tensor(b))
        if left.dtype != right.dtype:
            raise ValueError(f"join takes values of one element type, got {left.dtype} and {right.dtype}; cast one")
        return tensor(np.stack((left.handle, right.handle), axis=-1), left.dtype)

    def split(self, x: tl.tensor) -> tuple[tl.tensor, tl.tensor]:
        shape = x.handle.shape
        assert shape and shape[-1] == 2, f"split needs a last axis of size 2, got shape {list(shape)}"
        return tensor(x.handle[..., 0], x.dtype), tensor(x.handle[..., 1], x.dtype)

    def gather(self, src: tl.tensor, index: tl.tensor, axis: int) -> tl.tensor:
        assert index.dtype.is_int(), f"gather's index must be an integer block, got {index.type}"
        shape, wanted = src.handle.shape, index.handle.shape
        assert shape and len(shape) == len(wanted), (
            f"gather's source and index must have the same rank, got {list(shape)} and {list(wanted)}"
        )
        assert -len(shape) <= axis < len(shape), f"gather axis {axis} must be in [{-len(shape)}, {len(shape)})"
        axis %= len(shape)
        for position, (size, other) in enumerate(zip(shape, wanted, strict=True)):
            assert position == axis or size == other, (
                f"gather's source and index may differ only on axis {axis}, but axis {position} is {size} and {other}"
            )
        places = index.handle.astype(np.int64)
        outside = (places < 0) | (places >= shape[axis])
        if outside.any():
            first = places[outside][0]
            text = f"gather: index {first} is outside axis {axis}, which has {shape[axis]} elements"
            raise at_run_time(IndexError(text))
        return tensor(np.take_along_axis(src.handle, places, axis), src.dtype)

    def histogram(self, x: tl.tensor, num_bins: int, mask: Any = None) -> tl.tensor:
        """Values outside the bins are left out; under the sanitizer they are an error."""
        shape = x.handle.shape
        assert len(shape) == 1, f"histogram only supports 1D input, got shape {list(shape)}"
        assert x.dtype.is_int(), f"histogram only supports integer input, got {x.dtype}"
        (bins,) = sizes_of((plain(num_bins),))
        validate_block_shape((bins,))
        values, condition = x.handle.astype(np.int64), self.optional(mask)
        if condition is not None:
            if not condition.dtype.is_bool():
                raise ValueError(f"histogram's mask must have boolean scalar type, got {condition.dtype}")
            values = values[self.broadcast_to(condition, shape).handle]
        inside = (values >= 0) & (values < bins)
        if self.options.sanitize and not inside.all():
            text = f"histogram: value {values[~inside][0]} is outside the {bins} bins; mask it"
            raise at_run_time(IndexError(text))
        return tensor(np.bincount(values[inside], minlength=bins).astype(np.int32), int32)
