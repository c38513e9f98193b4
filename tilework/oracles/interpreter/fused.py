"""Multiply and add with a single rounding, for every float type."""

import math
from fractions import Fraction

import numpy as np

from tilework.language.dtypes import dtype
from tilework.oracles.interpreter.formats import Array, round_float, to_odd_sum


def fused(a: Array, b: Array, c: Array, element: dtype) -> Array:
    """A multiplication and an addition with one rounding; the product of two floats of 32 bits is exact in float64."""
    if not element.is_fp64():
        x, y, z = (value.astype(np.float64) for value in (a, b, c))
        total = to_odd_sum(np.asarray(x * y), z)
        # float64 to float32 and float16 rounds once by itself; bfloat16 goes through an odd float32
        return round_float(total, element)
    return np.asarray(np.vectorize(fused_float64, otypes=[np.float64])(a, b, c))


def fused_float64(a: float, b: float, c: float) -> float:
    a, b, c = float(a), float(b), float(c)
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        return float(np.float64(a) * np.float64(b) + np.float64(c))
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c  # the sign of zero
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf
