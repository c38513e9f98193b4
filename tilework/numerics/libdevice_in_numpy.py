"""The functions of NVIDIA's libdevice in NumPy, found by their symbol.

    >>> call("__nv_hypot", [np.array([3e200]), np.array([4e200])], np.dtype(float))
    array([5.e+200])

`DOUBLE` functions are computed in float64 and rounded to the type of the result, so that f32 results are as good as
correctly rounded ones. `OWN` functions are about the bits, the format or the integers that they are given.
"""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilework.numerics import integers, special
from tilework.numerics.arithmetic import Arithmetic, reciprocal_root
from tilework.numerics.integers import signed, unsigned
from tilework.numerics.libdevice_table import SYMBOLS
from tilework.numerics.rounding import F32, F64, Array, bits_of, to_integer

Function = Callable[..., Any]


def each(function: Callable[..., float]) -> Function:
    """Apply a function of Python floats to every element; NaN where it is undefined, infinity where it overflows."""

    def guarded(*args: float) -> float:
        try:
            return function(*args)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return np.vectorize(guarded, otypes=[F64])


def of_order(function: Callable[[int, float], float]) -> Function:
    return each(lambda order, x: function(int(order), x))


def reciprocal_norm(*args: Array) -> Array:
    """1 / hypot, scaled if the norm itself would be infinite or a denormal number."""
    largest = np.maximum.reduce([np.abs(x) for x in args])
    scale = np.where(largest > 2.0**1000, 2.0**-8, np.where(largest < 2.0**-900, 2.0**100, 1.0))
    return 1.0 / norm(*(x * scale for x in args)) * scale


LONGER_NORM = each(math.hypot)


def norm(*args: Array) -> Array:
    return np.hypot(*args) if len(args) == 2 else LONGER_NORM(*args)


def round_half_away(x: Array) -> Array:
    size = np.abs(x)
    whole = np.trunc(size)
    return np.copysign(whole + (size - whole >= 0.5), x)


def exponent_of(x: Array) -> Array:
    """logb: the exponent of the leading bit; of 0, -inf."""
    power = np.frexp(x)[1] - 1.0
    return np.where(x == 0, -np.inf, np.where(np.isfinite(x), power, np.abs(x)))


def integer_exponent(x: Array) -> Array:
    """ilogb: of 0 and NaN the smallest integer, of infinity the largest."""
    return to_integer(np.where(np.isnan(x), -np.inf, exponent_of(x)), np.dtype(np.int32))


def circle(x: Array, quarter: int) -> Array:
    """Return the sine of pi x, with the phase advanced by `quarter` * pi / 2; exact at multiples of one half, where a
    zero of the sine has the sign of x."""
    reduced = np.fmod(np.where(np.isfinite(x), x, np.nan), 2.0)
    half = np.rint(2 * reduced)  # reduced = half / 2 + rest, and the rest is exact
    rest = np.pi * (reduced - half / 2)
    phase = np.mod(half + quarter, 4)
    value = np.where(phase % 2 == 0, np.sin(rest), np.cos(rest)) * np.where(phase < 2, 1.0, -1.0)
    return np.where(value == 0, np.copysign(0.0, x) if quarter == 0 else 0.0, value)


DOUBLE: dict[str, Function] = {
    **{name: getattr(np, name) for name in "floor ceil trunc rint sqrt cbrt exp exp2 expm1 log log2 log10".split()},
    **{name: getattr(np, name) for name in "log1p sin cos tan sinh cosh tanh fmod".split()},
    **{f"a{name}": getattr(np, f"arc{name}") for name in "sin cos tan sinh cosh tanh".split()},
    "atan2": np.arctan2,
    "cospi": lambda x: circle(x, 1),
    "cyl_bessel_i0": each(lambda x: special.bessel_i(0, x)),
    "cyl_bessel_i1": each(lambda x: special.bessel_i(1, x)),
    "erf": each(math.erf),
    "erfc": each(math.erfc),
    "erfcinv": each(special.inverse_erfc),
    "erfcx": each(special.scaled_erfc),
    "erfinv": each(special.inverse_erf),
    "exp10": lambda x: np.power(10.0, x),
    "fdim": lambda x, y: np.where(np.isnan(x) | np.isnan(y), np.nan, np.where(x > y, x - y, 0.0)),
    "fdivide": np.divide,
    "hypot": np.hypot,
    "ilogb": integer_exponent,
    "j0": each(lambda x: special.bessel_j(0, x)),
    "j1": each(lambda x: special.bessel_j(1, x)),
    "jn": of_order(special.bessel_j),
    "ldexp": np.ldexp,
    "lgamma": each(special.log_gamma),
    "llrint": lambda x: to_integer(np.rint(x), np.dtype(np.int64)),
    "llround": lambda x: to_integer(round_half_away(x), np.dtype(np.int64)),
    "logb": exponent_of,
    "nearbyint": np.rint,
    "norm3d": norm,
    "norm4d": norm,
    "normcdf": each(special.normal_cdf),
    "normcdfinv": each(special.inverse_normal_cdf),
    "pow": np.power,
    "powi": lambda x, n: np.power(x, n.astype(F64)),
    "rcbrt": lambda x: 1.0 / np.cbrt(x),
    "remainder": each(math.remainder),
    "rhypot": reciprocal_norm,
    "rnorm3d": reciprocal_norm,
    "rnorm4d": reciprocal_norm,
    "round": round_half_away,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "saturate": lambda x: np.where(x > 0, np.minimum(x, 1.0), 0.0),
    "scalbn": np.ldexp,
    "sinpi": lambda x: circle(x, 0),
    "tgamma": each(special.gamma),
    "y0": each(lambda x: special.bessel_y(0, x)),
    "y1": each(lambda x: special.bessel_y(1, x)),
    "yn": of_order(special.bessel_y),
}


def half_sum(rounds_up: int) -> Function:
    return lambda x, y: (x.astype(np.int64) + y.astype(np.int64) + rounds_up) >> 1


def absolute_differences(x: Array, y: Array, z: Array) -> Array:
    return np.abs(x.astype(np.int64) - y.astype(np.int64)) + z.astype(np.int64)


def low_product(x: Array, y: Array) -> Array:
    return integers.low_24(x) * integers.low_24(y)


OWN: dict[str, Function] = {
    "abs": np.abs,
    "as_float": bits_of,
    "as_int": bits_of,
    "brev": integers.reversed_bits,
    "byte_perm": integers.selected_bytes,
    "clz": integers.leading_zeros,
    "copysign": np.copysign,
    "double2hiint": lambda x: bits_of(x) >> np.uint64(32),
    "double2loint": lambda x: bits_of(x) & np.uint64(0xFFFFFFFF),
    "ffs": integers.first_set,
    "fma": lambda x, y, z: Arithmetic.of(x.dtype).fma(x, y, z),
    "hadd": half_sum(0),
    "hiloint2double": lambda high, low: (unsigned(high).astype(np.uint64) << np.uint64(32) | unsigned(low)).view(F64),
    "isfinite": np.isfinite,
    "isinf": np.isinf,
    "isnan": np.isnan,
    "mul24": low_product,
    "mulhi": integers.high_product,
    "nextafter": np.nextafter,
    "popc": integers.one_bits,
    "rcp64h": lambda x: integers.upper_half(1.0 / integers.upper_half(x)),
    "rhadd": half_sum(1),
    "rsqrt_rn": lambda x: Arithmetic.of(x.dtype).round(*reciprocal_root(x.astype(F64))),
    "sad": absolute_differences,
    "signbit": np.signbit,
    "uhadd": half_sum(0),
    "umul24": low_product,
    "umulhi": integers.high_product,
    "urhadd": half_sum(1),
    "usad": absolute_differences,
}
ROUNDED_OPERATIONS: dict[str, Function] = {  # ``add_rd`` and its kin: of the arithmetic, arguments and mode
    "add": Arithmetic.add,
    "sub": lambda compute, a, b, mode: compute.add(a, -b, mode),
    "mul": Arithmetic.multiply,
    "div": Arithmetic.divide,
    "rcp": lambda compute, a, mode: compute.divide(np.ones_like(a), a, mode),
    "sqrt": Arithmetic.square_root,
    "fma": Arithmetic.fma,
}
ROUNDED = re.compile(rf"({'|'.join(ROUNDED_OPERATIONS)})_(r.)")
CONVERSION = re.compile(r"(float|double|int|uint|ll|ull)2(float|double|int|uint|ll|ull)_(r.)")
MODES = {"rn": "rn", "rz": "rz", "rd": "rm", "ru": "rp"}
TO_WHOLE: dict[str, Function] = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}
INTEGERS = {"int": np.dtype("i4"), "uint": np.dtype("u4"), "ll": np.dtype("i8"), "ull": np.dtype("u8")}
VIEWS: dict[str, Callable[[Array], Array]] = {"i": signed, "l": signed, "u": unsigned, "k": unsigned}


def call(symbol: str, args: Sequence[Array], result: np.dtype[Any]) -> Array | None:
    """Call the function `symbol` on arrays of one shape, None if there is none; integers may be of either sign."""
    known = SYMBOLS.get(symbol)
    if known is None:
        return None
    values = [VIEWS.get(code, np.asarray)(arg) for code, arg in zip(known.arguments, args, strict=True)]
    with np.errstate(all="ignore"):
        computed = np.asarray(evaluate(known.function, values))
        return computed.view(result) if known.function in ("as_int", "as_float") else computed.astype(result)


def evaluate(name: str, args: Sequence[Array]) -> Any:
    """Return the value, in any type that holds it."""
    if name in OWN:
        return OWN[name](*args)
    if match := ROUNDED.fullmatch(name):
        return ROUNDED_OPERATIONS[match[1]](Arithmetic.of(args[0].dtype), *args, MODES[match[2]])
    if match := CONVERSION.fullmatch(name):
        return converted(args[0], match[2], match[3])
    return DOUBLE[name](*(x.astype(F64) if x.dtype == F32 else x for x in args))


def converted(x: Array, target: str, rounding: str) -> Array:
    """Convert between integers and floats with a rounding mode."""
    if target in INTEGERS:
        return to_integer(TO_WHOLE[rounding](x.astype(F64)), INTEGERS[target])
    compute = Arithmetic.of(F32 if target == "float" else F64)
    if x.dtype.kind == "f":
        return compute.round(x, np.zeros(x.shape), MODES[rounding])
    return compute.integer(x, MODES[rounding])
