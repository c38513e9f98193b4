"""Make tilework/targets/llvm/math/coefficients.py: polynomials for the elementary functions.

    python -m venv fit-env && fit-env/bin/pip install mpmath
    fit-env/bin/python benchmarks/fit_polynomials.py > tilework/targets/llvm/math/coefficients.py

Each polynomial interpolates its function at the Chebyshev nodes of the interval (within a factor of two or so of the
minimax error), or has the smallest weighted squares of errors where the weight varies much; in 60 digits, then rounded
coefficient by coefficient. The comment states the largest (weighted) error of the rounded polynomial. mpmath is not a
dependency of tilework: the result is checked in.
"""

import struct
import sys
import textwrap
from collections.abc import Callable, Iterable
from typing import Any

import mpmath as mp

mp.mp.dps = 60
ONE = mp.mpf(1)


def nodes(low: Any, high: Any, count: int) -> list[Any]:
    middle, half = (mp.mpf(low) + high) / 2, (mp.mpf(high) - low) / 2
    return [middle + half * mp.cos(mp.pi * (2 * i + 1) / (2 * count)) for i in range(count)]


def interpolate(function: Callable[[Any], Any], low: float, high: float, degree: int) -> list[Any]:
    """Coefficients, constant term first."""
    points = nodes(low, high, degree + 1)
    matrix = mp.matrix([[point**power for power in range(degree + 1)] for point in points])
    solution = mp.lu_solve(matrix, mp.matrix([function(point) for point in points]))
    return [solution[power] for power in range(degree + 1)]


def least_squares(function: Callable[[Any], Any], low: float, high: float, degree: int, weight: Any) -> list[Any]:
    """Coefficients of the polynomial with the smallest weighted squares of errors at many Chebyshev nodes."""
    points = nodes(low, high, 20 * degree)
    matrix = mp.matrix([[weight(point) * point**power for power in range(degree + 1)] for point in points])
    solution = mp.lu_solve(matrix, mp.matrix([weight(point) * function(point) for point in points]))
    return [solution[power] for power in range(degree + 1)]


def root_erfc(a: Any) -> Any:
    """4 (1 - r) / a, where r^8 = erfc(a)."""
    return 4 * (1 - mp.root(mp.erfc(a), 8)) / a


def erf_sensitivity(a: Any) -> Any:
    """The relative effect of a change of `root_erfc` at a on erf(a) = 1 - r^8."""
    return mp.mpf(2) if a < 1e-6 else 2 * mp.root(mp.erfc(a), 8) ** 7 * a / mp.erf(a)


def inverse_erf(w: Any) -> Any:
    """erfinv(y) / y, where 1 - y^2 = e^-w."""
    if w < mp.mpf(10) ** -25:
        return mp.sqrt(mp.pi) / 2
    y = mp.sqrt(-mp.expm1(-w))
    return mp.erfinv(y) / y


LED = {"ERFCXF": 2}  # so many coefficients are also listed in two parts
FIRST_IN_TWO = ("ROOT_ERFCF", "ERFINVF", "ERFINV_FARF")


def log_sensitivity(f: Any) -> Any:
    """The relative effect of a change of (log(1+f) / f - 1) / f on log(1+f)."""
    return abs(f) if abs(f) < 1e-6 else abs(f * f / mp.log(1 + f))


def log2_sensitivity(f: Any) -> Any:
    """The relative effect of a change of (log2(1+f) / f - log2 e) / f on log2(1+f)."""
    return abs(f) if abs(f) < 1e-6 else abs(f * f / mp.log(1 + f, 2))


WEIGHTS = {"ROOT_ERFCF": erf_sensitivity, "LOG_WEIGHTEDF": log_sensitivity, "LOG2_WEIGHTEDF": log2_sensitivity}


def rounded(value: Any, bits: int) -> float:
    number = float(value)
    return number if bits == 64 else struct.unpack("f", struct.pack("f", number))[0]


def horner(coefficients: list[float], x: Any) -> Any:
    total = mp.mpf(0)
    for coefficient in reversed(coefficients):
        total = total * x + mp.mpf(coefficient)
    return total


def series(function: Callable[[Any], Any], value_at_zero: Any) -> Callable[[Any], Any]:
    """`function`, with its limit at 0."""
    return lambda x: mp.mpf(value_at_zero) if abs(x) < mp.mpf(10) ** -25 else function(x)


def log_tail(f: Any) -> Any:
    return (mp.log(1 + f) - f + f * f / 2) / f**3


def of_square(function: Callable[[Any], Any], limit: Any) -> Callable[[Any], Any]:
    """g with g(x*x) = function(x)."""
    return lambda z: mp.mpf(limit) if z < mp.mpf(10) ** -20 else function(mp.sqrt(z))


def atanh_tail(s: Any) -> Any:
    return (2 * mp.atanh(s) - 2 * s - 2 * s**3 / 3) / s**5


def erfcx_scaled(t: Any) -> Any:
    """(1 + 2x) exp(x*x) erfc(x) at x = 4 (1 + t) / (1 - t): flat, so a polynomial in t serves all x >= 0."""
    if t > ONE - mp.mpf(10) ** -30:
        return 2 / mp.sqrt(mp.pi)
    x = 4 * (1 + t) / (1 - t)
    if x > 60:
        total, term = ONE, ONE
        for k in range(1, 30):
            term *= -(2 * k - 1) / (2 * x * x)
            total += term
        return (1 + 2 * x) / (x * mp.sqrt(mp.pi)) * total
    mp.mp.dps = 60 + int(x * x)
    value = (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)
    mp.mp.dps = 60
    return +value


LOG2E = 1 / mp.log(2)
P, H = mp.pi / 4 * (ONE + mp.mpf(2) ** -20), mp.log(2) / 2 * (ONE + mp.mpf(2) ** -20)
ROOT = mp.sqrt(2)
FITS: list[tuple[str, int, str, Callable[[Any], Any], Any, Any, int]] = [
    (
        "EXP",
        64,
        "(e^r - 1 - r - r^2/2) / r^3",
        series(lambda r: (mp.exp(r) - 1 - r - r * r / 2) / r**3, ONE / 6),
        -H,
        H,
        10,
    ),
    ("LOG", 64, "(2 atanh s - 2s - 2s^3/3) / s^5 in s^2", of_square(atanh_tail, ONE * 2 / 5), 0, 0.0295, 7),
    ("SIN", 64, "(sin r - r) / r^3 in r^2", of_square(lambda r: (mp.sin(r) - r) / r**3, -ONE / 6), 0, P * P, 7),
    (
        "COS",
        64,
        "(cos r - 1 + r^2/2) / r^4 in r^2",
        of_square(lambda r: (mp.cos(r) - 1 + r * r / 2) / r**4, ONE / 24),
        0,
        P * P,
        7,
    ),
    ("ATAN", 64, "(atan t - t) / t^3 in t^2", of_square(lambda t: (mp.atan(t) - t) / t**3, -ONE / 3), 0, 0.1717, 12),
    ("ASIN", 64, "(asin x - x) / x^3 in x^2", of_square(lambda x: (mp.asin(x) - x) / x**3, ONE / 6), 0, 0.2501, 14),
    ("ERF", 64, "erf(x) / x - 1 in x^2", of_square(lambda x: mp.erf(x) / x - 1, 2 / mp.sqrt(mp.pi) - 1), 0, 1, 14),
    (
        "ERFCX",
        64,
        "((1 + 2x) exp(x^2) erfc(x) - 1) / (1 + t) in t = (x - 4)/(x + 4)",
        lambda t: (erfcx_scaled(t) - 1) / (1 + t),
        -1,
        1,
        26,
    ),
    ("SINH", 64, "(sinh x - x) / x^3 in x^2", of_square(lambda x: (mp.sinh(x) - x) / x**3, ONE / 6), 0, 1, 8),
    ("CBRT", 64, "cbrt(m), a first guess", mp.cbrt, 1, 2, 4),
    ("EXPF", 32, "(e^r - 1 - r) / r^2", series(lambda r: (mp.exp(r) - 1 - r) / r**2, ONE / 2), -H, H, 4),
    ("EXP2F", 32, "(2^r - 1) / r", series(lambda r: (2**r - 1) / r, mp.log(2)), -0.5, 0.5, 5),
    (
        "LOGF",
        32,
        "(log(1+f) - f + f^2/2) / f^3",
        series(log_tail, ONE / 3),
        ROOT / 2 - 1,
        ROOT - 1,
        8,
    ),
    (
        "LOG2F",
        32,
        "(log2(1+f)/f - log2 e) / f",
        series(lambda f: (mp.log(1 + f) / f - 1) / f * LOG2E, -LOG2E / 2),
        ROOT / 2 - 1,
        ROOT - 1,
        8,
    ),
    (
        "LOG10F",
        32,
        "(log10(1+f)/f - log10 e) / f",
        series(lambda f: (mp.log(1 + f) / f - 1) / f / mp.log(10), -1 / mp.log(10) / 2),
        ROOT / 2 - 1,
        ROOT - 1,
        8,
    ),
    ("SINF", 32, "(sin r - r) / r^3 in r^2", of_square(lambda r: (mp.sin(r) - r) / r**3, -ONE / 6), 0, P * P, 3),
    (
        "COSF",
        32,
        "(cos r - 1 + r^2/2) / r^4 in r^2",
        of_square(lambda r: (mp.cos(r) - 1 + r * r / 2) / r**4, ONE / 24),
        0,
        P * P,
        3,
    ),
    ("ATANHF", 32, "(2 atanh s - 2s - 2s^3/3) / s^5 in s^2", of_square(atanh_tail, ONE * 2 / 5), 0, 0.0295, 3),
    ("ATANF", 32, "(atan t - t) / t^3 in t^2", of_square(lambda t: (mp.atan(t) - t) / t**3, -ONE / 3), 0, 0.1717, 4),
    ("ATAN1F", 32, "(atan t - t) / t^3 in t^2", of_square(lambda t: (mp.atan(t) - t) / t**3, -ONE / 3), 0, 1, 8),
    ("ASINF", 32, "(asin x - x) / x^3 in x^2", of_square(lambda x: (mp.asin(x) - x) / x**3, ONE / 6), 0, 0.2501, 5),
    ("SINHF", 32, "(sinh x - x) / x^3 in x^2", of_square(lambda x: (mp.sinh(x) - x) / x**3, ONE / 6), 0, 1, 3),
    (
        "ERFCXF",
        32,
        "((1 + 2x) exp(x^2) erfc(x) - 1) / (1 + t) in t = (x - 4)/(x + 4)",
        lambda t: (erfcx_scaled(t) - 1) / (1 + t),
        -1,
        1,
        14,
    ),
    ("TANHF", 32, "(tanh x - x) / x^3 in x^2", of_square(lambda x: (mp.tanh(x) - x) / x**3, -ONE / 3), 0, 0.4, 5),
    ("LOG1PF", 32, "(log(1+f) - f + f^2/2) / f^3", series(log_tail, ONE / 3), -0.25, 0.5, 9),
    ("SINH145F", 32, "(sinh x - x) / x^3 in x^2", of_square(lambda x: (mp.sinh(x) - x) / x**3, ONE / 6), 0, 2.1025, 4),
    ("EXPM1F", 32, "(e^r - 1 - r) / r^2", series(lambda r: (mp.expm1(r) - r) / r**2, ONE / 2), -0.3466, 0.3466, 5),
    ("TANH06F", 32, "(tanh x - x) / x^3 in x^2", of_square(lambda x: (mp.tanh(x) - x) / x**3, -ONE / 3), 0, 0.36, 4),
    ("TANF", 32, "(tan r - r) / r^3 in r^2", of_square(lambda r: (mp.tan(r) - r) / r**3, ONE / 3), 0, 0.6169, 6),
    ("ERFINVF", 32, "erfinv(y) / y in w = -log(1 - y^2)", inverse_erf, 0, 5, 9),
    ("ERFINV_FARF", 32, "erfinv(y) / y in sqrt(w) - 3.125", lambda u: inverse_erf((u + 3.125) ** 2), -0.9, 0.9, 9),
    ("ROOT_ERFCF", 32, "4 (1 - erfc(a)^(1/8)) / a", series(root_erfc, 1 / mp.sqrt(mp.pi)), 0, 3.93, 7),
    (
        "LOG2_WEIGHTEDF",
        32,
        "(log2(1+f)/f - log2 e) / f",
        series(lambda f: (mp.log(1 + f) / f - 1) / f * LOG2E, -LOG2E / 2),
        ROOT / 2 - 1,
        ROOT - 1,
        8,
    ),
    (
        "LOG_WEIGHTEDF",
        32,
        "(log(1+f)/f - 1) / f",
        series(lambda f: (mp.log(1 + f) / f - 1) / f, -ONE / 2),
        -0.3125,
        0.375,
        8,
    ),
    (
        "LOG2_ATANHF",
        32,
        "(2 atanh s - 2s) log2 e / s^3 in s^2",
        of_square(lambda s: (2 * mp.atanh(s) - 2 * s) * LOG2E / s**3, LOG2E * 2 / 3),
        0,
        0.0295,
        3,
    ),
]


def split(name: str, value: Any, parts: int, bits: int = 64, first_bits: int | None = None) -> str:
    """A constant as a sum of floats; the first may be cut short so that its products with small integers are exact."""
    rest, listed = mp.mpf(value), []
    for index in range(parts):
        part = rounded(rest, bits)
        if index == 0 and first_bits is not None:
            unit = mp.mpf(2) ** (mp.floor(mp.log(abs(rest), 2)) + 1 - first_bits)
            part = float(mp.nint(rest / unit) * unit)
        listed.append(part)
        rest -= mp.mpf(part)
    return f"{name} = ({', '.join(map(repr, listed))})"


def show(name: str, numbers: Iterable[str]) -> None:
    """A tuple, as many numbers on a line as it has room for."""
    text = ", ".join(numbers) + ","
    filled = textwrap.fill(text, 120, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
    print(f"{name} = (\n{filled}\n)  # fmt: skip")


def main() -> None:
    print('"""Polynomials and split constants; made by benchmarks/fit_polynomials.py, not by hand.')
    print("\nA polynomial lists its constant term first. A split constant is the sum of its parts.\n" + '"""\n')
    for name, bits, formula, function, low, high, degree in FITS:
        weight = WEIGHTS.get(name, lambda x: ONE)
        if name in WEIGHTS:
            exact = least_squares(function, low, high, degree, weight)
        else:
            exact = interpolate(function, low, high, degree)
        coefficients = [rounded(value, bits) for value in exact]
        error = max(weight(x) * abs(horner(coefficients, x) - function(x)) for x in nodes(low, high, 301))
        print(f"# {formula} on [{float(low):.4g}, {float(high):.4g}], error {float(error):.1e}")
        show(name, map(repr, coefficients))
        if name in LED:
            print(f"{name}_LEAD = (")
            for value in exact[: LED[name]]:
                print(f"    {split('', value, 2, bits)[3:]},")
            print(")")
        if name in FIRST_IN_TWO:
            print(split(f"{name}0", exact[0], 2, 32))
        print(f"fitted {name}: {float(error):.1e}", file=sys.stderr)
    print(split("LN2", mp.log(2), 2, 64, 42))
    print(split("LN2_PAIR", mp.log(2), 2))
    print(split("LOG2E", LOG2E, 2))
    print(split("LOG10E", 1 / mp.log(10), 2))
    print(split("LOG10_2", mp.log(2, 10), 2, 64, 42))
    print(split("LOG2_10", mp.log(10, 2), 1).replace(")", ",)"))
    print(split("LN10", mp.log(10), 2))
    print(split("PI", mp.pi, 2))
    print(split("HALF_PI", mp.pi / 2, 4))
    print(split("TWO_OVER_SQRT_PI", 2 / mp.sqrt(mp.pi), 2))
    print(split("HALF_LOG_2PI", mp.log(2 * mp.pi) / 2, 2))
    print(split("TWO_THIRDS", ONE * 2 / 3, 2))
    print(split("ROOT_HALF", 1 / ROOT, 2))
    print(split("LN2_F", mp.log(2), 2, 32, 15))
    print(split("LOG2E_F", LOG2E, 2, 32))
    print(split("LOG10E_F", 1 / mp.log(10), 2, 32))
    print(split("TWO_THIRDS_F", ONE * 2 / 3, 2, 32))
    print(split("PI_F", mp.pi, 2, 32))
    print(split("ROOT_HALF_F", 1 / ROOT, 2, 32))
    print(split("LOG10_2_F", mp.log(2, 10), 2, 32, 15))
    print(split("HALF_PI_F", mp.pi / 2, 4, 32))
    mp.mp.dps = 420
    whole = int(mp.floor(2 / mp.pi * mp.mpf(2) ** 1280))
    words = [0] + [(whole >> (1280 - 64 * (i + 1))) & (2**64 - 1) for i in range(20)]
    print("# the bits of 2/pi after the binary point, in words of 64, with one word of zeros in front")
    show("TWO_OVER_PI_BITS", (f"0x{word:016X}" for word in words))


if __name__ == "__main__":
    main()
