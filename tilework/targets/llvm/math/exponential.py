"""Exponentials: e^x = 2^n * e^r with n = rint(x / log 2) and |r| <= log(2) / 2, then a polynomial in r.

n is read from the low bits of x / log 2 + 1.5 * 2^23 (or 2^52), which is a float addition and never a conversion,
so NaN passes through harmlessly. 2^n is made in the exponent field, moved away from the end of the range that x is
near; a last multiplication by a power of two moves it back and makes overflow and subnormals right.
"""

from tilework.targets.llvm.builder import SCALED_BITS
from tilework.targets.llvm.math import coefficients as c
from tilework.targets.llvm.math.constants import EXP, LN2, SINH
from tilework.targets.llvm.math.lanes import (
    BIAS,
    FRACTION,
    Lanes,
    Operand,
    Pair,
    bits,
    clamp,
    copysign,
    fast_two_sum,
    fma,
    from_bits,
    polynomial,
    polynomial_paired,
    power_of_two,
    scale,
    smaller,
    two_product,
    two_sum,
    where,
)
from tilework.targets.llvm.types import f32, f64

MAGIC = {f32: 1.5 * 2.0**23, f64: 1.5 * 2.0**52}
RANGE = {f32: (-104.0, 89.0), f64: (-746.0, 710.0)}


def nearest(x: Lanes, factor: Operand) -> tuple[Lanes, Lanes]:
    """(n, n as an integer in the low bits) for n = rint(x * factor)."""
    magic = MAGIC[x.scalar]
    shifted = fma(x, factor, magic)
    dropped = x.scalar.bits - FRACTION[x.scalar] + 1  # the exponent of the magic number; the sign is kept
    return shifted - magic, (bits(shifted) << dropped) >> dropped


def shifted_nearest(x: Lanes, factor: Operand) -> tuple[Lanes, Lanes]:
    """(n, n in the exponent field) for n = rint(x * factor)."""
    magic = MAGIC[x.scalar]
    shifted = fma(x, factor, magic)
    return shifted - magic, bits(shifted) << FRACTION[x.scalar]


def grow(a: Lanes, n: Lanes, exponent: Lanes, x: Lanes, least: float) -> Lanes:
    """a * 2^n for a near 1, n also being in an exponent field; x has the sign of n, and from `least` down the result is
    0.

    That 0 is made without a multiplication that underflows, for which x86 takes a hundred times as long: masked softmax
    has an exp(-inf) for every element that is off.
    """
    scalar = a.scalar
    if a.b.module.scales and a.v.type.count * scalar.bits in SCALED_BITS:
        return Lanes(a.b, a.b.scaled(a.v, n.v, (~(x <= least)).v))
    away = 64 if scalar is f32 else 128
    negative = x < 0.0
    fraction = FRACTION[scalar]
    move = where(negative, (BIAS[scalar] + away) << fraction, exponent.const((BIAS[scalar] - 1) << fraction))
    back = where(x <= least, 0.0, where(negative, 2.0**-away, a.const(2.0)))
    return (a * from_bits(exponent + move)) * back


def exp(x: Lanes) -> Lanes:
    least, most = RANGE[x.scalar]
    x = clamp(x, least, most)
    n, exponent = shifted_nearest(x, c.LOG2E[0])
    if x.scalar is f32:
        r = fma(n, -c.LN2_F[1], fma(n, -c.LN2_F[0], x))
        return grow(above_one(r) + 1.0, n, exponent, x, least)
    r, tail = fast_two_sum(fma(n, -c.LN2[0], x), n * -c.LN2[1])
    square = r * r
    rest = fma(square * r, polynomial_paired(r, c.EXP), fma(square, 0.5, tail))
    return grow(1.0 + (r + rest), n, exponent, x, least)


def above_one(r: Lanes) -> Lanes:
    """e^r - 1 of f32 for |r| <= log(2) / 2, to a unit of e^r."""
    return fma(polynomial_paired(r, c.EXPF), r * r, r)


def exp2(x: Lanes) -> Lanes:
    least, most = (-151.0, 129.0) if x.scalar is f32 else (-1076.0, 1025.0)
    x = clamp(x, least, most)
    n, exponent = shifted_nearest(x, 1.0)
    r = x - n
    if x.scalar is f32:
        return grow(fma(polynomial_paired(r, c.EXP2F), r, 1.0), n, exponent, x, least)
    high, low = two_product(r, c.LN2_PAIR[0])
    high, low = exp_reduced(high, fma(r, c.LN2_PAIR[1], low))
    return grow(high + low, n, exponent, x, least)


def exp10(x: Lanes) -> Lanes:
    single = x.scalar is f32
    x = clamp(x, -46.0, 38.6) if single else clamp(x, -324.5, 308.5)
    n, exponent = shifted_nearest(x, c.LOG2_10[0])
    parts = c.LOG10_2_F if single else c.LOG10_2
    r = fma(n, -parts[1], fma(n, -parts[0], x))
    if single:
        r = r * c.LN10[0]
        return grow(above_one(r) + 1.0, n, exponent, x, -46.0)
    high, low = two_product(r, c.LN10[0])
    high, low = exp_reduced(high, fma(r, c.LN10[1], low))
    return grow(high + low, n, exponent, x, -324.5)


def exp_parts(x: Lanes, tail: Lanes | None = None) -> tuple[Lanes, Lanes, Lanes]:
    """(hi, lo, n) with e^(x + tail) = (hi + lo) * 2^n, to about 2^-62 of f64, 2^-29 of f32; |x| below 2000 or 200."""
    ln2 = LN2[x.scalar]
    n, whole = nearest(x, c.LOG2E[0])
    r = fma(n, -ln2[0], x)  # exact: the first part of log 2 has 42 bits, or 15
    high, low = fast_two_sum(r, n * -ln2[1])
    if tail is not None:  # a tail of 2^-44 (the error of y log x in pow) must not meet the rough factor in exp_reduced
        high, low = two_sum(high, low + tail)
    high, low = exp_reduced(high, low)
    return high, low, whole


def exp_reduced(r: Lanes, tail: Lanes) -> Pair:
    """e^(r + tail) for |r| <= log(2) / 2 and a tail below half a unit of r."""
    square, square_low = two_product(r, r)
    one, one_low = fast_two_sum(r.const(1.0), r)
    high, low = fast_two_sum(one, square * 0.5)
    rest = fma(square * r, polynomial_paired(r, EXP[r.scalar]), fma(square_low, 0.5, tail * one))
    return fast_two_sum(high, low + one_low + rest)


def expm1_parts(x: Lanes) -> tuple[Pair, Lanes]:
    """((hi, lo), n) with e^x - 1 = (hi + lo) * 2^n, relative to about 2^-60; f64, n is 0 or more than 1."""
    n, whole = nearest(x, c.LOG2E[0])
    r, tail = fast_two_sum(fma(n, -c.LN2[0], x), n * -c.LN2[1])
    square, square_low = two_product(r, r)
    high, low = fast_two_sum(r, square * 0.5)
    low = low + fma(square * r, polynomial_paired(r, c.EXP), fma(square_low, 0.5, tail * (1.0 + r)))
    small = -whole
    inverse = power_of_two(where(small < -1000, small.const(-1000), small))  # 2^-n: 1 - 2^-n is what to add
    first, first_low = two_sum(1.0 - inverse, high)
    return fast_two_sum(first, first_low + low + ((1.0 - (1.0 - inverse)) - inverse)), whole


def expm1(x: Lanes) -> Lanes:
    if x.scalar is f32:
        y = clamp(x, -20.0, 89.0)
        n, whole = nearest(y, c.LOG2E[0])
        r = fma(n, -c.LN2_F[1], fma(n, -c.LN2_F[0], y))
        half = power_of_two(whole - 1)  # 2^n itself may be infinite
        result = fma(above_one(r), half, half - 0.5) * 2.0
    else:
        (high, low), n = expm1_parts(clamp(x, -50.0, 710.0))
        result = scale(high + low, n)
    return where(x.equal(0.0), x, result)


def tanh(x: Lanes) -> Lanes:
    if x.scalar is f32:
        a = abs(x)
        square = x * x
        small = fma(x * square, polynomial(square, c.TANHF), x)
        large = 1.0 - 2.0 / (exp(a + a) + 1.0)
        return copysign(where(a < 0.625, small, large), x)
    a = smaller(abs(x), 22.0)
    (high, low), n = expm1_parts(a + a)
    grown = power_of_two(n)
    high, low = high * grown, low * grown
    below, below_low = two_sum(high, 2.0)
    quotient = high / below
    rest = (fma(-quotient, below, high) + (low - quotient * (below_low + low))) / below
    return where(x.equal(0.0), x, copysign(quotient + rest, x))


def reciprocal_parts(high: Lanes, n: Lanes) -> Lanes:
    """2^(-2n) / high, 0 where it no longer matters beside high."""
    shift = n + n
    inverse = power_of_two(-where(shift > 120, shift.const(120), shift)) / high
    return where(shift > 120, 0.0, inverse)


LARGEST = {f32: 90.0, f64: 711.0}  # cosh is infinite


def sinh(x: Lanes) -> Lanes:
    a = smaller(abs(x), LARGEST[x.scalar])
    high, low, n = exp_parts(a)
    minus = -reciprocal_parts(high, n)
    first, first_low = two_sum(high, minus)
    large = scale(first + (first_low + low), n - 1)
    square = x * x
    small = fma(x * square, polynomial(square, SINH[x.scalar]), x)
    return where(abs(x) < 1.0, small, copysign(large, x))


def cosh(x: Lanes) -> Lanes:
    high, low, n = exp_parts(smaller(abs(x), LARGEST[x.scalar]))
    first, first_low = two_sum(high, reciprocal_parts(high, n))
    inverse_low = where(n > 1, 0.0, low / (high * high))  # e^-x is as large as e^x near 0, so its tail counts
    return scale(first + (first_low + low - inverse_low * power_of_two(-where(n > 1, n.const(1), n) * 2)), n - 1)
