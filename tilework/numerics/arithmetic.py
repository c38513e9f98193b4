"""Correctly rounded arithmetic on NumPy arrays, in every IEEE format and rounding mode.

    >>> Arithmetic.of(F32).add(np.float32([1]), np.float32([2**-30]), "rp")
    array([1.0000001], dtype=float32)

Modes: to nearest even (rn), to zero (rz), down (rm) or up (rp). Numbers are computed in float64 together with the sign
of the rounding error. A value whose last bit is set if it is inexact ("rounded to odd") can be rounded once more, to
any narrower format and in any mode, without double rounding.

Hosts differ in the NaN of an operation: 0 / 0 is 0xffc00000 on x86-64 and 0x7fc00000 on ARM. An oracle of a device
chooses the NaN of that device (`Arithmetic.propagate`).
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from tilework.light_dataclass import light_dataclass
from tilework.numerics.rounding import F32, F64, FORMAT_OF, UNSIGNED, Array, narrow

SPLIT = 134217729.0  # 2^27 + 1, which cuts a double into two halves
Rounded = tuple[Array, Array]  # the nearest double, and the sign of (exact - it)


def exact_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a + b as a double, which is finite, and its rounding error, exactly."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a + b as a double and its rounding error, exactly."""
    total, error = exact_sum(a, b)
    return total, np.where(np.isfinite(total), error, 0.0)


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a * b as a double and its rounding error, exact unless the product overflows or becomes denormal."""
    product = a * b
    return product, np.where(np.isfinite(product) & (product != 0), exact_rest(product, a, b), 0.0)


def exact_rest(product: Array, a: Array, b: Array) -> Array:
    """Return the rounding error of a * b, for finite intermediate values."""
    high_a = SPLIT * a
    high_a = high_a - (high_a - a)
    high_b = SPLIT * b
    high_b = high_b - (high_b - b)
    low_a, low_b = a - high_a, b - high_b
    return ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b


def to_odd(value: Array, missing: Array) -> Array:
    """Round to odd: the value, or its neighbour on the side of `missing`, so that the last bit of an inexact value is
    set."""
    bits = np.asarray(value, np.float64).view(np.int64)
    neighbour = np.nextafter(value, np.where(missing > 0, np.inf, -np.inf))
    return np.where((missing == 0) | (bits & 1 == 1) | ~np.isfinite(value), value, neighbour)


def add(a: Array, b: Array) -> Rounded:
    total, error = two_sum(a, b)
    overflows = np.isinf(total) & np.isfinite(a) & np.isfinite(b)
    return total, np.where(overflows, -np.sign(total), np.sign(error))


def multiply(a: Array, b: Array) -> Rounded:
    product, error = two_product(a, b)
    extreme = needs_care(product, a, b)
    if extreme.any():
        return exactly(lambda x, y: x * y, product, np.sign(error), extreme, a, b)
    return product, np.sign(error)


def divide(a: Array, b: Array) -> Rounded:
    quotient = a / b
    product, error = two_product(quotient, b)
    rest = (a - product) - error
    sign = np.where(np.isfinite(quotient) & (b != 0), np.sign(rest) * np.sign(b), 0.0)
    extreme = (needs_care(quotient, a, b) | (np.abs(a) < 2.0**-900)) & (b != 0) & (a != 0)
    if extreme.any():
        return exactly(lambda x, y: x / y, quotient, sign, extreme, a, b)
    return quotient, sign


def square_root(a: Array) -> Rounded:
    root = np.sqrt(a)
    scale = np.where(a < 2.0**-900, 2.0**300, np.where(a > 2.0**1000, 2.0**-300, 1.0))  # squares are in range
    product, error = two_product(root * scale, root * scale)
    rest = (a * scale * scale - product) - error
    return root, np.where(np.isfinite(root), np.sign(rest), 0.0)


def reciprocal_root(a: Array) -> Rounded:
    """Return 1 / sqrt(a) of float32 values."""
    root = 1.0 / np.sqrt(a)
    square, low = two_product(root, root)
    product, error = two_product(square, a)
    rest = ((1.0 - product) - error) - low * a
    return root, np.where(np.isfinite(root) & (a != 0), np.sign(rest), 0.0)


def fma(a: Array, b: Array, c: Array) -> Rounded:
    """a * b + c, rounded once."""
    high, low = two_product(a, b)
    third, fourth = two_sum(c, low)
    total, rest = two_sum(high, third)
    tail, lost = two_sum(fourth, rest)
    missing = to_odd(tail, lost)
    result, error = two_sum(total, missing)
    plain = np.where(np.isfinite(a) & np.isfinite(b) & np.isinf(c), c, a * b + c)  # also if the product overflows
    result = np.where(np.isfinite(high) & np.isfinite(plain), result, plain)
    sign = np.where(np.isfinite(result), np.where(error != 0, np.sign(error), 0.0), 0.0)
    zero = (result == 0) & np.isfinite(plain)
    result = np.where(zero & (sign == 0), plain, result)
    extreme = needs_care(high, a, b) | (np.isfinite(a) & np.isfinite(b) & np.isfinite(c) & ~np.isfinite(plain))
    if extreme.any():
        return exactly(lambda x, y, z: x * y + z, result, sign, extreme, a, b, c)
    return result, sign


def nearest_fma(a: Array, b: Array, c: Array) -> Array | None:
    """Return the doubles nearest to a * b + c, in half of the time of `fma`; None if an operand is one of its special
    cases."""
    high = a * b
    plain = high + c
    size = np.abs(high)
    small = size < 2.0**-960
    if not np.isfinite(plain).all() or (size > 2.0**990).any() or (small & (a != 0) & (b != 0)).any():
        return None
    third, fourth = exact_sum(c, exact_rest(high, a, b))
    total, rest = exact_sum(high, third)
    tail, lost = exact_sum(fourth, rest)
    result = total + (to_odd(tail, lost) if lost.any() else tail)
    if not np.isfinite(result).all():  # a factor is too large to be cut
        return None
    return np.where(result == 0, plain, result)


def needs_care(product: Array, *factors: Array) -> Array:
    """Return where a product's error cannot be computed in doubles: near overflow, and if it is nearly denormal."""
    size = np.abs(product)
    large = np.zeros(np.shape(product), bool)
    for factor in factors:
        large = large | (np.abs(factor) > 2.0**995)
    nonzero = np.ones(np.shape(product), bool)
    for factor in factors:
        nonzero = nonzero & (factor != 0) & np.isfinite(factor)
    return nonzero & ((size < 2.0**-960) | large | (size > 2.0**990))


def exactly(function: Callable[..., Fraction], value: Array, sign: Array, which: Array, *operands: Array) -> Rounded:
    """Compute with fractions, element by element, where doubles are not enough."""
    shape = np.broadcast_shapes(*(np.shape(operand) for operand in operands), np.shape(value))
    value, sign = np.array(np.broadcast_to(value, shape)), np.array(np.broadcast_to(sign, shape))
    columns = [np.broadcast_to(operand, shape) for operand in operands]
    for index in zip(*np.nonzero(np.broadcast_to(which, shape)), strict=True):
        values = [float(column[index]) for column in columns]
        if not all(np.isfinite(values)):
            continue
        exact = function(*map(Fraction, values))
        try:
            nearest = float(exact)
        except OverflowError:
            nearest = np.inf if exact > 0 else -np.inf
        if exact == 0:  # factors that are not 0, and an addend that cancels their product
            value[index] = sign[index] = 0.0
            continue
        value[index] = nearest if nearest else np.copysign(0.0, 1 if exact > 0 else -1)
        if np.isinf(nearest):
            sign[index] = -1 if nearest > 0 else 1
        else:
            sign[index] = (exact > Fraction(nearest)) - (exact < Fraction(nearest))
    return value, sign


@light_dataclass
class Arithmetic:
    """The operations of one format: f16, bf16, f32 or f64."""

    dtype: np.dtype[Any]
    least: float  # the smallest normal number
    dropped: int  # bits of a double that the format does not have

    @staticmethod
    @cache
    def of(dtype: np.dtype[Any]) -> "Arithmetic":
        format = FORMAT_OF[dtype]
        return Arithmetic(dtype, 2.0**format.smallest, FORMAT_OF[F64].fraction - format.fraction)

    @property
    def bits(self) -> np.dtype[Any]:
        return UNSIGNED[self.dtype.itemsize]

    @property
    def is_native(self) -> bool:
        return self.dtype.itemsize >= 4

    def wide(self, values: Array) -> Array:
        """Return the values as doubles."""
        return values.view(self.dtype).astype(np.float64) if values.dtype != np.float64 else values

    def round(self, value: Array, sign: Array, mode: str = "rn") -> Array:
        """Round a double with the sign of its error to this format."""
        if self.dtype == F64:
            return self.direct(value, np.asarray(value, np.float64), sign, mode)
        if mode == "rn" and not np.any(sign):
            return self.nearest(value)
        odd = to_odd(value, sign)
        return self.direct(odd, self.nearest(odd), odd, mode)

    def once(self, values: Array) -> Array | None:
        """Round inexact doubles to nearest: None if one is half way between two numbers, where the error decides, or is
        so small that other bits do."""
        values = np.asarray(values)
        step = 1 << self.dropped
        if np.count_nonzero((values.view(np.int64) & (step - 1)) == step >> 1):
            return None
        tiny = np.abs(values) < self.least
        return None if np.count_nonzero(tiny) and np.count_nonzero(values[tiny]) else self.nearest(values)

    def nearest(self, values: Array) -> Array:
        return np.asarray(values).astype(self.dtype) if self.is_native else narrow(values, self.dtype)

    def add(self, a: Array, b: Array, mode: str = "rn") -> Array:
        if mode == "rn" and self.is_native:
            return a + b
        x, y = self.wide(a), self.wide(b)
        found = self.once(x + y) if mode == "rn" else None
        if found is not None:
            return found
        total, sign = add(x, y)
        return self.sum(total, sign, np.signbit(x) | np.signbit(y), mode)

    def sum(self, total: Array, sign: Array, is_negative: Array, mode: str) -> Array:
        """Round a sum; rounding down, an exact zero is negative unless all terms are positive zeros."""
        if mode == "rm":
            total = np.where((total == 0) & (sign == 0) & is_negative, -0.0, total)
        return self.round(total, sign, mode)

    def multiply(self, a: Array, b: Array, mode: str = "rn") -> Array:
        if mode == "rn" and self.is_native:
            return a * b
        x, y = self.wide(a), self.wide(b)
        found = self.once(x * y) if mode == "rn" else None
        return self.round(*multiply(x, y), mode) if found is None else found

    def divide(self, a: Array, b: Array, mode: str = "rn") -> Array:
        if mode == "rn" and self.is_native:
            return a / b
        return self.round(*divide(self.wide(a), self.wide(b)), mode)

    def square_root(self, a: Array, mode: str = "rn") -> Array:
        if mode == "rn" and self.is_native:
            return np.sqrt(a)
        return self.round(*square_root(self.wide(a)), mode)

    def fma(self, a: Array, b: Array, c: Array, mode: str = "rn") -> Array:
        """a * b + c, rounded once."""
        x, y, z = self.wide(a), self.wide(b), self.wide(c)
        if self.dtype == F64:
            if mode == "rn" and (nearest := nearest_fma(x, y, z)) is not None:
                return nearest
            value, sign = fma(x, y, z)
        else:  # a product of two floats is a double, exactly
            product = x * y
            found = self.once(product + z) if mode == "rn" else None
            if found is not None:
                return found
            value, error = two_sum(product, z)
            sign = np.sign(error)
        is_negative = (np.signbit(x) != np.signbit(y)) | np.signbit(z)
        return self.sum(value, sign, is_negative, mode)

    def integer(self, values: Array, mode: str = "rn") -> Array:
        """Convert integers to this format. One of 64 bits may not fit a double: its error is known."""
        if mode == "rn" and self.is_native:
            return values.astype(self.dtype)
        near = values.astype(np.float64)
        missing = lost_by_double(values, near) if values.dtype.itemsize == 8 else np.zeros(near.shape)
        return self.round(near, missing, mode)

    def propagate(self, values: Array, operands: Sequence[Array], default: int) -> Array:
        """Replace NaNs by those of a device: the first NaN operand, quieted, or the bits `default` if none is NaN."""
        missing = np.isnan(values)
        if not np.count_nonzero(missing):
            return values
        bits = np.full(np.shape(values), default, self.bits)
        for operand in reversed(operands):
            bits = np.where(np.isnan(operand), quieted(operand, self.dtype).reshape(np.shape(operand)), bits)
        given = np.ascontiguousarray(values, self.dtype).view(self.bits).reshape(np.shape(values))
        return np.where(missing, bits, given).view(self.dtype)

    def direct(self, exact: Array, nearest: Array, missing: Array, mode: str) -> Array:
        """Move `nearest` in the direction of the mode. `missing` is the sign of the error for doubles; for narrower
        formats the double from which `nearest` was rounded."""
        if mode == "rn":
            return nearest
        if self.dtype == F64:
            rest = missing
        else:
            wide = nearest.astype(np.float64)
            with np.errstate(invalid="ignore"):
                rest = np.where(np.isinf(wide) & np.isfinite(exact), -np.sign(wide), np.sign(exact - wide))
        negative = np.signbit(nearest.astype(np.float64))
        down = rest < 0 if mode == "rm" else (rest < 0) & ~negative & (mode == "rz")
        up = rest > 0 if mode == "rp" else (rest > 0) & negative & (mode == "rz")
        moved = neighbour(nearest, up.astype(np.int64) - down)
        return np.where(up | down, moved, nearest).astype(self.dtype)


def quieted(values: Array, dtype: np.dtype[Any]) -> Array:
    """Return the bits of NaNs in `dtype`, quieted, with their sign and the upper bits of their payload."""
    values = np.ascontiguousarray(values)
    source, target, wide = FORMAT_OF[values.dtype], FORMAT_OF[dtype], np.uint64
    bits = values.view(UNSIGNED[values.dtype.itemsize]).astype(wide)
    payload, shift = bits & wide((1 << source.fraction) - 1), target.fraction - source.fraction
    payload = payload << wide(shift) if shift >= 0 else payload >> wide(-shift)
    sign = bits >> wide(source.bits - 1) << wide(target.bits - 1)
    return (sign | wide(target.nan) | payload).astype(UNSIGNED[dtype.itemsize])


def lost_by_double(value: Array, near: Array) -> Array:
    """Return the sign of (value - near) for 64-bit integers."""
    over = near >= 2.0 ** (63 if value.dtype.kind == "i" else 64)
    back = np.where(over, 0.0, near).astype(value.dtype)
    difference = np.where(value > back, 1.0, np.where(value < back, -1.0, 0.0))
    return np.where(over, -1.0, difference)


def neighbour(values: Array, step: Array) -> Array:
    """Return the next number up (step 1) or down (step -1)."""
    if values.dtype in (F32, F64):
        towards = np.where(step > 0, np.inf, -np.inf).astype(values.dtype)
        return np.nextafter(values, towards)
    bits = np.ascontiguousarray(values).view(np.uint16).astype(np.int64)
    magnitude, is_negative = bits & 0x7FFF, bits >= 0x8000
    moved = np.where(is_negative, -magnitude, magnitude) + step
    below_zero = (moved < 0) | (is_negative & (moved == 0) & (magnitude != 0))
    return (np.abs(moved) | np.where(below_zero, 0x8000, 0)).astype(np.uint16).view(values.dtype)


# The smaller and the larger of two floats, with -0 below +0, so that the result has the same bits on every machine.
# `lesser` and `greater` are NaN if an operand is; `lesser_number` and `greater_number` are then the other operand.


def wide(values: Array) -> Array:
    """Convert exactly to a format that NumPy compares."""
    values = np.asarray(values)
    return values if values.dtype in (F32, F64) else values.astype(F32)


def ordered(a: Array, b: Array, is_less: bool) -> Array:
    """Return the smaller (larger) of two; of zeros the negative (positive) one."""
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
    """
    >>> lesser(np.float32([0.0]), np.float32([-0.0]))
    array([-0.], dtype=float32)
    """
    return with_nan(a, b, True)


def greater(a: Array, b: Array) -> Array:
    return with_nan(a, b, False)


def lesser_number(a: Array, b: Array) -> Array:
    return without_nan(a, b, True)


def greater_number(a: Array, b: Array) -> Array:
    return without_nan(a, b, False)
