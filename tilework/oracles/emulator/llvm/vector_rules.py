"""Values as wholes: elements, fields, choices, addresses."""

from typing import Any

import numpy as np

from tilework.oracles.emulator.arenas import Array
from tilework.oracles.emulator.llvm.ir_text import Instruction, Literal, Zero
from tilework.oracles.emulator.llvm.ir_types import Int, Sequence, Struct, dtype_of, fields_of, size_of
from tilework.oracles.emulator.llvm.lane_values import Value, either, merge, signed, undefined_of
from tilework.oracles.emulator.llvm.translate_ir import Mask, Op, Translator, element, integer, intrinsic, rule


def fixed_index(ins: Instruction, position: int) -> int | None:
    operand = ins.operands[position][1]
    return int(operand.value) if isinstance(operand, Literal) else 0 if isinstance(operand, Zero) else None


@rule("extractelement")
def extract(ins: Instruction, t: Translator) -> Op:
    (a, b), out = t.inputs(ins), t.output(ins)
    index = fixed_index(ins, 1)
    if index is not None:
        return lambda mask: t.put(out, t.slots[a][index], mask)

    def op(mask: Mask) -> None:
        at, undefined = t.slots[b]
        found = t.slots[a][0]
        for number, part in enumerate(t.slots[a]):
            found = merge(at == number, part, found)
        t.put(out, (found[0], either(found[1], undefined)), mask)

    return op


@rule("insertelement")
def insert(ins: Instruction, t: Translator) -> Op:
    (a, b, c), out = t.inputs(ins), t.output(ins)
    index = fixed_index(ins, 2)

    def op(mask: Mask) -> None:
        parts = list(t.slots[a])
        if index is not None:
            parts[index] = t.slots[b]
        else:
            at = t.slots[c][0]
            parts = [merge(at == number, t.slots[b], part) for number, part in enumerate(parts)]
        t.put(out, parts, mask)

    return op


@rule("shufflevector")
def shuffle(ins: Instruction, t: Translator) -> Op:
    (a, b), out, indices = t.inputs(ins), t.output(ins), ins.extra["indices"]
    missing = undefined_of(element(ins.type))

    def op(mask: Mask) -> None:
        parts = t.slots[a] + t.slots[b]
        t.put(out, [missing if index < 0 else parts[index] for index in indices], mask)

    return op


@rule("extractvalue")
def extract_field(ins: Instruction, t: Translator) -> Op:
    (a,), out = t.inputs(ins), t.output(ins)

    def op(mask: Mask) -> None:
        value = t.slots[a]
        for index in ins.extra["indices"]:
            value = value[index]
        t.put(out, value, mask)

    return op


@rule("insertvalue")
def insert_field(ins: Instruction, t: Translator) -> Op:
    (a, b), out = t.inputs(ins), t.output(ins)

    def replaced(value: Value, part: Value, indices: list[int]) -> Value:
        if not indices:
            return part
        found = list(value)
        found[indices[0]] = replaced(found[indices[0]], part, indices[1:])
        return found

    return lambda mask: t.put(out, replaced(t.slots[a], t.slots[b], ins.extra["indices"]), mask)


@rule("select")
def select(ins: Instruction, t: Translator) -> Op:
    (a, b, c), out = t.inputs(ins), t.output(ins)
    by_element = isinstance(ins.operands[0][0], Sequence)

    def chosen(condition: Any, yes: Value, no: Value) -> Value:
        if isinstance(yes, list):
            return [chosen(condition, one, other) for one, other in zip(yes, no, strict=True)]
        data, undefined = merge(condition[0], yes, no)
        return data, either(undefined, condition[1])

    def op(mask: Mask) -> None:
        condition, yes, no = t.slots[a], t.slots[b], t.slots[c]
        if by_element:
            t.put(out, [chosen(*one) for one in zip(condition, yes, no, strict=True)], mask)
        else:
            t.put(out, chosen(condition, yes, no), mask)

    return op


def defined(value: Value) -> Value:
    return [defined(part) for part in value] if isinstance(value, list) else (value[0], None)


@rule("freeze")
def freeze(ins: Instruction, t: Translator) -> Op:
    (a,), out = t.inputs(ins), t.output(ins)
    return lambda mask: t.put(out, defined(t.slots[a]), mask)


@rule("getelementptr")
def address(ins: Instruction, t: Translator) -> Op:
    """The base, and for each index a step of the size of what it counts; fields of structures have fixed offsets."""
    slots, out = t.inputs(ins), t.output(ins)
    pointer = dtype_of(element(ins.type))
    kind: Any = ins.extra["element"]
    fixed, steps = 0, list[tuple[int, int, int]]()  # (slot, bits of the index, bytes of a step)
    for position, (index_type, _) in enumerate(ins.operands[1:], 1):
        if position > 1 and isinstance(kind, Struct):
            number = fixed_index(ins, position)
            assert number is not None
            offset, kind = fields_of(kind)[number]
            fixed += offset
            continue
        if position > 1:
            kind = kind.element
        number = fixed_index(ins, position)
        if number is not None:
            fixed += number * size_of(kind)
        else:
            steps.append((slots[position], integer(ins, index_type).bits, size_of(kind)))
    start = np.array([fixed % (1 << 8 * pointer.itemsize)], pointer)

    def moved(base: Array, *indices: Array) -> Array:
        found = base + start if fixed else base
        for index, (_, width, size) in zip(indices, steps, strict=True):
            found = found + signed(index, width).astype(pointer) * pointer.type(size)
        return found

    used = [slots[0], *(slot for slot, _, _ in steps)]
    if not isinstance(ins.type, Sequence):

        def one(mask: Mask) -> None:
            undefined, data = None, []
            for slot in used:
                value, missing = t.slots[slot]
                data.append(value)
                undefined = missing if undefined is None else either(undefined, missing)
            t.put(out, (moved(*data), undefined), mask)

        return one

    count = ins.type.count

    def many(mask: Mask) -> None:
        rows = [t.slots[slot] if isinstance(t.slots[slot], list) else [t.slots[slot]] * count for slot in used]
        found = []
        for row in zip(*rows, strict=True):
            undefined = None
            for _, missing in row:
                undefined = either(undefined, missing)
            found.append((moved(*(data for data, _ in row)), undefined))
        t.put(out, found, mask)

    return many


REDUCTIONS: dict[str, Any] = {
    "add": np.add, "mul": np.multiply, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "umax": np.maximum,
    "umin": np.minimum, "fmax": np.fmax, "fmin": np.fmin, "fadd": np.add, "fmul": np.multiply,
}  # fmt: skip


@intrinsic(*(f"vector.reduce.{name}" for name in (*REDUCTIONS, "smax", "smin")))
def reduce(ins: Instruction, t: Translator) -> Op:
    slots, out, name = t.inputs(ins), t.output(ins), ins.callee.split(".")[3]
    width = ins.type.bits if isinstance(ins.type, Int) else 0

    def combined(a: Array, b: Array) -> Array:
        if name in ("smax", "smin"):
            function: Any = np.maximum if name == "smax" else np.minimum
            return function(signed(a, width), signed(b, width)).view(a.dtype)
        return REDUCTIONS[name](a, b)

    def op(mask: Mask) -> None:
        parts = [*(t.slots[slot] for slot in slots[:-1]), *t.slots[slots[-1]]]
        data, undefined = parts[0]
        for other, missing in parts[1:]:
            data, undefined = combined(data, other), either(undefined, missing)
        t.put(out, (data, undefined), mask)

    return op


@intrinsic("is.constant")
def unknown(ins: Instruction, t: Translator) -> Op:
    out = t.output(ins)
    return lambda mask: t.put(out, (np.zeros(1, bool), None), mask)
