"""Gamma and its logarithm, f64: Stirling's series above 10, reached by multiplying x (x+1) ... as a pair.

    gamma(x) = e^(S(y)) / (x (x+1) ... (y-1)),   S(y) = (y - 1/2) log y - y + log(2 pi)/2 + 1/(12y) - 1/(360y^3) ...

S is carried as a pair, since e^S multiplies its absolute error. Below 1/2 by reflection. lgamma has polynomials of
its own around its zeros at 1 and 2; around the zeros between negative integers its error is absolute, not relative.
"""

import math

from tilework.backends.llvm.math import coefficients as c
from tilework.backends.llvm.math.exponential import exp_parts
from tilework.backends.llvm.math.lanes import (
    Lanes,
    Pair,
    constant_pair,
    fast_two_sum,
    floor,
    pair_plus,
    pair_quotient,
    pair_times,
    polynomial,
    repeat,
    scale,
    two_sum,
    where,
)
from tilework.backends.llvm.math.logarithm import log_pair
from tilework.backends.llvm.math.trigonometric import cosine_pair, reduce_half_turns, sine_pair

STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400, 43867 / 244188)
SHIFTS = 10  # Stirling's series is used above this


def stirling(y: Pair) -> Pair:
    """log gamma(y) for y >= 10."""
    logarithm = log_pair(y.hi)
    inverse = 1.0 / y.hi
    logarithm = Pair(logarithm.hi, logarithm.lo + y.lo * inverse)
    less = two_sum(y.hi, -0.5)
    less = Pair(less.hi, less.lo + y.lo)
    total = pair_plus(pair_times(less, logarithm), Pair(-y.hi, -y.lo))
    total = pair_plus(total, constant_pair(y.hi, c.HALF_LOG_2PI))
    tail = inverse * polynomial(inverse * inverse, STIRLING)
    return fast_two_sum(total.hi, total.lo + tail)


def shifted(x: Pair) -> tuple[Pair, Pair]:
    """(y, p): y = x + k >= 10 and p = x (x+1) ... (y-1)."""
    one, zero = x.hi.const(1.0), x.hi.const(0.0)

    def shift(y: Lanes, y_low: Lanes, product: Lanes, product_low: Lanes) -> list[Lanes]:
        low = y < float(SHIFTS)
        factor = Pair(where(low, y, one), where(low, y_low, zero))
        high, error = two_sum(y, where(low, one, zero))
        return [high, error + y_low, *pair_times(Pair(product, product_low), factor)]

    y, y_low, product, product_low = repeat(SHIFTS, [x.hi, x.lo, one, zero], shift)
    return Pair(y, y_low), Pair(product, product_low)


def tgamma(x: Lanes) -> Lanes:
    reflect = x < 0.5
    high, low = two_sum(x.const(1.0), -x)
    zero = x.const(0.0)
    argument = Pair(where(reflect, high, x), where(reflect, low, zero))
    bounded = argument.hi < 185.0
    argument = Pair(where(bounded, argument.hi, 185.0), where(bounded, argument.lo, zero))
    y, product = shifted(argument)
    total = stirling(y)
    big, big_low, n = exp_parts(total.hi, total.lo)
    value = pair_quotient(Pair(big, big_low), product)
    right = scale(value.hi + value.lo, n)
    mirrored = pair_quotient(constant_pair(x, c.PI), pair_times(sine_of_pi(x), value))
    left = scale(mirrored.hi + mirrored.lo, -n)
    result = where(reflect, left, right)
    whole = floor(x).equal(x)
    result = where((x < 0.0) & whole, math.nan, result)
    result = where(x.equal(0.0), 1.0 / x, result)
    result = where((x < -184.5) & ~whole, where(even_floor(x), x.const(0.0), -x.const(0.0)), result)
    result = where(x > 172.0, math.inf, result)
    return where(x.is_nan(), x, where(x.equal(-math.inf), math.nan, result))


def even_floor(x: Lanes) -> Lanes:
    half = floor(x) * 0.5
    return floor(half).equal(half)


def sine_of_pi(x: Lanes) -> Pair:
    r, tail, n = reduce_half_turns(x)
    odd, minus = (n & 1).differs(0), (n & 2).differs(0)
    sine, cosine = sine_pair(r, tail), cosine_pair(r, tail)
    high, low = where(odd, cosine.hi, sine.hi), where(odd, cosine.lo, sine.lo)
    return Pair(where(minus, -high, high), where(minus, -low, low))


def lgamma(x: Lanes) -> Lanes:
    """log |gamma(x)|."""
    reflect = x < 0.5
    high, low = two_sum(x.const(1.0), -x)
    zero = x.const(0.0)
    argument = Pair(where(reflect, high, x), where(reflect, low, zero))
    finite = argument.hi < 1e306
    argument = Pair(where(finite, argument.hi, 1e306), where(finite, argument.lo, zero))
    y, product = shifted(argument)
    value = pair_plus(stirling(y), negative(log_of(product)))
    near_one, near_two = (x >= 0.7) & (x < 1.35), (x >= 1.35) & (x < 2.6)
    one, two = x - 1.0, x - 2.0
    right = where(
        near_one,
        one * polynomial(one, c.LGAMMA1),
        where(near_two, two * polynomial(two, c.LGAMMA2), value.hi + value.lo),
    )
    sine_pair = sine_of_pi(x)
    size = absolute(sine_pair)
    log_pi = log_of(constant_pair(x, c.PI))
    mirrored = pair_plus(pair_plus(log_pi, negative(log_of(size))), negative(value))
    small = abs(x) < 2.0**-60
    tiny = log_pair(where(small & x.differs(0.0), abs(x), 1.0))
    left = where(small, -(tiny.hi + tiny.lo), mirrored.hi + mirrored.lo)
    pole = (x <= 0.0) & floor(x).equal(x)
    result = where(pole, math.inf, where(reflect, left, right + 0.0))  # the zeros at 1 and 2 are +0
    result = where(x > 2.5e305, stirling_huge(x), result)
    return where(x.is_nan(), x, where(abs(x).equal(math.inf), math.inf, result))


def stirling_huge(x: Lanes) -> Lanes:
    """x (log x - 1), infinite beyond 2.55e305."""
    high, low = log_pair(x)
    return x * ((high - 1.0) + low)


def log_of(a: Pair) -> Pair:
    """log of a positive pair."""
    logarithm = log_pair(a.hi)
    return fast_two_sum(logarithm.hi, logarithm.lo + a.lo / a.hi)


def negative(a: Pair) -> Pair:
    return Pair(-a.hi, -a.lo)


def absolute(a: Pair) -> Pair:
    minus = a.hi < 0.0
    return Pair(where(minus, -a.hi, a.hi), where(minus, -a.lo, a.lo))
