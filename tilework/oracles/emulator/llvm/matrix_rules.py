"""mfma and wmma: the matrices of a wave, gathered from its lanes, multiplied, and scattered back to them; and
conversions of 8-bit floats.

Lane l of an instruction of m x n x k has row ``l % m`` of A and column ``l % n`` of B, from element ``l // m * count``
on; of the result it has column ``l % n``. The 8-bit formats depend on the GPU (`format_names`).

"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np

from tilework.numerics.arithmetic import Arithmetic
from tilework.numerics.rounding import BF16, F16, F32, FLOATS, decode_e2m1, decode_e8m0, narrow, saturate, to_tf32
from tilework.oracles.emulator.llvm.ir import Instruction, Int, Sequence, Type
from tilework.oracles.emulator.llvm.translate_ir import (
    Compute,
    Mask,
    Scalar,
    Translator,
    Unsupported,
    Value,
    any_of,
    bitcast,
    either,
    element,
    elementwise,
    fixed,
    flatten,
    intrinsic,
    literal,
    quiet_nan,
    to_bytes,
)
from tilework.oracles.emulator.memory import Array

MFMA = re.compile(r"llvm\.amdgcn\.mfma\.(scale\.)?(f32|f64|i32)\.(\d+)x(\d+)x(\d+)\.?([a-z0-9.]*)")
WMMA = re.compile(r"llvm\.amdgcn\.wmma\.(f32|f16|bf16|i32)\.16x16x(\d+)\.([a-z0-9.]*?)\.v\d+")
SCALED = ("fp8", "bf8", "fp6", "bf6", "fp4")  # the formats of scaled instructions, by their codes


def format_names(arch: str) -> dict[str, str]:
    """Return the 8-bit formats of this GPU: gfx942 has its own, others those of OCP."""
    return {"fp8": "fp8e4b8", "bf8": "fp8e5b16"} if arch == "gfx942" else {"fp8": "fp8e4nv", "bf8": "fp8e5"}


def decoded(rows: Array, name: str, arch: str) -> Array:
    """Return bytes [thread, byte] as values [thread, element]: f32, f64, or f64 that are integers."""
    if name == "f64":
        return rows.view(np.float64)
    if name in ("f32", "f16"):
        return rows.view(np.float32 if name == "f32" else np.float16).astype(F32)
    if name == "xf32":
        return to_tf32(rows.view(np.uint32), "rn").view(F32)
    if name.startswith("bf16"):
        return rows.view(BF16).astype(F32)
    if name in ("i8", "u8"):
        return rows.view(np.int8 if name == "i8" else np.uint8).astype(np.float64)
    if name == "fp4":
        return decode_e2m1(np.stack([rows & 15, rows >> 4], axis=-1).reshape(len(rows), -1)).astype(F32)
    if name not in ("fp8", "bf8"):
        raise ValueError(f"the format {name}")
    return rows.view(FLOATS[format_names(arch)[name]]).astype(F32)


@dataclass(frozen=True)
class Shape:
    """One instruction: `rows` and `columns` give, for [result, lane], the element in the (m, n) of its block."""

    m: int
    n: int
    k: int
    blocks: int
    rows: Array
    columns: Array

    def operand(self, values: Array, wave: int, size: int) -> Array:
        """Return [wave, block, row, k] from the elements of each thread: [thread, element]."""
        count = values.shape[1]
        lanes = values.reshape(-1, wave // (size * self.blocks), self.blocks, size, count)
        return lanes.transpose(0, 2, 3, 1, 4).reshape(len(lanes), self.blocks, size, -1)


@cache
def mfma_shape(m: int, n: int, k: int, wide: bool) -> Shape:
    lane, results = np.arange(64)[None], np.arange(m * n // 64 if m > 4 else 4)[:, None]
    if wide:
        rows = 4 * results + lane // 16
    elif m == 32:
        rows = 8 * (results // 4) + 4 * (lane // 32) + results % 4
    elif m == 16:
        rows = 4 * (lane // 16) + results
    else:
        rows = results + 0 * lane
    return Shape(m, n, k, 16 if m == 4 else 1, rows, lane % n + 0 * rows)


@cache
def wmma_shape(k: int, version: int) -> Shape:
    lane, results = np.arange(32)[None], np.arange(8)[:, None]
    rows = 2 * results + lane // 16 if version == 1 else 8 * (lane // 16) + results
    return Shape(16, 16, k, 1, rows, lane % 16 + 0 * rows)


def spread(shape: Shape, dots: Array, wave: int) -> Array:
    """Return [result, thread] of the dots [wave, block, row, column]."""
    if shape.blocks == 1:
        return dots[:, 0][:, shape.rows, shape.columns].transpose(1, 0, 2).reshape(len(shape.rows), -1)
    block = np.arange(wave)[None] // shape.n
    return dots[:, block, shape.rows, shape.columns].transpose(1, 0, 2).reshape(len(shape.rows), -1)


def whole_rows(t: Translator, kind: Type, value: Value) -> Array:
    rows, _ = to_bytes(kind, value)
    return np.ascontiguousarray(np.broadcast_to(rows, (t.group.threads, rows.shape[1])))


def operands(t: Translator, values: Iterable[Value], mask: Mask, ins: Instruction) -> Array | None:
    """Return the reasons why the result is undefined: one undefined lane makes the result of the whole wave
    undefined."""
    group, active = t.group, t.group.active(mask)
    lanes = active.reshape(-1, group.wave)
    partial = lanes.any(axis=1) & ~lanes.all(axis=1) & ~group.is_ragged
    if partial.any():
        wave = int(partial.argmax())
        what = f"lane {int(np.flatnonzero(~lanes[wave])[0])} of wave {wave} is not active in a matrix instruction"
        group.report("divergent matrix instruction", what, ins, wave * group.wave)
    missing = None
    for value in values:
        undefined = any_of(flatten(value))
        if undefined is not None:
            spread = (t.waves(undefined) * lanes).max(axis=1)
            if spread.any():
                missing = either(missing, np.repeat(spread, group.wave))
    return missing


def accumulated(t: Translator, shape: Shape, dots: Array, acc: Value, missing: Array | None) -> Value:
    found = []
    sums = spread(shape, dots, t.group.wave)
    for one, (data, undefined) in zip(sums, acc, strict=True):
        if data.dtype == np.uint32:
            total = (data.view(np.int32).astype(np.int64) + one.astype(np.int64)).astype(np.uint32)
        else:
            total = (data + one.astype(data.dtype)).astype(data.dtype)
            total = Arithmetic.of(data.dtype).propagate(total, (), quiet_nan(data.dtype))
        found.append((total, either(undefined, missing)))
    return found


@intrinsic("amdgcn.mfma", collective=True)
def mfma(ins: Instruction, t: Translator) -> Compute:
    named = MFMA.match(ins.callee)
    if named is None or t.group.wave != 64:
        raise Unsupported(ins)
    m, n, k = (int(named[index]) for index in (3, 4, 5))
    formats = named[6].removesuffix(".1k").split(".")
    kinds = [kind for kind, _ in ins.operands[:2]]
    shape = mfma_shape(m, n, k, named[2] == "f64")
    if not isinstance(ins.type, Sequence) or ins.type.count != len(shape.rows):
        raise Unsupported(ins, "several blocks")
    if named[1]:
        return scaled_mfma(ins, t, shape)
    names = formats if len(formats) == 2 else formats * 2
    broadcast, block = literal(ins, 3), literal(ins, 4)

    def computed(mask: Mask, left: Value, right: Value, acc: Value, *_: Value) -> Value:
        missing = operands(t, (left, right), mask, ins)
        a, b = (
            shape.operand(decoded(whole_rows(t, kind, value), name, t.group.arch), 64, size)
            for kind, value, name, size in zip(kinds, (left, right), names, (m, n), strict=True)
        )
        if broadcast:
            group = np.arange(shape.blocks) >> broadcast << broadcast
            a = a[:, group + block]
        return accumulated(t, shape, a @ b.swapaxes(2, 3), acc, missing)

    return computed


def scaled_mfma(ins: Instruction, t: Translator, shape: Shape) -> Compute:
    """Formats are given by code. The lanes of a row have a power of two (a byte of a 32-bit register) for 32 neighbours
    along K each, in the order of K; of 8-bit elements they have 16 neighbours twice, of 4-bit ones 32. If both scale
    operands are the constant 0 nothing is scaled."""
    kinds = [kind for kind, _ in ins.operands[:2]]
    names = [SCALED[literal(ins, index)] for index in (3, 4)]
    selects = [literal(ins, index) for index in (5, 7)]
    is_plain = all(fixed(ins, index) == 0 for index in (6, 8))

    def side(index: int, size: int, value: Value, scale: Value) -> Array:
        rows = whole_rows(t, kinds[index], value)
        values = decoded(rows[:, :16] if names[index] == "fp4" else rows, names[index], t.group.arch).astype(F32)
        parts = [values] if names[index] == "fp4" else [values[:, :16], values[:, 16:]]
        found = np.concatenate([shape.operand(part, 64, size) for part in parts], axis=3)
        if is_plain:
            return found
        scale_bits = t.everywhere(scale)[0]
        scales = decode_e8m0((scale_bits >> np.uint32(8 * selects[index])).astype(np.uint8))[:, None]
        return found * shape.operand(scales.astype(F32), 64, size).repeat(32, axis=3)

    def computed(mask: Mask, *values: Value) -> Value:
        missing = operands(t, values[:2], mask, ins)
        dots = side(0, shape.m, values[0], values[6]) @ side(1, shape.n, values[1], values[8]).swapaxes(2, 3)
        return accumulated(t, shape, dots, values[2], missing)

    return computed


@intrinsic("amdgcn.wmma", collective=True)
def wmma(ins: Instruction, t: Translator) -> Compute:
    named = WMMA.match(ins.callee)
    if named is None or t.group.wave != 32:
        raise Unsupported(ins)
    formats = named[3].split(".")
    names = formats if len(formats) == 2 else formats * 2
    depth, version = int(named[2]), version_of(t.group.arch)
    where = [0, 1, 2] if version < 3 else [0, 1, 3]  # from version 3 on a modifier of the accumulator is in front of it
    if formats == ["iu8"]:
        names = ["i8" if literal(ins, index) else "u8" for index in (0, 2)]
        where = [1, 3, 4]
    elif version == 3 and len(formats) == 1:
        where = [1, 3, 5]
    kinds = [ins.operands[index][0] for index in where[:2]]
    if named[1] in ("f16", "bf16") or (depth != 16) != (version == 3) or has_modifiers(ins, where):
        raise Unsupported(ins)
    shape = wmma_shape(depth, version)

    def computed(mask: Mask, *values: Value) -> Value:
        *factors, acc = (values[index] for index in where)
        missing = operands(t, factors, mask, ins)
        a, b = (
            wave_operand(t, shape, decoded(whole_rows(t, kind, value), name, t.group.arch), ins)
            for kind, value, name in zip(kinds, factors, names, strict=True)
        )
        return accumulated(t, shape, a @ b.swapaxes(2, 3), acc, missing)

    return computed


def has_modifiers(ins: Instruction, where: list[int]) -> bool:
    """Return True if a float operand or the accumulator is negated or made absolute."""
    given = [index for index in range(len(ins.operands)) if index not in where]
    return where != [1, 3, 4] and any(literal(ins, index) for index in given)


def version_of(arch: str) -> int:
    return 1 if arch.startswith("gfx11") else 3 if arch == "gfx1250" else 2


def wave_operand(t: Translator, shape: Shape, values: Array, ins: Instruction) -> Array:
    """Return [wave, block, row, k]; on gfx11 each row is in two lanes, which have to agree."""
    if version_of(t.group.arch) > 1:
        return shape.operand(values, 32, 16)
    lanes = values.reshape(-1, 2, 16, values.shape[1])
    differs = (lanes[:, 0] != lanes[:, 1]) & ~(np.isnan(lanes[:, 0]) & np.isnan(lanes[:, 1]))
    if differs.any():
        wave, lane = (int(index) for index in np.argwhere(differs.any(axis=2))[0])
        what = f"lanes {lane} and {lane + 16} of a wave have different operands of a matrix instruction"
        what += ", which have to be the same"
        t.group.report("operands of wmma", what, ins, 32 * wave + lane)
    return lanes[:, :1]


WIDE = {"f32": F32, "f16": F16, "bf16": BF16}
NAME = re.compile(r"llvm\.amdgcn\.cvt\.(scalef32\.)?(?:pk\.)?(f32|f16|bf16|fp8|bf8)\.(f32|f16|bf16|fp8|bf8)")


def narrow_dtype(t: Translator, name: str) -> np.dtype:
    return FLOATS[format_names(t.group.arch)[name]]


def pair_in(register: Array, high: int, dtype: np.dtype) -> list[Array]:
    """Return the two values in the low or high half of a register."""
    return [(register >> np.uint32(16 * high + shift)).astype(np.uint8).view(dtype).astype(F32) for shift in (0, 8)]


def encoded(t: Translator, value: Array, name: str) -> Array:
    dtype = narrow_dtype(t, name)
    return narrow(saturate(value, dtype) if t.group.saturates else value, dtype).view(np.uint8).astype(np.uint32)


@intrinsic("amdgcn.cvt.pk.f32.fp8", "amdgcn.cvt.pk.f32.bf8")
def unpack(ins: Instruction, t: Translator) -> Compute:
    high, dtype = literal(ins, 1), narrow_dtype(t, ins.callee[-3:])
    return lambda mask, register, _: [(one, register[1]) for one in pair_in(register[0], high, dtype)]


@intrinsic("amdgcn.cvt.f32.fp8", "amdgcn.cvt.f32.bf8")
def unpack_one(ins: Instruction, t: Translator) -> Compute:
    shift, dtype = np.uint32(8 * literal(ins, 1)), narrow_dtype(t, ins.callee[-3:])
    return elementwise(ins, lambda register: (register >> shift).astype(np.uint8).view(dtype).astype(F32), 1)


@intrinsic("amdgcn.cvt.pk.fp8.f32", "amdgcn.cvt.pk.bf8.f32")
def pack(ins: Instruction, t: Translator) -> Compute:
    name, high = ins.callee.split(".")[4], np.uint32(16 * literal(ins, 3))
    keep = np.uint32(0xFFFF0000 if high == 0 else 0xFFFF)

    def packed(mask: Mask, a: Scalar, b: Scalar, old: Scalar, _: Scalar) -> Scalar:
        pair = encoded(t, a[0], name) | encoded(t, b[0], name) << np.uint32(8)
        return pair << high | old[0] & keep, either(a[1], b[1])  # the other half is often still to come

    return packed


@intrinsic("amdgcn.cvt.scalef32")
def scaled(ins: Instruction, t: Translator) -> Compute:
    """gfx950: two values at a time, multiplied or divided by a scale."""
    named = NAME.match(ins.callee)
    if named is None:
        raise Unsupported(ins)
    to, source = named[2], named[3]
    high = literal(ins, len(ins.operands) - 1)
    if to in WIDE:
        dtype = narrow_dtype(t, source)

        def widen(mask: Mask, register: Scalar, scale: Scalar, _: Scalar) -> Value:
            pair = pair_in(register[0], high, dtype)
            return [(narrow(one * scale[0], WIDE[to]), either(register[1], scale[1])) for one in pair]

        return widen

    def shrink(mask: Mask, old: Value, *rest: Value) -> Value:
        *values, scale, _ = rest
        elements = flatten(values)
        half = np.zeros(1, np.uint32)
        for index, (data, _) in enumerate(elements):
            half = half | encoded(t, data.astype(F32) / scale[0], to) << np.uint32(8 * index)
        assert isinstance(element(ins.type), Int)
        pair, missing = flatten(old), any_of([*elements, scale])
        if len(pair) == 2:
            pair[high] = (half.astype(np.uint16), missing)
            return pair
        return bitcast(ins.type, Int(32), (half << np.uint32(16 * high), missing))

    return shrink
