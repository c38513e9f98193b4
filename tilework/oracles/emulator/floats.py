"""Correctly rounded arithmetic on NumPy arrays, in every rounding mode and format of PTX.

    >>> Format.of("f32").add(np.float32([1]), np.float32([2**-30]), "rp")
    array([1.0000001], dtype=float32)
    >>> fma(np.float64([3]), np.float64([5]), np.float64([0.5]))[0]
    array([15.5])

Numbers are computed in float64 together with the sign of what rounding took away. A value with its last bit set whenever something
is missing ("rounded to odd") can be rounded once more, to any narrower format and in any mode, without being rounded twice.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from tilework.oracles.emulator.arenas import Array

SPLIT = 134217729.0  # 2^27 + 1, which cuts a double into two halves
BF16 = np.dtype(ml_dtypes.bfloat16)
MODES = ("rn", "rz", "rm", "rp")
DROPPED = {"f16": 42, "bf16": 45, "f32": 29, "f64": 0}  # bits of a double that a format has not
Rounded = tuple[Array, Array]  # the nearest double, and the sign of (exact - it)


def two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """a + b as a double and what it misses, exactly."""
    total = a + b
    part = total - a
    error = (a - (total - part)) + (b - part)
    return total, np.where(np.isfinite(total), error, 0.0)


def two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """a * b as a double and what it misses, exactly while nothing overflows or becomes denormal."""
    product = a * b
    high_a = SPLIT * a
    high_a = high_a - (high_a - a)
    high_b = SPLIT * b
    high_b = high_b - (high_b - b)
    low_a, low_b = a - high_a, b - high_b
    error = ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b
    return product, np.where(np.isfinite(product), error, 0.0)


def to_odd(value: Array, missing: Array) -> Array:
    """A double whose last bit says that something is missing: itself, or its neighbour on the side of `missing`."""
    bits = np.asarray(value, np.float64).view(np.int64)
    neighbour = np.nextafter(value, np.where(missing > 0, np.inf, -np.inf))
    return np.where((missing == 0) | (bits & 1 == 1) | ~np.isfinite(value), value, neighbour)


def add(a: Array, b: Array) -> Rounded:
    total, error = two_sum(a, b)
    return total, np.sign(error)


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
    extreme = needs_care(quotient, a, b) & (b != 0)
    if extreme.any():
        return exactly(lambda x, y: x / y, quotient, sign, extreme, a, b)
    return quotient, sign


def square_root(a: Array) -> Rounded:
    root = np.sqrt(a)
    product, error = two_product(root, root)
    rest = (a - product) - error
    return root, np.where(np.isfinite(root), np.sign(rest), 0.0)


def fma(a: Array, b: Array, c: Array) -> Rounded:
    """a * b + c, rounded once."""
    high, low = two_product(a, b)
    third, fourth = two_sum(c, low)
    total, rest = two_sum(high, third)
    tail, lost = two_sum(fourth, rest)
    missing = to_odd(tail, lost)
    result, error = two_sum(total, missing)
    plain = a * b + c
    result = np.where(np.isfinite(high) & np.isfinite(plain), result, plain)
    sign = np.where(np.isfinite(result), np.where(error != 0, np.sign(error), 0.0), 0.0)
    zero = (result == 0) & np.isfinite(plain)
    result = np.where(zero & (sign == 0), plain, result)
    extreme = needs_care(high, a, b) | (np.isfinite(a) & np.isfinite(b) & np.isfinite(c) & ~np.isfinite(plain))
    if extreme.any():
        return exactly(lambda x, y, z: x * y + z, result, sign, extreme, a, b, c)
    return result, sign


def needs_care(product: Array, *factors: Array) -> Array:
    """Where a product's error cannot be computed in doubles: near overflow, and where it is nearly denormal."""
    size = np.abs(product)
    large = np.zeros(np.shape(product), bool)
    for factor in factors:
        large = large | (np.abs(factor) > 2.0**995)
    nonzero = np.ones(np.shape(product), bool)
    for factor in factors:
        nonzero = nonzero & (factor != 0) & np.isfinite(factor)
    return nonzero & ((size < 2.0**-960) | large | (size > 2.0**990))


def exactly(function: Any, value: Array, sign: Array, which: Array, *operands: Array) -> Rounded:
    """The same with fractions, element by element, where doubles are not enough."""
    shape = np.broadcast_shapes(*(np.shape(operand) for operand in operands), np.shape(value))
    value, sign = np.array(np.broadcast_to(value, shape)), np.array(np.broadcast_to(sign, shape))
    columns = [np.broadcast_to(operand, shape) for operand in operands]
    for index in zip(*np.nonzero(np.broadcast_to(which, shape)), strict=True):
        numbers = [float(column[index]) for column in columns]
        if not all(np.isfinite(numbers)):
            continue
        exact = function(*(Fraction(number) for number in numbers))
        try:
            nearest = float(exact)
        except OverflowError:
            nearest = np.inf if exact > 0 else -np.inf
        if nearest == 0 and exact == 0:
            continue  # the sign of a zero is what the doubles say
        value[index] = nearest if nearest else np.copysign(0.0, 1 if exact > 0 else -1)
        if np.isinf(nearest):
            sign[index] = -1 if nearest > 0 else 1
        else:
            sign[index] = (exact > Fraction(nearest)) - (exact < Fraction(nearest))
    return value, sign


@dataclass(frozen=True)
class Format:
    """A float format: its NumPy type, and the bits of the NaN that operations make."""

    name: str
    dtype: Any
    nan: int
    least: float  # the smallest normal number

    @classmethod
    @cache
    def of(cls, name: str) -> "Format":
        return {
            "f16": cls("f16", np.dtype(np.float16), 0x7FFF, 2.0**-14),
            "bf16": cls("bf16", BF16, 0x7FFF, 2.0**-126),
            "f32": cls("f32", np.dtype(np.float32), 0x7FFFFFFF, 2.0**-126),
            "f64": cls("f64", np.dtype(np.float64), 0xFFF8000000000000, 2.0**-1022),
        }[name]

    @property
    def bits(self) -> Any:
        return np.dtype(f"u{self.dtype.itemsize}")

    def wide(self, values: Array) -> Array:
        """As doubles."""
        return values.view(self.dtype).astype(np.float64) if values.dtype != np.float64 else values

    def round(self, value: Array, sign: Array, mode: str = "rn") -> Array:
        """A double and the sign of what it misses, in this format; `mode` is "rn", "rz", "rm" or "rp"."""
        if self.dtype == np.float64:
            return direct(value, np.asarray(value, np.float64), sign, mode, self)
        if mode == "rn" and not np.any(sign):
            return self.nearest(value)
        odd = to_odd(value, sign)
        return direct(odd, self.nearest(odd), odd, mode, self)

    def once(self, values: Array) -> Array | None:
        """Doubles that may miss something, to nearest: None if one lies half way between two numbers, where what it misses decides,
        or is so small that other bits do."""
        values = np.asarray(values)
        step = 1 << DROPPED[self.name]
        if np.count_nonzero((values.view(np.int64) & (step - 1)) == step >> 1):
            return None
        tiny = np.abs(values) < self.least
        return None if np.count_nonzero(tiny) and np.count_nonzero(values[tiny]) else self.nearest(values)

    def nearest(self, values: Array) -> Array:
        if self.dtype != BF16:
            return values.astype(self.dtype)
        values = np.asarray(values)
        if not (~(np.abs(values) >= self.least)).any():  # no NaN, nothing denormal: round the bits of the doubles
            bits, step = values.view(np.uint64), 1 << DROPPED["bf16"]
            odd = bits >> np.uint64(DROPPED["bf16"]) & np.uint64(1)
            rounded = (bits + odd + np.uint64(step // 2 - 1)) & np.uint64(2**64 - step)
            return (
                (rounded.view(np.float64).astype(np.float32).view(np.uint32) >> np.uint32(16))
                .astype(np.uint16)
                .view(BF16)
            )
        single = values.astype(np.float32)
        with np.errstate(invalid="ignore"):
            rest = values - single.astype(np.float64)
        bits = single.view(np.uint32)
        towards = np.nextafter(single, np.where(rest > 0, np.float32(np.inf), np.float32(-np.inf)))
        odd = np.where((rest == 0) | (bits & 1 == 1) | ~np.isfinite(single), single, towards).view(np.uint32)
        rounded = (odd.astype(np.uint64) + 0x7FFF + (odd >> np.uint32(16) & np.uint32(1))) >> np.uint64(16)
        return np.where(np.isnan(values), np.uint64(0x7FFF), rounded).astype(np.uint16).view(BF16)

    def canonical(self, values: Array) -> Array:
        """NaNs as this GPU makes them."""
        if self.name == "f64":
            return values
        missing = np.isnan(values)
        if np.count_nonzero(missing):
            values = values.copy()
            values.view(self.bits)[missing] = self.nan
        return values

    def flush(self, values: Array) -> Array:
        """Denormals as zeros of the same sign."""
        tiny = (np.abs(values) < self.dtype.type(self.least)) & (values != 0)
        return (
            np.where(tiny, np.copysign(self.dtype.type(0), values), values).astype(self.dtype) if tiny.any() else values
        )

    def add(self, a: Array, b: Array, mode: str = "rn") -> Array:
        if mode == "rn" and self.dtype.itemsize >= 4:
            return a + b
        x, y = self.wide(a), self.wide(b)
        found = self.once(x + y) if mode == "rn" else None
        return self.round(*add(x, y), mode) if found is None else found

    def multiply(self, a: Array, b: Array, mode: str = "rn") -> Array:
        if mode == "rn" and self.dtype.itemsize >= 4:
            return a * b
        x, y = self.wide(a), self.wide(b)
        found = self.once(x * y) if mode == "rn" else None
        return self.round(*multiply(x, y), mode) if found is None else found

    def divide(self, a: Array, b: Array, mode: str = "rn") -> Array:
        if mode == "rn" and self.dtype.itemsize >= 4:
            return a / b
        return self.round(*divide(self.wide(a), self.wide(b)), mode)

    def square_root(self, a: Array, mode: str = "rn") -> Array:
        if mode == "rn" and self.dtype.itemsize >= 4:
            return np.sqrt(a)
        return self.round(*square_root(self.wide(a)), mode)

    def fma(self, a: Array, b: Array, c: Array, mode: str = "rn") -> Array:
        if self.name != "f64":  # a product of two floats is a double, exactly
            product, added = self.wide(a) * self.wide(b), self.wide(c)
            found = self.once(product + added) if mode == "rn" else None
            if found is not None:
                return found
            value, error = two_sum(product, added)
            return self.round(value, np.sign(error), mode)
        return self.round(*fma(self.wide(a), self.wide(b), self.wide(c)), mode)


def direct(exact: Array, nearest: Array, missing: Array, mode: str, format: Format) -> Array:
    """`nearest` moved to the side that the mode asks for. `missing` is the sign of the rest for doubles; for narrower formats the
    double that `nearest` was rounded from."""
    if mode == "rn":
        return nearest
    if format.dtype == np.float64:
        rest = missing
    else:
        wide = nearest.astype(np.float64)
        with np.errstate(invalid="ignore"):
            rest = np.where(np.isinf(wide) & np.isfinite(exact), -np.sign(wide), np.sign(exact - wide))
    negative = np.signbit(nearest.astype(np.float64))
    if mode == "rm":
        down = rest < 0
        step = np.where(down, -1, 0)
    elif mode == "rp":
        step = np.where(rest > 0, 1, 0)
    else:
        step = np.where((rest < 0) & ~negative, -1, np.where((rest > 0) & negative, 1, 0))
    moved = neighbour(nearest, step, format)
    return np.where(step == 0, nearest, moved).astype(format.dtype)


def neighbour(values: Array, step: Array, format: Format) -> Array:
    """The next number up (step 1) or down (step -1)."""
    signed = np.dtype(f"i{format.dtype.itemsize}")
    bits = np.ascontiguousarray(values).view(format.bits).astype(np.int64 if format.dtype.itemsize < 8 else signed)
    sign_bit = 1 << (8 * format.dtype.itemsize - 1)
    if format.dtype.itemsize == 8:
        return np.nextafter(values, np.where(step > 0, np.inf, -np.inf))
    magnitude, negative = bits & (sign_bit - 1), bits >= sign_bit
    ordered = np.where(negative, -magnitude, magnitude) + step
    zero_from_below = (ordered == 0) & (step > 0)
    crossed_down = (magnitude == 0) & (step < 0)
    ordered = np.where((magnitude == 0) & (step > 0), 1, np.where(crossed_down, -1, ordered))
    result = np.where(ordered < 0, sign_bit | -ordered, ordered)
    result = np.where(zero_from_below & (magnitude != 0), sign_bit, result)
    return result.astype(format.bits).view(format.dtype)
