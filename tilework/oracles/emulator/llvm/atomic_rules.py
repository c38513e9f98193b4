"""Atomic accesses, of pointers and of buffers. Threads at one address go one after the other."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tilework.numerics.arithmetic import Arithmetic
from tilework.oracles.emulator.arenas import Array
from tilework.oracles.emulator.llvm.access_rules import addresses_of, buffer_places, fetch, loaded, send
from tilework.oracles.emulator.llvm.ir_text import Instruction
from tilework.oracles.emulator.llvm.ir_types import Float, Int, Pointer, Type, dtype_of, leaves, size_of
from tilework.oracles.emulator.llvm.lane_values import Scalar, Value, bits, flatten, signed
from tilework.oracles.emulator.llvm.translate_ir import (
    Compute,
    Mask,
    Translator,
    Unsupported,
    intrinsic,
    quiet_nan,
    rule,
)
from tilework.oracles.emulator.ports import in_turns

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
Change = Callable[..., Array]  # of what is there and of the values of each thread
BUFFER_NAMES = {"swap": "xchg", "smax": "max", "smin": "min", "inc": "uinc_wrap", "dec": "udec_wrap"}


def combiner(name: str, kind: Type, ins: Instruction) -> Change:
    """What an atomic operation does with one element."""
    if isinstance(kind, Float):
        operations, default = Arithmetic.of(dtype_of(kind)), quiet_nan(dtype_of(kind))
        change = FLOATS.get(name)
        if name in ("fadd", "fsub"):
            change = lambda old, new: operations.add(old, new if name == "fadd" else -new)  # noqa: E731
        if name == "xchg" or change is None:
            found = change
        else:
            found = lambda old, new: operations.propagate(change(old, new), (old, new), default)  # noqa: E731
    elif name in ("max", "min"):
        width = kind.bits if isinstance(kind, Int) else 64
        choose: Any = np.maximum if name == "max" else np.minimum
        return lambda old, new: choose(signed(old, width), signed(new, width)).view(old.dtype)
    else:
        found = INTEGERS.get(name)
    if found is None:
        raise Unsupported(ins, name)
    return found


def update(
    t: Translator, space: int, addresses: Array, threads: Array, kind: Type, ins: Instruction, change: Change, values: Sequence[Value]
) -> Value:  # fmt: skip
    """Each thread replaces what is at its address by `change` of it and of its own `values`; what was there before."""
    group, size = t.group, size_of(kind)
    before = np.zeros((len(addresses), size), np.uint8)
    missing = np.zeros((len(addresses), size), np.uint8)
    for some in in_turns(addresses):
        rows, undefined = fetch(group, space, addresses[some], size, size, threads[some], ins, True)
        before[some] = rows
        if undefined is not None:
            missing[some] = undefined
        old = [rows[:, at : at + size_of(leaf)].copy().view(dtype_of(leaf))[:, 0] for at, leaf in leaves(kind)]
        own = [[np.broadcast_to(data, group.threads)[threads[some]] for data, _ in flatten(one)] for one in values]
        new = [change(*leaf) for leaf in zip(old, *own, strict=True)]
        columns = [bits(one, leaf)[:, None].view(np.uint8) for one, (_, leaf) in zip(new, leaves(kind), strict=True)]
        send(group, space, addresses[some], np.concatenate(columns, axis=1), size, threads[some], ins, undefined, True)
    return loaded(group, kind, before, missing if missing.any() else None, threads)


def exchanged(there: Array, wanted: Array, value: Array) -> Array:
    return np.where(there == wanted, value, there).astype(there.dtype)


@rule("atomicrmw")
def read_modify_write(ins: Instruction, t: Translator) -> Compute:
    return access(ins, t, ins.type, combiner(ins.extra["operation"], leaves(ins.type)[0][1], ins))


def access(ins: Instruction, t: Translator, kind: Type, change: Change) -> Compute:
    pointer = ins.operands[0][0]
    assert isinstance(pointer, Pointer)

    def computed(mask: Mask, address: Scalar, *values: Value) -> Value:
        threads = t.group.numbers(mask)
        addresses = addresses_of(t, address, threads, mask, ins)
        t.require(list(values), mask, ins, "an operand of an atomic access")
        return update(t, pointer.space, addresses, threads, kind, ins, change, values)

    return computed


@rule("cmpxchg")
def compare_exchange(ins: Instruction, t: Translator) -> Compute:
    exchange = access(ins, t, ins.operands[1][0], exchanged)

    def computed(mask: Mask, address: Scalar, expected: Scalar, new: Scalar) -> Value:
        old = exchange(mask, address, expected, new)
        return [old, (old[0] == expected[0], old[1])]

    return computed


@intrinsic("amdgcn.raw.ptr.buffer.atomic")
def buffer_atomic(ins: Instruction, t: Translator) -> Compute:
    kind = ins.operands[0][0]
    name = ins.callee.removeprefix("llvm.amdgcn.raw.ptr.buffer.atomic.").split(".")[0]
    count, change = 2, exchanged
    if name != "cmpswap":
        count, change = 1, combiner(BUFFER_NAMES.get(name, name), leaves(kind)[0][1], ins)

    def computed(mask: Mask, *operands: Value) -> Value:
        values, resource, steps = operands[:count], operands[count], operands[count + 1 : count + 3]
        threads, addresses, offsets, limit = buffer_places(t, resource, steps, mask, ins)
        inside = offsets + np.uint64(size_of(kind)) <= limit
        t.require(list(values), t.group.mask_of(threads[inside]), ins, "an operand of an atomic access")
        return update(
            t, 1, addresses[inside], threads[inside], kind, ins, change, values[::-1]
        )  # what is expected is last

    return computed
