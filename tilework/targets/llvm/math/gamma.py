"""Gamma and its logarithm in f64; those of f32 are computed by way of f64.

    gamma(x) = e^(S(y)) / (x (x+1) ... (y-1)),   S(y) = (y - 1/2) log y - y + log(2 pi)/2 + 1/(12y) - 1/(360y^3) ...

with Stirling's series S at y >= 10 as a pair, since e^S multiplies its absolute error. lgamma needs no pairs: it is
S(x) from 10 on, and below that, with 2 + t the x - k that is nearest to 2,

    lgamma(x) = log((x-1) ... (x-k)) + (1 - Euler) t + sum of (-1)^j (zeta(j) - 1) t^j / j

Both are reflected below 1/2. tgamma is within 2 units in the last place, lgamma within 8: of its value, and for
negative x of the largest of |lgamma(x)|, lgamma(1 - x) and 1, since it has zeros between the negative integers. f32
values are within one unit of the same.
"""

import math
from functools import cache

from tilework.targets.llvm.math import coefficients as c
from tilework.targets.llvm.math.exponential import exp_parts
from tilework.targets.llvm.math.lanes import (
    Lanes,
    Pair,
    constant_pair,
    exact,
    fast_two_sum,
    floor,
    fma,
    pair_where,
    polynomial,
    repeat,
    scale,
    two_sum,
    where,
)
from tilework.targets.llvm.math.logarithm import log, log_pair
from tilework.targets.llvm.math.trigonometric import cosine_pair, reduce_half_turns, sine_pair, sinpi

STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400, 43867 / 244188)
SHIFTS = 10  # Stirling's series is used above this
ONE_LESS_EULER = 0.42278433509846713
LOG_PI = 1.1447298858494002


def zeta_less_one(j: int) -> float:
    """zeta(j) - 1 in integer arithmetic: fourteen terms, and the Euler-Maclaurin formula for the others."""
    unit, last = 1 << 120, 16
    total = sum(unit // n**j for n in range(2, last))
    power = unit // last**j
    total += power * last // (j - 1) + power // 2
    for k, bernoulli in enumerate(((1, 12), (-1, 720), (1, 30240), (-1, 1209600), (1, 47900160))):
        rising = math.prod(range(j, j + 2 * k + 1))
        total += power * rising * bernoulli[0] // (bernoulli[1] * last ** (2 * k + 1))
    return total / unit


@cache
def around_two() -> list[float]:
    """The coefficients of lgamma(2 + t) / t, |t| <= 1/2."""
    return [ONE_LESS_EULER, *((-1) ** j * zeta_less_one(j) / j for j in range(2, 28))]


def stirling(y: Pair) -> Pair:
    """log gamma(y) for y >= 10."""
    logarithm = log_pair(y.hi)
    inverse = 1.0 / y.hi
    logarithm = Pair(logarithm.hi, logarithm.lo + y.lo * inverse)
    less = two_sum(y.hi, -0.5)
    less = Pair(less.hi, less.lo + y.lo)
    total = less * logarithm - y
    total = total + constant_pair(y.hi, c.HALF_LOG_2PI)
    tail = inverse * polynomial(inverse * inverse, STIRLING)
    return fast_two_sum(total.hi, total.lo + tail)


def shifted(x: Pair) -> tuple[Pair, Pair]:
    """(y, p): y = x + k >= 10 and p = x (x+1) ... (y-1)."""
    one, zero = x.hi.const(1.0), x.hi.const(0.0)

    def shift(y: Lanes, y_low: Lanes, product: Lanes, product_low: Lanes) -> list[Lanes]:
        low = y < float(SHIFTS)
        factor = Pair(where(low, y, one), where(low, y_low, zero))
        high, error = two_sum(y, where(low, one, zero))
        return [high, error + y_low, *Pair(product, product_low) * factor]

    y, y_low, product, product_low = repeat(SHIFTS, [x.hi, x.lo, one, zero], shift)
    return Pair(y, y_low), Pair(product, product_low)


def reflected(x: Lanes, most: float) -> Pair:
    """x, or 1 - x below 1/2; at most `most`."""
    argument = pair_where(x < 0.5, two_sum(x.const(1.0), -x), exact(x))
    return pair_where(argument.hi < most, argument, exact(x.const(most)))


def tgamma(x: Lanes) -> Lanes:
    reflect = x < 0.5
    y, product = shifted(reflected(x, 185.0))
    total = stirling(y)
    big, big_low, n = exp_parts(total.hi, total.lo)
    value = Pair(big, big_low) / product
    right = scale(value.hi + value.lo, n)
    mirrored = constant_pair(x, c.PI) / (sine_of_pi(x) * value)
    left = scale(mirrored.hi + mirrored.lo, -n)
    result = where(reflect, left, right)
    whole = floor(x).equal(x)
    result = where((x < 0.0) & whole, math.nan, result)
    result = where(abs(x) < 2.0**-60, 1.0 / x, result)
    result = where((x < -184.5) & ~whole, where(even_floor(x), x.const(0.0), -x.const(0.0)), result)
    result = where(x > 172.0, math.inf, result)
    return where(x.is_nan(), x, where(x.equal(-math.inf), math.nan, result))


def even_floor(x: Lanes) -> Lanes:
    half = floor(x) * 0.5
    return floor(half).equal(half)


def sine_of_pi(x: Lanes) -> Pair:
    r, tail, n = reduce_half_turns(x)
    odd, minus = (n & 1).differs(0), (n & 2).differs(0)
    found = pair_where(odd, cosine_pair(r, tail), sine_pair(r, tail))
    return pair_where(minus, -found, found)


def lgamma(x: Lanes) -> Lanes:
    """log |gamma(x)|."""
    reflect = x < 0.5
    y = where(reflect, 1.0 - x, x)

    def shift(y: Lanes, product: Lanes) -> list[Lanes]:
        high = (y >= 2.5) & (y < float(SHIFTS))
        less = where(high, y - 1.0, y)
        return [less, where(high, product * less, product)]

    shifted_y, product = repeat(SHIFTS - 2, [y, y.const(1.0)], shift)
    below = y < 1.5
    t = shifted_y - where(below, 1.0, y.const(2.0))
    logarithm = log(where(below, y, product))
    near = fma(t, polynomial(t, around_two()), where(below, -logarithm, logarithm))
    inverse = 1.0 / y
    tail = fma(inverse, polynomial(inverse * inverse, STIRLING), c.HALF_LOG_2PI[0] - 0.5)
    value = where(y < float(SHIFTS), near, fma(y - 0.5, log(y) - 1.0, tail))
    mirrored = where(abs(x) < 2.0**-60, -log(abs(x)), LOG_PI - log(abs(sinpi(x))) - value)
    infinite = (x <= 0.0) & floor(x).equal(x) | abs(x).equal(math.inf)
    return where(infinite, math.inf, where(reflect, mirrored, value))
