"""Run dots on tensor cores.

    %d = tt.dot %a, %b, %c : ... -> tensor<64x64xf32, #blocked>

                            with mma.sync                          with wgmma
    %c' = convert_layout %c : #blocked -> #mma            %a' = ttg.local_alloc %a
    %a' = convert_layout %a : -> #dot_op<0, #mma>         %b' = ttg.local_alloc %b
    %b' = convert_layout %b : -> #dot_op<1, #mma>         %c' = convert_layout %c : #blocked -> #mma
    %d' = tt.dot %a', %b', %c' : -> #mma                  %d' = ttng.warp_group_dot %a', %b', %c' : -> #mma
    %d  = convert_layout %d' : #mma -> #blocked           %d  = convert_layout %d' : #mma -> #blocked

`mma_choice` says which; a dot that could do better makes a remark with the reason. The right operand of a warp-group dot
is always in shared memory, the left one if it was loaded; a copy is made right behind the value, as early as possible.
`tt.dot_scaled` becomes a dot of f16 or bf16 first (`expand_dot_scaled`). What is left: fp8 operands where `mma.sync` has
no fp8 become f16, and operands of dots without tensor cores get the type of the result.
Stage: TTGIR to TTGIR. Cost: one walk, and the ops around each dot.
"""

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from tilework.ir import tt, ttg, ttng
from tilework.ir.encodings import spread_of, tensor_core_of
from tilework.ir.functions import functions, ops_in_order
from tilework.ir.module_facts import is_reproducible
from tilework.ir.module_facts import target as target_of
from tilework.ir.nesting import behind
from tilework.ir.rewrite import put, recreate, replace_op
from tilework.ir.types import bf16, bit_width, element_type, f16, is_float, shape_of
from tilework.layouts.construct import nvmma_shared
from tilework.layouts.encodings import DotOperand, NvidiaMma
from tilework.layouts.queries import order_for_memory
from tilework.target import Feature, Target
from tilework.transforms.building.conversions import cast, laid_out_there
from tilework.transforms.building.scaled_dot import expand_dot_scaled, laid_out_dots
from tilework.transforms.folding.worklist import Driver
from tilework.transforms.passes import Pass
from tilework.transforms.remarks import remark, warning
from tilework.transforms.ttg.matmul.mma_choice import (
    FP8,
    Dot,
    converted_from,
    dot_of,
    encoding,
    is_from_memory,
    reason_against,
    versions,
    without_sign,
)
from tilework.transforms.ttg.matmul.operand_width import k_width
from tilework.transforms.ttg.matmul.turned_operands import (
    dealt,
    is_copied_turned,
    is_turned,
    left_fragments,
    reads_left,
    turn,
    turned_copy,
)

INSTRUCTIONS = {3: "wgmma", 2: "mma.sync"}


class AccelerateMatmulPass(Pass):
    name = "tritongpu-accelerate-matmul"
    target: str = ""  # of older compilers, whose modules do not say it
    disable_mma_v3: bool = False
    keep_operands: bool = False  # those that wgmma cannot read as they lie are stored transposed, as Triton does

    def run(self, module: ModuleOp) -> None:
        if not (dots := laid_out_dots(module)):
            return
        target = Target.parse(self.target) if self.target else target_of(module)
        dots = [expand_dot_scaled(dot) if type(dot) is tt.DotScaledOp else dot for dot in dots]
        allowed = [version for version in versions(target) if version != 3 or not self.disable_mma_v3]
        in_order = is_reproducible(module)
        # From the last to the first: the end of a chain of dots decides how all of them are laid out.
        for dot in reversed(dots):
            if in_order and is_float(element_type(dot.results[0].type)):
                remark(
                    dot,
                    "this dot does not use tensor cores: they add in an order of their own, and the kernel is reproducible",
                )
                continue
            accelerate(dot, target, allowed, self.keep_operands)
        for function in functions(module):
            Driver({}).run(function)  # dead conversions go, new constants move to the front
        for inner in ops_in_order(*module.regions):
            if type(inner) is tt.DotOp:
                widen_operands(inner, target)


def accelerate(op: Operation, target: Target, allowed: Sequence[int], keep_operands: bool) -> None:
    """Use the best instruction for `op`, and say why if there would be a better one."""
    if (dot := dot_of(op, target)) is None:
        return
    for version in allowed:
        if (reason := reason_against(version, dot)) is None:
            if version == 3:
                to_group_dot(dot, keep_operands)
            else:
                to_warp_dot(dot, encoding(version, dot))
            return
        remark(
            op,
            f"MMA version {version} acceleration not applied due to unsupported shapes or data types. "
            f"{INSTRUCTIONS[version]} cannot be used for this dot: {reason}",
            f"Target {target.label} supports MMA v{version}.",
        )
    lacks = "" if versions(target) else f": {target} has none that are known"
    remark(op, f"this dot does not use tensor cores{lacks}")


def finish(dot: Dot, result: SSAValue) -> None:
    """`result` takes the place of the dot, in the layout that the users know."""
    replace_op(dot.op, ttg.ConvertLayoutOp.make(result, dot.d, dot.op.location))


def to_warp_dot(dot: Dot, mma: NvidiaMma) -> None:
    """`mma.sync`: everything in registers."""
    op = dot.op
    a, b, c = op.operands
    width = k_width(a, b)
    accumulator = laid_out_there(op, c, mma)
    left, right = laid_out_there(op, a, DotOperand(0, mma, width)), laid_out_there(op, b, DotOperand(1, mma, width))
    finish(dot, put(op, recreate(op, operands=(left, right, accumulator), result_types=(accumulator.type,))))


def to_group_dot(dot: Dot, keep_operands: bool) -> None:
    """`wgmma`: B in shared memory, A there or in registers."""
    if not keep_operands and is_turned(dot) and (turned := dot_of(turn(dot.op), dot.target)) is not None:
        dot = turned
    op, mma = dot.op, encoding(3, dot)
    a, b, c = op.operands
    is_read, is_shared = not keep_operands and reads_left(dot), is_from_memory(without_sign(a))
    left = left_fragments(op, mma) if is_read else in_shared_memory(op, a, 0) if is_shared else a
    is_across = not keep_operands and is_copied_turned(dot, mma)
    right = turned_copy(op, mma) if is_across else in_shared_memory(op, b, 1)
    accumulator = laid_out_there(op, dealt(op, c) if is_read else c, mma)
    if not is_shared:
        left = laid_out_there(op, a, DotOperand(0, mma, 32 // bit_width(a.type)))
    new = ttng.WarpGroupDotOp.make(left, right, accumulator, None, op.location)
    new.properties |= op.properties
    new.attributes |= op.attributes
    result = put(op, new)
    finish(dot, dealt(op, result, back=True) if is_read else result)


def in_shared_memory(op: Operation, operand: SSAValue, index: int) -> SSAValue:
    """A copy of `operand`, made where it is known first."""
    value = converted_from(operand)
    layout, shape = spread_of(value.type), shape_of(value.type)
    element = element_type(value.type)
    along = order_for_memory(layout, shape)
    if element != f16 and element != bf16:
        along = k_major(op, index, along, element)
    shared = nvmma_shared(shape, along, bit_width(element), layout.cga_bases)
    alloc = ttg.LocalAllocOp.make(
        value,
        ttg.memdesc_type(shape, element, shared),
        value.op.location if isinstance(value, OpResult) else op.location,
    )
    return put(behind(value), alloc)


def k_major(op: Operation, index: int, along: tuple[int, ...], element: Attribute) -> tuple[int, ...]:
    """`wgmma` can transpose 16-bit elements only; others lie in memory with K contiguous."""
    wanted = (1, 0) if index == 0 else (0, 1)
    if along != wanted:
        side = "left" if index == 0 else "right"
        warning(
            op, f"the {side} operand is not contiguous along K: wgmma needs that for {element}, so it is transposed"
        )
    return wanted


def widen_operands(op: Operation, target: Target) -> None:
    """Give the operands a type that the instruction can multiply."""
    a, _, c = op.operands
    layout, element = tensor_core_of(c.type), element_type(a.type)
    if layout is not None:  # the instruction has been chosen: what it cannot multiply is widened
        if layout.is_ampere and element in FP8 and Feature.MMA_FP8_FAST not in target.features:
            extend(op, f16)
    elif bit_width(a.type) < bit_width(c.type):  # none: multiplied and added
        extend(op, element_type(c.type))


def extend(op: Operation, element: Attribute) -> None:
    """Convert both operands to `element`, exactly."""
    for index in range(2):
        op.operands[index] = cast(op, op.operands[index], element)
