"""Moving bits between registers: mov, cvta, and taking vectors apart."""

import time

import numpy as np

from tilework.oracles.emulator.arenas import LOCAL_BASE, SHARED_BASE, WINDOW, Array
from tilework.oracles.emulator.clusters import BLOCK_BITS, WINDOWS, in_block
from tilework.oracles.emulator.syntax import EmulatorError, Instruction, Special, Vector
from tilework.oracles.emulator.translate import Mask, Op, Translator, Unsupported, elementwise, rule, unsigned

BASES = {"shared": SHARED_BASE, "local": LOCAL_BASE, "global": 0, "const": 0, "param": 0}


@rule("mov")
def mov(ins: Instruction, t: Translator) -> Op:
    target, source = ins.operands
    if isinstance(target, Vector):
        return unpack(ins, t, target)
    if isinstance(source, Vector):
        return pack(ins, t, source)
    type = ins.modifiers[-1]
    if type == "b128":
        out, wide = t.registers[target.name], t.registers[source.name]  # type: ignore[union-attr]
        return lambda mask: np.copyto(out, wide, where=mask)
    dtype = unsigned(t.type_of(type, ins))
    out = t.write(target, dtype)
    if isinstance(source, Special) and (clock := clock_of(source.name)) is not None:
        return lambda mask: np.copyto(out, np.array(clock(), np.uint64).astype(dtype), where=mask)
    value = t.read(source, dtype)
    return lambda mask: np.copyto(out, value, where=mask)


def clock_of(name: str):  # noqa: ANN201
    """What a clock register shows now, if `name` is one."""
    return {
        "%clock": lambda: time.perf_counter_ns() & 0xFFFF_FFFF,
        "%clock_hi": lambda: time.perf_counter_ns() >> 32,
        "%clock64": time.perf_counter_ns,
        "%globaltimer": time.time_ns,
        "%globaltimer_lo": lambda: time.time_ns() & 0xFFFF_FFFF,
        "%globaltimer_hi": lambda: time.time_ns() >> 32,
    }.get(name)


def part_type(ins: Instruction, t: Translator, count: int) -> np.dtype:
    size = {"b128": 16}.get(ins.modifiers[-1]) or np.dtype(t.type_of(ins.modifiers[-1], ins)).itemsize
    if size % count:
        raise Unsupported(ins, f"{8 * size} bits in {count} parts")
    return np.dtype(f"u{size // count}")


def unpack(ins: Instruction, t: Translator, target: Vector) -> Op:
    """``mov.b32 {%rs1, %rs2}, %r1``: the low part first."""
    part = part_type(ins, t, len(target.items))
    outs = [t.assign(item, part) for item in target.items]
    source = ins.operands[1]
    count = len(outs)
    if ins.modifiers[-1] == "b128":
        parts = t.registers[source.name].view(part).reshape(-1, count)  # type: ignore[union-attr]
    else:
        whole = np.dtype(f"u{part.itemsize * count}")
        value = t.read(source, whole)
        if value.ndim == 0:
            parts = np.broadcast_to(value.reshape(1).view(part), (t.threads, count))
        else:
            parts = value.view(part).reshape(-1, count)

    def op(mask: Mask) -> None:
        copy = parts.copy()  # the target may be the source's own halves
        for index, put in enumerate(outs):
            put(copy[:, index], mask)

    return op


def pack(ins: Instruction, t: Translator, source: Vector) -> Op:
    """``mov.b32 %r1, {%rs1, %rs2}``."""
    part = part_type(ins, t, len(source.items))
    values = [t.read(item, part) for item in source.items]
    out = t.registers[ins.operands[0].name]  # type: ignore[union-attr]
    into = out.view(part).reshape(-1, len(values))

    def op(mask: Mask) -> None:
        copies = [np.array(value) for value in values]
        for index, value in enumerate(copies):
            np.copyto(into[:, index], value, where=mask)

    return op


@elementwise("cvta", result=np.uint64, types=(np.uint64,))
def cvta(ins: Instruction, value: Array) -> Array:
    base = base_of(ins)
    return value - base if "to" in ins.modifiers else value + base


@elementwise("isspacep", result=np.bool_, types=(np.uint64,))
def isspacep(ins: Instruction, value: Array) -> Array:
    base = base_of(ins)
    return value - base < WINDOW if base else (value < LOCAL_BASE) | (value >= SHARED_BASE + WINDOW)


def base_of(ins: Instruction) -> np.uint64:
    """Where the space that an instruction names begins among generic addresses."""
    space = next((space for modifier in ins.modifiers if (space := modifier.split("::")[0]) in BASES), None)
    if space is None:
        raise Unsupported(ins)
    return np.uint64(BASES[space])


@rule("mapa")
def mapa(ins: Instruction, t: Translator) -> Op:
    """The address of the same variable in another block of the cluster."""
    dtype = np.dtype(t.type_of(ins.modifiers[-1], ins))
    out, address = t.write(ins.operands[0], dtype), t.read(ins.operands[1], dtype)
    blocks = t.read(ins.operands[2], np.uint32)

    def op(mask: Mask) -> None:
        wanted = np.broadcast_to(blocks, (t.threads,))[t.active(mask)]
        if wanted.max() >= t.block.blocks:
            raise EmulatorError(f"mapa to block {wanted.max()} of a cluster of {t.block.blocks}")
        np.copyto(out, in_block(address.astype(np.uint64), blocks).astype(dtype), where=mask)

    return op


elementwise("getctarank", result=np.uint32, types=(np.uint64,))(
    lambda ins, address: (address & np.uint64(WINDOWS)) >> np.uint64(BLOCK_BITS)
)


@rule("nanosleep", "pragma", "prefetch", "prefetchu", "discard", "applypriority", "createpolicy")
def nothing(ins: Instruction, t: Translator) -> Op:
    """Hints, and fences, which a machine that does one thing after the other does not need."""
    if ins.opcode == "createpolicy":
        out = t.write(ins.operands[0], np.uint64)
        return lambda mask: np.copyto(out, np.uint64(0), where=mask)
    return lambda mask: None
