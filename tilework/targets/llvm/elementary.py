"""Rules of the `math` dialect and of library functions: the formulas of `targets/llvm/math`, on scalars and vectors.

f16, bf16 and 8-bit floats are widened to f32 and the result is rounded back. `tt.extern_elementwise` names a function of
libdevice (``__nv_expf``), which has the same meaning here.
"""

from xdsl.dialects import math
from xdsl.ir import Operation

from tilework.ir import tt
from tilework.ir.types import is_float
from tilework.numerics.libdevice_table import SYMBOLS
from tilework.targets.llvm.conversions import fma_to_odd, narrow, to_odd, widen
from tilework.targets.llvm.op_lowering import Low
from tilework.targets.llvm.rules import result_type, scalar_rule, text_of
from tilework.targets.llvm.scalar_types import register_type
from tilework.targets.llvm.scalars import widened
from tilework.targets.llvm.types import f32, f64
from tilework.targets.llvm.values import Value

SAME_NAME: tuple[type[Operation], ...] = (
    *(math.ExpOp, math.Exp2Op, math.ExpM1Op, math.LogOp, math.Log2Op, math.Log10Op, math.Log1pOp),
    *(math.SinOp, math.CosOp, math.TanOp, math.AsinOp, math.AcosOp, math.AtanOp, math.Atan2Op),
    *(math.SinhOp, math.CoshOp, math.TanhOp, math.AsinhOp, math.AcoshOp, math.AtanhOp, math.ErfOp),
    *(math.CbrtOp, math.SqrtOp, math.RsqrtOp, math.CopySignOp),
    *(math.FloorOp, math.CeilOp, math.TruncOp, math.RoundOp),
)
FUNCTION_OF: dict[type[Operation], str] = {
    **{op: op.name.removeprefix("math.") for op in SAME_NAME},
    math.RoundEvenOp: "rint",
    math.PowFOp: "pow",
    math.AbsFOp: "abs",
}


@scalar_rule(*FUNCTION_OF)
def lower_function(low: Low, op: Operation, *args: Value) -> Value:
    return narrow(low.builder, low.function(FUNCTION_OF[type(op)], *widened(low, op, args)), result_type(op))


@scalar_rule(math.FmaOp)
def lower_fma(low: Low, op: Operation, x: Value, y: Value, z: Value) -> Value:
    """One rounding. Narrow formats compute in f64, where the product is exact, and round the sum to odd."""
    b = low.builder
    if x.type.scalar is f32 or x.type.scalar is f64:
        return b.fma(x, y, z)
    double = x.type.with_scalar(f64)
    x, y, z = (b.fpext(widen(b, arg, result_type(op)), double) for arg in (x, y, z))
    return narrow(b, to_odd(b, fma_to_odd(b, x, y, z)), result_type(op))


INTEGER_FUNCTIONS: dict[type[Operation], str] = {
    math.AbsIOp: "abs",
    math.CountLeadingZerosOp: "ctlz",
    math.CountTrailingZerosOp: "cttz",
    math.CtPopOp: "ctpop",
}


@scalar_rule(*INTEGER_FUNCTIONS)
def lower_integer_function(low: Low, op: Operation, value: Value) -> Value:
    return getattr(low.builder, INTEGER_FUNCTIONS[type(op)])(value)


@scalar_rule(tt.ExternElementwiseOp)
def lower_extern(low: Low, op: Operation, *args: Value) -> Value:
    if (name := text_of(op, "symbol")) not in SYMBOLS:
        raise low.refuse(op, f"the function '{name}' (extern_elementwise)")
    b, result = low.builder, result_type(op)
    made = low.function(SYMBOLS[name].function, *args)
    wanted = made.type.with_scalar(register_type(result))
    if made.type is wanted:
        return made
    if made.type.is_int and not is_float(result):
        return b.cast(made, wanted, is_signed=False)
    return b.bitcast(made, wanted)
