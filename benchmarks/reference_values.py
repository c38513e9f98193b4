"""Make tests/targets/elementary_reference.txt: exact values of the f64 elementary functions at generated points,
and at chosen ones: the floats on both sides of zeros, extrema, powers of ten.

    python -m venv fit-env && fit-env/bin/pip install mpmath
    fit-env/bin/python benchmarks/reference_values.py > tests/targets/elementary_reference.txt

A line is a function, its arguments, and its value as high + low (hexadecimal floats), so that errors below one unit
in the last place can be measured. mpmath is needed only here.
"""

import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import mpmath as mp

POINTS = 24
DRAW = random.Random(7)
Sampler = Callable[[], float]


def between(low: float, high: float) -> Sampler:
    return lambda: DRAW.uniform(low, high)


def power(low: float, high: float, both_signs: bool = True) -> Sampler:
    """10 to a generated power, of either sign."""
    return lambda: 10.0 ** DRAW.uniform(low, high) * (DRAW.choice((-1, 1)) if both_signs else 1)


def near(position: float, low: float = -15, high: float = -1) -> Sampler:
    return lambda: position + 10.0 ** DRAW.uniform(low, high) * DRAW.choice((-1, 1))


def below_one() -> float:
    return 1 - 10.0 ** DRAW.uniform(-15, -1)


def quarter_turns() -> float:
    return float(DRAW.randrange(1, 10**6) * mp.pi / 2)


def scaled_erfc(x: Any) -> Any:
    if x > 1e50:
        return 1 / (x * mp.sqrt(mp.pi))  # times 1 - 1/(2 x^2) + ...
    with mp.workdps(60 + int(abs(x) * abs(x) / 2)):
        return mp.exp(x * x) * mp.erfc(x)


def inverse_erfc(y: Any) -> Any:
    """Newton's method on log erfc."""
    if y > 1:
        return -inverse_erfc(2 - y)
    x = mp.sqrt(-mp.log(y * (2 - y) / 2)) if y < 0.5 else (1 - y) * mp.sqrt(mp.pi) / 2
    for _ in range(40):
        slope = -2 / mp.sqrt(mp.pi) * mp.exp(-x * x) / mp.erfc(x)
        x -= mp.log(mp.erfc(x) / y) / slope
    return x


def root_of_squares(*numbers: Any) -> Any:
    return mp.sqrt(mp.fsum(number * number for number in numbers))


def order() -> float:
    return float(DRAW.choice((0, 1, 2, 3, 5, 10, 50, -3)))


ANGLES = [between(-10, 10), power(-10, 8), power(8, 308), quarter_turns]
LOGS = [power(-320, 308, False), between(0.5, 2), near(1.0)]
FUNCTIONS: dict[str, tuple[Callable[..., Any], list[list[Sampler]]]] = {
    "exp": (mp.exp, [[between(-746, 709), between(-1, 1), power(-20, 0)]]),
    "exp2": (lambda x: mp.power(2, x), [[between(-1075, 1023), between(-1, 1)]]),
    "exp10": (lambda x: mp.power(10, x), [[between(-323, 308), between(-1, 1)]]),
    "expm1": (mp.expm1, [[between(-40, 709), between(-1, 1), power(-20, 0)]]),
    "log": (mp.log, [LOGS]),
    "log2": (lambda x: mp.log(x) / mp.log(2), [LOGS]),
    "log10": (mp.log10, [LOGS]),
    "log1p": (mp.log1p, [[power(-300, 308, False), between(-0.999, 2), power(-18, -0.1)]]),
    "sin": (mp.sin, [ANGLES]),
    "cos": (mp.cos, [ANGLES]),
    "tan": (mp.tan, [ANGLES]),
    "sinpi": (mp.sinpi, [[between(-10, 10), power(-10, 8)]]),
    "cospi": (mp.cospi, [[between(-10, 10), power(-10, 8)]]),
    "sinh": (mp.sinh, [[between(-710, 710), between(-2, 2), power(-18, 0)]]),
    "cosh": (mp.cosh, [[between(-710, 710), between(-2, 2), power(-18, 0)]]),
    "tanh": (mp.tanh, [[between(-20, 20), between(-1, 1), power(-18, 0)]]),
    "asin": (mp.asin, [[between(-1, 1), below_one, power(-18, 0)]]),
    "acos": (mp.acos, [[between(-1, 1), below_one, power(-18, 0)]]),
    "atan": (mp.atan, [[between(-3, 3), power(-18, 300)]]),
    "atan2": (mp.atan2, [[between(-3, 3), power(-300, 300)], [between(-3, 3), power(-300, 300)]]),
    "asinh": (mp.asinh, [[between(-3, 3), power(-18, 300)]]),
    "acosh": (mp.acosh, [[between(1, 3), power(0.01, 300, False)]]),
    "atanh": (mp.atanh, [[between(-1, 1), below_one, power(-18, 0)]]),
    "erf": (mp.erf, [[between(-6, 6), power(-18, 0)]]),
    "erfc": (mp.erfc, [[between(-6, 26), between(-1, 3), power(-18, 0)]]),
    "erfcx": (scaled_erfc, [[between(-20, 40), between(0, 3)]]),
    "erfinv": (lambda y: mp.sign(y) * inverse_erfc(1 - abs(y)), [[between(-1, 1), below_one]]),
    "erfcinv": (inverse_erfc, [[between(0, 2), power(-300, 0, False)]]),
    "normcdf": (lambda x: mp.erfc(-x / mp.sqrt(2)) / 2, [[between(-37, 8), between(-3, 3)]]),
    "normcdfinv": (lambda y: -mp.sqrt(2) * inverse_erfc(2 * y), [[between(0, 1), power(-300, -0.4, False)]]),
    "pow": (
        mp.power,
        [
            [power(-150, 150, False), between(0, 3), near(1.0, -6)],
            [between(-2, 2), between(-300, 300), between(-1e3, 1e3)],
        ],
    ),
    "cbrt": (lambda x: mp.sign(x) * mp.cbrt(abs(x)), [[power(-320, 308), between(-9, 9)]]),
    "rsqrt": (lambda x: 1 / mp.sqrt(x), [[power(-320, 308, False), between(0, 4)]]),
    "hypot": (mp.hypot, [[between(-3, 3), power(-310, 307)], [between(-3, 3), power(-310, 307)]]),
    "lgamma": (
        lambda x: mp.re(mp.loggamma(x)),
        [[between(0, 4), between(0, 50), power(-20, 300, False), near(1.0), near(2.0)]],
    ),
    "tgamma": (mp.gamma, [[between(0, 171.6), between(-20, 20), between(-170, 0)]]),
    "j0": (mp.j0, [[between(0, 100)]]),
    "j1": (mp.j1, [[between(-100, 100)]]),
    "y0": (lambda x: mp.bessely(0, x), [[between(0, 100), power(-6, 0, False)]]),
    "y1": (lambda x: mp.bessely(1, x), [[between(0, 100), power(-6, 0, False)]]),
    "cyl_bessel_i0": (lambda x: mp.besseli(0, x), [[between(-100, 100)]]),
    "cyl_bessel_i1": (lambda x: mp.besseli(1, x), [[between(-100, 100)]]),
    "rcbrt": (lambda x: mp.sign(x) / mp.cbrt(abs(x)), [[power(-320, 308), between(-9, 9)]]),
    "rhypot": (lambda *x: 1 / root_of_squares(*x), [[between(-3, 3), power(-300, 307)]] * 2),
    "norm3d": (lambda *x: root_of_squares(*x), [[between(-3, 3), power(-300, 307)]] * 3),
    "rnorm3d": (lambda *x: 1 / root_of_squares(*x), [[between(-3, 3), power(-300, 307)]] * 3),
    "norm4d": (lambda *x: root_of_squares(*x), [[between(-3, 3), power(-300, 307)]] * 4),
    "rnorm4d": (lambda *x: 1 / root_of_squares(*x), [[between(-3, 3), power(-300, 307)]] * 4),
    "powi": (lambda x, n: x ** int(n), [[between(-9, 9), near(1.0, -6)], [lambda: float(DRAW.randrange(-300, 300))]]),
    "jn": (lambda n, x: mp.besselj(int(n), x), [[order], [between(0, 8), between(0, 200), power(-4, 6, False)]]),
    "yn": (lambda n, x: mp.bessely(int(n), x), [[order], [between(0, 8), between(0, 200), power(-2, 6, False)]]),
}


def beside(position: Any) -> tuple[float, float]:
    """The floats on both sides of a number."""
    near = float(position)
    return near, math.nextafter(near, math.inf if near < position else -math.inf)


def bessel_points(zero_of: Callable[..., Any], index: int, least: float) -> Iterator[tuple[float]]:
    """Thirty zeros, fifteen extrema, large and tiny arguments."""
    with mp.workdps(40):
        for k in range(1, 31):
            yield from ((x,) for x in beside(zero_of(index, k)))
        for k in range(2, 17):
            yield (float(zero_of(index, k, 1)),)
    yield from ((10.0**exponent * 1.1,) for exponent in range(2, 301, 12))
    yield from ((x,) for x in (2.927596759215223e231, 2.6550857908629187e271))  # as near to a zero as huge floats are
    yield from ((x,) for x in (least, 1e-300, 1e-20, 3e-9, 1.5, 3.0, 25.0, math.nextafter(25.0, 0.0)))


def order_points(zero_of: Callable[..., Any]) -> Iterator[tuple[float, float]]:
    """The float nearest to each of thirty zeros."""
    with mp.workdps(40):
        for n in (2, 3, 5, 10, 50):
            yield from ((float(n), float(zero_of(n, k))) for k in range(1, 31))


def gamma_zero(pole: int, side: int, guess: Any) -> Any:
    """The distance from a pole at which |gamma| is 1."""
    return mp.exp(mp.findroot(lambda e: mp.log(abs(mp.gamma(-pole + side * mp.exp(e)))), mp.log(guess)))


def lgamma_points() -> Iterator[tuple[float]]:
    """Both sides of each negative zero, further from it, and near 1 and 2."""
    for pole in range(2, 21):
        for side in (1, -1):
            if (pole, side) == (2, 1):
                continue
            guess = {(2, -1): 0.457, (3, 1): 0.253, (3, -1): 0.143}.get((pole, side), 1 / mp.factorial(pole))
            with mp.workdps(60):
                size = gamma_zero(pole, side, guess)
                indices = [float(-pole + side * size * factor) for factor in (0.5, 0.999, 1.4)]
                yield from ((x,) for x in (*beside(-pole + side * size), *indices) if x != -pole)
    for position in (1.0, 2.0):
        yield from ((position + side * 2.0**-k,) for side in (1, -1) for k in (1, 2, 3, 8, 20, 40, 50, 52))


POINTS_OF: dict[str, Callable[[], Iterator[tuple[float, ...]]]] = {
    "j0": lambda: bessel_points(mp.besseljzero, 0, 5e-324),
    "j1": lambda: bessel_points(mp.besseljzero, 1, 1e-307),
    "y0": lambda: bessel_points(mp.besselyzero, 0, 5e-324),
    "y1": lambda: bessel_points(mp.besselyzero, 1, 1e-307),
    "jn": lambda: order_points(mp.besseljzero),
    "yn": lambda: order_points(mp.besselyzero),
    "lgamma": lgamma_points,
    "erfc": lambda: ((x,) for x in (1e-12, 3.6e-6, 2.9e-8, 1e-3, -1e-3, -0.3)),
    "normcdf": lambda: ((x,) for x in (-0.0021, -0.033, -1.6e-7, -1e-10, 0.3)),
    "erfcx": lambda: ((x,) for x in (-0.0203, -0.0456, -0.5, 0.0083, 1e80, 1e100, 1e300)),
}


def show(name: str, args: tuple[float, ...]) -> bool:
    """Print a line, if the value is a float that is not tiny or huge."""
    value = FUNCTIONS[name][0](*[mp.mpf(arg) for arg in args])
    if not (abs(value) < mp.mpf(2) ** 1024 and (value == 0 or abs(value) > mp.mpf(2) ** -1074)):
        return False
    high = float(value)
    print(name, *[arg.hex() for arg in args], high.hex(), float(value - mp.mpf(high)).hex())
    return True


def main() -> None:
    mp.mp.dps = 360  # enough for the sine of 1e308
    for name, (_, samplers) in FUNCTIONS.items():
        made = 0
        while made < POINTS:
            made += show(name, tuple(choices[made % len(choices)]() for choices in samplers))
    for name, points in POINTS_OF.items():
        for args in points():
            show(name, args)


if __name__ == "__main__":
    main()
