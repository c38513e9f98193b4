"""Bits of integers: shifts, bit fields, counting, logic of three operands, and dot products of bytes.

shl.b32  %r1, %r2, 4        bfe.u32  %r1, %r2, 4, 8        prmt.b32  %r1, %r2, %r3, 0x5410
"""

from typing import Any

import numpy as np

from tilework.numerics.integers import leading_zeros, one_bits, reversed_bits
from tilework.oracles.emulator.arenas import Array
from tilework.oracles.emulator.rules.integer import operands
from tilework.oracles.emulator.syntax import Instruction
from tilework.oracles.emulator.translate import Mask, Op, Translator, Unsupported, rule


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
    if (
        dtype.kind == "u"
        and start.ndim == 0 == length.ndim
        and int(start) + int(length) <= bits
        and 0 < int(length) < bits
    ):
        down, ones = dtype.type(start), dtype.type((1 << int(length)) - 1)
        return lambda mask: np.copyto(out, a >> down & ones, where=mask)

    def op(mask: Mask) -> None:
        first = (start & np.uint32(255)).astype(np.int64)
        size = (length & np.uint32(255)).astype(np.int64)
        inside = np.clip(first, 0, bits - 1)
        shifted = np.where(
            first < bits, a >> inside.astype(dtype), a >> dtype.type(bits - 1) if dtype.kind == "i" else dtype.type(0)
        )
        kept = np.where(
            size >= bits,
            ~unsigned.type(0),
            (unsigned.type(1) << np.minimum(size, bits - 1).astype(unsigned)) - unsigned.type(1),
        )
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
        kept = np.where(
            size >= bits, ~dtype.type(0), (dtype.type(1) << np.minimum(size, bits - 1).astype(dtype)) - dtype.type(1)
        )
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
        zeros = leading_zeros(np.asarray(value))
        at = np.where(zeros == bits, 0xFFFF_FFFF, zeros if amount else bits - 1 - zeros).astype(np.uint32)
        np.copyto(out, at, where=mask)

    return op


@rule("clz")
def clz(ins: Instruction, t: Translator) -> Op:
    dtype = np.dtype(t.type_of(ins.modifiers[-1], ins))
    out, a = t.write(ins.operands[0], np.uint32), t.read(ins.operands[1], dtype)
    return lambda mask: np.copyto(out, leading_zeros(a).astype(np.uint32), where=mask)


@rule("popc")
def popc(ins: Instruction, t: Translator) -> Op:
    dtype = np.dtype(t.type_of(ins.modifiers[-1], ins))
    out, a = t.write(ins.operands[0], np.uint32), t.read(ins.operands[1], dtype)
    return lambda mask: np.copyto(out, one_bits(a).astype(np.uint32), where=mask)


@rule("brev")
def brev(ins: Instruction, t: Translator) -> Op:
    out, (a,) = operands(ins, t)
    return lambda mask: np.copyto(out, reversed_bits(a), where=mask)


@rule("fns")
def fns(ins: Instruction, t: Translator) -> Op:
    """The place of the n-th set bit from `base`, upwards for n > 0 and downwards for n < 0; all ones when there is none."""
    out, value, base = (
        t.write(ins.operands[0], np.uint32),
        t.read(ins.operands[1], np.uint32),
        t.read(ins.operands[2], np.uint32),
    )
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
            byte = (both >> (np.uint64(8) * (nibble & np.uint32(7)).astype(np.uint64)) & np.uint64(255)).astype(
                np.uint32
            )
            byte = np.where(nibble & np.uint32(8), np.where(byte & np.uint32(128), np.uint32(255), np.uint32(0)), byte)
            value |= byte << np.uint32(8 * index)
        np.copyto(out, value, where=mask)

    return op


def fixed_bytes(t: Translator, out: Array, words: tuple[Array, Array], chosen: list[int]) -> Op:
    """prmt with a constant selector: bytes 0 to 3 of the first word, 4 to 7 of the second."""
    columns = [np.broadcast_to(word, (t.threads,)) for word in words]
    views = [
        (column if column.flags.c_contiguous else column.copy()).view(np.uint8).reshape(-1, 4) for column in columns
    ]
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
        return (
            np.ascontiguousarray(np.broadcast_to(x, (t.threads,))).view(dtype).reshape(t.threads, -1).astype(np.int64)
        )

    def op(mask: Mask) -> None:
        left, right = parts(a, narrow_a), parts(b, signs[1])
        if ins.opcode == "dp2a":
            right = right[:, 2:] if "hi" in ins.modifiers else right[:, :2]
        np.copyto(out, ((left * right).sum(axis=1) + c).astype(whole), where=mask)

    return op
