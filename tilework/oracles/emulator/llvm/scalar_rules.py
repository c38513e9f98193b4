"""Integers, floats, comparisons and conversions of each element."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tilework.numerics.arithmetic import Arithmetic
from tilework.numerics.integers import leading_zeros, one_bits, reversed_bits, trailing_zeros
from tilework.numerics.rounding import from_integer, narrow, to_integer
from tilework.oracles.emulator.arenas import LOCAL_BASE, SHARED_BASE, Array
from tilework.oracles.emulator.llvm.ir_text import Instruction
from tilework.oracles.emulator.llvm.ir_types import Int, Pointer, Sequence, dtype_of
from tilework.oracles.emulator.llvm.lane_values import IMPOSSIBLE, Scalar, Value, bitcast, either, signed, unsigned
from tilework.oracles.emulator.llvm.translate_ir import (
    Compute,
    Mask,
    Translator,
    Unsupported,
    element,
    elementwise,
    float_elementwise,
    floating,
    integer,
    intrinsic,
    rule,
)

BASES = {3: SHARED_BASE, 5: LOCAL_BASE}  # of spaces inside of flat addresses


def wrapped(function: Callable[[Array, Array], Array], kind: Int) -> Callable[[Array, Array], Array]:
    """An operation on bits whose result may have more of them than the type."""
    return lambda a, b: unsigned(function(a, b), kind)


PLAIN: dict[str, Any] = {"add": np.add, "sub": np.subtract, "mul": np.multiply}
LOGIC: dict[str, Any] = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


@rule("add", "sub", "mul")
def arithmetic(ins: Instruction, t: Translator) -> Compute:
    kind = integer(ins)
    if kind.bits == 1:
        return elementwise(ins, np.logical_and if ins.opcode == "mul" else np.logical_xor)
    function = PLAIN[ins.opcode]
    is_whole = dtype_of(kind).kind != "O" and kind.bits == 8 * dtype_of(kind).itemsize
    return elementwise(ins, function if is_whole else wrapped(function, kind))


@rule("and", "or", "xor")
def logic(ins: Instruction, t: Translator) -> Compute:
    return elementwise(ins, LOGIC[ins.opcode])


def with_poison(ins: Instruction, function: Callable[[Array, Array], tuple[Array, Array]]) -> Compute:
    """An operation that also says where its result means nothing."""

    def one(x: Scalar, y: Scalar) -> Scalar:
        data, wrong = function(x[0], y[0])
        undefined = either(x[1], y[1])
        return data, either(undefined, wrong.astype(np.uint8) * np.uint8(IMPOSSIBLE)) if wrong.any() else undefined

    if isinstance(ins.type, Sequence):
        return lambda mask, a, b: list(map(one, a, b))
    return lambda mask, a, b: one(a, b)


@rule("shl", "lshr", "ashr")
def shift(ins: Instruction, t: Translator) -> Compute:
    kind, opcode = integer(ins), ins.opcode

    def shifted(a: Array, b: Array) -> tuple[Array, Array]:
        wrong = b >= kind.bits
        if kind.bits == 1:
            return a, wrong
        amount = np.minimum(b, b.dtype.type(kind.bits - 1) if b.dtype.kind != "O" else kind.bits - 1)
        if opcode == "shl":
            return unsigned(np.left_shift(a, amount), kind), wrong
        if opcode == "lshr":
            return np.right_shift(a, amount), wrong
        values = signed(a, kind.bits)
        return unsigned(np.right_shift(values, amount.astype(values.dtype)), kind), wrong

    return with_poison(ins, shifted)


@rule("udiv", "sdiv", "urem", "srem")
def divide(ins: Instruction, t: Translator) -> Compute:
    kind, is_signed, is_rest = integer(ins), ins.opcode[0] == "s", ins.opcode.endswith("rem")

    def divided(a: Array, b: Array) -> tuple[Array, Array]:
        wrong = b == 0
        x, y = (signed(a, kind.bits), signed(b, kind.bits)) if is_signed else (a, b)
        y = np.where(wrong, y.dtype.type(1) if y.dtype.kind != "O" else 1, y)
        if not is_signed:
            return (x % y if is_rest else x // y), wrong
        if x.dtype.kind == "O":
            quotient = np.where((x < 0) != (y < 0), -(abs(x) // abs(y)), abs(x) // abs(y))
        else:
            quotient = x // y
            quotient = quotient + ((quotient * y != x) & ((x < 0) != (y < 0))).astype(x.dtype)  # towards zero
        return unsigned(x - quotient * y if is_rest else quotient, kind), wrong

    return with_poison(ins, divided)


COMPARE: dict[str, Any] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip


@rule("icmp")
def compare(ins: Instruction, t: Translator) -> Compute:
    predicate = ins.extra["predicate"]
    function = COMPARE[predicate[-2:]]
    if predicate[0] != "s":
        return elementwise(ins, function)
    width = integer(ins, ins.operands[0][0]).bits
    return elementwise(ins, lambda a, b: function(signed(a, width), signed(b, width)))


@rule("fcmp")
def compare_floats(ins: Instruction, t: Translator) -> Compute:
    predicate = ins.extra["predicate"]
    if predicate in ("true", "false"):
        return elementwise(ins, lambda a, b: np.full(1, predicate == "true"))
    if predicate in ("ord", "uno"):
        return elementwise(ins, lambda a, b: (np.isnan(a) | np.isnan(b)) ^ (predicate == "ord"))
    function = COMPARE[predicate[1:]]
    if predicate[0] == "u":
        return elementwise(ins, lambda a, b: function(a, b) | np.isnan(a) | np.isnan(b))
    return elementwise(ins, lambda a, b: function(a, b) & ~(np.isnan(a) | np.isnan(b)))


FLOATS: dict[str, str] = {"fadd": "add", "fmul": "multiply", "fdiv": "divide"}


@rule("fadd", "fsub", "fmul", "fdiv", "frem", "fneg")
def float_arithmetic(ins: Instruction, t: Translator) -> Compute:
    """Quotients end in V_DIV_FIXUP, whose NaN for 0 / 0 and inf / inf is negative."""
    dtype = floating(ins)
    if ins.opcode == "fneg":
        return elementwise(ins, np.negative)
    if ins.opcode == "frem":
        return float_elementwise(ins, lambda a, b: narrow(np.fmod(a.astype(np.float64), b.astype(np.float64)), dtype))
    operations = Arithmetic.of(dtype)
    if ins.opcode == "fsub":
        return float_elementwise(ins, np.subtract if operations.is_native else lambda a, b: operations.add(a, -b))
    return float_elementwise(ins, getattr(operations, FLOATS[ins.opcode]), is_negative=ins.opcode == "fdiv")


@intrinsic("fma", "fmuladd")
def fused(ins: Instruction, t: Translator) -> Compute:
    return float_elementwise(ins, Arithmetic.of(floating(ins)).fma)


# conversions


@rule("trunc", "zext", "sext")
def resize(ins: Instruction, t: Translator) -> Compute:
    kind, source = integer(ins), integer(ins, ins.operands[0][0])
    if ins.opcode != "sext":
        return elementwise(ins, lambda a: unsigned(a, kind))
    if source.bits == 1:
        ones = (1 << kind.bits) - 1
        return elementwise(ins, lambda a: unsigned(np.where(a, ones, 0), kind))
    return elementwise(ins, lambda a: unsigned(signed(a, source.bits), kind))


@rule("fptrunc", "fpext")
def resize_float(ins: Instruction, t: Translator) -> Compute:
    dtype = floating(ins)
    return float_elementwise(ins, lambda a: narrow(a, dtype))


@rule("fptosi", "fptoui")
@intrinsic("fptosi.sat", "fptoui.sat")
def to_int(ins: Instruction, t: Translator) -> Compute:
    kind = integer(ins)
    is_signed = "si" in (ins.callee or ins.opcode)
    width = max(8, 8 * dtype_of(kind).itemsize)
    target = np.dtype(f"{'i' if is_signed else 'u'}{width // 8}")
    return elementwise(ins, lambda a: unsigned(to_integer(a, target), kind))


@rule("sitofp", "uitofp")
def from_int(ins: Instruction, t: Translator) -> Compute:
    dtype, source = floating(ins), integer(ins, ins.operands[0][0])
    if ins.opcode == "uitofp":
        return elementwise(ins, lambda a: from_integer(a.astype(np.uint8) if a.dtype == bool else a, dtype))
    if source.bits == 1:
        return elementwise(ins, lambda a: from_integer(-a.astype(np.int8), dtype))
    return elementwise(ins, lambda a: from_integer(signed(a, source.bits), dtype))


@rule("ptrtoint", "inttoptr", "ptrtoaddr")
def pointer_bits(ins: Instruction, t: Translator) -> Compute:
    kind = integer(ins)
    return elementwise(ins, lambda a: unsigned(a, kind))


@rule("addrspacecast")
def change_space(ins: Instruction, t: Translator) -> Compute:
    source, target = element(ins.operands[0][0]), element(ins.type)
    assert isinstance(source, Pointer) and isinstance(target, Pointer)
    start, end = BASES.get(source.space, 0), BASES.get(target.space, 0)
    dtype = dtype_of(target)
    return elementwise(ins, lambda a: (a.astype(np.uint64) + np.uint64(start) - np.uint64(end)).astype(dtype))


@rule("bitcast")
def same_bits(ins: Instruction, t: Translator) -> Compute:
    return lambda mask, value: bitcast(ins.type, ins.operands[0][0], value)


# intrinsics on integers


def limits(kind: Int, is_signed: bool) -> tuple[int, int]:
    return (-(1 << kind.bits - 1), (1 << kind.bits - 1) - 1) if is_signed else (0, (1 << kind.bits) - 1)


@intrinsic("smin", "smax", "umin", "umax")
def extreme(ins: Instruction, t: Translator) -> Compute:
    name = ins.callee.split(".")[1]
    function: Any = np.minimum if name.endswith("min") else np.maximum
    kind = integer(ins)
    if name[0] == "u":
        return elementwise(ins, function)
    return elementwise(ins, lambda a, b: unsigned(function(signed(a, kind.bits), signed(b, kind.bits)), kind))


@intrinsic("uadd.sat", "usub.sat", "sadd.sat", "ssub.sat")
def saturating(ins: Instruction, t: Translator) -> Compute:
    name, kind = ins.callee.split(".")[1], integer(ins)
    low, high = limits(kind, name[0] == "s")
    sign = 1 if name.endswith("add") else -1

    def computed(a: Array, b: Array) -> Array:
        x, y = (signed(a, kind.bits), signed(b, kind.bits)) if name[0] == "s" else (a, b)
        wide = object if kind.bits > 32 else np.int64
        return unsigned(np.clip(x.astype(wide) + sign * y.astype(wide), low, high), kind)

    return elementwise(ins, computed)


@intrinsic(*(f"{sign}{name}.with.overflow" for sign in "us" for name in ("add", "sub", "mul")))
def overflowing(ins: Instruction, t: Translator) -> Compute:
    name = ins.callee.split(".")[1]
    kind, function = integer(ins, ins.operands[0][0]), PLAIN[name[1:]]
    low, high = limits(kind, name[0] == "s")

    def computed(mask: Mask, a: Scalar, b: Scalar) -> Value:
        (x, p), (y, q) = a, b
        if name[0] == "s":
            x, y = signed(x, kind.bits), signed(y, kind.bits)
        exact = function(x.astype(object), y.astype(object))
        wrong = ((exact < low) | (exact > high)).astype(bool)
        return [(unsigned(exact, kind), either(p, q)), (wrong, either(p, q))]

    return computed


@intrinsic("abs")
def absolute(ins: Instruction, t: Translator) -> Compute:
    kind = integer(ins)
    return elementwise(ins, lambda x: unsigned(np.abs(signed(x, kind.bits)), kind), 1)


def at_width(function: Callable[[Array], Array], kind: Int, fill: int) -> Callable[[Array], Array]:
    """A count of bits, of a type that may be narrower than its array; `fill` is what the array has too many."""
    return lambda a: unsigned(function(a) - (8 * a.dtype.itemsize - kind.bits) * fill, kind)


@intrinsic("ctpop", "ctlz", "cttz", "bitreverse", "bswap")
def bit_counts(ins: Instruction, t: Translator) -> Compute:
    name, kind = ins.callee.split(".")[1], integer(ins)
    functions: dict[str, Any] = {
        "ctpop": lambda a: unsigned(one_bits(a), kind),
        "ctlz": at_width(leading_zeros, kind, 1),
        "cttz": lambda a: unsigned(np.minimum(trailing_zeros(a), kind.bits), kind),
        "bitreverse": reversed_bits,
        "bswap": lambda a: a.byteswap(),
    }
    if kind.bits > 64:  # Python's integers
        if name not in WIDE_COUNTS:
            raise Unsupported(ins, "of more than 64 bits")
        functions[name] = np.frompyfunc(lambda number: WIDE_COUNTS[name](int(number), kind.bits), 1, 1)
    return elementwise(ins, functions[name], 1)


WIDE_COUNTS: dict[str, Callable[[int, int], int]] = {
    "ctpop": lambda number, width: number.bit_count(),
    "ctlz": lambda number, width: width - number.bit_length(),
    "cttz": lambda number, width: (number & -number).bit_length() - 1 if number else width,
}


@intrinsic("fshl", "fshr")
def funnel(ins: Instruction, t: Translator) -> Compute:
    """Two words beside each other; of more than 32 bits, in Python's integers."""
    kind, is_left = integer(ins), ins.callee.startswith("llvm.fshl")
    wide: Any = np.uint64 if kind.bits <= 32 else int
    holds = np.dtype(np.uint64 if kind.bits <= 32 else object)

    def shifted(a: Array, b: Array, c: Array) -> Array:
        both = a.astype(holds) << wide(kind.bits) | b.astype(holds)
        amount = c.astype(holds) % wide(kind.bits)
        return unsigned(both << amount >> wide(kind.bits) if is_left else both >> amount, kind)

    return elementwise(ins, shifted)


@intrinsic("amdgcn.ubfe", "amdgcn.sbfe")
def bit_field(ins: Instruction, t: Translator) -> Compute:
    kind, is_signed = integer(ins), "sbfe" in ins.callee

    def field(a: Array, offset: Array, width: Array) -> Array:
        width = width.astype(np.int64) & 31
        low = a.astype(np.int64) >> (offset.astype(np.int64) & 31) & ((1 << width) - 1)
        sign = np.where(width > 0, 1 << np.maximum(width - 1, 0), 0) if is_signed else 0
        return unsigned((low ^ sign) - sign, kind)

    return elementwise(ins, field)


@intrinsic("amdgcn.perm")
def permuted_bytes(ins: Instruction, t: Translator) -> Compute:
    def chosen(high: Array, low: Array, selector: Array) -> Array:
        both = high.astype(np.uint64) << np.uint64(32) | low.astype(np.uint64)
        found = np.zeros(1, np.uint64)
        for place in range(4):
            code = selector.astype(np.uint64) >> np.uint64(8 * place) & np.uint64(255)
            byte = both >> (code & np.uint64(7)) * np.uint64(8) & np.uint64(255)
            sign = (both >> ((code & np.uint64(3)) * np.uint64(16) + np.uint64(15)) & np.uint64(1)) * np.uint64(255)
            byte = np.where(code < 8, byte, np.where(code < 12, sign, np.where(code == 12, 0, 255)).astype(np.uint64))
            found = found | byte << np.uint64(8 * place)
        return found.astype(np.uint32)

    return elementwise(ins, chosen)


@intrinsic("amdgcn.mul.u24", "amdgcn.mul.i24", "amdgcn.mulhi.u24", "amdgcn.mulhi.i24")
def multiply_24(ins: Instruction, t: Translator) -> Compute:
    is_signed, shift = ".i24" in ins.callee, np.int64(32 if "mulhi" in ins.callee else 0)
    sign = np.int64(1 << 23 if is_signed else 0)

    def low(a: Array) -> Array:
        return ((a.astype(np.int64) & 0xFFFFFF) ^ sign) - sign

    return elementwise(ins, lambda a, b: unsigned(low(a) * low(b) >> shift, Int(32)))
