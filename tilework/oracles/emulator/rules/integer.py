"""Integer arithmetic, logic and bits; `add`, `min` and so on of floats are in `floating`.

add.s32  %r1, %r2, %r3        mul.wide.u16  %r1, %rs1, %rs2        mad.lo.s32  %r1, %r2, %r3, %r4
shl.b32  %r1, %r2, 4          bfe.u32  %r1, %r2, 4, 8              prmt.b32  %r1, %r2, %r3, 0x5410

"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tilework.numerics.integers import high_product, leading_zeros, one_bits, reversed_bits
from tilework.oracles.emulator.memory import Array
from tilework.oracles.emulator.syntax import EmulatorError, Instruction
from tilework.oracles.emulator.translate import Mask, Op, Translator, Unsupported, elementwise, rule, unsigned

UFUNCS: dict[str, Any] = {
    "add": np.add, "sub": np.subtract, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "not": np.invert, "abs": np.abs, "neg": np.negative,
}  # fmt: skip
WAYS = frozenset({"cc", "sat", "relu"})  # modifiers allowed between such an opcode and its type


def operands(ins: Instruction, t: Translator, dtype: Any = None) -> tuple[Array, list[Array]]:
    dtype = t.type_of(ins.modifiers[-1], ins) if dtype is None else dtype
    return t.write(ins.operands[0], dtype), [t.read(operand, dtype) for operand in ins.operands[1:]]


@rule(*UFUNCS)
def ufunc(ins: Instruction, t: Translator) -> Op:
    function = UFUNCS[ins.opcode]
    assert len(ins.operands) == function.nin + 1
    if unknown := set(ins.modifiers[:-1]) - WAYS:
        raise EmulatorError(f"{ins.opcode}.{'.'.join(ins.modifiers)}: .{min(unknown)} is not known here")
    if "cc" in ins.modifiers:
        return addc(ins, t)
    if ins.modifiers[-1] in ("u16x2", "s16x2"):
        out, whole = operands(ins, t, np.uint32)
        half = np.int16 if ins.modifiers[-1] == "s16x2" else np.uint16
        halves = [np.ascontiguousarray(np.broadcast_to(x, (t.threads,))).view(half) for x in whole]
        least = 0 if "relu" in ins.modifiers else np.iinfo(half).min
        return lambda mask: np.copyto(out, np.maximum(function(*halves), half(least)).view(np.uint32), where=mask)
    out, (a, *rest) = operands(ins, t)
    if not rest:
        return lambda mask: function(a, out=out, where=mask)
    (b,) = rest
    if "sat" in ins.modifiers:
        return lambda mask: np.copyto(out, saturated(function(a.astype(np.int64), b)), where=mask)
    if "relu" in ins.modifiers:
        return lambda mask: np.copyto(out, np.maximum(function(a, b), a.dtype.type(0)), where=mask)
    return lambda mask: function(a, b, out=out, where=mask)


def saturated(values: Array) -> Array:
    return np.clip(values, -(2**31), 2**31 - 1).astype(np.int32)


@rule("addc", "subc")
def addc(ins: Instruction, t: Translator) -> Op:
    out, (a, b) = operands(ins, t, unsigned(t.type_of(ins.modifiers[-1], ins)))
    return with_carry(ins, t, out, lambda: a, b)


def with_carry(ins: Instruction, t: Translator, out: Array, first: Callable[[], Array], b: Array) -> Op:
    """Additions of integers longer than a register: `.cc` keeps the carry (for sub the borrow); addc, subc and madc add
    it."""
    carry = t.registers.get("CC.CF")
    if carry is None:
        carry = t.registers["CC.CF"] = np.zeros(t.threads, bool)
        t.pools.append(carry)
    takes, keeps, subtracts = ins.opcode.endswith("c"), "cc" in ins.modifiers, ins.opcode.startswith("sub")

    def op(mask: Mask) -> None:
        a, extra = first(), carry.astype(b.dtype) if takes else b.dtype.type(0)
        if subtracts:
            partial = a - b
            total, over = partial - extra, (a < b) | (partial < extra)
        else:
            partial = a + b
            total = partial + extra
            over = (partial < b) | (total < partial)
        np.copyto(out, total, where=mask)
        if keeps:
            np.copyto(carry, over, where=mask)

    return op


def double(dtype: Any) -> Any:
    return np.dtype(f"{dtype.kind}{2 * dtype.itemsize}")


def multiplication(ins: Instruction, t: Translator) -> tuple[Any, Callable[[Array, Array], Array]]:
    """Return (type of the result, function) of mul.lo, mul.hi, mul.wide, mul24."""
    dtype = t.type_of(ins.modifiers[-1], ins)
    if "24" in ins.opcode:
        shift = dtype.type(8)
        cut = lambda x: (x << shift) >> shift  # noqa: E731
        if "hi" in ins.modifiers:
            wide = double(dtype)
            return dtype, lambda a, b: (cut(a).astype(wide) * cut(b).astype(wide) >> 16).astype(dtype)
        return dtype, lambda a, b: cut(a) * cut(b)
    if "wide" in ins.modifiers:
        wide = double(dtype)
        return wide, lambda a, b: a.astype(wide) * b.astype(wide)
    return dtype, high_product if "hi" in ins.modifiers else np.multiply


@rule("mul", "mul24", "mad", "mad24", "madc")
def mad(ins: Instruction, t: Translator) -> Op:
    result, function = multiplication(ins, t)
    assert len(ins.operands) == 3 + ins.opcode.startswith("mad")
    out = t.write(ins.operands[0], result)
    a, b = (t.read(operand, t.type_of(ins.modifiers[-1])) for operand in ins.operands[1:3])
    if ins.opcode.startswith("mul"):
        if function is np.multiply:
            return lambda mask: np.multiply(a, b, out=out, where=mask)
        return lambda mask: np.copyto(out, function(a, b), where=mask)
    c = t.read(ins.operands[3], result)
    if "cc" in ins.modifiers or ins.opcode == "madc":
        bits = unsigned(result)
        return with_carry(ins, t, out.view(bits), lambda: function(a, b).view(bits), c.view(bits))
    if "sat" in ins.modifiers:
        return lambda mask: np.copyto(out, saturated(function(a, b).astype(np.int64) + c), where=mask)
    return lambda mask: np.copyto(out, function(a, b) + c, where=mask)


@elementwise("div", "rem")
def div(ins: Instruction, a: Array, b: Array) -> Array:
    """Division rounds towards zero. By zero it gives all ones (the remainder: the dividend), as the hardware does; PTX
    does not specify it."""
    x, y = np.broadcast_arrays(a, b)
    dtype, bits, negative = x.dtype, unsigned(x.dtype), x.dtype.kind == "i"
    ux, uy = (np.abs(value).view(bits) if negative else value for value in (x, y))
    safe = np.where(uy == 0, bits.type(1), uy)
    quotient = ux // safe
    if ins.opcode == "div":
        value = quotient.view(dtype)
        if negative:
            value = np.where((x < 0) != (y < 0), -value, value)
        return np.where(y == 0, ~dtype.type(0), value)
    value = (ux - quotient * safe).view(dtype)
    if negative:
        value = np.where(x < 0, -value, value)
    return np.where(y == 0, x, value)


@elementwise("sad")
def sad(ins: Instruction, a: Array, b: Array, c: Array) -> Array:
    return np.where(a < b, b - a, a - b) + c


@elementwise("cnot")
def cnot(ins: Instruction, a: Array) -> Array:
    return a == 0


@rule("shl", "shr")
def shift(ins: Instruction, t: Translator) -> Op:
    """A shift by the width or more gives 0, or copies of the sign."""
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


def count_of(ins: Instruction, given: Array) -> Array:
    """Return a shift count: 0 to 31 if it wraps, else at most 32."""
    return given & np.uint32(31) if "wrap" in ins.modifiers else np.minimum(given, np.uint32(32))


@elementwise("shf")
def funnel(ins: Instruction, a: Array, b: Array, count: Array) -> Array:
    """The upper (shf.l) or lower (shf.r) half of a 64-bit shift."""
    n = count_of(ins, count).astype(np.uint64)
    both = b.astype(np.uint64) << np.uint64(32) | a.astype(np.uint64)
    return both << n >> np.uint64(32) if "l" in ins.modifiers else both >> n


def field(start: Array, length: Array, dtype: Any) -> tuple[Array, Array, Array]:
    """Return (first bit, number of bits, mask) of a bit field."""
    bits = 8 * dtype.itemsize
    first, size = ((x & np.uint32(255)).astype(np.int64) for x in (start, length))
    one = dtype.type(1)
    return first, size, np.where(size >= bits, ~dtype.type(0), (one << np.minimum(size, bits - 1).astype(dtype)) - one)


@rule("bfe")
def bfe(ins: Instruction, t: Translator) -> Op:
    dtype = np.dtype(t.type_of(ins.modifiers[-1], ins))
    start, length = (t.read(operand, np.uint32) for operand in ins.operands[2:])
    constant = start.ndim == 0 == length.ndim
    if dtype.kind == "u" and constant and start + length <= 8 * dtype.itemsize and 0 < length < 8 * dtype.itemsize:
        out, a = t.write(ins.operands[0], dtype), t.read(ins.operands[1], dtype)
        down, ones = dtype.type(start), dtype.type((1 << int(length)) - 1)
        return lambda mask: np.copyto(out, a >> down & ones, where=mask)
    return extract(ins, t)


@elementwise(types=(None, np.uint32, np.uint32))
def extract(ins: Instruction, a: Array, start: Array, length: Array) -> Array:
    dtype, bits, raw = a.dtype, 8 * a.dtype.itemsize, unsigned(a.dtype)
    first, size, kept = field(start, length, raw)
    beyond = a >> dtype.type(bits - 1) if dtype.kind == "i" else dtype.type(0)
    shifted = np.where(first < bits, a >> np.clip(first, 0, bits - 1).astype(dtype), beyond)
    value = np.ascontiguousarray(shifted).view(raw) & kept
    if dtype.kind == "i":
        at = np.clip(first + size - 1, 0, bits - 1)
        sign = (np.asarray(a).view(raw) >> at.astype(raw)) & raw.type(1)
        value = np.where((sign == 1) & (size > 0), value | ~kept, value)
    return np.where(size == 0, raw.type(0), value).view(dtype)


@elementwise("bfi", types=(None, None, np.uint32, np.uint32))
def bfi(ins: Instruction, a: Array, b: Array, start: Array, length: Array) -> Array:
    dtype, bits = a.dtype, 8 * a.dtype.itemsize
    first, _, kept = field(start, length, dtype)
    at = np.minimum(first, bits - 1).astype(dtype)
    chosen = np.where(first < bits, kept << at, dtype.type(0))
    return b & ~chosen | (a << at) & chosen


@elementwise("bfind", result=np.uint32)
def bfind(ins: Instruction, a: Array) -> Array:
    """The index of the highest bit that differs from the sign; all ones if there is none."""
    zeros = leading_zeros(np.asarray(np.where(a < 0, ~a, a) if a.dtype.kind == "i" else a))
    bits = 8 * a.dtype.itemsize
    return np.where(zeros == bits, 0xFFFF_FFFF, zeros if "shiftamt" in ins.modifiers else bits - 1 - zeros)


elementwise("clz", result=np.uint32)(lambda ins, a: leading_zeros(a))
elementwise("popc", result=np.uint32)(lambda ins, a: one_bits(a))
elementwise("brev")(lambda ins, a: reversed_bits(a))


@elementwise("fns", types=(None, None, np.int32))
def fns(ins: Instruction, value: Array, base: Array, offset: Array) -> Array:
    """The index of the n-th set bit from `base`, upwards for n > 0 and downwards for n < 0; all ones if there is
    none."""

    def index(bits: int, start: int, n: int) -> int:
        indices = (start,) if n == 0 else range(start, 32) if n > 0 else range(start, -1, -1)
        hits = [at for at in indices if bits >> at & 1]
        return hits[max(1, abs(n)) - 1] if len(hits) >= max(1, abs(n)) else 0xFFFF_FFFF

    return np.vectorize(index, otypes=[np.uint32])(value, base, offset)


@elementwise("bmsk")
def bmsk(ins: Instruction, a: Array, b: Array) -> Array:
    first, size = (count_of(ins, x).astype(np.uint64) for x in (a, b))
    return ((np.uint64(1) << size) - np.uint64(1)) << first


@elementwise("szext", types=(None, np.uint32))
def szext(ins: Instruction, a: Array, b: Array) -> Array:
    size = count_of(ins, b).astype(np.int64)
    wide = a.astype(np.int64) & ((1 << size) - 1)
    if a.dtype.kind == "u":
        return wide
    return np.where((size > 0) & (wide >> np.maximum(size - 1, 0) & 1 == 1), wide - (1 << size), wide)


@elementwise("lop3")
def lop3(ins: Instruction, a: Array, b: Array, c: Array, table: Array) -> Array:
    """Any function of three bits: bit 4a+2b+c of the table is its value."""
    value = np.zeros(np.broadcast(a, b, c).shape, np.uint32)
    for index in range(8):
        if int(table) >> index & 1:
            value |= (a if index & 4 else ~a) & (b if index & 2 else ~b) & (c if index & 1 else ~c)
    return value


@rule("prmt")
def prmt(ins: Instruction, t: Translator) -> Op:
    """Bytes picked from two registers. The selector has four nibbles: the byte's index, and in the top bit whether to
    copy its sign."""
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


def fixed_bytes(t: Translator, out: Array, registers: tuple[Array, Array], chosen: list[int]) -> Op:
    """prmt with a constant selector: bytes 0 to 3 of the first register, 4 to 7 of the second."""
    columns = [np.broadcast_to(register, (t.threads,)) for register in registers]
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
    """c + the dot product of four bytes (dp2a: two halves with the low or high two bytes)."""
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
