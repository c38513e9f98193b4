"""Special functions of libdevice that neither NumPy nor `math` has: Bessel functions and inverses of the error function.

    J_n    Miller's method: run the recurrence J[k-1] = 2k/x J[k] - J[k+1] downwards from a k where J is nearly 0, with any
           start, and scale so that J[0] + 2 J[2] + 2 J[4] + ... = 1. Errors shrink on the way down.
    Y_n    Neumann's series over the same J, for n = 0 and 1; upwards from there, where Y grows and errors do not.
    I_n    the power series: all terms are positive.
    large  beyond LARGE, the first terms of Hankel's expansion are exact to the last bit.

Inverses are found by bisection, on the function and side where no digits are lost.
"""

import math
from collections.abc import Callable

LARGE = 200.0
EULER = 0.57721566490153286


def bessel_j(order: int, x: float) -> float:
    """The Bessel function of the first kind."""
    if math.isnan(x):
        return x
    if order < 0:
        return bessel_j(-order, x) * (-1) ** order
    if x < 0:
        return bessel_j(order, -x) * (-1) ** order
    if math.isinf(x):
        return 0.0
    if x > LARGE and order * order < x:
        return hankel(order, x)[0]
    return first_kind(x, order)[order]


def bessel_y(order: int, x: float) -> float:
    """The Bessel function of the second kind: -inf at 0, NaN below."""
    if math.isnan(x) or x < 0:
        return math.nan
    if order < 0:
        return bessel_y(-order, x) * (-1) ** order
    if x == 0 or math.isinf(x):
        return -math.inf if x == 0 else 0.0
    before, value = second_kind(0, x), second_kind(1, x)
    if order == 0:
        return before
    for k in range(1, order):
        if math.isinf(value):
            break
        before, value = value, 2 * k / x * value - before
    return value


def first_kind(x: float, order: int) -> list[float]:
    """J[0], J[1] ... up to at least `order`, by Miller's method."""
    if x == 0:
        return [1.0] + [0.0] * order
    start = 2 * ((int(max(x, order) + 12 * max(x, order, 1.0) ** (1 / 3)) + 40) // 2)
    values = [0.0] * (start + 2)
    values[start] = 1e-300
    for k in range(start, 0, -1):
        values[k - 1] = 2 * k / x * values[k] - values[k + 1]
        if abs(values[k - 1]) > 1e200:
            for j in range(k - 1, start + 1):
                values[j] *= 1e-200
    total = math.fsum([values[0], *(2 * v for v in values[2::2])])
    return [v / total for v in values]


def second_kind(order: int, x: float) -> float:
    """Y of order 0 or 1, by Neumann's series."""
    if x > LARGE:
        return hankel(order, x)[1]
    j = first_kind(x, order + 2)
    digamma = -EULER if order == 0 else 1 - EULER
    terms = [2 * (math.log(x / 2) - digamma) * j[order]]
    if order == 1:
        terms.append(-2 / x * j[0])
    for k in range(1, (len(j) - 1 - order) // 2):
        terms.append(-2 * (-1) ** k * (order + 2 * k) * j[order + 2 * k] / (k * (order + k)))
    return math.fsum(terms) / math.pi


def hankel(order: int, x: float) -> tuple[float, float]:
    """J and Y for a large argument: sqrt(2 / (pi x)) times a cosine and sine with slowly varying amplitudes."""
    even, odd, term = 1.0, 0.0, 1.0
    for k in range(1, 40):
        term *= (4 * order * order - (2 * k - 1) ** 2) / (8 * k * x)
        if abs(term) < 1e-18:
            break
        sign = -1 if k % 4 in (2, 3) else 1
        even, odd = (even + sign * term, odd) if k % 2 == 0 else (even, odd + sign * term)
    quarter = (2 * order + 1) % 8  # the phase is x - quarter * pi / 4; rotate exactly instead of subtracting
    sine, cosine = math.sin(x), math.cos(x)
    turn, height = math.cos(quarter * math.pi / 4), math.sin(quarter * math.pi / 4)
    cos_phase, sin_phase = cosine * turn + sine * height, sine * turn - cosine * height
    scale = math.sqrt(2 / (math.pi * x))
    return scale * (even * cos_phase - odd * sin_phase), scale * (even * sin_phase + odd * cos_phase)


def bessel_i(order: int, x: float) -> float:
    """The modified Bessel function of the first kind, of order 0 or 1."""
    if not math.isfinite(x):
        return x if order == 1 or math.isnan(x) else math.inf
    if abs(x) > 720:
        return math.inf if order == 0 or x > 0 else -math.inf
    term = 1.0 if order == 0 else x / 2
    terms, k = [term], 0
    while abs(term) > abs(terms[0]) * 1e-20 or k < abs(x):
        k += 1
        term *= x / 2 / k * (x / 2 / (k + order))
        terms.append(term)
        if term == 0:
            break
    return math.fsum(terms)


def bisect(function: Callable[[float], float], wanted: float, low: float, high: float) -> float:
    """Where the increasing `function` takes the value `wanted`."""
    middle = (low + high) / 2
    while low < middle < high:
        low, high = (middle, high) if function(middle) < wanted else (low, middle)
        middle = (low + high) / 2
    return middle


def inverse_erf(x: float) -> float:
    """y with erf(y) = x."""
    if math.isnan(x) or abs(x) > 1:
        return math.nan
    if abs(x) > 0.5:
        return math.copysign(inverse_erfc(1 - abs(x)), x)
    tangent = abs(x) * math.sqrt(math.pi) / 2  # erf lies below its tangent at 0, and not far
    return math.copysign(bisect(math.erf, abs(x), tangent * (1 - 1e-15), tangent * 1.1), x)


def inverse_erfc(x: float) -> float:
    """y with erfc(y) = x; near 1 by way of erf, which keeps the digits of small y."""
    if math.isnan(x) or not 0 <= x <= 2:
        return math.nan
    if x in (0, 2):
        return math.inf if x == 0 else -math.inf
    if x > 1.5:
        return -inverse_erfc(2 - x)
    if x >= 0.5:
        return inverse_erf(1 - x)
    return bisect(lambda y: -math.erfc(y), -x, 0.0, 28.0)


def inverse_normal_cdf(x: float) -> float:
    """The number below which a standard normal variable lies with probability `x`."""
    return -math.sqrt(2) * inverse_erfc(2 * x)
