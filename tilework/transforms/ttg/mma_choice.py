"""Select the tensor-core instruction of a `tt.dot`, and the layout of its result.

    64x64 += 64x32 @ 32x64, f16, 4 warps
        cuda:80    mma.sync (version 2)    warps (2, 2), one instruction is 16x8
        cuda:90    wgmma (version 3)       warps (4, 1), one instruction is 64x64: 16 rows for each of four warps
        cuda:75    none: multiply and add

`reason_against` returns why a version cannot be used; the first version of the target without a reason is selected.
"""

from collections.abc import Iterator
from math import ceil, prod

from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilework.analysis.value_flows import reached
from tilework.ir import arith, tt, ttg, ttng
from tilework.ir.arith import SelectOp
from tilework.ir.encodings import distributed_of, tensor_core_of
from tilework.ir.enums import InputPrecision
from tilework.ir.module_facts import num_warps
from tilework.ir.rewrite import constant_value
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
    shape_of,
)
from tilework.layouts.encodings import Distributed, NvidiaMma
from tilework.layouts.queries import shape_per_cta
from tilework.light_dataclass import light_dataclass
from tilework.target import Feature, Target

FP8 = (f8E4M3FN, f8E5M2)
FNUZ = (f8E4M3FNUZ, f8E5M2FNUZ)  # have the layout of mma.sync, but no NVIDIA instruction
# The operand types of each version, and the accumulators for them.
ACCUMULATORS: dict[int, dict[Attribute, tuple[Attribute, ...]]] = {
    2: {
        f16: (f16, f32),
        bf16: (f32,),
        f32: (f32,),
        f64: (f64,),
        i8: (i32,),
        f8E4M3FN: (f16, f32),
        f8E5M2: (f16, f32),
        f8E4M3FNUZ: (f16, f32),
        f8E5M2FNUZ: (f16, f32),
    },
    3: {f16: (f16, f32), bf16: (f32,), f32: (f32,), i8: (i32,), f8E4M3FN: (f16, f32), f8E5M2: (f16, f32)},
}
VERSIONS = {Feature.WGMMA: 3, Feature.MMA: 2}  # the best first
SMALLEST_PRECISE = 32  # elements of K that wgmma accumulates in reduced precision for fp8
GROUP = 4  # warps that run one wgmma together
GROUP_ROWS = 64
WIDEST = 256
INT8_WIDTHS = (224, 208, 192, 176, 160, 144, 128, 112, 96, 80, 64, 48, 32, 24, 16, 8)


@light_dataclass
class Dot:
    """A `tt.dot` with the facts that determine its instruction."""

    op: Operation
    target: Target
    warps: int
    a: Attribute
    b: Attribute
    d: Attribute
    result: Distributed

    @property
    def tile(self) -> tuple[int, ...]:
        """The part of the result that one block computes."""
        return shape_per_cta(self.result, shape_of(self.d))

    @property
    def k(self) -> int:
        return shape_of(self.a)[-1]


def dot_of(op: Operation, target: Target) -> Dot | None:
    """Return `op` with its facts; None if its result already has a tensor-core layout."""
    a, b, c = op.operands
    result = distributed_of(c.type)
    if result is None or result.is_accumulator:
        return None
    return Dot(op, target, num_warps(op), a.type, b.type, c.type, result)


def versions(target: Target) -> tuple[int, ...]:
    """Return the versions of tensor cores of a target, the best first."""
    return tuple(version for feature, version in VERSIONS.items() if feature in target.features)


def reason_against(version: int, dot: Dot) -> str | None:
    """Return the reason why `dot` cannot run on this version of tensor cores, or None if it can."""
    a, b, d = element_type(dot.a), element_type(dot.b), element_type(dot.d)
    known = ACCUMULATORS[version]
    if a not in known or b not in known:
        return f"it does not multiply {a} and {b}"
    if a is not b and a != b and not (a in FP8 and b in FP8) and not (a in FNUZ and b in FNUZ):
        return f"it does not multiply {a} with {b}"
    if d not in known[a]:
        return f"it does not accumulate {a} in {d}"
    if a == f32 and int_property(dot.op, "inputPrecision") != InputPrecision.TF32:
        return "f32 needs input_precision='tf32'"
    if a == f64 and Feature.MMA_F64 not in dot.target.features:
        return f"{dot.target} has no f64 tensor cores"
    return reason_against_group(dot) if version == 3 else None


def reason_against_group(dot: Dot) -> str | None:
    """Return the reason why the shape does not suit warp groups, or None."""
    if len(dot.tile) != 2:
        return "the dot is batched"
    rows, columns = dot.tile
    least = WIDEST // bit_width(dot.a)
    imprecise = int_property(dot.op, "maxNumImpreciseAcc")
    if dot.warps % GROUP:
        return f"it runs on groups of 4 warps, but num_warps is {dot.warps}"
    if rows % GROUP_ROWS:
        return f"M must be a multiple of 64, but is {rows}"
    if columns % 16:
        return f"N must be a multiple of 16, but is {columns}"
    if dot.k < least:
        return f"K must be at least {least}, but is {dot.k}"
    if element_type(dot.a) in FP8 and element_type(dot.d) == f32 and imprecise < SMALLEST_PRECISE:
        return f"max_num_imprecise_acc must be at least {SMALLEST_PRECISE} for fp8, but is {imprecise}"
    return None


def encoding(version: int, dot: Dot) -> NvidiaMma:
    """Return the layout of the result."""
    return group_encoding(dot) if version == 3 else warp_encoding(dot)


# mma.sync: each warp on its own


def warp_encoding(dot: Dot) -> NvidiaMma:
    batch = (1,) * (len(dot.tile) - 2)
    return NvidiaMma(2, 0, warp_grid(dot), (*batch, 16, 8), cga=dot.result.cga_bases)


def warp_grid(dot: Dot) -> tuple[int, ...]:
    """Return the grid of warps: the same for dots that depend on each other, so that results need not move, else
    square.

    In 64x64 for 4 warps there are 4x8 instructions: two warps side by side leave 4x4, two more below leave 2x4.
    """
    if len(dot.tile) == 3:
        return (dot.warps, 1, 1)
    rows, columns = dot.tile
    if (related := related_dots(dot.op)) is not None:
        return related or ((dot.warps, 1) if rows >= columns else (1, dot.warps))
    grid, left = [1, 1], [ceil(rows / 16), ceil(columns / 8)]
    while prod(grid) < dot.warps:
        axis = 0 if left[0] >= left[1] else 1
        grid[axis] *= 2
        left[axis] = max(left[axis] // 2, 1)
    return (grid[0], grid[1])


def related_dots(op: Operation) -> tuple[int, ...] | None:
    """Return the grid of a dot that `op` is connected with by values of its region; () if that one has none yet.

    None if there is no such dot. A transposition separates dots: after it another grid may be better. The terminator of
    the region connects them: values that a loop yields are used together in the next iteration.
    """
    region, found = op.parent_region(), None

    def connected(one: Operation) -> Iterator[Operation]:
        beside = (other for other in neighbours(one) if type(other) is not tt.TransOp)
        return (other for other in beside if other.parent_region() is region)

    for other in reached([op], connected):
        # a batched one has another grid
        if type(other) is tt.DotOp and other is not op and len(shape_of(other.results[0].type)) == 2:
            result = tensor_core_of(other.results[0].type)
            if result is not None:  # its instruction is chosen already
                return result.warps_per_cta
            found = ()
    return found


def neighbours(op: Operation) -> Iterator[Operation]:
    """Yield the ops that `op` uses or that use it."""
    for value in op.operands:
        if isinstance(value.owner, Operation):
            yield value.owner
    for result in op.results:
        for use in result.uses:
            yield use.operation


# wgmma: four warps together


def group_encoding(dot: Dot) -> NvidiaMma:
    rows, _ = dot.tile
    grid = [GROUP, 1]
    if feeds_a_dot(dot.op):
        grid[0] = dot.warps
    while prod(grid) < dot.warps:
        grid[0 if rows > 16 * grid[0] else 1] *= 2
    shape = (16, instruction_width(dot), WIDEST // bit_width(dot.a))
    return NvidiaMma(3, 0, (grid[0], grid[1]), shape, cga=dot.result.cga_bases)


def instruction_width(dot: Dot) -> int:
    """Return the widest instruction that divides N and leaves work for every warp."""
    rows, columns = dot.tile
    beside = max(dot.warps // max(rows // 16, 1), 1)
    most = max(columns // beside, 8)
    widths = INT8_WIDTHS if element_type(dot.a) == i8 else range(WIDEST, 0, -8)
    return next(width for width in widths if columns % width == 0 and width <= most)


def feeds_a_dot(op: Operation) -> bool:
    """Return True if a dot depends on `op`, or is inside an op that does."""
    return any(type(other) in (tt.DotOp, ttng.WarpGroupDotOp) for other in reached([op], consumers) if other is not op)


def consumers(op: Operation) -> Iterator[Operation]:
    """Yield the users of `op`, and the ops inside it."""
    for result in op.results:
        for use in result.uses:
            yield use.operation
    for region in op.regions:
        for block in region.blocks:
            yield from block.ops


# Operands


def converted_from(value: SSAValue) -> SSAValue:
    """Return `value` before layout conversions."""
    while isinstance(owner := value.owner, ttg.ConvertLayoutOp):
        value = owner.operands[0]
    return value


def is_from_memory(value: SSAValue) -> bool:
    """Return True if `value` is loaded, or a block argument: it may as well be in shared memory as in registers."""
    value = converted_from(value)
    while isinstance(owner := value.owner, tt.TransOp):
        value = converted_from(owner.operands[0])
    return isinstance(owner, Block | tt.LoadOp | tt.DescriptorLoadOp | tt.DescriptorGatherOp)


def without_sign(value: SSAValue) -> SSAValue:
    """Return `value` without a multiplication by a scalar of 1 or -1 (`tt/scaled_maximum.py`)."""
    signed = converted_from(value).owner
    if not isinstance(signed, arith.MulfOp) or not isinstance(signs := signed.operands[1].owner, tt.SplatOp):
        return value
    chosen = signs.operands[0].owner
    if not isinstance(chosen, SelectOp) or [constant_value(side) for side in chosen.operands[1:]] != [-1.0, 1.0]:
        return value
    return signed.operands[0]
