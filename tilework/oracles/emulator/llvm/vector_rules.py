"""Values as wholes: elements, fields, choices, addresses."""

from functools import reduce
from operator import getitem
from typing import Any

import numpy as np

from tilework.numerics.arithmetic import Arithmetic
from tilework.oracles.emulator.arenas import Array
from tilework.oracles.emulator.llvm.ir_text import Instruction
from tilework.oracles.emulator.llvm.ir_types import Float, Int, Sequence, Struct, dtype_of, fields_of, size_of
from tilework.oracles.emulator.llvm.lane_values import Scalar, Value, any_of, either, merge, signed, undefined_of
from tilework.oracles.emulator.llvm.translate_ir import (
    Compute,
    Mask,
    Translator,
    applied,
    element,
    fixed,
    integer,
    intrinsic,
    quiet_nan,
    rule,
)


@rule("extractelement")
def extract(ins: Instruction, t: Translator) -> Compute:
    index = fixed(ins, 1)
    if index is not None:
        return lambda mask, parts, _: parts[index]

    def computed(mask: Mask, parts: list[Scalar], at: Scalar) -> Scalar:
        found = parts[0]
        for number, part in enumerate(parts):
            found = merge(at[0] == number, part, found)
        return found[0], either(found[1], at[1])

    return computed


@rule("insertelement")
def insert(ins: Instruction, t: Translator) -> Compute:
    index = fixed(ins, 2)
    if index is not None:
        return lambda mask, parts, part, _: [*parts[:index], part, *parts[index + 1 :]]
    return lambda mask, parts, new, at: [merge(at[0] == number, new, part) for number, part in enumerate(parts)]


@rule("shufflevector")
def shuffle(ins: Instruction, t: Translator) -> Compute:
    missing = undefined_of(element(ins.type))

    def computed(mask: Mask, a: list[Scalar], b: list[Scalar]) -> Value:
        parts = a + b
        return [missing if index < 0 else parts[index] for index in ins.extra["indices"]]

    return computed


@rule("extractvalue")
def extract_field(ins: Instruction, t: Translator) -> Compute:
    return lambda mask, value: reduce(getitem, ins.extra["indices"], value)


@rule("insertvalue")
def insert_field(ins: Instruction, t: Translator) -> Compute:
    def replaced(value: Value, part: Value, indices: list[int]) -> Value:
        if not indices:
            return part
        found = list(value)
        found[indices[0]] = replaced(found[indices[0]], part, indices[1:])
        return found

    return lambda mask, value, part: replaced(value, part, ins.extra["indices"])


@rule("select")
def select(ins: Instruction, t: Translator) -> Compute:
    def chosen(condition: Any, yes: Value, no: Value) -> Value:
        if isinstance(yes, list):
            return [chosen(condition, one, other) for one, other in zip(yes, no, strict=True)]
        data, undefined = merge(condition[0], yes, no)
        return data, either(undefined, condition[1])

    if isinstance(ins.operands[0][0], Sequence):  # for each element
        return lambda mask, *values: list(map(chosen, *values))
    return lambda mask, *values: chosen(*values)


def defined(value: Value) -> Value:
    return [defined(part) for part in value] if isinstance(value, list) else (value[0], None)


@rule("freeze")
def freeze(ins: Instruction, t: Translator) -> Compute:
    return lambda mask, value: defined(value)


@rule("getelementptr")
def address(ins: Instruction, t: Translator) -> Compute:
    """The base, and for each index a step of the size of what it counts; fields of structures have fixed offsets."""
    pointer = dtype_of(element(ins.type))
    kind: Any = ins.extra["element"]
    constant, steps = 0, list[tuple[int, int]]()  # (bits of the index, bytes of a step)
    used = [0]  # operands
    for position, (index_type, _) in enumerate(ins.operands[1:], 1):
        if position > 1 and isinstance(kind, Struct):
            number = fixed(ins, position)
            assert number is not None
            offset, kind = fields_of(kind)[number]
            constant += offset
            continue
        if position > 1:
            kind = kind.element
        number = fixed(ins, position)
        if number is not None:
            constant += number * size_of(kind)
        else:
            used.append(position)
            steps.append((integer(ins, index_type).bits, size_of(kind)))
    start = np.array([constant % (1 << 8 * pointer.itemsize)], pointer)

    def moved(base: Array, *indices: Array) -> Array:
        found = base + start if constant else base
        for index, (width, size) in zip(indices, steps, strict=True):
            found = found + signed(index, width).astype(pointer) * pointer.type(size)
        return found

    if not isinstance(ins.type, Sequence):
        return lambda mask, *values: applied(moved, [values[index] for index in used])
    count = ins.type.count

    def many(mask: Mask, *values: Value) -> Value:
        rows = [values[index] if isinstance(values[index], list) else [values[index]] * count for index in used]
        return [applied(moved, row) for row in zip(*rows, strict=True)]

    return many


REDUCTIONS: dict[str, Any] = {
    "add": np.add, "mul": np.multiply, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "umax": np.maximum,
    "umin": np.minimum, "fmax": np.fmax, "fmin": np.fmin, "fadd": np.add, "fmul": np.multiply,
}  # fmt: skip


@intrinsic(*(f"vector.reduce.{name}" for name in (*REDUCTIONS, "smax", "smin")))
def reduction(ins: Instruction, t: Translator) -> Compute:
    name = ins.callee.split(".")[3]
    width = ins.type.bits if isinstance(ins.type, Int) else 0

    def combined(a: Array, b: Array) -> Array:
        if name in ("smax", "smin"):
            function: Any = np.maximum if name == "smax" else np.minimum
            return function(signed(a, width), signed(b, width)).view(a.dtype)
        return REDUCTIONS[name](a, b)

    def computed(mask: Mask, *values: Value) -> Scalar:
        parts = [*values[:-1], *values[-1]]
        found = reduce(combined, (data for data, _ in parts))
        if isinstance(ins.type, Float):
            dtype = dtype_of(ins.type)
            found = Arithmetic.of(dtype).propagate(found, [data for data, _ in parts], quiet_nan(dtype))
        return found, any_of(parts)

    return computed


@intrinsic("is.constant")
def unknown(ins: Instruction, t: Translator) -> Compute:
    return lambda mask, value: (np.zeros(1, bool), None)
