"""Make tilework/targets/llvm/math/zeros.py: where Bessel functions and lgamma are zero, and expansions around it.

    python -m venv fit-env && fit-env/bin/pip install mpmath
    fit-env/bin/python benchmarks/fit_zeros.py > tilework/targets/llvm/math/zeros.py

A function is as exact near a zero z as the difference x - z is, so each zero is a sum of three floats. Polynomials
interpolate at Chebyshev nodes in 80 digits. mpmath is not a dependency of tilework: the result is checked in.
"""

import textwrap
from collections.abc import Callable
from typing import Any

import mpmath as mp

mp.mp.dps = 80
NEAR, ORIGIN = 25, 3  # the expansions for large x start at NEAR; those of Y around the origin end at ORIGIN
FIRST, LAST = 2, 16  # quarter turns counted from -pi/4 (J) or pi/4 (Y)
DEGREE = 18
CENTRES = (3.5, 5.0, 7.0, 10.0, 14.0, 20.0, 28.0, 40.0, 56.0)


def parts(value: Any, count: int) -> list[float]:
    """A number as a sum of floats."""
    listed, rest = [], mp.mpf(value)
    for _ in range(count):
        listed.append(float(rest))
        rest -= mp.mpf(listed[-1])
    return listed


def interpolate(function: Callable[[Any], Any], low: float, high: float, degree: int) -> list[Any]:
    """Coefficients, constant term first."""
    middle, half, count = (mp.mpf(low) + high) / 2, (mp.mpf(high) - low) / 2, degree + 1
    points = [middle + half * mp.cos(mp.pi * (2 * i + 1) / (2 * count)) for i in range(count)]
    matrix = mp.matrix([[point**power for power in range(count)] for point in points])
    return list(mp.lu_solve(matrix, mp.matrix([function(point) for point in points])))


def fixed(value: Any) -> int:
    """In units of 2^-192."""
    return int(mp.nint(mp.ldexp(value, 192)))


def show(name: str, comment: str, rows: list[list[float]] | list[list[int]]) -> None:
    """A flat tuple, each row on lines of its own."""
    print(f"# {comment}\n{name} = (")
    for row in rows:
        text = ", ".join(map(repr, row)) + ","
        print(textwrap.fill(text, 120, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False))
    print(")  # fmt: skip")


def bessel(order: int, second: bool) -> Callable[..., Any]:
    kind = mp.bessely if second else mp.besselj
    return lambda x, derivative=0: kind(order, x, derivative)


def node_rows(order: int, second: bool) -> list[list[float]]:
    """Zeros (with the slope there) and extrema (with the value) in turn, about pi/2 apart."""
    function, rows = bessel(order, second), []
    for index in range(FIRST, LAST + 1):
        is_zero = (index - order) % 2 == 0
        place = index * mp.pi / 2 + (mp.pi / 4 if second else -mp.pi / 4)
        for _ in range(9):
            place -= function(place, 1 - is_zero) / function(place, 2 - is_zero)
        rows.append(parts(place, 3) + parts(function(place, int(is_zero)), 2))
    return rows


def centre_row(centre: float) -> list[int]:
    return [fixed(bessel(order, second)(mp.mpf(centre))) for second in (False, True) for order in (0, 1)]


def modulus_and_phase(order: int, x: Any) -> tuple[Any, Any]:
    """M, p with J = sqrt(2 / (pi x)) M cos(x - pi/4 - order pi/2 + p), Y the same with sin."""
    j, y = mp.besselj(order, x), mp.bessely(order, x)
    phase = mp.atan2(y, j) - (x - mp.pi / 4 - order * mp.pi / 2)
    return mp.sqrt((j * j + y * y) * mp.pi * x / 2), phase - 2 * mp.pi * mp.nint(phase / (2 * mp.pi))


def first_zero(order: int) -> Any:
    return mp.findroot(lambda x: mp.bessely(order, x), (0.8936, 2.1971)[order])


def origin_part(order: int, u: Any) -> Any:
    """(Y - 2/pi J log(x / z)) x^order / (x^2 - z^2) at x = 3 sqrt(u), where z is the first zero of Y: entire in u."""
    x, zero = ORIGIN * mp.sqrt(u), first_zero(order)
    logarithmic = 2 / mp.pi * mp.besselj(order, x) * mp.log(x / zero)
    return (mp.bessely(order, x) - logarithmic) * x**order / (x * x - zero * zero)


def bessel_polynomials() -> list[list[float]]:
    fits: list[Callable[[Any], Any]] = []
    for order in (0, 1):
        fits.append(lambda u, order=order: modulus_and_phase(order, NEAR / mp.sqrt(u))[1] / mp.sqrt(u))
        fits.append(lambda u, order=order: modulus_and_phase(order, NEAR / mp.sqrt(u))[0])
    fits += [lambda u, order=order: origin_part(order, u) for order in (0, 1)]
    return [[part for value in interpolate(fit, 0, 1, DEGREE) for part in parts(value, 2)] for fit in fits]


def log_gamma(x: Any) -> Any:
    return mp.log(abs(mp.gamma(x)))


def gamma_zero(pole: int, side: int) -> Any:
    """The zero of lgamma on one side of a pole, found in the logarithm of the distance from it."""
    guess = {(2, -1): 0.457, (3, 1): 0.253, (3, -1): 0.143}.get((pole, side), 1 / mp.factorial(pole))
    return -pole + side * mp.exp(mp.findroot(lambda e: log_gamma(-pole + side * mp.exp(e)), mp.log(guess)))


def gamma_row(pole: int, side: int, low: float = -0.5, high: float = 0.5, degree: int = 7) -> list[float]:
    """z, and H with lgamma(z + t) = s H(s) - log(1 + s), s = t / (z + pole), for s in an interval."""
    zero = gamma_zero(pole, side)
    away = zero + pole
    smooth = interpolate(lambda s: (log_gamma(zero + s * away) + mp.log1p(s)) / s, low, high, degree)
    return parts(zero, 3) + parts(smooth[0], 2) + [float(value) if abs(value) > 1e-20 else 0.0 for value in smooth[1:]]


def main() -> None:
    print('"""Zeros of functions and expansions around them; made by benchmarks/fit_zeros.py, not by hand."""\n')
    rows = [row for second in (False, True) for order in (0, 1) for row in node_rows(order, second)]
    show("BESSEL_NODES", "J0, J1, Y0, Y1: zeros (three parts) with slopes (two), extrema with values, in turn", rows)
    show(
        "BESSEL_POLYNOMIALS",
        "coefficients in two parts: phase and modulus of order 0, of order 1 in (25/x)^2; Y0, Y1 in (x/3)^2",
        bessel_polynomials(),
    )
    show("Y_ZEROS", "the first zero of Y0 and of Y1, and its logarithm", [
        parts(zero, 3) + parts(mp.log(zero), 2) for zero in map(first_zero, (0, 1))
    ])  # fmt: skip
    print("TWO_OVER_PI = " + repr(tuple(parts(2 / mp.pi, 2))))
    print("EIGHTH_PI = " + repr(tuple(parts(mp.pi / 8, 2))))
    show(
        "BESSEL_CENTRES",
        "J0, J1, Y0, Y1 of 3.5, 5, 7, 10, 14 ... 56, in units of 2^-192",
        list(map(centre_row, CENTRES)),
    )
    print(f"HALF_PI_FIXED = {fixed(mp.pi / 2)}")
    show(
        "LGAMMA_ZEROS",
        "below the pole -2, above and below -3 ... -17: the zero z; H(s), its first in two parts: see `gamma.py`",
        [gamma_row(2, -1, -0.35, 0.33, 20), gamma_row(3, 1, -0.61, 0.56, 20), gamma_row(3, -1, -0.5, 0.51, 20)]
        + [gamma_row(pole, side) for pole in range(4, 18) for side in (1, -1)],
    )


if __name__ == "__main__":
    main()
