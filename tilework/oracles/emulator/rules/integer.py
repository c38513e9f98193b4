"""Integer arithmetic and logic; of floats, `add`, `min` and their like are in `floating`.

add.s32  %r1, %r2, %r3        mul.wide.u16  %r1, %rs1, %rs2        mad.lo.s32  %r1, %r2, %r3, %r4
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tilework.numerics.integers import high_product
from tilework.oracles.emulator.arenas import Array
from tilework.oracles.emulator.syntax import EmulatorError, Instruction
from tilework.oracles.emulator.translate import Mask, Op, Translator, elementwise, rule, unsigned

UFUNCS: dict[str, Any] = {
    "add": np.add, "sub": np.subtract, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "not": np.invert, "abs": np.abs, "neg": np.negative,
}  # fmt: skip
WAYS = frozenset({"cc", "sat", "relu"})  # what may stand between an opcode of these and its type


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
    """Additions of numbers longer than a register: `.cc` keeps the carry (for sub the borrow), addc, subc and madc take it in."""
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


def product(ins: Instruction, t: Translator) -> tuple[Any, Callable[[Array, Array], Array]]:
    """(type of the result, function) of mul.lo, mul.hi, mul.wide, mul24."""
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
    result, function = product(ins, t)
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
    """Rounds towards zero. By zero gives all ones (the remainder: the dividend), as the hardware does; PTX does not say."""
    x, y = np.broadcast_arrays(a, b)
    dtype, bits, negative = x.dtype, unsigned(x.dtype), x.dtype.kind == "i"
    ux, uy = (np.abs(number).view(bits) if negative else number for number in (x, y))
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
