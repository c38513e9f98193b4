"""mfma and wmma: the matrices of a wave, gathered from its lanes, multiplied, and given back to them.

Lane l of an instruction of m x n x k has row ``l % m`` of A and column ``l % n`` of B, and of that the elements ``l // m * count`` and on;
of the result it has column ``l % n``.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np

from tilework.numerics.arithmetic import Arithmetic
from tilework.numerics.microscaling import decode_e2m1, decode_e8m0
from tilework.numerics.rounding import BF16, F32, FLOATS, to_tf32
from tilework.oracles.emulator.arenas import Array
from tilework.oracles.emulator.llvm.ir_text import Instruction
from tilework.oracles.emulator.llvm.ir_types import Sequence, Type
from tilework.oracles.emulator.llvm.lane_values import Value, any_of, either, flatten, to_bytes
from tilework.oracles.emulator.llvm.translate_ir import (
    Compute,
    Mask,
    Translator,
    Unsupported,
    fixed,
    intrinsic,
    literal,
    quiet_nan,
)

MFMA = re.compile(r"llvm\.amdgcn\.mfma\.(scale\.)?(f32|f64|i32)\.(\d+)x(\d+)x(\d+)\.?([a-z0-9.]*)")
WMMA = re.compile(r"llvm\.amdgcn\.wmma\.(f32|f16|bf16|i32)\.16x16x(\d+)\.([a-z0-9.]*?)\.v\d+")
SCALED = ("fp8", "bf8", "fp6", "bf6", "fp4")  # the formats of scaled instructions, by their numbers


def format_names(arch: str) -> dict[str, str]:
    """What the 8-bit formats of this GPU are: gfx942 has its own, others those of OCP."""
    return {"fp8": "fp8e4b8", "bf8": "fp8e5b16"} if arch == "gfx942" else {"fp8": "fp8e4nv", "bf8": "fp8e5"}


def decoded(rows: Array, name: str, arch: str) -> Array:
    """Bytes [thread, byte] as numbers [thread, element]: f32, f64, or f64 that are integers."""
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
    """One instruction: `rows` and `columns` say, for [result, lane], where in the (m, n) of its block a result is."""

    m: int
    n: int
    k: int
    blocks: int
    rows: Array
    columns: Array

    def operand(self, values: Array, wave: int, size: int) -> Array:
        """[wave, block, row, k] of what each thread has: [thread, element]."""
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


def spread(shape: Shape, product: Array, wave: int) -> Array:
    """[result, thread] of the products [wave, block, row, column]."""
    if shape.blocks == 1:
        return product[:, 0][:, shape.rows, shape.columns].transpose(1, 0, 2).reshape(len(shape.rows), -1)
    block = np.arange(wave)[None] // shape.n
    return product[:, block, shape.rows, shape.columns].transpose(1, 0, 2).reshape(len(shape.rows), -1)


def whole_rows(t: Translator, kind: Type, value: Value) -> Array:
    rows, _ = to_bytes(kind, value)
    return np.ascontiguousarray(np.broadcast_to(rows, (t.group.threads, rows.shape[1])))


def operands(t: Translator, values: Iterable[Value], mask: Mask, ins: Instruction) -> Array | None:
    """Why the result means nothing: one lane that does not know its part makes that of the whole wave so."""
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


def accumulated(t: Translator, shape: Shape, product: Array, acc: Value, missing: Array | None) -> Value:
    found = []
    sums = spread(shape, product, t.group.wave)
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
    """Formats by number. The lanes behind a row have a power of two (a byte of a word) for 32 neighbours along K each, in the order of K;
    of 8-bit elements they have 16 neighbours and again 16, of 4-bit ones 32. Where both words are the number 0 nothing is scaled."""
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
        words = t.everywhere(scale)[0]
        scales = decode_e8m0((words >> np.uint32(8 * selects[index])).astype(np.uint8))[:, None]
        return found * shape.operand(scales.astype(F32), 64, size).repeat(32, axis=3)

    def computed(mask: Mask, *values: Value) -> Value:
        missing = operands(t, values[:2], mask, ins)
        product = side(0, shape.m, values[0], values[6]) @ side(1, shape.n, values[1], values[8]).swapaxes(2, 3)
        return accumulated(t, shape, product, values[2], missing)

    return computed


@intrinsic("amdgcn.wmma", collective=True)
def wmma(ins: Instruction, t: Translator) -> Compute:
    named = WMMA.match(ins.callee)
    if named is None or t.group.wave != 32:
        raise Unsupported(ins)
    formats = named[3].split(".")
    names = formats if len(formats) == 2 else formats * 2
    where = [0, 1, 2]
    if formats == ["iu8"]:
        names = ["i8" if literal(ins, index) else "u8" for index in (0, 2)]
        where = [1, 3, 4]
    kinds = [ins.operands[index][0] for index in where[:2]]
    if named[1] in ("f16", "bf16") or int(named[2]) != 16:
        raise Unsupported(ins)
    shape = wmma_shape(16, version_of(t.group.arch))

    def computed(mask: Mask, *values: Value) -> Value:
        *factors, acc = (values[index] for index in where)
        missing = operands(t, factors, mask, ins)
        a, b = (
            wave_operand(t, shape, decoded(whole_rows(t, kind, value), name, t.group.arch), ins)
            for kind, value, name in zip(kinds, factors, names, strict=True)
        )
        return accumulated(t, shape, a @ b.swapaxes(2, 3), acc, missing)

    return computed


def version_of(arch: str) -> int:
    return 1 if arch.startswith("gfx11") else 2


def wave_operand(t: Translator, shape: Shape, values: Array, ins: Instruction) -> Array:
    """[wave, block, row, k]; on gfx11 each row is in two lanes, which have to agree."""
    if version_of(t.group.arch) > 1:
        return shape.operand(values, 32, 16)
    lanes = values.reshape(-1, 2, 16, values.shape[1])
    differs = (lanes[:, 0] != lanes[:, 1]) & ~(np.isnan(lanes[:, 0]) & np.isnan(lanes[:, 1]))
    if differs.any():
        wave, lane = (int(index) for index in np.argwhere(differs.any(axis=2))[0])
        what = f"lanes {lane} and {lane + 16} of a wave have different operands of a matrix instruction, which have to be the same"
        t.group.report("operands of wmma", what, ins, 32 * wave + lane)
    return lanes[:, :1]
