"""Numeric conversions by instructions of the GPU, for as many elements at a time as share a 32-bit register.

    arith.truncf : f32 -> bf16       cvt.rn.bf16x2.f32  %r, %high, %low
    tt.fp_to_fp : f32 -> f8E4M3FN    cvt.rn.satfinite.e4m3x2.f32  %h, %high, %low       from sm_89 on
    arith.sitofp : i8 -> f16         prmt.b32 and sub.f16x2: the byte is the low mantissa bits of 1024
    arith.sitofp : i32 -> f16        prmt.b32, lop3.b32 and sub.f16x2, of ``(x & 15) - 8``, if the mask is small
    arith.fptosi : f32 -> i32        cvt.rzi.s32.f32  %r, %f                            saturates; NaN is 0

Conversions without an instruction use the code of all targets (`targets/llvm/scalars.py`), with the same results.
"""

from collections.abc import Callable, Sequence
from functools import partial

from xdsl.ir import Attribute, Operation, SSAValue

from tilework.ir import arith, tt, ttg
from tilework.ir.encodings import layout_of
from tilework.ir.enums import RoundingMode
from tilework.ir.rewrite import constant_value, defining_op
from tilework.ir.types import bit_width, f8E4M3FN, f8E5M2, int_property
from tilework.layouts.conversion import conversion, shared_plan
from tilework.light_dataclass import light_dataclass
from tilework.target import Feature
from tilework.targets.gpu.lowering import Lowering, Registers
from tilework.targets.gpu.packing import convert_packed, in_groups, pack_registers, unpack_register
from tilework.targets.llvm.rules import SCALARS, operand_type, result_type
from tilework.targets.llvm.scalar_types import register_type
from tilework.targets.llvm.scalars import upper_half, widen
from tilework.targets.llvm.types import Type, bf16, f16, f32, f64, i8, i16, i32, vector
from tilework.targets.llvm.values import Value, constant
from tilework.targets.nvidia.lower import lowers
from tilework.targets.nvidia.lower.inline_ptx import nvvm, ptx

TINY = {f8E4M3FN: "e4m3", f8E5M2: "e5m2"}


@lowers(arith.ExtFOp, arith.TruncFOp, tt.FpToFpOp, overrides=True)
def lower_float_cast(low: Lowering, op: Operation) -> Registers:
    return convert_packed(low, op, partial(cast, low, op, is_only_exchanged(op)))


def cast(low: Lowering, op: Operation, exchanged: bool, values: list[Value]) -> list[Value]:
    """Convert a group of floats to another format."""
    source, target = operand_type(op), result_type(op)
    wanted, to_zero = register_type(target), int_property(op, "rounding", RoundingMode.RTNE) == RoundingMode.RTZ
    found: list[Value] | None = None
    if source in TINY and wanted is not i8:
        found = from_half(low, from_tiny(low, values, source), wanted)
    elif target in TINY and type(op) is tt.FpToFpOp and values[0].type in (f16, bf16, f32):
        found = to_tiny_to_zero(low, values, source, target) if to_zero else to_tiny(low, values, source, target)
    elif wanted in (f16, bf16) and values[0].type.is_float:
        found = to_16_bits(low, values, source, wanted, to_zero, exchanged)
    elif values[0].type is bf16 and wanted is f32:
        found = [from_bfloat(low, value) for value in values]
    return found if found is not None else [SCALARS[type(op)](low, op, value) for value in values]


def pack_one(low: Lowering, values: Sequence[Value]) -> Value:
    """Pack values of 8 or 16 bits into a 32-bit register, the first in the lowest bits; missing ones are 0."""
    (packed,) = pack_registers(low, values)
    return packed


def unpack_first(low: Lowering, packed: Value, type: Type, count: int) -> list[Value]:
    """Return the first `count` values of a packed register."""
    return unpack_register(low, packed, type)[:count]


def permute(low: Lowering, packed: Value, other: int, selector: int) -> Value:
    """Select four bytes of `packed` (0 to 3) and `other` (4 to 7), the lowest by the lowest digit of `selector`."""
    return low.gpu.choose_bytes(low.builder, packed, constant(i32, other), selector)


# 16 bits


def from_bfloat(low: Lowering, value: Value) -> Value:
    """Widen bf16, which is the upper half of f32, by one instruction on the register that holds the element."""
    b = low.builder
    packed, at = low.held_in.get(value.text) or (b.zext(b.bitcast(value, i16), i32), 0)
    return b.bitcast(b.and_(packed, -65536) if at else b.shl(packed, 16), f32)


def is_only_exchanged(op: Operation) -> bool:
    """Return True if the results are only exchanged with other threads, in registers that LLVM packs itself."""
    return all(exchanges_packed(use.operation) for result in op.results for use in result.uses)


def exchanges_packed(op: Operation) -> bool:
    if type(op) is not ttg.ConvertLayoutOp:
        return False
    before, after, bits = layout_of(op.operands[0].type), layout_of(op.results[0].type), bit_width(op.results[0].type)
    return conversion(before, after).kind in ("warp", "shared") and shared_plan(before, after, bits).vector * bits >= 32


def to_16_bits(
    low: Lowering, values: list[Value], source: Attribute, wanted: Type, to_zero: bool, exchanged: bool
) -> list[Value] | None:
    """Convert f32 or f64 to f16 or bf16, or one of those to the other through f32.

    Two at a time: ptxas (12.8, 13.0) merges two single conversions into one, and hoists it above the wait for the MMA
    that computes their operands.
    """
    b = low.builder
    if not low.gpu.has(Feature.CONVERT_PAIRS) or (values[0].type is f64 and to_zero):
        return None
    wide = [widen(b, value, source) for value in values]
    if to_zero:
        kind = "f16" if wanted is f16 else "bf16"
        high = wide[1] if len(wide) == 2 else constant(f32, 0.0)
        return unpack_first(
            low, ptx(b, f"cvt.rz.{kind}x2.f32 $0, $1, $2;", [i32], [high, wide[0]])[0], wanted, len(wide)
        )
    if len(wide) == 1 or wide[0].type is f64:
        return [b.fptrunc(value, wanted) for value in wide]
    if exchanged:
        return b.lanes(b.fptrunc(b.build_vector(wide), vector(wanted, 2)))
    name = "f16x2" if wanted is f16 else "bf16x2"
    return b.lanes(nvvm(b, f"ff2{name}.rn", vector(wanted, 2), wide[1], wide[0]))


# 8-bit floats


def from_tiny(low: Lowering, values: list[Value], source: Attribute) -> list[Value] | None:
    """Convert exactly to f16: e5m2 is the upper half of one; e4m3 needs an instruction, or the result is None."""
    b, packed = low.builder, pack_one(low, values)
    if source == f8E5M2:
        pairs = [permute(low, packed, 0, selector) for selector in (0x1404, 0x3424)]
    elif low.gpu.has(Feature.FP8_CONVERT):
        codes = [b.trunc(b.lshr(packed, shift), i16) for shift in range(0, 8 * len(values), 16)]
        pairs = [ptx(b, "cvt.rn.f16x2.e4m3x2 $0, $1;", [i32], [code])[0] for code in codes]
    else:
        return None
    return [half for pair in pairs for half in unpack_first(low, pair, f16, 2)][: len(values)]


def from_half(low: Lowering, halves: list[Value] | None, wanted: Type) -> list[Value] | None:
    """Widen f16 values that hold an 8-bit float; exact."""
    b = low.builder
    if halves is None or wanted is f16:
        return halves
    wide = [b.fpext(half, f64 if wanted is f64 else f32) for half in halves]
    return [upper_half(b, value) for value in wide] if wanted is bf16 else wide


def to_tiny(low: Lowering, values: list[Value], source: Attribute, target: Attribute) -> list[Value] | None:
    """Round to nearest, saturating to the largest finite value."""
    b, name = low.builder, TINY[target]
    if not low.gpu.has(Feature.FP8_CONVERT):
        return None
    codes: list[Value] = []
    for first in range(0, len(values), 2):
        pair = values[first : first + 2]
        if pair[0].type is f16:
            codes += ptx(b, f"cvt.rn.satfinite.{name}x2.f16x2 $0, $1;", [i16], [pack_one(low, pair)])
        else:
            lower, upper = (*(widen(b, value, source) for value in pair), constant(f32, 0.0))[:2]
            codes += ptx(b, f"cvt.rn.satfinite.{name}x2.f32 $0, $1, $2;", [i16], [upper, lower])
    return unpack_first(low, pack_one(low, codes), i8, len(values))


def to_tiny_to_zero(low: Lowering, values: list[Value], source: Attribute, target: Attribute) -> list[Value] | None:
    """Round towards zero, through f16, of which e5m2 is the upper half."""
    b = low.builder
    if target != f8E5M2:
        return None
    halves = [ptx(b, "cvt.rz.f16.f32 $0, $1;", [f16], [widen(b, value, source)])[0] for value in values]
    return [b.trunc(b.lshr(b.bitcast(half, i16), 8), i8) for half in halves]


# Integers


@lowers(arith.SIToFPOp, arith.UIToFPOp, overrides=True)
def lower_from_integer(low: Lowering, op: Operation) -> Registers:
    """Convert with one rounding. Bytes, and integers that are known to be small, avoid the slow conversion instruction;
    sm_80 has none to bf16.
    """
    b, registers, wanted = low.builder, low[op.operands[0]], register_type(result_type(op))
    is_signed = type(op) is arith.SIToFPOp
    if registers[0].type is i8 and wanted in (f16, bf16, f32):
        return in_groups(registers, 4, lambda group: from_bytes(low, group, wanted, is_signed))
    if registers[0].type is i32 and (small := small_integers(low, op.operands[0])) is not None:
        if (is_signed or small.offset >= 0) and (convert := small.conversion(low, wanted)) is not None:
            return in_groups(small.registers, 2, convert)
    if wanted is i8 or (wanted is bf16 and not low.gpu.has(Feature.BF16_FROM_INTEGER)):
        return tuple([SCALARS[type(op)](low, op, value) for value in registers])
    return tuple([(b.sitofp if is_signed else b.uitofp)(value, wanted) for value in registers])


def from_bytes(low: Lowering, values: list[Value], wanted: Type, is_signed: bool) -> list[Value]:
    """Convert bytes: as the low mantissa bits of 2^10 in f16 (2^23 in f32), minus that value."""
    b, packed, bias = low.builder, pack_one(low, values), 0.0
    if is_signed:
        packed, bias = b.xor(packed, 0x80808080), 128.0
    if wanted is f16:
        pairs = [b.bitcast(permute(low, packed, 0x64646464, selector), vector(f16, 2)) for selector in (0x4140, 0x4342)]
        return [half for pair in pairs for half in b.lanes(b.fsub(pair, 1024.0 + bias))][: len(values)]
    large = [permute(low, packed, 0x4B000000, 0x7650 + index) for index in range(len(values))]
    wide = [b.fsub(b.bitcast(value, f32), 2.0**23 + bias) for value in large]
    return wide if wanted is f32 else [upper_half(b, value) for value in wide]


@light_dataclass
class SmallIntegers:
    """Integers ``(register & mask) + offset``, of which each register's part is from 0 to `most`."""

    registers: Registers
    mask: int | None
    most: int
    offset: int

    def conversion(self, low: Lowering, wanted: Type) -> Callable[[list[Value]], list[Value]] | None:
        """Return the function that converts up to two registers exactly; None if a float may not hold the result."""
        largest = self.most + abs(self.offset)
        if wanted is f16 and self.most < 1 << 10 and abs(self.offset) <= 1 << 10:
            return partial(self.in_mantissa, low, f16, 10, 0x6400)
        if wanted is bf16 and bf16 in low.gpu.native_floats and self.most < 1 << 7 and abs(self.offset) <= 1 << 7:
            return partial(self.in_mantissa, low, bf16, 7, 0x4300)
        if (
            self.most < 1 << 23
            and abs(self.offset) <= 1 << 23
            and (wanted is f32 or (wanted is bf16 and largest <= 256))
        ):
            return partial(self.in_floats, low, wanted)
        return None

    def in_mantissa(self, low: Lowering, wanted: Type, bits: int, power: int, values: list[Value]) -> list[Value]:
        """Convert to floats of 16 bits: as the low mantissa bits of 2^`bits`, whose code is `power`, minus that."""
        b = low.builder
        pair = low.gpu.choose_bytes(b, values[0], values[-1], 0x5410)
        pair = pair if self.mask is None else b.and_(pair, self.mask * 0x10001)
        large = b.bitcast(b.or_(pair, power * 0x10001), vector(wanted, 2))
        return b.lanes(b.fsub(large, float((1 << bits) - self.offset)))[: len(values)]

    def in_floats(self, low: Lowering, wanted: Type, values: list[Value]) -> list[Value]:
        """Convert to f32, as the low mantissa bits of 2^23, and from there to bf16 if that is wanted."""
        b = low.builder
        parts = values if self.mask is None else [b.and_(value, self.mask) for value in values]
        large = [b.bitcast(b.or_(part, 0x4B000000), f32) for part in parts]
        wide = [b.fsub(value, float((1 << 23) - self.offset)) for value in large]
        return wide if wanted is f32 else [upper_half(b, value) for value in wide]


def small_integers(low: Lowering, value: SSAValue) -> SmallIntegers | None:
    """Return a tile of integers as small ones plus an offset; None if they are not known to be small."""
    offset, op = 0, defining_op(value)
    if isinstance(op, (arith.AddiOp, arith.SubiOp)) and isinstance(known := constant_value(op.rhs), int):
        offset, value = known if isinstance(op, arith.AddiOp) else -known, op.lhs
        op = defining_op(value)
    if isinstance(op, arith.AndIOp) and isinstance(mask := constant_value(op.rhs), int):
        return SmallIntegers(low[op.lhs], mask, mask, offset) if mask >= 0 else None
    bounds = [low.builder.ranges.get(register.text) for register in low[value]]
    most = [bound[1] for bound in bounds if bound is not None]
    return SmallIntegers(low[value], None, max(most), offset) if len(most) == len(bounds) else None


@lowers(arith.FPToSIOp, arith.FPToUIOp, elementwise=True, overrides=True)
def lower_to_integer(low: Lowering, op: Operation, value: Value) -> Value:
    """Round towards zero. The instruction saturates; narrow integers are the low bits of i16; NaN becomes 0."""
    b, wanted = low.builder, register_type(result_type(op))
    wide = widen(b, value, operand_type(op))
    held = wanted if wanted.bits >= 16 else i16
    kind = "s" if type(op) is arith.FPToSIOp else "u"
    (made,) = ptx(b, f"cvt.rzi.{kind}{held.bits}.f{wide.type.bits} $0, $1;", [held], [wide])
    if wide.type is f64 or held.bits == 64:
        made = b.select(b.fcmp("uno", wide, wide), constant(held, 0), made)
    return b.trunc(made, wanted)
