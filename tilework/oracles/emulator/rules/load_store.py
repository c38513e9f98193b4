"""Loads, stores and atomic operations: ld, st, atom, red, in every space, of one element or a vector.

    ld.global.v4.f32  {%f1, %f2, %f3, %f4}, [%rd1]        st.shared.b32  [%r1], %r2
    atom.global.add.f32  %f1, [%rd1], %f2                 red.shared.max.s32  [%r1], %r2

Atomic operations of several threads on one address happen in thread order.
"""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from tilework.numerics.rounding import BF16
from tilework.oracles.emulator.memory import Array, conflict_free_rounds
from tilework.oracles.emulator.rules.floating import Format
from tilework.oracles.emulator.syntax import Address, EmulatorError, Instruction, Operand, Sink, Symbol, Vector, items
from tilework.oracles.emulator.translate import Mask, Op, Translator, Unsupported, rule

SPACES = ("global", "shared", "local", "const", "param")
VECTORS = {"v2": 2, "v4": 4, "v8": 8}


def space_of(ins: Instruction) -> str:
    """Return the space that an instruction names, else "generic"."""
    for modifier in ins.modifiers:
        if modifier.split("::")[0] in SPACES:
            return modifier.split("::")[0]
    return "generic"


def width_of(ins: Instruction) -> int:
    """Return the number of elements of an access."""
    return next((VECTORS[modifier] for modifier in ins.modifiers if modifier in VECTORS), 1)


def registers(ins: Instruction, operand: Operand, count: int) -> tuple[Operand, ...]:
    """Return the registers of an access of `count` elements."""
    found = items(operand)
    if len(found) != count:
        raise Unsupported(ins, f"{count} elements and {len(found)} registers")
    return found


def element(ins: Instruction, t: Translator) -> tuple[Any, int]:
    """Return (NumPy type, elements) of an access; ``b128`` is two 64-bit elements."""
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
    address = ins.operands[1]
    if space == "param" and is_variable(address, t):
        return load_parameter(t, address, dtype, targets)
    puts = [t.scatter(target, dtype) for target in targets]
    where, port = t.address(address), t.port(space)

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
    address, source = ins.operands[0], ins.operands[1]
    space = space_at(ins, address, t)
    read: Callable[[Array], Array]
    if ins.modifiers[-1] == "b128" and not isinstance(source, Vector):
        wide = t.registers[source.name].view(np.uint64).reshape(-1, 2)  # type: ignore[union-attr]
        read = lambda threads: wide[threads]  # noqa: E731
    else:
        values = [np.broadcast_to(t.read(item, dtype), (t.threads,)) for item in registers(ins, source, count)]
        if space == "param" and is_variable(address, t):
            return store_parameter(t, address, dtype, values)
        if count == 1:
            single = values[0]
            read = lambda threads: single[threads][:, None]  # noqa: E731
        else:
            rows = np.empty((t.threads, count), dtype)
            read = lambda threads: gathered(rows, values, threads)  # noqa: E731
    where, port = t.address(address), t.port(space)

    def op(mask: Mask) -> None:
        threads = t.active(mask)
        port.write(where(threads), read(threads), threads, ins)
        t.machine.progress += 1

    return op


def gathered(rows: Array, values: list[Array], threads: Array) -> Array:
    """Return the values of these threads, a row for each; `rows` is the buffer for those of all threads."""
    for index, value in enumerate(values):
        rows[:, index] = value
    return rows if len(threads) == len(rows) else rows[threads]


# parameters of calls are bytes per thread; those of kernels are in the arena, like constants


def is_variable(address: Operand, t: Translator) -> bool:
    return isinstance(address, Address) and isinstance(address.base, Symbol) and address.base.name in t.params


def space_at(ins: Instruction, address: Operand, t: Translator) -> str:
    """Return the space of an access. A parameter whose address its function takes is in local memory."""
    space = space_of(ins)
    if (
        space == "param"
        and isinstance(address, Address)
        and isinstance(address.base, Symbol)
        and not t.function.is_kernel
    ):
        return "param" if address.base.name in t.params else "local"
    return space


def parameter(t: Translator, address: Operand, dtype: Any, count: int) -> Array:
    assert isinstance(address, Address) and isinstance(address.base, Symbol)
    size = np.dtype(dtype).itemsize * count
    data = t.params[address.base.name]
    if address.offset < 0 or address.offset + size > data.shape[1]:
        raise EmulatorError(
            f"{size} bytes at {address.offset} are outside of {address.base.name}, which has {data.shape[1]} bytes"
        )
    return data[:, address.offset : address.offset + size].view(dtype)


def load_parameter(t: Translator, address: Operand, dtype: Any, targets: tuple[Operand, ...]) -> Op:
    data = parameter(t, address, dtype, len(targets))
    puts = [t.assign(target, dtype) for target in targets]

    def op(mask: Mask) -> None:
        for index, put in enumerate(puts):
            put(data[:, index], mask)

    return op


def store_parameter(t: Translator, address: Operand, dtype: Any, values: list[Array]) -> Op:
    data = parameter(t, address, dtype, len(values))

    def op(mask: Mask) -> None:
        for index, value in enumerate(values):
            np.copyto(data[:, index], value, where=mask)

    return op


# (NumPy type of a value, values per element)
PACKED: dict[str, tuple[Any, int]] = {"f16x2": (np.dtype(np.float16), 2), "bf16x2": (BF16, 2), "bf16": (BF16, 1)}


def increment(old: Array, limit: Array) -> Array:
    return np.where(old >= limit, old.dtype.type(0), old + old.dtype.type(1))


def decrement(old: Array, limit: Array) -> Array:
    return np.where((old == 0) | (old > limit), limit, old - old.dtype.type(1))


float_min, float_max = np.fmin, np.fmax  # the other value where one is NaN

FUNCTIONS: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "inc": increment, "dec": decrement, "exch": lambda old, new: new,
}  # fmt: skip


@rule("atom", "red")
def atom(ins: Instruction, t: Translator) -> Op:
    names = [name for name in ins.modifiers if name in FUNCTIONS or name == "cas"]
    type = ins.modifiers[-1]
    if len(names) != 1:
        raise Unsupported(ins)
    function, dtype, lanes = FUNCTIONS.get(names[0]), *element_type(ins, t, type)
    format = Format.of_dtype(dtype) if dtype.kind not in "iub" and names[0] in ("add", "min", "max") else None
    if format is not None:
        function = {"min": float_min, "max": float_max}.get(names[0], function)
    returns = ins.opcode == "atom"
    address, values = (ins.operands[1], ins.operands[2:]) if returns else (ins.operands[0], ins.operands[1:])
    count = width_of(ins)
    bits = np.dtype(f"u{dtype.itemsize * lanes}")
    sources = [
        [np.broadcast_to(t.read(item, bits), (t.threads,)) for item in items(value)]
        for value in values[: 2 if names[0] == "cas" else 1]
    ]
    puts = (
        [t.scatter(item, bits) for item in items(ins.operands[0])]
        if returns and not isinstance(ins.operands[0], Sink)
        else []
    )
    where, port = t.address(address), t.port(space_of(ins))

    def update(old: Array, threads: Array) -> Array:
        new = np.stack([source[threads] for source in sources[0]], axis=1)
        if function is None:
            swap = np.stack([source[threads] for source in sources[1]], axis=1)
            return np.where(old == new, swap, old)
        return combined(old.view(dtype), new.view(dtype)).view(bits)

    def combined(old: Array, new: Array) -> Array:
        assert function is not None
        found = function(old, new).astype(dtype)
        return found if format is None else format.canonical(found, (old, new))

    # NumPy can accumulate the values of all threads at one address in one call
    accumulate = getattr(function, "accumulate", None) if count == lanes == 1 and dtype.kind in "iuf" else None

    def one_after_the_other(addresses: Array, threads: Array, before: Array) -> None:
        for address in np.unique(addresses):
            here = (addresses == address).nonzero()[0]
            start = port.read(addresses[here[:1]], bits, 1, threads[here[:1]])[0]
            operands = np.concatenate([start, sources[0][0][threads[here]]]).view(dtype)
            steps = accumulate(operands, dtype=dtype)  # type: ignore[misc]
            if format is not None and np.isnan(steps).any():
                steps = np.array(list(itertools.accumulate(operands[:, None], combined)))[:, 0]
            before[here, 0] = steps[:-1].view(bits)
            port.write(addresses[here[-1:]], steps[-1:, None].view(bits), threads[here[-1:]])

    def op(mask: Mask) -> None:
        threads = t.active(mask)
        addresses = where(threads)
        before = np.empty((len(threads), count), bits)
        rounds = conflict_free_rounds(addresses)
        reported = ins if len(rounds) == 1 or t.block.watcher is None else None
        if reported is None:  # watchers see all rounds as one access
            port.read(addresses, bits, count, threads, ins, "atomic")
        if len(rounds) > 1 and accumulate is not None:
            one_after_the_other(addresses, threads, before)
            rounds = []
        for round in rounds:
            old = port.read(addresses[round], bits, count, threads[round], reported, "atomic")
            before[round] = old
            port.write(addresses[round], update(old, threads[round]), threads[round], reported, "atomic")
        if reported is None:
            port.write(addresses, port.read(addresses, bits, count, threads), threads, ins, "atomic")
        t.machine.progress += 1
        for index, put in enumerate(puts):
            put(np.ascontiguousarray(before[:, index]), threads)

    return op


def element_type(ins: Instruction, t: Translator, type: str) -> tuple[Any, int]:
    """Return (type of the values, values per element)."""
    if type in PACKED:
        return PACKED[type]
    if type == "b128":
        raise Unsupported(ins, "128-bit atomics")
    return np.dtype(t.type_of(type, ins)), 1
