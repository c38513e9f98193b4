"""Every function by its name, and which one a libdevice symbol means.

    FUNCTIONS["exp"](b, [x])                 # x: f32 or f64, a scalar or a vector of any width
    LIBDEVICE["__nv_expf"]                   # ("exp", f32)

f16 and bf16 callers widen to f32 first. A function whose f32 form goes through f64 is marked in `THROUGH_F64`; one
that is long (`OUTLINED`) is built once per module as an internal function of two lanes, called as often as a vector
needs: this keeps compile time down.
"""

from collections.abc import Callable, Sequence

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


def libdevice_symbols() -> dict[str, tuple[str, Type]]:
    """symbol -> (name in FUNCTIONS, type of its first floating-point argument, or of its first argument)."""
    regular = (
        "floor ceil trunc rint nearbyint round sqrt rsqrt cbrt rcbrt exp exp2 exp10 expm1 log log2 log10 "
        "log1p logb sin cos tan sinpi cospi asin acos atan sinh cosh tanh asinh acosh atanh erf erfc erfcx "
        "erfinv erfcinv normcdf normcdfinv lgamma tgamma j0 j1 y0 y1 cyl_bessel_i0 cyl_bessel_i1 atan2 hypot "
        "rhypot fmod remainder fdim copysign nextafter fma norm3d rnorm3d norm4d rnorm4d pow powi ldexp "
        "scalbn jn yn ilogb llrint llround "
    ).split()
    found: dict[str, tuple[str, Type]] = {}
    for name in regular:
        found[f"{name}f"], found[name] = (name, f32), (name, f64)
    found |= {"fabsf": ("abs", f32), "fabs": ("abs", f64), "abs": ("abs", i32), "llabs": ("abs", i64)}
    for name in ("clz", "popc", "ffs", "brev"):
        found[name], found[f"{name}ll"] = (name, i32), (name, i64)
    for name in ("byte_perm", "mulhi", "umulhi", "mul24", "umul24", "hadd", "uhadd", "rhadd", "urhadd", "sad", "usad"):
        found[name] = (name, i32)
    found |= {"mul64hi": ("mulhi", i64), "umul64hi": ("umulhi", i64), "hiloint2double": ("hiloint2double", i32)}
    for mode in rounding.MODES:
        for op in ("add", "sub", "mul", "div", "rcp", "sqrt"):
            found[f"f{op}_{mode}"], found[f"d{op}_{mode}"] = (f"{op}_{mode}", f32), (f"{op}_{mode}", f64)
        found[f"fmaf_{mode}"], found[f"fma_{mode}"] = (f"fma_{mode}", f32), (f"fma_{mode}", f64)
    for name in rounding.conversions():
        kinds = {"float": f32, "double": f64, "int": i32, "uint": i32, "ll": i64, "ull": i64}
        found[name] = (name, kinds[name.split("2")[0]])
    found |= {"frsqrt_rn": ("rsqrt_rn", f32), "rcp64h": ("rcp64h", f64), "saturatef": ("saturate", f32)}
    for name in ("sin", "cos", "tan", "exp", "exp10", "log", "log2", "log10", "pow", "tanh"):
        found[f"fast_{name}f"] = (name, f32)
    found |= {"fast_fdividef": ("fdivide", f32), "signbitf": ("signbit", f32), "signbitd": ("signbit", f64)}
    found |= {"isnanf": ("isnan", f32), "isnand": ("isnan", f64), "isinff": ("isinf", f32), "isinfd": ("isinf", f64)}
    found |= {"finitef": ("isfinite", f32), "isfinited": ("isfinite", f64)}
    found |= {"double2loint": ("double2loint", f64), "double2hiint": ("double2hiint", f64)}
    found |= {"float_as_int": ("as_int", f32), "float_as_uint": ("as_int", f32), "double_as_longlong": ("as_int", f64)}
    found |= {
        "int_as_float": ("as_float", i32),
        "uint_as_float": ("as_float", i32),
        "longlong_as_double": ("as_float", i64),
    }
    return {f"__nv_{name}": target for name, target in found.items()}


LIBDEVICE: dict[str, tuple[str, Type]] = libdevice_symbols()
