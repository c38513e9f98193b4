"""Special functions that neither NumPy nor `math` has, of Python floats.

    J_n    Miller's method: run the recurrence J[k-1] = 2k/x J[k] - J[k+1] downwards from a k where J is nearly 0, with
           any start, and scale so that J[0] + 2 J[2] + 2 J[4] + ... = 1. Errors shrink on the way down.
    Y_n    Neumann's series over the same J, for n = 0 and 1; upwards from there, where Y grows and errors do not.
    I_n    the power series, whose terms are all positive; the exponential and a series in 1 / x from 30 on.
    small  below 2, the power series.
    large  beyond LARGE, the first terms of Hankel's expansion are exact to the last bit; upwards while n < x.

Inverses are found by Newton's method, on the function and side where no digits are lost. The rounding error of a
product with a constant is known exactly, and corrected where the function magnifies it.
"""

import math
from fractions import Fraction

LARGE = 200.0
EULER = 0.57721566490153286
ROOT_OF_PI, LOG_2 = math.sqrt(math.pi), math.log(2)
HALF_ROOT, HALF_ROOT_REST = math.sqrt(0.5), -4.833646656726457e-17  # the square root of 1/2
LEAST_LOGARITHM = -760.0  # below it the exponential is 0


def bessel_j(order: int, x: float) -> float:
    """The Bessel function of the first kind."""
    if math.isnan(x):
        return x
    if order < 0:
        return bessel_j(-order, x) * (-1) ** order
    if math.copysign(1.0, x) < 0:
        return bessel_j(order, -x) * (-1) ** order
    if math.isinf(x):
        return 0.0
    if x > LARGE and order * order < x:
        return hankel(order, x)[0]
    if x > LARGE and order < x:
        return upwards(order, x, hankel(0, x)[0], hankel(1, x)[0])
    if order > 0 and (x == 0 or order * (math.log(x) - LOG_2) - math.lgamma(order + 1) < LEAST_LOGARITHM):
        return 0.0
    return first_kind(x, order)[order]


def bessel_y(order: int, x: float) -> float:
    """The Bessel function of the second kind: -inf at 0, NaN below."""
    if math.isnan(x) or x < 0:
        return math.nan
    if order < 0:
        return bessel_y(-order, x) * (-1) ** order
    if x == 0 or math.isinf(x):
        return -math.inf if x == 0 else 0.0
    if order < 2:
        return second_kind(order, x)
    if x > LARGE and order * order < x:
        return hankel(order, x)[1]
    return upwards(order, x, second_kind(0, x), second_kind(1, x))


def upwards(order: int, x: float, before: float, value: float) -> float:
    """The recurrence from orders 0 and 1; it stops at infinity."""
    for k in range(1, order):
        if math.isinf(value):
            break
        before, value = value, 2 * k / x * value - before
    return value


def power_series(order: int, x: float) -> float:
    """J for x < 2, where its terms hardly cancel."""
    first = math.prod(x / 2 / k for k in range(1, order + 1))
    terms = [1.0]
    for k in range(1, 20):
        terms.append(terms[-1] * -(x * x / 4) / (k * (order + k)))
    return first * math.fsum(terms)


def first_kind(x: float, order: int) -> list[float]:
    """J[0], J[1] ... up to at least `order`."""
    if x < 2:
        return [power_series(n, x) for n in range(order + 24)]
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
    terms = [2 * (math.log(x) - LOG_2 - digamma) * j[order]]
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
    cos_quarter, sin_quarter = math.cos(quarter * math.pi / 4), math.sin(quarter * math.pi / 4)
    cos_phase, sin_phase = cosine * cos_quarter + sine * sin_quarter, sine * cos_quarter - cosine * sin_quarter
    scale = math.sqrt(2 / (math.pi * x))
    return scale * (even * cos_phase - odd * sin_phase), scale * (even * sin_phase + odd * cos_phase)


def bessel_i(order: int, x: float) -> float:
    """The modified Bessel function of the first kind, of order 0 or 1."""
    if not math.isfinite(x):
        return x if order == 1 or math.isnan(x) else math.inf
    size, sign = abs(x), math.copysign(1.0, x) if order else 1.0
    if size > 720:
        return sign * math.inf
    if size > 30:  # exp(x) and a series in 1 / x
        terms, k = [1.0], 0
        while abs(terms[-1]) > 1e-18:
            k += 1
            terms.append(terms[-1] * ((2 * k - 1) ** 2 - 4 * order * order) / (8 * k * size))
        half = math.exp(size / 2)
        return sign * (half * (half * (math.fsum(terms) / math.sqrt(2 * math.pi * size))))
    terms, k = [1.0], 0
    while terms[-1] > 1e-20:
        k += 1
        terms.append(terms[-1] * (size / 2 / k) * (size / 2 / (k + order)))
    return math.fsum(terms) * (x / 2 if order else 1.0)


def missed(x: float, y: float) -> float:
    """Return the rounding error of ``x * y``."""
    return float(Fraction(x) * Fraction(y) - Fraction(x * y))


def scaled_erfc(x: float) -> float:
    """exp(x * x) * erfc(x); for larger x its continued fraction, x + (1/2)/(x + (2/2)/(x + (3/2)/(x + ...)))."""
    if math.isnan(x) or abs(x) > 1e100:
        return x if math.isnan(x) else 1 / ROOT_OF_PI / x if x > 0 else math.inf
    if x < 2:
        return math.exp(x * x) * math.erfc(x) * (1 + missed(x, x))
    fraction = x
    for k in range(150, 0, -1):
        fraction = x + k / 2 / fraction
    return 1 / ROOT_OF_PI / fraction


def inverse_erf(x: float) -> float:
    """y with erf(y) = x."""
    if math.isnan(x) or abs(x) > 1 or x == 0:
        return x if x == 0 else math.nan
    if abs(x) > 0.5:
        return math.copysign(inverse_erfc(1 - abs(x)), x)
    y = x * ROOT_OF_PI / 2
    for _ in range(5):
        y -= (math.erf(y) - x) * math.exp(y * y) * ROOT_OF_PI / 2
    return y


def inverse_erfc(x: float) -> float:
    """y with erfc(y) = x; near 1 by way of erf, which keeps the digits of small y, else by its logarithm."""
    if math.isnan(x) or not 0 <= x <= 2:
        return math.nan
    if x in (0, 2):
        return math.inf if x == 0 else -math.inf
    if x > 1.5:
        return -inverse_erfc(2 - x)
    if x >= 0.5:
        return inverse_erf(1 - x)
    y = math.sqrt(-math.log(x))
    for _ in range(6):
        scaled = scaled_erfc(y)
        y += (
            (math.log(scaled / x) - y * y if x > 1e-300 else math.log(scaled) - math.log(x) - y * y)
            * scaled
            * ROOT_OF_PI
            / 2
        )
    return y


def normal_cdf(x: float) -> float:
    """The probability that a standard normal variable is less than x: erfc(-x / sqrt(2)) / 2."""
    if not math.isfinite(x):
        return x if math.isnan(x) else float(x > 0)
    y = -x * HALF_ROOT
    rest = missed(-x, HALF_ROOT) - x * HALF_ROOT_REST
    slope = math.exp(-min(y * y, 1e3)) / ROOT_OF_PI
    return 0.5 * math.erfc(y) - slope * rest


def inverse_normal_cdf(x: float) -> float:
    """Return the number below which a standard normal variable is with probability `x`."""
    return 0.0 - math.sqrt(2) * inverse_erfc(2 * x)


def log_gamma(x: float) -> float:
    return math.inf if x <= 0 and x == math.floor(x) else math.lgamma(x)


def gamma(x: float) -> float:
    """The gamma function: at 0 a pole with the sign of the zero, at negative integers NaN."""
    if abs(x) < 1e-300:
        return 1 / x if x else math.copysign(math.inf, x)
    return math.gamma(x)
