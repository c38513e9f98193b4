"""Functions of Triton's `language.core` and `language.standard` that tilework's modules of that name do not have.

The sorting network of `standard` works on hypercubes: one axis of size 2 for each bit of the index, the innermost for
bit 0.
"""

# Kernel code follows the rules of kernels, not of Python: a `constexpr` may be None, and has its value's attributes.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportAttributeAccessIssue=false

import math
from functools import reduce
from typing import Any

from tilework.language import core
from tilework.language.compile_time import constexpr
from tilework.language.folds import (
    _argmax_combine_fast,
    _argmax_combine_left,
    _argmin_combine_fast,
    _argmin_combine_left,
    _sum_dtype,
)
from tilework.language.function import constexpr_function, jit
from tilework.language.standard import _compare_exchange, _from_keys, _index_bit, _log2, _merge, _to_keys, sort, topk

CONSTEXPR_0 = constexpr(0)
tensor_descriptor_base = core.tensor_descriptor  # one class here; programs use it with `isinstance`
tensor_descriptor_base_type = core.tensor_descriptor_type
item = core.tensor.item


def is_negative_zero(x: Any) -> bool:
    """Return True for -0.0."""
    return x == 0.0 and math.copysign(1.0, x) < 0


def check_bit_width(value: Any, shift_value: Any) -> None:
    """Raise ValueError for a shift by a constant that is at least the width of the value."""
    if isinstance(value, core.tensor) and isinstance(shift_value, constexpr):
        bits = value.type.scalar.primitive_bitwidth
        if shift_value.value >= bits:
            raise ValueError(f"Value {shift_value.value} exceeds the maximum bitwidth ({bits}) for type {value.dtype}")


def _normalize_tuple(t: Any) -> Any:
    """Return a Python tuple as a `tl.tuple`; anything else unchanged."""
    return core.tuple(t) if type(t) is tuple else t


def _extremum(name: str, args: tuple[Any, ...], propagate_nan: Any, semantic: Any) -> Any:
    values = args[0].values if len(args) == 1 and isinstance(args[0], core.tuple) else args
    if not any(isinstance(value, core.tensor) for value in values):
        plain = [core._unwrap_if_constexpr(value) for value in values]
        return constexpr(max(plain) if name == "max" else min(plain))
    mode = core.PropagateNan.NONE if propagate_nan is None else core._unwrap_if_constexpr(propagate_nan)
    combine = core.maximum if name == "max" else core.minimum
    return reduce(lambda left, right: combine(left, right, propagate_nan=mode, _semantic=semantic), values)


@core.builtin
def builtin_max(*args: Any, propagate_nan: Any = None, _semantic: Any = None) -> Any:
    """Python's `max` in a kernel."""
    return _extremum("max", args, propagate_nan, _semantic)


@core.builtin
def builtin_min(*args: Any, propagate_nan: Any = None, _semantic: Any = None) -> Any:
    """Python's `min` in a kernel."""
    return _extremum("min", args, propagate_nan, _semantic)


# Kernel code follows the rules of kernels, not of Python: a `constexpr` may be None, and has its value's attributes.


_get_int_dtype = constexpr_function(core.get_int_dtype)


@constexpr_function
def _is_power_of_two(i: int) -> bool:
    return i > 0 and (i & (i - 1)) == 0


@constexpr_function
def _pick_sum_dtype(in_dtype: Any, dtype: Any) -> Any:
    """Return the dtype that `sum` accumulates in: the requested one, 32 bits for small integers, None for the
    input's."""
    found = _sum_dtype.fn(in_dtype, dtype)
    return None if dtype is None and found == in_dtype else found


@constexpr_function
def _get_flip_dim(dim: Any, shape: Any) -> int:
    """Return `dim` as a non-negative index; the last dimension for None."""
    return len(shape) - 1 if dim is None else dim % len(shape)


@jit
def _argmax_combine(value1: Any, index1: Any, value2: Any, index2: Any, tie_break_left: Any) -> Any:
    if tie_break_left:
        return _argmax_combine_left(value1, index1, value2, index2)
    else:
        return _argmax_combine_fast(value1, index1, value2, index2)


@jit
def _argmin_combine(value1: Any, index1: Any, value2: Any, index2: Any, tie_break_left: Any) -> Any:
    if tie_break_left:
        return _argmin_combine_left(value1, index1, value2, index2)
    else:
        return _argmin_combine_fast(value1, index1, value2, index2)


@jit
def _indicator(n_dims: core.constexpr, j: core.constexpr) -> Any:
    """Return bit `j` of the index, in a shape that broadcasts with a hypercube."""
    return _index_bit(j, n_dims)


@jit
def _compare_and_swap(x: Any, flip: Any, i: core.constexpr) -> Any:
    """Order the pairs that differ in bit `i` of the index; larger first where `flip` is 1."""
    return _from_keys(_compare_exchange(_to_keys(x), flip, i), x.dtype)


@jit
def _bitonic_merge_hypercube(x: Any, stage: core.constexpr, order: core.constexpr) -> Any:
    """Sort the bitonic runs of ``2**stage`` elements: ascending (order 0), descending (1), or alternating (2)."""
    return _from_keys(_merge(_to_keys(x), order, stage), x.dtype)


@jit
def _bitonic_merge(x: Any, stage: core.constexpr, order: core.constexpr, n_dims: core.constexpr) -> Any:
    """Sort the bitonic runs of a block of any shape, whose last ``2**n_dims`` elements are a hypercube."""
    cube = core.reshape(x, [2] * _log2(x.numel))
    return core.reshape(_bitonic_merge_hypercube(cube, stage, order), x.shape)


@jit
def sort_impl(
    x: Any, k: core.constexpr = None, dim: core.constexpr = None, descending: core.constexpr = core.constexpr(0)
) -> Any:
    """Sort along the last axis, or return only the `k` largest."""
    if k is None:
        return sort(x, dim, descending)
    else:
        return topk(x, k, dim)
