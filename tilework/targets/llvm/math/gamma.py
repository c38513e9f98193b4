"""Gamma and its logarithm, f64: Stirling's series above 10, reached by multiplying x (x+1) ... as a pair.

    gamma(x) = e^(S(y)) / (x (x+1) ... (y-1)),   S(y) = (y - 1/2) log y - y + log(2 pi)/2 + 1/(12y) - 1/(360y^3) ...

S is carried as a pair, since e^S multiplies its absolute error. Below 1/2 by reflection. lgamma has polynomials of
its own around its zeros at 1 and 2, and around each zero z between negative integers, beside the pole -k,

    lgamma(x) = s H(s) - log(1 + s),   s = (x - z) / (z + k)

with z tabulated in three parts, so that the error is relative there too. Below -17 no float is near a zero.
"""

import math

from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.math import coefficients as c
from tilework.targets.llvm.math import zeros
from tilework.targets.llvm.math.exponential import exp_parts
from tilework.targets.llvm.math.lanes import (
    Lanes,
    Pair,
    clamp,
    constant_pair,
    elementwise_calls,
    exact,
    fast_two_sum,
    floor,
    fma,
    less_parts,
    narrow,
    pair_where,
    polynomial,
    polynomial_led,
    repeat,
    rint,
    scale,
    to_int,
    two_product,
    two_sum,
    where,
    widen,
)
from tilework.targets.llvm.math.logarithm import log, log1p_pair, log_pair
from tilework.targets.llvm.math.trigonometric import cosine, cosine_pair, reduce_half_turns, sine, sine_pair
from tilework.targets.llvm.types import f32, f64, i64
from tilework.targets.llvm.values import Value, constant

STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400, 43867 / 244188)
SHIFTS = 10  # Stirling's series is used above this


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


def lgamma_single(x: Lanes) -> Lanes:
    """log |gamma(x)| of f32 in f64, whose other half of the bits makes up for what cancels."""
    narrow_x, x = x, widen(x)
    reflect = x < 0.5
    y = where(reflect, 1.0 - x, x)

    def shift(y: Lanes, product: Lanes) -> list[Lanes]:
        low = y < float(SHIFTS)
        return [where(low, y + 1.0, y), where(low, product * y, product)]

    y, product = repeat(SHIFTS, [y, x.const(1.0)], shift)
    inverse = 1.0 / y
    tail = inverse * polynomial(inverse * inverse, STIRLING)
    value = fma(y - 0.5, log(y), (c.HALF_LOG_2PI[0] + tail) - y)
    r, low, n = reduce_half_turns(x)
    sized = abs(where((n & 1).differs(0), cosine(r, low), sine(r, low)))
    logarithm = log(where(reflect, product * math.pi / sized, product))
    one, two = x - 1.0, x - 2.0
    right = where(
        (x >= 0.7) & (x < 1.35),
        one * polynomial(one, c.LGAMMA1),
        where((x >= 1.35) & (x < 2.6), two * polynomial(two, c.LGAMMA2), value - logarithm),
    )
    result = narrow(where(reflect, logarithm - value, right + 0.0))
    infinite = (narrow_x <= 0.0) & floor(narrow_x).equal(narrow_x) | abs(narrow_x).equal(math.inf)
    return where(infinite, math.inf, where(narrow_x.is_nan(), narrow_x, result))


def lgamma(x: Lanes) -> Lanes:
    """log |gamma(x)|."""
    if x.scalar is f32:
        return lgamma_single(x)
    reflect = x < 0.5
    y, product = shifted(reflected(x, 1e306))
    value = stirling(y) - log_of(product)
    near_one, near_two = (x >= 0.7) & (x < 1.35), (x >= 1.35) & (x < 2.6)
    one, two = x - 1.0, x - 2.0
    right = where(
        near_one,
        times(one, polynomial_led(one, c.LGAMMA1_LEAD, c.LGAMMA1[2:])),
        where(near_two, times(two, polynomial_led(two, c.LGAMMA2_LEAD, c.LGAMMA2[2:])), value.hi + value.lo),
    )
    sine_pair = sine_of_pi(x)
    size = absolute(sine_pair)
    log_pi = log_of(constant_pair(x, c.PI))
    mirrored = log_pi - log_of(size) - value
    small = abs(x) < 2.0**-60
    tiny = log_pair(where(small & x.differs(0.0), abs(x), 1.0))
    left = where(small, -(tiny.hi + tiny.lo), mirrored.hi + mirrored.lo)
    pole = (x <= 0.0) & floor(x).equal(x)
    result = where(pole, math.inf, where(reflect, left, right + 0.0))  # the zeros at 1 and 2 are +0
    result = where(x > 2.5e305, stirling_huge(x), result)
    result = around_zeros(x, result)
    return where(x.is_nan(), x, where(abs(x).equal(math.inf), math.inf, result))


def times(t: Lanes, p: Pair) -> Lanes:
    """t p, rounded once."""
    return fma(t, p.hi, t * p.lo)


def around_zeros(x: Lanes, result: Lanes) -> Lanes:
    """`result`, replaced where a negative x is near a zero; the lanes are looked at one by one if any is in reach."""
    b = x.b
    reach = (x > -17.5) & (x < -2.3) & (abs(result) < 1.0)

    def slow() -> list[Value]:
        return [elementwise_calls(b, "tilework.lgamma_zero", f64, [x.v, result.v], zero_body)]

    return Lanes(b, b.if_else(b.any_lane(reach.v), slow, lambda: [result.v], weights=(1, 1000))[0])


LONG, SHORT = 5 + 20, 5 + 7  # numbers of the first three rows of `zeros.LGAMMA_ZEROS`, and of the others


def zero_body(b: Builder, args: tuple[Value, ...]) -> Value:
    """lgamma of one x if |s| <= 1/2 (or x is between -2.9 and -2.3), otherwise the second argument."""
    x, otherwise = (Lanes(b, arg) for arg in args)
    table = b.module.table("tilework.lgamma_zeros", f64, zeros.LGAMMA_ZEROS, align=8)
    pole = where(x > -2.605, -2.0, clamp(rint(x), -17.0, -3.0))
    below = to_int(where(x < pole, 1.0, x.const(0.0)))
    place = to_int(pole * -2.0 - 5.0) + below
    place = where(place < 0, 0, place)  # the table starts below -2; x may be anything
    is_long = place < 3
    start = where(is_long, place * LONG, place * SHORT + 3 * (LONG - SHORT))
    row = b.gep(table, start.v, f64)
    *z, lead, lead_low = (Lanes(b, b.load(f64, b.gep(row, 8 * field), align=8)) for field in range(5))
    s = less_parts(x, z) / two_sum(z[0] - pole, z[1])
    count = where(is_long, LONG - 6, place.const(SHORT - 6))
    last = b.gep(row, (count + 5).v, f64)

    def horner(index: Value, values: tuple[Value, ...]) -> list[Value]:
        address = b.gep(last, b.sub(constant(i64, -1), index), f64)
        return [fma(Lanes(b, values[0]), s.hi, Lanes(b, b.load(f64, address, align=8))).v]

    (total,) = b.rounds(constant(i64, 0), count.v, [b.load(f64, last, align=8)], horner)
    smooth = Pair(lead, lead_low) + two_product(s.hi, Lanes(b, total))
    high, low = smooth * s - log1p_pair(*s)
    is_near = where(x > -3.0, (x > -2.9) & (x < -2.3), abs(s.hi) <= 0.5)
    return where(is_near, high + low, otherwise).v


def stirling_huge(x: Lanes) -> Lanes:
    """x (log x - 1), infinite beyond 2.55e305."""
    high, low = log_pair(x)
    return x * ((high - 1.0) + low)


def log_of(a: Pair) -> Pair:
    """log of a positive pair."""
    logarithm = log_pair(a.hi)
    return fast_two_sum(logarithm.hi, logarithm.lo + a.lo / a.hi)


def absolute(a: Pair) -> Pair:
    return pair_where(a.hi < 0.0, -a, a)
