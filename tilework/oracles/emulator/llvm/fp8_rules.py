"""Conversions between 8-bit floats and wider ones, in the formats of the GPU (`format_names`)."""

import re

import numpy as np

from tilework.numerics.rounding import BF16, F16, F32, FLOATS, narrow, saturate
from tilework.oracles.emulator.arenas import Array
from tilework.oracles.emulator.llvm.ir_text import Instruction
from tilework.oracles.emulator.llvm.ir_types import Int
from tilework.oracles.emulator.llvm.lane_values import Scalar, bitcast, either, flatten
from tilework.oracles.emulator.llvm.matrix_rules import format_names
from tilework.oracles.emulator.llvm.translate_ir import (
    Mask,
    Op,
    Translator,
    Unsupported,
    element,
    elementwise,
    intrinsic,
)

WIDE = {"f32": F32, "f16": F16, "bf16": BF16}
NAME = re.compile(r"llvm\.amdgcn\.cvt\.(scalef32\.)?(?:pk\.)?(f32|f16|bf16|fp8|bf8)\.(f32|f16|bf16|fp8|bf8)")


def narrow_dtype(t: Translator, name: str) -> np.dtype:
    return FLOATS[format_names(t.group.arch)[name]]


def encoded(t: Translator, value: Array, name: str) -> Array:
    dtype = narrow_dtype(t, name)
    return narrow(saturate(value, dtype) if t.group.saturates else value, dtype).view(np.uint8).astype(np.uint32)


@intrinsic("amdgcn.cvt.pk.f32.fp8", "amdgcn.cvt.pk.f32.bf8")
def unpack(ins: Instruction, t: Translator) -> Op:
    (a, _), out, high = t.inputs(ins), t.output(ins), t.literal(ins, 1)
    dtype = narrow_dtype(t, ins.callee[-3:])

    def op(mask: Mask) -> None:
        word, undefined = t.slots[a]
        pair = [(word >> np.uint32(16 * high + shift)).astype(np.uint8).view(dtype).astype(F32) for shift in (0, 8)]
        t.put(out, [(one, undefined) for one in pair], mask)

    return op


@intrinsic("amdgcn.cvt.f32.fp8", "amdgcn.cvt.f32.bf8")
def unpack_one(ins: Instruction, t: Translator) -> Op:
    slots, shift = t.inputs(ins)[:1], np.uint32(8 * t.literal(ins, 1))
    dtype = narrow_dtype(t, ins.callee[-3:])
    return elementwise(ins, t, lambda word: (word >> shift).astype(np.uint8).view(dtype).astype(F32), slots)


@intrinsic("amdgcn.cvt.pk.fp8.f32", "amdgcn.cvt.pk.bf8.f32")
def pack(ins: Instruction, t: Translator) -> Op:
    name = ins.callee.split(".")[4]
    slots, high = t.inputs(ins)[:3], np.uint32(16 * t.literal(ins, 3))
    keep = np.uint32(0xFFFF0000 if high == 0 else 0xFFFF)

    def packed(a: Array, b: Array, old: Array) -> Array:
        return (encoded(t, a, name) | encoded(t, b, name) << np.uint32(8)) << high | old & keep

    out = t.output(ins)

    def op(mask: Mask) -> None:
        (a, p), (b, q), (old, _) = (t.slots[slot] for slot in slots)
        t.put(out, (packed(a, b, old), either(p, q)), mask)  # the other half is often still to come

    return op


@intrinsic("amdgcn.cvt.scalef32")
def scaled(ins: Instruction, t: Translator) -> Op:
    """gfx950: two numbers at a time, times or over a scale."""
    named = NAME.match(ins.callee)
    if named is None:
        raise Unsupported(ins)
    slots, out = t.inputs(ins), t.output(ins)
    to, source = named[2], named[3]
    high = t.literal(ins, len(ins.operands) - 1)
    if to in WIDE:

        def widen(mask: Mask) -> None:
            ((word, p), (scale, q)) = t.slots[slots[0]], t.slots[slots[1]]
            dtype, found = narrow_dtype(t, source), list[Scalar]()
            for shift in (0, 8):
                byte = (word >> np.uint32(16 * high + shift)).astype(np.uint8).view(dtype)
                found.append((narrow(byte.astype(F32) * scale, WIDE[to]), either(p, q)))
            t.put(out, found, mask)

        return widen

    def shrink(mask: Mask) -> None:
        values = [one for slot in slots[1:-2] for one in flatten(t.slots[slot])]
        scale, missing = t.slots[slots[-2]]
        half = np.zeros(1, np.uint32)
        for place, (data, undefined) in enumerate(values):
            half = half | encoded(t, data.astype(F32) / scale, to) << np.uint32(8 * place)
            missing = either(missing, undefined)
        kind = element(ins.type)
        assert isinstance(kind, Int)
        pair = list(flatten(t.slots[slots[0]]))
        if len(pair) == 2:
            pair[high] = (half.astype(np.uint16), missing)
            t.put(out, pair, mask)
        else:
            t.put(out, bitcast(ins.type, Int(32), (half << np.uint32(16 * high), missing)), mask)

    return shrink
