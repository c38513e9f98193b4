"""Element types as NumPy arrays, and every conversion between them.

A value of the tile language is held in the NumPy type of its dtype: `bool` for int1, `ml_dtypes` for bfloat16 and the
8-bit floats, int64 addresses for pointers. Only fp8e4b15, which no library knows, is held as its bytes.

    >>> convert(np.float32(300.7), float32, uint8)        # saturates at 16 bits, then keeps the low 8
    array(44, dtype=uint8)
    >>> convert(np.float32(1e6), float32, float8e5)       # fp8 saturates at the largest finite value
    array(57344, dtype=float8_e5m2)

Every rounding here is a single one. Where a value must pass through a narrower type on the way, it does so *rounded to
odd*: an inexact value gets an odd last bit, which no later rounding can mistake for a tie.
"""

from functools import cache
from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from tilework.language.dtypes import dtype, float16, float32, pointer_type

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

STORAGE: dict[str, np.dtype[Any]] = {
    **{name: np.dtype(name) for name in dtype.SINT_TYPES},
    **{name: np.dtype(name) for name in dtype.UINT_TYPES if name != "int1"},
    "int1": np.dtype(np.bool_),
    "fp8e5": np.dtype(ml_dtypes.float8_e5m2),
    "fp8e4nv": np.dtype(ml_dtypes.float8_e4m3fn),
    "fp8e5b16": np.dtype(ml_dtypes.float8_e5m2fnuz),
    "fp8e4b8": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "fp8e4b15": np.dtype(np.uint8),
    "fp16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "fp32": np.dtype(np.float32),
    "fp64": np.dtype(np.float64),
}
UNSIGNED = {1: np.dtype(np.uint8), 2: np.dtype(np.uint16), 4: np.dtype(np.uint32), 8: np.dtype(np.uint64)}
LARGEST_FP8 = {"fp8e5": 57344.0, "fp8e4nv": 448.0, "fp8e5b16": 57344.0, "fp8e4b8": 240.0}
E4B15_LARGEST = 0x3F00  # 1.75 as the bits of an fp16


@cache
def storage(element: dtype) -> np.dtype[Any]:
    """The NumPy type that holds one element."""
    return np.dtype(np.int64) if isinstance(element, pointer_type) else STORAGE[element.name]


@cache
def bytes_in_memory(element: dtype) -> int:
    """How far two neighbours in memory are apart: a bool takes a byte, a pointer eight."""
    return max(1, element.primitive_bitwidth // 8)


def bits_of(values: Array) -> Array:
    """The same bits as unsigned integers."""
    return np.ascontiguousarray(values).view(UNSIGNED[values.dtype.itemsize]).reshape(values.shape)


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
        return int_to_float(values, target)
    if source.is_fp8e4b15():
        return convert(e4b15_to_fp16(values), float16, target)
    if target.is_fp8e4b15():
        half = values if source.is_fp16() else toward_zero_fp16(values.astype(np.float32))
        return fp16_to_e4b15(half)
    if rounding == "rtz":
        return toward_zero(values, target)
    if source.is_fp8() and target.is_fp8():
        values = values.astype(np.float16)
    return round_float(values, target)


def is_nonzero(values: Array, source: dtype) -> Array:
    """``x != 0``: true for NaN, false for both zeros."""
    if source.is_fp8e4b15():
        return np.asarray(values & np.uint8(0x7F) != 0)
    return np.asarray(values.astype(np.float64) != 0 if source.is_floating() else values != 0)


def float_to_int(values: Array, target: dtype) -> Array:
    """Drop the fraction; saturate at 16, 32 or 64 bits, NaN gives 0; a type of 8 bits keeps the low ones of 16."""
    whole = np.trunc(np.asarray(values.astype(np.float64)))
    width = max(16, target.int_bitwidth)
    signed = target.is_int_signed()
    wide = np.dtype(f"{'int' if signed else 'uint'}{width}")
    lowest, above = (-(2.0 ** (width - 1)), 2.0 ** (width - 1)) if signed else (0.0, 2.0**width)
    inside = (whole >= lowest) & (whole < above)
    result = np.where(inside, whole, 0).astype(wide)
    limits = np.iinfo(wide)
    result = np.where(whole >= above, wide.type(limits.max), result)
    result = np.where(whole < lowest, wide.type(limits.min), result)
    return np.asarray(result.astype(storage(target)))


def int_to_float(values: Array, target: dtype) -> Array:
    """The nearest float, ties to even."""
    if not target.is_bf16():  # C's own conversions round once; an fp16 has no integers beyond the exact ones of fp32
        return values.astype(storage(target))
    if values.dtype.itemsize < 8:
        return round_float(values.astype(np.float64), target)
    kind = values.dtype.type
    lost = (values & kind(0x7FF)) != 0
    shortened = (values >> kind(11)) | lost.astype(values.dtype)  # 53 bits, the last one odd if any was lost
    limit = kind(1 << 53)
    small = values < limit if values.dtype.kind == "u" else (values < limit) & (values > -limit)
    return round_float(np.where(small, values.astype(np.float64), shortened.astype(np.float64) * 2048.0), target)


def round_float(values: Array, target: dtype) -> Array:
    """A float in another float format: exact, or to the nearest, ties to even. To fp8, saturating."""
    values = np.asarray(values)
    if target.is_fp8():
        largest = np.float32(LARGEST_FP8[target.name])
        wide = to_odd_float32(values) if values.dtype == np.float64 else values.astype(np.float32)
        return np.clip(wide, -largest, largest).astype(storage(target))  # NaN passes through clip
    if values.dtype == np.float64 and target.is_bf16():
        values = to_odd_float32(values)
    elif target.is_fp16() and values.dtype != np.float64:
        values = values.astype(np.float32)
    return values.astype(storage(target))


def to_odd_float32(values: Array) -> Array:
    """float64 to float32; what is inexact gets an odd last bit."""
    near = np.asarray(values.astype(np.float32))
    back = near.astype(np.float64)
    inexact = (back != values) & np.isfinite(near)
    is_even = bits_of(near) & np.uint32(1) == 0
    outward = np.where(values > back, np.float32(np.inf), np.float32(-np.inf))
    return np.asarray(np.where(inexact & is_even, np.nextafter(near, outward), near))


def to_odd_sum(a: Array, b: Array) -> Array:
    """``a + b`` in float64; what is inexact gets an odd last bit."""
    total = np.asarray(a + b)
    part = total - a
    error = (a - (total - part)) + (b - part)
    inexact = (error != 0) & np.isfinite(total) & np.isfinite(error)
    is_even = bits_of(total) & np.uint64(1) == 0
    outward = np.where(error > 0, np.inf, -np.inf)
    return np.asarray(np.where(inexact & is_even, np.nextafter(total, outward), total))


def toward_zero(values: Array, target: dtype) -> Array:
    """fp32 to fp16, bf16 or fp8e5, dropping the digits that do not fit."""
    values = np.asarray(values.astype(np.float32))
    if target.is_bf16():
        kept = (bits_of(values) & np.uint32(0xFFFF0000)).view(np.float32)
        return np.where(np.isnan(values), np.float32(np.nan), kept).astype(storage(target))
    half = toward_zero_fp16(values)
    if target.is_fp16():
        return half
    high = (bits_of(half) >> np.uint16(8)).astype(np.uint8)
    return np.where(np.isnan(half), np.uint8(0x7F), high).astype(np.uint8).view(storage(target))


def toward_zero_fp16(values: Array) -> Array:
    near = np.asarray(values.astype(np.float16))
    too_large = np.abs(near.astype(np.float32)) > np.abs(values)
    return np.asarray(np.where(too_large, np.nextafter(near, np.float16(0)), near))


def e4b15_to_fp16(values: Array) -> Array:
    """Sign and seven bits of magnitude: the fp16 with the pattern ``sign << 15 | magnitude << 7``."""
    bits = values.astype(np.uint16)
    pattern = (bits & np.uint16(0x80)) << np.uint16(8) | (bits & np.uint16(0x7F)) << np.uint16(7)
    return np.asarray(pattern).view(np.float16)


def fp16_to_e4b15(values: Array) -> Array:
    """Clamp the magnitude to 1.75, double its pattern, round half up into the high byte, and put the sign back."""
    bits = bits_of(values)
    magnitude = np.minimum(bits & np.uint16(0x7FFF), np.uint16(E4B15_LARGEST))
    doubled = (magnitude << np.uint16(1)) + np.uint16(0x80)
    return np.asarray(((bits & np.uint16(0x8000)) | doubled) >> np.uint16(8)).astype(np.uint8)


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
        return int_to_float(np.asarray(value, dtype=signed), element)
    return round_float(np.asarray(value, dtype=np.float64), element)
