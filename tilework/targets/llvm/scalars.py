"""Rules of `arith` and of the elementwise ops of `tt`, on scalars and vectors alike.

Integers wrap around. What LLVM leaves undefined has the results that the evaluator fixes: ``x / 0`` and ``x % 0`` are
0, ``INT_MIN / -1`` is INT_MIN, and a shift by the width or more pushes every bit out. No instruction here can trap.
Floats narrower than f32 are computed in f32 and rounded once per operation.

Rules of the `math` dialect and of library functions: the formulas of `targets/llvm/math`, on scalars and vectors.

f16, bf16 and 8-bit floats are widened to f32 and the result is rounded back. `tt.extern_elementwise` names a function
of libdevice (``__nv_expf``), which has the same meaning here.
"""

from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Operation

from tilework.ir import arith, math, tt, ub
from tilework.ir.arith import RemfOp, SelectOp
from tilework.ir.enums import PropagateNan, RoundingMode
from tilework.ir.types import element_type, f8E4M3FN, f8E4M3FNUZ, f8E5M2, f8E5M2FNUZ, int_property, is_float
from tilework.numerics import formats
from tilework.numerics.formats import Format
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.rules import Low, operand_type, result_type, scalar_rule, text_of
from tilework.targets.llvm.scalar_types import memory_type, pointee_bytes, register_type
from tilework.targets.llvm.types import Type, f16, f32, f64, i1, i8, i16, i32, i64, integer
from tilework.targets.llvm.types import bf16 as bfloat
from tilework.targets.llvm.values import Value, constant, signed

# ---- Floats narrower than the processor computes with: to f32 and back, rounded once.
#
#     x = widen(b, value, f8E4M3FN)             # i8 bits -> float, exact
#     y = narrow(b, x, bf16)                    # float or double -> bfloat, nearest even
#     z = narrow(b, x, f8E5M2, saturate=True)   # numbers beyond the largest finite one become it
#
# An operation on f16, bf16 or an 8-bit float widens to f32, computes there, and narrows: 24 bits are enough for the
# result of + - * / sqrt to be what one rounding of the exact result gives. A double goes through f32 *rounded to odd*:
# the odd last bit remembers what was cut off, so that the second rounding is still right. All functions take scalars
# and vectors.


FORMATS: dict[Attribute, Format] = {
    type: formats.of_ir(type.name) for type in (f8E4M3FN, f8E5M2, f8E4M3FNUZ, f8E5M2FNUZ)
}


def is_float8(type: Attribute) -> bool:
    return type in FORMATS


def widen(b: Builder, value: Value, type: Attribute) -> Value:
    """f16, bf16 and 8-bit floats as f32; f32 and f64 as they are. Exact."""
    scalar = value.type.scalar
    if scalar is f32 or scalar is f64:
        return value
    if scalar is f16:
        return b.fpext(value, value.type.with_scalar(f32))
    if scalar is bfloat:
        bits = b.zext(b.bitcast(value, value.type.with_scalar(i16)), value.type.with_scalar(i32))
        return b.bitcast(b.shl(bits, 16), value.type.with_scalar(f32))
    return widen_float8(b, value, type)


def widen_float8(b: Builder, bits: Value, type: Attribute) -> Value:
    """Move the exponent and fraction to their bits in a wider float; a product with a power of two then
    corrects the bias, and makes subnormals right."""
    if type == f8E5M2:  # the upper half of an f16
        half = b.shl(b.zext(bits, bits.type.with_scalar(i16)), 8)
        return b.fpext(b.bitcast(half, bits.type.with_scalar(f16)), bits.type.with_scalar(f32))
    format = FORMATS[type]
    real, int_type = bits.type.with_scalar(f32), bits.type.with_scalar(i32)
    wide = b.zext(bits, int_type)
    magnitude = b.shl(b.and_(wide, 0x7F), 23 - format.fraction)
    scaled = b.fmul(b.bitcast(magnitude, real), 2.0 ** (127 - format.bias))
    sign = b.shl(b.and_(wide, 0x80), 24)
    signed = b.bitcast(b.or_(b.bitcast(scaled, int_type), sign), real)
    if format.has_negative_zero:
        is_nan = b.icmp("eq", b.and_(wide, 0x7F), 0x7F)
    else:
        is_nan = b.icmp("eq", wide, 0x80)
    return b.select(is_nan, constant(real, float("nan")), signed)


def widen_half(b: Builder, value: Value) -> Value:
    """An f16 as f32 with integers and a product, for machines without an instruction."""
    int_type, real = value.type.with_scalar(i32), value.type.with_scalar(f32)
    bits = b.zext(b.bitcast(value, value.type.with_scalar(i16)), int_type)
    magnitude = b.shl(b.and_(bits, 0x7FFF), 13)
    scaled = b.bitcast(b.fmul(b.bitcast(magnitude, real), 2.0**112), int_type)
    is_finite = b.icmp("ult", magnitude, 0x7C00 << 13)
    made = b.select(is_finite, scaled, b.or_(magnitude, 0x7F800000))
    return b.bitcast(b.or_(made, b.shl(b.and_(bits, 0x8000), 16)), real)


def narrow_half(b: Builder, value: Value) -> Value:
    """f32 to f16, likewise."""
    return b.bitcast(narrow_bits(b, value, formats.FORMATS["fp16"]), value.type.with_scalar(f16))


def narrow(b: Builder, value: Value, type: Attribute, saturate: bool = False) -> Value:
    """An f32 or f64 to any float type, nearest even; only 8-bit floats may `saturate`."""
    wanted = register_type(type)
    scalar = value.type.scalar
    if scalar is wanted:
        return value
    if wanted is f64:
        return b.fpext(value, value.type.with_scalar(f64))
    if scalar is f64 and wanted is not f32:
        value = to_odd(b, value)
    if wanted is bfloat:
        return narrow_bfloat(b, value)
    if wanted is not i8:
        return b.fptrunc(value, value.type.with_scalar(wanted))
    return narrow_bits(b, value, FORMATS[type], saturate)


def narrow_bfloat(b: Builder, value: Value) -> Value:
    """f32 to bf16 with integers: LLVM's fptrunc is a call on x86, or an instruction that takes denormals for zero."""
    int_type = value.type.with_scalar(i32)
    bits = b.bitcast(value, int_type)
    rounded = b.add(bits, b.add(b.and_(b.lshr(bits, 16), 1), 0x7FFF))
    is_nan = b.fcmp("uno", value, value)
    kept = b.lshr(b.select(is_nan, b.or_(bits, 0x00400000), rounded), 16)
    return b.bitcast(b.trunc(kept, value.type.with_scalar(i16)), value.type.with_scalar(bfloat))


def upper_half(b: Builder, value: Value) -> Value:
    """The bf16 that an f32 is exactly."""
    return b.bitcast(b.trunc(b.lshr(b.bitcast(value, i32), 16), i16), bfloat)


def fma_to_odd(b: Builder, x: Value, y: Value, z: Value) -> Value:
    """x * y + z of doubles whose product is exact; an inexact sum gets an odd last bit, so that a narrower one is
    rounded once.
    """
    product = b.fmul(x, y)
    total = b.fadd(product, z)
    other = b.fsub(total, product)
    error = b.fadd(b.fsub(product, b.fsub(total, other)), b.fsub(z, other))
    bits = b.bitcast(total, x.type.with_scalar(i64))
    is_even = b.icmp("eq", b.and_(bits, 1), 0)
    is_inexact = b.and_(b.fcmp("one", error, 0.0), b.fcmp("olt", b.fabs(total), float("inf")))
    grows = b.icmp("sge", b.xor(bits, b.bitcast(error, bits.type)), 0)  # error and total have the same sign
    step = b.select(grows, constant(bits.type, 1), constant(bits.type, -1))
    return b.bitcast(b.select(b.and_(is_inexact, is_even), b.add(bits, step), bits), x.type)


def to_odd(b: Builder, value: Value) -> Value:
    """f64 to f32; inexact results get an odd last bit."""
    int_type = value.type.with_scalar(i32)
    near = b.fptrunc(value, value.type.with_scalar(f32))
    back = b.fpext(near, value.type)
    bits = b.bitcast(near, int_type)
    is_even = b.icmp("eq", b.and_(bits, 1), 0)
    is_inexact = b.fcmp("one", back, value)
    is_above = b.fcmp("ogt", b.fabs(back), b.fabs(value))
    step = b.select(is_above, constant(int_type, -1), constant(int_type, 1))
    moved = b.select(b.and_(is_inexact, is_even), b.add(bits, step), bits)
    return b.bitcast(moved, near.type)


def narrow_bits(b: Builder, value: Value, format: Format, saturate: bool = False) -> Value:
    """An f32 as the bits of a format of 8 or 16 bits.

    Normal numbers round by adding half a unit to the bits; subnormal ones by adding a float whose last bit is their
    unit.
    """
    int_type = value.type.with_scalar(i32)
    bits = b.bitcast(value, int_type)
    magnitude = b.and_(bits, 0x7FFFFFFF)
    dropped = 23 - format.fraction
    half = b.add(b.and_(b.lshr(magnitude, dropped), 1), (1 << (dropped - 1)) - 1 - ((127 - format.bias) << 23))
    normal = b.lshr(b.add(magnitude, half), dropped)
    magic = 2.0 ** (1 - format.bias - format.fraction + 23)
    lifted = b.fadd(b.bitcast(magnitude, value.type), magic)
    small = b.sub(b.bitcast(lifted, int_type), b.bitcast(constant(value.type, magic), int_type))
    is_small = b.icmp("ult", magnitude, (128 - format.bias) << 23)
    rounded = b.select(is_small, small, normal)
    if saturate:
        code = b.umin(rounded, format.largest)
    else:
        code = b.select(b.icmp("ugt", rounded, format.largest), constant(int_type, format.overflow), rounded)
    code = b.select(b.icmp("ugt", magnitude, 0x7F800000), constant(int_type, format.nan), code)
    sign = b.and_(b.lshr(bits, 32 - format.bits), 1 << format.bits - 1)
    if not format.has_negative_zero:
        sign = b.select(b.icmp("eq", code, 0), constant(int_type, 0), sign)
    return b.trunc(b.or_(code, sign), value.type.with_scalar(integer(format.bits)))


def narrow_to_zero(b: Builder, value: Value, type: Attribute) -> Value:
    """Towards zero: the nearest number, or its neighbour below in magnitude."""
    near = narrow(b, value, type)
    wide = near if near.type is value.type else widen(b, near, type)
    if wide.type.scalar is f32 and value.type.scalar is f64:
        wide = b.fpext(wide, value.type)
    is_above = b.fcmp("ogt", b.fabs(wide), b.fabs(value))
    whole = near.type.with_scalar(INTEGER_OF[near.type.scalar])
    bits = b.bitcast(near, whole)
    return b.bitcast(b.select(is_above, b.add(bits, -1), bits), near.type)


INTEGER_OF: dict[Type, Type] = {i8: i8, f16: i16, bfloat: i16, f32: i32, f64: i64}


def from_integer(b: Builder, value: Value, type: Attribute, is_signed: bool) -> Value:
    """An integer to a float, rounded once."""
    convert = b.sitofp if is_signed else b.uitofp
    wanted, bits = register_type(type), value.type.scalar.bits
    if wanted is f32 or wanted is f64:
        return convert(value, value.type.with_scalar(wanted))
    if bits <= 16:
        return narrow(b, convert(value, value.type.with_scalar(f32)), type)
    if bits == 64:  # 53 bits are exact in f64: fold the lowest 11 of large numbers into one sticky bit
        low = b.and_(value, 0x7FF)
        sticky = b.select(b.icmp("eq", low, 0), constant(value.type, 0), constant(value.type, 0x800))
        folded = b.or_(b.sub(value, low), sticky)
        magnitude = b.abs(value) if is_signed else value
        value = b.select(b.icmp("ugt", magnitude, 1 << 53), folded, value)
    return narrow(b, convert(value, value.type.with_scalar(f64)), type)


def to_integer(b: Builder, value: Value, type: Attribute, wanted: Type, is_signed: bool) -> Value:
    """A float of IR type `type` truncated to an integer. Out of range the limits apply (those of 16 bits for narrower
    types, which then keep the low bits); NaN is 0."""
    wide = widen(b, value, type)
    target = wide.type.with_scalar(wanted if wanted.bits >= 16 else i16)
    whole = b.fptosi_sat(wide, target) if is_signed else b.fptoui_sat(wide, target)
    return b.trunc(whole, wide.type.with_scalar(wanted))


def from_memory(b: Builder, element: Attribute, loaded: Value) -> Value:
    """A value loaded as a `memory_type` (a pointer also as an integer), in its register type."""
    wanted = register_type(element)
    if loaded.type.scalar is wanted:
        return loaded
    if wanted.is_pointer:
        return b.inttoptr(loaded, wanted)
    if wanted is i1:  # any byte but 0 is true
        return b.icmp("ne", loaded, constant(loaded.type, 0))
    return b.trunc(loaded, loaded.type.with_scalar(wanted))


def to_memory(b: Builder, element: Attribute, value: Value) -> Value:
    """A register value as memory holds it; an i1 becomes the byte 0 or 1."""
    held = memory_type(element)
    if value.type.scalar is held:
        return value
    return (b.zext if value.type.scalar is i1 else b.sext)(value, value.type.with_scalar(held))


# ---- Rules of `arith` and of the elementwise ops of `tt`, on scalars and vectors alike.


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
    """Return the remainder with the sign of `lhs`; by 0 and by -1 it is 0, because the safe divisor is 1."""
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
    """Lower a fused multiply-add with one rounding. Narrow formats are computed in f64, where the product is exact and
    the sum is rounded to odd."""
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
