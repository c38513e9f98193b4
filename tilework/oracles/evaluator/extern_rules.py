"""Rules of `tt.extern_elementwise` for every symbol of libdevice, and of inline assembly.

A regular function X is the pair of symbols `__nv_Xf` (f32) and `__nv_X` (f64). Functions are computed in f64 and
rounded once, so results are at least as accurate as the device's. Assembly is not executed: the error quotes it.
"""

import math
import re
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.ir import Operation

from tilework.ir import tt
from tilework.ir.types import element_type, is_float
from tilework.oracles.evaluator import special
from tilework.oracles.evaluator.directed import directed, whole_to_float
from tilework.oracles.evaluator.evaluation_errors import Fault
from tilework.oracles.evaluator.floats import (
    F64,
    Array,
    fit,
    fused_multiply_add,
    narrow,
    signed,
    storage,
    to_integer,
    unsigned,
)
from tilework.oracles.evaluator.math_ops import (
    erf,
    high_product,
    leading_zeros,
    one_bits,
    rounded,
    rsqrt,
    trailing_zeros,
)
from tilework.oracles.evaluator.table import evaluates

if TYPE_CHECKING:
    from tilework.oracles.evaluator.machine import Machine

Function = Callable[..., Any]


def elementwise(function: FunctionType) -> Function:
    """A `math` function on arrays; where it raises (a pole or a domain error) the result is NaN or infinite."""

    def guarded(*args: float) -> float:
        try:
            return function(*args)
        except OverflowError:
            return math.inf
        except ValueError:
            return math.nan

    vector = np.frompyfunc(guarded, function.__code__.co_argcount, 1)
    return lambda *args: np.asarray(vector(*args), dtype=object).astype(F64)


def norm(*args: Array) -> Array:
    largest = np.maximum.reduce([np.abs(arg) for arg in args])
    scale = np.where((largest > 0) & np.isfinite(largest), largest, 1.0)
    length = scale * np.sqrt(sum((arg / scale) ** 2 for arg in args))
    infinite = np.logical_or.reduce([np.isinf(arg) for arg in args])
    return np.where(infinite, np.inf, length)


def exponent(x: Array) -> Array:
    """logb: the exponent of the leading bit; of 0, -inf."""
    power = np.frexp(x)[1] - 1.0
    return np.where(x == 0, -np.inf, np.where(np.isfinite(x), power, np.abs(x)))


def integer_exponent(x: Array) -> Array:
    """ilogb: of 0 and NaN the smallest integer, of infinity the largest."""
    return np.where(np.isnan(x), -np.inf, exponent(x))


def circle(x: Array, shift: int) -> Array:
    """sin of pi * (x + shift / 2), exact at multiples of one half."""
    turns = np.fmod(np.where(np.isfinite(x), x, np.nan), 2.0)
    half = np.rint(2 * turns)  # turns = half / 2 + rest, and the rest is exact
    rest = np.pi * (turns - half / 2)
    quarter = np.mod(half + shift, 4)
    value = np.select(
        [quarter == 0, quarter == 1, quarter == 2], [np.sin(rest), np.cos(rest), -np.sin(rest)], -np.cos(rest)
    )
    return np.where((value == 0) & (shift == 0), np.copysign(0.0, x), np.where(value == 0, 0.0, value))


def gamma_log(x: float) -> float:
    return math.inf if x <= 0 and x == math.floor(x) else math.lgamma(x)


def gamma(x: float) -> float:
    """At 0 a pole, with the sign of the zero; at negative integers NaN."""
    return math.copysign(math.inf, x) if x == 0 else math.gamma(x)


def positive_difference(x: Array, y: Array) -> Array:
    return np.where(np.isnan(x) | np.isnan(y), np.nan, np.maximum(x - y, 0.0))


def normal_cdf(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def scaled_erfc(x: float) -> float:
    """exp(x*x) * erfc(x); for larger x its continued fraction, x + (1/2)/(x + (2/2)/(x + (3/2)/(x + ...)))."""
    if x < 2 or math.isnan(x):
        return math.exp(x * x) * math.erfc(x)
    fraction = x
    for k in range(150, 0, -1):
        fraction = x + k / 2 / fraction
    return 1 / (fraction * math.sqrt(math.pi))


REGULAR: dict[str, Function] = {
    **{name: getattr(np, name) for name in ("floor", "ceil", "trunc", "rint", "sqrt", "cbrt", "exp", "exp2", "expm1")},
    **{name: getattr(np, name) for name in ("log", "log2", "log10", "log1p", "hypot", "fmod", "copysign", "nextafter")},
    **{name: getattr(np, name) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "atan2": np.arctan2,
    "nearbyint": np.rint,
    "round": rounded,
    "rsqrt": rsqrt,
    "rcbrt": lambda x: 1.0 / np.cbrt(x),
    "exp10": lambda x: np.power(10.0, x),
    "logb": exponent,
    "sinpi": lambda x: circle(x, 0),
    "cospi": lambda x: circle(x, 1),
    "erf": erf,
    "erfc": elementwise(lambda x: math.erfc(x)),
    "erfcx": elementwise(scaled_erfc),
    "erfinv": elementwise(special.inverse_erf),
    "erfcinv": elementwise(special.inverse_erfc),
    "normcdf": elementwise(normal_cdf),
    "normcdfinv": elementwise(special.inverse_normal_cdf),
    "lgamma": elementwise(gamma_log),
    "tgamma": elementwise(gamma),
    "j0": elementwise(lambda x: special.bessel_j(0, x)),
    "j1": elementwise(lambda x: special.bessel_j(1, x)),
    "jn": elementwise(lambda n, x: special.bessel_j(int(n), x)),
    "y0": elementwise(lambda x: special.bessel_y(0, x)),
    "y1": elementwise(lambda x: special.bessel_y(1, x)),
    "yn": elementwise(lambda n, x: special.bessel_y(int(n), x)),
    "cyl_bessel_i0": elementwise(lambda x: special.bessel_i(0, x)),
    "cyl_bessel_i1": elementwise(lambda x: special.bessel_i(1, x)),
    "rhypot": lambda x, y: 1.0 / np.hypot(x, y),
    "remainder": elementwise(lambda x, y: math.remainder(x, y)),
    "fdim": positive_difference,
    "pow": np.power,
    "norm3d": norm,
    "norm4d": norm,
    "rnorm3d": lambda *args: 1.0 / norm(*args),
    "rnorm4d": lambda *args: 1.0 / norm(*args),
    "ldexp": lambda x, n: np.ldexp(x, n.astype(np.int32)),
    "scalbn": lambda x, n: np.ldexp(x, n.astype(np.int32)),
    "powi": lambda x, n: np.power(x, n.astype(F64)),
}

FAST = {"sinf": np.sin, "cosf": np.cos, "tanf": np.tan, "expf": np.exp, "exp10f": REGULAR["exp10"], "logf": np.log}
FAST |= {"log2f": np.log2, "log10f": np.log10, "fdividef": np.divide, "powf": np.power, "tanhf": np.tanh}

ROUNDED = re.compile(r"[fd](add|sub|mul|div|rcp|sqrt|rsqrt)_(rn|rz|rd|ru)|(fma)f?_(rn|rz|rd|ru)")


def saturating(x: Array) -> Array:
    return np.where(np.isnan(x), 0.0, np.clip(x, 0.0, 1.0))


def absolute_difference(x: Array, y: Array, z: Array) -> Array:
    return np.abs(x.astype(np.int64) - y.astype(np.int64)) + z


def reversed_bits(src: Array) -> Array:
    bits = unsigned(src)
    width, one = bits.dtype.itemsize * 8, bits.dtype.type(1)
    total = np.zeros_like(bits)
    for position in range(width):
        total |= ((bits >> bits.dtype.type(position)) & one) << bits.dtype.type(width - 1 - position)
    return total.view(src.dtype)


def byte_permutation(x: Array, y: Array, selector: Array) -> Array:
    """Four bytes chosen from the eight of `y:x`, each by a nibble of `selector`; bit 3 repeats the byte's sign."""
    both = unsigned(x).astype(np.uint64) | (unsigned(y).astype(np.uint64) << np.uint64(32))
    total = np.zeros_like(both)
    for place in range(4):
        nibble = (unsigned(selector).astype(np.uint64) >> np.uint64(4 * place)) & np.uint64(15)
        byte = (both >> ((nibble & np.uint64(7)) * np.uint64(8))) & np.uint64(255)
        sign = np.where(byte >= 128, np.uint64(255), np.uint64(0))
        total |= np.where(nibble >= 8, sign, byte) << np.uint64(8 * place)
    return total


def signed_high_product(x: Array, y: Array) -> Array:
    high = high_product(unsigned(x), unsigned(y)).view(x.dtype)
    return high - np.where(x < 0, y, 0) - np.where(y < 0, x, 0)


def low24(value: Array) -> Array:
    """The lowest 24 bits, sign-extended."""
    return ((value.astype(np.int64) & 0xFFFFFF) ^ 0x800000) - 0x800000


INTEGER: dict[str, Function] = {
    "abs": np.abs,
    "llabs": np.abs,
    "clz": leading_zeros,
    "clzll": leading_zeros,
    "popc": one_bits,
    "popcll": one_bits,
    "ffs": lambda x: np.where(x == 0, 0, trailing_zeros(x) + 1),
    "ffsll": lambda x: np.where(x == 0, 0, trailing_zeros(x) + 1),
    "brev": reversed_bits,
    "brevll": reversed_bits,
    "byte_perm": byte_permutation,
    "mulhi": signed_high_product,
    "mul64hi": signed_high_product,
    "umulhi": lambda x, y: high_product(unsigned(x), unsigned(y)),
    "umul64hi": lambda x, y: high_product(unsigned(x), unsigned(y)),
    "mul24": lambda x, y: low24(x) * low24(y),
    "umul24": lambda x, y: (x.astype(np.int64) & 0xFFFFFF) * (y.astype(np.int64) & 0xFFFFFF),
    "hadd": lambda x, y: (x.astype(np.int64) + y) >> 1,
    "rhadd": lambda x, y: (x.astype(np.int64) + y + 1) >> 1,
    "uhadd": lambda x, y: (unsigned(x).astype(np.int64) + unsigned(y)) >> 1,
    "urhadd": lambda x, y: (unsigned(x).astype(np.int64) + unsigned(y) + 1) >> 1,
    "sad": absolute_difference,
    "usad": lambda x, y, z: absolute_difference(unsigned(x), unsigned(y), z),
}

TESTS: dict[str, Function] = {
    "isnanf": np.isnan,
    "isnand": np.isnan,
    "isinff": np.isinf,
    "isinfd": np.isinf,
    "finitef": np.isfinite,
    "isfinited": np.isfinite,
    "signbitf": np.signbit,
    "signbitd": np.signbit,
}

HALVES: dict[str, Function] = {  # the two 32-bit halves of a double
    "hiloint2double": lambda high, low: join_halves(high, low),
    "double2hiint": lambda x: (x.view(np.int64) >> 32).astype(np.int32),
    "double2loint": lambda x: x.view(np.int64).astype(np.int32),
    "rcp64h": lambda x: ((1.0 / x).view(np.int64) >> 32 << 32).view(F64),
}


def join_halves(high: Array, low: Array) -> Array:
    return np.asarray(high.astype(np.int64) << 32 | unsigned(low).astype(np.int64)).view(F64)


BIT_CASTS = frozenset(
    f"{a}_as_{b}"
    for a, b in [
        ("int", "float"),
        ("uint", "float"),
        ("float", "int"),
        ("float", "uint"),
        ("longlong", "double"),
        ("double", "longlong"),
    ]
)
TO_NEAREST_INTEGER = {"llrint": np.rint, "llround": rounded}
ROUND_TO_INTEGER: dict[str, Function] = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}
INTEGER_NAMES = {"int": False, "ll": False, "uint": True, "ull": True}


@evaluates(tt.ExternElementwiseOp, elementwise=True)
def eval_extern(machine: "Machine", op: Operation, *args: Array) -> Array:
    symbol = op.properties["symbol"].data  # pyright: ignore[reportAttributeAccessIssue]
    name = symbol.removeprefix("__nv_")
    answer = call(name, args, op) if name != symbol else None
    if answer is None:
        raise Fault(f"calls '{symbol}', which the evaluator does not know")
    return answer


def call(name: str, args: tuple[Array, ...], op: Operation) -> Array | None:
    """The libdevice function `name`, or None when there is none."""
    type_ = op.results[0].type
    dtype = storage(type_)
    doubles = [arg.astype(F64) for arg in args]
    stem = name[:-1] if name.endswith("f") and F64 not in (args[0].dtype, args[-1].dtype) else name
    if name in INTEGER and args[0].dtype.kind in "bi":
        return fit(np.asarray(INTEGER[name](*map(signed, args))), type_)
    if name in TESTS:
        return np.asarray(TESTS[name](args[0])).astype(dtype)
    if name in BIT_CASTS:
        return np.ascontiguousarray(args[0]).view(dtype).reshape(args[0].shape)
    if stem in TO_NEAREST_INTEGER:
        return to_integer(np.asarray(TO_NEAREST_INTEGER[stem](doubles[0])), type_, is_unsigned=False)
    if stem == "ilogb":
        return to_integer(integer_exponent(doubles[0]), type_, is_unsigned=False)
    if stem == "fabs":
        return np.asarray(np.abs(args[0]))
    if stem == "fma":
        return fused_multiply_add(*args)
    if name == "saturatef":
        return narrow(saturating(doubles[0]), dtype)
    if name.startswith("fast_") and name[5:] in FAST:
        return narrow(np.asarray(FAST[name[5:]](*doubles)), dtype)
    if "2" in name and (cast := conversion(name, args[0], op)) is not None:
        return cast
    if name in HALVES:
        return HALVES[name](*args)
    if match := ROUNDED.fullmatch(name):
        return directed(match[1] or match[3], args, dtype, match[2] or match[4])
    if stem in REGULAR and is_float(element_type(type_)):
        return regular(stem, args, doubles, dtype)
    return None


def regular(name: str, args: tuple[Array, ...], doubles: list[Array], dtype: np.dtype[Any]) -> Array:
    """A function of the regular family; `nextafter` is about neighbours in its own format."""
    values = args if name == "nextafter" else doubles
    return narrow(np.asarray(REGULAR[name](*values)), dtype)


def conversion(name: str, src: Array, op: Operation) -> Array | None:
    """Functions named ``float2int_rz`` or ``ull2double_rn``."""
    source, _, rest = name.partition("2")
    target, _, mode = rest.partition("_")
    type_ = op.results[0].type
    if source in ("float", "double") and target in INTEGER_NAMES and mode in ROUND_TO_INTEGER:
        whole = np.asarray(ROUND_TO_INTEGER[mode](src.astype(F64)))
        return to_integer(whole, type_, INTEGER_NAMES[target])
    if source in INTEGER_NAMES and target in ("float", "double"):
        return whole_to_float(unsigned(src) if INTEGER_NAMES[source] else src, storage(type_), mode)
    if (source, target) == ("double", "float"):
        return whole_to_float(src, storage(type_), mode)
    return None


@evaluates(tt.ElementwiseInlineAsmOp)
def eval_inline_asm(machine: "Machine", op: Operation, *args: Array) -> Array:
    text = op.properties["asm_string"].data  # pyright: ignore[reportAttributeAccessIssue]
    raise Fault(f"is assembly, which the evaluator does not execute: {text!r}")
