"""Every function by its name.

    FUNCTIONS["exp"](b, [x])                 # x: f32 or f64, a scalar or a vector of any width

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
    logarithm,
    rounding,
    special,
    trigonometric,
)
from tilework.targets.llvm.math.lanes import Lanes, bits, from_bits, narrow, widen
from tilework.targets.llvm.types import f32, vector
from tilework.targets.llvm.values import Value

Formula = Callable[..., Lanes]
Function = Callable[[Builder, Sequence[Value]], Value]


def named(*formulas: Formula) -> dict[str, Formula]:
    return {formula.__name__: formula for formula in formulas}


DIRECT: dict[str, Formula] = {
    **named(exponential.exp, exponential.exp2, exponential.exp10, exponential.expm1, exponential.tanh),
    **named(exponential.sinh, exponential.cosh, logarithm.log, logarithm.log1p, logarithm.log2, logarithm.log10),
    **named(logarithm.pow, logarithm.asinh, logarithm.acosh, logarithm.atanh, special.erf, special.erfc),
    **named(special.erfinv, special.erfcx, special.normcdf),
    **named(trigonometric.sin, trigonometric.cos, trigonometric.tan, trigonometric.sinpi, trigonometric.cospi),
    **named(trigonometric.asin, trigonometric.acos, trigonometric.atan, trigonometric.atan2),
    **algebraic.DIRECT,
    **algebraic.FUNCTIONS,
    "double2loint": lambda x: algebraic.as_i32(bits(x)),
    "double2hiint": lambda x: algebraic.as_i32(bits(x).logical_shift(32)),
    "as_int": bits,
    "as_float": from_bits,
    "rcp64h": lambda x: from_bits(bits(1.0 / from_bits(bits(x) & -(1 << 32))) & -(1 << 32)),
}
DIRECT |= {f"{op}_{mode}": rounding.arithmetic(op, mode) for op in rounding.EXACT for mode in rounding.MODES}
DIRECT |= rounding.conversions()

THROUGH_F64: dict[str, Formula] = {
    **named(special.erfcinv, special.normcdfinv, gamma.lgamma, gamma.tgamma),
    **algebraic.THROUGH_F64,
    **bessel.THROUGH_F64,
}

OUTLINED = frozenset(
    {"tgamma", "erfinv", "erfcinv", "normcdfinv", "normcdf", "asinh", "acosh", "atanh", "powi", "erfcx"}
)
CHUNK = 2


def listed(name: str, formula: Formula, is_through_f64: bool) -> Function:
    """Return the function of a formula. If it `is_through_f64`, f32 arguments are widened and the result is
    narrowed."""

    def body(b: Builder, args: Sequence[Value]) -> Value:
        lanes = [Lanes(b, arg) for arg in args]
        if not is_through_f64 or not any(lane.scalar is f32 for lane in lanes):
            return formula(*lanes).v
        return narrow(formula(*[widen(lane) if lane.scalar is f32 else lane for lane in lanes])).v

    def function(b: Builder, args: Sequence[Value]) -> Value:
        with b.fast_math():  # the formulas rely on each rounding: the caller's flags do not apply
            is_short = name not in OUTLINED or (args[0].type.scalar is f32 and not is_through_f64)
            return body(b, args) if is_short else in_chunks(b, f"tilework.{name}", args, body)

    return function


def in_chunks(b: Builder, name: str, args: Sequence[Value], body: Function) -> Value:
    """Call an internal function of CHUNK lanes for each piece of the arguments."""
    shape = next(arg.type for arg in args if arg.type.is_float)
    if not shape.is_vector:
        return b.outline(f"{name}.{shape.suffix}", shape, args, body)
    count, result = shape.count, vector(shape.scalar, CHUNK)
    parts: list[Value] = []
    for first in range(0, count, CHUNK):  # of a piece that is not whole, the last lane is computed again
        lanes = [min(lane, count - 1) for lane in range(first, first + CHUNK)]
        pieces = [b.shuffle(arg, None, lanes) for arg in args]
        parts.append(b.outline(f"{name}.{result.suffix}", result, pieces, body))
    parts += parts[-1:] * ((1 << (len(parts) - 1).bit_length()) - len(parts))
    while len(parts) > 1:
        parts = [b.concat(*parts[first : first + 2]) for first in range(0, len(parts), 2)]
    return b.shuffle(parts[0], None, range(count))


FUNCTIONS: dict[str, Function] = {name: listed(name, formula, False) for name, formula in DIRECT.items()}
FUNCTIONS |= {name: listed(name, formula, True) for name, formula in THROUGH_F64.items()}
