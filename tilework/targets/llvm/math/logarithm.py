"""Logarithms: x = 2^k * m with m in [1/sqrt(2), sqrt(2)], log m = 2 atanh(s) with s = f / (2 + f), f = m - 1.

For f64 the sum k log 2 + 2s + 2s^3/3 is carried as a pair and only the rest is a plain polynomial, which gives the
logarithm to about 2^-64. That is what `pow` needs: an error in log x is multiplied by y log x, up to 745.
"""

import math

from tilework.targets.llvm.math import coefficients as c
from tilework.targets.llvm.math.constants import LN2, LOG, TWO_THIRDS
from tilework.targets.llvm.math.exponential import exp_parts
from tilework.targets.llvm.math.lanes import (
    BIAS,
    FRACTION,
    Lanes,
    Pair,
    bits,
    clamp,
    constant_pair,
    copysign,
    exact,
    fast_two_sum,
    fma,
    from_bits,
    polynomial,
    polynomial_paired,
    power_of_two,
    reciprocal,
    scale,
    to_float,
    trunc,
    two_product,
    two_sum,
    where,
)
from tilework.targets.llvm.types import Type, f32, f64

ROOT_HALF_BITS = {f32: 0x3F3504F3, f64: 0x3FE6A09E667F3BCD}
SMALLEST = {f32: 2.0**-126, f64: 2.0**-1022}
HIDES_ONE = 2.0**25  # 1 + x is x in f32


def decompose(x: Lanes) -> tuple[Lanes, Lanes]:
    """(f, k) with x = (1 + f) * 2^k and 1 + f in [1/sqrt(2), sqrt(2)], for a positive finite x; k is an integer."""
    scalar: Type = x.scalar
    fraction, root = FRACTION[scalar], ROOT_HALF_BITS[scalar]
    tiny = x < SMALLEST[scalar]
    pattern = bits(where(tiny, x * 2.0**fraction, x)) - root
    k = pattern >> fraction
    m = from_bits((pattern & ((1 << fraction) - 1)) + root)
    return m - 1.0, where(tiny, k - fraction, k)


def edges(x: Lanes, result: Lanes) -> Lanes:
    """Return -inf at 0, NaN below it, and infinities and NaNs unchanged."""
    special = where(x.equal(0.0), -math.inf, where(x < 0.0, math.nan, x))
    return where((x > 0.0) & (x < math.inf), result, special)


def plus_log_two_f32(k: Lanes, f: Lanes) -> Lanes:
    """k log 2 + log(1 + f) for f in [1/sqrt(2) - 1, sqrt(2) - 1]."""
    square = f * f
    rest = fma(f * square, polynomial_paired(f, c.LOGF), fma(square, -0.5, k * c.LN2_F[1]))
    return fma(k, c.LN2_F[0], f + rest)


def log(x: Lanes) -> Lanes:
    if x.scalar is f32:
        f, whole = decompose(x)
        return edges(x, plus_log_two_f32(to_float(whole), f))
    high, low = log_pair(x)
    return edges(x, high + low)


def log2(x: Lanes) -> Lanes:
    f, whole = decompose(x)
    if x.scalar is f32:
        rest = f * fma(f, polynomial_paired(f, c.LOG2F), c.LOG2E_F[1])
        return edges(x, to_float(whole) + fma(f, c.LOG2E_F[0], rest))
    scaled = log_reduced(f, x.const(0.0)) * constant_pair(x, c.LOG2E)
    high, low = fast_two_sum(to_float(whole), scaled.hi)
    return edges(x, high + (low + scaled.lo))


def log10(x: Lanes) -> Lanes:
    if x.scalar is f32:
        f, whole = decompose(x)
        k = to_float(whole)
        rest = fma(k, c.LOG10_2_F[1], f * fma(f, polynomial_paired(f, c.LOG10F), c.LOG10E_F[1]))
        return edges(x, fma(k, c.LOG10_2_F[0], fma(f, c.LOG10E_F[0], rest)))
    high, low = log_pair(x) * constant_pair(x, c.LOG10E)
    return edges(x, high + low)


def log_pair(x: Lanes) -> Pair:
    """log x of a positive finite x as a pair."""
    f, whole = decompose(x)
    return plus_log_two(to_float(whole), log_reduced(f, x.const(0.0)))


def plus_log_two(k: Lanes, part: Pair) -> Pair:
    """k log 2 + part."""
    first, second = LN2[k.scalar]
    high, low = fast_two_sum(k * first, part.hi)  # the product is exact
    return fast_two_sum(high, low + fma(k, second, part.lo))


def log_reduced(f: Lanes, tail: Lanes) -> Pair:
    """log(1 + f + tail) for 1 + f in [1/sqrt(2), sqrt(2)]."""
    below, below_low = fast_two_sum(f.const(2.0), f)
    inverse = reciprocal(below)
    s = f * inverse
    s_low = (fma(-s, below, f) + (tail - s * (below_low + tail))) * inverse
    z, z_low = two_product(s, s)
    z_low = fma(s + s, s_low, z_low)
    cube, cube_low = two_product(z, s)
    cube_low = fma(z, s_low, fma(z_low, s, cube_low))
    factor, factor_low = TWO_THIRDS[f.scalar]
    third, third_low = two_product(cube, factor)
    third_low = fma(cube, factor_low, fma(cube_low, factor, third_low))
    high, low = fast_two_sum(s + s, third)
    return fast_two_sum(high, low + (s_low + s_low) + fma(cube * z, polynomial(z, LOG[f.scalar]), third_low))


def log1p_pair(t: Lanes, tail: Lanes, extra: Lanes | None = None) -> Pair:
    """log(1 + t + tail), relative accuracy also for small t; plus `extra` times log 2."""
    one, one_low = two_sum(t, 1.0)
    one_low = one_low + tail
    f, whole = decompose(one)
    most = BIAS[t.scalar] - 23
    small = -where(whole > most, whole.const(most), whole)
    f, f_low = two_sum(f, one_low * power_of_two(small))
    k = to_float(whole)
    return plus_log_two(k if extra is None else k + extra, log_reduced(f, f_low))


def log1p(x: Lanes) -> Lanes:
    if x.scalar is f32:
        f, whole = decompose(x + 1.0)
        small = power_of_two(-whole)  # f has one rounding: that of 1 + x only chose k
        result = plus_log_two_f32(to_float(whole), where(x > HIDES_ONE, f, fma(x, small, small - 1.0)))
    else:
        high, low = log1p_pair(x, x.const(0.0))
        result = high + low
    special = where(x.equal(-1.0), -math.inf, where(x < -1.0, math.nan, x))
    return where((x > -1.0) & (x < math.inf) & x.differs(0.0), result, special)


BIG = 2.0**28
STRAIGHT = {f32: 2.0**-13, f64: 0.0}  # asinh x is x, where the pairs of f32 would underflow


def asinh(x: Lanes) -> Lanes:
    a = abs(x)
    huge = a > BIG
    y = where(huge, 1.0, a)
    square = two_product(y, y)
    high, low = two_sum(square.hi, 1.0)
    root = Pair(high, low + square.lo).root()
    below = root + exact(y.const(1.0))
    t = square / below + exact(y)
    return where((a < math.inf) & (a > STRAIGHT[x.scalar]), copysign(grown_log(huge, a, t, 0.25), x), x)


def grown_log(huge: Lanes, a: Lanes, t: Pair, sign: float) -> Lanes:
    """log(1 + t), and log(2a) where `a` is huge."""
    high = where(huge, a, t.hi)
    low = where(huge, sign / a - 1.0, t.lo)
    result = log1p_pair(high, low, where(huge, 1.0, a.const(0.0)))
    return result.hi + result.lo


def acosh(x: Lanes) -> Lanes:
    huge = x > BIG
    y = where(huge, 2.0, x)
    d = y - 1.0
    root = (two_product(d, d) + exact(d + d)).root()
    t = root + exact(d)
    result = where(x.equal(1.0), 0.0, grown_log(huge, x, t, -0.25))
    return where((x >= 1.0) & (x < math.inf), result, where(x < 1.0, math.nan, x))


def atanh(x: Lanes) -> Lanes:
    a = abs(x)
    y = where(a < 1.0, a, 0.5)
    below = fast_two_sum(y.const(1.0), -y)
    t = exact(y + y) / below
    high, low = log1p_pair(*t)
    result = copysign(0.5 * (high + low), x)
    edge = where(a.equal(1.0), copysign(x.const(math.inf), x), math.nan)
    return where((a < 1.0) & x.differs(0.0), result, where(x.equal(0.0), x, edge))


# the logarithm of the result, beyond which it is infinite or 0
LONGEST = {f32: 120.0, f64: 800.0}


def pow(x: Lanes, y: Lanes) -> Lanes:
    """x^y by e^(y log |x|), with the special cases of C."""
    a, longest = abs(x), LONGEST[x.scalar]
    high, low = log_pair(a)
    high = where(a.equal(0.0), -math.inf, where(a < math.inf, high, a))
    low = where((a > 0.0) & (a < math.inf), low, 0.0)
    product = y * high
    rest = fma(y, high, -product) + y * low
    rest = where(abs(product) < longest, rest, 0.0)
    big, tail, n = exp_parts(clamp(product, -longest, longest), rest)
    return power_edges(x, y, scale(big + tail, clamp_whole(n)))


def clamp_whole(n: Lanes) -> Lanes:
    """Keep n where `scale` can use it."""
    most = 2 * BIAS[f32 if n.scalar.bits == 32 else f64]
    low, high = n.const(-most), n.const(most)
    return where(n < low, low, where(n > high, high, n))


def power_edges(x: Lanes, y: Lanes, result: Lanes) -> Lanes:
    """The sign for negative x, and what C says about 0, 1, infinity and NaN."""
    whole = trunc(y).equal(y)
    odd = whole & trunc(y * 0.5).differs(y * 0.5) & (abs(y) < 2.0 ** (FRACTION[y.scalar] + 1))
    negative = bits(x) < 0
    signed = where(negative & odd, -result, result)
    signed = where((x < 0.0) & ~whole & (abs(x) < math.inf), math.nan, signed)
    signed = where(x.is_nan() | y.is_nan(), x + y, signed)
    one = x.equal(1.0) | y.equal(0.0) | (abs(x).equal(1.0) & abs(y).equal(math.inf))
    return where(one, 1.0, signed)
