"""Bessel functions, lane by lane in internal functions of f64, as pairs.

J0, J1, Y0, Y1 are `@tilework.bessel(kind, x)`, which keeps about 95 bits, near their zeros too:

    x < 1.5 (J), 3 (Y)   the power series of J; Y = 2/pi J log(x/z) + (x^2 - z^2) times a polynomial, z its first zero
    x < 25               the Taylor series around the nearest zero or extremum, which is tabulated in three parts; all
                         its terms follow from the first by Bessel's equation
    beyond               sqrt(2/(pi x)) M(x) cos(x - pi/4 + p(x)), the phase reduced as if with infinite precision

J_n and Y_n of higher order come from these by recurrence in pairs, upwards or (J_n, n > x) downwards. Upwards, the
error is about n 2^-104 of the size of the oscillation, so next to a zero they are computed once more: see
`bessel_zeros.py`.

All are within one unit.
"""

import math
from collections.abc import Callable
from fractions import Fraction

from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.math import coefficients as c
from tilework.targets.llvm.math import zeros
from tilework.targets.llvm.math.bessel_zeros import close_to_zero
from tilework.targets.llvm.math.exponential import exp_parts
from tilework.targets.llvm.math.lanes import (
    Lanes,
    Pair,
    clamp,
    constant_pair,
    copysign,
    elementwise_calls,
    exact,
    fast_two_sum,
    fma,
    larger,
    less_parts,
    pair_where,
    polynomial,
    rint,
    scale,
    smaller,
    sqrt,
    to_float,
    to_int,
    two_product,
    two_sum,
    where,
)
from tilework.targets.llvm.math.logarithm import log1p_pair, log2, log_pair
from tilework.targets.llvm.math.trigonometric import REDUCED, huge_body
from tilework.targets.llvm.types import f32, f64, i64, struct
from tilework.targets.llvm.values import Value, constant

PAIR = struct(f64, f64)
J0, J1, Y0, Y1 = range(4)  # the kinds
NEAR = 25.0
FIRST, ROWS, ROW = 2, 15, 5  # of `zeros.BESSEL_NODES`: quarter turns before the first row, rows of a kind, its numbers
DEGREE = 18
TERMS = 60
CLOSE = 2.0**-30  # J_n, Y_n below n times this and their neighbour are next to a zero


def cylinder(b: Builder, kind: int, x: Value) -> Pair:
    """J0, J1, Y0 or Y1 of one x >= 0."""
    made = b.outline("tilework.bessel", PAIR, [constant(i64, kind), x], cylinder_body)
    return Pair(*(Lanes(b, b.extract_value(made, field)) for field in (0, 1)))


def cylinder_body(b: Builder, args: tuple[Value, ...]) -> Value:
    kind, x = (Lanes(b, arg) for arg in args)
    order, second = kind & 1, kind >= Y0

    def ascending() -> list[Value]:
        return list(b.if_else(second.v, lambda: second_origin(order, x), lambda: values(first_origin(order, x))))

    def others() -> list[Value]:
        return list(b.if_else((x < NEAR).v, lambda: node(kind, x), lambda: far(kind, x)))

    close = x < where(second, 3.0, x.const(1.5))
    high, low = (Lanes(b, value) for value in b.if_else(close.v, ascending, others))
    ends = x.equal(math.inf)
    return b.build_struct(PAIR, [where(ends, 0.0, high).v, where(ends, 0.0, low).v])


def values(pair: Pair) -> list[Value]:
    return [pair.hi.v, pair.lo.v]


def nested(z: Pair, count: Value, divisor: Callable[[Lanes], Lanes]) -> Pair:
    """1 + z/d(1) (1 + z/d(2) (1 + ...)), from the inside."""
    b = z.hi.b

    def step(index: Value, carried: tuple[Value, ...]) -> list[Value]:
        total = pairs(b, carried)[0]
        k = to_float(Lanes(b, b.sub(count, index)))
        grown = total * z / exact(divisor(k))
        first, error = two_sum(grown.hi, 1.0)
        return values(fast_two_sum(first, error + grown.lo))

    return pairs(b, b.rounds(constant(i64, 0), count, values(exact(z.hi.const(1.0))), step))[0]


def power_series(z: Pair, order: Lanes) -> Pair:
    """J_n (z = -x^2/4) or I_n (z = x^2/4), without the factor (x/2)^n / n!, for n = 0, 1 and x <= 25."""
    count = to_int(sqrt(abs(z.hi)) * 4.0) + 16
    return nested(z, count.v, lambda k: k * (k + order))


def first_origin(order: Lanes, x: Lanes) -> Pair:
    """J0, J1 of 0 <= x <= 3."""
    half = x * 0.5
    total = power_series(-two_product(half, half), to_float(order))
    return pair_where(order.differs(0), total * half, total)


def second_origin(order: Lanes, x: Lanes) -> list[Value]:
    """Y0, Y1 of 0 <= x <= 3."""
    is_one = order.differs(0)
    *place, logarithm, logarithm_low = (
        where(is_one, one, x.const(nought)) for nought, one in zip(zeros.Y_ZEROS[:5], zeros.Y_ZEROS[5:])
    )
    zero, away = Pair(place[0], place[1]), less_parts(x, place)
    ratio = pair_where(x < place[0] * 0.5, log_pair(x) + Pair(-logarithm, -logarithm_low), log1p_pair(*away / zero))
    singular = first_origin(order, x) * ratio * constant_pair(x, zeros.TWO_OVER_PI)
    squares = away * (zero + exact(x))
    u = two_product(x, x) / exact(x.const(9.0))
    rest = squares * tabulated(order + 4, u)
    rest = pair_where(is_one, rest / exact(x), rest)
    high, low = singular + rest
    # -2/(pi x), which may be infinite
    top, top_low = zeros.TWO_OVER_PI
    pole = -top / x
    is_tiny = is_one & (x < 2.0**-60)
    high = where(x.equal(0.0), -math.inf, where(is_tiny, pole, high))
    low = where(is_tiny, (fma(-pole, x, -top) - top_low) / x, low)
    return [high.v, where(abs(high) < math.inf, low, 0.0).v]


def tabulated(row: Lanes, u: Pair) -> Pair:
    """A polynomial of `zeros.BESSEL_POLYNOMIALS`, by Horner's rule."""
    b = u.hi.b
    table = b.module.table("tilework.bessel_polynomials", f64, zeros.BESSEL_POLYNOMIALS, align=8)
    last = b.gep(table, (row * (2 * DEGREE + 2) + 2 * DEGREE).v, f64)

    def horner(index: Value, carried: tuple[Value, ...]) -> list[Value]:
        total = pairs(b, carried)[0]
        coefficient = loaded_pair(b, b.gep(last, b.mul(index, -16)))
        return values(coefficient + total * u)

    return pairs(b, b.rounds(1, DEGREE + 1, values(loaded_pair(b, last)), horner))[0]


def loaded_pair(b: Builder, address: Value) -> Pair:
    return Pair(*(Lanes(b, b.load(f64, b.gep(address, offset), align=8)) for offset in (0, 8)))


def factorials() -> list[float]:
    """1/k! in two parts."""
    listed = []
    for k in range(TERMS + 2):
        inverse = Fraction(1, math.factorial(k))
        high = float(inverse)
        listed += [high, float(inverse - Fraction(high))]
    return listed


def node(kind: Lanes, x: Lanes) -> list[Value]:
    """Around the nearest zero or extremum z: with t = x - z and s = t/z, the terms d_k = f^(k)(z) t^k obey

    d_{k+2} + (2k+1) s d_{k+1} + ((k^2 - n^2) s^2 + t^2) d_k + 2k s t^2 d_{k-1} + k (k-1) s^2 t^2 d_{k-2} = 0

    and f(x) is the sum of d_k / k!. At a zero all are divided by t, which is multiplied back at the end.
    """
    b, order = x.b, kind & 1
    turns = rint(x * (2.0 / math.pi) + where(kind >= Y0, -0.5, x.const(0.5)))
    index = to_int(larger(turns, float(FIRST)))
    table = b.module.table("tilework.bessel_nodes", f64, zeros.BESSEL_NODES, align=8)
    row = b.gep(table, ((kind * ROWS + index - FIRST) * ROW).v, f64)
    *place, lead, lead_low = (Lanes(b, b.load(f64, b.gep(row, 8 * field), align=8)) for field in range(ROW))
    inverses = b.module.table("tilework.inverse_factorials", f64, factorials(), align=8)
    t = less_parts(x, place)
    s = t / Pair(place[0], place[1])
    t_square, s_square = t * t, s * s
    third, fourth = s * t_square, s_square * t_square
    is_zero = ((index ^ order) & 1).equal(0)
    zero, first, square = exact(x.const(0.0)), Pair(lead, lead_low), to_float(order)
    start = [zero, zero, pair_where(is_zero, zero, first), pair_where(is_zero, first, zero), zero]
    # t^k / k! and, where there is a pole at 0, s^k are to be less than 2^-105
    count = to_int(smaller(18.0 + 14.0 * abs(t.hi) + where(kind >= Y0, 100.0, x.const(0.0)) * abs(s.hi), float(TERMS)))

    def term(index: Value, carried: tuple[Value, ...]) -> list[Value]:
        d0, d1, d2, d3, total = pairs(b, carried)
        k = to_float(Lanes(b, index))
        low = fourth * (k * (k - 1.0)) * d0
        low = third * (k + k) * d1 + low
        low = (s_square * (k * k - square) + t_square) * d2 + low
        d4 = -(s * (k + k + 1.0) * d3 + low)
        inverse = loaded_pair(b, b.gep(inverses, b.add(b.shl(index, 4), 32)))
        total = total + d4 * inverse
        return [part for d in (d1, d2, d3, d4, total) for part in values(d)]

    terms = b.rounds(constant(i64, 0), count.v, [part for d in start for part in values(d)], term)
    total = first + pairs(b, terms)[4]
    return values(pair_where(is_zero, total * t, total))


def pairs(b: Builder, parts: tuple[Value, ...] | list[Value]) -> list[Pair]:
    lanes = [Lanes(b, part) for part in parts]
    return [Pair(*both) for both in zip(lanes[::2], lanes[1::2])]


def far(kind: Lanes, x: Lanes) -> list[Value]:
    """x >= 25, up to the largest float; NaN stays."""
    b, order = x.b, kind & 1
    reduced = b.outline("tilework.reduce_huge.eighth", REDUCED, [x.v], huge_body(1))
    turns, angle, tail = (Lanes(b, b.extract_value(reduced, field)) for field in range(3))
    inverse = exact(x.const(NEAR)) / exact(x)
    u = inverse * inverse
    angle = Pair(angle, tail) + tabulated(order * 2, u) * inverse
    turns = turns - order + where(kind >= Y0, 0, kind.const(1))  # the cosine is a sine a quarter turn on
    is_odd, is_minus = (turns & 1).differs(0), (turns & 2).differs(0)
    side = where(is_odd, -1.0, x.const(1.0))
    wave = nested(-(angle * angle), constant(i64, 15), lambda k: (k + k) * (k + k + side))
    wave = pair_where(is_odd, wave, wave * angle)
    wave = pair_where(is_minus, -wave, wave)
    root = (constant_pair(x, zeros.EIGHTH_PI) * x).root()
    size = tabulated(order * 2 + 1, u) * 0.5 / root
    return values(size * wave)


def of_kind(name: str, kind: int) -> Callable[[Lanes], Lanes]:
    """j0, j1, y0, y1 of lanes of any sign."""

    def body(b: Builder, args: tuple[Value, ...]) -> Value:
        return cylinder(b, kind, args[0]).rounded().v

    def function(x: Lanes) -> Lanes:
        value = Lanes(x.b, elementwise_calls(x.b, f"tilework.{name}", f64, [abs(x).v], body))
        if kind in (Y0, Y1):
            return where(x < 0.0, math.nan, value)
        return signed_like(value, x) if kind == J1 else value

    return function


def signed_like(value: Lanes, x: Lanes) -> Lanes:
    """`value`, negated where x is negative or -0."""
    return where(copysign(x.const(1.0), x) < 0.0, -value, value)


def upwards(b: Builder, is_second: bool, n: Value, x: Lanes, zeroth: Pair, first: Pair) -> Lanes:
    """F_n by F_{k+1} = 2k/x F_k - F_{k-1}."""
    inverse = exact(x.const(2.0)) / exact(x)

    def climb(index: Value, carried: tuple[Value, ...]) -> list[Value]:
        before, here = pairs(b, carried)
        k = to_float(Lanes(b, index))
        above = inverse * k * here - before
        return [*values(here), *values(above)]

    before, here = pairs(b, b.rounds(constant(i64, 1), n, [*values(zeroth), *values(first)], climb))
    order = Lanes(b, n)
    result = pair_where(order.equal(0), zeroth, here).rounded()
    # F_n' = F_{n-1} at a zero, so F_{n-1} is as large as the oscillation there
    is_close = abs(here.hi) < abs(before.hi) * smaller(to_float(order) * CLOSE, 0.25)
    again = b.if_else(
        (is_close & (order > 1)).v, lambda: [close_to_zero(b, is_second, n, x).v], lambda: [result.v], weights=(1, 1000)
    )
    return Lanes(b, again[0])


def is_beyond(b: Builder, n: Value, x: Lanes) -> Lanes:
    """J_n(x), about (e x / 2n)^n, is less than 2^-1100, and Y_n(x) is infinite."""
    order = Lanes(b, b.sitofp(n, f64))
    return Lanes(b, b.icmp("sgt", n, 1)) & (order * log2(x / order * (math.e / 2)) < -1100.0)


def yn_body(b: Builder, args: tuple[Value, ...]) -> Value:
    n, x = args[0], Lanes(b, args[1])
    beyond = is_beyond(b, n, x)
    steps = b.select((~beyond & (x < math.inf)).v, n, constant(i64, 1))
    result = upwards(b, True, steps, x, cylinder(b, Y0, x.v), cylinder(b, Y1, x.v))
    overflown = beyond | (result.is_nan() & (x < math.inf))
    return where(x.equal(math.inf), 0.0, where(overflown, -math.inf, result)).v


def jn_body(b: Builder, args: tuple[Value, ...]) -> Value:
    n, x = args[0], Lanes(b, args[1])
    zeroth, first = cylinder(b, J0, x.v), cylinder(b, J1, x.v)
    is_forward = ~(Lanes(b, b.sitofp(n, f64)) > x) | Lanes(b, b.icmp("sle", n, 1))  # NaN too

    def down() -> list[Value]:
        beyond = is_beyond(b, n, x)
        order = b.select(beyond.v, constant(i64, 2), n)
        return [where(beyond, 0.0, downwards(b, order, x, zeroth, first)).v]

    def up() -> list[Value]:
        steps = b.select((x < math.inf).v, n, constant(i64, 1))
        return [upwards(b, False, steps, x, zeroth, first).v]

    value = b.if_else(is_forward.v, up, down)[0]
    return where(x.equal(math.inf), 0.0, Lanes(b, value)).v


def downwards(b: Builder, n: Value, x: Lanes, zeroth: Pair, first: Pair) -> Lanes:
    """J_n for n > x: the recurrence from far above n, scaled when it grows, matched with the larger of J_0 and J_1."""
    start = b.add(b.add(n, 40), b.fptosi_sat(b.sqrt(b.fmul(b.sitofp(n, f64), 40.0)), i64))
    inverse = exact(x.const(2.0)) / exact(x)
    zero, one = exact(x.const(0.0)), exact(x.const(1.0))
    initial = [part for pair in (zero, one, one) for part in values(pair)]

    def descend(index: Value, carried: tuple[Value, ...]) -> list[Value]:
        above, here, wanted = pairs(b, carried[:6])
        place = Lanes(b, b.sub(start, index))
        is_wanted = Lanes(b, b.icmp("eq", place.v, n))
        wanted = pair_where(is_wanted, here, wanted)
        below = inverse * to_float(place) * here - above
        is_large = abs(below.hi) > 2.0**400
        factor = where(is_large, 2.0**-600, x.const(1.0))
        shifts = where(is_wanted, 0, Lanes(b, carried[6])) + where(is_large, 1, place.const(0))
        scaled = [part * factor for part in (*here, *below)]
        return [*(part.v for part in (*scaled, *wanted)), shifts.v]

    *found, shifts = b.rounds(constant(i64, 0), start, [*initial, constant(i64, 0)], descend)
    one, nought, wanted = pairs(b, found)
    by_zero = abs(nought.hi) > abs(one.hi)
    size = pair_where(by_zero, zeroth, first) / pair_where(by_zero, nought, one)
    return scale((wanted * size).rounded(), Lanes(b, shifts) * -600)


def of_order(name: str, body: Callable[..., Value], is_second: bool) -> Callable[[Lanes, Lanes], Lanes]:
    """jn, yn: negative orders and arguments by symmetry."""

    def function(n: Lanes, x: Lanes) -> Lanes:
        wide = Lanes(n.b, n.b.sext(n.v, n.v.type.with_scalar(i64))) if n.scalar is not i64 else n
        value = Lanes(x.b, elementwise_calls(x.b, f"tilework.{name}", f64, [abs(wide).v, abs(x).v], body))
        odd = (n & 1).differs(0)
        value = where(odd & (n < 0), -value, value)
        if is_second:
            return where(x < 0.0, math.nan, value)
        return where(odd, signed_like(value, x), value)

    return function


def modified_body(order: int) -> Callable[[Builder, tuple[Value, ...]], Value]:
    """I_0 or I_1 of one x >= 0: the power series, all of whose terms are positive, or the asymptotic one."""

    def body(b: Builder, args: tuple[Value, ...]) -> Value:
        x = Lanes(b, args[0])

        def series() -> list[Value]:
            total = power_series(two_product(x * 0.5, x * 0.5), x.const(float(order)))
            return [((total.hi + total.lo) * (0.5 * x) if order else total.hi + total.lo).v]

        def asymptotic() -> list[Value]:
            factors, value = [], 1.0
            for k in range(26):
                factors.append(value)
                value *= -(4 * order * order - (2 * k + 1) ** 2) / ((k + 1) * 8)
            bounded = smaller(x, 720.0)  # infinite from 714 on
            high, low, n = exp_parts(bounded)
            around = constant_pair(x, c.PI) * (bounded + bounded)
            inverse = 1.0 / bounded
            lead, lead_low = fast_two_sum(x.const(1.0), inverse * polynomial(inverse, factors[1:]))
            rest = Pair(lead, lead_low) / around.root()
            value = Pair(high, low) * rest
            return [(scale(value.hi + value.lo, n - 10) * 2.0**10).v]

        return b.if_else((x < 25.0).v, series, asymptotic)[0]

    return body


# I_n of f32 below 4 and above
SINGLE = ((c.I0F, c.I0_FARF), (c.I1F, c.I1_FARF))


def modified_single(x: Lanes, order: int) -> Lanes:
    """I_0 or I_1 of f32 x >= 0: (x/2)^n (1 + q f(q)) with q = x^2 / 4, all of whose terms are positive, or e^x /
    sqrt(x) g(1/x).
    """
    near, far = SINGLE[order]
    bounded = clamp(x, 1.0, 93.0)  # infinite from 92 on
    inverse = 1.0 / bounded
    half = x * 0.5
    q, q_low = two_product(half, half)
    above, above_low = two_product(polynomial(q, near), q)
    high, low = two_sum(above, 1.0)
    low = low + fma(high, q_low * (inverse + inverse), above_low)  # I_n' is about I_n where the rounding of q counts
    small = fma(half, high, half * low) if order else high + low
    growth, growth_low, n = exp_parts(bounded)
    lead, lead_low = c.ROOT_TWO_PI_F
    flat = fast_two_sum(x.const(lead), fma(inverse, polynomial(inverse, far), lead_low))
    large = Pair(growth, growth_low) * flat / exact(bounded).root()
    return where(x < 4.0, small, scale(large.hi + large.lo, n))


def modified(x: Lanes, order: int) -> Lanes:
    if x.scalar is f32:
        return modified_single(abs(x), order)
    return Lanes(x.b, elementwise_calls(x.b, f"tilework.i{order}", f64, [abs(x).v], modified_body(order)))


THROUGH_F64: dict[str, Callable[..., Lanes]] = {
    **{name: of_kind(name, kind) for kind, name in enumerate(("j0", "j1", "y0", "y1"))},
    "jn": of_order("jn", jn_body, False),
    "yn": of_order("yn", yn_body, True),
}
DIRECT: dict[str, Callable[..., Lanes]] = {
    "cyl_bessel_i0": lambda x: modified(x, 0),
    "cyl_bessel_i1": lambda x: copysign(modified(x, 1), x),
}
