"""Inverse trigonometric functions.

atan: the argument is brought to |t| <= tan(pi/8) by atan(x) = pi/2 - atan(1/x) and pi/4 + atan((x - 1) / (x + 1)), each
division kept as a pair. asin: above 1/2 by asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)).
"""

import math

from tilework.targets.llvm.math import coefficients as c
from tilework.targets.llvm.math.constants import ASIN, ATAN, HALF_PI, PI
from tilework.targets.llvm.math.lanes import (
    Lanes,
    Pair,
    bits,
    copysign,
    exact,
    fast_two_sum,
    fma,
    into_range,
    pair_where,
    polynomial,
    polynomial_paired,
    two_sum,
    where,
)
from tilework.targets.llvm.types import f32, f64

TAN_EIGHTH = math.tan(math.pi / 8)
STRAIGHT = {f32: 2.0**-14, f64: 2.0**-60}  # below it the angle is the quotient


def atan_quotient(above: Lanes, below: Lanes) -> Pair:
    """atan(above / below) in [0, pi/2] as a pair, for non-negative finite arguments, not both 0."""
    swap = above > below
    small, big = where(swap, below, above), where(swap, above, below)
    diagonal = small > big * TAN_EIGHTH
    zero = small.const(0.0)
    minus, plus = two_sum(small, -big), two_sum(big, small)
    t, low = pair_where(diagonal, minus, exact(small)) / pair_where(diagonal, plus, exact(big))
    z = t * t
    rest = fma(t * z, polynomial(z, ATAN[t.scalar]), low - low * z)
    pi, half_pi = PI[t.scalar], HALF_PI[t.scalar]
    base, base_low = where(diagonal, pi[0] / 4, zero), where(diagonal, pi[1] / 4, zero)
    high, error = fast_two_sum(base, t)
    high, low = fast_two_sum(high, error + base_low + rest)
    turned, turned_low = fast_two_sum(zero + half_pi[0], -high)
    return Pair(where(swap, turned, high), where(swap, turned_low + (half_pi[1] - low), low))


def atan_single(x: Lanes) -> Lanes:
    """One polynomial up to 1, and beyond of the inverse."""
    a = abs(x)
    swap = a > 1.0
    t = where(swap, 1.0 / a, a)
    z = t * t
    rest = t * z * polynomial_paired(z, c.ATAN1F)
    high, low = fast_two_sum(t.const(HALF_PI[f32][0]), -t)
    return copysign(where(swap, high + (low + (HALF_PI[f32][1] - rest)), t + rest), x)


def atan(x: Lanes) -> Lanes:
    if x.scalar is f32:
        return atan_single(x)
    a = abs(x)
    huge = a > 2.0**60
    high, low = atan_quotient(where(huge, 2.0**60, a), a.const(1.0))
    result = where(huge, HALF_PI[x.scalar][0], high + low)
    return where(x.is_nan() | x.equal(0.0), x, copysign(result, x))


def atan2(y: Lanes, x: Lanes) -> Lanes:
    a, b = abs(y), abs(x)
    infinite = a.equal(math.inf) | b.equal(math.inf)
    one = a.const(1.0)
    a, b = (where(infinite, where(side.equal(math.inf), one, 0.0), side) for side in (a, b))
    plain = a / b
    big = where(a > b, a, b)
    factor, _ = into_range(big)
    a, b = a * factor, b * factor
    nothing = a.equal(0.0) & b.equal(0.0)
    high, low = atan_quotient(a, where(nothing, 1.0, b))
    left = bits(x) < 0
    pi, pi_low = PI[x.scalar]
    turned, turned_low = fast_two_sum(high.const(pi), -high)
    result = where(left, turned + (turned_low + (pi_low - low)), high + low)
    # the angle is the quotient; a pair would underflow
    result = where(~left & (plain < STRAIGHT[x.scalar]) & ~nothing, plain, result)
    return where(x.is_nan() | y.is_nan(), x + y, copysign(result, y))


def asin_parts(x: Lanes) -> tuple[Lanes, Pair, Lanes]:
    """(near, (s, s_low), s^3 R): asin(|x|) = s + ..., or pi/2 - 2 (s + ...) where `near` 1."""
    a = abs(x)
    near = a > 0.5
    half = fma(a, -0.5, 0.5)  # exact above 1/2
    root = exact(half).root()
    z = where(near, half, a * a)
    s, s_low = where(near, root.hi, a), where(near, root.lo, 0.0)
    return near, Pair(s, s_low), s * z * polynomial(z, ASIN[x.scalar])


def asin(x: Lanes) -> Lanes:
    near, (s, s_low), rest = asin_parts(x)
    half_pi = HALF_PI[x.scalar]
    high, low = fast_two_sum(x.const(half_pi[0]), -2.0 * s)
    turned = high + (low + (half_pi[1] - 2.0 * (s_low + rest)))
    result = copysign(where(near, turned, s + rest), x)
    return where(abs(x) <= 1.0, where(x.equal(0.0), x, result), math.nan)


def acos(x: Lanes) -> Lanes:
    near, (s, s_low), rest = asin_parts(x)
    pi, half_pi = PI[x.scalar], HALF_PI[x.scalar]
    double, double_low = 2.0 * s, 2.0 * (s_low + rest)
    high, low = fast_two_sum(x.const(pi[0]), -double)
    left = high + (low + (pi[1] - double_low))
    signed = copysign(s, x)
    middle, middle_low = fast_two_sum(x.const(half_pi[0]), -signed)
    inner = middle + (middle_low + (half_pi[1] - copysign(rest, x)))
    result = where(near, where(x < 0.0, left, double + double_low), inner)
    return where(abs(x) <= 1.0, result, math.nan)
