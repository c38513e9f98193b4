"""The helpers of Triton's library functions, which some programs import; the sorting network works on hypercubes, one axis of
size 2 for each bit of the index, the innermost for bit 0."""

# Kernel code follows the rules of kernels, not of Python: a `constexpr` may be None, and has its value's attributes.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportAttributeAccessIssue=false, reportUnusedImport=false

from typing import Any

from tilework.language import core
from tilework.language.folds import (
    _argmax_combine_fast,
    _argmax_combine_left,
    _argmin_combine_fast,
    _argmin_combine_left,
    _elementwise_max,
    _elementwise_min,
    _or_combine,
    _prod_combine,
    _sum_combine,
    _sum_dtype,
    _xor_combine,
)
from tilework.language.function import constexpr_function, jit
from tilework.language.sorting import _compare_exchange, _from_keys, _index_bit, _log2, _merge, _to_keys, sort, topk

_argmax_combine_tie_break_fast, _argmax_combine_tie_break_left = _argmax_combine_fast, _argmax_combine_left
_argmin_combine_tie_break_fast, _argmin_combine_tie_break_left = _argmin_combine_fast, _argmin_combine_left
_get_int_dtype = constexpr_function(core.get_int_dtype)


@constexpr_function
def _is_power_of_two(i: int) -> bool:
    return i > 0 and (i & (i - 1)) == 0


@constexpr_function
def _pick_sum_dtype(in_dtype: Any, dtype: Any) -> Any:
    """The dtype that `sum` works in: the requested one, 32 bits for small integers, or None for that of the values."""
    found = _sum_dtype.fn(in_dtype, dtype)
    return None if dtype is None and found == in_dtype else found


@constexpr_function
def _get_flip_dim(dim: Any, shape: Any) -> int:
    """`dim` counted from the front; the last dimension if that is None."""
    return len(shape) - 1 if dim is None else dim % len(shape)


@jit
def _argmax_combine(value1: Any, index1: Any, value2: Any, index2: Any, tie_break_left: Any) -> Any:
    if tie_break_left:
        return _argmax_combine_tie_break_left(value1, index1, value2, index2)
    else:
        return _argmax_combine_tie_break_fast(value1, index1, value2, index2)


@jit
def _argmin_combine(value1: Any, index1: Any, value2: Any, index2: Any, tie_break_left: Any) -> Any:
    if tie_break_left:
        return _argmin_combine_tie_break_left(value1, index1, value2, index2)
    else:
        return _argmin_combine_tie_break_fast(value1, index1, value2, index2)


@jit
def _indicator(n_dims: core.constexpr, j: core.constexpr) -> Any:
    """Bit `j` of the index, in a shape that broadcasts with a hypercube."""
    return _index_bit(j, n_dims)


@jit
def _compare_and_swap(x: Any, flip: Any, i: core.constexpr) -> Any:
    """Order the pairs that differ in bit `i` of the index; larger first where `flip` is 1."""
    return _from_keys(_compare_exchange(_to_keys(x), flip, i), x.dtype)


@jit
def _bitonic_merge_hypercube(x: Any, stage: core.constexpr, order: core.constexpr) -> Any:
    """Sort the bitonic runs of ``2**stage`` elements: upwards (order 0), downwards (1), or in turn (2)."""
    return _from_keys(_merge(_to_keys(x), order, stage), x.dtype)


@jit
def _bitonic_merge(x: Any, stage: core.constexpr, order: core.constexpr, n_dims: core.constexpr) -> Any:
    """The same for a block of any shape, whose last ``2**n_dims`` elements are a hypercube."""
    cube = core.reshape(x, [2] * _log2(x.numel))
    return core.reshape(_bitonic_merge_hypercube(cube, stage, order), x.shape)


@jit
def sort_impl(
    x: Any, k: core.constexpr = None, dim: core.constexpr = None, descending: core.constexpr = core.constexpr(0)
) -> Any:
    """Sort along the last axis, or only find the `k` largest."""
    if k is None:
        return sort(x, dim, descending)
    else:
        return topk(x, k, dim)
