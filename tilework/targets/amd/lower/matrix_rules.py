"""`tt.dot` on matrix units: mfma of a wave of 64, wmma of one of 32.

    %d = call <16 x float> @llvm.amdgcn.mfma.f32.32x32x8f16(<4 x half> %b, <4 x half> %a, <16 x float> %c, i32 0, i32 0, i32 0)

The registers of a result are those of its instructions one after the other, rows of tiles after rows; those of an operand are a run along K for
each row (A) or column (B) of tiles. Under a transposed layout the instruction is called with the operands exchanged and gives the
transposed tile. K is taken in the order of registers, the same for both operands, which a sum does not see.
"""

from collections.abc import Sequence
from typing import NamedTuple

from xdsl.ir import Attribute, Operation

from tilework.ir import amdg, tt
from tilework.ir.encodings import encoding_of
from tilework.ir.enums import ScaleDotElemType
from tilework.ir.types import bf16, element_type, f8E4M3FN, f8E4M3FNUZ, f32, i8, shape_of
from tilework.ir.types import f16 as half
from tilework.ir.types import f64 as double
from tilework.layouts.amd import WAVE, AmdMfma, AmdWmma
from tilework.targets.amd.lower.own_rules import lowers
from tilework.targets.gpu.convert import lower_convert
from tilework.targets.gpu.dot_rules import multiply_add
from tilework.targets.gpu.lowering import Lowering, Registers
from tilework.targets.gpu.words import pack_words
from tilework.targets.llvm.types import Type, i1, i16, i32, i64, vector
from tilework.targets.llvm.types import bf16 as brain
from tilework.targets.llvm.types import f16 as f16_register
from tilework.targets.llvm.types import f32 as f32_register
from tilework.targets.llvm.types import f64 as f64_register
from tilework.targets.llvm.values import Value, constant

E4M3 = (f8E4M3FN, f8E4M3FNUZ)
SCALED = {ScaleDotElemType.E4M3: 0, ScaleDotElemType.E5M2: 1, ScaleDotElemType.E2M1: 4}  # numbers of formats
SCALED_RUN = 32  # elements of a lane in such an instruction
ONE_SCALES = 0x7F7F7F7F
BROADCAST_ALL = 4  # the small operand of one block goes to all 16


class Instruction(NamedTuple):
    """Its name, what a lane gives of an operand, and how many elements that is."""

    name: str
    factor: Type
    elements: int


def byte_name(element: Attribute) -> str:
    return "fp8" if element in E4M3 else "bf8"


def mfma_instruction(
    shape: tuple[int, int, int], elements: int, a: Attribute, b: Attribute, is_short: bool
) -> Instruction:
    """The mfma for tiles of `shape` whose lanes give so many elements."""
    m, n, k = shape
    if 4 in (m, n):
        m, n, k = 4, 4, elements
    size = f"{m}x{n}x{k}"
    if a == double:
        return Instruction(f"mfma.f64.{size}f64", f64_register, 1)
    if a == f32:
        return (
            Instruction(f"mfma.f32.{size}.xf32", vector(f32_register, 2), 2)
            if is_short
            else Instruction(f"mfma.f32.{size}f32", f32_register, 1)
        )
    if a == half:
        dot = "." if elements == 8 else ""
        return Instruction(f"mfma.f32.{size}{dot}f16", vector(f16_register, elements), elements)
    if a == bf16:
        if elements == 8:
            return Instruction(f"mfma.f32.{size}.bf16", vector(brain, 8), 8)
        return Instruction(f"mfma.f32.{size}bf16{'.1k' if elements == 4 else ''}", vector(i16, elements), elements)
    if a == i8:
        factor = {4: i32, 8: i64, 16: vector(i32, 4)}[elements]
        return Instruction(f"mfma.i32.{size}{'' if elements == 4 else '.'}i8", factor, elements)
    return Instruction(f"mfma.f32.{size}.{byte_name(a)}.{byte_name(b)}", i64, 8)


@lowers(tt.DotOp, overrides=True)
def lower_dot(low: Lowering, op: Operation) -> Registers:
    """On matrix units where the accumulator is laid out for them."""
    encoding = encoding_of(op.results[0].type)
    if isinstance(encoding, AmdMfma):
        return lower_mfma(low, op, encoding)
    return lower_wmma(low, op, encoding) if isinstance(encoding, AmdWmma) else multiply_add(low, op)


lowers(amdg.InThreadTransposeOp)(lower_convert)  # registers change places


@lowers(tt.DotScaledOp)
def lower_dot_scaled(low: Lowering, op: Operation) -> Registers:
    """On an instruction that knows scales; `accelerate_matmul` leaves no others."""
    encoding = encoding_of(op.results[0].type)
    if not isinstance(op, tt.DotScaledOp) or not isinstance(encoding, AmdMfma):
        raise low.refuse(op, "tl.dot_scaled in a layout of no matrix instruction")
    formats = [ScaleDotElemType(format.value.data) for format in (op.a_elem_type, op.b_elem_type)]
    scales = [low[scale] if scale is not None else None for scale in (op.a_scale, op.b_scale)]
    return lower_scaled(low, op, encoding, [SCALED[format] for format in formats], scales)


def runs(registers: Registers, count: int) -> list[Registers]:
    """As many equal parts."""
    each = len(registers) // count
    return [registers[first : first + each] for first in range(0, len(registers), each)]


def packed(low: Lowering, values: Sequence[Value], type: Type) -> Value:
    """Elements as an instruction takes them."""
    b = low.builder
    return b.bitcast(values[0] if len(values) == 1 else b.build_vector(list(values)), type)


class ScaledSide(NamedTuple):
    """An operand of scaled instructions, all of K of a tile: vectors, the number of their format, words of four scales."""

    vectors: list[Value]
    format: int
    words: list[Value]


def scaled_side(low: Lowering, line: Registers, format: int, scales: Registers | None, unscaled: int) -> ScaledSide:
    each = SCALED_RUN // 2 if format == SCALED[ScaleDotElemType.E2M1] else SCALED_RUN
    vectors = [packed(low, line[at : at + each], vector(i32, each // 4)) for at in range(0, len(line), each)]
    words = pack_words(low, scales) if scales is not None else [constant(i32, unscaled)] * len(vectors)
    return ScaledSide(vectors, format, words)


def lower_scaled(
    low: Lowering, op: Operation, encoding: AmdMfma, formats: Sequence[int], scales: Sequence[Registers | None]
) -> Registers:
    """Dots of 8 and 4 bits on gfx950: each step takes 32 elements of a lane, and of each word of scales the next byte."""
    b, tiles = low.builder, tiles_of(op, encoding)
    unscaled = ONE_SCALES if any(scale is not None for scale in scales) else 0
    counts = (tiles.batch * tiles.rows, tiles.batch * tiles.columns)
    sides = []
    for operand, count, format, scale in zip(op.operands[:2], counts, formats, scales, strict=True):
        bytes = runs(scale, count) if scale is not None else [None] * count
        lines = zip(runs(low[operand], count), bytes, strict=True)
        sides.append([scaled_side(low, line, format, some, unscaled) for line, some in lines])
    size = "x".join(map(str, encoding.instr_shape))
    made: list[Value] = []
    for place, total in enumerate(runs(low[op.operands[2]], counts[0] * tiles.columns)):
        row, column = divmod(place, tiles.columns)
        pair = [sides[0][row], sides[1][row // tiles.rows * tiles.columns + column]]
        first, second = reversed(pair) if encoding.is_transposed else pair
        whole = packed(low, total, vector(total[0].type, len(total)))
        for step, (x, y) in enumerate(zip(first.vectors, second.vectors, strict=True)):
            name = f"llvm.amdgcn.mfma.scale.f32.{size}.f8f6f4.{x.type.suffix}.{y.type.suffix}"
            told = [constant(i32, first.format), constant(i32, second.format)]
            for side in (first, second):
                is_scaled = side.words[0].constant is None
                told += [constant(i32, step % 4 if is_scaled else 0), side.words[step // 4 if is_scaled else 0]]
            whole = b.call(name, whole.type, [x, y, whole, *told], attributes="convergent")
        made += b.lanes(whole)
    return tuple(made)


class Tiles(NamedTuple):
    """How many instructions a warp has in each direction."""

    batch: int
    rows: int
    columns: int


def tiles_of(op: Operation, encoding: AmdMfma | AmdWmma) -> Tiles:
    *batch, m, n = shape_of(op.results[0].type)
    *over, down, across = encoding.warps_per_cta
    height, width = encoding.instr_shape[:2]
    count = max(batch[0] // over[0], 1) if batch else 1
    return Tiles(count, max(m // (height * down), 1), max(n // (width * across), 1))


def lower_mfma(low: Lowering, op: Operation, encoding: AmdMfma) -> Registers:
    a, b, c = op.operands
    m, n, k = encoding.instr_shape
    tiles = tiles_of(op, encoding)
    elements = max(k // (WAVE // min(m, n)), 1) if 4 not in (m, n) else 0
    if 4 in (m, n):
        elements = {64: 4, 32: 2, 16: 1}.get(k, 4) if element_type(a.type) != f32 else 1
    is_short = element_type(a.type) == f32 and elements == 2
    given = (b, a) if encoding.is_transposed else (a, b)  # in the order of the call
    kinds = [element_type(operand.type) for operand in given]
    form = mfma_instruction((m, n, k), elements, kinds[0], kinds[1], is_short)
    left, right = runs(low[a], tiles.batch * tiles.rows), runs(low[b], tiles.batch * tiles.columns)
    totals = runs(low[c], tiles.batch * tiles.rows * tiles.columns)
    made: list[Value] = []
    for place, total in enumerate(totals):
        row, column = place // tiles.columns, place % tiles.columns
        batch = row // tiles.rows
        factors = [left[row], right[batch * tiles.columns + column]]
        made += multiply(low, form, encoding, factors, total)
    return tuple(made)


def multiply(
    low: Lowering, form: Instruction, encoding: AmdMfma, factors: list[Registers], total: Registers
) -> list[Value]:
    """One tile, along all of K."""
    b = low.builder
    whole = packed(low, total, vector(total[0].type, len(total)))
    first, second = (
        [packed(low, line[at : at + form.elements], form.factor) for at in range(0, len(line), form.elements)]
        for line in (reversed(factors) if encoding.is_transposed else factors)
    )
    is_shared = 4 in encoding.instr_shape[:2]
    for step, value in enumerate(second):
        small = first[step // 16] if is_shared else first[step]
        settings = (BROADCAST_ALL, step % 16, 0) if is_shared else (0, 0, 0)
        args = [small, value, whole, *(constant(i32, setting) for setting in settings)]
        whole = b.call(f"llvm.amdgcn.{form.name}", whole.type, args, attributes="convergent")
    return b.lanes(whole)


def lower_wmma(low: Lowering, op: Operation, encoding: AmdWmma) -> Registers:
    a, b, c = op.operands
    tiles, element = tiles_of(op, encoding), element_type(a.type)
    elements = 16 if encoding.version == 1 else 8
    left, right = runs(low[a], tiles.batch * tiles.rows), runs(low[b], tiles.batch * tiles.columns)
    made: list[Value] = []
    for place, total in enumerate(runs(low[c], tiles.batch * tiles.rows * tiles.columns)):
        row, column = place // tiles.columns, place % tiles.columns
        lines = [left[row], right[row // tiles.rows * tiles.columns + column]]
        if encoding.is_transpose:
            lines.reverse()
        kinds = [element_type(operand.type) for operand in ((b, a) if encoding.is_transpose else (a, b))]
        made += wave_product(low, element, kinds, lines, total, elements)
    return tuple(made)


def wave_product(
    low: Lowering, element: Attribute, kinds: list[Attribute], lines: list[Registers], total: Registers, elements: int
) -> list[Value]:
    """One tile of wmma, along all of K."""
    b = low.builder
    whole = packed(low, total, vector(total[0].type, len(total)))
    for at in range(0, len(lines[0]), elements):
        parts = [line[at : at + elements] for line in lines]
        if element == i8:
            factor = vector(i32, elements // 4)
            x, y = (packed(low, part, factor) for part in parts)
            sign = constant(i1, 1)
            name = f"wmma.i32.16x16x16.iu8.v8i32.{factor.suffix}"
            whole = b.call(
                f"llvm.amdgcn.{name}", whole.type, [sign, x, sign, y, whole, constant(i1, 0)], attributes="convergent"
            )
            continue
        if element == half:
            factor, name = vector(f16_register, elements), "f16"
        elif element == bf16:
            factor, name = vector(i16, elements), "bf16"
        else:
            factor, name = vector(i32, 2), ".".join(byte_name(kind) for kind in kinds)
        x, y = (packed(low, part, factor) for part in parts)
        full = f"llvm.amdgcn.wmma.f32.16x16x16.{name}.v8f32.{factor.suffix}"
        whole = b.call(full, whole.type, [x, y, whole], attributes="convergent")
    return b.lanes(whole)
