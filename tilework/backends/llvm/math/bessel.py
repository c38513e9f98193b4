"""Bessel functions, lane by lane in an internal function of f64.

Below 25: Miller's backward recurrence for all J_k at once, normalised by J_0 + 2 J_2 + 2 J_4 + ... = 1; Y_0 and Y_1
from Neumann's series in the J_k. Above: Hankel's asymptotic series. Errors are about 1e-15 absolute (relative to
the envelope sqrt(2 / (pi x))), not relative near the zeros.
"""

import math
from collections.abc import Callable

from tilework.backends.llvm.builder import Builder
from tilework.backends.llvm.math import coefficients as c
from tilework.backends.llvm.math.exponential import exp_parts
from tilework.backends.llvm.math.lanes import (
    Lanes,
    Pair,
    copysign,
    elementwise_calls,
    fast_two_sum,
    pair_quotient,
    pair_root,
    pair_times,
    polynomial,
    scale,
    smaller,
    sqrt,
    two_product,
    two_sum,
    where,
)
from tilework.backends.llvm.math.logarithm import log
from tilework.backends.llvm.math.trigonometric import cos, sin
from tilework.backends.llvm.types import f64, i32, i64, struct
from tilework.backends.llvm.values import Value, constant

FOUR = struct(f64, f64, f64, f64)
EULER = 0.5772156649015329
SMALL = 1e-4
SWITCH = 25.0
TERMS = 72


def hankel(order: int) -> tuple[list[float], list[float]]:
    """Coefficients in 1/x^2 of P and x Q."""
    terms, value = [], 1.0
    for k in range(20):
        terms.append(value)
        value *= (4 * order * order - (2 * k + 1) ** 2) / ((k + 1) * 8)
    return [(-1) ** k * terms[2 * k] for k in range(9)], [(-1) ** k * terms[2 * k + 1] for k in range(9)]


def four_body(b: Builder, args: tuple[Value, ...]) -> Value:
    """(J0, J1, Y0, Y1) of one x >= 0."""
    x = Lanes(b, args[0])
    values = b.if_else((x < SWITCH).v, lambda: near(x), lambda: far(x))
    return b.build_struct(FOUR, values)


def near(x: Lanes) -> list[Value]:
    b = x.b
    y = where(x < SMALL, SMALL, x)
    zero = x.const(0.0)
    start = b.select((x < 2.0).v, constant(i64, 24), constant(i64, TERMS))
    inverse = 2.0 / y
    # carried: f_{k+1}, f_k, the sum for the norm, the sums of Y0 and Y1; k runs down from an even start
    first = [zero.v, x.const(1e-200).v, zero.v, zero.v, zero.v]
    with b.loop_carrying(constant(i64, 0), start, 1, first) as loop:
        above, here, norm, sum0, sum1 = (Lanes(b, value) for value in loop.carried)
        place = Lanes(b, b.sub(start, loop.index))
        k = Lanes(b, b.sitofp(place.v, f64))
        half = k * 0.5
        even = (place & 1).equal(0)
        sign = where((place & 2).equal(0), 1.0, zero.const(-1.0))
        norm = where(even, norm + here, norm)
        sum0 = where(even, sum0 + sign * here / half, sum0)
        # J_{1+2j} with j = (k - 1) / 2: (-1)^j (1 + 2j) / (j (j + 1))
        j = (k - 1.0) * 0.5
        wanted = ~even & (place > 1)
        sum1 = where(wanted, sum1 + sign * k * here / where(wanted, j * (j + 1.0), 1.0), sum1)
        below = k * inverse * here - above
        loop.next([value.v for value in (here, below, norm, sum0, sum1)])
    above, here, norm, sum0, sum1 = (Lanes(b, value) for value in loop.results)
    total = here + 2.0 * norm
    j0, j1, sum0, sum1 = here / total, above / total, sum0 / total, sum1 / total
    tiny = x < SMALL
    square = x * x
    j0 = where(tiny, 1.0 - square * 0.25, j0)
    j1 = where(tiny, x * 0.5 * (1.0 - square * 0.125), j1)
    sum0 = where(tiny, square * -0.125, sum0)
    sum1 = where(tiny, x * square * (-3.0 / 96.0), sum1)
    logarithm = log(x * 0.5) + EULER
    y0 = (2.0 / math.pi) * (logarithm * j0 - 2.0 * sum0)
    y1 = (2.0 / math.pi) * ((logarithm - 1.0) * j1 - j0 / x - sum1)
    pole = x.equal(0.0)
    y0, y1 = where(pole, -math.inf, y0), where(pole, -math.inf, y1)
    return [part.v for part in (j0, j1, y0, y1)]


def far(x: Lanes) -> list[Value]:
    inverse = 1.0 / x
    z = inverse * inverse
    size = sqrt(inverse) * math.sqrt(1.0 / math.pi)
    sine, cosine = sin(x), cos(x)
    plus, minus = cosine + sine, sine - cosine  # sqrt(2) times cos and sin of x - pi/4
    (p0, q0), (p1, q1) = (tuple(polynomial(z, part) for part in hankel(order)) for order in (0, 1))
    q0, q1 = q0 * inverse, q1 * inverse
    j0, y0 = size * (p0 * plus - q0 * minus), size * (p0 * minus + q0 * plus)
    j1, y1 = size * (p1 * minus + q1 * plus), size * (q1 * minus - p1 * plus)
    ends = x.equal(math.inf)
    return [where(ends, 0.0, part).v for part in (j0, j1, y0, y1)]


def picked(field: int) -> Callable[[Builder, tuple[Value, ...]], Value]:
    def body(b: Builder, args: tuple[Value, ...]) -> Value:
        return b.extract_value(b.outline("tilework.bessel", FOUR, args, four_body), field)

    return body


def j0(x: Lanes) -> Lanes:
    return Lanes(x.b, elementwise_calls(x.b, "tilework.j0", f64, [abs(x).v], picked(0)))


def j1(x: Lanes) -> Lanes:
    value = Lanes(x.b, elementwise_calls(x.b, "tilework.j1", f64, [abs(x).v], picked(1)))
    return where(x < 0.0, -value, value)


def y0(x: Lanes) -> Lanes:
    value = Lanes(x.b, elementwise_calls(x.b, "tilework.y0", f64, [abs(x).v], picked(2)))
    return where(x < 0.0, math.nan, value)


def y1(x: Lanes) -> Lanes:
    value = Lanes(x.b, elementwise_calls(x.b, "tilework.y1", f64, [abs(x).v], picked(3)))
    return where(x < 0.0, math.nan, value)


def upwards(b: Builder, n: Value, x: Lanes, zeroth: Value, first: Value) -> Lanes:
    """F_n by F_{k+1} = 2k/x F_k - F_{k-1}."""
    inverse = 2.0 / x
    with b.loop_carrying(constant(i32, 1), n, 1, [zeroth, first]) as loop:
        before, here = (Lanes(b, value) for value in loop.carried)
        k = Lanes(b, b.sitofp(loop.index, f64))
        loop.next([here.v, (k * inverse * here - before).v])
    return where(Lanes(b, b.icmp("eq", n, 0)), Lanes(b, zeroth), Lanes(b, loop.results[1]))


def yn_body(b: Builder, args: tuple[Value, ...]) -> Value:
    n, x = args
    four = b.outline("tilework.bessel", FOUR, [x], four_body)
    result = upwards(b, n, Lanes(b, x), b.extract_value(four, 2), b.extract_value(four, 3))
    return where(result.is_nan() & (Lanes(b, x) < 1.0), -math.inf, result).v


def jn_body(b: Builder, args: tuple[Value, ...]) -> Value:
    n, x = args
    xs = Lanes(b, x)
    four = b.outline("tilework.bessel", FOUR, [x], four_body)
    zeroth, first = b.extract_value(four, 0), b.extract_value(four, 1)
    forward = (Lanes(b, b.sitofp(n, f64)) <= xs) | Lanes(b, b.icmp("sle", n, 1))

    def down() -> list[Value]:
        """Backward from far above n, scaled down when it grows, then matched with the larger of J_0 and J_1."""
        start = b.add(b.add(n, 40), b.fptosi_sat(b.sqrt(b.fmul(b.sitofp(n, f64), 40.0)), i32))
        inverse = 2.0 / where(xs.equal(0.0), 1.0, xs)
        zero = xs.const(0.0)
        with b.loop_carrying(constant(i32, 0), start, 1, [zero.v, xs.const(1e-200).v, zero.v]) as loop:
            above, here, wanted = (Lanes(b, value) for value in loop.carried)
            place = b.sub(start, loop.index)
            wanted = where(Lanes(b, b.icmp("eq", place, n)), here, wanted)
            below = Lanes(b, b.sitofp(place, f64)) * inverse * here - above
            factor = where(abs(below) > 1e200, 1e-200, zero.const(1.0))
            loop.next([(here * factor).v, (below * factor).v, (wanted * factor).v])
        one, nought, wanted = (Lanes(b, value) for value in loop.results)
        by_zero = wanted / nought * Lanes(b, zeroth)
        by_one = wanted / one * Lanes(b, first)
        value = where(abs(nought) > abs(one), by_zero, by_one)
        return [where(xs.equal(0.0), 0.0, value).v]

    return b.if_else(forward.v, lambda: [upwards(b, n, xs, zeroth, first).v], down)[0]


def of_order(name: str, body: Callable[..., Value], is_second: bool) -> Callable[[Lanes, Lanes], Lanes]:
    """jn, yn: negative orders and arguments by symmetry."""

    def function(n: Lanes, x: Lanes) -> Lanes:
        order = abs(n)
        value = Lanes(x.b, elementwise_calls(x.b, f"tilework.{name}", f64, [order.v, abs(x).v], body))
        odd = (n & 1).differs(0)
        value = where(odd & (n < 0), -value, value)
        if is_second:
            return where(x < 0.0, math.nan, value)
        return where(odd & (x < 0.0), -value, value)

    return function


jn, yn = of_order("jn", jn_body, False), of_order("yn", yn_body, True)


def modified_body(order: int) -> Callable[[Builder, tuple[Value, ...]], Value]:
    """I_0 or I_1 of one x >= 0: the power series, all of whose terms are positive, or the asymptotic one."""

    def body(b: Builder, args: tuple[Value, ...]) -> Value:
        x = Lanes(b, args[0])

        def series() -> list[Value]:
            """1 + z/(1(1+n)) (1 + z/(2(2+n)) (1 + ...)) with z = x^2/4, from the inside, as a pair."""
            square, square_low = two_product(x * 0.5, x * 0.5)
            one, zero = x.const(1.0), x.const(0.0)
            with b.loop_carrying(constant(i64, 0), constant(i64, 60), 1, [one.v, zero.v]) as loop:
                total = Pair(*(Lanes(b, value) for value in loop.carried))
                k = Lanes(b, b.sitofp(b.sub(constant(i64, 60), loop.index), f64))
                grown = pair_times(total, Pair(square, square_low))
                high, low = pair_quotient(grown, Pair(k * (k + float(order)), zero))
                first, error = two_sum(high, 1.0)
                loop.next([part.v for part in fast_two_sum(first, error + low)])
            high, low = (Lanes(b, value) for value in loop.results)
            return [((high + low) * (0.5 * x) if order else high + low).v]

        def asymptotic() -> list[Value]:
            factors, value = [], 1.0
            for k in range(26):
                factors.append(value)
                value *= -(4 * order * order - (2 * k + 1) ** 2) / ((k + 1) * 8)
            bounded = smaller(x, 720.0)
            high, low, n = exp_parts(bounded)
            zero = x.const(0.0)
            around = pair_times(Pair(x, zero), Pair(x.const(2.0 * c.PI[0]), x.const(2.0 * c.PI[1])))
            inverse = 1.0 / x
            lead, lead_low = fast_two_sum(x.const(1.0), inverse * polynomial(inverse, factors[1:]))
            rest = pair_quotient(Pair(lead, lead_low), pair_root(around))
            value = pair_times(Pair(high, low), rest)
            return [(scale(value.hi + value.lo, n - 10) * 2.0**10).v]

        return b.if_else((x < 25.0).v, series, asymptotic)[0]

    return body


def cyl_bessel_i0(x: Lanes) -> Lanes:
    return Lanes(x.b, elementwise_calls(x.b, "tilework.i0", f64, [abs(x).v], modified_body(0)))


def cyl_bessel_i1(x: Lanes) -> Lanes:
    return copysign(Lanes(x.b, elementwise_calls(x.b, "tilework.i1", f64, [abs(x).v], modified_body(1))), x)
