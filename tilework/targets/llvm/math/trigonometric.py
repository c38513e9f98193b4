"""Sine, cosine, tangent: x = n * pi/2 + r with |r| <= pi/4, then a polynomial in r chosen by n mod 4.

Up to 2^18 (f32) or 2^27 (f64) the reduction subtracts n times pi/2 in three parts with fused multiply-adds: the
first difference is exact, because n times the first part and x are multiples of the same small power of two. If a
lane is larger, the whole vector takes a slow path: an internal function multiplies the significand by the right 192
bits of 2/pi as integers (Payne and Hanek), so every finite argument is reduced as if with infinite precision.

Inverse trigonometric functions.

atan: the argument is brought to |t| <= tan(pi/8) by atan(x) = pi/2 - atan(1/x) and pi/4 + atan((x - 1) / (x + 1)), each
division kept as a pair. asin: above 1/2 by asin(x) = pi/2 - 2 asin(sqrt((1 - x) / 2)).
"""

import math

from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.math import coefficients as c
from tilework.targets.llvm.math.constants import ASIN, ATAN, COS, HALF_PI, PI, SIN
from tilework.targets.llvm.math.exponential import nearest
from tilework.targets.llvm.math.lanes import (
    Lanes,
    Pair,
    bits,
    copysign,
    exact,
    fast_two_sum,
    fma,
    from_bits,
    into_range,
    narrow,
    pair_where,
    polynomial,
    polynomial_paired,
    rint,
    two_product,
    two_sum,
    where,
    widen,
)
from tilework.targets.llvm.types import f32, f64, i32, i64, i128, struct
from tilework.targets.llvm.values import Value, constant

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
    reflected, reflected_low = fast_two_sum(zero + half_pi[0], -high)
    return Pair(where(swap, reflected, high), where(swap, reflected_low + (half_pi[1] - low), low))


def atan_single(x: Lanes) -> Lanes:
    """Return the arc tangent of an f32: a polynomial of x up to 1, and of 1 / x beyond."""
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
    reflected, reflected_low = fast_two_sum(high.const(pi), -high)
    result = where(left, reflected + (reflected_low + (pi_low - low)), high + low)
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
    reflected = high + (low + (half_pi[1] - 2.0 * (s_low + rest)))
    result = copysign(where(near, reflected, s + rest), x)
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


LIMIT = {f32: 2.0**18, f64: 2.0**27}
TINY = {f32: 2.0**-40, f64: 2.0**-300}  # tan x is x
REDUCED = struct(i64, f64, f64)


def reduce(x: Lanes, *, to_pair: bool = False) -> tuple[Lanes, Lanes, Lanes]:
    """(r, tail, n): x = n * pi/2 + r + tail modulo 2 pi; n is an integer whose low two bits count. f32 has a tail only
    `to_pair`.
    """
    b = x.b
    large = abs(x) >= LIMIT[x.scalar]
    moderate = reduce_moderate(x) if to_pair or x.scalar is f64 else reduce_single(x)

    def slow() -> list[Value]:
        return [where(large, a, b).v for a, b in zip(reduce_huge(x), moderate)]

    r, tail, n = b.if_else(b.any_lane(large.v), slow, lambda: [part.v for part in moderate], weights=(1, 1000))
    return Lanes(b, r), Lanes(b, tail), Lanes(b, n)


def reduce_single(x: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    n, whole = nearest(x, 2.0 / math.pi)
    one, two, three, _ = HALF_PI[x.scalar]
    return fma(n, -three, fma(n, -two, fma(n, -one, x))), x.const(0.0), whole


def reduce_moderate(x: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    n, whole = nearest(x, 2.0 / math.pi)
    one, two, three, _ = HALF_PI[x.scalar]
    r = fma(n, -one, x)
    product, product_low = two_product(n, two)
    high = r - product
    low = ((r - high) - product) - product_low - n * three
    high, low = fast_two_sum(high, low)
    return high, low, whole


def reduce_huge(x: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """Lane by lane through `@tilework.reduce_huge`."""
    b = x.b
    wide = widen(x) if x.scalar is f32 else x
    results = [b.outline("tilework.reduce_huge", REDUCED, [lane], huge_body) for lane in b.lanes(wide.v)]
    columns = [[b.extract_value(result, field) for result in results] for field in range(3)]
    join = (lambda parts: Lanes(b, b.build_vector(parts))) if x.v.type.is_vector else (lambda parts: Lanes(b, parts[0]))
    n, r, tail = (join(column) for column in columns)
    if x.scalar is f32:
        high = narrow(r)
        return high, narrow(r - widen(high)), Lanes(b, b.trunc(n.v, n.v.type.with_scalar(i32)))
    return r, tail, n


def huge_body(b: Builder, args: tuple[Value, ...]) -> Value:
    """Reduce one f64 of magnitude 2^-8 or more. Of a smaller one the result is not used; infinity and NaN give NaN."""
    (x,) = args
    table = b.module.table("tilework.two_over_pi", i64, c.TWO_OVER_PI_BITS, align=8)
    pattern = b.bitcast(x, i64)
    exponent = b.and_(b.lshr(pattern, 52), 2047)
    finite = b.icmp("ne", exponent, 2047)
    significand = b.or_(b.and_(pattern, (1 << 52) - 1), 1 << 52)
    # x = significand * 2^(exponent - 1075); the bits of 2/pi above weight 4 / 2^that change x by multiples of 2 pi
    position = b.smax(b.select(finite, b.sub(exponent, 1075 + 2 - 64), constant(i64, 0)), 0)
    word, shift = b.lshr(position, 6), b.and_(position, 63)
    base = b.gep(table, word, i64)
    words = [b.load(i64, b.gep(base, 8 * k), align=8) for k in range(4)]
    chunk = [b.funnel_left(words[k], words[k + 1], shift) for k in range(3)]
    wide = [b.zext(part, i128) for part in (significand, *chunk)]
    # the lowest 192 bits of significand * chunk; the top two of them count quarter turns
    low = b.mul(wide[0], wide[3])
    middle = b.add(b.mul(wide[0], wide[2]), b.lshr(low, 64))
    top = b.mul(significand, chunk[0])
    upper = b.add(b.shl(b.zext(top, i128), 64), middle)
    turns = b.trunc(b.lshr(b.add(upper, 1 << 125), 126), i64)
    fraction = b.shl(upper, 2)  # signed, in units of 2^-128 quarter turns
    negative = b.icmp("slt", fraction, 0)
    size = b.select(negative, b.neg(fraction), fraction)
    zeros = b.intrinsic("ctlz", i128, size, constant(b.icmp("eq", size, 0).type, 0))
    normal = b.shl(size, b.and_(zeros, 127))
    first = b.and_(b.trunc(b.lshr(normal, 64), i64), ~2047 & (2**64 - 1))
    scale = b.bitcast(b.shl(b.sub(constant(i64, 1023 - 64), b.trunc(zeros, i64)), 52), f64)
    high = Lanes(b, b.fmul(b.uitofp(first, f64), scale))
    rest = Lanes(b, b.fmul(b.uitofp(b.trunc(b.lshr(b.shl(normal, 53), 64), i64), f64), scale)) * 2.0**-53
    product, product_low = two_product(high, c.HALF_PI[0])
    r, tail = fast_two_sum(product, fma(high, c.HALF_PI[1], fma(rest, c.HALF_PI[0], product_low)))
    backwards = Lanes(b, negative) ^ Lanes(b, b.icmp("slt", pattern, 0))
    r, tail = where(backwards, -r, r), where(backwards, -tail, tail)
    turns = b.select(b.icmp("slt", pattern, 0), b.neg(turns), turns)
    fields = [turns, b.select(finite, r.v, constant(f64, math.nan)), b.select(finite, tail.v, constant(f64, 0.0))]
    return b.build_struct(REDUCED, fields)


def sine(r: Lanes, tail: Lanes) -> Lanes:
    """sin(r + tail) for |r| <= pi/4."""
    z = r * r
    if r.scalar is f32:
        return fma(r * z, polynomial(z, c.SINF), r)
    cube = z * r
    rest = fma(cube, polynomial(z, c.SIN), fma(z * -0.5, tail, tail))
    return r + rest


def cosine(r: Lanes, tail: Lanes) -> Lanes:
    """cos(r + tail) for |r| <= pi/4."""
    z = r * r
    if r.scalar is f32:
        return fma(fma(z, polynomial(z, c.COSF), -0.5), z, 1.0)
    half = z * 0.5
    one = 1.0 - half
    return one + (((1.0 - one) - half) + fma(z * z, polynomial(z, c.COS), -(r * tail)))


def sine_pair(r: Lanes, tail: Lanes) -> Pair:
    """sin(r + tail) to about 2^-58 of f64, 2^-27 of f32."""
    z = r * r
    return fast_two_sum(r, fma(z * r, polynomial(z, SIN[r.scalar]), fma(z * -0.5, tail, tail)))


def cosine_pair(r: Lanes, tail: Lanes) -> Pair:
    """cos(r + tail) to about 2^-58 of f64, 2^-27 of f32."""
    square, square_low = two_product(r, r)
    one, one_low = fast_two_sum(r.const(1.0), square * -0.5)
    rest = fma(square * square, polynomial(square, COS[r.scalar]), fma(square_low, -0.5, -(r * tail)))
    return fast_two_sum(one, one_low + rest)


def choose(n: Lanes, first: Lanes, second: Lanes) -> Lanes:
    """`second` for odd n, negated for n mod 4 in (2, 3)."""
    picked = where((n & 1).differs(0), second, first)
    bits = picked.scalar.bits
    sign = (n & 2) << (bits - 2)
    pattern = Lanes(n.b, n.b.bitcast(picked.v, n.v.type))
    return from_bits(pattern ^ sign)


def sin(x: Lanes) -> Lanes:
    r, tail, n = reduce(x)
    return where(x.equal(0.0), x, choose(n, sine(r, tail), cosine(r, tail)))


def cos(x: Lanes) -> Lanes:
    r, tail, n = reduce(x)
    return choose(n + 1, sine(r, tail), cosine(r, tail))


def tan(x: Lanes) -> Lanes:
    """sin / cos as pairs: the errors of three roundings would come close to two units."""
    r, tail, n = reduce(x, to_pair=True)
    sine, cosine = sine_pair(r, tail), cosine_pair(r, tail)
    odd = (n & 1).differs(0)
    high, low = pair_where(odd, -cosine, sine) / pair_where(odd, sine, cosine)
    return where(x.equal(0.0), x, where(abs(x) < TINY[x.scalar], x, high + low))


def reduce_half_turns(x: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """(r, tail, n) with pi x = n * pi/2 + r + tail modulo 2 pi."""
    pi, pi_low = PI[x.scalar]
    y = fma(rint(x * 0.5), -2.0, x)  # exact
    n, whole = nearest(y, 2.0)
    t = fma(n, -0.5, y)
    high, low = two_product(t, pi)
    high, low = fast_two_sum(high, fma(t, pi_low, low))
    return high, low, whole


def with_tail(r: Lanes, tail: Lanes) -> tuple[Lanes, Lanes]:
    """sin and cos of r + tail, where `sine` and `cosine` of f32 have none."""
    if r.scalar is f32:
        return sine_pair(r, tail).hi, cosine_pair(r, tail).hi
    return sine(r, tail), cosine(r, tail)


def sinpi(x: Lanes) -> Lanes:
    r, tail, n = reduce_half_turns(x)
    result = choose(n, *with_tail(r, tail))
    exact = where(x.equal(rint(x)), x * 0.0, result)  # integers, infinity (NaN)
    return where(abs(x) < math.inf, exact, math.nan)


def cospi(x: Lanes) -> Lanes:
    r, tail, n = reduce_half_turns(x)
    result = choose(n + 1, *with_tail(r, tail))
    return where(abs(x) < math.inf, result + 0.0, math.nan)  # zeros are +0
