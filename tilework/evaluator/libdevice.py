"""Rules of `tt.extern_elementwise` for the libdevice symbols that NumPy or `math` can compute, and of inline assembly.

A regular function X is the pair of symbols `__nv_Xf` (f32) and `__nv_X` (f64). Functions are computed in f64 and
rounded once, so results are at least as accurate as the device's. Assembly is not executed: the error quotes it.
"""

import math
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.ir import Operation

from tilework.evaluator.errors import Fault
from tilework.evaluator.floats import (
    F32,
    F64,
    Array,
    fit,
    from_integer,
    fused_multiply_add,
    narrow,
    narrow_to_zero,
    narrow_towards,
    signed,
    storage,
    to_integer,
    unsigned,
)
from tilework.evaluator.math_ops import erf, high_product, leading_zeros, one_bits, rounded, rsqrt, trailing_zeros
from tilework.evaluator.table import evaluates
from tilework.ir import tt
from tilework.ir.types import element_type, is_float

if TYPE_CHECKING:
    from tilework.evaluator.machine import Machine

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
    return np.sqrt(sum(arg * arg for arg in args))


def positive_difference(x: Array, y: Array) -> Array:
    return np.where(np.isnan(x) | np.isnan(y), np.nan, np.maximum(x - y, 0.0))


def normal_cdf(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


def scaled_erfc(x: float) -> float:
    """exp(x*x) * erfc(x); beyond the range of erfc its continued fraction has converged."""
    return math.exp(x * x) * math.erfc(x) if x < 25 else 1 / (x * math.sqrt(math.pi)) * (1 - 0.5 / (x * x))


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
    "logb": lambda x: np.floor(np.log2(np.abs(x))),
    "sinpi": lambda x: np.sin(np.pi * np.fmod(x, 2.0)),
    "cospi": lambda x: np.cos(np.pi * np.fmod(x, 2.0)),
    "erf": erf,
    "erfc": elementwise(lambda x: math.erfc(x)),
    "erfcx": elementwise(scaled_erfc),
    "normcdf": elementwise(normal_cdf),
    "lgamma": elementwise(lambda x: math.lgamma(x)),
    "tgamma": elementwise(lambda x: math.gamma(x)),
    "rhypot": lambda x, y: 1.0 / np.hypot(x, y),
    "remainder": elementwise(lambda x, y: math.remainder(x, y)),
    "fdim": positive_difference,
    "pow": np.power,
    "norm3d": norm,
    "norm4d": norm,
    "rnorm3d": lambda *args: 1.0 / norm(*args),
    "rnorm4d": lambda *args: 1.0 / norm(*args),
    "cyl_bessel_i0": np.i0,
    "ldexp": lambda x, n: np.ldexp(x, n.astype(np.int32)),
    "scalbn": lambda x, n: np.ldexp(x, n.astype(np.int32)),
    "powi": lambda x, n: np.power(x, n.astype(F64)),
}

FAST = {"sinf": np.sin, "cosf": np.cos, "tanf": np.tan, "expf": np.exp, "exp10f": REGULAR["exp10"], "logf": np.log}
FAST |= {"log2f": np.log2, "log10f": np.log10, "fdividef": np.divide, "powf": np.power, "tanhf": np.tanh}

ROUNDED: dict[str, Function] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "rcp": lambda x: 1.0 / x,
    "sqrt": np.sqrt,
    "rsqrt": rsqrt,
}


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
ROUNDINGS: dict[str, Callable[[Array, np.dtype[Any]], Array]] = {
    "rn": narrow,
    "rz": narrow_to_zero,
    "rd": lambda value, dtype: narrow_towards(value, dtype, -math.inf),
    "ru": lambda value, dtype: narrow_towards(value, dtype, math.inf),
}
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
    stem = name[:-1] if name.endswith("f") and args[-1].dtype != F64 else name
    if name in INTEGER and args[0].dtype.kind in "bi":
        return fit(np.asarray(INTEGER[name](*map(signed, args))), type_)
    if name in TESTS:
        return np.asarray(TESTS[name](args[0])).astype(dtype)
    if name in BIT_CASTS:
        return np.ascontiguousarray(args[0]).view(dtype).reshape(args[0].shape)
    if stem in TO_NEAREST_INTEGER:
        return to_integer(np.asarray(TO_NEAREST_INTEGER[stem](doubles[0])), type_, is_unsigned=False)
    if stem == "ilogb":
        return to_integer(np.asarray(REGULAR["logb"](doubles[0])), type_, is_unsigned=False)
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
    if name[:1] in ("f", "d") and name[1:-3] in ROUNDED and (dtype == F32 or name.endswith("_rn")):
        return ROUNDINGS[name[-2:]](np.asarray(ROUNDED[name[1:-3]](*doubles)), dtype)
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
    if source in INTEGER_NAMES and target in ("float", "double") and mode == "rn":
        return from_integer(unsigned(src) if INTEGER_NAMES[source] else src, storage(type_))
    if source in ("int", "uint") and target == "float" and mode in ROUNDINGS:
        return ROUNDINGS[mode]((unsigned(src) if source == "uint" else src).astype(F64), F32)
    if (source, target) == ("double", "float") and mode in ROUNDINGS:
        return ROUNDINGS[mode](src, F32)
    return None


@evaluates(tt.ElementwiseInlineAsmOp)
def eval_inline_asm(machine: "Machine", op: Operation, *args: Array) -> Array:
    text = op.properties["asm_string"].data  # pyright: ignore[reportAttributeAccessIssue]
    raise Fault(f"is assembly, which the evaluator does not execute: {text!r}")
