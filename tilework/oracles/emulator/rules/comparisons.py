"""Comparisons of integers and floats, and what is chosen by a sign: setp, set, slct.

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


def comparison(ins: Instruction, t: Translator, type: str, number: int) -> Callable[[], Array]:
    """A function that compares two operands of the given type."""
    name = ins.modifiers[0]
    if type in FLOATS:
        return float_comparison(ins, t, name, type, number)
    if name not in COMPARE:
        raise Unsupported(ins)
    dtype = t.type_of(type, ins)
    if name in ("lo", "ls", "hi", "hs"):
        dtype = unsigned(dtype)
    a, b = (t.read(operand, dtype) for operand in ins.operands[number : number + 2])
    compare = COMPARE[name]
    return lambda: compare(a, b)


@rule("setp")
def setp(ins: Instruction, t: Translator) -> Op:
    """``setp.lt.and.s32 %p1|%p2, %r1, %r2, !%p3``: %p1 is the comparison, %p2 its opposite, each combined with %p3."""
    firsts = pair(ins.operands[0])
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

    if combine is None and opposite is None:
        return lambda mask: np.copyto(out, compare(), where=mask)

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
    dtype = unsigned(t.type_of(ins.modifiers[-2], ins))
    out, a, b = t.write(ins.operands[0], dtype), t.read(ins.operands[1], dtype), t.read(ins.operands[2], dtype)
    c = t.read(ins.operands[3], t.type_of(ins.modifiers[-1], ins))
    return lambda mask: np.copyto(out, np.where(c >= 0, a, b), where=mask)
