"""Integer arithmetic and logic. `add`, `sub`, `mul`, `min`, `max`, `abs`, `neg`, `fma`-like forms on floats are in
`floating`; the rules here hand them over by type.

    add.s32  %r1, %r2, %r3        mul.wide.u16  %r1, %rs1, %rs2        mad.lo.s32  %r1, %r2, %r3, %r4
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tilework.numerics.integers import high_product
from tilework.oracles.emulator.arenas import Array
from tilework.oracles.emulator.rules.floating import FLOAT_RULES
from tilework.oracles.emulator.syntax import Instruction
from tilework.oracles.emulator.translate import Mask, Op, Translator, Unsupported, rule

FLOATS = {"f16", "f16x2", "bf16", "bf16x2", "f32", "f64", "f32x2"}


def floating(ins: Instruction, t: Translator) -> Op | None:
    """The operation of the floating-point rule of the same name, if this is a float instruction."""
    if ins.modifiers and ins.modifiers[-1] in FLOATS:
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
        return lambda mask: np.copyto(
            out, np.clip(function(a.astype(np.int64), b), -(2**31), 2**31 - 1).astype(np.int32), where=mask
        )
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
        return dtype, high_product
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
