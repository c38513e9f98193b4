"""Integer functions that NumPy lacks: high halves of products, and counts and orders of bits.

Functions take arrays of any width; "unsigned" is a matter of the array's type.
"""

from typing import Any

import numpy as np

from tilework.numerics.rounding import SIGNED, UNSIGNED, Array, bits_of

HALF, LOW = np.uint64(32), np.uint64(0xFFFF_FFFF)
REVERSED = np.array([int(f"{byte:08b}"[::-1], 2) for byte in range(256)], np.uint8)


def unsigned(values: Array) -> Array:
    return np.asarray(values).view(UNSIGNED[values.dtype.itemsize])


def signed(values: Array) -> Array:
    return np.asarray(values).view(SIGNED[values.dtype.itemsize])


def high_product(a: Array, b: Array) -> Array:
    """Return the upper half of the double-width product, signed if the arrays are; 64-bit ones from 32-bit parts."""
    dtype = a.dtype
    if dtype.itemsize < 8:
        wide = np.dtype(f"{dtype.kind}8")
        return ((a.astype(wide) * b.astype(wide)) >> wide.type(8 * dtype.itemsize)).astype(dtype)
    x, y = a.astype(np.uint64), b.astype(np.uint64)
    x0, x1, y0, y1 = x & LOW, x >> HALF, y & LOW, y >> HALF
    middle = x1 * y0 + (x0 * y0 >> HALF)
    other = x0 * y1 + (middle & LOW)
    high = x1 * y1 + (middle >> HALF) + (other >> HALF)
    if dtype.kind == "i":
        high = high - np.where(a < 0, y, np.uint64(0)) - np.where(b < 0, x, np.uint64(0))
    return np.asarray(high).astype(dtype)


def bit_bytes(values: Array) -> Array:
    """Return the bytes of each element along a new last axis, the lowest first."""
    return np.ascontiguousarray(values).view(np.uint8).reshape(*values.shape, values.dtype.itemsize)


def one_bits(values: Array) -> Array:
    return np.unpackbits(bit_bytes(values), axis=-1).sum(axis=-1, dtype=np.int64)


def bit_length(values: Array) -> Array:
    """Return the index of the highest one bit, counted from 1; 0 for 0."""
    rest = bits_of(np.asarray(values)).astype(np.uint64)
    length = np.zeros(rest.shape, np.int64)
    for step in (32, 16, 8, 4, 2, 1):
        high = rest >> np.uint64(step)
        length += np.where(high != 0, step, 0)
        rest = np.where(high != 0, high, rest)
    return length + (rest != 0)


def leading_zeros(values: Array) -> Array:
    return 8 * values.dtype.itemsize - bit_length(values)


def first_set(values: Array) -> Array:
    """Return the index of the lowest one bit, counted from 1; 0 for 0."""
    bits = bits_of(np.asarray(values))
    return bit_length(bits & (~bits + bits.dtype.type(1)))


def trailing_zeros(values: Array) -> Array:
    first = first_set(values)
    return np.where(first == 0, 8 * values.dtype.itemsize, first - 1)


def reversed_bits(values: Array) -> Array:
    flipped = np.ascontiguousarray(REVERSED[bit_bytes(values)[..., ::-1]])
    return flipped.view(values.dtype).reshape(values.shape)


def selected_bytes(x: Array, y: Array, selector: Array) -> Array:
    """Return four bytes chosen from the eight of ``y:x``, each by a nibble of `selector`; bit 3 repeats the byte's
    sign."""
    both = np.concatenate([bit_bytes(part) for part in np.broadcast_arrays(x, y)], axis=-1)
    nibbles = unsigned(selector)[..., None] >> np.arange(0, 16, 4, dtype=np.uint32) & np.uint32(15)
    chosen = np.take_along_axis(both, np.asarray(nibbles & np.uint32(7), np.intp), axis=-1)
    chosen = np.where(nibbles < 8, chosen, np.where(chosen >= 128, 255, 0)).astype(np.uint8)
    return np.ascontiguousarray(chosen).view(x.dtype).reshape(x.shape)


def low_24(values: Array) -> Array:
    """Return the lowest 24 bits as an integer, sign-extended if the array is signed."""
    shift: Any = values.dtype.type(8)
    return (values << shift) >> shift


def upper_half(doubles: Array) -> Array:
    """Return doubles without their lower 32 bits."""
    return (bits_of(doubles) & ~LOW).view(np.float64)
