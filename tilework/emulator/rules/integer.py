"""Integer arithmetic, logic and comparison. `add`, `sub`, `mul`, `min`, `max`, `abs`, `neg`, `fma`-like forms on floats are in
`floating`; the rules here hand them over by type.

    add.s32  %r1, %r2, %r3        mul.wide.u16  %r1, %rs1, %rs2        bfe.u32  %r1, %r2, 4, 8
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tilework.emulator.memory import Array
from tilework.emulator.syntax import Instruction, Pair, Sink
from tilework.emulator.translate import Mask, Op, Translator, Unsupported, rule

FLOATS = {"f16", "f16x2", "bf16", "bf16x2", "f32", "f64", "f32x2"}


def floating(ins: Instruction, t: Translator) -> Op | None:
    """The operation of the floating-point rule of the same name, if this is a float instruction."""
    if ins.modifiers and ins.modifiers[-1] in FLOATS:
        from tilework.emulator.rules.floating import FLOAT_RULES

        if ins.opcode not in FLOAT_RULES:
            raise Unsupported(ins)
        return FLOAT_RULES[ins.opcode](ins, t)
    return None


def operands(ins: Instruction, t: Translator, dtype: Any = None) -> tuple[Array, list[Array]]:
    dtype = t.type_of(ins.modifiers[-1], ins) if dtype is None else dtype
    return t.write(ins.operands[0], dtype), [t.read(operand, dtype) for operand in ins.operands[1:]]


def binary(function: Callable[..., Any]) -> Callable[[Instruction, Translator], Op]:
    def made(ins: Instruction, t: Translator) -> Op:
        if (handed := floating(ins, t)) is not None:
            return handed
        out, (a, b) = operands(ins, t)
        return lambda mask: function(a, b, out=out, where=mask)

    return made


rule("min")(binary(np.minimum))
rule("max")(binary(np.maximum))
rule("and")(binary(np.bitwise_and))
rule("or")(binary(np.bitwise_or))
rule("xor")(binary(np.bitwise_xor))


@rule("add", "sub")
def add(ins: Instruction, t: Translator) -> Op:
    if (handed := floating(ins, t)) is not None:
        return handed
    if "cc" in ins.modifiers:
        return with_carry(ins, t, carry_in=False)
    if ins.modifiers[-1] in ("u16x2", "s16x2"):
        half = np.dtype(np.uint16)
        whole = [np.broadcast_to(t.read(operand, np.uint32), (t.threads,)) for operand in ins.operands[1:]]
        out = t.write(ins.operands[0], np.uint32)
        function = np.add if ins.opcode == "add" else np.subtract
        return lambda mask: np.copyto(
            out, function(*(np.ascontiguousarray(x).view(half) for x in whole)).view(np.uint32), where=mask
        )
    out, (a, b) = operands(ins, t)
    if "sat" in ins.modifiers:
        function = np.add if ins.opcode == "add" else np.subtract
        return lambda mask: np.copyto(out, np.clip(function(a.astype(np.int64), b), -(2**31), 2**31 - 1).astype(np.int32), where=mask)
    function = np.add if ins.opcode == "add" else np.subtract
    return lambda mask: function(a, b, out=out, where=mask)


def carry_register(t: Translator) -> Array:
    if "CC.CF" not in t.registers:
        t.registers["CC.CF"] = np.zeros(t.threads, bool)
        t.pools.append(t.registers["CC.CF"])
    return t.registers["CC.CF"]


@rule("addc", "subc")
def addc(ins: Instruction, t: Translator) -> Op:
    return with_carry(ins, t, carry_in=True)


def with_carry(ins: Instruction, t: Translator, carry_in: bool) -> Op:
    """Additions of numbers longer than a register: `.cc` keeps the carry (for sub the borrow), addc and subc take it in."""
    dtype = np.dtype(f"u{np.dtype(t.type_of(ins.modifiers[-1], ins)).itemsize}")
    out, (a, b) = operands(ins, t, dtype)
    carry, keeps, subtracts = carry_register(t), "cc" in ins.modifiers, ins.opcode.startswith("sub")

    def op(mask: Mask) -> None:
        extra = carry.astype(dtype) if carry_in else dtype.type(0)
        if subtracts:
            first = a - b
            total = first - extra
            over = (a < b) | (first < extra)
        else:
            first = a + b
            total = first + extra
            over = (first < a) | (total < first)
        np.copyto(out, total, where=mask)
        if keeps:
            np.copyto(carry, over, where=mask)

    return op


def double(dtype: Any) -> Any:
    return np.dtype(f"{np.dtype(dtype).kind}{2 * np.dtype(dtype).itemsize}")


def high_product(a: Array, b: Array, dtype: Any) -> Array:
    """The upper half of a product; 64-bit ones from 32-bit parts."""
    if np.dtype(dtype).itemsize < 8:
        wide = double(dtype)
        return ((a.astype(wide) * b.astype(wide)) >> (8 * np.dtype(dtype).itemsize)).astype(dtype)
    low, half = np.uint64(0xFFFF_FFFF), np.uint64(32)
    ua, ub = a.astype(np.uint64), b.astype(np.uint64)
    a0, a1, b0, b1 = ua & low, ua >> half, ub & low, ub >> half
    middle = a1 * b0 + (a0 * b0 >> half)
    other = a0 * b1 + (middle & low)
    high = a1 * b1 + (middle >> half) + (other >> half)
    if np.dtype(dtype).kind == "i":
        high = high - np.where(a < 0, ub, np.uint64(0)) - np.where(b < 0, ua, np.uint64(0))
    return high.view(dtype) if high.ndim else high.astype(dtype)


def product(ins: Instruction, t: Translator) -> tuple[Any, Callable[[Array, Array], Array]]:
    """(type of the result, function) of mul.lo, mul.hi, mul.wide, mul24."""
    dtype = t.type_of(ins.modifiers[-1], ins)
    if ins.opcode.endswith("24"):
        shift = np.dtype(dtype).type(8)
        cut = lambda x: (x << shift) >> shift  # noqa: E731
        if "hi" in ins.modifiers:
            wide = double(dtype)
            return dtype, lambda a, b: (cut(a).astype(wide) * cut(b).astype(wide) >> 16).astype(dtype)
        return dtype, lambda a, b: cut(a) * cut(b)
    if "wide" in ins.modifiers:
        wide = double(dtype)
        return wide, lambda a, b: a.astype(wide) * b.astype(wide)
    if "hi" in ins.modifiers:
        return dtype, lambda a, b: high_product(a, b, dtype)
    return dtype, np.multiply


@rule("mul", "mul24")
def mul(ins: Instruction, t: Translator) -> Op:
    if (handed := floating(ins, t)) is not None:
        return handed
    result, function = product(ins, t)
    out = t.write(ins.operands[0], result)
    a, b = (t.read(operand, t.type_of(ins.modifiers[-1])) for operand in ins.operands[1:])
    if function is np.multiply:
        return lambda mask: np.multiply(a, b, out=out, where=mask)
    return lambda mask: np.copyto(out, function(a, b), where=mask)


@rule("mad", "mad24")
def mad(ins: Instruction, t: Translator) -> Op:
    if (handed := floating(ins, t)) is not None:
        return handed
    result, function = product(ins, t)
    out = t.write(ins.operands[0], result)
    a, b = (t.read(operand, t.type_of(ins.modifiers[-1])) for operand in ins.operands[1:3])
    c = t.read(ins.operands[3], result)
    if "sat" in ins.modifiers:
        return lambda mask: np.copyto(
            out, np.clip(function(a, b).astype(np.int64) + c, -(2**31), 2**31 - 1).astype(np.int32), where=mask
        )
    if "cc" in ins.modifiers:
        carry, bits = carry_register(t), np.dtype(f"u{np.dtype(result).itemsize}")

        def op(mask: Mask) -> None:
            total = function(a, b).view(bits) + c.view(bits)
            np.copyto(carry, total < c.view(bits), where=mask)
            np.copyto(out.view(bits), total, where=mask)

        return op
    return lambda mask: np.copyto(out, function(a, b) + c, where=mask)


@rule("madc")
def madc(ins: Instruction, t: Translator) -> Op:
    result, function = product(ins, t)
    bits = np.dtype(f"u{np.dtype(result).itemsize}")
    out = t.write(ins.operands[0], bits)
    a, b = (t.read(operand, t.type_of(ins.modifiers[-1])) for operand in ins.operands[1:3])
    c = t.read(ins.operands[3], bits)
    carry, keeps = carry_register(t), "cc" in ins.modifiers

    def op(mask: Mask) -> None:
        extra = carry.astype(bits)
        first = function(a, b).view(bits) + c
        total = first + extra
        if keeps:
            np.copyto(carry, (first < c) | (total < first), where=mask)
        np.copyto(out, total, where=mask)

    return op


@rule("div", "rem")
def div(ins: Instruction, t: Translator) -> Op:
    """Rounds towards zero. By zero gives all ones (the remainder: the dividend), as the hardware does; PTX does not say."""
    if (handed := floating(ins, t)) is not None:
        return handed
    dtype = np.dtype(t.type_of(ins.modifiers[-1], ins))
    out, (a, b) = operands(ins, t)
    bits = np.dtype(f"u{dtype.itemsize}")
    wants_quotient = ins.opcode == "div"

    def op(mask: Mask) -> None:
        x, y = np.broadcast_arrays(a, b)
        negative = dtype.kind == "i"
        ux = np.abs(x).view(bits) if negative else x
        uy = np.abs(y).view(bits) if negative else y
        safe = np.where(uy == 0, bits.type(1), uy)
        quotient = ux // safe
        if wants_quotient:
            value = quotient.view(dtype)
            if negative:
                value = np.where((x < 0) != (y < 0), -value, value)
            value = np.where(y == 0, dtype.type(-1) if negative else ~dtype.type(0), value)
        else:
            value = (ux - quotient * safe).view(dtype)
            if negative:
                value = np.where(x < 0, -value, value)
            value = np.where(y == 0, x, value)
        np.copyto(out, value, where=mask)

    return op


@rule("sad")
def sad(ins: Instruction, t: Translator) -> Op:
    out, (a, b, c) = operands(ins, t)
    return lambda mask: np.copyto(out, np.where(a < b, b - a, a - b) + c, where=mask)


@rule("abs")
def absolute(ins: Instruction, t: Translator) -> Op:
    if (handed := floating(ins, t)) is not None:
        return handed
    out, (a,) = operands(ins, t)
    return lambda mask: np.abs(a, out=out, where=mask)


@rule("neg")
def neg(ins: Instruction, t: Translator) -> Op:
    if (handed := floating(ins, t)) is not None:
        return handed
    out, (a,) = operands(ins, t)
    return lambda mask: np.negative(a, out=out, where=mask)


@rule("not")
def invert(ins: Instruction, t: Translator) -> Op:
    out, (a,) = operands(ins, t)
    return lambda mask: np.invert(a, out=out, where=mask)


@rule("cnot")
def cnot(ins: Instruction, t: Translator) -> Op:
    out, (a,) = operands(ins, t)
    return lambda mask: np.copyto(out, (a == 0).astype(out.dtype), where=mask)


# shifts and bit fields


@rule("shl", "shr")
def shift(ins: Instruction, t: Translator) -> Op:
    """Shifts by the width or more give 0, or copies of the sign."""
    dtype = np.dtype(t.type_of(ins.modifiers[-1], ins))
    out, a = t.write(ins.operands[0], dtype), t.read(ins.operands[1], dtype)
    count = t.read(ins.operands[2], np.uint32)
    bits = np.uint32(8 * dtype.itemsize)
    function = np.left_shift if ins.opcode == "shl" else np.right_shift
    if count.ndim == 0 and count < bits:
        constant = dtype.type(count)
        return lambda mask: function(a, constant, out=out, where=mask)

    def op(mask: Mask) -> None:
        clamped = np.minimum(count, bits - np.uint32(1)).astype(dtype)
        value = function(a, clamped)
        if dtype.kind == "i" and function is np.right_shift:
            np.copyto(out, value, where=mask)
        else:
            np.copyto(out, np.where(count < bits, value, dtype.type(0)), where=mask)

    return op


@rule("shf")
def funnel(ins: Instruction, t: Translator) -> Op:
    """The upper (shf.l) or lower (shf.r) half of a 64-bit shift."""
    out, (a, b) = t.write(ins.operands[0], np.uint32), (t.read(x, np.uint32) for x in ins.operands[1:3])
    count = t.read(ins.operands[3], np.uint32)
    left, wraps = "l" in ins.modifiers, "wrap" in ins.modifiers

    def op(mask: Mask) -> None:
        n = (count & np.uint32(31) if wraps else np.minimum(count, np.uint32(32))).astype(np.uint64)
        both = b.astype(np.uint64) << np.uint64(32) | a.astype(np.uint64)
        value = both << n >> np.uint64(32) if left else both >> n
        np.copyto(out, value.astype(np.uint32), where=mask)

    return op


@rule("bfe")
def bfe(ins: Instruction, t: Translator) -> Op:
    dtype = np.dtype(t.type_of(ins.modifiers[-1], ins))
    out, a = t.write(ins.operands[0], dtype), t.read(ins.operands[1], dtype)
    start, length = (t.read(operand, np.uint32) for operand in ins.operands[2:])
    bits, unsigned = 8 * dtype.itemsize, np.dtype(f"u{dtype.itemsize}")
    if dtype.kind == "u" and start.ndim == 0 == length.ndim and int(start) + int(length) <= bits and 0 < int(length) < bits:
        down, ones = dtype.type(start), dtype.type((1 << int(length)) - 1)
        return lambda mask: np.copyto(out, a >> down & ones, where=mask)

    def op(mask: Mask) -> None:
        first = (start & np.uint32(255)).astype(np.int64)
        size = (length & np.uint32(255)).astype(np.int64)
        inside = np.clip(first, 0, bits - 1)
        shifted = np.where(first < bits, a >> inside.astype(dtype), a >> dtype.type(bits - 1) if dtype.kind == "i" else dtype.type(0))
        kept = np.where(size >= bits, ~unsigned.type(0), (unsigned.type(1) << np.minimum(size, bits - 1).astype(unsigned)) - unsigned.type(1))
        value = np.ascontiguousarray(shifted).view(unsigned) & kept
        if dtype.kind == "i":
            at = np.clip(np.minimum(first + size - 1, bits - 1), 0, bits - 1)
            sign = (np.asarray(a).view(unsigned) >> at.astype(unsigned)) & unsigned.type(1)
            value = np.where((sign == 1) & (size > 0), value | ~kept, value)
        np.copyto(out, np.where(size == 0, unsigned.type(0), value).astype(unsigned).view(dtype), where=mask)

    return op


@rule("bfi")
def bfi(ins: Instruction, t: Translator) -> Op:
    dtype = np.dtype(t.type_of(ins.modifiers[-1], ins))
    out, a, b = t.write(ins.operands[0], dtype), t.read(ins.operands[1], dtype), t.read(ins.operands[2], dtype)
    start, length = (t.read(operand, np.uint32) for operand in ins.operands[3:])
    bits = 8 * dtype.itemsize

    def op(mask: Mask) -> None:
        first, size = (start & np.uint32(255)).astype(np.int64), (length & np.uint32(255)).astype(np.int64)
        kept = np.where(size >= bits, ~dtype.type(0), (dtype.type(1) << np.minimum(size, bits - 1).astype(dtype)) - dtype.type(1))
        at = np.minimum(first, bits - 1).astype(dtype)
        field = np.where(first < bits, kept << at, dtype.type(0))
        np.copyto(out, b & ~field | (a << at) & field, where=mask)

    return op


@rule("bfind")
def bfind(ins: Instruction, t: Translator) -> Op:
    """The place of the highest bit that differs from the sign; all ones when there is none."""
    dtype = np.dtype(t.type_of(ins.modifiers[-1], ins))
    out, a = t.write(ins.operands[0], np.uint32), t.read(ins.operands[1], dtype)
    bits = 8 * dtype.itemsize
    amount = "shiftamt" in ins.modifiers

    def op(mask: Mask) -> None:
        value = np.where(a < 0, ~a, a) if dtype.kind == "i" else a
        zeros = leading_zeros(np.asarray(value).astype(np.uint64), bits)
        at = np.where(zeros == bits, np.uint32(0xFFFF_FFFF), zeros if amount else np.uint32(bits - 1) - zeros)
        np.copyto(out, at, where=mask)

    return op


def leading_zeros(values: Array, bits: int) -> Array:
    """Of unsigned 64-bit numbers, within `bits` bits."""
    length = np.zeros(values.shape, np.uint32)
    rest = values.copy()
    for step in (32, 16, 8, 4, 2, 1):
        high = rest >> np.uint64(step)
        some = high != 0
        length = np.where(some, length + np.uint32(step), length)
        rest = np.where(some, high, rest)
    return np.uint32(bits) - np.where(values == 0, np.uint32(0), length + np.uint32(1))


@rule("clz")
def clz(ins: Instruction, t: Translator) -> Op:
    dtype = np.dtype(t.type_of(ins.modifiers[-1], ins))
    out, a = t.write(ins.operands[0], np.uint32), t.read(ins.operands[1], dtype)
    return lambda mask: np.copyto(out, leading_zeros(a.astype(np.uint64), 8 * dtype.itemsize), where=mask)


@rule("popc")
def popc(ins: Instruction, t: Translator) -> Op:
    dtype = np.dtype(t.type_of(ins.modifiers[-1], ins))
    out, a = t.write(ins.operands[0], np.uint32), t.read(ins.operands[1], dtype)
    return lambda mask: np.copyto(out, np.bitwise_count(a).astype(np.uint32), where=mask)


@rule("brev")
def brev(ins: Instruction, t: Translator) -> Op:
    out, (a,) = operands(ins, t)
    dtype = np.dtype(t.type_of(ins.modifiers[-1], ins))
    reverse = np.array([int(f"{byte:08b}"[::-1], 2) for byte in range(256)], np.uint8)

    def op(mask: Mask) -> None:
        data = np.ascontiguousarray(np.broadcast_to(a, out.shape)).view(np.uint8).reshape(-1, dtype.itemsize)
        np.copyto(out, np.ascontiguousarray(reverse[data[:, ::-1]]).view(dtype)[:, 0], where=mask)

    return op


@rule("fns")
def fns(ins: Instruction, t: Translator) -> Op:
    """The place of the n-th set bit from `base`, upwards for n > 0 and downwards for n < 0; all ones when there is none."""
    out, value, base = t.write(ins.operands[0], np.uint32), t.read(ins.operands[1], np.uint32), t.read(ins.operands[2], np.uint32)
    offset = t.read(ins.operands[3], np.int32)

    def op(mask: Mask) -> None:
        rows = np.broadcast_arrays(value, base, offset)
        found = np.full(t.threads, 0xFFFF_FFFF, np.uint32)
        for thread in t.active(mask):
            bits, start, n = (int(row[thread] if row.ndim else row) for row in rows)
            places = range(start, 32) if n >= 0 else range(start, -1, -1)
            hits = [place for place in places if bits >> place & 1]
            if n == 0:
                hits = [place for place in (start,) if bits >> place & 1]
            if len(hits) >= max(1, abs(n)):
                found[thread] = hits[max(1, abs(n)) - 1]
        np.copyto(out, found, where=mask)

    return op


@rule("bmsk")
def bmsk(ins: Instruction, t: Translator) -> Op:
    out, (a, b) = operands(ins, t, np.uint32)
    wraps = "wrap" in ins.modifiers

    def op(mask: Mask) -> None:
        first = (a & np.uint32(31) if wraps else np.minimum(a, np.uint32(32))).astype(np.uint64)
        size = (b & np.uint32(31) if wraps else np.minimum(b, np.uint32(32))).astype(np.uint64)
        ones = ((np.uint64(1) << size) - np.uint64(1)) << first
        np.copyto(out, (ones & np.uint64(0xFFFF_FFFF)).astype(np.uint32), where=mask)

    return op


@rule("szext")
def szext(ins: Instruction, t: Translator) -> Op:
    dtype = np.dtype(t.type_of(ins.modifiers[-1], ins))
    out, a, b = t.write(ins.operands[0], dtype), t.read(ins.operands[1], dtype), t.read(ins.operands[2], np.uint32)
    wraps = "wrap" in ins.modifiers

    def op(mask: Mask) -> None:
        size = (b & np.uint32(31) if wraps else np.minimum(b, np.uint32(32))).astype(np.int64)
        wide = a.astype(np.int64) & ((1 << size) - 1)
        if dtype.kind == "i":
            wide = np.where((size > 0) & (wide >> np.maximum(size - 1, 0) & 1 == 1), wide - (1 << size), wide)
        np.copyto(out, wide.astype(dtype), where=mask)

    return op


@rule("lop3")
def lop3(ins: Instruction, t: Translator) -> Op:
    """Any function of three bits: bit 4a+2b+c of the table is its value."""
    out, a, b, c = t.write(ins.operands[0], np.uint32), *(t.read(x, np.uint32) for x in ins.operands[1:4])
    table = int(t.read(ins.operands[4], np.uint32))

    def op(mask: Mask) -> None:
        value = np.zeros(np.broadcast(a, b, c).shape, np.uint32)
        for index in range(8):
            if table >> index & 1:
                value |= (a if index & 4 else ~a) & (b if index & 2 else ~b) & (c if index & 1 else ~c)
        np.copyto(out, value, where=mask)

    return op


@rule("prmt")
def prmt(ins: Instruction, t: Translator) -> Op:
    """Bytes picked from two words. The selector has four nibbles: which byte, and its top bit whether to copy its sign."""
    out, a, b, selector = t.write(ins.operands[0], np.uint32), *(t.read(x, np.uint32) for x in ins.operands[1:4])
    mode = ins.modifiers[1] if len(ins.modifiers) > 1 else ""
    modes = {
        "f4e": lambda k: [(k + i) & 7 for i in range(4)],
        "b4e": lambda k: [(k - i) & 7 for i in range(4)],
        "rc8": lambda k: [k] * 4,
        "ecl": lambda k: [max(i, k) for i in range(4)],
        "ecr": lambda k: [min(i, k) for i in range(4)],
        "rc16": lambda k: [2 * (k & 1), 2 * (k & 1) + 1] * 2,
    }
    if mode and mode not in modes:
        raise Unsupported(ins)
    if not mode and selector.ndim == 0 and not int(selector) & 0x8888:
        return fixed_bytes(t, out, (a, b), [int(selector) >> 4 * index & 7 for index in range(4)])

    def op(mask: Mask) -> None:
        both = np.asarray(a).astype(np.uint64) | np.asarray(b).astype(np.uint64) << np.uint64(32)
        value = np.zeros(np.broadcast(both, selector).shape, np.uint32)
        for index in range(4):
            if mode:
                choices = np.array([modes[mode](k)[index] for k in range(4)], np.uint32)
                nibble = choices[selector & np.uint32(3)]
            else:
                nibble = selector >> np.uint32(4 * index) & np.uint32(15)
            byte = (both >> (np.uint64(8) * (nibble & np.uint32(7)).astype(np.uint64)) & np.uint64(255)).astype(np.uint32)
            byte = np.where(nibble & np.uint32(8), np.where(byte & np.uint32(128), np.uint32(255), np.uint32(0)), byte)
            value |= byte << np.uint32(8 * index)
        np.copyto(out, value, where=mask)

    return op


def fixed_bytes(t: Translator, out: Array, words: tuple[Array, Array], chosen: list[int]) -> Op:
    """prmt with a constant selector: bytes 0 to 3 of the first word, 4 to 7 of the second."""
    columns = [np.broadcast_to(word, (t.threads,)) for word in words]
    views = [(column if column.flags.c_contiguous else column.copy()).view(np.uint8).reshape(-1, 4) for column in columns]
    picked = [views[byte // 4][:, byte % 4] for byte in chosen]
    new = np.empty((t.threads, 4), np.uint8)

    def op(mask: Mask) -> None:
        for index, column in enumerate(picked):
            new[:, index] = column
        np.copyto(out, new.view(np.uint32)[:, 0], where=mask)

    return op


@rule("dp4a", "dp2a")
def dot_of_bytes(ins: Instruction, t: Translator) -> Op:
    """c + the sum of products of four bytes (dp2a: two halves with the low or high two bytes)."""
    kinds = [modifier for modifier in ins.modifiers if modifier in ("s32", "u32")]
    signs = [np.int8 if kind == "s32" else np.uint8 for kind in kinds]
    whole = np.int32 if "s32" in kinds else np.uint32
    out, c = t.write(ins.operands[0], whole), t.read(ins.operands[3], whole)
    a, b = (t.read(operand, np.uint32) for operand in ins.operands[1:3])
    narrow_a = np.dtype(signs[0]) if ins.opcode == "dp4a" else np.dtype(np.int16 if kinds[0] == "s32" else np.uint16)

    def parts(x: Array, dtype: Any) -> Array:
        return np.ascontiguousarray(np.broadcast_to(x, (t.threads,))).view(dtype).reshape(t.threads, -1).astype(np.int64)

    def op(mask: Mask) -> None:
        left, right = parts(a, narrow_a), parts(b, signs[1])
        if ins.opcode == "dp2a":
            right = right[:, 2:] if "hi" in ins.modifiers else right[:, :2]
        np.copyto(out, ((left * right).sum(axis=1) + c).astype(whole), where=mask)

    return op


# comparisons

COMPARE: dict[str, Any] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip
COMBINE = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def comparison(ins: Instruction, t: Translator, type: str, number: int) -> Callable[[], Array]:
    """A function that compares two operands of the given type."""
    name = ins.modifiers[0]
    if type in FLOATS:
        from tilework.emulator.rules.floating import float_comparison

        return float_comparison(ins, t, name, type, number)
    if name not in COMPARE:
        raise Unsupported(ins)
    dtype = t.type_of(type, ins)
    if name in ("lo", "ls", "hi", "hs"):
        dtype = np.dtype(f"u{np.dtype(dtype).itemsize}")
    a, b = (t.read(operand, dtype) for operand in ins.operands[number : number + 2])
    compare = COMPARE[name]
    return lambda: compare(a, b)


@rule("setp")
def setp(ins: Instruction, t: Translator) -> Op:
    """``setp.lt.and.s32 %p1|%p2, %r1, %r2, !%p3``: %p1 is the comparison, %p2 its opposite, each combined with %p3."""
    target = ins.operands[0]
    firsts = (target.first, target.second) if isinstance(target, Pair) else (target, Sink())
    compare = comparison(ins, t, ins.modifiers[-1], 1)
    if ins.modifiers[-1] in ("f16x2", "bf16x2"):
        first, second = (t.write(operand, bool) for operand in firsts)

        def packed(mask: Mask) -> None:
            both = compare()
            np.copyto(first, both[:, 0], where=mask)
            np.copyto(second, both[:, 1], where=mask)

        return packed
    combine = next((COMBINE[modifier] for modifier in ins.modifiers[1:] if modifier in COMBINE), None)
    other = t.predicate(ins.operands[3]) if combine else None
    out = t.write(firsts[0], bool)
    opposite = None if isinstance(firsts[1], Sink) else t.write(firsts[1], bool)

    def op(mask: Mask) -> None:
        value = compare()
        reverse = ~value
        if combine is not None and other is not None:
            extra = other()
            value, reverse = combine(value, extra), combine(reverse, extra)
        np.copyto(out, value, where=mask)
        if opposite is not None:
            np.copyto(opposite, reverse, where=mask)

    return op


@rule("set")
def set_number(ins: Instruction, t: Translator) -> Op:
    """Like setp, but the result is a number: all ones, or 1.0 when its type is a float."""
    result, type = ins.modifiers[-2:]
    compare = comparison(ins, t, type, 1)
    combine = next((COMBINE[modifier] for modifier in ins.modifiers[1:-2] if modifier in COMBINE), None)
    other = t.predicate(ins.operands[3]) if combine else None
    dtype = np.dtype(t.type_of(result, ins))
    out = t.write(ins.operands[0], dtype)
    true = dtype.type(1) if dtype.kind == "f" else np.array(-1).astype(dtype)
    if result in ("bf16", "f16x2", "bf16x2"):
        raise Unsupported(ins)

    def op(mask: Mask) -> None:
        value = compare()
        if combine is not None and other is not None:
            value = combine(value, other())
        np.copyto(out, np.where(value, true, dtype.type(0)), where=mask)

    return op


@rule("slct")
def slct(ins: Instruction, t: Translator) -> Op:
    """a where c >= 0, else b."""
    dtype = np.dtype(f"u{np.dtype(t.type_of(ins.modifiers[-2], ins)).itemsize}")
    out, a, b = t.write(ins.operands[0], dtype), t.read(ins.operands[1], dtype), t.read(ins.operands[2], dtype)
    c = t.read(ins.operands[3], t.type_of(ins.modifiers[-1], ins))
    return lambda mask: np.copyto(out, np.where(c >= 0, a, b), where=mask)
