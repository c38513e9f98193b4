"""Conversions between 8-bit floats and wider ones, in the formats of the GPU (`format_names`)."""

import re

import numpy as np

from tilework.numerics.rounding import BF16, F16, F32, FLOATS, narrow, saturate
from tilework.oracles.emulator.arenas import Array
from tilework.oracles.emulator.llvm.ir_text import Instruction
from tilework.oracles.emulator.llvm.ir_types import Int
from tilework.oracles.emulator.llvm.lane_values import Scalar, Value, any_of, bitcast, either, flatten
from tilework.oracles.emulator.llvm.matrix_rules import format_names
from tilework.oracles.emulator.llvm.translate_ir import (
    Compute,
    Mask,
    Translator,
    Unsupported,
    element,
    elementwise,
    intrinsic,
    literal,
)

WIDE = {"f32": F32, "f16": F16, "bf16": BF16}
NAME = re.compile(r"llvm\.amdgcn\.cvt\.(scalef32\.)?(?:pk\.)?(f32|f16|bf16|fp8|bf8)\.(f32|f16|bf16|fp8|bf8)")


def narrow_dtype(t: Translator, name: str) -> np.dtype:
    return FLOATS[format_names(t.group.arch)[name]]


def pair_in(word: Array, high: int, dtype: np.dtype) -> list[Array]:
    """The two numbers in the low or high half of a word."""
    return [(word >> np.uint32(16 * high + shift)).astype(np.uint8).view(dtype).astype(F32) for shift in (0, 8)]


def encoded(t: Translator, value: Array, name: str) -> Array:
    dtype = narrow_dtype(t, name)
    return narrow(saturate(value, dtype) if t.group.saturates else value, dtype).view(np.uint8).astype(np.uint32)


@intrinsic("amdgcn.cvt.pk.f32.fp8", "amdgcn.cvt.pk.f32.bf8")
def unpack(ins: Instruction, t: Translator) -> Compute:
    high, dtype = literal(ins, 1), narrow_dtype(t, ins.callee[-3:])
    return lambda mask, word, _: [(one, word[1]) for one in pair_in(word[0], high, dtype)]


@intrinsic("amdgcn.cvt.f32.fp8", "amdgcn.cvt.f32.bf8")
def unpack_one(ins: Instruction, t: Translator) -> Compute:
    shift, dtype = np.uint32(8 * literal(ins, 1)), narrow_dtype(t, ins.callee[-3:])
    return elementwise(ins, lambda word: (word >> shift).astype(np.uint8).view(dtype).astype(F32), 1)


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
    """gfx950: two numbers at a time, times or over a scale."""
    named = NAME.match(ins.callee)
    if named is None:
        raise Unsupported(ins)
    to, source = named[2], named[3]
    high = literal(ins, len(ins.operands) - 1)
    if to in WIDE:
        dtype = narrow_dtype(t, source)

        def widen(mask: Mask, word: Scalar, scale: Scalar, _: Scalar) -> Value:
            pair = pair_in(word[0], high, dtype)
            return [(narrow(one * scale[0], WIDE[to]), either(word[1], scale[1])) for one in pair]

        return widen

    def shrink(mask: Mask, old: Value, *rest: Value) -> Value:
        *values, scale, _ = rest
        numbers = flatten(values)
        half = np.zeros(1, np.uint32)
        for place, (data, _) in enumerate(numbers):
            half = half | encoded(t, data.astype(F32) / scale[0], to) << np.uint32(8 * place)
        assert isinstance(element(ins.type), Int)
        pair, missing = flatten(old), any_of([*numbers, scale])
        if len(pair) == 2:
            pair[high] = (half.astype(np.uint16), missing)
            return pair
        return bitcast(ins.type, Int(32), (half << np.uint32(16 * high), missing))

    return shrink
