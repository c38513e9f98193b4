"""The smaller and the larger of two numbers, with -0 below +0, so that the result has the same bits on every machine.

    >>> lesser(np.float32([0.0]), np.float32([-0.0]))
    array([-0.], dtype=float32)

`lesser` and `greater` are NaN if one of two is; `lesser_number` and `greater_number` then are the other one.
"""

import numpy as np

from tilework.numerics.rounding import F32, F64, Array, narrow


def wide(values: Array) -> Array:
    """Return the values in a format that NumPy compares: exact."""
    values = np.asarray(values)
    return values if values.dtype in (F32, F64) else values.astype(F32)


def ordered(a: Array, b: Array, is_less: bool) -> Array:
    """Return one of two numbers; of equal ones the zero with (or without) a sign."""
    wins = (a < b) | ((a == b) & np.signbit(a)) if is_less else (a > b) | ((a == b) & ~np.signbit(a))
    return np.where(wins, a, b)


def with_nan(a: Array, b: Array, is_less: bool) -> Array:
    x, y = wide(a), wide(b)
    found = np.where(np.isnan(x) | np.isnan(y), x.dtype.type(np.nan), ordered(x, y, is_less))
    return narrow(found, np.asarray(a).dtype)


def without_nan(a: Array, b: Array, is_less: bool) -> Array:
    x, y = wide(a), wide(b)
    return narrow(np.where(np.isnan(x), y, np.where(np.isnan(y), x, ordered(x, y, is_less))), np.asarray(a).dtype)


def lesser(a: Array, b: Array) -> Array:
    return with_nan(a, b, True)


def greater(a: Array, b: Array) -> Array:
    return with_nan(a, b, False)


def lesser_number(a: Array, b: Array) -> Array:
    return without_nan(a, b, True)


def greater_number(a: Array, b: Array) -> Array:
    return without_nan(a, b, False)
