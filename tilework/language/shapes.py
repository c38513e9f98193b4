"""Builtins that create blocks and change their shape."""

import builtins
import warnings
from typing import TYPE_CHECKING, Any

from tilework.language.compile_time import (
    SUPPLIED,
    _unwrap_if_constexpr,
    _unwrap_iterable,
    _unwrap_shape,
    constexpr,
    tuple,
)
from tilework.language.dtypes import dtype
from tilework.language.values import Sizes, Value, tensor

if TYPE_CHECKING:
    from tilework.language.semantic import Semantic


def arange(start: int | constexpr, end: int | constexpr, _semantic: "Semantic" = SUPPLIED) -> tensor:
    """The int32 block ``start, start + 1, ..., end - 1``, of any length.

    Both ends are known at compile time. Sums of `program_id` and ranges are how kernels find their elements.

    Example:
        assert call(tl.arange, 0, 4).tolist() == [0, 1, 2, 3]

        @tilework.jit
        def fill(out, n, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(out + i, i, mask=i < n)

        out = np.zeros(10, np.int32)
        fill[(3,)](out, 10, BLOCK=4)
        assert out.tolist() == list(range(10))
    """
    return _semantic.arange(_unwrap_if_constexpr(start), _unwrap_if_constexpr(end))


def full(shape: Sizes, value: Value, dtype: dtype | constexpr, _semantic: "Semantic" = SUPPLIED) -> tensor:
    """A block of one value: ``acc = tl.full((M, N), float("-inf"), tl.float32)``. Shape ``()`` gives a scalar.

    `value` is a number or a scalar of the running kernel, converted to `dtype`.

    Example:
        assert call(tl.full, (2, 2), 7, tl.int8).tolist() == [[7, 7], [7, 7]]
    """
    return _semantic.full(_unwrap_shape(shape), value, _unwrap_if_constexpr(dtype))


def broadcast(input: Value, other: Value, _semantic: "Semantic" = SUPPLIED) -> builtins.tuple[tensor, tensor]:
    """Both values in their common shape: ``row, col = tl.broadcast(i[None, :], j[:, None])``.

    Operators broadcast by themselves, by NumPy's rules; this is for what needs the shape (a mask for `store`, a
    `reshape`).

    Example:
        rows, columns = call(tl.broadcast, np.array([[10], [20]]), np.array([[1, 2]]))
        assert rows.tolist() == [[10, 10], [20, 20]] and columns.tolist() == [[1, 2], [1, 2]]
    """
    return _semantic.broadcast(_semantic.to_tensor(input), _semantic.to_tensor(other))


def broadcast_to(input: Value, *shape: Sizes, _semantic: "Semantic" = SUPPLIED) -> tensor:
    """Repeat axes of size 1 to reach `shape`: ``tl.broadcast_to(x[:, None], M, N)``. A scalar fills the block.

    The shape is given as sizes or as one tuple: ``tl.broadcast_to(x, (M, N))``.

    Example:
        assert call(tl.broadcast_to, np.array([[1], [2]]), (2, 4)).tolist() == [[1, 1, 1, 1], [2, 2, 2, 2]]
        assert call(tl.broadcast_to, np.int32(5), 2, 2).tolist() == [[5, 5], [5, 5]]
    """
    return _semantic.broadcast_to(input, _unwrap_shape(_unwrap_iterable(shape)))


def expand_dims(input: Value, axis: Sizes, _semantic: "Semantic" = SUPPLIED) -> tensor:
    """Insert axes of size 1 at positions of the result: ``tl.expand_dims(x, (0, -1))`` of (4,) has shape (1, 4, 1).

    Mostly written as an index, ``x[None, :, None]``.

    Example:
        assert call(tl.expand_dims, np.arange(4), 0).shape == (1, 4)
        assert call(tl.expand_dims, np.arange(4), (0, -1)).shape == (1, 4, 1)
    """
    input = _semantic.to_tensor(input)
    axes = _unwrap_shape(axis)
    rank = len(input.shape) + len(axes)
    axes = [_wrap_axis(axis, rank) for axis in axes]
    if len(set(axes)) != len(axes):
        raise ValueError(f"expand_dims received duplicate axes, normalized axes = {axes}")
    for axis in sorted(axes):
        input = _semantic.expand_dims(input, axis)
    return input


def _wrap_axis(axis: int | constexpr, rank: int) -> int:
    """`axis` counted from 0: ``_wrap_axis(-1, 3)`` is 2."""
    axis = _unwrap_if_constexpr(axis)
    if not isinstance(axis, int) or not -rank <= axis < rank:
        raise ValueError(f"invalid axis {axis}. Expected {-rank} <= axis < {rank}")
    return axis % rank


def reshape(
    input: Value, *shape: Sizes, can_reorder: bool | constexpr = False, _semantic: "Semantic" = SUPPLIED
) -> tensor:
    """The same elements in row-major order under another shape: ``tl.reshape(x, 4, 8)`` or ``x.reshape([4, 8])``.

    With `can_reorder` the compiler may choose another order of the elements, which can be cheaper on a GPU (nothing has
    to be exchanged between threads).

    Example:
        assert_close(call(tl.reshape, np.arange(8), (2, 4)), np.arange(8).reshape(2, 4))
    """
    return _semantic.reshape(input, _unwrap_shape(_unwrap_iterable(shape)), _unwrap_if_constexpr(can_reorder))


def view(input: Value, *shape: Sizes, _semantic: "Semantic" = SUPPLIED) -> tensor:
    """Deprecated: `reshape` with ``can_reorder=True``.

    Example:
        assert sorted(call(tl.view, np.arange(4), (2, 2)).ravel()) == [0, 1, 2, 3]  # in some order
    """
    warnings.warn("view is deprecated, use reshape with can_reorder=True instead", DeprecationWarning, stacklevel=2)
    return _semantic.reshape(input, _unwrap_shape(_unwrap_iterable(shape)), True)


def permute(input: tensor, *dims: Sizes, _semantic: "Semantic" = SUPPLIED) -> tensor:
    """Axis i of the result is axis ``dims[i]`` of the input: ``tl.permute(x, 2, 0, 1)``.

    The order is given as integers or as one tuple.

    Example:
        x = np.arange(16).reshape(2, 2, 4)
        assert_close(call(tl.permute, x, (2, 0, 1)), np.transpose(x, (2, 0, 1)))
    """
    return _semantic.permute(input, _unwrap_shape(_unwrap_iterable(dims)))


def trans(input: tensor, *dims: Sizes, _semantic: "Semantic" = SUPPLIED) -> tensor:
    """Swap the last two axes; with `dims`, the same as `permute`: ``tl.trans(x)`` of (M, N) is (N, M).

    ``x.T`` is the same for a block of rank 2. As an operand of `dot` it costs nothing: the operand is read the other
    way round.

    Example:
        x = np.arange(8).reshape(2, 4)
        assert_close(call(tl.trans, x), x.T)
    """
    order = _unwrap_shape(_unwrap_iterable(dims))
    if not order:
        rank = len(input.shape)
        if rank < 2:
            raise ValueError(f"trans without dims needs at least two axes, {input} has {rank}")
        order = [*range(rank - 2), rank - 1, rank - 2]
    return _semantic.permute(input, order)


def cat(
    input: tensor, other: tensor, can_reorder: bool | constexpr = False, _semantic: "Semantic" = SUPPLIED
) -> tensor:
    """All elements of two 1-D blocks in one, in no particular order: ``tl.cat(a, b, can_reorder=True)``.

    `can_reorder` has to be True; for a known order use `join` and `reshape`, or `interleave`.

    Example:
        both = call(tl.cat, np.array([1, 2]), np.array([3, 4]), can_reorder=True)
        assert sorted(both) == [1, 2, 3, 4]
    """
    return _semantic.cat(input, other, _unwrap_if_constexpr(can_reorder))


def join(a: Value, b: Value, _semantic: "Semantic" = SUPPLIED) -> tensor:
    """Two values side by side on a new last axis: (N,) and (N,) give (N, 2); two scalars give (2,).

    The inputs are broadcast to each other first. `split` is the inverse.

    Example:
        assert call(tl.join, np.array([1, 2]), np.array([3, 4])).tolist() == [[1, 3], [2, 4]]
    """
    return _semantic.join(a, b)


def split(a: tensor, _semantic: "Semantic" = SUPPLIED) -> tuple:
    """The inverse of `join`: ``left, right = tl.split(x)`` for a last axis of size 2.

    Example:
        even, odd = call(tl.split, np.arange(8).reshape(4, 2))
        assert even.tolist() == [0, 2, 4, 6] and odd.tolist() == [1, 3, 5, 7]
    """
    return tuple(_semantic.split(a))


def gather(src: tensor, index: tensor, axis: int | constexpr, _semantic: "Semantic" = SUPPLIED) -> tensor:
    """Pick elements along an axis: ``out[i, j] = src[i, index[i, j]]`` for axis 1.

    `index` has the rank of `src`, and its sizes but for `axis`; the result has its shape. An index outside of the axis
    gives an unspecified value; the sanitizer reports where it is used (docs/sanitizer.md). On a GPU threads exchange
    elements: through shared memory, or by shuffles where each warp holds the whole axis.

    Example:
        x, index = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1, 1], [0, 1]])
        assert_close(call(tl.gather, x, index, 1), np.take_along_axis(x, index, 1))
    """
    return _semantic.gather(src, index, _unwrap_if_constexpr(axis))


def histogram(
    input: tensor, num_bins: int | constexpr, mask: Value | None = None, _semantic: "Semantic" = SUPPLIED
) -> tensor:
    """Count the values 0 .. num_bins - 1 of a 1-D integer block: ``tl.histogram(x, 256, mask=x < 256)``.

    Elements where `mask` is false are not counted. Other values are left out; under the sanitizer they are an error
    (docs/sanitizer.md). Counts are int32.

    Example:
        x = np.array([0, 1, 1, 3, 3, 3, 0, 1], np.int32)
        assert call(tl.histogram, x, 4).tolist() == [2, 3, 0, 3]
        assert call(tl.histogram, x, 4, mask=x > 0).tolist() == [0, 3, 0, 3]
    """
    return _semantic.histogram(input, _unwrap_if_constexpr(num_bins), _none_or(mask))


def _none_or(value: Any) -> Any:
    """None for None and for ``constexpr(None)``, else the value."""
    return None if isinstance(value, constexpr) and value.value is None else value
