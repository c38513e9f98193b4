"""Rules of `arith` and of the elementwise ops of `tt`, on scalars and vectors alike.

Integers wrap around. What LLVM leaves undefined has the results that the evaluator fixes: ``x / 0`` and ``x % 0`` are
0, ``INT_MIN / -1`` is INT_MIN, and a shift by the width or more pushes every bit out. No instruction here can trap.
Floats narrower than f32 are computed in f32 and rounded once per operation (conversions.py).

Rules of the `math` dialect and of library functions: the formulas of `targets/llvm/math`, on scalars and vectors.

f16, bf16 and 8-bit floats are widened to f32 and the result is rounded back. `tt.extern_elementwise` names a function
of libdevice (``__nv_expf``), which has the same meaning here.
"""

from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Operation

from tilework.ir import arith, math, tt, ub
from tilework.ir.arith import RemfOp, SelectOp
from tilework.ir.enums import PropagateNan, RoundingMode
from tilework.ir.types import element_type, int_property, is_float
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.conversions import (
    fma_to_odd,
    from_integer,
    is_float8,
    narrow,
    narrow_to_zero,
    to_integer,
    to_odd,
    widen,
)
from tilework.targets.llvm.op_lowering import Low
from tilework.targets.llvm.rules import operand_type, result_type, scalar_rule, text_of
from tilework.targets.llvm.scalar_types import pointee_bytes, register_type
from tilework.targets.llvm.types import f32, f64, i64
from tilework.targets.llvm.values import Value, constant, signed


@scalar_rule(arith.ConstantOp)
def lower_constant(low: Low, op: Operation) -> Value:
    return scalar_constant(low, op.properties["value"])


def scalar_constant(low: Low, value: Attribute) -> Value:
    """The LLVM constant of an IntegerAttr or FloatAttr."""
    if isinstance(value, IntegerAttr):
        return constant(register_type(value.type), value.value.data)
    assert isinstance(value, FloatAttr), f"a tile constant outside of a table: {value}"
    scalar = value.value.data
    if is_float8(value.type):
        return narrow(low.builder, constant(f32, scalar), value.type)
    return constant(register_type(value.type), scalar)


@scalar_rule(ub.PoisonOp)
def lower_poison(low: Low, op: Operation) -> Value:
    """An undefined value is zero."""
    return constant(register_type(result_type(op)), 0)


# Integers

WRAPPING = {
    arith.AddiOp: "add",
    arith.SubiOp: "sub",
    arith.MuliOp: "mul",
    arith.AndIOp: "and_",
    arith.OrIOp: "or_",
    arith.XOrIOp: "xor",
    arith.MinSIOp: "smin",
    arith.MaxSIOp: "smax",
    arith.MinUIOp: "umin",
    arith.MaxUIOp: "umax",
}


@scalar_rule(*WRAPPING)
def lower_wrapping(low: Low, op: Operation, lhs: Value, rhs: Value) -> Value:
    return getattr(low.builder, WRAPPING[type(op)])(lhs, rhs)


def safe_divisor(low: Low, rhs: Value, is_signed: bool) -> Value:
    """`rhs`, but 1 where the division would be undefined."""
    b = low.builder
    if rhs.constant.__class__ is int:
        is_bad = rhs.constant == 0 or (is_signed and signed(rhs.type, rhs.constant) == -1)
        return constant(rhs.type, 1) if is_bad else rhs
    is_bad = b.icmp("eq", rhs, 0)
    if is_signed:
        is_bad = b.or_(is_bad, b.icmp("eq", rhs, -1))
    return b.select(is_bad, constant(rhs.type, 1), rhs)


def divide(low: Low, lhs: Value, rhs: Value, is_signed: bool) -> Value:
    """Towards zero; by 0 it is 0, by -1 the negative, which wraps around."""
    b = low.builder
    divisor = safe_divisor(low, rhs, is_signed)
    quotient = b.sdiv(lhs, divisor) if is_signed else b.udiv(lhs, divisor)
    if is_signed:
        quotient = b.select(b.icmp("eq", rhs, -1), b.neg(lhs), quotient)
    return b.select(b.icmp("eq", rhs, 0), constant(lhs.type, 0), quotient)


def remainder(low: Low, lhs: Value, rhs: Value, is_signed: bool) -> Value:
    """With the sign of `lhs`; by 0 and by -1 it is 0, which is what the safe divisor 1 gives."""
    divisor = safe_divisor(low, rhs, is_signed)
    return low.builder.srem(lhs, divisor) if is_signed else low.builder.urem(lhs, divisor)


@scalar_rule(arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp)
def lower_division(low: Low, op: Operation, lhs: Value, rhs: Value) -> Value:
    compute = divide if type(op) in (arith.DivSIOp, arith.DivUIOp) else remainder
    return compute(low, lhs, rhs, type(op) in (arith.DivSIOp, arith.RemSIOp))


@scalar_rule(arith.FloorDivSIOp, arith.CeilDivSIOp, arith.CeilDivUIOp)
def lower_rounded_division(low: Low, op: Operation, lhs: Value, rhs: Value) -> Value:
    """The quotient, one lower (or higher) where there is a remainder and the exact quotient is negative (positive)."""
    b, is_signed = low.builder, type(op) is not arith.CeilDivUIOp
    quotient = divide(low, lhs, rhs, is_signed)
    rest = b.icmp("ne", remainder(low, lhs, rhs, is_signed), 0)
    zero, one = constant(lhs.type, 0), constant(lhs.type, 1)
    if not is_signed:
        return b.add(quotient, b.select(rest, one, zero))
    is_negative = b.icmp("slt", b.xor(lhs, rhs), 0)
    if type(op) is arith.FloorDivSIOp:
        return b.sub(quotient, b.select(b.and_(rest, is_negative), one, zero))
    return b.add(quotient, b.select(b.and_(rest, b.not_(is_negative)), one, zero))


@scalar_rule(arith.ShLIOp, arith.ShRUIOp, arith.ShRSIOp)
def lower_shift(low: Low, op: Operation, value: Value, amount: Value) -> Value:
    b, width = low.builder, value.type.scalar.bits
    shift = {arith.ShLIOp: b.shl, arith.ShRUIOp: b.lshr, arith.ShRSIOp: b.ashr}[type(op)]
    if type(op) is arith.ShRSIOp:
        return shift(value, b.umin(amount, width - 1))
    if amount.constant.__class__ is int:
        return shift(value, amount) if amount.constant < width else constant(value.type, 0)
    inside = b.icmp("ult", amount, width)
    return b.select(inside, shift(value, b.and_(amount, width - 1)), constant(value.type, 0))


@scalar_rule(tt.MulhiUIOp)
def lower_mulhiui(low: Low, op: Operation, lhs: Value, rhs: Value) -> Value:
    return low.builder.mul_high(lhs, rhs, False)


INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
FLOAT_PREDICATES = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord",
    "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true",
)  # fmt: skip


def predicate_of(op: Operation) -> int:
    return int_property(op, "predicate")


@scalar_rule(arith.CmpiOp)
def lower_cmpi(low: Low, op: Operation, lhs: Value, rhs: Value) -> Value:
    return low.builder.icmp(INTEGER_PREDICATES[predicate_of(op)], lhs, rhs)


@scalar_rule(SelectOp)
def lower_select(low: Low, op: Operation, condition: Value, lhs: Value, rhs: Value) -> Value:
    return low.builder.select(condition, lhs, rhs)


# Floats


def widened(low: Low, op: Operation, args: tuple[Value, ...]) -> list[Value]:
    return [widen(low.builder, arg, element_type(operand.type)) for arg, operand in zip(args, op.operands, strict=True)]


FUSED: dict[type[Operation], str] = {arith.AddfOp: "fadd", arith.SubfOp: "fsub", arith.MulfOp: "fmul"}


@scalar_rule(*FUSED)
def lower_fused(low: Low, op: Operation, lhs: Value, rhs: Value) -> Value:
    """Contract a multiplication and an addition to one instruction with one rounding, if the options allow it."""
    b = low.builder
    if low.fuses and (lhs.type.scalar is f32 or lhs.type.scalar is f64):
        b.flags = "contract "
        made = getattr(b, FUSED[type(op)])(lhs, rhs)
        b.flags = ""
        return made
    return narrow(b, getattr(b, FUSED[type(op)])(*widened(low, op, (lhs, rhs))), result_type(op))


FLOAT_RULES: dict[type[Operation], str] = {
    arith.DivfOp: "fdiv",
    tt.PreciseDivFOp: "fdiv",
    arith.MaximumfOp: "maximum",
    arith.MinimumfOp: "minimum",
    arith.MaxnumfOp: "maxnum",
    arith.MinnumfOp: "minnum",
    tt.PreciseSqrtOp: "sqrt",
}


@scalar_rule(*FLOAT_RULES)
def lower_float(low: Low, op: Operation, *args: Value) -> Value:
    return narrow(low.builder, getattr(low.builder, FLOAT_RULES[type(op)])(*widened(low, op, args)), result_type(op))


@scalar_rule(arith.NegfOp)
def lower_negf(low: Low, op: Operation, value: Value) -> Value:
    """The sign bit alone; -0 and NaN share a code in some 8-bit floats, which is returned unchanged."""
    b, type_ = low.builder, result_type(op)
    if not is_float8(type_):
        return b.fneg(value)
    return narrow(b, b.fneg(widen(b, value, type_)), type_)


@scalar_rule(tt.ClampFOp)
def lower_clampf(low: Low, op: Operation, *args: Value) -> Value:
    return narrow(low.builder, limited(low.builder, op, *widened(low, op, args)), result_type(op))


def limited(b: Builder, op: Operation, x: Value, lowest: Value, highest: Value) -> Value:
    """`min(max(x, lowest), highest)`; a NaN in `x` is kept with propagateNan = all, and becomes `lowest` otherwise."""
    if int_property(op, "propagateNan") == PropagateNan.ALL:
        return b.minimum(b.maximum(x, lowest), highest)
    return b.minnum(b.maxnum(x, lowest), highest)


@scalar_rule(arith.CmpfOp)
def lower_cmpf(low: Low, op: Operation, lhs: Value, rhs: Value) -> Value:
    lhs, rhs = widened(low, op, (lhs, rhs))
    name = FLOAT_PREDICATES[predicate_of(op)]
    compared = low.builder.fcmp("ord" if name in ("true", "false") else name, lhs, rhs)
    return constant(compared.type, name == "true") if name in ("true", "false") else compared


# Conversions


CASTS: dict[type[Operation], str] = {
    arith.TruncIOp: "trunc", arith.ExtSIOp: "sext", arith.ExtUIOp: "zext", arith.IndexCastOp: "cast",
    tt.IntToPtrOp: "inttoptr", tt.PtrToIntOp: "ptrtoint",
}  # fmt: skip


@scalar_rule(*CASTS)
def lower_cast(low: Low, op: Operation, value: Value) -> Value:
    return getattr(low.builder, CASTS[type(op)])(value, value.type.with_scalar(register_type(result_type(op))))


@scalar_rule(arith.SIToFPOp, arith.UIToFPOp)
def lower_from_integer(low: Low, op: Operation, value: Value) -> Value:
    return from_integer(low.builder, value, result_type(op), type(op) is arith.SIToFPOp)


@scalar_rule(arith.FPToSIOp, arith.FPToUIOp)
def lower_to_integer(low: Low, op: Operation, value: Value) -> Value:
    wanted = register_type(result_type(op))
    return to_integer(low.builder, value, operand_type(op), wanted, type(op) is arith.FPToSIOp)


@scalar_rule(arith.ExtFOp, arith.TruncFOp)
def lower_float_cast(low: Low, op: Operation, value: Value) -> Value:
    return narrow(low.builder, widen(low.builder, value, operand_type(op)), result_type(op))


@scalar_rule(tt.FpToFpOp)
def lower_fp_to_fp(low: Low, op: Operation, value: Value) -> Value:
    """8-bit floats saturate when rounding to nearest; towards zero never overflows."""
    b, source, target = low.builder, operand_type(op), result_type(op)
    wide = widen(b, value, source)
    if int_property(op, "rounding", RoundingMode.RTNE) == RoundingMode.RTZ:
        return narrow_to_zero(b, wide, target)
    return narrow(b, wide, target, saturate=is_float8(target))


@scalar_rule(tt.BitcastOp, arith.BitcastOp)
def lower_bitcast(low: Low, op: Operation, value: Value) -> Value:
    b, wanted = low.builder, value.type.with_scalar(register_type(result_type(op)))
    if value.type.is_pointer and not wanted.is_pointer:
        return b.bitcast(b.ptrtoint(value, value.type.with_scalar(i64)), wanted)
    if wanted.is_pointer and not value.type.is_pointer:
        return b.inttoptr(b.bitcast(value, value.type.with_scalar(i64)), wanted)
    return b.bitcast(value, wanted)


@scalar_rule(tt.AddPtrOp)
def lower_addptr(low: Low, op: Operation, pointer: Value, offset: Value) -> Value:
    b = low.builder
    wide = b.cast(offset, offset.type.with_scalar(i64), is_signed=True)
    return b.gep(pointer, b.mul(wide, pointee_bytes(operand_type(op))))


@scalar_rule(RemfOp)
def lower_remf(low: Low, op: Operation, lhs: Value, rhs: Value) -> Value:
    return narrow(low.builder, low.function("fmod", *widened(low, op, (lhs, rhs))), result_type(op))


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
    from tilework.numerics.libdevice_table import SYMBOLS  # few kernels have such an op

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
