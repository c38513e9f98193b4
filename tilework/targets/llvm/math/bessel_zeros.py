"""J_n and Y_n, n >= 2, where pairs do not suffice: close to a zero, in fixed point.

Of F_n(x) close to a zero the leading bits cancel. A float that is unusually near to it leaves less than 2^-60 of the
size of the oscillation, and 54 bits of that are wanted. So F_0, F_1 and the recurrence F_{k+1} = 2k/x F_k - F_{k-1} are
made to about n 2^-180 of that size:

    x < 64     the Taylor series around the middle of [2^e, 1.5 2^e) or [1.5 2^e, 2^(e+1)), where J0, J1, Y0, Y1 are
               tabulated; its terms follow from these by J0' = -J1, J1' = J0 - J1/x and the same of Y
    beyond     Hankel's series, in units of sqrt(2/(pi x)); x is reduced as if with infinite precision

All zeros of order n >= 2 are above n, and those of Y_2 above 3.3, so x >= 3 and no number here is large.
"""

from collections.abc import Callable
from itertools import pairwise

from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.math import coefficients as c
from tilework.targets.llvm.math import zeros
from tilework.targets.llvm.math.fixed import (
    FIXED,
    ONE,
    POINT,
    fixed_inverse,
    fixed_number,
    fixed_table,
    from_float,
    reciprocal,
    scaled,
    times,
    to_pair,
)
from tilework.targets.llvm.math.lanes import Lanes, Pair, bits, constant_pair, from_bits, pair_where, where
from tilework.targets.llvm.types import f64, i64, struct
from tilework.targets.llvm.values import Value, constant

FAR = 64.0
TERMS = 100  # 100! / 128^100 is 2^-175, 5^-100 is 2^-232
ARC_TERMS = 45  # (pi/4)^46 / 46! is 2^-207
FIRST_CENTRE = 1024 << 1 | 1  # the upper 13 bits of 3.0
BOTH = struct(FIXED, FIXED)


def close_to_zero(b: Builder, is_second: bool, n: Value, x: Lanes) -> Lanes:
    """Y_n (`is_second`) or J_n of one x next to a zero."""
    args = [constant(i64, int(is_second)), n, x.v]
    return Lanes(b, b.outline("tilework.bessel_close_to_zero", f64, args, close_body))


def close_body(b: Builder, args: tuple[Value, ...]) -> Value:
    second, n, x = Lanes(b, args[0]), args[1], Lanes(b, args[2])
    near = x < FAR
    start = b.if_else(near.v, lambda: around_centre(second, x), lambda: around_infinity(second, x))
    step = reciprocal(x) << 1

    def climb(index: Value, carried: tuple[Value, ...]) -> list[Value]:
        before, here = (Lanes(b, value) for value in carried)
        above = times(scaled(step, Lanes(b, index)), here) - before
        return [here.v, above.v]

    value, scale = to_pair(Lanes(b, b.rounds(constant(i64, 1), n, list(start), climb)[1]))
    root = (constant_pair(x, zeros.EIGHTH_PI) * x).root()
    one = Pair(x.const(1.0), x.const(0.0))
    size = pair_where(near, one, one * 0.5 / root)
    high, low = value * size
    return ((high + low) * scale).v


def around_centre(second: Lanes, x: Lanes) -> list[Value]:
    """F_0, F_1 of 3 <= x < 64: with t = x - c, s = t/c and the k-th terms p_k, q_k of the two series,

    k p_k = -t q_{k-1}    k q_k = t p_{k-1} + s (t p_{k-2} - k q_{k-1})
    """
    b, place = x.b, bits(x) >> 51
    centre = from_bits((place << 51) | (1 << 50))
    row = (place - FIRST_CENTRE) * 4 + second * 2
    p, q = (fixed_table(b, "tilework.bessel_centres", zeros.BESSEL_CENTRES, row + order) for order in (0, 1))
    t = from_float(x - centre)
    s = times(t, reciprocal(centre))
    start = [fixed_number(b, 0), p, q, p, q]

    def term(index: Value, carried: tuple[Value, ...]) -> list[Value]:
        before, p, q, zeroth, first = (Lanes(b, value) for value in carried)
        k = Lanes(b, index)
        inverse, here = fixed_inverse(k, TERMS), times(t, p)
        rest = times(s, before - scaled(q, k))
        p, q = fixed_number(b, 0) - times(times(t, q), inverse), times(here + rest, inverse)
        return [value.v for value in (here, p, q, zeroth + p, first + q)]

    return list(b.rounds(1, TERMS + 1, [value.v for value in start], term)[3:])


def around_infinity(second: Lanes, x: Lanes) -> list[Value]:
    """F_0, F_1 of x >= 64, divided by sqrt(2/(pi x)).

    With P + iQ from Hankel's series and w = x - pi/4: Y_0 = P sin w + Q cos w, Y_1 the same of its P, Q and w - pi/2;
    J is a quarter turn on.
    """
    b = x.b
    turns, angle = reduced(x)
    cosine, sine = spiral(b, ARC_TERMS, lambda k: times(angle, fixed_inverse(k, TERMS)))
    turns = turns + 1 - second
    is_odd, is_minus = (turns & 1).differs(0), (turns & 2).differs(0)
    cosine, sine = where(is_odd, -sine, cosine), where(is_odd, cosine, sine)
    cosine, sine = where(is_minus, -cosine, cosine), where(is_minus, -sine, sine)
    eighth = reciprocal(x) >> 3
    (p0, q0), (p1, q1) = hankel(0, eighth), hankel(1, eighth)
    zeroth, first = times(p0, sine) + times(q0, cosine), times(q1, sine) - times(p1, cosine)
    return [zeroth.v, first.v]


def hankel(order: int, eighth: Lanes) -> tuple[Lanes, Lanes]:
    """P and Q: the factors are i (4 n^2 - (2k-1)^2) / (8 k x)."""

    def body(b: Builder, args: tuple[Value, ...]) -> Value:
        square, eighth = (Lanes(b, arg) for arg in args)

        def factor(k: Lanes) -> Lanes:
            odd = k + k - 1
            return times(scaled(eighth, square - odd * odd), fixed_inverse(k, TERMS))

        return b.build_struct(BOTH, [part.v for part in spiral(b, TERMS, factor)])

    b = eighth.b
    made = b.outline("tilework.bessel_hankel", BOTH, [constant(i64, 4 * order * order), eighth.v], body)
    return Lanes(b, b.extract_value(made, 0)), Lanes(b, b.extract_value(made, 1))


def spiral(b: Builder, count: int, factor: Callable[[Lanes], Lanes]) -> tuple[Lanes, Lanes]:
    """The real and imaginary part of 1 + i f(1) (1 + i f(2) (1 + ...)), from the inside."""
    one, zero = fixed_number(b, ONE), fixed_number(b, 0)

    def turn(index: Value, carried: tuple[Value, ...]) -> list[Value]:
        real, imaginary = (Lanes(b, value) for value in carried)
        f = factor(count - Lanes(b, index))
        return [(one - times(f, imaginary)).v, times(f, real).v]

    real, imaginary = (Lanes(b, value) for value in b.rounds(0, count, [one.v, zero.v], turn))
    return real, imaginary


def reduced(x: Lanes) -> tuple[Lanes, Lanes]:
    """(n, r) with x - pi/4 = n pi/2 + r modulo 2 pi, |r| <= pi/4; as `trigonometric.reduced`, with 64 bits more."""
    b = x.b
    table = b.module.table("tilework.two_over_pi", i64, c.TWO_OVER_PI_BITS, align=8)
    pattern = bits(x)
    significand = pattern & ((1 << 52) - 1) | (1 << 52)
    position = (pattern >> 52) - (1075 + 2 - 64)
    base, shift = b.gep(table, (position >> 6).v, i64), (position & 63).v
    words = [b.load(i64, b.gep(base, 8 * k), align=8) for k in range(5)]
    chunk = fixed_number(b, 0)
    for high, low in pairwise(words):
        chunk = (chunk << 64) | Lanes(b, b.zext(b.funnel_left(high, low, shift), FIXED))
    product = scaled(chunk, significand)  # the top two bits count quarter turns
    turns = Lanes(b, b.trunc(product.logical_shift(254).v, i64))
    fraction = (product << 2).logical_shift(256 - POINT)
    return turns, times(fraction - (ONE >> 1), fixed_number(b, zeros.HALF_PI_FIXED))
