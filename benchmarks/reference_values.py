"""Make tests/backends/elementary_reference.txt: exact values of the f64 elementary functions at drawn points.

    python -m venv fit-env && fit-env/bin/pip install mpmath
    fit-env/bin/python benchmarks/reference_values.py > tests/backends/elementary_reference.txt

A line is a function, its arguments, and its value as high + low (hexadecimal floats), so that errors below one unit
in the last place can be measured. mpmath is needed only here.
"""

import random
from collections.abc import Callable
from typing import Any

import mpmath as mp

POINTS = 24
DRAW = random.Random(7)
Sampler = Callable[[], float]


def between(low: float, high: float) -> Sampler:
    return lambda: DRAW.uniform(low, high)


def power(low: float, high: float, both_signs: bool = True) -> Sampler:
    """10 to a drawn power, of either sign."""
    return lambda: 10.0 ** DRAW.uniform(low, high) * (DRAW.choice((-1, 1)) if both_signs else 1)


def near(place: float, low: float = -15, high: float = -1) -> Sampler:
    return lambda: place + 10.0 ** DRAW.uniform(low, high) * DRAW.choice((-1, 1))


def below_one() -> float:
    return 1 - 10.0 ** DRAW.uniform(-15, -1)


def quarter_turns() -> float:
    return float(DRAW.randrange(1, 10**6) * mp.pi / 2)


def scaled_erfc(x: Any) -> Any:
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
}


def main() -> None:
    mp.mp.dps = 360  # enough for the sine of 1e308
    for name, (function, samplers) in FUNCTIONS.items():
        made = 0
        while made < POINTS:
            args = [choices[made % len(choices)]() for choices in samplers]
            value = function(*[mp.mpf(arg) for arg in args])
            if abs(value) < mp.mpf(2) ** 1024 and (value == 0 or abs(value) > mp.mpf(2) ** -1074):
                high = float(value)
                print(name, *[arg.hex() for arg in args], high.hex(), float(value - mp.mpf(high)).hex())
                made += 1


if __name__ == "__main__":
    main()
