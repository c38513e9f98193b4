"""Run dots on the matrix units of AMD GPUs.

    %d = tt.dot %a, %b, %c : ... -> tensor<64x64xf32, #blocked>

    %c1 = ttg.convert_layout %c : ... -> #mma
    %a1 = ttg.convert_layout %a : ... -> #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>
    %b1 = ttg.convert_layout %b : ... -> #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>
    %d1 = tt.dot %a1, %b1, %c1
    %d  = ttg.convert_layout %d1 : ... -> #blocked

`matrix_choice` says which instruction; scales of `tt.dot_scaled` go where an instruction that knows them has them, or are multiplied before; 8-bit floats that it does not multiply become f16, sums are in f32, i32 or f64.
A dot without one has operands that can be multiplied and added: floats of one type, or pairs of f16 summed in f32.
Stage: TTGIR to TTGIR. Cost: one walk, and the ops around each dot.
"""

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from tilework.ir import tt
from tilework.ir.encodings import encoding_of
from tilework.ir.enums import ScaleDotElemType
from tilework.ir.functions import functions
from tilework.ir.module_facts import is_reproducible
from tilework.ir.module_facts import target as target_of
from tilework.ir.rewrite import insert_before, put, recreate, replace_op
from tilework.ir.types import (
    bf16,
    bit_width,
    element_type,
    f8E4M3FN,
    f8E5M2,
    f16,
    f32,
    f64,
    is_float,
    shape_of,
    with_element,
)
from tilework.layouts.amd import mfma_scales
from tilework.layouts.encodings import DotOperand, Linear
from tilework.target import Target
from tilework.transforms.amd.matrix_choice import Choice, choose, choose_scaled
from tilework.transforms.building.conversions import cast, laid_out_there
from tilework.transforms.building.scaled_dot import expand_dot_scaled, laid_out_dots
from tilework.transforms.folding.worklist import Driver
from tilework.transforms.passes import Pass
from tilework.transforms.remarks import remark

FORMATS: dict[Attribute, ScaleDotElemType] = {f8E4M3FN: ScaleDotElemType.E4M3, f8E5M2: ScaleDotElemType.E5M2}
EMULATED = "missing native support for fp8 variant on current architecture; emulated with fp16 so low performance"


class AmdAccelerateMatmulPass(Pass):
    name = "tritonamdgpu-accelerate-matmul"
    matrix_instruction_size: int = 0  # rows and columns; 0: by the shape
    kpack: int = 1

    def run(self, module: ModuleOp) -> None:
        if not (dots := laid_out_dots(module)):
            return
        target, in_order = target_of(module), is_reproducible(module)
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
                if found.factor is not None and bit_width(op.operands[0].type) == 8:
                    remark(op, EMULATED)
                accelerate(op, found)
            elif not can_multiply_add(op, target):
                widen(op)
        for function in functions(module):
            Driver({}).run(function)  # dead conversions go, new constants move to the front


def accelerate(op: Operation, found: Choice) -> None:
    """Put the dot into the layouts of its instruction."""
    c, given = op.operands[2], op.results[0].type
    total = cast(op, laid_out_there(op, c, found.layout), found.total)
    factors = []
    for index, operand in enumerate(op.operands[:2]):
        moved = laid_out_there(op, operand, DotOperand(index, found.layout, found.k_width))
        factors.append(moved if found.factor is None else cast(op, moved, found.factor))
    if found.is_scaled:
        a, b = (FORMATS[element_type(factor.type)] for factor in factors)
        new: Operation = tt.DotScaledOp.make(*factors, total, None, None, a, b, False, op.location)
    else:
        new = recreate(op, operands=(*factors, total, *scales(op, found)), result_types=(total.type,))
    insert_before(op, new)
    moved = laid_out_there(op, new.results[0], encoding_of(given))
    replace_op(op, results=(cast(op, moved, element_type(given)),))


def scales(op: Operation, found: Choice) -> list[SSAValue]:
    """The scales that a dot has, where its instruction wants them."""
    if not isinstance(op, tt.DotScaledOp):
        return []
    given = [(index, scale) for index, scale in enumerate((op.a_scale, op.b_scale)) if scale is not None]
    return [
        laid_out_there(op, scale, Linear(mfma_scales(found.layout, index, shape_of(scale.type))))
        for index, scale in given
    ]


def is_of_one_type(op: Operation) -> bool:
    """Whether operands and sums are floats of one type that is computed with."""
    kinds = {element_type(operand.type) for operand in op.operands[:3]}
    return len(kinds) == 1 and kinds <= {f16, f32, f64}


def can_multiply_add(op: Operation, target: Target) -> bool:
    """Whether the dot needs no instruction: integers, floats of one type that is computed with, or pairs with a wider sum."""
    a, b, c = (element_type(operand.type) for operand in op.operands[:3])
    is_even = shape_of(op.operands[0].type)[-1] % 2 == 0
    pairs = {f16: "dot2", bf16: "dot2_bf16"}
    return (
        not is_float(c) or is_of_one_type(op) or (a == b and c == f32 and is_even and pairs.get(a) in target.features)
    )


def widen(op: Operation) -> None:
    """Multiply and add in f16 if every value is one, else in f32."""
    kinds = [element_type(operand.type) for operand in op.operands[:3]]
    given = op.results[0].type
    common = f16 if all(bit_width(kind) <= 16 and kind != bf16 for kind in kinds) else f32
    operands = [wider(op, operand, common) for operand in op.operands[:3]]
    new = put(op, recreate(op, operands=operands, result_types=(with_element(given, common),)))
    replace_op(op, results=(cast(op, new, element_type(given)),))


def wider(op: Operation, value: SSAValue, element: Attribute) -> SSAValue:
    """`value` as floats that hold it, in front of `op`."""
    if element_type(value.type) == element:
        return value
    return put(op, tt.FpToFpOp.make(value, with_element(value.type, element), op.location))
