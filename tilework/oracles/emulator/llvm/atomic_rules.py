"""Atomic accesses, of pointers and of buffers. Threads at one address go one after the other."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tilework.numerics.arithmetic import Arithmetic
from tilework.oracles.emulator.arenas import Array
from tilework.oracles.emulator.llvm.access_rules import addresses_of, buffer_places, fetch, loaded, send
from tilework.oracles.emulator.llvm.ir_text import Instruction
from tilework.oracles.emulator.llvm.ir_types import Float, Int, Pointer, Type, dtype_of, leaves, size_of
from tilework.oracles.emulator.llvm.lane_values import Value, bits, flatten, signed
from tilework.oracles.emulator.llvm.translate_ir import Mask, Op, Translator, Unsupported, intrinsic, rule

INTEGERS: dict[str, Any] = {
    "xchg": lambda old, new: new, "add": np.add, "sub": np.subtract, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "nand": lambda old, new: ~(old & new), "umax": np.maximum, "umin": np.minimum,
    "uinc_wrap": lambda old, new: np.where(old >= new, 0, old + 1).astype(old.dtype),
    "udec_wrap": lambda old, new: np.where((old == 0) | (old > new), new, old - 1).astype(old.dtype),
    "usub_sat": lambda old, new: np.where(old > new, old - new, 0).astype(old.dtype),
}  # fmt: skip
FLOATS: dict[str, Any] = {
    "fmax": np.fmax,
    "fmin": np.fmin,
    "fmaximum": np.maximum,
    "fminimum": np.minimum,
    "xchg": INTEGERS["xchg"],
}
BUFFER_NAMES = {"swap": "xchg", "smax": "max", "smin": "min", "inc": "uinc_wrap", "dec": "udec_wrap"}


def combiner(name: str, kind: Type, ins: Instruction) -> Callable[[Array, Array], Array]:
    """What an atomic operation does with one element."""
    if isinstance(kind, Float):
        operations = Arithmetic.of(dtype_of(kind))
        if name in ("fadd", "fsub"):
            return lambda old, new: operations.add(old, new if name == "fadd" else -new)
        found = FLOATS.get(name)
    elif name in ("max", "min"):
        width = kind.bits if isinstance(kind, Int) else 64
        choose: Any = np.maximum if name == "max" else np.minimum
        return lambda old, new: choose(signed(old, width), signed(new, width)).view(old.dtype)
    else:
        found = INTEGERS.get(name)
    if found is None:
        raise Unsupported(ins, name)
    return found


def turns(addresses: Array) -> Iterator[Array]:
    """Indices of addresses that are all different, until each has had its turn."""
    order = np.argsort(addresses, kind="stable")
    ordered = addresses[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    lengths = np.diff(np.append(starts, len(ordered)))
    rank = np.arange(len(ordered)) - np.repeat(starts, lengths)
    for turn in range(int(lengths.max()) if len(lengths) else 0):
        yield order[rank == turn]


def update(
    t: Translator, space: int, addresses: Array, threads: Array, kind: Type, ins: Instruction, change: Callable[[list[Array], Array], list[Array]]
) -> Value:  # fmt: skip
    """Each thread replaces what is at its address by `change` of it (and of the numbers of the threads); what was there before."""
    group, size = t.group, size_of(kind)
    before = np.zeros((len(addresses), size), np.uint8)
    missing = np.zeros((len(addresses), size), np.uint8)
    for some in turns(addresses):
        rows, undefined = fetch(group, space, addresses[some], size, size, threads[some], ins, True)
        before[some] = rows
        if undefined is not None:
            missing[some] = undefined
        old = [rows[:, at : at + size_of(leaf)].copy().view(dtype_of(leaf))[:, 0] for at, leaf in leaves(kind)]
        new = change(old, threads[some])
        columns = [bits(one, leaf)[:, None].view(np.uint8) for one, (_, leaf) in zip(new, leaves(kind), strict=True)]
        send(group, space, addresses[some], np.concatenate(columns, axis=1), size, threads[some], ins, undefined, True)
    return loaded(group, kind, before, missing if missing.any() else None, threads)


def operand(t: Translator, slot: int, threads: Array) -> list[Array]:
    return [np.broadcast_to(data, t.group.threads)[threads] for data, _ in flatten(t.slots[slot])]


def changer(
    t: Translator, slot: int, kind: Type, name: str, ins: Instruction
) -> Callable[[list[Array], Array], list[Array]]:
    combine = combiner(name, leaves(kind)[0][1], ins)

    def change(old: list[Array], threads: Array) -> list[Array]:
        return [combine(one, new) for one, new in zip(old, operand(t, slot, threads), strict=True)]

    return change


def exchanger(t: Translator, expected: int, new: int) -> Callable[[list[Array], Array], list[Array]]:
    def change(old: list[Array], threads: Array) -> list[Array]:
        rows = zip(old, operand(t, expected, threads), operand(t, new, threads), strict=True)
        return [np.where(there == wanted, value, there).astype(there.dtype) for there, wanted, value in rows]

    return change


@rule("atomicrmw")
def read_modify_write(ins: Instruction, t: Translator) -> Op:
    (a, b), out = t.inputs(ins), t.output(ins)
    pointer, kind = ins.operands[0][0], ins.type
    assert isinstance(pointer, Pointer)
    change = changer(t, b, kind, ins.extra["operation"], ins)

    def op(mask: Mask) -> None:
        threads = t.group.numbers(mask)
        addresses = addresses_of(t, a, threads, mask, ins)
        t.require(t.slots[b], mask, ins, "an operand of an atomic access")
        t.put(out, update(t, pointer.space, addresses, threads, kind, ins, change), mask)

    return op


@rule("cmpxchg")
def compare_exchange(ins: Instruction, t: Translator) -> Op:
    (a, b, c), out = t.inputs(ins), t.output(ins)
    pointer, kind = ins.operands[0][0], ins.operands[1][0]
    assert isinstance(pointer, Pointer)
    change = exchanger(t, b, c)

    def op(mask: Mask) -> None:
        threads = t.group.numbers(mask)
        addresses = addresses_of(t, a, threads, mask, ins)
        for slot in (b, c):
            t.require(t.slots[slot], mask, ins, "an operand of an atomic access")
        old = update(t, pointer.space, addresses, threads, kind, ins, change)
        t.put(out, [old, (old[0] == t.slots[b][0], old[1])], mask)

    return op


@intrinsic("amdgcn.raw.ptr.buffer.atomic")
def buffer_atomic(ins: Instruction, t: Translator) -> Op:
    slots, out, kind = t.inputs(ins), t.output(ins), ins.operands[0][0]
    name = ins.callee.removeprefix("llvm.amdgcn.raw.ptr.buffer.atomic.").split(".")[0]
    values, places = (slots[:2], slots[2:5]) if name == "cmpswap" else (slots[:1], slots[1:4])
    if name == "cmpswap":
        change = exchanger(t, values[1], values[0])
    else:
        change = changer(t, values[0], kind, BUFFER_NAMES.get(name, name), ins)

    def op(mask: Mask) -> None:
        threads, addresses, offsets, limit = buffer_places(t, places, mask, ins)
        inside = offsets + np.uint64(size_of(kind)) <= limit
        active = np.zeros(t.group.threads, bool)
        active[threads[inside]] = True
        for slot in values:
            t.require(t.slots[slot], active, ins, "an operand of an atomic access")
        t.put(out, update(t, 1, addresses[inside], threads[inside], kind, ins, change), mask)

    return op
