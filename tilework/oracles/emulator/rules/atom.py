"""Atomic operations: atom, red. Threads that hit the same place take turns, in the order of their numbers.

atom.global.add.f32  %f1, [%rd1], %f2        red.shared.max.s32  [%r1], %r2        atom.global.cas.b64  %rd1, [%rd2], %rd3, %rd4
"""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from tilework.numerics.rounding import BF16
from tilework.oracles.emulator.arenas import Array
from tilework.oracles.emulator.floats import Format
from tilework.oracles.emulator.ports import in_turns
from tilework.oracles.emulator.rules.ld_st import space_of, width_of
from tilework.oracles.emulator.syntax import Instruction, Sink, items
from tilework.oracles.emulator.translate import Mask, Op, Translator, Unsupported, rule

# how the bits of an element are seen, and how many numbers it holds
PACKED: dict[str, tuple[Any, int]] = {"f16x2": (np.dtype(np.float16), 2), "bf16x2": (BF16, 2), "bf16": (BF16, 1)}


def increment(old: Array, limit: Array) -> Array:
    return np.where(old >= limit, old.dtype.type(0), old + old.dtype.type(1))


def decrement(old: Array, limit: Array) -> Array:
    return np.where((old == 0) | (old > limit), limit, old - old.dtype.type(1))


float_min, float_max = np.fmin, np.fmax  # the other value where one is NaN

FUNCTIONS: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add, "min": np.minimum, "max": np.maximum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "inc": increment, "dec": decrement, "exch": lambda old, new: new,
}  # fmt: skip


@rule("atom", "red")
def atom(ins: Instruction, t: Translator) -> Op:
    names = [name for name in ins.modifiers if name in FUNCTIONS or name == "cas"]
    type = ins.modifiers[-1]
    if len(names) != 1:
        raise Unsupported(ins)
    function, dtype, lanes = FUNCTIONS.get(names[0]), *element_type(ins, t, type)
    format = Format.of_numbers(dtype) if dtype.kind not in "iub" and names[0] in ("add", "min", "max") else None
    if format is not None:
        function = {"min": float_min, "max": float_max}.get(names[0], function)
    returns = ins.opcode == "atom"
    place, values = (ins.operands[1], ins.operands[2:]) if returns else (ins.operands[0], ins.operands[1:])
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
    where, port = t.address(place), t.port(space_of(ins))

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

    # NumPy can go through the values of all threads at one place in one call
    accumulate = getattr(function, "accumulate", None) if count == lanes == 1 and dtype.kind in "iuf" else None

    def one_after_the_other(addresses: Array, threads: Array, before: Array) -> None:
        for address in np.unique(addresses):
            here = (addresses == address).nonzero()[0]
            start = port.read(addresses[here[:1]], bits, 1, threads[here[:1]])[0]
            numbers = np.concatenate([start, sources[0][0][threads[here]]]).view(dtype)
            steps = accumulate(numbers, dtype=dtype)  # type: ignore[misc]
            if format is not None and np.isnan(steps).any():
                steps = np.array(list(itertools.accumulate(numbers[:, None], combined)))[:, 0]
            before[here, 0] = steps[:-1].view(bits)
            port.write(addresses[here[-1:]], steps[-1:, None].view(bits), threads[here[-1:]])

    def op(mask: Mask) -> None:
        threads = t.active(mask)
        addresses = where(threads)
        before = np.empty((len(threads), count), bits)
        turns = in_turns(addresses)
        told = ins if len(turns) == 1 or t.block.watcher is None else None
        if told is None:  # who watches sees all turns at once
            port.read(addresses, bits, count, threads, ins, "atomic")
        if len(turns) > 1 and accumulate is not None:
            one_after_the_other(addresses, threads, before)
            turns = []
        for turn in turns:
            old = port.read(addresses[turn], bits, count, threads[turn], told, "atomic")
            before[turn] = old
            port.write(addresses[turn], update(old, threads[turn]), threads[turn], told, "atomic")
        if told is None:
            port.write(addresses, port.read(addresses, bits, count, threads), threads, ins, "atomic")
        t.machine.progress += 1
        for index, put in enumerate(puts):
            put(np.ascontiguousarray(before[:, index]), threads)

    return op


def element_type(ins: Instruction, t: Translator, type: str) -> tuple[Any, int]:
    """(type of the numbers, how many are in one element)."""
    if type in PACKED:
        return PACKED[type]
    if type == "b128":
        raise Unsupported(ins, "128-bit atomics")
    return np.dtype(t.type_of(type, ins)), 1
