"""Conversion of arrays between number formats, each element rounded once; microscaling formats; canonical NaNs.

    >>> narrow(np.float64(1 + 2**-8 + 2**-40), BF16)  # through float32 it would be a tie, and become 1
    array(1.00781, dtype=bfloat16)

bf16 and the 8-bit floats are `ml_dtypes`; fp8e4b15, which no library supports, is bytes. A float64 that is converted to
a format narrower than float32 is *rounded to odd* first: the odd last bit of a float32 records that bits were lost, so
that the second rounding cannot mistake the value for a tie.

The OCP microscaling formats have E2M1 elements, two to a byte, and E8M0 scales:

>>> decode_e2m1(np.array([1, 10, 7]))
array([ 0.5, -1. ,  6. ], dtype=float32)
>>> decode_e8m0(np.array([0, 127, 255])) == [2.0**-127, 1, np.nan]
array([ True,  True, False])

Machines produce NaNs of different signs and payloads, and propagate those of their operands or not; `canonical` makes
them one:

>>> canonical(np.array([0xFFC12345], np.uint32).view(np.float32)).view(np.uint32) == 0x7FC00000
array([ True])
"""

from typing import Any, TypeAlias

import ml_dtypes
import numpy as np

from tilework.numerics.formats import E2M1, FORMATS, TF32

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

F16, F32, F64 = (np.dtype(t) for t in (np.float16, np.float32, np.float64))
BF16 = np.dtype(ml_dtypes.bfloat16)
E4M3FN, E5M2 = np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)
FLOATS: dict[str, np.dtype[Any]] = {
    "fp8e4nv": E4M3FN,
    "fp8e4b8": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "fp8e5": E5M2,
    "fp8e5b16": np.dtype(ml_dtypes.float8_e5m2fnuz),
    "fp16": F16,
    "bf16": BF16,
    "fp32": F32,
    "fp64": F64,
}
FORMAT_OF = {dtype: FORMATS[name] for name, dtype in FLOATS.items()}
UNSIGNED = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}
SIGNED = {size: np.dtype(f"i{size}") for size in (1, 2, 4, 8)}
E4B15_LARGEST = 0x3F00  # 1.75 as the bits of an fp16
TF32_DROPPED = np.uint32((1 << (FORMATS["fp32"].fraction - TF32.fraction)) - 1)


def bits_of(values: Array) -> Array:
    """Return the same bits as unsigned integers."""
    return np.ascontiguousarray(values).view(UNSIGNED[values.dtype.itemsize]).reshape(values.shape)


def is_float8(dtype: np.dtype[Any]) -> bool:
    return dtype.itemsize == 1 and dtype in FORMAT_OF


def to_odd_f32(values: Array) -> Array:
    """Convert float64 to float32; inexact values get an odd last bit."""
    values = np.asarray(values, F64)
    near = values.astype(F32)
    rest = values - near.astype(F64)
    is_even = near.view(np.uint32) & np.uint32(1) == 0
    outward = np.where(rest > 0, np.float32(np.inf), np.float32(-np.inf))
    return np.where((rest != 0) & is_even & ~np.isnan(values), np.nextafter(near, outward), near)


def narrow(values: Array, dtype: np.dtype[Any]) -> Array:
    """Convert any float to `dtype`, nearest even, rounded once; beyond the range infinity, or NaN if it has none."""
    values = np.asarray(values)
    if values.dtype == dtype:
        return values
    if dtype in (F64, F32) or (dtype == F16 and values.dtype in (F64, F32)):
        return values.astype(dtype)
    if values.dtype == F64:
        if dtype == BF16 and not (~(np.abs(values) >= 2.0**-126)).any():
            return normal_to_bf16(values)
        values = to_odd_f32(values)
    return values.astype(F32, copy=False).astype(dtype)


def normal_to_bf16(values: Array) -> Array:
    """Convert float64 to bf16 if nothing is NaN or too small: the bits are rounded in place."""
    bits, dropped = values.view(np.uint64), np.uint64(45)
    half = np.uint64((1 << 44) - 1) + (bits >> dropped & np.uint64(1))
    kept = (bits + half) & np.uint64(2**64 - 2**45)
    return (kept.view(F64).astype(F32).view(np.uint32) >> np.uint32(16)).astype(np.uint16).view(BF16)


def narrow_to_zero(values: Array, dtype: np.dtype[Any]) -> Array:
    """Convert any float to `dtype`, towards zero: the nearest value, or its neighbour below in magnitude."""
    values = np.asarray(values)
    near = narrow(values, dtype)
    above = np.abs(near.astype(F64)) > np.abs(values.astype(F64))
    bits = bits_of(near)
    return np.where(above, bits - bits.dtype.type(1), bits).view(dtype)


def saturate(values: Array, dtype: np.dtype[Any]) -> Array:
    """Clamp `values` to the finite range of `dtype`, infinities too; NaN is kept."""
    values = np.asarray(values)
    values = values if values.dtype in (F64, F32) else values.astype(F32)
    limit = values.dtype.type(FORMAT_OF[dtype].limit)
    return np.clip(values, -limit, limit)


def from_integer(values: Array, dtype: np.dtype[Any]) -> Array:
    """Convert a signed or unsigned integer to the nearest float, ties to even."""
    values = np.asarray(values)
    if dtype in (F64, F32):  # conversions of the machine round once
        return values.astype(dtype)
    if values.dtype.itemsize < 8:
        return narrow(values.astype(F64), dtype)
    # 53 bits are exact in float64: keep the upper ones, and fold the lowest 11 into one sticky bit
    low, large = values & values.dtype.type(0x7FF), np.abs(values.astype(F64)) >= 2.0**53
    sticky = (values - low) | np.where(low != 0, 0x800, 0).astype(values.dtype)
    return narrow(np.where(large, sticky, values).astype(values.dtype).astype(F64), dtype)


def to_integer(values: Array, dtype: np.dtype[Any]) -> Array:
    """Truncate floats and clamp them to the range of an integer `dtype`; NaN is 0."""
    whole = np.trunc(np.asarray(values).astype(F64))
    limits = np.iinfo(dtype)
    above, below = whole >= float(limits.max), whole <= float(limits.min)
    inside = np.where(above | below | np.isnan(whole), 0.0, whole).astype(dtype)
    return np.where(above, dtype.type(limits.max), np.where(below, dtype.type(limits.min), inside))


def from_e4b15(codes: Array) -> Array:
    """Sign and seven bits of magnitude: the fp16 with the pattern ``sign << 15 | magnitude << 7``."""
    bits = codes.astype(np.uint16)
    return np.asarray((bits & np.uint16(0x80)) << np.uint16(8) | (bits & np.uint16(0x7F)) << np.uint16(7)).view(F16)


def to_e4b15(halves: Array) -> Array:
    """Clamp the magnitude of an fp16 to 1.75, double its pattern, round half up into the high byte, and put the sign
    back."""
    bits = bits_of(halves)
    magnitude = np.minimum(bits & np.uint16(0x7FFF), np.uint16(E4B15_LARGEST))
    doubled = (magnitude << np.uint16(1)) + np.uint16(0x80)
    return np.asarray(((bits & np.uint16(0x8000)) | doubled) >> np.uint16(8)).astype(np.uint8)


def to_tf32(bits: Array, mode: str) -> Array:
    """Return the bits of float32 with 10 bits of fraction: to nearest even (rn), half away from zero (rna), or
    truncated (rz)."""
    half = TF32_DROPPED >> np.uint32(1)
    last = bits >> np.uint32(13) & np.uint32(1)
    more = {"rn": half + last, "rna": half + np.uint32(1), "rz": np.uint32(0)}[mode]
    is_number = (bits & np.uint32(0x7F800000)) != np.uint32(0x7F800000)
    return np.where(is_number, (bits + more) & ~TF32_DROPPED, bits)


E2M1_VALUES = np.array([E2M1.number(code) for code in range(8)], np.float32)
E2M1_NUMBERS = np.concatenate([E2M1_VALUES, -E2M1_VALUES])
E8M0_BIAS, E8M0_MAX, E8M0_NAN = 127, 254, 255


def e2m1_thresholds() -> Array:
    """Return the smallest magnitude that rounds to each code but the first: midpoints, which belong to the even
    code."""
    middles = (E2M1_VALUES[:-1].astype(np.float64) + E2M1_VALUES[1:]) / 2
    upper_is_even = np.arange(1, len(E2M1_VALUES)) % 2 == 0
    return np.where(upper_is_even, middles, np.nextafter(middles, np.inf))


E2M1_THRESHOLDS = e2m1_thresholds()


def encode_e2m1(values: Array) -> Array:
    """Return the codes nearest to `values`; NaN and infinity become 6 with their sign."""
    wide = np.asarray(values, np.float64)
    magnitude = np.searchsorted(E2M1_THRESHOLDS, np.abs(wide), side="right")
    return (np.signbit(wide).astype(np.uint8) << 3 | magnitude).astype(np.uint8)


def decode_e2m1(codes: Array) -> Array:
    """Return the float32 value of each code; code 8 is -0."""
    return E2M1_NUMBERS[codes]


def unpack_e2m1(packed: Array, axis: int) -> Array:
    """Return the float32 values of bytes that hold two codes along `axis`, the first in the low half."""
    last = np.moveaxis(np.ascontiguousarray(packed).view(np.uint8), axis, -1)
    pairs = np.stack((E2M1_NUMBERS[last & 15], E2M1_NUMBERS[last >> 4]), axis=-1)
    return np.moveaxis(pairs.reshape(*last.shape[:-1], 2 * last.shape[-1]), -1, axis)


def encode_e8m0(values: Array) -> Array:
    """floor(log2) + 127, clamped to 0..254; 255 if that is undefined."""
    wide = np.asarray(values, np.float64)
    usable = np.isfinite(wide) & (wide > 0)
    exponent = np.frexp(np.where(usable, wide, 1.0))[1] - 1
    return np.where(usable, np.clip(exponent + E8M0_BIAS, 0, E8M0_MAX), E8M0_NAN).astype(np.uint8)


def decode_e8m0(codes: Array) -> Array:
    """``2 ** (code - 127)`` in float32; 255 is NaN."""
    power = np.ldexp(np.float32(1), np.minimum(codes, E8M0_MAX).astype(np.int32) - E8M0_BIAS)
    return np.where(codes == E8M0_NAN, np.float32(np.nan), power).astype(np.float32)


def canonical(values: Array) -> Array:
    """Replace every NaN in `values` by the positive quiet NaN; values that are not floats are unchanged."""
    format = FORMAT_OF.get(values.dtype)
    if format is None or (last := format.last_number) is None:
        return values
    bits = bits_of(values)
    integer: Any = bits.dtype.type
    is_nan = (bits & integer((1 << (format.bits - 1)) - 1)) > integer(last)
    return np.where(is_nan, integer(format.nan), bits).astype(bits.dtype).view(values.dtype) if is_nan.any() else values
