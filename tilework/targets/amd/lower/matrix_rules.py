"""`tt.dot` on matrix units: mfma of a wave of 64, wmma of one of 32.

    %d = call <16 x float> @llvm.amdgcn.mfma.f32.32x32x8f16(
             <4 x half> %b, <4 x half> %a, <16 x float> %c, i32 0, i32 0, i32 0)

The registers of a result are those of its instructions in the order of its layout; those of an operand are a run along
K for each row (A) or column (B) of tiles. With a transposed layout the operands of the instruction are exchanged, and
it computes the transposed tile. K is taken in the order of registers, the same for both operands, which a sum allows.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from xdsl.ir import Attribute, Operation, SSAValue

from tilework.ir import amdg, tt
from tilework.ir.encodings import dot_operand_of, encoding_of, layout_of
from tilework.ir.enums import ScaleDotElemType
from tilework.ir.types import bf16, element_type, f8E4M3FN, f8E4M3FNUZ, f32, i8, shape_of
from tilework.ir.types import f16 as half
from tilework.ir.types import f64 as double
from tilework.layouts.amd import WAVE, AmdMfma, AmdWmma, TileGrid, without
from tilework.layouts.to_linear import to_linear
from tilework.targets.amd.lower import lowers
from tilework.targets.gpu.axes import lane_is
from tilework.targets.gpu.convert import lower_convert
from tilework.targets.gpu.dot_rules import multiply_add
from tilework.targets.gpu.lowering import Lowering, Registers
from tilework.targets.gpu.packing import pack_registers
from tilework.targets.llvm.types import Type, i1, i16, i32, i64, vector
from tilework.targets.llvm.types import bf16 as brain
from tilework.targets.llvm.types import f16 as f16_register
from tilework.targets.llvm.types import f32 as f32_register
from tilework.targets.llvm.types import f64 as f64_register
from tilework.targets.llvm.values import Value, constant

E4M3 = (f8E4M3FN, f8E4M3FNUZ)
SCALED = {ScaleDotElemType.E4M3: 0, ScaleDotElemType.E5M2: 1, ScaleDotElemType.E2M1: 4}  # format codes
SCALED_RUN = 32  # elements of a lane in such an instruction
ONE_SCALES = 0x7F7F7F7F
BROADCAST_ALL = 4  # broadcast the small operand of one block to all 16


class Instruction(NamedTuple):
    """A matrix instruction: its name, the type of a lane's part of an operand, and the elements in it."""

    name: str
    factor: Type
    elements: int


def byte_name(element: Attribute) -> str:
    return "fp8" if element in E4M3 else "bf8"


def mfma_instruction(
    shape: tuple[int, int, int], elements: int, a: Attribute, b: Attribute, is_short: bool
) -> Instruction:
    """Return the mfma for tiles of `shape` with so many elements per lane."""
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
    """Use matrix instructions if the accumulator has their layout."""
    encoding = encoding_of(op.results[0].type)
    if isinstance(encoding, AmdMfma):
        return lower_mfma(low, op, encoding)
    return lower_wmma(low, op, encoding) if isinstance(encoding, AmdWmma) else multiply_add(low, op)


@lowers(amdg.InThreadTransposeOp)
def lower_in_thread_transpose(low: Lowering, op: Operation) -> Registers:
    """Permute registers."""
    return lower_convert(low, op)


def runs(registers: Registers, count: int) -> list[Registers]:
    """Split registers into `count` equal parts."""
    each = len(registers) // count
    return [registers[first : first + each] for first in range(0, len(registers), each)]


def packed(low: Lowering, values: Sequence[Value], type: Type) -> Value:
    """Pack elements into the operand type of an instruction."""
    return low.builder.bitcast(low.builder.joined(values), type)


def one_tile(encoding: AmdMfma | AmdWmma, operand: int | None = None) -> Callable[[Attribute], int]:
    """Return a function from a type to the registers of one tile of a result, or of one line of an operand along K."""
    if isinstance(encoding, AmdMfma):
        ones = (1,) * encoding.rank
        alone: AmdMfma | AmdWmma = replace(encoding, warps_per_cta=ones, tiles_per_warp=ones, cga=())
    else:
        alone = replace(encoding, tiles=TileGrid(), own_rank=encoding.rank, cga=())

    def registers(type: Attribute) -> int:
        *batch, rows, columns = shape_of(type)
        height, width = encoding.instr_shape[:2]
        ones = (1,) * len(batch)
        if operand is None:
            return to_linear(alone, (*ones, height, width)).in_size("register")
        shape = (height, columns) if operand == 0 else (rows, width)
        given = dot_operand_of(type)
        assert given is not None, "an operand of a dot has the layout of one"
        return to_linear(replace(given, parent=alone), (*ones, *shape)).in_size("register")

    return registers


def starts_of(type: Attribute, registers: Callable[[Attribute], int]) -> list[tuple[int, ...]]:
    """Return where the runs of registers of a tensor begin, in the first lane of the first warp."""
    layout = layout_of(type)
    images = layout.images("register")
    return [layout.vector(images[first]) for first in range(0, len(images), registers(type))]


def copies_along_k(type: Attribute) -> dict[str, int]:
    """Return the bits of registers and lanes in which an operand of small K holds copies of the elements before them,
    which an instruction must not add again: those that a larger K would use.
    """
    given, shape = dot_operand_of(type), list(shape_of(type))
    assert given is not None, "an operand of a dot has the layout of one"

    def unused() -> set[tuple[str, int]]:
        columns = to_linear(given, tuple(shape)).by_in
        return {(name, bit) for name in ("register", "lane") for bit, to in enumerate(columns[name]) if not to}

    found = least = unused()
    while True:
        shape[given.k_dim] *= 2
        if len(now := unused()) == len(least):
            copies = found - least
            return {name: sum(1 << bit for of, bit in copies if of == name) for name in ("register", "lane")}
        least = now


class Tiles:
    """The tiles of a dot that a warp computes, each along all of K by ``multiply(first, second, accumulator)``, with
    the operands in the order of the call.
    """

    def __init__(self, low: Lowering, op: Operation, encoding: AmdMfma | AmdWmma) -> None:
        self.low, self.op = low, op
        if isinstance(op, tt.DotScaledOp) and any(any(copies_along_k(one.type).values()) for one in op.operands[:2]):
            raise low.refuse(op, "a scaled dot whose K is smaller than the layout of its operands covers")
        self.tiles = starts_of(op.results[0].type, one_tile(encoding))
        operands = enumerate(op.operands[:2])
        self.line_starts = [starts_of(operand.type, one_tile(encoding, index)) for index, operand in operands]
        self.is_transposed = encoding.is_transposed if isinstance(encoding, AmdMfma) else encoding.is_transpose
        given = reversed(op.operands[:2]) if self.is_transposed else op.operands[:2]
        self.kinds = [element_type(operand.type) for operand in given]

    def lines(self, index: int) -> list[Registers]:
        """Return the rows of tiles of A (0), or the columns of B (1)."""
        operand = self.op.operands[index]
        return runs(self.without_copies(operand), len(self.line_starts[index]))

    def without_copies(self, operand: SSAValue) -> Registers:
        """Return the registers of an operand with zeros for the copies that it holds because its K is small."""
        low, copies = self.low, copies_along_k(operand.type)
        registers = list(low[operand])
        zero = constant(registers[0].type, 0)
        if lanes := copies["lane"]:
            is_first = lane_is(low, lanes, 0)
            registers = [low.builder.select(is_first, value, zero) for value in registers]
        return tuple(zero if at & copies["register"] else value for at, value in enumerate(registers))

    def line_of(self, index: int, start: tuple[int, ...]) -> int:
        """Return the index of the row of A, or of the column of B, for the tile that starts there."""
        k = len(start) - 1 - index
        return next(at for at, line in enumerate(self.line_starts[index]) if without(line, k) == without(start, k))

    def result(self, lines: Sequence[Sequence[Any]], multiply: Callable[[Any, Any, Value], Value]) -> Registers:
        made: list[Value] = []
        totals = runs(self.low[self.op.operands[2]], len(self.tiles))
        for start, total in zip(self.tiles, totals, strict=True):
            first, second = (lines[index][self.line_of(index, start)] for index in (0, 1))
            first, second = (second, first) if self.is_transposed else (first, second)
            whole = packed(self.low, total, vector(total[0].type, len(total)))
            made += self.low.builder.lanes(multiply(first, second, whole))
        return tuple(made)


class ScaledSide(NamedTuple):
    """An operand of scaled instructions, along all of K of a tile: vectors, their format code, registers of four
    scales.
    """

    vectors: list[Value]
    format: int
    packed_scales: list[Value]


def scaled_side(low: Lowering, line: Registers, format: int, scales: Registers | None, unscaled: int) -> ScaledSide:
    each = SCALED_RUN // 2 if format == SCALED[ScaleDotElemType.E2M1] else SCALED_RUN
    vectors = [packed(low, line[at : at + each], vector(i32, each // 4)) for at in range(0, len(line), each)]
    packed_scales = pack_registers(low, scales) if scales is not None else [constant(i32, unscaled)] * len(vectors)
    return ScaledSide(vectors, format, packed_scales)


@lowers(tt.DotScaledOp)
def lower_dot_scaled(low: Lowering, op: Operation) -> Registers:
    """Emit scaled mfma of 8-bit and 4-bit floats (gfx950); `accelerate_matmul` decomposes all other scaled dots.

    Each step takes 32 elements of a lane, and the next byte of each register of scales.
    """
    encoding = encoding_of(op.results[0].type)
    if not isinstance(op, tt.DotScaledOp) or not isinstance(encoding, AmdMfma):
        raise low.refuse(op, "tl.dot_scaled in a layout of no matrix instruction")
    formats = [SCALED[ScaleDotElemType(format.value.data)] for format in (op.a_elem_type, op.b_elem_type)]
    scales = [low[scale] if scale is not None else None for scale in (op.a_scale, op.b_scale)]
    tiles, unscaled = Tiles(low, op, encoding), ONE_SCALES if any(scale is not None for scale in scales) else 0
    sides: list[list[ScaledSide]] = []
    for index, (format, scale) in enumerate(zip(formats, scales, strict=True)):
        lines = tiles.lines(index)
        bytes = runs(scale, len(lines)) if scale is not None else [None] * len(lines)
        sides.append([scaled_side(low, line, format, some, unscaled) for line, some in zip(lines, bytes, strict=True)])
    size = "x".join(map(str, encoding.instr_shape))

    def multiply(first: ScaledSide, second: ScaledSide, whole: Value) -> Value:
        for step, (x, y) in enumerate(zip(first.vectors, second.vectors, strict=True)):
            name = f"llvm.amdgcn.mfma.scale.f32.{size}.f8f6f4.{x.type.suffix}.{y.type.suffix}"
            settings = [constant(i32, first.format), constant(i32, second.format)]
            for side in (first, second):
                is_scaled = side.packed_scales[0].constant is None
                settings += [
                    constant(i32, step % 4 if is_scaled else 0),
                    side.packed_scales[step // 4 if is_scaled else 0],
                ]
            whole = low.builder.call(name, whole.type, [x, y, whole, *settings], attributes="convergent")
        return whole

    return tiles.result(sides, multiply)


def lower_mfma(low: Lowering, op: Operation, encoding: AmdMfma) -> Registers:
    m, n, k = encoding.instr_shape
    tiles, is_shared = Tiles(low, op, encoding), 4 in (m, n)
    is_single = tiles.kinds[0] == f32
    elements = max(k // (WAVE // min(m, n)), 1)
    if is_shared:
        elements = 1 if is_single else {64: 4, 32: 2, 16: 1}.get(k, 4)
    form = mfma_instruction((m, n, k), elements, tiles.kinds[0], tiles.kinds[1], is_single and elements == 2)

    def factors(line: Registers) -> list[Value]:
        return [packed(low, line[at : at + form.elements], form.factor) for at in range(0, len(line), form.elements)]

    def multiply(first: Registers, second: Registers, whole: Value) -> Value:
        small_ones = factors(first)
        for step, value in enumerate(factors(second)):
            small = small_ones[step // 16 if is_shared else step]
            settings = (BROADCAST_ALL, step % 16, 0) if is_shared else (0, 0, 0)
            args = [small, value, whole, *(constant(i32, setting) for setting in settings)]
            whole = low.builder.call(f"llvm.amdgcn.{form.name}", whole.type, args, attributes="convergent")
        return whole

    return tiles.result([tiles.lines(0), tiles.lines(1)], multiply)


WMMA_DEPTHS = {1: (16,), 2: (16,), 3: (32, 64, 128)}


def lower_wmma(low: Lowering, op: Operation, encoding: AmdWmma) -> Registers:
    """Emit wmma 16x16x16 of versions 1 and 2, or of version 3 with a larger K."""
    version, (m, n, k) = encoding.version, encoding.instr_shape
    tiles, elements = Tiles(low, op, encoding), k if version == 1 else k // 2
    is_whole, is_half = tiles.kinds[0] == i8, tiles.kinds[0] in (half, bf16)
    has_depth = k in WMMA_DEPTHS[version] and (version < 3 or (k == 32) == is_half) and not (k == 128 and is_whole)
    if not low.gpu.has(f"wmma{version}") or (m, n) != (16, 16) or not has_depth:
        raise low.refuse(op, f"a dot in the layout of wmma {m}x{n}x{k}, version {version},")
    no, yes, plain = constant(i1, 0), constant(i1, 1), constant(i16, 0)
    if is_whole:
        factor, name = vector(i32, elements // 4), f"i32.{m}x{n}x{k}.iu8.v8i32"
    elif is_half:
        kind = tiles.kinds[0]
        factor = vector(f16_register if kind == half else brain if version == 3 else i16, elements)
        name = f"f32.{m}x{n}x{k}.{'f16' if kind == half else 'bf16'}.v8f32"
    else:
        factor = vector(i32, elements // 4)
        name = f"f32.{m}x{n}x{k}.{'.'.join(map(byte_name, tiles.kinds))}.v8f32"
    name = f"llvm.amdgcn.wmma.{name}.{factor.suffix}"

    def arguments(x: Value, y: Value, whole: Value) -> list[Value]:
        """Return operands, their signs, and from version 3 on how the accumulator is changed and what is reused."""
        if is_whole:
            return [yes, x, yes, y, whole, no, *([no, no] if version == 3 else [])]
        if version < 3:
            return [x, y, whole]
        return [no, x, no, y, plain, whole, no, no] if is_half else [x, y, plain, whole, no, no]

    def multiply(first: Registers, second: Registers, whole: Value) -> Value:
        for at in range(0, len(first), elements):
            x, y = (packed(low, line[at : at + elements], factor) for line in (first, second))
            whole = low.builder.call(name, whole.type, arguments(x, y, whole), attributes="convergent")
        return whole

    return tiles.result([tiles.lines(0), tiles.lines(1)], multiply)
