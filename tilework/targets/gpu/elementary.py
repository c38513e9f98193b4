"""Elementary functions of f32 by a GPU's approximate instructions (`Gpu.approximations`).

`benchmarks/gpu_functions.py` measures their errors over all 2^32 arguments beside libdevice's, which are larger in all
but two cases (docs/gpu-performance.md).

    tanh x = 1 - 2 / (2^(2 log2(e) |x|) + 1)        ex2.approx, rcp.approx; a polynomial below 0.6
    e^x    = 2^n * 2^(x log2(e) - n)                ex2.approx of the rest; 2^n is made in the exponent field

A function that is not in `FORMULAS` has the formula of all targets (`targets/llvm/math`), in which f32 divisions and
square roots are approximate too. Reproducible kernels have the formulas of all targets unchanged.
"""

import math
from collections.abc import Callable

from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.math import coefficients as c
from tilework.targets.llvm.math.exponential import nearest
from tilework.targets.llvm.math.lanes import (
    Lanes,
    Pair,
    approximation,
    bits,
    clamp,
    copysign,
    fma,
    from_bits,
    larger,
    polynomial,
    polynomial_paired,
    reciprocal,
    smaller,
    to_float,
    to_int,
    trunc,
    two_product,
    where,
)
from tilework.targets.llvm.math.logarithm import HIDES_ONE
from tilework.targets.llvm.math.special import erf_single
from tilework.targets.llvm.math.trigonometric import choose, cosine, reduce_single, sine
from tilework.targets.llvm.types import f32, f64, i32, i64
from tilework.targets.llvm.values import Value, constant

exp2, log2_near, inverse_root = map(approximation, ("exp2", "log2", "rsqrt"))
EXPONENT = 0x7F800000  # the exponent field
TWICE_LOG2E = tuple(2.0 * part for part in c.LOG2E_F)
ROOT_HALF_BITS, LOG_LEAST, THREE_QUARTERS = 0x3F3504F3, 0x3F300000, 0x3F400000
SMALLEST = 2.0**-126
LOG2_10 = (3.321928024291992, 7.059599523244549e-08)

# Exponentials

EXPONENT_MAGIC = 1.5 * 2.0**23 + 127  # the low bits of its sum with an integer n are the exponent field of 2^n


def power(x: Lanes, rate: tuple[float, float], shift: int = 0, tail: Lanes | None = None) -> Lanes:
    """2^(x * rate + tail + shift) for a rate in two parts, with one rounding into subnormal results.

    n is the integer below x * rate: 2^rest is 1 or more, where a unit in the last place is larger than below 1.
    It stops at 127 and -126, and the rest takes what is beyond: up to infinity, or down to 0.
    """
    shifted = clamp(fma(x, rate[0], -0.5), -126.0, 127.0) + EXPONENT_MAGIC
    rest = fma(x, rate[1], fma(x, rate[0], EXPONENT_MAGIC - shifted))
    rest = rest if tail is None else rest + tail
    return exp2(rest) * from_bits((bits(shifted) + shift) << 23)


def exp(x: Lanes) -> Lanes:
    return power(x, c.LOG2E_F)


def exp10(x: Lanes) -> Lanes:
    return power(x, LOG2_10)


def expm1(x: Lanes) -> Lanes:
    y = clamp(x, -20.0, 89.0)
    n, whole = nearest(y, c.LOG2E[0])
    first = fma(n, -c.LN2_F[0], y)
    r = fma(n, -c.LN2_F[1], first)
    tail = fma(n, -c.LN2_F[1], first - r)
    above_one = r + fma(polynomial(r, c.EXPM1F), r * r, tail)
    half = from_bits((whole + 126) << 23)  # 2^n itself may be infinite
    result = fma(above_one, half, half - 0.5) * 2.0
    return where(x.equal(0.0), x, result)


def tanh(x: Lanes) -> Lanes:
    a, square = abs(x), x * x
    small = fma(x * square, polynomial(square, c.TANH06F), x)
    large = fma(reciprocal(exp2(a * (2.0 * c.LOG2E[0])) + 1.0), -2.0, 1.0)
    return copysign(where(a < 0.6, small, large), x)


def sinh(x: Lanes) -> Lanes:
    half = power(abs(x), c.LOG2E_F, -1)
    large = fma(reciprocal(half), -0.25, half)
    square = x * x
    small = fma(x * square, polynomial(square, c.SINH145F), x)
    return where(abs(x) < 1.45, small, copysign(large, x))  # beyond it is 2 or more, where units are larger


def cosh(x: Lanes) -> Lanes:
    half = power(abs(x), c.LOG2E_F, -1)
    return fma(reciprocal(half), 0.25, half)


# Logarithms


def decompose(x: Lanes, least: int = ROOT_HALF_BITS) -> tuple[Lanes, Lanes, Lanes]:
    """(f, k, y) with x = (1 + f) * 2^(k / K_UNIT) for a positive finite x; k is a float.

    1 + f is in [m, 2m], where m has the bits `least`: 1/sqrt(2), sqrt(2). y is x scaled to a normal number; zeros,
    infinity, NaN and negative numbers remain what they are.
    """
    tiny = x < SMALLEST
    y = where(tiny, x * 2.0**23, x)
    exponent = exponent_of(y, least)
    k = to_float(exponent)
    return from_bits(bits(y) - exponent) - 1.0, where(tiny, k - 23 * K_UNIT, k), y


K_UNIT = 2.0**23  # the last place of the exponent field


def exponent_of(x: Lanes, least: int) -> Lanes:
    """The k of `decompose`, an integer."""
    return (bits(x) - least) & -(1 << 23)


def sum_of_logs(k: Lanes, f: Lanes) -> Lanes:
    """k log 2 + log(1 + f)."""
    return fma(k, c.LN2_PAIR[0] / K_UNIT, fma(f, f * polynomial(f, c.LOG_WEIGHTEDF), f))


def sum_of_logs_2(k: Lanes, f: Lanes) -> Lanes:
    scaled, scaled_low = two_product(f, c.LOG2E_F[0])
    high, low = plus_multiple(k, scaled)
    return high + (low + fma(f, fma(f, polynomial(f, c.LOG2_WEIGHTEDF), c.LOG2E_F[1]), scaled_low))


def plus_multiple(k: Lanes, part: Lanes) -> Pair:
    """k + part exactly, for a k of `decompose` and a part of at most 1/2."""
    total = fma(k, 1 / K_UNIT, part)
    return Pair(total, part - fma(k, -1 / K_UNIT, total))


def sum_of_logs_10(k: Lanes, f: Lanes) -> Lanes:
    rest = fma(k, c.LOG10_2_F[1] / K_UNIT, f * fma(f, polynomial(f, c.LOG10F), c.LOG10E_F[1]))
    return fma(k, c.LOG10_2_F[0] / K_UNIT, fma(f, c.LOG10E_F[0], rest))


def logarithm(total: Callable[[Lanes, Lanes], Lanes], least: int = ROOT_HALF_BITS) -> Callable[[Lanes], Lanes]:
    """A logarithm by its sum over k and f; the instruction gives it for 0, infinity, NaN and negative numbers."""

    def function(x: Lanes) -> Lanes:
        f, k, y = decompose(x, least)
        return where(is_regular(y), total(k, f), log2_near(y))

    return function


def is_regular(x: Lanes) -> Lanes:
    """Return True where x is positive and finite."""
    return (x > 0.0) & (x < math.inf)


def log1p_sum(x: Lanes, tail: Lanes | None = None, extra: Lanes | None = None) -> Lanes:
    """log(1 + x + tail) for a finite x above -1, plus `extra` times log 2; +0 for -0.

    1 + f is in [3/4, 3/2]: around 0, where the sum cancels least, k is 0.
    """
    exponent = exponent_of(x + 1.0, THREE_QUARTERS)
    small = from_bits(0x3F800000 - exponent)
    rest = small - 1.0 if tail is None else fma(tail, small, small - 1.0)
    f = where(x > HIDES_ONE, from_bits(bits(x) - exponent) - 1.0, fma(x, small, rest))  # that of 1 + x only chose k
    k, square = to_float(exponent) * 2.0**-23, f * f
    k = k if extra is None else k + extra
    rest = fma(f * square, polynomial(f, c.LOG1PF), fma(square, -0.5, k * c.LN2_F[1]))
    return fma(k, c.LN2_F[0], f + rest)


def log1p(x: Lanes) -> Lanes:
    result = where((x > -1.0) & (x < math.inf), log1p_sum(x), log2_near(x + 1.0))
    return where(x.equal(0.0), x, result)


LARGE = 2.0**20  # log(2x) is the result


def asinh(x: Lanes) -> Lanes:
    a = abs(x)
    large = a > LARGE
    y = where(large, 1.0, a)
    square = y * y
    second = divided(square, root_pair(square + 1.0).rounded() + 1.0)
    t = y + second
    return copysign(log_of_sum(a, large, t, second - (t - y)), x)


def log_of_sum(a: Lanes, large: Lanes, t: Lanes, tail: Lanes) -> Lanes:
    """log(1 + t + tail), or log(2a) of a large or infinite number."""
    return where(a < math.inf, log1p_sum(where(large, a, t), tail, where(large, 1.0, a.const(0.0))), a)


def acosh(x: Lanes) -> Lanes:
    large = x > LARGE
    d = where(large, 1.0, x) - 1.0
    root, rest = root_pair(fma(d, d, d + d))
    t = root + d
    result = log_of_sum(x, large, t, (larger(root, d) - t) + smaller(root, d) + rest)
    return where(x < 1.0, math.nan, result)


def atanh(x: Lanes) -> Lanes:
    a = abs(x)
    below = 1.0 - a
    inverse = reciprocal(below)
    twice = a + a
    t = twice * inverse
    tail = (fma(-t, below, twice) - t * ((1.0 - below) - a)) * inverse
    result = copysign(log1p_sum(t, tail) * 0.5, x)
    edge = where(a.equal(1.0), copysign(x.const(math.inf), x), math.nan)
    return where(a < 1.0, where(x.equal(0.0), x, result), edge)


# Powers and roots


def pow(x: Lanes, y: Lanes) -> Lanes:
    """x^y with the special cases of C; a constant exponent that is a small integer becomes multiplications."""
    if (multiplied := MULTIPLIED.get(y.v.constant)) is not None:
        return multiplied(x)
    half = y * 0.5
    whole = trunc(y).equal(y)
    odd = whole & trunc(half).differs(half) & (abs(y) < 2.0**24)
    exponent = clamp(y, -FARTHEST_EXPONENT, FARTHEST_EXPONENT)
    result = where((x < 0.0) & ~whole, math.nan, regular_power(abs(x), exponent))
    result = with_sign(beyond_power(abs(x), exponent, result), x, odd)
    return where(x.equal(1.0) | y.equal(0.0), 1.0, result)


FARTHEST_EXPONENT = 2.0**40  # with it the power of every number but 1 is 0 or infinite, and no product is infinite


def regular_power(a: Lanes, y: Lanes, y_low: Lanes | None = None) -> Lanes:
    """a^(y + y_low) for a positive finite a, and |y| up to FARTHEST_EXPONENT."""
    f, k, _ = decompose(a)
    inverse = reciprocal(f + 2.0)
    s = f * inverse  # log2(1 + f) = 2 log2(e) atanh(s)
    s_low = fma(-s, f, fma(s, -2.0, f)) * inverse
    square = s * s
    third = square * polynomial(square, c.LOG2_ATANHF)  # times s: the terms from s^3 on
    scaled, scaled_low = two_product(s, TWICE_LOG2E[0])
    rest = fma(s_low, fma(third, 3.0, TWICE_LOG2E[0]), fma(s, TWICE_LOG2E[1], scaled_low))
    rest = fma(s, third, rest)
    high, low = plus_multiple(k, scaled)
    product = y * high
    product_low = fma(y, low + rest, fma(y, high, -product))
    product_low = product_low if y_low is None else fma(y_low, high, product_low)
    return two_to_the(product, product_low)


def two_to_the(x: Lanes, tail: Lanes) -> Lanes:
    """2^(x + tail) with one rounding into subnormal results."""
    shifted = clamp(x + tail, -126.0, 127.0) + EXPONENT_MAGIC
    return exp2((x - (shifted - EXPONENT_MAGIC)) + tail) * from_bits(bits(shifted) << 23)


def beyond_power(a: Lanes, y: Lanes, result: Lanes) -> Lanes:
    """The power of 0, infinity or NaN, for an exponent other than 0; `result` elsewhere."""
    return where(is_regular(a), result, where(y > 0.0, a, reciprocal(a)) * abs(y))


def with_sign(result: Lanes, x: Lanes, odd: Lanes) -> Lanes:
    """A result that is not negative, with the sign of x where the exponent is odd."""
    return from_bits(bits(result) | (bits(x) & where(odd, bits(x).const(-(1 << 31)), 0)))


MULTIPLIED: dict[float, Callable[[Lanes], Lanes]] = {  # larger powers would be off by more than two units
    0.0: lambda x: x.const(1.0),
    1.0: lambda x: x,
    2.0: lambda x: x * x,
    3.0: lambda x: x * x * x,
    4.0: lambda x: (x * x) * (x * x),
    -1.0: lambda x: 1.0 / x,
}


def powi(x: Lanes, n: Lanes) -> Lanes:
    """x^n for an integer, which takes two floats where it has more than 24 bits."""
    y = to_float(n)
    if (multiplied := MULTIPLIED.get(y.v.constant)) is not None:
        return multiplied(x)
    result = beyond_power(abs(x), y, regular_power(abs(x), y, to_float(n - to_int(y))))
    return where(n.equal(0), 1.0, with_sign(result, x, (n & 1).differs(0)))


def divided(above: Lanes, below: Lanes, below_low: Lanes | None = None) -> Lanes:
    """above / (below + below_low) to half a unit, for numbers far from the ends of the range."""
    inverse = reciprocal(below)
    quotient = above * inverse
    rest = fma(-quotient, below, above)
    return fma(rest if below_low is None else fma(-quotient, below_low, rest), inverse, quotient)


def root_pair(x: Lanes) -> Pair:
    """The square root of a number that is 0 or at least 2^-100, in two parts."""
    inverse = inverse_root(larger(x, 2.0**-100))
    root = x * inverse
    return Pair(root, fma(-root, root, x) * (inverse * 0.5))


def cbrt(x: Lanes) -> Lanes:
    """2^(log2(a) / 3), then one Newton step whose residual is exact."""
    a = abs(x)
    tiny = a < 2.0**-90  # the residual would be subnormal
    a = where(tiny, a * 2.0**48, a)
    root = exp2(log2_near(a) * (1.0 / 3.0))
    square = root * root
    residual = fma(-square, root, a) - fma(root, root, -square) * root
    root = fma(residual * (1.0 / 3.0), reciprocal(square), root)
    root = where(tiny, root * 2.0**-16, root)
    return where((a > 0.0) & (a < math.inf), copysign(root, x), x)


def rcbrt(x: Lanes) -> Lanes:
    """2^(-log2(a) / 3), then one Newton step."""
    a = abs(x)
    tiny = a < SMALLEST
    a = where(tiny, a * 2.0**24, a)
    root = exp2(log2_near(a) * (-1.0 / 3.0))
    root = fma(fma(-(a * root), root * root, 1.0) * (1.0 / 3.0), root, root)
    root = where(tiny, root * 2.0**8, root)
    return where((a > 0.0) & (a < math.inf), copysign(root, x), 1.0 / x)


def hypot(x: Lanes, y: Lanes) -> Lanes:
    """sqrt(x^2 + y^2), scaled by the exponent of the larger one."""
    a, b = abs(x), abs(y)
    exponent = larger_int(bits(larger(a, b)) & EXPONENT, 1 << 23)
    down = from_bits(0x7F000000 - smaller_int(exponent, 0x7E800000))
    a, b = a * down, b * down
    length = root_pair(fma(a, a, b * b)).rounded() * from_bits(smaller_int(exponent, 0x7E800000))
    infinite = a.equal(math.inf) | b.equal(math.inf)
    return where(infinite, math.inf, length)


def larger_int(x: Lanes, y: int) -> Lanes:
    return Lanes(x.b, x.b.smax(x.v, x.of(y)))


def smaller_int(x: Lanes, y: int) -> Lanes:
    return Lanes(x.b, x.b.smin(x.v, x.of(y)))


# Angles

FARTHEST = 2.0**17  # beyond, x is reduced by more digits of 2/pi
# the bits of 2/pi in words of 32, with one word of zeros in front
TWO_OVER_PI = (0, *(half for whole in c.TWO_OVER_PI_BITS[1:5] for half in (whole >> 32, whole & 0xFFFFFFFF)))


def reduce(x: Lanes) -> tuple[Lanes, Lanes]:
    """(r, n): x = n * pi/2 + r modulo 2 pi with |r| <= pi/4; the low two bits of n count."""
    b = x.b
    near, _, turns = reduce_single(x)
    is_far = ~(abs(x) < FARTHEST)
    r, n = b.if_else(is_far.v, lambda: reduce_far(b, x.v), lambda: [near.v, turns.v], weights=(1, 1000))
    return Lanes(b, r), Lanes(b, n)


def reduce_far(b: Builder, x: Value) -> list[Value]:
    """Multiply the significand by the 96 bits of 2/pi that matter (Payne and Hanek).

    x = significand * 2^(exponent - 150). Bits of 2/pi of weight 2^(152 - exponent) and more add multiples of 2 pi.
    """
    table = b.module.table("tilework.two_over_pi_32", i32, TWO_OVER_PI, align=4)
    pattern = b.bitcast(x, i32)
    exponent = b.and_(b.lshr(pattern, 23), 255)
    position = b.smax(b.sub(b.smin(exponent, 254), 152 - 32), 0)
    word, shift = b.lshr(position, 5), b.and_(position, 31)
    base = b.gep(table, b.zext(word, i64), i32)
    words = [b.load(i32, b.gep(base, 4 * index), align=4) for index in range(4)]
    chunk = [b.zext(b.funnel_left(words[index], words[index + 1], shift), i64) for index in range(3)]
    significand = b.zext(b.or_(b.and_(pattern, (1 << 23) - 1), 1 << 23), i64)
    low = b.mul(significand, chunk[2])
    middle = b.add(b.mul(significand, chunk[1]), b.lshr(low, 32))
    upper = b.add(b.shl(b.mul(significand, chunk[0]), 32), middle)  # in units of 2^-62 quarter turns, modulo 4
    turns = b.trunc(b.lshr(b.add(upper, 1 << 61), 62), i32)
    fraction = b.sitofp(b.shl(upper, 2), f64)  # in units of 2^-64, signed
    r = b.fptrunc(b.fmul(fraction, constant(f64, math.pi / 2 * 2.0**-64)), f32)
    is_negative = b.icmp("slt", pattern, 0)
    r, turns = b.select(is_negative, b.fneg(r), r), b.select(is_negative, b.neg(turns), turns)
    is_finite = b.icmp("ne", exponent, 255)
    return [b.select(is_finite, r, constant(f32, math.nan)), turns]


def sin(x: Lanes) -> Lanes:
    r, n = reduce(x)
    zero = r.const(0.0)
    return where(x.equal(0.0), x, choose(n, sine(r, zero), cosine(r, zero)))


def cos(x: Lanes) -> Lanes:
    r, n = reduce(x)
    zero = r.const(0.0)
    return choose(n + 1, sine(r, zero), cosine(r, zero))


def tan(x: Lanes) -> Lanes:
    r, n = reduce(x)
    square = r * r
    rest = r * square * polynomial(square, c.TANF)
    tangent = r + rest
    inverse = reciprocal(tangent)
    error = fma(-tangent, inverse, 1.0) - (rest - (tangent - r)) * inverse
    inverse = fma(inverse, error, inverse)
    return where(x.equal(0.0), x, where((n & 1).differs(0), -inverse, tangent))


def asin_parts(x: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """(near, s, rest): asin(|x|) = s + rest, or pi/2 - 2 (s + rest) where `near` 1."""
    a = abs(x)
    near = a > 0.5
    half = fma(a, -0.5, 0.5)  # exact above 1/2
    root, low = root_pair(half)
    z = where(near, half, a * a)
    s = where(near, root, a)
    return near, s, fma(s * z, polynomial(z, c.ASINF), where(near, low, 0.0))


def asin(x: Lanes) -> Lanes:
    near, s, rest = asin_parts(x)
    total = s + rest
    reflected = c.HALF_PI_F[0] + fma(s, -2.0, fma(rest, -2.0, c.HALF_PI_F[1]))
    return where(abs(x) <= 1.0, copysign(where(near, reflected, total), x), math.nan)


def acos(x: Lanes) -> Lanes:
    near, s, rest = asin_parts(x)
    double = (s + rest) * 2.0
    left = fma(s, -2.0, c.PI_F[0]) + fma(rest, -2.0, c.PI_F[1])
    inner = (c.HALF_PI_F[0] - copysign(s, x)) + (c.HALF_PI_F[1] - copysign(rest, x))
    return where(abs(x) <= 1.0, where(near, where(x < 0.0, left, double), inner), math.nan)


def atan(x: Lanes) -> Lanes:
    """Return the arc tangent: a polynomial of x up to 1, and of 1 / x beyond."""
    a = smaller(abs(x), 2.0**126)
    swap = a > 1.0
    inverse = reciprocal(a)
    inverse = fma(inverse, fma(-inverse, a, 1.0), inverse)
    t = where(swap, inverse, a)
    z = t * t
    rest = t * z * polynomial_paired(z, c.ATAN1F)
    reflected = c.HALF_PI_F[0] - (t + (rest - c.HALF_PI_F[1]))
    return copysign(where(swap, reflected, t + rest), x)


# The error function


def erf(x: Lanes) -> Lanes:
    """The formula of all targets; it would round twice next to subnormal numbers."""
    return where(abs(x) < 2.0**-60, fma(x, c.TWO_OVER_SQRT_PI[0] - 1.0, x), erf_single(x))


def erfc_positive(a: Lanes, tail: Lanes | None = None) -> Lanes:
    """erfc(a + tail) for a >= 0: e^(-a^2) g(t) / (1 + 2a), g as in `targets/llvm/math/special.py`."""
    u = (a + a) * reciprocal(a + 4.0)
    slope = polynomial_paired(u - 1.0, c.ERFCXF)
    double = a + a
    below = double + 1.0
    scaled = divided(fma(slope, u, 1.0), below, 1.0 - (below - double))
    square = a * a
    low = fma(a, a, -square)
    if tail is not None:
        low = fma(a + a, tail, low)
    return power(-square, c.LOG2E_F, tail=low * -c.LOG2E[0]) * scaled


def erfc(x: Lanes) -> Lanes:
    positive = erfc_positive(smaller(abs(x), 11.0))
    return where(x < 0.0, 2.0 - positive, positive)


def normcdf(x: Lanes) -> Lanes:
    """erfc(-x / sqrt(2)) / 2."""
    a = smaller(abs(x), 15.0)
    high = a * c.ROOT_HALF_F[0]
    low = fma(a, c.ROOT_HALF_F[1], fma(a, c.ROOT_HALF_F[0], -high))
    positive = erfc_positive(high, low) * 0.5
    return where(x > 0.0, 1.0 - positive, positive)


# Remainders

STEP = 20  # bits of the quotient that a step of the division finds
STEPS = 15  # for the bits between the largest and the smallest number


def fmod(x: Lanes, y: Lanes) -> Lanes:
    """x - trunc(x / y) y, exact: directly for quotients below 2^21, otherwise by long division."""
    b, a, d = x.b, abs(x), abs(y)
    is_short = (a < d * 2.0**21) & (d > 2.0**-100)
    shape = bits(where(d < 1.0, d * 2.0**30, d)) & ((1 << 23) - 1)  # the significand, also of a subnormal number

    def step(index: Value, values: tuple[Value, ...]) -> list[Value]:
        rest = Lanes(b, values[0])
        up, down = where(rest < 1.0, 2.0**30, a.const(1.0)), where(rest < 1.0, 2.0**-30, a.const(1.0))
        rest, divisor = rest * up, d * up
        exponent = (bits(rest) & EXPONENT) - (STEP << 23)
        divisor = where(exponent > bits(divisor) & EXPONENT, from_bits(shape | exponent), divisor)
        return [(less_multiples(rest, divisor) * down).v]

    def long() -> list[Value]:
        return list(b.rounds(0, STEPS, [a.v], step))

    (found,) = b.if_else(is_short.v, lambda: [less_multiples(a, d).v], long, weights=(100, 1))
    result = where(d < math.inf, copysign(Lanes(b, found), x), x)
    return where((a < math.inf) & (d > 0.0), result, where(y.is_nan(), y, math.nan))


def less_multiples(rest: Lanes, divisor: Lanes) -> Lanes:
    """The remainder of a division whose quotient is below 2^21, and may be found one too large or too small."""
    quotient = trunc(rest / divisor)
    first = fma(-quotient, divisor, rest)  # rounded if the quotient is too small
    quotient = quotient + where(first >= divisor, 1.0, where(first < 0.0, -1.0, first.const(0.0)))
    return fma(-quotient, divisor, rest)


log, log2, log10 = logarithm(sum_of_logs, LOG_LEAST), logarithm(sum_of_logs_2), logarithm(sum_of_logs_10)
FORMULAS: dict[str, Callable[..., Lanes]] = {
    "exp": exp, "exp10": exp10, "expm1": expm1, "tanh": tanh, "sinh": sinh, "cosh": cosh,
    "log": log, "log2": log2, "log10": log10, "log1p": log1p, "asinh": asinh, "acosh": acosh, "atanh": atanh,
    "pow": pow, "powi": powi, "cbrt": cbrt, "rcbrt": rcbrt, "hypot": hypot,
    "sin": sin, "cos": cos, "tan": tan, "asin": asin, "acos": acos, "atan": atan,
    "erf": erf, "erfc": erfc, "normcdf": normcdf, "fmod": fmod,
}  # fmt: skip
