"""Comparisons of integers and floats, and what is chosen by a sign or a predicate: setp, set, slct, selp.

setp.lt.s32  %p1, %r1, %r2        set.eq.u32.s32  %r1, %r2, %r3        slct.b32.s32  %r1, %r2, %r3, %r4
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from tilework.oracles.emulator.arenas import Array
from tilework.oracles.emulator.rules.floating import FLOATS, float_comparison
from tilework.oracles.emulator.syntax import Instruction, Sink, pair
from tilework.oracles.emulator.translate import Mask, Op, Translator, Unsupported, rule, unsigned

COMPARE: dict[str, Any] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
    "lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal,
}  # fmt: skip
COMBINE = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def comparison(ins: Instruction, t: Translator, type: str) -> Callable[[], Array]:
    """A function that compares two operands of the given type."""
    name = ins.modifiers[0]
    if type in FLOATS:
        return float_comparison(ins, t, name, type)
    if name not in COMPARE:
        raise Unsupported(ins)
    dtype = t.type_of(type, ins)
    if name in ("lo", "ls", "hi", "hs"):
        dtype = unsigned(dtype)
    a, b = (t.read(operand, dtype) for operand in ins.operands[1:3])
    compare = COMPARE[name]
    return lambda: compare(a, b)


@rule("setp")
def setp(ins: Instruction, t: Translator) -> Op:
    """``setp.lt.and.s32 %p1|%p2, %r1, %r2, !%p3``: %p1 is the comparison, %p2 its opposite, each combined with %p3."""
    firsts = pair(ins.operands[0])
    compare = comparison(ins, t, ins.modifiers[-1])
    if ins.modifiers[-1] in ("f16x2", "bf16x2"):
        first, second = (t.write(operand, bool) for operand in firsts)

        def packed(mask: Mask) -> None:
            both = compare()
            np.copyto(first, both[:, 0], where=mask)
            np.copyto(second, both[:, 1], where=mask)

        return packed
    combined = combiner(ins, t)
    out = t.write(firsts[0], bool)
    if isinstance(firsts[1], Sink):
        return lambda mask: np.copyto(out, combined(compare()), where=mask)
    opposite = t.write(firsts[1], bool)

    def op(mask: Mask) -> None:
        value = compare()
        found = combined(value), combined(~value)  # the predicate may be one of the results
        np.copyto(out, found[0], where=mask)
        np.copyto(opposite, found[1], where=mask)

    return op


def combiner(ins: Instruction, t: Translator) -> Callable[[Array], Array]:
    """What is made of a comparison and a predicate, if there is one."""
    combine = next((COMBINE[modifier] for modifier in ins.modifiers[1:] if modifier in COMBINE), None)
    if combine is None:
        return lambda value: value
    other = t.predicate(ins.operands[3])
    return lambda value: combine(value, other())


@rule("set")
def set_number(ins: Instruction, t: Translator) -> Op:
    """Like setp, but the result is a number: all ones, or 1.0 when its type is a float."""
    result, type = ins.modifiers[-2:]
    compare = comparison(ins, t, type)
    combined = combiner(ins, t)
    dtype = np.dtype(t.type_of(result, ins))
    out = t.write(ins.operands[0], dtype)
    true = dtype.type(1) if dtype.kind == "f" else np.array(-1).astype(dtype)
    if result in ("bf16", "f16x2", "bf16x2"):
        raise Unsupported(ins)
    return lambda mask: np.copyto(out, np.where(combined(compare()), true, dtype.type(0)), where=mask)


@rule("slct")
def slct(ins: Instruction, t: Translator) -> Op:
    """a where c >= 0, else b."""
    c = t.read(ins.operands[3], t.type_of(ins.modifiers[-1], ins))
    return choice(ins, t, ins.modifiers[-2], lambda: c >= 0)


@rule("selp")
def selp(ins: Instruction, t: Translator) -> Op:
    return choice(ins, t, ins.modifiers[-1], t.predicate(ins.operands[3]))


def choice(ins: Instruction, t: Translator, type: str, chosen: Callable[[], Array]) -> Op:
    dtype = unsigned(t.type_of(type, ins))
    out, a, b = t.write(ins.operands[0], dtype), t.read(ins.operands[1], dtype), t.read(ins.operands[2], dtype)
    return lambda mask: np.copyto(out, np.where(chosen(), a, b), where=mask)
