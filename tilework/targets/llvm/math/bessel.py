"""Bessel functions in f64; those of f32 are computed by way of f64. J_n and Y_n are internal functions of one lane.

    J_n, x < 25 or n > x     Miller's method: F_{k-1} = 2k/x F_k - F_{k+1} downwards from a k whose F_k is negligible,
                             divided by F_0 + 2 F_2 + 2 F_4 + ... = 1
    Y_0, Y_1, x < 25         Neumann's series, a weighted sum of the same J_k
    J_n, Y_n otherwise       Hankel's asymptotic series of order 0 and 1, then the recurrence upwards
    I_0, I_1                 the power series below 25, Hankel's asymptotic series beyond

The error is at most 16 + n units in the last place: of the value, or of the amplitude sqrt(2 / (pi x)) where that is
larger, as it is next to the zeros of J_n and Y_n. f32 values are within one unit of the same.
"""

import math
from collections.abc import Callable

from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.math.exponential import exp
from tilework.targets.llvm.math.lanes import (
    Lanes,
    clamp,
    copysign,
    elementwise_calls,
    fma,
    larger,
    polynomial,
    scale,
    smaller,
    sqrt,
    to_float,
    to_int,
    where,
)
from tilework.targets.llvm.math.logarithm import log, log2
from tilework.targets.llvm.math.trigonometric import cos, sin
from tilework.targets.llvm.types import f64, i64
from tilework.targets.llvm.values import Value, constant

FAR = 25.0  # Hankel's series is accurate from here on
TERMS = 22
TINY = 2.0**-550  # J_n and Y_n of smaller x, n >= 2, underflow and overflow
EULER_LESS_LOG_2 = -0.11593151565841245
SHIFT = 600  # Miller's method scales by 2^-SHIFT


def miller(n: Lanes, x: Lanes) -> list[Lanes]:
    """F_n, F_0 and F_1 for x >= `TINY`, and the sums of (-1)^m k / (m (k - m)) F_k, m = k // 2, over even and odd k."""
    b = x.b
    reach = larger(to_float(n), x)
    start = to_int(reach + sqrt(reach * 40.0) + 20.0)
    inverse = 2.0 / x
    inverse_low = fma(-inverse, x, 2.0) / x

    def descend(index: Value, carried: tuple[Value, ...]) -> list[Value]:
        above, here, found, total, even_sum, odd_sum = (Lanes(b, value) for value in carried[:6])
        k = start - Lanes(b, index)
        half = k.logical_shift(1)
        is_even, is_found = (k & 1).equal(0), k.equal(n)
        order = to_float(k)
        below = fma(fma(order, inverse, order * inverse_low), here, -above)
        total = total + where(is_even, here, 0.0)
        term = here * (order / to_float(half * (k - half)))
        term = where(half.equal(0), 0.0, where((half & 1).equal(0), term, -term))
        even_sum, odd_sum = even_sum + where(is_even, term, 0.0), odd_sum + where(is_even, 0.0, term)
        is_large = abs(below) > 2.0**400
        factor = where(is_large, 2.0**-SHIFT, x.const(1.0))
        shifts = where(is_found, 0, Lanes(b, carried[6])) + where(is_large, 1, k.const(0))
        scaled = [part * factor for part in (here, below)]
        sums = [part * factor for part in (total, even_sum, odd_sum)]
        return [part.v for part in (*scaled, where(is_found, here, found), *sums, shifts)]

    zero, one = constant(f64, 0.0), constant(f64, 1.0)
    *floats, count = b.rounds(constant(i64, 0), start.v, [zero, one, one, zero, zero, zero, constant(i64, 0)], descend)
    first, zeroth, found, total, even_sum, odd_sum = (Lanes(b, value) for value in floats)
    total = total * 2.0 + zeroth
    wanted = scale(found / total, Lanes(b, count) * -SHIFT)
    return [where(n.equal(0), zeroth / total, wanted), *(part / total for part in (zeroth, first, even_sum, odd_sum))]


def second_kind(x: Lanes) -> list[Value]:
    """Y_0 and Y_1 of x < 25."""
    bounded = larger(x, TINY)
    _, zeroth, first, even_sum, odd_sum = miller(Lanes(x.b, constant(i64, 0)), bounded)
    values = (
        (log(x) + EULER_LESS_LOG_2) * zeroth - even_sum,
        (log(bounded) + (EULER_LESS_LOG_2 - 1.0)) * first - odd_sum - zeroth / x,
    )
    return [(value * (2 / math.pi)).v for value in values]


def hankel_factors(order: int) -> list[float]:
    """The coefficients of Hankel's series in 1/x."""
    factors = [1.0]
    for k in range(1, TERMS):
        factors.append(factors[-1] * (4 * order * order - (2 * k - 1) ** 2) / (8 * k))
    return factors


def hankel(x: Lanes, is_second: bool) -> list[Value]:
    """J_0 and J_1, or Y_0 and Y_1 (`is_second`), of x >= 25.

    J_0 = sqrt(2 / (pi x)) (P cos w - Q sin w) and Y_0 = sqrt(2 / (pi x)) (P sin w + Q cos w) with w = x - pi/4; J_1 and
    Y_1 have their own P and Q, and w = x - 3 pi/4.
    """
    inverse = 1.0 / x
    size = 1.0 / (sqrt(x) * math.sqrt(math.pi))
    sine, cosine = sin(x), cos(x)
    plus, minus = sine + cosine, sine - cosine  # sqrt(2) times cos(x - pi/4) and sin(x - pi/4)
    values = []
    for order in (0, 1):
        signed = [-factor if k & 2 else factor for k, factor in enumerate(hankel_factors(order))]
        square = inverse * inverse
        p, q = polynomial(square, signed[::2]), polynomial(square, signed[1::2]) * inverse
        sine, cosine = (-plus, minus) if order else (minus, plus)
        values.append((p * sine + q * cosine if is_second else p * cosine - q * sine) * size)
    return [value.v for value in values]


def upwards(n: Lanes, x: Lanes, start: list[Value] | tuple[Value, ...]) -> Lanes:
    """F_n by F_{k+1} = 2k/x F_k - F_{k-1}, from F_0 and F_1."""
    b = x.b

    def climb(index: Value, carried: tuple[Value, ...]) -> list[Value]:
        before, here = (Lanes(b, value) for value in carried)
        k = Lanes(b, index)
        return [here.v, fma(to_float(k + k) / x, here, -before).v]

    steps = where(x < math.inf, n, 1)
    value = Lanes(b, b.rounds(constant(i64, 1), steps.v, list(start), climb)[1])
    return where(n.equal(0), Lanes(b, start[0]), value)


def is_beyond(n: Lanes, x: Lanes) -> Lanes:
    """J_n(x), about (e x / 2n)^n, is less than 2^-1100, and Y_n(x) is infinite."""
    order = to_float(n)
    return (n > 1) & (order * log2(x / order * (math.e / 2)) < -1100.0)


def first_body(b: Builder, args: tuple[Value, ...]) -> Value:
    n, x = (Lanes(b, arg) for arg in args)

    def downwards() -> list[Value]:
        beyond = is_beyond(n, x)
        bounded = larger(x, TINY)
        value = miller(where(beyond, 0, n), bounded)[0]
        return [where(beyond, 0.0, where(n.equal(0), value, value * (x / bounded))).v]

    is_near = (x < FAR) | (to_float(n) > x)
    (value,) = b.if_else(is_near.v, downwards, lambda: [upwards(n, x, hankel(x, False)).v])
    return where(x.equal(math.inf), 0.0, Lanes(b, value)).v


def second_body(b: Builder, args: tuple[Value, ...]) -> Value:
    n, x = (Lanes(b, arg) for arg in args)
    beyond = is_beyond(n, x)
    start = b.if_else((x < FAR).v, lambda: second_kind(x), lambda: hankel(x, True))
    value = upwards(where(beyond, 0, n), x, start)
    overflown = beyond | (value.is_nan() & (x < math.inf))
    return where(x.equal(math.inf), 0.0, where(overflown, -math.inf, value)).v


def of_order(n: Lanes, x: Lanes, is_second: bool) -> Lanes:
    """J_n or Y_n: negative orders and arguments by symmetry."""
    b = x.b
    wide = Lanes(b, b.sext(n.v, n.v.type.with_scalar(i64))) if n.scalar is not i64 else n
    name, body = ("tilework.yn", second_body) if is_second else ("tilework.jn", first_body)
    value = Lanes(b, elementwise_calls(b, name, f64, [abs(wide).v, abs(x).v], body))
    odd = (n & 1).differs(0)
    value = where(odd & (n < 0), -value, value)
    if is_second:
        return where(x < 0.0, math.nan, value)
    return where(odd & (copysign(x.const(1.0), x) < 0.0), -value, value)


def of_fixed_order(order: int, is_second: bool) -> Callable[[Lanes], Lanes]:
    def function(x: Lanes) -> Lanes:
        return of_order(Lanes(x.b, constant(x.v.type.with_scalar(i64), order)), x, is_second)

    return function


def modified(x: Lanes, order: int) -> Lanes:
    """I_0 or I_1 of x >= 0, infinite from 714 on."""
    half = smaller(x, FAR) * 0.5
    series = polynomial(half * half, [1 / (math.factorial(k) * math.factorial(k + order)) for k in range(48)])
    bounded = clamp(x, FAR, 720.0)
    growth = exp(bounded * 0.5)
    factors = [-factor if k & 1 else factor for k, factor in enumerate(hankel_factors(order))]
    far = polynomial(1.0 / bounded, factors) * growth / sqrt(bounded * (2 * math.pi)) * growth
    return where(x >= FAR, far, series * half if order else series)


THROUGH_F64: dict[str, Callable[..., Lanes]] = {
    "jn": lambda n, x: of_order(n, x, False),
    "yn": lambda n, x: of_order(n, x, True),
    "j0": of_fixed_order(0, False),
    "j1": of_fixed_order(1, False),
    "y0": of_fixed_order(0, True),
    "y1": of_fixed_order(1, True),
    "cyl_bessel_i0": lambda x: modified(abs(x), 0),
    "cyl_bessel_i1": lambda x: copysign(modified(abs(x), 1), x),
}
