"""Moves between registers (mov, cvta, vectors) and conversions (cvt).

    mov.b32 {%rs1, %rs2}, %r1           cvta.to.global.u64  %rd1, %rd2      cvt.rn.f32.s32  %f1, %r1
    cvt.rni.s32.f32  %r1, %f1           cvt.rn.f16x2.f32  %r1, %f2, %f1     cvt.rna.tf32.f32  %r1, %f1
    cvt.rn.satfinite.e4m3x2.f32  %rs1, %f2, %f1                             cvt.rn.f16x2.e5m2x2  %r1, %rs1

Of two operands the first becomes the upper half of the result.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from tilework.numerics.rounding import E4M3FN, E5M2, FORMAT_OF, TF32_DROPPED, narrow, saturate
from tilework.numerics.rounding import to_tf32 as rounded_to_tf32
from tilework.oracles.emulator.memory import BLOCK_BITS, LOCAL_BASE, SHARED_BASE, WINDOW, WINDOWS, Array, in_block
from tilework.oracles.emulator.rules.floating import NANS, PACKED, Format, mode_of, read_float, saturated, write_float
from tilework.oracles.emulator.syntax import EmulatorError, Instruction, Special, Vector
from tilework.oracles.emulator.translate import Mask, Op, Translator, Unsupported, elementwise, rule, unsigned

BASES = {"shared": SHARED_BASE, "local": LOCAL_BASE, "global": 0, "const": 0, "param": 0}


@rule("mov")
def mov(ins: Instruction, t: Translator) -> Op:
    target, source = ins.operands
    if isinstance(target, Vector):
        return unpack(ins, t, target)
    if isinstance(source, Vector):
        return pack_move(ins, t, source)
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
    """Return the value of a clock register, if `name` is one."""
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


def pack_move(ins: Instruction, t: Translator, source: Vector) -> Op:
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
    """Return the generic address at which the space that an instruction names begins."""
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
    """Hints and fences have no effect, because accesses happen in program order."""
    if ins.opcode == "createpolicy":
        out = t.write(ins.operands[0], np.uint64)
        return lambda mask: np.copyto(out, np.uint64(0), where=mask)
    return lambda mask: None


FLOATS = {"f16", "bf16", "f32", "f64"}
TINY: dict[str, Any] = {"e4m3": E4M3FN, "e5m2": E5M2}
KEEPING = {("f32", "bf16"), ("f32", "f64")}  # (result, source) of conversions that keep sign and payload of NaNs
QUIET = np.uint32(0x400000)  # the bit of f32 that quiet NaNs have
WHOLE = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
MODIFIERS = {"rn", "rz", "rm", "rp", "rna", "rs", "rni", "rzi", "rmi", "rpi", "ftz", "sat", "satfinite", "relu"}


@rule("cvt")
def cvt(ins: Instruction, t: Translator) -> Op:
    if "pack" in ins.modifiers:
        return pack_convert(ins, t)
    types = [modifier for modifier in ins.modifiers if modifier not in MODIFIERS]
    if len(types) != 2:
        raise Unsupported(ins)
    result, source = types
    if result in PACKED or result in ("e4m3x2", "e5m2x2"):
        return to_pair(ins, t, result, source)
    if result == "tf32":
        return to_tf32(ins, t)
    if result in FLOATS and source in FLOATS:
        return between_floats(ins, t, result, source)
    if result in FLOATS:
        return from_integer(ins, t, result, source)
    if source in FLOATS:
        return to_integer(ins, t, result, source)
    return between_integers(ins, t, result, source)


def integer_type(ins: Instruction, t: Translator, name: str) -> Any:
    dtype = np.dtype(t.type_of(name, ins))
    if dtype.kind not in "iu":
        raise Unsupported(ins)
    return dtype


def between_integers(ins: Instruction, t: Translator, result: str, source: str) -> Op:
    wide, narrow = integer_type(ins, t, result), integer_type(ins, t, source)
    value, put = t.read(ins.operands[1], narrow), t.assign(ins.operands[0], wide)
    if "sat" in ins.modifiers:
        low, high = np.iinfo(wide).min, np.iinfo(wide).max

        def saturating(mask: Mask) -> None:
            inside = np.maximum(value, max(low, np.iinfo(narrow).min))
            inside = np.minimum(inside, min(high, np.iinfo(narrow).max))
            put(inside.astype(wide), mask)

        return saturating
    return lambda mask: put(value.astype(wide), mask)


def from_integer(ins: Instruction, t: Translator, result: str, source: str) -> Op:
    format, mode = Format.of(result), mode_of(ins)
    value, put = t.read(ins.operands[1], integer_type(ins, t, source)), write_float(t, ins.operands[0], result)
    saturate = "sat" in ins.modifiers

    def op(mask: Mask) -> None:
        converted = format.integer(value, mode)
        put(saturated(converted, format) if saturate else converted, mask)

    return op


def to_integer(ins: Instruction, t: Translator, result: str, source: str) -> Op:
    """Round, then clamp to the range of the result; NaN is 0 (for 64-bit results the smallest integer, as in
    hardware)."""
    format = Format.of(source)
    dtype = integer_type(ins, t, result)
    rounding = next((WHOLE[modifier] for modifier in ins.modifiers if modifier in WHOLE), None)
    if rounding is None:
        raise Unsupported(ins, "a float becomes an integer only with a rounding mode")
    read, put = read_float(t, ins.operands[1], source), t.assign(ins.operands[0], dtype)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    flush = "ftz" in ins.modifiers
    missing = nan_result(source, dtype)

    def op(mask: Mask) -> None:
        value = format.flush(read()) if flush else read()
        whole = rounding(np.asarray(value).astype(np.float64))
        above, below = whole >= float(high) + (dtype.itemsize < 8), whole <= float(low)
        integer = np.where(above | below | np.isnan(whole), 0, whole).astype(dtype)
        integer = np.where(above, dtype.type(high), np.where(below, dtype.type(low), integer))
        put(np.where(np.isnan(whole), missing, integer).astype(dtype), mask)

    return op


def nan_result(source: str, dtype: Any) -> Any:
    """Return the result for NaN: zero for 32-bit and narrower results of f16 and f32, else the sign bit."""
    if dtype.itemsize == 8 or source == "f64":
        return np.uint64(1 << (8 * dtype.itemsize - 1)).astype(f"u{dtype.itemsize}").view(dtype)
    return dtype.type(0)


def between_floats(ins: Instruction, t: Translator, result: str, source: str) -> Op:
    narrow, wide = Format.of(result), Format.of(source)
    read, put = read_float(t, ins.operands[1], source), write_float(t, ins.operands[0], result)
    rounding = next((WHOLE[modifier] for modifier in ins.modifiers if modifier in WHOLE), None)
    convert = float_converter(ins, narrow)
    flush = "ftz" in ins.modifiers
    widens = narrow.dtype.itemsize > wide.dtype.itemsize
    keeps = result == "f64" or (result, source) in KEEPING

    def widened_nans(converted: Array, value: Array) -> Array:
        return narrow.propagate(converted, (value,) if keeps else (), NANS[result])

    if (widens or (wide.name, narrow.name, mode_of(ins)) == ("f32", "f16", "rn")) and set(ins.modifiers) <= {
        "rn",
        result,
        source,
    }:
        return lambda mask: put(widened_nans(read().astype(narrow.dtype), read()), mask)

    def op(mask: Mask) -> None:
        value = wide.flush(read()) if flush and wide.name == "f32" else read()
        real = np.asarray(value).astype(np.float64)
        converted = convert(real if rounding is None else np.copysign(rounding(real), real))
        if flush and narrow.name == "f32":
            converted = narrow.flush(converted)
        if source == result and rounding is None and not flush and "sat" not in ins.modifiers:
            converted = np.where(np.isnan(real), value, converted)  # a mere move keeps the bits of NaN
            converted = converted.astype(narrow.dtype)
        elif keeps:
            converted = widened_nans(converted, value)
        put(converted, mask)

    return op


def float_converter(ins: Instruction, format: Format) -> Callable[[Array], Array]:
    """Return a function from doubles to a format, with the modifiers .sat, .relu and .satfinite."""
    mode = mode_of(ins)
    saturate, relu, finite = "sat" in ins.modifiers, "relu" in ins.modifiers, "satfinite" in ins.modifiers

    def convert(real: Array) -> Array:
        value = format.round(real, np.zeros(real.shape), mode)
        if finite:
            limit = format.dtype.type(FORMAT_OF[format.dtype].limit)
            value = np.where(np.isinf(value.astype(np.float64)), np.copysign(limit, value), value).astype(format.dtype)
        if relu:
            negative = np.signbit(value) & ~np.isnan(real)
            value = np.where(negative, format.dtype.type(0), value).astype(format.dtype)
        if saturate:
            value = saturated(value, format)
        return format.canonical(np.asarray(value, format.dtype))

    return convert


def to_pair(ins: Instruction, t: Translator, result: str, source: str) -> Op:
    values = pair_source(ins, t, source)
    if result in PACKED:
        format = Format.of(PACKED[result])
        convert = float_converter(ins, format)
        put = write_float(t, ins.operands[0], result)
        return lambda mask: put(convert(values()), mask)
    kind = result[:-2]
    relu = "relu" in ins.modifiers
    out = t.write(ins.operands[0], np.uint16).view(np.uint8).reshape(-1, 2)

    def op(mask: Mask) -> None:
        codes = to_tiny(values(), kind, relu)
        np.copyto(out, codes, where=mask if mask is True else mask[:, None])

    return op


def pair_source(ins: Instruction, t: Translator, source: str) -> Callable[[], Array]:
    """Return a function that reads the two values to convert as doubles (threads, 2), the lower half first."""
    if source in TINY or source[:-2] in TINY:
        kind = TINY[source[:-2]]
        codes = t.read(ins.operands[1], np.uint16)
        table = np.arange(256, dtype=np.uint8).view(kind).astype(np.float64)
        return lambda: table[np.ascontiguousarray(np.broadcast_to(codes, (t.threads,))).view(np.uint8).reshape(-1, 2)]
    if source in PACKED:
        pairs = read_float(t, ins.operands[1], source)
        return lambda: pairs().astype(np.float64)
    if len(ins.operands) < 3:
        raise Unsupported(ins)
    upper, lower = (read_float(t, operand, source) for operand in ins.operands[1:3])

    def both() -> Array:
        return np.stack([np.broadcast_to(part(), (t.threads,)).astype(np.float64) for part in (lower, upper)], axis=1)

    return both


def to_tiny(values: Array, kind: str, relu: bool) -> Array:
    """Convert to fp8 codes: to nearest, clamped to the largest finite number; NaN is 0x7f."""
    codes = narrow(saturate(values, TINY[kind]), TINY[kind]).view(np.uint8)
    if relu:
        codes = np.where(np.signbit(values), np.uint8(0), codes)
    return np.where(np.isnan(values), np.uint8(0x7F), codes).astype(np.uint8)


def to_tf32(ins: Instruction, t: Translator) -> Op:
    """f32 with a mantissa of 10 bits: `rna` rounds half away from zero, `rn` half to even, `rz` truncates."""
    bits, out = t.read(ins.operands[1], np.uint32), t.write(ins.operands[0], np.uint32)
    mode = mode_of(ins)
    relu, finite = "relu" in ins.modifiers, "satfinite" in ins.modifiers

    def op(mask: Mask) -> None:
        value = np.where(np.isnan(bits.view(np.float32)), (bits | QUIET) & ~TF32_DROPPED, rounded_to_tf32(bits, mode))
        if finite:
            infinite = (value & np.uint32(0x7FFFFFFF)) == np.uint32(0x7F800000)
            value = np.where(infinite, (value & np.uint32(0x80000000)) | np.uint32(0x7F7FE000), value)
        if relu:
            value = np.where(
                (value >> np.uint32(31) == 1) & ~np.isnan(np.asarray(value).view(np.float32)), np.uint32(0), value
            )
        np.copyto(out, value, where=mask)

    return op


def pack_convert(ins: Instruction, t: Translator) -> Op:
    """``cvt.pack.sat.s16.s32 d, a, b``: both clamped to the narrow type, a above b; with c, its bits shifted up instead
    of zeros."""
    types = [modifier for modifier in ins.modifiers if modifier not in ("pack", "sat")]
    narrow, wide = types[0], types[1]
    bits = {"s16": 16, "u16": 16, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "s2": 2, "u2": 2}.get(narrow)
    if bits is None or wide not in ("s32",):
        raise Unsupported(ins)
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if narrow[0] == "s" else (0, (1 << bits) - 1)
    a, b = (t.read(operand, np.int32) for operand in ins.operands[1:3])
    out, ones = t.write(ins.operands[0], np.uint32), np.int64((1 << bits) - 1)
    rest = t.read(ins.operands[3], np.uint32) if len(ins.operands) > 3 else np.zeros((), np.uint32)

    def op(mask: Mask) -> None:
        upper, lower = (np.clip(x.astype(np.int64), low, high) & ones for x in (a, b))
        value = upper << bits | lower | rest.astype(np.int64) << (2 * bits)
        np.copyto(out, (value & 0xFFFFFFFF).astype(np.uint32), where=mask)

    return op
