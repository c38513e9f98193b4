"""Element types as NumPy arrays, and every conversion between them.

A value of the tile language is held in the NumPy type of its dtype: `bool` for int1, `ml_dtypes` for bfloat16 and the
8-bit floats, int64 addresses for pointers. Only fp8e4b15, which no library knows, is held as its bytes.

    >>> convert(np.float32(300.7), float32, uint8)        # saturates at 16 bits, then keeps the low 8
    array(44, dtype=uint8)
    >>> convert(np.float32(1e6), float32, float8e5)       # fp8 saturates at the largest finite value
    array(57344, dtype=float8_e5m2)
"""

from functools import cache
from typing import Any

import numpy as np

from tilework.language.dtypes import dtype, float16, float32, pointer_type
from tilework.numerics.rounding import (
    F16,
    F32,
    FLOATS,
    SIGNED,
    UNSIGNED,
    Array,
    from_e4b15,
    from_integer,
    is_float8,
    narrow,
    narrow_to_zero,
    saturate,
    to_e4b15,
    to_integer,
)

STORAGE: dict[str, np.dtype[Any]] = {
    **{name: np.dtype(name) for name in (*dtype.SINT_TYPES, *dtype.UINT_TYPES) if name != "int1"},
    **FLOATS,
    "int1": np.dtype(np.bool_),
    "fp8e4b15": np.dtype(np.uint8),
}


@cache
def storage(element: dtype) -> np.dtype[Any]:
    """The NumPy type that holds one element."""
    return np.dtype(np.int64) if isinstance(element, pointer_type) else STORAGE[element.name]


@cache
def bytes_in_memory(element: dtype) -> int:
    """How far two neighbours in memory are apart: a bool takes a byte, a pointer eight."""
    return max(1, element.primitive_bitwidth // 8)


def convert(values: Array, source: dtype, target: dtype, rounding: str | None = None) -> Array:
    """The elements of `values` as `target`: a cast between two number types that exists (`casts.py` checks that)."""
    values = np.asarray(values)
    if source == target:
        return values
    if target.is_bool():
        return is_nonzero(values, source)
    if target.is_int():
        return float_to_int(values, target) if source.is_floating() else values.astype(storage(target))
    if source.is_int():
        return from_integer(values, storage(target))
    if source.is_fp8e4b15():
        return convert(from_e4b15(values), float16, target)
    if target.is_fp8e4b15():
        return to_e4b15(values if source.is_fp16() else narrow_to_zero(values.astype(F32), F16))
    if rounding == "rtz":
        return narrow_to_zero(values, storage(target))
    return round_float(values, target)


def is_nonzero(values: Array, source: dtype) -> Array:
    """``x != 0``: true for NaN, false for both zeros."""
    if source.is_fp8e4b15():
        return np.asarray(values & np.uint8(0x7F) != 0)
    return np.asarray(values.astype(np.float64) != 0 if source.is_floating() else values != 0)


def float_to_int(values: Array, target: dtype) -> Array:
    """Drop the fraction; saturate at 16, 32 or 64 bits, NaN gives 0; a type of 8 bits keeps the low ones of 16."""
    kinds = SIGNED if target.is_int_signed() else UNSIGNED
    return to_integer(values, kinds[max(2, target.int_bitwidth // 8)]).astype(storage(target))


def round_float(values: Array, target: dtype) -> Array:
    """A float in another float format: exact, or to the nearest, ties to even. To fp8, saturating."""
    kind = storage(target)
    return narrow(saturate(values, kind) if is_float8(kind) else values, kind)


def number_as(value: bool | int | float, element: dtype) -> Array:
    """A Python number as one element: integers wrap, floats are rounded once."""
    if element.is_bool():
        return np.asarray(bool(value))
    if element.is_int():
        if isinstance(value, float) and not value.is_integer():
            raise TypeError(f"{value} is not an integer: it cannot fill a value of type {element.name}")
        wrapped = int(value) & ((1 << element.int_bitwidth) - 1)
        return np.asarray(wrapped, dtype=UNSIGNED[storage(element).itemsize]).view(storage(element))
    if element.is_fp8():
        return convert(np.asarray(value, dtype=np.float64).astype(np.float32), float32, element)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**53:
        signed = np.dtype(np.int64) if -(2**63) <= value < 2**63 else np.dtype(np.uint64)
        return from_integer(np.asarray(value, dtype=signed), storage(element))
    return round_float(np.asarray(value, dtype=np.float64), element)
