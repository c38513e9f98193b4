"""Every function by its name, and which one a libdevice symbol means.

    FUNCTIONS["exp"](b, [x])                 # x: f32 or f64, a scalar or a vector of any width
    LIBDEVICE["__nv_expf"]                   # ("exp", f32)

f16 and bf16 callers widen to f32 first. A function whose f32 form goes through f64 is marked in `THROUGH_F64`; one
that is long (`OUTLINED`) is built once per module as an internal function of two lanes, called as often as a vector
needs: this keeps compile time down.
"""

from collections.abc import Callable, Sequence

from tilework.numerics.libdevice_table import SYMBOLS
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.math import (
    algebraic,
    bessel,
    exponential,
    gamma,
    integers,
    inverse,
    logarithm,
    rounding,
    special,
    trigonometric,
)
from tilework.targets.llvm.math.lanes import (
    Lanes,
    bits,
    copysign,
    floor,
    fma,
    from_bits,
    narrow,
    rint,
    sqrt,
    trunc,
    widen,
)
from tilework.targets.llvm.types import Type, f32, f64, i32, i64, vector
from tilework.targets.llvm.values import Value

Formula = Callable[..., Lanes]
Function = Callable[[Builder, Sequence[Value]], Value]

DIRECT: dict[str, Formula] = {
    "exp": exponential.exp,
    "exp2": exponential.exp2,
    "exp10": exponential.exp10,
    "tanh": exponential.tanh,
    "log": logarithm.log,
    "log2": logarithm.log2,
    "pow": logarithm.pow,
    "sin": trigonometric.sin,
    "cos": trigonometric.cos,
    "erf": special.erf,
    "sqrt": sqrt,
    "rsqrt": algebraic.rsqrt,
    "floor": floor,
    "ceil": lambda x: Lanes(x.b, x.b.ceil(x.v)),
    "trunc": trunc,
    "rint": rint,
    "nearbyint": rint,
    "round": algebraic.round_half_away,
    "abs": lambda x: abs(x),
    "fma": fma,
    "copysign": copysign,
    "nextafter": algebraic.nextafter,
    "fdim": algebraic.fdim,
    "logb": algebraic.logb,
    "ilogb": algebraic.ilogb,
    "ldexp": algebraic.ldexp,
    "scalbn": algebraic.ldexp,
    "saturate": algebraic.saturate,
    "llrint": algebraic.llrint,
    "llround": algebraic.llround,
    "isnan": algebraic.is_nan,
    "isinf": algebraic.is_inf,
    "isfinite": algebraic.is_finite,
    "signbit": algebraic.signbit,
    "fdivide": lambda x, y: x / y,
    "clz": integers.clz,
    "popc": integers.popc,
    "ffs": integers.ffs,
    "brev": integers.brev,
    "byte_perm": integers.byte_perm,
    "mulhi": integers.mulhi,
    "umulhi": integers.umulhi,
    "mul24": integers.mul24,
    "umul24": integers.umul24,
    "hadd": integers.hadd,
    "uhadd": integers.uhadd,
    "rhadd": integers.rhadd,
    "urhadd": integers.urhadd,
    "sad": integers.sad,
    "usad": integers.usad,
    "hiloint2double": lambda high, low: from_bits(integers.hiloint2double(high, low)),
    "double2loint": lambda x: integers.as_i32(x, bits(x)),
    "double2hiint": lambda x: integers.as_i32(x, bits(x).logical_shift(32)),
    "as_int": bits,
    "as_float": from_bits,
    "rcp64h": lambda x: from_bits(bits(1.0 / from_bits(bits(x) & -(1 << 32))) & -(1 << 32)),
}
DIRECT |= {f"{op}_{mode}": rounding.arithmetic(op, mode) for op in rounding.EXACT for mode in rounding.MODES}
DIRECT |= rounding.conversions()

THROUGH_F64: dict[str, Formula] = {
    "expm1": exponential.expm1,
    "sinh": exponential.sinh,
    "cosh": exponential.cosh,
    "log10": logarithm.log10,
    "log1p": logarithm.log1p,
    "asinh": logarithm.asinh,
    "acosh": logarithm.acosh,
    "atanh": logarithm.atanh,
    "powi": algebraic.powi,
    "tan": trigonometric.tan,
    "sinpi": trigonometric.sinpi,
    "cospi": trigonometric.cospi,
    "asin": inverse.asin,
    "acos": inverse.acos,
    "atan": inverse.atan,
    "atan2": inverse.atan2,
    "erfc": special.erfc,
    "erfcx": special.erfcx,
    "erfinv": special.erfinv,
    "erfcinv": special.erfcinv,
    "normcdf": special.normcdf,
    "normcdfinv": special.normcdfinv,
    "cbrt": algebraic.cbrt,
    "rcbrt": algebraic.rcbrt,
    "hypot": algebraic.norm,
    "rhypot": algebraic.reciprocal_norm,
    "norm3d": algebraic.norm,
    "rnorm3d": algebraic.reciprocal_norm,
    "norm4d": algebraic.norm,
    "rnorm4d": algebraic.reciprocal_norm,
    "fmod": algebraic.fmod,
    "remainder": algebraic.remainder,
    "lgamma": gamma.lgamma,
    "tgamma": gamma.tgamma,
    "rsqrt_rn": lambda x: 1.0 / sqrt(x),
    "j0": bessel.j0,
    "j1": bessel.j1,
    "jn": bessel.jn,
    "y0": bessel.y0,
    "y1": bessel.y1,
    "yn": bessel.yn,
    "cyl_bessel_i0": bessel.cyl_bessel_i0,
    "cyl_bessel_i1": bessel.cyl_bessel_i1,
}

OUTLINED = frozenset(
    {"lgamma", "tgamma", "erfinv", "erfcinv", "normcdfinv", "normcdf", "asinh", "acosh", "atanh", "powi", "erfcx"}
)
CHUNK = 2


def direct(formula: Formula) -> Function:
    def function(b: Builder, args: Sequence[Value]) -> Value:
        with b.fast_math():  # the formulas count on each rounding: the caller's flags stay outside
            return formula(*[Lanes(b, arg) for arg in args]).v

    return function


def through_f64(name: str, formula: Formula) -> Function:
    """f32 arguments are widened, the result narrowed; integers stay as they are."""

    def body(b: Builder, args: Sequence[Value]) -> Value:
        lanes = [Lanes(b, arg) for arg in args]
        if not any(lane.scalar is f32 for lane in lanes):
            return formula(*lanes).v
        return narrow(formula(*[widen(lane) if lane.scalar is f32 else lane for lane in lanes])).v

    def function(b: Builder, args: Sequence[Value]) -> Value:
        with b.fast_math():
            return in_chunks(b, f"tilework.{name}", args, body) if name in OUTLINED else body(b, args)

    return function


def in_chunks(b: Builder, name: str, args: Sequence[Value], body: Function) -> Value:
    """Call an internal function of CHUNK lanes for each piece of the arguments."""
    shape = next(arg.type for arg in args if arg.type.is_float)
    if shape.count & (shape.count - 1):
        return body(b, args)
    if not shape.is_vector:
        return b.outline(f"{name}.{shape.suffix}", shape, args, body)
    starts = range(0, shape.count, CHUNK)
    result = vector(shape.scalar, CHUNK)
    parts = []
    for first in starts:
        pieces = [b.shuffle(arg, None, range(first, first + CHUNK)) for arg in args]
        parts.append(b.outline(f"{name}.{result.suffix}", result, pieces, body))
    while len(parts) > 1:
        parts = [b.concat(*parts[place : place + 2]) for place in range(0, len(parts), 2)]
    return parts[0]


FUNCTIONS: dict[str, Function] = {name: direct(formula) for name, formula in DIRECT.items()}
FUNCTIONS |= {name: through_f64(name, formula) for name, formula in THROUGH_F64.items()}


KINDS = {"f": f32, "d": f64, "i": i32, "u": i32, "l": i64, "k": i64}


def libdevice_type(arguments: str) -> Type:
    """The type of the first floating-point argument, or of the first argument."""
    return KINDS[next((code for code in arguments if code in "fd"), arguments[0])]


LIBDEVICE: dict[str, tuple[str, Type]] = {
    symbol: (known.function, libdevice_type(known.arguments)) for symbol, known in SYMBOLS.items()
}
