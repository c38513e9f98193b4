"""Arithmetic rounded in a chosen direction: to nearest even (rn), to zero (rz), down (rd) or up (ru).

The exact result is a fraction. Divided by the spacing of the format at its magnitude, it lies between two integers, and
the direction picks one of them:

    >>> round_fraction(Fraction(1, 10), F32, "rd") < 0.1 < round_fraction(Fraction(1, 10), F32, "ru")
    True

Roots are not fractions; an integer root with many bits and a sticky last one stands for them.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from tilework.oracles.evaluator.floats import F32, F64, Array

FORMATS = {
    F32: (24, -149, 128),
    F64: (53, -1074, 1024),
}  # bits, exponent of the smallest number, of the first too large
PLAIN: dict[str, Callable[..., float]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: float(np.divide(x, y)),
    "rcp": lambda x: float(np.divide(1.0, x)),
    "sqrt": lambda x: float(np.sqrt(x)),
    "rsqrt": lambda x: float(np.divide(1.0, np.sqrt(x))),
    "fma": lambda x, y, z: x * y + z,
}
SUMS = ("add", "sub", "fma")


def directed(operation: str, args: tuple[Array, ...], dtype: np.dtype[Any], mode: str) -> Array:
    """``operation`` of `PLAIN` on every element, rounded once to `dtype`."""
    one = np.frompyfunc(lambda *values: scalar(operation, [float(v) for v in values], dtype, mode), len(args), 1)
    with np.errstate(all="ignore"):
        return np.asarray(one(*args), dtype=object).astype(dtype)


def scalar(operation: str, values: list[float], dtype: np.dtype[Any], mode: str) -> float:
    exact = exact_value(operation, values) if all(map(math.isfinite, values)) else None
    if exact is None:
        return PLAIN[operation](*values)
    if exact == 0:
        zero = PLAIN[operation](*values) if operation != "fma" else fused_zero(*values)
        cancelled = operation in SUMS and not all(math.copysign(1, part) > 0 for part in addends(operation, values))
        return -0.0 if mode == "rd" and cancelled else zero
    return round_fraction(exact, dtype, mode)


def exact_value(operation: str, values: list[float]) -> Fraction | None:
    """The result as a fraction; None where it is infinite or not a number."""
    x, *rest = map(Fraction, values)
    match operation:
        case "add" | "sub":
            return x + rest[0] if operation == "add" else x - rest[0]
        case "mul":
            return x * rest[0]
        case "fma":
            return x * rest[0] + rest[1]
        case "div":
            return x / rest[0] if rest[0] else None
        case "rcp":
            return 1 / x if x else None
        case "sqrt":
            return root(x) if x >= 0 else None
        case _:
            return root(1 / x) if x > 0 else None


def root(value: Fraction) -> Fraction:
    """The square root with 160 bits and a last bit that tells whether it is exact."""
    shift = max(0, 160 + (value.denominator.bit_length() - value.numerator.bit_length()) // 2)
    scaled = value * 4**shift
    whole = math.isqrt(math.floor(scaled))
    return Fraction(2 * whole + (whole * whole != scaled), 2 << shift)


def addends(operation: str, values: list[float]) -> list[float]:
    """The terms of a sum, with their signs."""
    if operation == "fma":
        sign = math.copysign(1, values[0]) * math.copysign(1, values[1])
        return [sign, values[2]]
    return [values[0], values[1] if operation == "add" else -values[1]]


def fused_zero(x: float, y: float, z: float) -> float:
    """The zero of an exact ``x * y + z``: negative if both terms are."""
    return -0.0 if all(math.copysign(1, part) < 0 for part in addends("fma", [x, y, z])) else 0.0


def round_fraction(value: Fraction, dtype: np.dtype[Any], mode: str) -> float:
    """The neighbour of `value` in float32 or float64, as a Python float."""
    if value == 0:
        return 0.0
    bits, smallest, too_large = FORMATS[dtype]
    sign, magnitude = 1.0 if value > 0 else -1.0, abs(value)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > magnitude  # now 2**exponent <= magnitude < 2**(exponent + 1)
    spacing = max(exponent - bits + 1, smallest)
    steps = magnitude / Fraction(2) ** spacing
    away = (mode == "ru") == (value > 0) and mode in ("rd", "ru")
    count = round(steps) if mode == "rn" else math.ceil(steps) if away else math.floor(steps)
    if Fraction(2) ** spacing * count >= Fraction(2) ** too_large:
        largest = math.ldexp(2.0**bits - 1, too_large - bits)
        return sign * (math.inf if mode == "rn" or away else largest)
    return sign * math.ldexp(float(count), spacing)


def whole_to_float(value: Array, dtype: np.dtype[Any], mode: str) -> Array:
    """Integers, or floats of a wider format, rounded to `dtype`."""

    def convert(x: Any) -> float:
        number = x if isinstance(x, int) else float(x)
        return round_fraction(Fraction(number), dtype, mode) if number and math.isfinite(number) else float(number)

    return np.asarray(np.frompyfunc(convert, 1, 1)(value.astype(object)), dtype=object).astype(dtype)
