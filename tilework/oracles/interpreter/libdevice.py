"""The functions of NVIDIA's libdevice in NumPy, found by their symbol: ``__nv_sinf`` and ``__nv_sin`` are `np.sin`.

Functions of floats are computed in float64 and rounded to the type of the result. Bessel functions are integrals over a
circle or a half line, summed at points that make the rule exact to the last digits. An unknown symbol is an error.
"""

import math
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from tilework.language.dtypes import dtype
from tilework.oracles.interpreter.formats import Array, bits_of, float_to_int
from tilework.oracles.interpreter.fused import fused

Function = Callable[..., Any]
F64 = np.float64
FAR = 300.0  # beyond, Bessel functions are waves


def each(function: Callable[..., float]) -> Function:
    """A function of Python floats on every element; where it is undefined, NaN, where it overflows, infinity."""

    def guarded(*args: float) -> float:
        try:
            return function(*map(float, args))
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return np.vectorize(guarded, otypes=[F64])


def root_of_squares(*args: Array) -> Array:
    return np.sqrt(sum(np.square(x) for x in args))


def round_half_away(x: Array) -> Array:
    whole = np.trunc(x)
    return whole + np.where(np.abs(x - whole) >= 0.5, np.sign(x), 0.0)


def exponent_of(x: Array) -> Array:
    """The exponent of the leading bit: logb."""
    _, exponent = np.frexp(x)
    finite = np.where(x == 0, -np.inf, exponent - 1.0)
    return np.where(np.isinf(x), np.inf, np.where(np.isnan(x), np.nan, finite))


def integer_exponent(x: Array) -> Array:
    """ilogb: the smallest integer for 0 and NaN, the largest for infinities."""
    return float_to_int(np.where(np.isnan(x), -np.inf, exponent_of(x)), dtype("int32"))


def scaled_erfc(x: float) -> float:
    """exp(x * x) * erfc(x), by its asymptotic series where erfc underflows."""
    if x < 10:
        return math.exp(x * x) * math.erfc(x)
    series, term = 1.0, 1.0
    for n in range(1, 12):
        term *= -(2 * n - 1) / (2 * x * x)
        series += term
    return series / (x * math.sqrt(math.pi))


def inverse_erf(x: float) -> float:
    """Newton's method from the logarithmic approximation of Winitzki."""
    if abs(x) >= 1:
        return math.copysign(math.inf, x) if abs(x) == 1 else math.nan
    if x == 0:
        return x
    log = math.log1p(-x * x)
    first = 2 / (math.pi * 0.147) + log / 2
    y = math.copysign(math.sqrt(math.sqrt(first * first - log / 0.147) - first), x)
    for _ in range(4):
        y -= (math.erf(y) - x) / (2 / math.sqrt(math.pi) * math.exp(-y * y))
    return y


def inverse_erfc(x: float) -> float:
    if not 0 < x < 2:
        return {0.0: math.inf, 2.0: -math.inf}.get(x, math.nan)
    if x > 0.1:
        return inverse_erf(1 - x)
    y = math.sqrt(-math.log(x))
    for _ in range(8):  # Newton's method for the logarithm of erfc, which is nearly a parabola
        value = math.erfc(y)
        y += (math.log(value) - math.log(x)) * value / (2 / math.sqrt(math.pi) * math.exp(-y * y))
    return y


def bessel(order: int, x: float) -> float:
    """J_n(x), the mean of cos(n t - x sin t); the trapezoidal rule converges exponentially for periodic functions."""
    if not math.isfinite(x):
        return 0.0 if math.isinf(x) else x
    if abs(x) > FAR and order * order < abs(x):
        return far_away(abs(order), abs(x)).real * (-1) ** (order if order * x < 0 else 0)
    if order > 0 and x * x < 4 * order:  # a tiny value, whose digits the mean would lose
        terms = ((-x * x / 4) ** k / (math.factorial(k) * math.factorial(order + k)) for k in range(40))
        return (x / 2) ** order * math.fsum(terms)
    points = 64 + 2 * int(abs(x)) + 2 * abs(order)
    t = (np.arange(points) + 0.5) * (math.pi / points)
    return float(np.mean(np.cos(order * t - x * np.sin(t))))


def far_away(order: int, x: float) -> complex:
    """J + iY for a large `x`: a wave of decreasing height, times a series in i / x."""
    total, term = 1 + 0j, 1 + 0j
    for k in range(1, 30):
        term *= 1j * (4 * order * order - (2 * k - 1) ** 2) / (8 * k * x)
        total += term
    turned = complex(math.cos(x), math.sin(x)) * (1, -1j, -1, 1j)[order % 4] * (1 - 1j) / math.sqrt(2)
    return math.sqrt(2 / (math.pi * x)) * turned * total


def second_bessel(order: int, x: float) -> float:
    """Y_n(x): the mean of sin(x sin t - n t) over half a circle, less an integral of decaying exponentials."""
    if math.isnan(x) or x < 0:
        return math.nan
    if x == 0 or math.isinf(x):
        return -math.inf if x == 0 else 0.0
    if order > 1:  # upwards from 0 and 1, where Y grows
        before, value = second_bessel(0, x), second_bessel(1, x)
        for k in range(1, order):
            if math.isinf(value):
                break
            before, value = value, 2 * k / x * value - before
        return value
    if order < 0:
        return second_bessel(-order, x) * (-1) ** order
    if x > FAR:
        return far_away(order, x).imag
    waves = integral(lambda t: np.sin(x * np.sin(t) - order * t), 0.0, math.pi, 8 + int(x) // 2)
    reach = math.asinh(750 / x)  # beyond, the exponential underflows

    def decay(t: Array) -> Array:
        return (np.exp(order * t) + (-1) ** order * np.exp(-order * t)) * np.exp(-x * np.sinh(t))

    return (waves - integral(decay, 0.0, reach, 64)) / math.pi


def integral(function: Function, low: float, high: float, panels: int) -> float:
    """Gauss's rule of 24 points on each of `panels` parts."""
    points, weights = np.polynomial.legendre.leggauss(24)
    width = (high - low) / panels
    t = low + width * (np.arange(panels)[:, None] + (points + 1) / 2)
    return float(math.fsum((function(t) * weights).ravel()) * width / 2)


def modified_bessel(order: int, x: float) -> float:
    """I_n(x), the mean of exp(x cos t) cos(n t)."""
    if not math.isfinite(x):
        return math.inf if order == 0 and math.isinf(x) else x
    if order and abs(x) < 1:  # the integral loses the digits of a small value
        return x / 2 * sum((x * x / 4) ** k / (math.factorial(k) * math.factorial(k + 1)) for k in range(12))
    points = 64 + 2 * int(min(abs(x), 1000))
    t = (np.arange(points) + 0.5) * (math.pi / points)
    with np.errstate(over="ignore", invalid="ignore"):
        value = float(np.mean(np.exp(x * np.cos(t)) * np.cos(order * t)))
    return value if math.isfinite(value) else math.inf if order == 0 or x > 0 else -math.inf


def log_gamma(x: float) -> float:
    return math.inf if x <= 0 and x == math.floor(x) else math.lgamma(x)


def gamma(x: float) -> float:
    """At 0 a pole, with the sign of the zero; at negative integers NaN."""
    return math.copysign(math.inf, x) if x == 0 else math.gamma(x)


def sine_of_half_turns(x: Array) -> Array:
    """sin(pi x): folded to at most a quarter turn, where the product with pi is accurate."""
    x = np.where(np.isfinite(x), x, np.nan)
    near = np.rint(x)
    rest, odd = x - near, np.fmod(near, 2.0) != 0
    sine = np.where(np.abs(rest) <= 0.25, np.sin(np.pi * rest), np.copysign(np.cos(np.pi * (0.5 - np.abs(rest))), rest))
    return np.where(rest == 0, np.copysign(0.0, x), np.where(odd, -sine, sine))


def cosine_of_half_turns(x: Array) -> Array:
    """cos(pi x), even and with period 2."""
    x = np.abs(np.fmod(np.where(np.isfinite(x), x, np.nan), 2.0))
    x = np.where(x > 1, 2 - x, x)
    return np.where(
        x <= 0.25, np.cos(np.pi * x), np.where(x >= 0.75, -np.cos(np.pi * (1 - x)), np.sin(np.pi * (0.5 - x)))
    )


FLOATS: dict[str, Function] = {
    **{name: getattr(np, name) for name in "floor ceil trunc rint sqrt cbrt exp exp2 expm1 log log2 log10".split()},
    **{name: getattr(np, name) for name in "log1p sin cos tan sinh cosh tanh hypot fmod copysign".split()},
    **{f"a{name}": getattr(np, f"arc{name}") for name in "sin cos tan sinh cosh tanh".split()},
    "abs": np.abs,
    "atan2": np.arctan2,
    "cospi": cosine_of_half_turns,
    "cyl_bessel_i0": each(lambda x: modified_bessel(0, x)),
    "cyl_bessel_i1": each(lambda x: modified_bessel(1, x)),
    "erf": each(math.erf),
    "erfc": each(math.erfc),
    "erfcinv": each(inverse_erfc),
    "erfcx": each(scaled_erfc),
    "erfinv": each(inverse_erf),
    "exp10": lambda x: np.power(10.0, x),
    "fabs": np.abs,
    "fdim": lambda x, y: np.where(np.isnan(x) | np.isnan(y), np.nan, np.maximum(x - y, 0.0)),
    "fmax": np.fmax,
    "fmin": np.fmin,
    "j0": each(lambda x: bessel(0, x)),
    "j1": each(lambda x: bessel(1, x)),
    "jn": each(lambda order, y: bessel(int(order), y)),
    "ldexp": lambda x, n: np.ldexp(x, n.astype(np.int32)),
    "lgamma": each(log_gamma),
    "logb": exponent_of,
    "nearbyint": np.rint,
    "norm3d": root_of_squares,
    "norm4d": root_of_squares,
    "normcdf": each(lambda x: 0.5 * math.erfc(-x / math.sqrt(2))),
    "normcdfinv": each(lambda x: -math.sqrt(2) * inverse_erfc(2 * x)),
    "pow": np.power,
    "powi": np.power,
    "rcbrt": lambda x: 1.0 / np.cbrt(x),
    "remainder": each(math.remainder),
    "rhypot": lambda x, y: 1.0 / np.hypot(x, y),
    "rnorm3d": lambda *args: 1.0 / root_of_squares(*args),
    "rnorm4d": lambda *args: 1.0 / root_of_squares(*args),
    "round": round_half_away,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "scalbn": lambda x, n: np.ldexp(x, n.astype(np.int32)),
    "sinpi": sine_of_half_turns,
    "tgamma": each(gamma),
    "y0": each(lambda x: second_bessel(0, x)),
    "y1": each(lambda x: second_bessel(1, x)),
    "yn": each(lambda order, y: second_bessel(int(order), y)),
    "saturate": lambda x: np.where(np.isnan(x), 0.0, np.clip(x, 0.0, 1.0)),
    "fdivide": np.divide,
}
ROUNDED: dict[str, Function] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "rcp": lambda x: 1.0 / x,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "fma": lambda x, y, z: x * y + z,
}


def count_bits(x: Array) -> Array:
    bits = bits_of(x)
    planes = [(bits >> bits.dtype.type(place)) & bits.dtype.type(1) for place in range(8 * bits.dtype.itemsize)]
    return np.sum(planes, axis=0)


def leading_zeros(x: Array) -> Array:
    bits, width = bits_of(x), 8 * x.dtype.itemsize
    return width - np.vectorize(lambda value: int(value).bit_length(), otypes=[np.int64])(bits)


def first_set(x: Array) -> Array:
    return np.vectorize(lambda value: (int(value) & -int(value)).bit_length(), otypes=[np.int64])(bits_of(x))


def reversed_bits(x: Array) -> Array:
    width = 8 * x.dtype.itemsize
    flip = np.vectorize(lambda value: int(f"{int(value):0{width}b}"[::-1], 2), otypes=[np.uint64])
    return flip(bits_of(x)).astype(bits_of(x).dtype).view(x.dtype)


def selected_bytes(x: Array, y: Array, selector: Array) -> Array:
    """Four bytes of the eight of ``y:x``, each chosen by a nibble of the selector; bit 3 asks for its sign only."""

    def select(low: Any, high: Any, chosen: Any) -> int:
        source = (int(low) & 0xFFFFFFFF | (int(high) & 0xFFFFFFFF) << 32).to_bytes(8, "little")
        picked = bytearray()
        for place in range(4):
            nibble = int(chosen) >> (4 * place) & 15
            byte = source[nibble & 7]
            picked.append(byte if nibble < 8 else 255 * (byte >> 7))
        return int.from_bytes(picked, "little")

    return np.vectorize(select, otypes=[np.int64])(x, y, selector).astype(np.uint32).view(np.int32)


def exact(function: Callable[..., int]) -> Function:
    """A function of Python ints, of any size."""
    return lambda *args: np.vectorize(lambda *values: function(*map(int, values)), otypes=[object])(*args)


def low_24(x: int) -> int:
    return ((x & 0xFFFFFF) ^ 0x800000) - 0x800000


OTHERS: dict[str, Function] = {
    "abs": np.abs,
    "llabs": np.abs,
    "clz": leading_zeros,
    "clzll": leading_zeros,
    "popc": count_bits,
    "popcll": count_bits,
    "ffs": first_set,
    "ffsll": first_set,
    "brev": reversed_bits,
    "brevll": reversed_bits,
    "byte_perm": selected_bytes,
    "mulhi": exact(lambda x, y: x * y >> 32),
    "umulhi": exact(lambda x, y: x * y >> 32),
    "mul64hi": exact(lambda x, y: x * y >> 64),
    "umul64hi": exact(lambda x, y: x * y >> 64),
    "mul24": exact(lambda x, y: low_24(x) * low_24(y)),
    "umul24": exact(lambda x, y: (x & 0xFFFFFF) * (y & 0xFFFFFF)),
    "hadd": exact(lambda x, y: (x + y) >> 1),
    "uhadd": exact(lambda x, y: (x + y) >> 1),
    "rhadd": exact(lambda x, y: (x + y + 1) >> 1),
    "urhadd": exact(lambda x, y: (x + y + 1) >> 1),
    "sad": exact(lambda x, y, z: abs(x - y) + z),
    "usad": exact(lambda x, y, z: abs(x - y) + z),
    "isnanf": np.isnan,
    "isnand": np.isnan,
    "isinff": np.isinf,
    "isinfd": np.isinf,
    "finitef": np.isfinite,
    "isfinited": np.isfinite,
    "signbitf": np.signbit,
    "signbitd": np.signbit,
    "ilogbf": lambda x: integer_exponent(x.astype(F64)),
    "ilogb": lambda x: integer_exponent(x),
    "llrintf": lambda x: float_to_int(np.rint(x), dtype("int64")),
    "llrint": lambda x: float_to_int(np.rint(x), dtype("int64")),
    "llroundf": lambda x: float_to_int(round_half_away(x.astype(F64)), dtype("int64")),
    "llround": lambda x: float_to_int(round_half_away(x), dtype("int64")),
    "nextafterf": np.nextafter,
    "nextafter": np.nextafter,
    "hiloint2double": lambda high, low: (
        bits_of(high).astype(np.uint64) << np.uint64(32) | bits_of(low).astype(np.uint64)
    ).view(F64),
    "double2loint": lambda x: (bits_of(x) & np.uint64(0xFFFFFFFF)).astype(np.uint32).view(np.int32),
    "double2hiint": lambda x: (bits_of(x) >> np.uint64(32)).astype(np.uint32).view(np.int32),
    "rcp64h": lambda x: (bits_of(1.0 / x) & np.uint64(0xFFFFFFFF00000000)).view(F64),
}
REINTERPRETED = re.compile(r"(float|double|int|uint|longlong)_as_\w+")
CONVERTED = re.compile(r"(float|double|int|uint|ll|ull)2(float|double|int|uint|ll|ull)_(rn|rz|rd|ru)")
ROUNDED_NAME = re.compile(r"(?:[fd]?(add|sub|mul|div|rcp|sqrt|rsqrt)|(fma)f?)_(rn|rz|rd|ru)")
TO_WHOLE = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}
SATURATING = {"int": "int32", "uint": "uint32", "ll": "int64", "ull": "uint64"}


def call(symbol: str, args: Sequence[Array], result: np.dtype[Any]) -> Array:
    """The function `symbol` on arrays of one shape."""
    name = symbol.removeprefix("__nv_")
    computed = evaluate(name, args, result)
    if computed is None:
        raise RuntimeError(f"the library function {symbol} cannot be interpreted: it is not a function of libdevice")
    computed = np.asarray(computed)
    if computed.dtype == object:
        mask = (1 << 8 * result.itemsize) - 1
        computed = np.vectorize(lambda value: value & mask, otypes=[np.uint64])(computed)
    if computed.dtype.kind in "iu" and result.kind in "iu" and computed.dtype.itemsize == result.itemsize:
        return computed.view(result)
    return computed.astype(result)


def evaluate(name: str, args: Sequence[Array], result: np.dtype[Any]) -> Any:
    """The value in any wide enough type, or None for an unknown function."""
    if name in OTHERS:
        return OTHERS[name](*args)
    if name in ("fma", "fmaf"):
        return rounded_operation("fma", args, "rn", result)
    if REINTERPRETED.fullmatch(name):
        return bits_of(args[0]).view(result)
    if match := CONVERTED.fullmatch(name):
        return converted(args[0], match.group(2), match.group(3), result)
    if match := ROUNDED_NAME.fullmatch(name):
        return rounded_operation(match.group(1) or match.group(2), args, match.group(3), result)
    plain = name.removeprefix("fast_")
    function = FLOATS.get(plain) or FLOATS.get(plain.removesuffix("f"))
    return None if function is None else function(*(x.astype(F64) for x in args))


def converted(x: Array, target: str, rounding: str, result: np.dtype[Any]) -> Array:
    """Between integers and floats, in a direction of rounding."""
    if target in SATURATING:
        return float_to_int(TO_WHOLE[rounding](x.astype(F64)), dtype(SATURATING[target])).view(result)
    if rounding == "rn":
        return x.astype(result)
    return directed(lambda value: Fraction(value.item()), np.asarray(x.astype(result)), [x], rounding)


def rounded_operation(name: str, args: Sequence[Array], rounding: str, result: np.dtype[Any]) -> Array:
    """``+``, ``sqrt`` and others, rounded to nearest (rn), to zero (rz), down (rd) or up (ru)."""
    wide = [x.astype(F64) for x in args]
    if name == "fma":
        x, y, z = args
        near = fused(x, y, z, dtype("fp64" if result == F64 else "fp32"))
    else:  # float64 has more than twice the digits of float32, so that rounding again to nearest is harmless
        near = np.asarray(ROUNDED[name](*wide)).astype(result)
    if rounding == "rn":
        return near
    if rounding == "rd" and name in TERMS:  # a sum that cancels is -0 then, unless both terms are +0
        terms = TERMS[name](*wide)
        exact_zero = (near == 0) & np.asarray([t == 0 for t in summed(name, wide)]).reshape(near.shape)
        near = np.where(exact_zero & (np.signbit(terms[0]) | np.signbit(terms[1])), -0.0, near).astype(result)
    square = name in ("sqrt", "rsqrt")
    return directed(lambda *values: EXACT[name](*(Fraction(float(v)) for v in values)), near, wide, rounding, square)


TERMS: dict[str, Function] = {  # the two terms of a sum, for their signs
    "add": lambda x, y: (x, y),
    "sub": lambda x, y: (x, -y),
    "fma": lambda x, y, z: (np.copysign(1.0, x) * np.copysign(1.0, y), z),
}


def summed(name: str, wide: Sequence[Array]) -> list[Fraction]:
    """The exact sums, element by element; where an operand is not finite, a number that is not 0."""
    lanes = zip(*(x.reshape(-1).tolist() for x in wide), strict=True)
    return [EXACT[name](*map(Fraction, lane)) if all(map(math.isfinite, lane)) else Fraction(1) for lane in lanes]


EXACT: dict[str, Callable[..., Fraction]] = {  # for the roots, their squares
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "rcp": lambda x: 1 / x,
    "fma": lambda x, y, z: x * y + z,
    "sqrt": lambda x: x,
    "rsqrt": lambda x: 1 / x,
}


def directed(
    exact: Callable[..., Fraction], near: Array, args: Sequence[Array], rounding: str, square: bool = False
) -> Array:
    """`near`, or its neighbour on the side that the rounding asks for, by comparing with the exact value."""
    flat, inputs = near.reshape(-1).copy(), [x.reshape(-1) for x in args]
    infinity = near.dtype.type(np.inf)
    for lane, value in enumerate(flat):
        operands = [x[lane] for x in inputs]
        if np.isnan(value) or not all(np.isfinite(float(x)) for x in operands):
            continue
        if np.isinf(value) and any(float(x) == 0 for x in operands):
            continue
        goal = exact(*operands)
        excess = math.inf if np.isinf(value) else Fraction(float(value)) ** (2 if square else 1) - goal
        excess = math.copysign(math.inf, value) if np.isinf(value) else excess
        wants_lower = rounding == "rd" or (rounding == "rz" and goal > 0)
        if excess > 0 and wants_lower:
            flat[lane] = np.nextafter(value, -infinity)
        elif excess < 0 and not wants_lower:
            flat[lane] = np.nextafter(value, infinity)
    return flat.reshape(near.shape)
