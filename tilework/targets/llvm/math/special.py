"""The error function and its relatives (f32 erf has a formula of its own; inverses and what is scaled are of f64).

For x >= 0, erfc(x) = exp(-x^2) * g(t) / (1 + 2x), where g is flat in t = (x - 4) / (x + 4), so that one polynomial
serves the whole half line. exp(-x^2) takes x^2 as a pair: near x = 26 a plain square would cost 300 units in the
last place.
"""

import math

from tilework.targets.llvm.math import coefficients as c
from tilework.targets.llvm.math.constants import ROOT_HALF
from tilework.targets.llvm.math.exponential import exp, exp_parts
from tilework.targets.llvm.math.lanes import (
    Lanes,
    Pair,
    copysign,
    fast_two_sum,
    fma,
    polynomial,
    polynomial_led,
    polynomial_paired,
    repeat,
    scale,
    smaller,
    sqrt,
    two_product,
    two_sum,
    where,
)
from tilework.targets.llvm.math.logarithm import log, log1p
from tilework.targets.llvm.types import f32, f64

HUGE = {f32: 2.0**60, f64: 2.0**300}  # its inverse is all that counts
VANISHES = {f32: 11.0, f64: 28.0}  # erfc is 0


def scaled_erfc(x: Lanes) -> Pair:
    """exp(x^2) erfc(x) for x >= 0."""
    u, u_low = Pair(x + x, x.const(0.0)) / two_sum(x, 4.0)
    if x.scalar is f32:
        product, product_low = polynomial_led(u - 1.0, c.ERFCXF_LEAD, c.ERFCXF[2:]) * Pair(u, u_low)
    else:
        slope = polynomial(u - 1.0, c.ERFCX)
        product, product_low = two_product(slope, u)
        product_low = fma(slope, u_low, product_low)
    high, low = fast_two_sum(x.const(1.0), product)
    return Pair(high, low + product_low) / two_sum(x + x, 1.0)


def erfc_positive(x: Lanes, tail: Lanes | None = None) -> tuple[Pair, Lanes]:
    """((hi, lo), n): erfc(x + tail) = (hi + lo) 2^n for x in [0, 40]."""
    square, low = two_product(x, x)
    low = low if tail is None else fma(x + x, tail, low)
    big, big_low, n = exp_parts(-square, -low)
    scaled = scaled_erfc(x)
    if tail is not None:  # g' = 2 x g - 2 / sqrt(pi)
        scaled = Pair(scaled.hi, scaled.lo + tail * fma(x + x, scaled.hi, -c.TWO_OVER_SQRT_PI[0]))
    return Pair(big, big_low) * scaled, n


def erfc(x: Lanes) -> Lanes:
    a = smaller(abs(x), VANISHES[x.scalar])
    (high, low), n = erfc_positive(a)
    positive = scale(high + low, n)
    first, error = two_sum(x.const(2.0), -positive)
    return where(x < 0.0, first + error, where(x.is_nan(), x, positive))


def erf(x: Lanes) -> Lanes:
    if x.scalar is f32:
        return erf_single(x)
    z = x * x
    small = fma(x, polynomial(z, c.ERF), x)
    (high, low), n = erfc_positive(smaller(abs(x), 6.5))
    large = 1.0 - scale(high + low, n)
    return where(abs(x) < 1.0, small, copysign(large, x))


def erf_single(x: Lanes) -> Lanes:
    """erf(a) = 1 - (1 - u)^8, where u / a is smooth on [0, 3.93]; beyond, erf is 1.

    Three times 1 - (1 - u)^2 = 2u - u^2. All but the last are added up around the largest term, 4u, which is a product
    with a constant, so that they are rounded once: 2u - u^2 = v, 2v - v^2 = 4u - 2u^2 - v^2.
    """
    a = smaller(abs(x), 3.93)
    rest = a * fma(polynomial_paired(a, c.ROOT_ERFCF[1:]), a, c.ROOT_ERFCF0[1])
    u4 = fma(a, c.ROOT_ERFCF0[0], rest)
    square = u4 * u4
    v = fma(square, -1 / 16, u4 * 0.5)
    last = fma(a, c.ROOT_ERFCF0[0], fma(-v, v, fma(square, -1 / 8, rest)))
    return copysign(fma(-last, last, last + last), x)


def erfcx(x: Lanes) -> Lanes:
    """exp(x^2) erfc(x)."""
    a = abs(x)
    huge = HUGE[x.scalar]
    high, low = scaled_erfc(smaller(a, huge))
    positive = where(a > huge, (0.5 * c.TWO_OVER_SQRT_PI[0]) / a, high + low)
    bounded = smaller(a, VANISHES[x.scalar] + 2.0)
    square, square_low = two_product(bounded, bounded)
    big, big_low, n = exp_parts(square, square_low)
    twice, twice_low = scale(big, n + 1), scale(big_low, n + 1)
    first, error = fast_two_sum(twice, -high)
    negative = where(first < math.inf, first + (error + (twice_low - low)), first)
    return where(x < 0.0, negative, positive)


def normcdf(x: Lanes) -> Lanes:
    """The normal distribution below x: erfc(-x / sqrt(2)) / 2."""
    most = VANISHES[x.scalar] * 1.42
    bounded = where(abs(x) < most, x, copysign(x.const(most), x))
    root, root_low = ROOT_HALF[x.scalar]
    high, low = two_product(-bounded, root)
    high, low = fast_two_sum(high, fma(-bounded, root_low, low))
    negative = high < 0.0
    (big, big_low), n = erfc_positive(abs(high), where(negative, -low, low))
    positive = scale(big + big_low, n - 1)
    return where(x.is_nan(), x, where(negative, 1.0 - positive, positive))


def erfcinv(y: Lanes) -> Lanes:
    """x with erfc(x) = y for y in (0, 2): a rough start, then Newton's method on log erfc."""
    upper = y > 1.0
    p = where(upper, 2.0 - y, y)
    p = where(p > 0.0, p, 1.0)
    tiny = p < 2.0**-900
    grown = where(tiny, p * 2.0**120, p)

    def newton(x: Lanes) -> list[Lanes]:
        (high, low), n = erfc_positive(x)
        n = where(tiny, n + 120, n)
        excess = ((scale(high, n) - grown) + scale(low, n)) / grown
        x = x + log1p(excess) * (scaled_erfc(x).hi * (math.sqrt(math.pi) / 2))
        return [where(x > 0.0, x, 0.0)]

    (x,) = repeat(4, [start(p)], newton)
    x = where(p > 0.5, near_inverse(where(p > 0.5, 1.0 - p, 0.0)), x)
    result = where(upper, -x, x)
    edge = where(y.equal(0.0), math.inf, where(y.equal(2.0), -math.inf, y.const(math.nan)))
    return where((y > 0.0) & (y < 2.0), result, edge)


def start(p: Lanes) -> Lanes:
    """A few digits of the inverse of erfc on (0, 1]: log(1 / p) and its square root (Winitzki)."""
    product = p * (2.0 - p)
    logarithm = log(product)
    a = 0.147
    first = 2.0 / (math.pi * a) + 0.5 * logarithm
    inside = fma(first, first, logarithm * (-1.0 / a))
    return sqrt(where(sqrt(inside) > first, sqrt(inside) - first, 0.0))


def near_inverse(y: Lanes) -> Lanes:
    """x with erf(x) = y for 0 <= y <= 1/2, by Halley's method on the polynomial of erf."""

    def halley(x: Lanes) -> list[Lanes]:
        z = x * x
        error = fma(x, polynomial(z, c.ERF), x - y)
        step = error * exp(z) * (math.sqrt(math.pi) / 2)
        return [x - step / (1.0 + x * step)]

    return repeat(4, [y * (math.sqrt(math.pi) / 2)], halley)[0]


def erfinv_single(y: Lanes) -> Lanes:
    """y times a polynomial in w = -log(1 - y^2), and in its root where the inverse grows as that does."""
    w = -log(fma(-y, y, 1.0))
    u = sqrt(w) - 3.125
    near = w < 5.0
    lead = where(near, c.ERFINVF0[0], y.const(c.ERFINV_FARF0[0]))
    near_rest = fma(polynomial(w, c.ERFINVF[1:]), w, c.ERFINVF0[1])
    far_rest = fma(polynomial(u, c.ERFINV_FARF[1:]), u, c.ERFINV_FARF0[1])
    result = fma(y, lead, y * where(near, near_rest, far_rest))
    a = abs(y)
    return where(a < 1.0, copysign(result, y), where(a.equal(1.0), y * math.inf, math.nan))


def erfinv(y: Lanes) -> Lanes:
    """Return the inverse of erf; above 1/2 as erfcinv(1 - |y|), where that difference is exact."""
    if y.scalar is f32:
        return erfinv_single(y)
    a = abs(y)
    near = a <= 0.5
    far = erfcinv(1.0 - where(near, 0.75, a))
    result = copysign(where(near, near_inverse(where(near, a, 0.0)), far), y)
    edge = where(a.equal(1.0), copysign(y.const(math.inf), y), math.nan)
    return where(y.equal(0.0), y, where(a < 1.0, result, edge))


def normcdfinv(y: Lanes) -> Lanes:
    x = erfcinv(y + y)
    result = fma(x, -2.0 * c.ROOT_HALF[0], x * (-2.0 * c.ROOT_HALF[1]))
    return where(abs(x) < math.inf, result, -x)
