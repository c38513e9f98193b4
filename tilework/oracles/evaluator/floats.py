"""Element types as NumPy dtypes, and the conversions between them that NumPy gets wrong or leaves undefined.

Integers are signless in the IR: they are held as signed NumPy integers (`i1` as bool) and viewed as unsigned where an
op asks for it. Pointers are int64 addresses. `bf16` and the 8-bit floats are `ml_dtypes`.

    >>> storage(bf16)
    dtype(bfloat16)
    >>> narrow(np.float64(1 + 2**-8 + 2**-40), storage(bf16))  # through f32 it would be rounded twice, to 1.0
    array(1.00781, dtype=bfloat16)

Rounding once: a float64 goes to float32 by *round to odd* first. The odd last bit remembers that something was cut off,
so the second rounding cannot mistake the value for a tie.
"""

from fractions import Fraction
from functools import cache
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float8E4M3FNType,
    Float8E4M3FNUZType,
    Float8E5M2FNUZType,
    Float8E5M2Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
)
from xdsl.ir import Attribute

from tilework.ir.types import PointerType, bit_width, element_type
from tilework.oracles.evaluator.evaluation_errors import Fault

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

BOOL, INT8, INT16, INT32, INT64 = (np.dtype(t) for t in (np.bool_, np.int8, np.int16, np.int32, np.int64))
F16, F32, F64 = (np.dtype(t) for t in (np.float16, np.float32, np.float64))
BF16 = np.dtype(ml_dtypes.bfloat16)
FLOATS: dict[type[Attribute], np.dtype[Any]] = {
    Float16Type: F16,
    BFloat16Type: BF16,
    Float32Type: F32,
    Float64Type: F64,
    Float8E4M3FNType: np.dtype(ml_dtypes.float8_e4m3fn),
    Float8E4M3FNUZType: np.dtype(ml_dtypes.float8_e4m3fnuz),
    Float8E5M2Type: np.dtype(ml_dtypes.float8_e5m2),
    Float8E5M2FNUZType: np.dtype(ml_dtypes.float8_e5m2fnuz),
}
FLOAT_DTYPES = frozenset(FLOATS.values())
UNSIGNED = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16), 4: np.dtype(np.uint32), 8: np.dtype(np.uint64)}
SIGNED = {1: INT8, 2: INT16, 4: INT32, 8: INT64}


@cache
def storage(type: Attribute) -> np.dtype[Any]:
    """The dtype that holds an element of `type`; odd integer widths sit sign-extended in the next wider one."""
    element = element_type(type)
    if (dtype := FLOATS.get(element.__class__)) is not None:
        return dtype
    if isinstance(element, (PointerType, IndexType)):
        return INT64
    if isinstance(element, IntegerType) and (width := element.width.data) <= 64:
        return BOOL if width == 1 else SIGNED[next(size for size in SIGNED if width <= size * 8)]
    raise Fault(f"has a value of type {element}, which has no NumPy form")


@cache
def memory_bytes(type: Attribute) -> int:
    """Bytes between neighbours in memory: one for `i1` and narrower integers, eight for pointers."""
    return max(1, bit_width(type) // 8)


def unsigned(value: Array) -> Array:
    """The same bits read as an unsigned integer; booleans become 0 and 1."""
    value = np.asarray(value)
    return value.astype(np.uint8) if value.dtype == BOOL else value.view(UNSIGNED[value.dtype.itemsize])


def signed(value: Array) -> Array:
    """The bits as a signed integer; a true `i1` is -1."""
    return -value.astype(np.int8) if value.dtype == BOOL else value


def fit(value: Array, type: Attribute) -> Array:
    """An integer result of any dtype, wrapped to the width of `type`."""
    width, dtype = bit_width(type), storage(type)
    if width == 1:
        return (value & value.dtype.type(1)).astype(BOOL) if value.dtype != BOOL else value
    value = value.astype(dtype, copy=False)
    if (spare := dtype.itemsize * 8 - width) > 0:
        value = (value << dtype.type(spare)) >> dtype.type(spare)
    return value


def wide(value: Array) -> Array:
    """A float in a format NumPy computes with: f32, or f64 as it is. Always exact."""
    return value if value.dtype == F64 or value.dtype == F32 else value.astype(F32)


def to_odd_f32(value: Array) -> Array:
    """f64 to f32, inexact results with an odd last bit, so that one more rounding is still exact."""
    value = np.asarray(value, dtype=F64)
    near = value.astype(F32)
    back = near.astype(F64)
    even = (near.view(np.int32) & 1) == 0
    step = np.nextafter(near, np.where(value > back, np.float32(np.inf), np.float32(-np.inf)))
    return np.where((back != value) & even & ~np.isnan(value), step, near)


def narrow(value: Array, dtype: np.dtype[Any]) -> Array:
    """Any float to `dtype`, nearest even, rounded once."""
    value = np.asarray(value)
    if value.dtype == dtype:
        return value
    if dtype in (F64, F32):
        return value.astype(dtype)
    if value.dtype == F64:
        value = to_odd_f32(value)
    return value.astype(F32, copy=False).astype(dtype)


def narrow_to_zero(value: Array, dtype: np.dtype[Any]) -> Array:
    """Any float to `dtype`, rounded towards zero: the nearest value, or its neighbour below in magnitude."""
    value = np.asarray(value)
    near = narrow(value, dtype)
    above = np.abs(near.astype(F64)) > np.abs(value.astype(F64))
    bits = near.view(UNSIGNED[dtype.itemsize])
    return np.where(above, bits - 1, bits).astype(bits.dtype).view(dtype)


def saturate(value: Array, dtype: np.dtype[Any]) -> Array:
    """`value` limited to the finite range of an 8-bit float; infinities too, NaN stays."""
    largest = float(ml_dtypes.finfo(dtype).max)
    value = wide(np.asarray(value))
    return np.clip(value, value.dtype.type(-largest), value.dtype.type(largest))


def is_float8(dtype: np.dtype[Any]) -> bool:
    return dtype.itemsize == 1 and dtype in FLOAT_DTYPES


def from_integer(value: Array, dtype: np.dtype[Any]) -> Array:
    """A signed or unsigned integer to a float, rounded once to nearest even."""
    value = np.asarray(value)
    if value.dtype.itemsize < 8 or dtype == F64:
        return narrow(value.astype(F64), dtype)
    # 53 bits are exact in f64: keep the upper ones, and fold the lowest 11 into one sticky bit
    low, large = value & value.dtype.type(0x7FF), np.abs(value.astype(F64)) >= 2.0**53
    sticky = (value - low) | np.where(low != 0, 0x800, 0).astype(value.dtype)
    return narrow(np.where(large, sticky, value).astype(value.dtype).astype(F64), dtype)


def to_integer(value: Array, type: Attribute, is_unsigned: bool) -> Array:
    """A float truncated to an integer. Out of range the hardware's limits apply (those of 16 bits for narrower types,
    which then keep the low bits), and NaN is 0."""
    width = bit_width(type)
    limit_width = max(16, width)
    low, high = (0, 2**limit_width - 1) if is_unsigned else (-(2 ** (limit_width - 1)), 2 ** (limit_width - 1) - 1)
    exact = np.trunc(np.asarray(value).astype(F64))
    carrier = np.uint64 if is_unsigned else np.int64
    above, below = exact >= float(high), exact <= float(low)
    inside = np.where(above | below | np.isnan(exact), 0.0, exact).astype(carrier)
    clipped = np.where(above, carrier(high), np.where(below, carrier(low), inside))
    return fit(np.asarray(clipped).astype(carrier).view(np.int64), type)


def fused_multiply_add(x: Array, y: Array, z: Array) -> Array:
    """`x * y + z` with one rounding."""
    dtype = np.result_type(x) if x.dtype in (F64, F32) else x.dtype
    if dtype == F64:
        return np.asarray(EXACT_FMA(x, y, z), dtype=object).astype(F64)
    product, addend = x.astype(F64) * y.astype(F64), z.astype(F64)  # exact: 2 * 24 bits fit in 53
    total = np.asarray(product + addend)
    other = total - product
    error = (product - (total - other)) + (addend - other)
    even = (total.view(np.int64) & 1) == 0
    step = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
    odd = np.where((error != 0) & np.isfinite(total) & even, step, total)
    return narrow(np.asarray(odd), dtype)


def _exact_fma(x: float, y: float, z: float) -> float:
    plain = x * y + z
    if not (np.isfinite(x) and np.isfinite(y) and np.isfinite(z)):
        return plain
    exact = Fraction(x) * Fraction(y) + Fraction(z)
    return float(exact) if exact and abs(exact) < Fraction(2) ** 1024 else plain  # `plain` has the sign of zero


EXACT_FMA = np.frompyfunc(_exact_fma, 3, 1)
