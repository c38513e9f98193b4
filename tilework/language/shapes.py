"""Builtins that create blocks and change their shape."""

import warnings
from typing import Any

from tilework.language.compile_time import (
    _unwrap_if_constexpr,
    _unwrap_iterable,
    _unwrap_shape,
    constexpr,
    tuple,
)


def arange(start: Any, end: Any, _semantic: Any = None) -> Any:
    """The int32 block ``start, start + 1, ..., end - 1``; its length is a power of two.

    offsets = first + tl.arange(0, BLOCK)
    """
    return _semantic.arange(_unwrap_if_constexpr(start), _unwrap_if_constexpr(end))


def full(shape: Any, value: Any, dtype: Any, _semantic: Any = None) -> Any:
    """A block of one value: ``acc = tl.full((M, N), float("-inf"), tl.float32)``. Shape ``()`` gives a scalar."""
    return _semantic.full(_unwrap_shape(shape), value, _unwrap_if_constexpr(dtype))


def broadcast(input: Any, other: Any, _semantic: Any = None) -> Any:
    """Both values in their common shape: ``row, col = tl.broadcast(i[None, :], j[:, None])``."""
    return _semantic.broadcast(_semantic.to_tensor(input), _semantic.to_tensor(other))


def broadcast_to(input: Any, *shape: Any, _semantic: Any = None) -> Any:
    """Repeat axes of size 1 to reach `shape`: ``tl.broadcast_to(x[:, None], M, N)``. A scalar fills the block."""
    return _semantic.broadcast_to(input, _unwrap_shape(_unwrap_iterable(shape)))


def expand_dims(input: Any, axis: Any, _semantic: Any = None) -> Any:
    """Insert axes of size 1 at positions of the result: ``tl.expand_dims(x, (0, -1))`` of (4,) has shape (1, 4, 1)."""
    input = _semantic.to_tensor(input)
    axes = _unwrap_shape(axis)
    rank = len(input.shape) + len(axes)
    axes = [_wrap_axis(axis, rank) for axis in axes]
    if len(set(axes)) != len(axes):
        raise ValueError(f"expand_dims received duplicate axes, normalized axes = {axes}")
    for axis in sorted(axes):
        input = _semantic.expand_dims(input, axis)
    return input


def _wrap_axis(axis: Any, rank: int) -> int:
    """`axis` counted from 0: ``_wrap_axis(-1, 3)`` is 2."""
    axis = _unwrap_if_constexpr(axis)
    if not isinstance(axis, int) or not -rank <= axis < rank:
        raise ValueError(f"invalid axis {axis}. Expected {-rank} <= axis < {rank}")
    return axis % rank


def reshape(input: Any, *shape: Any, can_reorder: Any = False, _semantic: Any = None) -> Any:
    """The same elements in row-major order under another shape: ``tl.reshape(x, 4, 8)`` or ``x.reshape([4, 8])``.

    With `can_reorder` the compiler may choose another order of the elements.
    """
    return _semantic.reshape(input, _unwrap_shape(_unwrap_iterable(shape)), _unwrap_if_constexpr(can_reorder))


def view(input: Any, *shape: Any, _semantic: Any = None) -> Any:
    """Deprecated: `reshape` with ``can_reorder=True``."""
    warnings.warn("view is deprecated, use reshape with can_reorder=True instead", DeprecationWarning, stacklevel=2)
    return _semantic.reshape(input, _unwrap_shape(_unwrap_iterable(shape)), True)


def permute(input: Any, *dims: Any, _semantic: Any = None) -> Any:
    """Axis i of the result is axis ``dims[i]`` of the input: ``tl.permute(x, 2, 0, 1)``."""
    return _semantic.permute(input, _unwrap_shape(_unwrap_iterable(dims)))


def trans(input: Any, *dims: Any, _semantic: Any = None) -> Any:
    """Swap the last two axes; with `dims`, the same as `permute`: ``tl.trans(x)`` of (M, N) is (N, M)."""
    order = _unwrap_shape(_unwrap_iterable(dims))
    if not order:
        rank = len(input.shape)
        if rank < 2:
            raise ValueError(f"trans without dims needs at least two axes, {input} has {rank}")
        order = [*range(rank - 2), rank - 1, rank - 2]
    return _semantic.permute(input, order)


def cat(input: Any, other: Any, can_reorder: Any = False, _semantic: Any = None) -> Any:
    """All elements of two 1-D blocks in one, in no particular order: ``tl.cat(a, b, can_reorder=True)``."""
    return _semantic.cat(input, other, _unwrap_if_constexpr(can_reorder))


def join(a: Any, b: Any, _semantic: Any = None) -> Any:
    """Two values side by side on a new last axis: (N,) and (N,) give (N, 2); two scalars give (2,)."""
    return _semantic.join(a, b)


def split(a: Any, _semantic: Any = None) -> Any:
    """The inverse of `join`: ``left, right = tl.split(x)`` for a last axis of size 2."""
    return tuple(_semantic.split(a))


def gather(src: Any, index: Any, axis: Any, _semantic: Any = None) -> Any:
    """Pick elements along an axis: ``out[i, j] = src[i, index[i, j]]`` for axis 1.

    An index outside of the axis gives some number; the sanitizer reports where it is used (docs/sanitizer.md).
    """
    return _semantic.gather(src, index, _unwrap_if_constexpr(axis))


def histogram(input: Any, num_bins: Any, mask: Any = None, _semantic: Any = None) -> Any:
    """Count the values 0 .. num_bins - 1 of a 1-D integer block: ``tl.histogram(x, 256, mask=x < 256)``.

    Other values are left out; under the sanitizer they are an error (docs/sanitizer.md).
    """
    return _semantic.histogram(input, _unwrap_if_constexpr(num_bins), _none_or(mask))


def _none_or(value: Any) -> Any:
    """None for None and for ``constexpr(None)``, else the value."""
    return None if isinstance(value, constexpr) and value.value is None else value
