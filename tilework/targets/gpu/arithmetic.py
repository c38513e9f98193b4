"""Elementwise ops for which GPUs have instructions; all targets share the others (`targets/llvm/scalars.py`,
`elementary.py`).

    arith.addf : f16        two registers at a time, where the GPU adds f16 (`Gpu.native_floats`)
    arith.divf : f32        the fast quotient, where the GPU has one (`Gpu.fast_functions`)

Functions without an instruction (log, sin, erf ...) are our own polynomials, which need no vendor library. Where the
language leaves a result undefined (`x // 0`), it is what the instruction gives. Rules that differ in a bit from those
of all targets are marked `differs`; reproducible kernels are compiled without them.

`ttg.fp4_to_fp`: each byte is two 4-bit floats with a sign, two exponent bits and one mantissa bit.

    0b1_01_1  ->  -1.5            f16: 1_00001_1000000000 times 2**14

Moved into the sign, exponent and mantissa of a wider float, the bits are the value times a power of two, for subnormals
too. Two values are converted at once, as the halves of a register: the lower four bits of a byte are the first.
"""

import math as python_math
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from xdsl.ir import Operation, SSAValue

from tilework.ir import arith, math, tt, ttg
from tilework.ir.encodings import layout_of
from tilework.ir.enums import PropagateNan
from tilework.ir.rewrite import constant_value
from tilework.ir.types import element_type, int_property
from tilework.targets.gpu.lowering import Lowering, Registers, lowers
from tilework.targets.gpu.packing import unpack_register
from tilework.targets.gpu.views import Coords, moved
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.folding import compare_ranges
from tilework.targets.llvm.rules import SCALARS, operand_type, result_type
from tilework.targets.llvm.scalar_types import register_type
from tilework.targets.llvm.scalars import (
    FLOAT_PREDICATES,
    FORMATS,
    FUSED,
    INTEGER_PREDICATES,
    is_float8,
    limited,
    narrow,
    predicate_of,
    widened,
)
from tilework.targets.llvm.types import Type, bf16, f16, f32, f64, i1, i32, i64, vector
from tilework.targets.llvm.values import Value, constant, signed

# how far the exponent and mantissa move, and the factor between the exponents' biases
FP4_SHIFTS: dict[Type, tuple[int, float]] = {f16: (9, 2.0**14), bf16: (6, 2.0**126)}


@lowers(ttg.Fp4ToFpOp)
def lower_fp4_to_fp(low: Lowering, op: Operation) -> Registers:
    source, result = op.operands[0], op.results[0].type
    axis = int_property(op, "axis")

    def packed(coords: Coords) -> Coords:
        return (*coords[:axis], coords[axis] // 2, *coords[axis + 1 :])

    wanted = register_type(element_type(result))
    found = moved(layout_of(source.type), layout_of(result), packed)
    pairs = {byte: unpacked(low, low[source][byte], wanted) for byte in dict.fromkeys(found)}
    return tuple(pairs[byte][register & 1] for register, byte in enumerate(found))


def unpacked(low: Lowering, byte: Value, type: Type) -> list[Value]:
    """Return the two floats of a byte."""
    b = low.builder
    shift, factor = FP4_SHIFTS[type]
    both = b.zext(byte, i32)
    halves = b.or_(b.and_(both, 0xF), b.shl(b.and_(both, 0xF0), 12))
    bits = b.or_(b.shl(b.and_(halves, 0x00080008), 12), b.shl(b.and_(halves, 0x00070007), shift))
    scaled = b.fmul(b.bitcast(bits, vector(type, 2)), constant(vector(type, 2), factor))
    return unpack_register(low, b.bitcast(scaled, i32), type)


# Integers

DIVISIONS: dict[type[Operation], tuple[str, bool]] = {
    arith.DivSIOp: ("sdiv", True),
    arith.DivUIOp: ("udiv", False),
    arith.RemSIOp: ("srem", True),
    arith.RemUIOp: ("urem", False),
}


@lowers(*DIVISIONS, elementwise=True, overrides=True, differs=True)
def lower_division(low: Lowering, op: Operation, lhs: Value, rhs: Value) -> Value:
    """Divide; the result of a division by a constant 0 is 0, because LLVM would treat the code around it as
    unreachable.

    The result of a division by any other 0 is undefined. Integers of 64 bits that are extended from 32 are divided in
    32, which takes a fifth of the instructions.
    """
    b = low.builder
    name, is_signed = DIVISIONS[type(op)]
    if rhs.constant == 0:
        return constant(lhs.type, 0)
    if is_signed and rhs.constant is not None and signed(rhs.type, rhs.constant) == -1:
        return b.neg(lhs) if name == "sdiv" else constant(lhs.type, 0)
    if is_signed and (sides := short_sides(low, lhs, rhs)) is not None:
        return b.sext(b.binary(name, sides[0], not_zero(low, sides[1])), lhs.type)
    made = b.binary(name, lhs, not_zero(low, rhs))
    return non_negative_remainder(b, made, rhs) if name == "srem" and lhs.text in b.ranges else made


def non_negative_remainder(b: Builder, made: Value, divisor: Value) -> Value:
    """Return a remainder of a non-negative integer, extended from the type from which its divisor is."""
    extended = b.source(divisor)
    short = b.trunc(made, extended[1].type) if extended is not None and extended[0] == "sext" else made
    b.bound(short, 0, short.type.mask >> 1)
    return b.sext(short, made.type)


def short_sides(low: Lowering, lhs: Value, rhs: Value) -> tuple[Value, Value] | None:
    """Return both sides of a signed division as 32-bit integers, if they are extended from those and the quotient fits:
    that of -2**31 and -1 does not."""
    short = [low.builder.source(side) for side in (lhs, rhs)]
    if lhs.type is not i64 or any(found is None or found[0] != "sext" or found[1].type is not i32 for found in short):
        return None
    (_, dividend), (_, divisor) = [found for found in short if found is not None]
    return (dividend, divisor) if dividend.text in low.builder.ranges else None


def not_zero(low: Lowering, divisor: Value) -> Value:
    """Return the divisor, at least 1: LLVM assumes that a divisor is not 0, so ``tl.where(d == 0, -1, x // d)`` would
    never be -1.
    """
    b = low.builder
    if divisor.constant is not None or b.ranges.get(divisor.text, (0, 0))[0] > 0:
        return divisor
    return b.intrinsic("umax", divisor.type, divisor, constant(divisor.type, 1))


@lowers(arith.AddiOp, elementwise=True, overrides=True)
def lower_integer_sum(low: Lowering, op: Operation, lhs: Value, rhs: Value) -> Value:
    """Add extended integers before their extension, if that cannot wrap: ``sext(256 * x) + sext(i)`` with
    0 <= i < 256 has the bits of both. Comparisons and addresses of such sums take half the instructions.
    """
    b = low.builder
    for factor, rest in ((lhs, rhs), (rhs, lhs)):
        if (extended := b.source(factor)) is None or (added := low_bits(b, rest, extended[1])) is None:
            continue
        return b.extend(extended[0], b.add(extended[1], added), lhs.type)
    return integer_sum(b, lhs, rhs)


def integer_sum(b: Builder, lhs: Value, rhs: Value) -> Value:
    """Add integers: in 32 bits if both are extended from those and the sum fits, with constants last."""
    left, right = range_of(b, lhs), range_of(b, rhs)
    if left is None or right is None or left[1] + right[1] > lhs.type.mask >> 1:
        return b.add(lhs, rhs)
    bounds = left[0] + right[0], left[1] + right[1]
    if (short := in_32_bits(b, lhs, rhs, bounds[1])) is not None:
        return in_64_bits(b, short, integer_sum(b, *short.sides), bounds)
    if (made := b.add(lhs, rhs)).constant is not None:
        return made
    (base, fixed), (other, more) = apart(b, lhs), apart(b, rhs)
    return exact_sum(b, b.add(base, other), fixed + more, bounds, made)


@lowers(arith.MuliOp, elementwise=True, overrides=True)
def lower_integer_product(low: Lowering, op: Operation, lhs: Value, rhs: Value) -> Value:
    """Multiply; the product of an exact sum and a constant is one too, with the constant last: 64 * (x + 16) is
    64 * x + 1024.
    """
    return integer_product(low.builder, lhs, rhs)


def integer_product(b: Builder, lhs: Value, rhs: Value) -> Value:
    """Multiply integers: in 32 bits if both are extended from those and the product fits."""
    value, times = (rhs, lhs) if lhs.constant is not None else (lhs, rhs)
    left, right = range_of(b, value), range_of(b, times)
    if left is None or right is None or left[1] * right[1] > lhs.type.mask >> 1:
        return b.mul(lhs, rhs)
    bounds = left[0] * right[0], left[1] * right[1]
    if (short := in_32_bits(b, value, times, bounds[1])) is not None:
        return in_64_bits(b, short, integer_product(b, *short.sides), bounds)
    if (made := b.mul(lhs, rhs)).constant is not None or times.constant is None:
        return made
    base, fixed = apart(b, value)
    return exact_sum(b, b.mul(base, times), fixed * right[0], bounds, made)


class Short(NamedTuple):
    """Two 64-bit integers as the 32-bit integers that they are extended from; constants are as either."""

    extension: str
    sides: tuple[Value, Value]


def in_32_bits(b: Builder, lhs: Value, rhs: Value, greatest: int) -> Short | None:
    """Return the 32-bit integers from which non-negative operands are extended, if the result fits 32 bits too: half
    the instructions for sums, products and comparisons of it.
    """
    sources = [None if side.constant is not None else b.source(side) or ("", side) for side in (lhs, rhs)]
    found = [source for source in sources if source is not None]
    if lhs.type is not i64 or greatest > i32.mask >> 1 or any(value.type is not i32 for _, value in found) or not found:
        return None
    sides = [
        constant(i32, side.constant) if source is None else source[1]
        for side, source in zip((lhs, rhs), sources, strict=True)
    ]
    return Short("sext" if any(kind == "sext" for kind, _ in found) else "zext", (sides[0], sides[1]))


def in_64_bits(b: Builder, short: Short, result: Value, bounds: tuple[int, int]) -> Value:
    """Return a non-negative 32-bit result in 64 bits, with its bounds."""
    b.bound(result, *bounds)
    return b.extend(short.extension, result, i64)


def exact_sum(b: Builder, base: Value, fixed: int, bounds: tuple[int, int], like: Value) -> Value:
    """Return ``base + fixed``, a sum of non-negative integers that cannot wrap and is within bounds; what is known of
    `like`, the same number, is known of it.
    """
    made = b.add(base, fixed)
    if fixed and made.constant is None and base.constant is None:
        b.exact[made.text] = base, fixed
        b.bound(base, max(bounds[0] - fixed, 0), bounds[1] - fixed)
        if like.text in b.factors:
            b.factors.setdefault(made.text, b.factors[like.text])
        if like.text in b.aligned:
            b.aligned.setdefault(made.text, b.aligned[like.text])
    b.bound(made, *bounds)
    return made


def range_of(b: Builder, value: Value) -> tuple[int, int] | None:
    """Return the least and the greatest that an integer can be, if it is not negative."""
    if value.constant is None:
        return b.ranges.get(value.text)
    known: Any = value.constant
    least = signed(value.type, known) if known.__class__ is int else -1
    return (least, least) if least >= 0 else None


def apart(b: Builder, value: Value) -> tuple[Value, int]:
    """Return the parts of an exact sum of which neither is negative, and any other integer of which that is known."""
    if value.constant is not None:
        return constant(value.type, 0), value.constant
    base, fixed = b.exact.get(value.text, (value, 0))
    return (base, fixed) if fixed >= 0 and base.text in b.ranges else (value, 0)


def low_bits(b: Builder, value: Value, factor: Value) -> Value | None:
    """Return `value` in the type of `factor`, if it only has bits below those that `factor` may have."""
    least, greatest = (value.constant,) * 2 if value.constant is not None else b.ranges.get(value.text, (0, -1))
    if not least <= greatest < b.factors.get(factor.text, 0):
        return None
    if value.constant is not None:
        return constant(factor.type, value.constant)
    short = b.source(value)
    return short[1] if short is not None and short[1].type is factor.type else None


SHIFTS: dict[type[Operation], str] = {arith.ShLIOp: "shl", arith.ShRUIOp: "lshr", arith.ShRSIOp: "ashr"}


@lowers(*SHIFTS, elementwise=True, overrides=True, differs=True)
def lower_shift(low: Lowering, op: Operation, value: Value, amount: Value) -> Value:
    """Shift by one instruction, which shifts every bit out for a large amount; such a constant is poison to LLVM."""
    if amount.constant is not None:
        return SCALARS[type(op)](low, op, value, amount)
    return low.builder.binary(SHIFTS[type(op)], value, amount)


@lowers(arith.CmpiOp, elementwise=True, overrides=True)
def lower_integer_comparison(low: Lowering, op: Operation, lhs: Value, rhs: Value) -> Value:
    """Compare what differs: of ``64 * x + i`` and ``64 * x + j`` with i, j < 64 these, and of extended integers those
    that are extended. A mask of a diagonal block is known for most pairs of registers.
    """
    b, name = low.builder, INTEGER_PREDICATES[predicate_of(op)]
    if lhs.text in b.aligned and rhs.text in b.aligned:
        (base, first), (same, second) = b.aligned[lhs.text], b.aligned[rhs.text]
        lhs, rhs = (first, second) if base.text == same.text else (lhs, rhs)
    if (left := b.ranges.get(lhs.text)) is not None and (right := b.ranges.get(rhs.text)) is not None:
        if (known := compare_ranges(name, left, right)) is not None:
            return constant(i1, known)
    if (short := b.source(lhs)) is not None and (other := unextended(b, rhs, *short)) is not None:
        unsigned = short[0] == "zext" and name[0] == "s"
        return b.icmp(f"u{name[1:]}" if unsigned else name, short[1], other)
    return b.icmp(name, lhs, rhs)


def unextended(b: Builder, value: Value, extension: str, short: Value) -> Value | None:
    """Return the integer of the type of `short` of which `value` is this extension."""
    if value.constant is None:
        found = b.source(value)
        return found[1] if found is not None and found[0] == extension and found[1].type is short.type else None
    made = constant(short.type, value.constant)
    return made if b.extend(extension, made, value.type).constant == value.constant else None


# Floats


NATIVE: dict[type[Operation], str] = {
    **FUSED,
    arith.MaximumfOp: "maximum",
    arith.MinimumfOp: "minimum",
    arith.MaxnumfOp: "maxnum",
    arith.MinnumfOp: "minnum",
    math.FmaOp: "fma",
}


@lowers(*NATIVE, overrides=True)
def lower_native(low: Lowering, op: Operation) -> Registers:
    """Emit one instruction, on pairs of 16-bit registers.

    A multiplication and an addition may be contracted if the options allow it.
    """
    b, sides = low.builder, [low[operand] for operand in op.operands]
    scalar = sides[0][0].type
    if scalar not in low.gpu.native_floats:
        return tuple(SCALARS[type(op)](low, op, *column) for column in zip(*sides, strict=True))
    build = getattr(b, NATIVE[type(op)])
    if scalar is bf16 and low.fuses and type(op) is arith.SubfOp and (factors := factors_of(op.operands[0])):
        build, sides = partial(from_product, b), [*(low[factor] for factor in factors), sides[1]]
    with b.fast_math(*(("contract",) if low.fuses and type(op) in FUSED else ())):
        if scalar.bits != 16 or len(sides[0]) % 2:
            return tuple([build(*column) for column in zip(*sides, strict=True)])
        made: list[Value] = []
        for first in range(0, len(sides[0]), 2):
            made += b.lanes(build(*(b.build_vector(list(side[first : first + 2])) for side in sides)))
        return tuple(made)


def factors_of(value: SSAValue) -> Sequence[SSAValue]:
    """Return the factors of a product that has one use."""
    return value.owner.operands if isinstance(value.owner, arith.MulfOp) and value.has_one_use() else ()


def from_product(b: Builder, x: Value, y: Value, subtrahend: Value) -> Value:
    """Return ``x * y - subtrahend`` of bf16, rounded once: the instruction negates the summand of a fused multiply-add
    (ptxas recognises that of single elements), but no factor, and LLVM would negate a factor of the subtrahend.
    """
    if subtrahend.type is bf16:
        return b.fma(x, y, b.fneg(subtrahend))
    return b.fma(x, y, b.build_vector([b.fneg(lane) for lane in b.lanes(subtrahend)]))


@lowers(arith.DivfOp, elementwise=True, overrides=True, differs=True)
def lower_quotient(low: Lowering, op: Operation, lhs: Value, rhs: Value) -> Value:
    """Divide f32 by the fast instruction, or exactly by a power of two; other types are correctly rounded."""
    if lhs.type is not f32 or (divide := low.gpu.fast_functions.get("divide")) is None:
        return SCALARS[type(op)](low, op, lhs, rhs)
    known = rhs.constant
    if known is not None and abs(python_math.frexp(known)[0]) == 0.5 and 2.0**-100 < abs(known) < 2.0**100:
        return low.builder.fmul(lhs, 1.0 / known)
    return divide(low, lhs, rhs)


@lowers(tt.ClampFOp, elementwise=True, overrides=True)
def lower_clamp(low: Lowering, op: Operation, *args: Value) -> Value:
    if args[0].type not in low.gpu.native_floats:
        return SCALARS[type(op)](low, op, *args)
    if args[0].type in low.gpu.magnitude_floats and is_symmetric(op, *args[1:]):
        return within(low, op, *args)
    return limited(low.builder, op, *args)


def is_symmetric(op: Operation, lowest: Value, highest: Value) -> bool:
    """Return True if the limits are constants or tensors of opposite sign; ``-x`` is computed as ``0 - x``."""
    if (known := highest.constant) is not None and lowest.constant == -known:
        return known >= 0
    minus = op.operands[1].owner
    return isinstance(minus, arith.SubfOp) and minus.rhs is op.operands[2] and constant_value(minus.lhs) == 0


def within(low: Lowering, op: Operation, x: Value, lowest: Value, highest: Value) -> Value:
    """Clamp the magnitude; a NaN that is not propagated becomes `lowest` first, because its sign must not matter."""
    if int_property(op, "propagateNan") == PropagateNan.ALL:
        return low.gpu.min_magnitude(low.builder, x, highest, keeps_nan=True)
    return low.gpu.min_magnitude(low.builder, low.builder.maxnum(x, lowest), highest, keeps_nan=False)


@lowers(arith.CmpfOp, elementwise=True, overrides=True)
def lower_comparison(low: Lowering, op: Operation, lhs: Value, rhs: Value) -> Value:
    """Compare f16 natively; widening bf16 to f32 is almost free."""
    name = FLOAT_PREDICATES[predicate_of(op)]
    if lhs.type is not f16 or name in ("true", "false"):
        return SCALARS[type(op)](low, op, lhs, rhs)
    return low.builder.fcmp(name, lhs, rhs)


@lowers(math.AbsFOp, elementwise=True, overrides=True)
def lower_abs(low: Lowering, op: Operation, x: Value) -> Value:
    """Clear the sign bit."""
    b, type_ = low.builder, operand_type(op)
    if is_float8(type_):
        return b.and_(x, 0x7F) if FORMATS[type_].has_negative_zero else SCALARS[type(op)](low, op, x)
    return b.fabs(x) if x.type in low.gpu.native_floats else SCALARS[type(op)](low, op, x)


FAST: dict[type[Operation], str] = {
    math.ExpOp: "exp", math.Exp2Op: "exp2", math.SqrtOp: "sqrt", math.RsqrtOp: "rsqrt",
}  # fmt: skip


@lowers(*FAST, elementwise=True, overrides=True, differs=True)
def lower_fast(low: Lowering, op: Operation, x: Value) -> Value:
    """Emit a fast f32 function of one or two instructions; narrower floats are widened, f64 has no fast forms."""
    made = low.gpu.fast_functions.get(FAST[type(op)])
    if made is None or x.type is f64:
        return SCALARS[type(op)](low, op, x)
    return narrow(low.builder, made(low, widened(low, op, (x,))[0]), result_type(op))
