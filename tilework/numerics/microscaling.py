"""The OCP microscaling formats: E2M1 elements, two to a byte, and E8M0 scales.

>>> decode_e2m1(np.array([1, 10, 7]))
array([ 0.5, -1. ,  6. ], dtype=float32)
>>> decode_e8m0(np.array([0, 127, 255])) == [2.0**-127, 1, np.nan]
array([ True,  True, False])
"""

import numpy as np

from tilework.numerics.formats import E2M1
from tilework.numerics.rounding import Array

E2M1_VALUES = np.array([E2M1.number(code) for code in range(8)], np.float32)
E2M1_NUMBERS = np.concatenate([E2M1_VALUES, -E2M1_VALUES])
E8M0_BIAS, E8M0_MAX, E8M0_NAN = 127, 254, 255


def e2m1_thresholds() -> Array:
    """The smallest magnitude that rounds to each code but the first: midpoints, which belong to the even code."""
    middles = (E2M1_VALUES[:-1].astype(np.float64) + E2M1_VALUES[1:]) / 2
    upper_is_even = np.arange(1, len(E2M1_VALUES)) % 2 == 0
    return np.where(upper_is_even, middles, np.nextafter(middles, np.inf))


E2M1_THRESHOLDS = e2m1_thresholds()


def encode_e2m1(values: Array) -> Array:
    """The codes nearest to `values`; NaN and infinity become 6 with their sign."""
    wide = np.asarray(values, np.float64)
    magnitude = np.searchsorted(E2M1_THRESHOLDS, np.abs(wide), side="right")
    return (np.signbit(wide).astype(np.uint8) << 3 | magnitude).astype(np.uint8)


def decode_e2m1(codes: Array) -> Array:
    """The float32 value of each code; code 8 is -0."""
    return E2M1_NUMBERS[codes]


def unpack_e2m1(packed: Array, axis: int) -> Array:
    """The float32 values of bytes that hold two codes along `axis`, the first in the low half."""
    last = np.moveaxis(np.ascontiguousarray(packed).view(np.uint8), axis, -1)
    pairs = np.stack((E2M1_NUMBERS[last & 15], E2M1_NUMBERS[last >> 4]), axis=-1)
    return np.moveaxis(pairs.reshape(*last.shape[:-1], 2 * last.shape[-1]), -1, axis)


def encode_e8m0(values: Array) -> Array:
    """floor(log2) + 127, clamped to 0..254; 255 where that has no meaning."""
    wide = np.asarray(values, np.float64)
    usable = np.isfinite(wide) & (wide > 0)
    exponent = np.frexp(np.where(usable, wide, 1.0))[1] - 1
    return np.where(usable, np.clip(exponent + E8M0_BIAS, 0, E8M0_MAX), E8M0_NAN).astype(np.uint8)


def decode_e8m0(codes: Array) -> Array:
    """``2 ** (code - 127)`` in float32; 255 is NaN."""
    power = np.ldexp(np.float32(1), np.minimum(codes, E8M0_MAX).astype(np.int32) - E8M0_BIAS)
    return np.where(codes == E8M0_NAN, np.float32(np.nan), power).astype(np.float32)
