"""Inverse trigonometric functions of f64; f32 goes through f64.

atan: the argument is brought to |t| <= tan(pi/8) by atan(x) = pi/2 - atan(1/x) and pi/4 + atan((x - 1) / (x + 1)), each
division kept as a pair. asin: above 1/2 by asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)).
"""

import math

from tilework.targets.llvm.math import coefficients as c
from tilework.targets.llvm.math.lanes import (
    Lanes,
    Pair,
    bits,
    copysign,
    exact,
    fast_two_sum,
    fma,
    pair_where,
    polynomial,
    two_sum,
    where,
)

TAN_EIGHTH = math.tan(math.pi / 8)


def atan_quotient(above: Lanes, below: Lanes) -> Pair:
    """atan(above / below) in [0, pi/2] as a pair, for non-negative finite arguments, not both 0."""
    swap = above > below
    small, big = where(swap, below, above), where(swap, above, below)
    diagonal = small > big * TAN_EIGHTH
    zero = small.const(0.0)
    minus, plus = two_sum(small, -big), two_sum(big, small)
    t, low = pair_where(diagonal, minus, exact(small)) / pair_where(diagonal, plus, exact(big))
    z = t * t
    rest = fma(t * z, polynomial(z, c.ATAN), low - low * z)
    base, base_low = where(diagonal, c.PI[0] / 4, zero), where(diagonal, c.PI[1] / 4, zero)
    high, error = fast_two_sum(base, t)
    high, low = fast_two_sum(high, error + base_low + rest)
    turned, turned_low = fast_two_sum(zero + c.HALF_PI[0], -high)
    return Pair(where(swap, turned, high), where(swap, turned_low + (c.HALF_PI[1] - low), low))


def atan(x: Lanes) -> Lanes:
    a = abs(x)
    huge = a > 2.0**60
    high, low = atan_quotient(where(huge, 2.0**60, a), a.const(1.0))
    result = where(huge, c.HALF_PI[0], high + low)
    return where(x.is_nan() | x.equal(0.0), x, copysign(result, x))


def atan2(y: Lanes, x: Lanes) -> Lanes:
    a, b = abs(y), abs(x)
    infinite = a.equal(math.inf) | b.equal(math.inf)
    one = a.const(1.0)
    a, b = (
        where(infinite, where(a.equal(math.inf), one, 0.0), a),
        where(infinite, where(b.equal(math.inf), one, 0.0), b),
    )
    plain = a / b
    big = where(a > b, a, b)
    factor = where(big > 2.0**500, 2.0**-600, where(big < 2.0**-400, 2.0**600, big.const(1.0)))
    a, b = a * factor, b * factor
    nothing = a.equal(0.0) & b.equal(0.0)
    high, low = atan_quotient(a, where(nothing, 1.0, b))
    left = bits(x) < 0
    turned, turned_low = fast_two_sum(high.const(c.PI[0]), -high)
    result = where(left, turned + (turned_low + (c.PI[1] - low)), high + low)
    result = where(
        ~left & (plain < 2.0**-60) & ~nothing, plain, result
    )  # the angle is the quotient; a pair would underflow
    return where(x.is_nan() | y.is_nan(), x + y, copysign(result, y))


def asin_parts(x: Lanes) -> tuple[Lanes, Pair, Lanes]:
    """(near, (s, s_low), s^3 R): asin(|x|) = s + ..., or pi/2 - 2 (s + ...) where `near` 1."""
    a = abs(x)
    near = a > 0.5
    half = fma(a, -0.5, 0.5)  # exact above 1/2
    root = exact(half).root()
    z = where(near, half, a * a)
    s, s_low = where(near, root.hi, a), where(near, root.lo, 0.0)
    return near, Pair(s, s_low), s * z * polynomial(z, c.ASIN)


def asin(x: Lanes) -> Lanes:
    near, (s, s_low), rest = asin_parts(x)
    high, low = fast_two_sum(x.const(c.HALF_PI[0]), -2.0 * s)
    turned = high + (low + (c.HALF_PI[1] - 2.0 * (s_low + rest)))
    result = copysign(where(near, turned, s + rest), x)
    return where(abs(x) <= 1.0, where(x.equal(0.0), x, result), math.nan)


def acos(x: Lanes) -> Lanes:
    near, (s, s_low), rest = asin_parts(x)
    double, double_low = 2.0 * s, 2.0 * (s_low + rest)
    high, low = fast_two_sum(x.const(c.PI[0]), -double)
    left = high + (low + (c.PI[1] - double_low))
    signed = copysign(s, x)
    middle, middle_low = fast_two_sum(x.const(c.HALF_PI[0]), -signed)
    inner = middle + (middle_low + (c.HALF_PI[1] - copysign(rest, x)))
    result = where(near, where(x < 0.0, left, double + double_low), inner)
    return where(abs(x) <= 1.0, result, math.nan)
