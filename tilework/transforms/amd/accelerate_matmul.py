"""Run dots on the matrix units of AMD GPUs.

    %d = tt.dot %a, %b, %c : ... -> tensor<64x64xf32, #blocked>

    %c1 = ttg.convert_layout %c : ... -> #mma
    %a1 = ttg.convert_layout %a : ... -> #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>
    %b1 = ttg.convert_layout %b : ... -> #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>
    %d1 = tt.dot %a1, %b1, %c1
    %d  = ttg.convert_layout %d1 : ... -> #blocked

`choose` selects the instruction. Scales of `tt.dot_scaled` are operands of an instruction that supports them, or are
multiplied first; 8-bit floats without an instruction become f16; accumulators are f32, i32 or f64. The operands of a
dot without an instruction are cast so that multiply-add works: floats of one type, or pairs of f16 summed in f32.
Stage: TTGIR to TTGIR. Cost: one walk, and the ops around each dot.
"""

from math import ceil
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, OpResult, SSAValue, Use

from tilework.analysis.value_flows import reached
from tilework.ir import tt, ttg
from tilework.ir.attr_text import is_true
from tilework.ir.effects import is_elementwise
from tilework.ir.encodings import distributed_of, encoding_of, is_accumulator, with_encoding
from tilework.ir.enums import InputPrecision, ScaleDotElemType
from tilework.ir.functions import functions
from tilework.ir.module_facts import chosen_target, is_reproducible, num_warps
from tilework.ir.rewrite import insert_before, put, recreate, replace_op
from tilework.ir.types import (
    bf16,
    bit_width,
    element_type,
    f8E4M3FN,
    f8E4M3FNUZ,
    f8E5M2,
    f8E5M2FNUZ,
    f16,
    f32,
    f64,
    i8,
    i32,
    int_property,
    is_float,
    shape_of,
    with_element,
)
from tilework.layouts.amd import WAVE, AmdMfma, AmdWmma, mfma_scales, tile_grid, wide_rows
from tilework.layouts.encodings import DotOperand, Linear
from tilework.light_dataclass import light_dataclass
from tilework.target import Target
from tilework.transforms.building.emitter import cast, laid_out, laid_out_at_value
from tilework.transforms.building.scaled_dot import expand_dot_scaled, laid_out_dots
from tilework.transforms.folding.worklist import Driver
from tilework.transforms.passes import Pass, op_pass
from tilework.transforms.remarks import remark

# Select the matrix instruction of a `tt.dot`, and the layouts of its result and operands.
#
#     128x128 += 128x64 @ 64x128, f16, 4 warps
#         hip:gfx942     mfma 32x32x8        warps (2, 2), 4 adjacent elements along K per lane
#         hip:gfx1100    wmma 16x16x16       warps (2, 2), 16 elements
#
# None means that no instruction fits: the dot is lowered to multiply-adds.

OCP, FNUZ = (f8E4M3FN, f8E5M2), (f8E4M3FNUZ, f8E5M2FNUZ)
Steps = tuple[tuple[int, int], ...]  # (k, elements of a lane), the best first
Forms = dict[int, Steps]  # by rows (or columns) of the instruction; 4 means 4x64 and 64x4

F64: Forms = {16: ((4, 1),)}
F32: Forms = {32: ((2, 1),), 16: ((4, 1),), 4: ((16, 1),)}
XF32: Forms = {32: ((4, 2),), 16: ((8, 2),)}
HALF: Forms = {32: ((8, 4),), 16: ((16, 4),), 4: ((64, 4),)}
WIDE_HALF: Forms = {32: ((16, 8), (8, 4)), 16: ((32, 8), (16, 4)), 4: ((64, 4),)}
SCALED_RUN = 32  # elements that share a scale, and a lane's elements of a scaled instruction
BYTES: Forms = {32: ((16, 8),), 16: ((32, 8),)}
MFMA: dict[str, dict[int, Forms]] = {  # by operand type and version
    "f64": {2: F64, 3: F64, 4: F64},
    "f32": {1: F32, 2: F32, 3: F32, 4: F32},
    "xf32": {3: XF32},
    "f16": {1: HALF, 2: HALF, 3: HALF, 4: WIDE_HALF},
    "bf16": {
        1: {32: ((4, 2),), 16: ((8, 2),), 4: ((32, 2),)},
        2: {32: ((8, 4), (4, 2)), 16: ((16, 4), (8, 2)), 4: ((64, 4),)},
        3: HALF,
        4: WIDE_HALF,
    },
    "fp8": {3: BYTES, 4: {32: ((64, SCALED_RUN), (16, 8)), 16: ((128, SCALED_RUN), (32, 8))}},
    "i8": {
        1: {32: ((8, 4),), 16: ((16, 4),), 4: ((64, 4),)},
        2: {32: ((8, 4),), 16: ((16, 4),), 4: ((64, 4),)},
        3: {**BYTES, 4: ((64, 4),)},
        4: {32: ((32, 16), (16, 8)), 16: ((64, 16), (32, 8)), 4: ((64, 4),)},
    },
}
KINDS: dict[Attribute, str] = {f64: "f64", f32: "f32", f16: "f16", bf16: "bf16", i8: "i8"}
WMMA_SIDE = 16
SCALED_WIDTH = 16
DOTS = (tt.DotOp, tt.DotScaledOp)
SCALED_FORMATS = (ScaleDotElemType.E2M1, ScaleDotElemType.E4M3, ScaleDotElemType.E5M2)


@light_dataclass
class Choice:
    """The layout of a result, the elements of a lane along K, and the types of operands and accumulator."""

    layout: AmdMfma | AmdWmma
    k_width: int
    operand: Attribute | None  # the type to which operands are cast; None: no cast
    total: Attribute
    is_scaled: bool = False  # a dot without scales uses a scaled instruction


def version_of(target: Target, unit: str) -> int:
    """Return the version of the ``mfma`` or ``wmma`` unit of a target; 0 if it has none."""
    return next((version for version in (4, 3, 2, 1) if f"{unit}{version}" in target.features), 0)


def total_of(kind: str) -> Attribute:
    return i32 if kind == "i8" else f64 if kind == "f64" else f32


def choose(op: Operation, target: Target, side: int = 0, kpack: int = 1) -> Choice | None:
    """Return the instruction for `op`; None if its result has one already, or there is none."""
    a, b, c = (operand.type for operand in op.operands)
    result = distributed_of(c)
    if result is None or result.is_accumulator:
        return None
    if version := version_of(target, "mfma"):
        return choose_mfma(op, version, a, b, c, side, kpack)
    version = version_of(target, "wmma")
    return choose_wmma(op, version, a, b, c) if version else None


def kind_of(op: Operation, a: Attribute, b: Attribute, version: int) -> tuple[str, Attribute | None] | None:
    """Return the kind of mfma for these element types, and the type to which operands are cast (None: no cast)."""
    left, right = element_type(a), element_type(b)
    if left in OCP + FNUZ and right in OCP + FNUZ:
        own = {3: FNUZ, 4: OCP}.get(version, ())
        return ("fp8", None) if left in own and right in own else ("f16", f16)
    if left != right:
        return ("f16", f16) if max(bit_width(left), bit_width(right)) < 16 else ("f32", f32)
    if left not in KINDS:
        return None
    precision = int_property(op, "inputPrecision")
    is_short = left == f32 and precision == InputPrecision.TF32 and version in MFMA["xf32"]
    return ("xf32" if is_short else KINDS[left]), None


def sides(m: int, n: int, kind: str, wanted: int) -> tuple[int, int] | None:
    """Return the rows and columns of the instruction for a result of m by n."""
    if wanted:
        return (wanted, wanted)
    least = min(m, n)
    if least >= 32:
        return (16, 16) if kind == "f64" else (32, 32)
    if least >= 16:
        return (16, 16)
    return None if least < 4 else (64, 4) if m >= 64 else (4, 64) if n >= 64 else None


def choose_mfma(
    op: Operation, version: int, a: Attribute, b: Attribute, c: Attribute, side: int, kpack: int
) -> Choice | None:
    if (found := kind_of(op, a, b, version)) is None:
        return None
    kind, operand = found
    (m, n), k = shape_of(c)[-2:], shape_of(a)[-1]
    forms = MFMA[kind].get(version)
    if forms is None or (tile := sides(m, n, kind, side)) is None or min(tile) not in forms:
        return None
    steps = forms[min(tile)]
    depth, base = next((step for step in steps if k >= step[0]), steps[-1])
    if k % depth:
        return None
    is_tail = is_chain_tail(op)
    bits = bit_width(operand) if operand is not None else bit_width(a)
    width = (4 if bits == 16 else base) if is_tail else base * kpack
    width = SCALED_WIDTH if base == SCALED_RUN else width
    grid = warp_grid(op, tile, is_tail)
    beside, is_transposed = (1,) * len(grid), tile != (4, 64)
    if version == 4 and tile == (16, 16) and bits == 16 and len(grid) == 2:  # two adjacent instructions of a chain
        if is_chain_head(op) and n == 16 and grid[1] == 1 and m >= 32 * grid[0]:
            beside = (2, 1)
        elif is_chain_head(op, 1) and m == 16 and grid[0] == 1 and n >= 32 * grid[1]:
            beside, is_transposed = (1, 2), False
    layout = AmdMfma(
        version,
        grid,
        (*tile, depth),
        is_transposed,
        tiles_per_warp=beside,
        element_bit_width=64 if kind == "f64" else 32,
        cga=result_cga(c),
    )
    return Choice(layout, width, operand, total_of(kind), base == SCALED_RUN)


def choose_scaled(op: tt.DotScaledOp, target: Target, side: int = 0) -> Choice | None:
    """Return the scaled instruction, if the operands have its formats, packed along K, and enough of K."""
    formats = [ScaleDotElemType(format.value.data) for format in (op.a_elem_type, op.b_elem_type)]
    scales = [scale for scale in (op.a_scale, op.b_scale) if scale is not None]
    (*batch, m, n), depth = shape_of(op.c.type), shape_of(op.a.type)[-1] * (1 + (formats[0] is ScaleDotElemType.E2M1))
    tile = sides(m, n, "fp8", side)
    if version_of(target, "mfma") != 4 or batch or tile is None or min(tile) < 16 or not scales:
        return None
    step = SCALED_RUN * WAVE // min(tile)
    is_along_k = is_true(op.lhs_k_pack) and is_true(op.rhs_k_pack)
    has_bytes = all(element_type(scale.type) == i8 for scale in scales)
    if depth % step or not is_along_k or not has_bytes or not set(formats) <= set(SCALED_FORMATS):
        return None
    layout = AmdMfma(4, warp_grid(op, tile, False), (*tile, step), True, cga=result_cga(op.c.type))
    return Choice(layout, SCALED_WIDTH, None, f32)


def choose_wmma(op: Operation, version: int, a: Attribute, b: Attribute, c: Attribute) -> Choice | None:
    left, right = element_type(a), element_type(b)
    operand: Attribute | None = None
    if left in OCP + FNUZ and right in OCP + FNUZ:
        operand = None if version > 1 and left in OCP and right in OCP else f16
    elif left != right or left not in (f16, bf16, i8):
        return None
    if min(shape_of(c)[-2:]) < WMMA_SIDE:  # K may be smaller
        return None
    grid = warp_grid(op, (WMMA_SIDE, WMMA_SIDE), is_chain_tail(op))
    depth = wmma_depth(version, bit_width(operand or left), shape_of(a)[-1], left == i8)
    layout = AmdWmma(version, True, tile_grid(grid), cga=result_cga(c), instr_shape=(WMMA_SIDE, WMMA_SIDE, depth))
    return Choice(layout, 16 if version == 1 else 8, operand, i32 if left == i8 else f32)


def wmma_depth(version: int, bits: int, k: int, is_whole: bool) -> int:
    """Return K of an instruction."""
    if version < 3:
        return WMMA_SIDE
    return 32 if bits == 16 else 128 if k >= 128 and not is_whole else 64


def result_cga(c: Attribute) -> tuple[tuple[int, ...], ...]:
    layout = distributed_of(c)
    return layout.cga_bases if layout is not None else ()


def warp_grid(op: Operation, tile: tuple[int, int], is_tail: bool) -> tuple[int, ...]:
    """Return the grid of warps: one column where another dot uses the result; else nearly square in instructions."""
    shape, warps = shape_of(op.results[0].type), num_warps(op)
    if len(shape) == 3:
        return (warps, 1, 1)
    (m, n), (rows, columns) = shape, tile
    if is_chain_head(op):
        return (warps, 1)
    if is_tail:
        down = min(warps, ceil(m / rows))
        return (down, warps // down)
    down, across = 1, 1
    while down * across < warps:
        if m // (2 * rows) // down >= n // columns // across and down < m // rows:
            down *= 2
        else:
            across *= 2
    return (across, down) if across * columns > n else (down, across)


def is_chain_head(op: Operation, side: int = 0) -> bool:
    """Return True if the left (or right, 1) operand of a later dot of the region depends on this one."""
    region = op.parent_region()

    def uses(one: Operation) -> list[Use]:
        found = (use for result in one.results for use in result.uses)
        return [use for use in found if use.operation.parent_region() is region]

    def users(one: Operation) -> list[Operation]:
        return [use.operation for use in uses(one) if type(use.operation) not in DOTS]

    behind = reached([op], users)
    return any(type(use.operation) in DOTS and use.index == side for one in behind for use in uses(one))


def is_chain_tail(op: Operation) -> bool:
    """Return True if the left operand depends on a dot of the region."""
    region = op.parent_region()
    needed = reached([op.operands[0]], lambda value: value.op.operands if isinstance(value, OpResult) else ())
    return any(type(op := value.owner) in DOTS and op.parent_region() is region for value in needed)  # pyright: ignore


FORMATS: dict[Attribute, ScaleDotElemType] = {f8E4M3FN: ScaleDotElemType.E4M3, f8E5M2: ScaleDotElemType.E5M2}
EMULATED = "missing native support for fp8 variant on current architecture; emulated with fp16 so low performance"


class AmdAccelerateMatmulPass(Pass):
    name = "tritonamdgpu-accelerate-matmul"
    target: str = ""
    matrix_instruction_size: int = 0  # rows and columns; 0: by the shape
    kpack: int = 1

    def run(self, module: ModuleOp) -> None:
        if not (dots := laid_out_dots(module)):
            return
        target, in_order = chosen_target(module, self.target), is_reproducible(module)
        for op in dots:
            if in_order and is_float(element_type(op.results[0].type)):
                op = expand_dot_scaled(op) if isinstance(op, tt.DotScaledOp) else op
                if not is_of_one_type(op):
                    widen(op)
                continue
            if isinstance(op, tt.DotScaledOp):
                if (found := choose_scaled(op, target, self.matrix_instruction_size)) is not None:
                    accelerate(op, found)
                    continue
                op = expand_dot_scaled(op)
            found = choose(op, target, self.matrix_instruction_size, self.kpack)
            if found is not None:
                if found.operand is not None and bit_width(op.operands[0].type) == 8:
                    remark(op, EMULATED)
                accelerate(op, found)
                continue
            if version := version_of(target, "wmma"):
                remark(op, no_wmma(op, version))
            if not can_multiply_add(op, target):
                widen(op)
        for function in functions(module):
            Driver({}).run(function)  # removes dead conversions, hoists new constants


def no_wmma(op: Operation, version: int) -> str:
    """Return why a dot remains one of multiply-adds."""
    (m, n), k = shape_of(op.results[0].type)[-2:], shape_of(op.operands[0].type)[-1]
    a, b, c = (element_type(operand.type) for operand in op.operands[:3])
    return (
        f"no matching matrix core intrinsic for wmma version {version} with the shape [{m}, {n}, {k}] and element types"
        f" A='{a}', B='{b}', C='{c}': the dot is one of multiply-adds"
    )


def accelerate(op: Operation, found: Choice) -> None:
    """Convert the dot to the layouts of its instruction."""
    c, given = op.operands[2], op.results[0].type
    total = cast(op, laid_out_at_value(op, c, found.layout), found.total)
    operands = []
    for index, operand in enumerate(op.operands[:2]):
        moved = laid_out_at_value(op, operand, DotOperand(index, found.layout, found.k_width))
        operands.append(moved if found.operand is None else cast(op, moved, found.operand))
    if found.is_scaled:
        a, b = (FORMATS[element_type(operand.type)] for operand in operands)
        new: Operation = tt.DotScaledOp.make(*operands, total, None, None, a, b, False, op.location)
    else:
        new = recreate(op, operands=(*operands, total, *scales(op, found)), result_types=(total.type,))
    insert_before(op, new)
    moved = laid_out_at_value(op, new.results[0], encoding_of(given))
    replace_op(op, results=(cast(op, moved, element_type(given)),))


def scales(op: Operation, found: Choice) -> list[SSAValue]:
    """Return the scales of a dot, in the layout of its instruction."""
    if not isinstance(op, tt.DotScaledOp):
        return []
    layout: Any = found.layout  # an `AmdMfma`: wmma has no scales
    given = [(index, scale) for index, scale in enumerate((op.a_scale, op.b_scale)) if scale is not None]
    return [
        laid_out_at_value(op, scale, Linear(mfma_scales(layout, index, shape_of(scale.type)))) for index, scale in given
    ]


def is_of_one_type(op: Operation) -> bool:
    """Return True if operands and accumulator are floats of one type that the GPU computes with."""
    kinds = {element_type(operand.type) for operand in op.operands[:3]}
    return len(kinds) == 1 and kinds <= {f16, f32, f64}


def can_multiply_add(op: Operation, target: Target) -> bool:
    """Return True if the dot can be lowered to multiply-adds as it is: of integers, floats of one native type, or pairs
    with a wider accumulator.
    """
    a, b, c = (element_type(operand.type) for operand in op.operands[:3])
    is_even = shape_of(op.operands[0].type)[-1] % 2 == 0
    pairs = {f16: "dot2", bf16: "dot2_bf16"}
    return (
        not is_float(c) or is_of_one_type(op) or (a == b and c == f32 and is_even and pairs.get(a) in target.features)
    )


def widen(op: Operation) -> None:
    """Widen the operands to f16 if all values fit, else to f32."""
    kinds = [element_type(operand.type) for operand in op.operands[:3]]
    given = op.results[0].type
    common = f16 if all(bit_width(kind) <= 16 and kind != bf16 for kind in kinds) else f32
    operands = [wider(op, operand, common) for operand in op.operands[:3]]
    new = put(op, recreate(op, operands=operands, result_types=(with_element(given, common),)))
    replace_op(op, results=(cast(op, new, element_type(given)),))


def wider(op: Operation, value: SSAValue, element: Attribute) -> SSAValue:
    """Convert `value` to a wider float type before `op`."""
    if element_type(value.type) == element:
        return value
    return put(op, tt.FpToFpOp.make(value, with_element(value.type, element), op.location))


# Store dot results in their own layout: convert the pointers and the mask, not the values.
#
#     %v = ttg.convert_layout %acc : #mma -> #blocked          %q = ttg.convert_layout %p : #blocked -> #mma
#     tt.store %p, %v : #blocked                               tt.store %q, %acc : #mma
#
# This also works through a chain of unary elementwise ops, each used once, which is then computed in the layout of the
# dot. On CDNA4 lanes first exchange half of their 16-bit results, by one instruction for two registers, so that each
# lane stores 16 bytes.
# Stage: TTGIR to TTGIR. Cost: one walk.


@op_pass("tritonamdgpu-optimize-epilogue", tt.StoreOp)
def store_as_computed(store: Operation) -> None:
    chain: list[Operation] = []
    value = store.operands[1]
    while True:
        if not isinstance(value, OpResult) or len(tuple(value.uses)) != 1:
            return
        op = value.op
        if type(op) is ttg.ConvertLayoutOp:
            break
        if not is_elementwise(op) or len(op.operands) != 1 or len(op.results) != 1:
            return
        chain.append(op)
        value = op.operands[0]
    source = value.op.operands[0]
    layout = distributed_of(source.type)
    if layout is None or not is_accumulator(source.type):
        return
    for op in reversed(chain):
        source = put(op, recreate(op, operands=(source,), result_types=(with_encoding(op.results[0].type, layout),)))
    pointers, _, *mask = store.operands
    wider = wide_rows(layout, shape_of(source.type), bit_width(source.type))
    where = laid_out(store, pointers, wider or layout)
    source = source if wider is None else laid_out(store, source, wider)
    others = [laid_out(store, operand, wider or layout) for operand in mask]
    replace_op(store, recreate(store, operands=(where, source, *others)))
