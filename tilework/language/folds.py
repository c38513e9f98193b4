"""Reductions and scans of the library, written in the tile language.

    tl.sum(x, axis=0)                              # reduce with `a + b`
    value, index = tl.max(x, 1, return_indices=True)
    tl.cumsum(x)                                   # 1, 2, 3 gives 1, 3, 6

Each is `reduce` or `associative_scan` with a small combine function; the `constexpr_function`s decide, while
compiling, in which dtype it is done.
"""

# Kernel code follows the rules of kernels, not of Python: a `constexpr` may be None, and has its value's attributes.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportAttributeAccessIssue=false

from typing import Any

from tilework.language import core
from tilework.language.function import constexpr_function, jit


@constexpr_function
def _extremum_dtype(dtype: core.dtype) -> core.dtype:
    """The dtype of `max` and `min`: at least 32 bits wide, int32 for every small integer."""
    if dtype.primitive_bitwidth >= 32:
        return dtype
    return core.float32 if dtype.is_floating() else core.int32


@constexpr_function
def _sum_dtype(dtype: core.dtype, requested: core.dtype | None) -> core.dtype:
    """The dtype of `sum`: the requested one, else small integers are widened to 32 bits."""
    if requested is not None:
        return requested
    if dtype.is_int() and dtype.primitive_bitwidth < 32:
        return core.int32 if dtype.is_int_signed() else core.uint32
    return dtype


@constexpr_function
def _without_bfloat16(dtype: core.dtype) -> core.dtype:
    return core.float32 if dtype.is_bf16() else dtype


@constexpr_function
def _shape_along(axis: int, rank: int, size: int) -> list[int]:
    """The shape of rank `rank` with one axis of `size`, the others 1."""
    shape = [1] * rank
    shape[axis] = size
    return shape


@jit
def _index_along(axis: core.constexpr, shape: core.tuple) -> core.tensor:
    """Each element's own index along `axis`, in a block of `shape`."""
    index = core.reshape(core.arange(0, shape[axis]), _shape_along(axis, len(shape), shape[axis]))
    return core.broadcast_to(index, shape)


@jit
def _sum_combine(a: core.tensor, b: core.tensor) -> core.tensor:
    return a + b


@jit
def _prod_combine(a: core.tensor, b: core.tensor) -> core.tensor:
    return a * b


@jit
def _xor_combine(a: core.tensor, b: core.tensor) -> core.tensor:
    return a ^ b


@jit
def _or_combine(a: core.tensor, b: core.tensor) -> core.tensor:
    return a | b


@jit
def _elementwise_max(a: core.tensor, b: core.tensor) -> core.tensor:
    return core.maximum(a, b)


@jit
def _elementwise_min(a: core.tensor, b: core.tensor) -> core.tensor:
    return core.minimum(a, b)


# A number wins over NaN on either side. With `value1 > value2` alone the right operand would win, and the result would
# depend on the order of combinations, which differs from target to target. Two NaN: see `_first_of_nan`.


@jit
def _argmax_combine_fast(
    value1: core.tensor, index1: core.tensor, value2: core.tensor, index2: core.tensor
) -> tuple[core.tensor, core.tensor]:
    first = ~(value1 <= value2) & (value1 == value1)
    return core.where(first, value1, value2), core.where(first, index1, index2)


@jit
def _argmin_combine_fast(
    value1: core.tensor, index1: core.tensor, value2: core.tensor, index2: core.tensor
) -> tuple[core.tensor, core.tensor]:
    first = ~(value1 >= value2) & (value1 == value1)
    return core.where(first, value1, value2), core.where(first, index1, index2)


@jit
def _argmax_combine_left(
    value1: core.tensor, index1: core.tensor, value2: core.tensor, index2: core.tensor
) -> tuple[core.tensor, core.tensor]:
    first = core.where(value1 == value2, index1 < index2, ~(value1 < value2)) & (value1 == value1)
    return core.where(first, value1, value2), core.where(first, index1, index2)


@jit
def _argmin_combine_left(
    value1: core.tensor, index1: core.tensor, value2: core.tensor, index2: core.tensor
) -> tuple[core.tensor, core.tensor]:
    first = core.where(value1 == value2, index1 < index2, ~(value1 > value2)) & (value1 == value1)
    return core.where(first, value1, value2), core.where(first, index1, index2)


@jit
def _first_of_nan(found: core.tuple) -> tuple[core.tensor, core.tensor]:
    """The (value, index) of a reduction: if it is NaN there was nothing else, and the first index is 0."""
    value, index = found
    if value.dtype.is_floating():
        return value, core.where(value == value, index, 0)
    else:
        return value, index


@jit
def max(
    input: core.tensor,
    axis: core.constexpr = None,
    return_indices: core.constexpr = False,
    return_indices_tie_break_left: core.constexpr = True,
    keep_dims: core.constexpr = False,
) -> Any:
    """The largest element along `axis`, or of all elements. NaN is ignored unless all elements are NaN, with and
    without indices.

        top, where = tl.max(x, 0, return_indices=True)

    Among equal elements, the index is that of the first, or of any of them if `return_indices_tie_break_left` is False.
    Without indices, the result for a type of 8 or 16 bits is an int32 or an fp32. `keep_dims` leaves an axis of size 1.

    Example:
        x = np.array([[3, 9, 9, 1], [5, 2, 4, 8]], np.int32)
        assert call(tl.max, x) == 9
        assert call(tl.max, x, axis=1).tolist() == [9, 8]
        values, indices = call(tl.max, x, 1, return_indices=True)
        assert values.tolist() == [9, 8] and indices.tolist() == [1, 3]
    """
    if return_indices:
        core.static_assert(axis is not None, "max with indices needs an axis")
        values = core.cast(input, _without_bfloat16(input.dtype))
        pair = (values, _index_along(axis, values.shape))
        if return_indices_tie_break_left:
            return _first_of_nan(core.reduce(pair, axis, _argmax_combine_left, keep_dims=keep_dims))
        else:
            return _first_of_nan(core.reduce(pair, axis, _argmax_combine_fast, keep_dims=keep_dims))
    else:
        values = core.cast(input, _extremum_dtype(input.dtype))
        return core.reduce(values, axis, _elementwise_max, keep_dims=keep_dims)


@jit
def min(
    input: core.tensor,
    axis: core.constexpr = None,
    return_indices: core.constexpr = False,
    return_indices_tie_break_left: core.constexpr = True,
    keep_dims: core.constexpr = False,
) -> Any:
    """The smallest element along `axis`, or of all elements; the rules are those of `max`.

    Example:
        x = np.array([[3, 9, 9, 1], [5, 2, 4, 8]], np.int32)
        assert call(tl.min, x, axis=0).tolist() == [3, 2, 4, 1]
    """
    if return_indices:
        core.static_assert(axis is not None, "min with indices needs an axis")
        values = core.cast(input, _without_bfloat16(input.dtype))
        pair = (values, _index_along(axis, values.shape))
        if return_indices_tie_break_left:
            return _first_of_nan(core.reduce(pair, axis, _argmin_combine_left, keep_dims=keep_dims))
        else:
            return _first_of_nan(core.reduce(pair, axis, _argmin_combine_fast, keep_dims=keep_dims))
    else:
        values = core.cast(input, _extremum_dtype(input.dtype))
        return core.reduce(values, axis, _elementwise_min, keep_dims=keep_dims)


@jit
def argmax(
    input: core.tensor, axis: core.constexpr, tie_break_left: core.constexpr = True, keep_dims: core.constexpr = False
) -> core.tensor:
    """The index of the largest element along `axis`, an int32; among equal elements, the first if `tie_break_left`.

    NaN is ignored; if all elements are NaN, the index is 0.

    Example:
        x = np.array([[3, 9, 9, 1], [5, 2, 4, 8]])
        assert call(tl.argmax, x, axis=1).tolist() == [1, 3]
    """
    _, index = max(input, axis, True, tie_break_left, keep_dims)
    return index


@jit
def argmin(
    input: core.tensor, axis: core.constexpr, tie_break_left: core.constexpr = True, keep_dims: core.constexpr = False
) -> core.tensor:
    """The index of the smallest element along `axis`, an int32; among equal elements, the first if `tie_break_left`.

    NaN is ignored; if all elements are NaN, the index is 0.

    Example:
        x = np.array([4.0, np.nan, 2.0, 2.0])
        assert call(tl.argmin, x, axis=0) == 2
    """
    _, index = min(input, axis, True, tie_break_left, keep_dims)
    return index


@jit
def sum(
    input: core.tensor, axis: core.constexpr = None, keep_dims: core.constexpr = False, dtype: core.constexpr = None
) -> core.tensor:
    """The sum along `axis`, or of all elements, in `dtype`: ``tl.sum(x, 0, dtype=tl.float32)``.

    Without `dtype`, integers of fewer than 32 bits are summed in int32 or uint32, other types in themselves. The order
    in which floats are added differs between targets. `keep_dims` leaves an axis of size 1, so that ``x / tl.sum(x, 1,
    keep_dims=True)`` broadcasts.

    Example:
        x = np.arange(8).reshape(2, 4)
        assert call(tl.sum, x) == 28
        assert call(tl.sum, x, axis=0).tolist() == [4, 6, 8, 10]
        assert call(tl.sum, x, axis=1, keep_dims=True).tolist() == [[6], [22]]
    """
    return core.reduce(core.cast(input, _sum_dtype(input.dtype, dtype)), axis, _sum_combine, keep_dims=keep_dims)


@jit
def xor_sum(input: core.tensor, axis: core.constexpr = None, keep_dims: core.constexpr = False) -> core.tensor:
    """The exclusive or of integers along `axis`, or of all elements.

    Example:
        assert call(tl.xor_sum, np.array([1, 3, 7, 8])) == 1 ^ 3 ^ 7 ^ 8
    """
    core.static_assert(input.dtype.is_int(), "xor_sum only supported for integers")
    return core.reduce(input, axis, _xor_combine, keep_dims=keep_dims)


@jit
def reduce_or(input: core.tensor, axis: core.constexpr, keep_dims: core.constexpr = False) -> core.tensor:
    """The bitwise or of integers along `axis`.

    Example:
        assert call(tl.reduce_or, np.array([[1, 2], [4, 4]]), axis=1).tolist() == [3, 4]
    """
    core.static_assert(input.dtype.is_int(), "reduce_or only supported for integers")
    return core.reduce(input, axis, _or_combine, keep_dims=keep_dims)


@jit
def cumsum(
    input: core.tensor, axis: core.constexpr = 0, reverse: core.constexpr = False, dtype: core.constexpr = None
) -> core.tensor:
    """Running sums along `axis`: 1, 2, 3 gives 1, 3, 6 (reversed: 6, 5, 3). The types are those of `sum`; bfloat16 is
    summed in fp32.

    Example:
        x = np.array([1, 2, 3, 4])
        assert call(tl.cumsum, x).tolist() == [1, 3, 6, 10]
        assert call(tl.cumsum, x, 0, reverse=True).tolist() == [10, 9, 7, 4]
    """
    values = core.cast(input, _sum_dtype(_without_bfloat16(input.dtype), dtype))
    return core.associative_scan(values, axis, _sum_combine, reverse)


@jit
def cumprod(input: core.tensor, axis: core.constexpr = 0, reverse: core.constexpr = False) -> core.tensor:
    """Running products along `axis`: 1, 2, 3 gives 1, 2, 6; bfloat16 is multiplied in fp32.

    Example:
        x = np.array([[1, 2, 3, 4], [2, 2, 2, 2]])
        assert call(tl.cumprod, x, axis=1).tolist() == [[1, 2, 6, 24], [2, 4, 8, 16]]
    """
    return core.associative_scan(core.cast(input, _without_bfloat16(input.dtype)), axis, _prod_combine, reverse)


for _function in (max, min, argmax, argmin, sum, xor_sum, reduce_or, cumsum, cumprod):
    core.tensor_method(_function)
