"""Loads and stores of registers: ld, st, in every space, of one element or a vector."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tilework.oracles.emulator.arenas import Array
from tilework.oracles.emulator.syntax import Address, EmulatorError, Instruction, Operand, Symbol, Vector, items
from tilework.oracles.emulator.translate import Mask, Op, Translator, Unsupported, rule

SPACES = ("global", "shared", "local", "const", "param")
VECTORS = {"v2": 2, "v4": 4, "v8": 8}


def space_of(ins: Instruction) -> str:
    """The space an instruction names, else "generic"."""
    for modifier in ins.modifiers:
        if modifier.split("::")[0] in SPACES:
            return modifier.split("::")[0]
    return "generic"


def width_of(ins: Instruction) -> int:
    """How many elements an access has."""
    return next((VECTORS[modifier] for modifier in ins.modifiers if modifier in VECTORS), 1)


def registers(ins: Instruction, operand: Operand, count: int) -> tuple[Operand, ...]:
    """The registers of an access of `count` elements."""
    found = items(operand)
    if len(found) != count:
        raise Unsupported(ins, f"{count} elements and {len(found)} registers")
    return found


def element(ins: Instruction, t: Translator) -> tuple[Any, int]:
    """(NumPy type, elements) of an access; ``b128`` is two 64-bit elements."""
    count = width_of(ins)
    if ins.modifiers[-1] == "b128":
        return np.dtype(np.uint64), 2 * count
    return np.dtype(t.type_of(ins.modifiers[-1], ins)), count


@rule("ld", "ldu")
def ld(ins: Instruction, t: Translator) -> Op:
    dtype, count = element(ins, t)
    space = space_at(ins, ins.operands[1], t)
    if ins.modifiers[-1] == "b128" and not isinstance(ins.operands[0], Vector):
        return load_wide(ins, t, space)
    targets = registers(ins, ins.operands[0], count)
    place = ins.operands[1]
    if space == "param" and is_variable(place, t):
        return load_parameter(t, place, dtype, targets)
    puts = [t.scatter(target, dtype) for target in targets]
    where, port = t.address(place), t.port(space)

    def op(mask: Mask) -> None:
        threads = t.active(mask)
        values = port.read(where(threads), dtype, count, threads, ins)
        if count == 1:
            puts[0](values.reshape(-1), threads)
            return
        for put, column in zip(puts, np.ascontiguousarray(values.T), strict=True):
            put(column, threads)

    return op


def load_wide(ins: Instruction, t: Translator, space: str) -> Op:
    out = t.registers[ins.operands[0].name].view(np.uint64).reshape(-1, 2)  # type: ignore[union-attr]
    where, port = t.address(ins.operands[1]), t.port(space)

    def op(mask: Mask) -> None:
        threads = t.active(mask)
        out[threads] = port.read(where(threads), np.uint64, 2, threads, ins)

    return op


@rule("st")
def st(ins: Instruction, t: Translator) -> Op:
    dtype, count = element(ins, t)
    place, source = ins.operands[0], ins.operands[1]
    space = space_at(ins, place, t)
    read: Callable[[Array], Array]
    if ins.modifiers[-1] == "b128" and not isinstance(source, Vector):
        wide = t.registers[source.name].view(np.uint64).reshape(-1, 2)  # type: ignore[union-attr]
        read = lambda threads: wide[threads]  # noqa: E731
    else:
        values = [np.broadcast_to(t.read(item, dtype), (t.threads,)) for item in registers(ins, source, count)]
        if space == "param" and is_variable(place, t):
            return store_parameter(t, place, dtype, values)
        if count == 1:
            single = values[0]
            read = lambda threads: single[threads][:, None]  # noqa: E731
        else:
            rows = np.empty((t.threads, count), dtype)
            read = lambda threads: gathered(rows, values, threads)  # noqa: E731
    where, port = t.address(place), t.port(space)

    def op(mask: Mask) -> None:
        threads = t.active(mask)
        port.write(where(threads), read(threads), threads, ins)
        t.machine.progress += 1

    return op


def gathered(rows: Array, values: list[Array], threads: Array) -> Array:
    """The values of these threads, a row for each; `rows` is where those of all threads are put together."""
    for index, value in enumerate(values):
        rows[:, index] = value
    return rows if len(threads) == len(rows) else rows[threads]


# parameters of calls are bytes per thread; those of kernels lie in the arena, like constants


def is_variable(place: Operand, t: Translator) -> bool:
    return isinstance(place, Address) and isinstance(place.base, Symbol) and place.base.name in t.params


def space_at(ins: Instruction, place: Operand, t: Translator) -> str:
    """The space of an access. A parameter whose address its function takes is in local memory."""
    space = space_of(ins)
    if space == "param" and isinstance(place, Address) and isinstance(place.base, Symbol) and not t.function.is_kernel:
        return "param" if place.base.name in t.params else "local"
    return space


def parameter(t: Translator, place: Operand, dtype: Any, count: int) -> Array:
    assert isinstance(place, Address) and isinstance(place.base, Symbol)
    size = np.dtype(dtype).itemsize * count
    data = t.params[place.base.name]
    if place.offset < 0 or place.offset + size > data.shape[1]:
        raise EmulatorError(
            f"{size} bytes at {place.offset} are outside of {place.base.name}, which has {data.shape[1]} bytes"
        )
    return data[:, place.offset : place.offset + size].view(dtype)


def load_parameter(t: Translator, place: Operand, dtype: Any, targets: tuple[Operand, ...]) -> Op:
    data = parameter(t, place, dtype, len(targets))
    puts = [t.assign(target, dtype) for target in targets]

    def op(mask: Mask) -> None:
        for index, put in enumerate(puts):
            put(data[:, index], mask)

    return op


def store_parameter(t: Translator, place: Operand, dtype: Any, values: list[Array]) -> Op:
    data = parameter(t, place, dtype, len(values))

    def op(mask: Mask) -> None:
        for index, value in enumerate(values):
            np.copyto(data[:, index], value, where=mask)

    return op
