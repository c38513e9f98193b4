"""Run dots on tensor cores.

    %d = tt.dot %a, %b, %c : ... -> tensor<64x64xf32, #blocked>

                            with mma.sync                          with wgmma
    %c' = convert_layout %c : #blocked -> #mma            %a' = ttg.local_alloc %a
    %a' = convert_layout %a : -> #dot_op<0, #mma>         %b' = ttg.local_alloc %b
    %b' = convert_layout %b : -> #dot_op<1, #mma>         %c' = convert_layout %c : #blocked -> #mma
    %d' = tt.dot %a', %b', %c' : -> #mma                  %d' = ttng.warp_group_dot %a', %b', %c' : -> #mma
    %d  = convert_layout %d' : #mma -> #blocked           %d  = convert_layout %d' : #mma -> #blocked

`reason_against` and `encoding` select the instruction; a remark gives the reason why a dot does not use a better one.
The right operand of a warp-group dot is always in shared memory, the left one if it was loaded; the copy follows the
definition directly, as early as possible. `tt.dot_scaled` is first lowered to a dot of f16 or bf16
(`expand_dot_scaled`). fp8 operands become f16 where `mma.sync` has no fp8, and operands of dots without tensor cores
get the type of the result.
Stage: TTGIR to TTGIR. Cost: one walk, and the ops around each dot.
"""

from collections.abc import Iterator, Sequence
from math import ceil, prod

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from tilework.analysis.value_flows import reached
from tilework.ir import arith, tt, ttg, ttng
from tilework.ir.arith import SelectOp
from tilework.ir.effects import is_elementwise
from tilework.ir.encodings import distributed_of, spread_of, tensor_core_of, with_encoding
from tilework.ir.enums import InputPrecision
from tilework.ir.functions import functions, ops_in_order
from tilework.ir.module_facts import is_reproducible, num_warps
from tilework.ir.module_facts import target as target_of
from tilework.ir.nesting import behind, ops_behind
from tilework.ir.rewrite import constant_value, insert_after, move_before, put, recreate, replace_op
from tilework.ir.types import (
    array_values,
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
    tensor_type,
)
from tilework.layouts.construct import nvmma_shared
from tilework.layouts.encodings import Distributed, DotOperand, NvidiaMma, Shared, SwizzledShared
from tilework.layouts.infer import infer_reshape
from tilework.layouts.to_linear import order_for_memory, shape_per_cta
from tilework.light_dataclass import light_dataclass
from tilework.target import Feature, Target
from tilework.transforms.building.emitter import cast, converted_from, laid_out_at_value
from tilework.transforms.building.scaled_dot import expand_dot_scaled, laid_out_dots
from tilework.transforms.folding.worklist import Driver
from tilework.transforms.passes import Pass
from tilework.transforms.remarks import remark, warning

# Select the tensor-core instruction of a `tt.dot`, and the layout of its result.
#
#     64x64 += 64x32 @ 32x64, f16, 4 warps
#         cuda:80    mma.sync (version 2)    warps (2, 2), one instruction is 16x8
#         cuda:90    wgmma (version 3)       warps (4, 1), one instruction is 64x64: 16 rows for each of four warps
#         cuda:75    none: multiply and add
#
# `reason_against` returns why a version cannot be used; the first version of the target without a reason is selected.

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


# The element width of a dot operand when it was loaded from memory.
#
#     %a = tt.load %p : tensor<64x32x!tt.ptr<i8>, #blocked>
#     %x = arith.sitofp %a : tensor<64x32xi8, #blocked> to tensor<64x32xf16, #blocked>       8 bits, not 16
#
# A thread that holds 4 bytes of the narrow type holds 4 adjacent elements along K; the wide operand keeps them together
# (``kWidth = 4``), so that the conversion happens in registers and the layout conversion can be hoisted above it.

VIEWS = frozenset({ttg.ConvertLayoutOp, tt.TransOp, tt.ReshapeOp, tt.JoinOp, tt.BroadcastOp, tt.ExpandDimsOp})
MEMORY_READS = frozenset({tt.LoadOp, tt.DescriptorLoadOp, tt.DescriptorGatherOp})


def loaded_bits(operand: SSAValue) -> int:
    """Return the bits of the narrowest element loaded for `operand`; a join of two halves counts for half a width."""
    bits, joined = bit_width(operand.type), False
    seen: set[Operation] = set()
    queue = [operand]
    while queue:
        value = queue.pop()
        op = value.owner
        if not isinstance(op, Operation) or op in seen:
            continue
        seen.add(op)
        kind = type(op)
        if kind in MEMORY_READS:
            bits = min(bits, bit_width(value.type))
        elif kind is ttg.Fp4ToFpOp:
            bits = min(bits, 4)
        elif kind in VIEWS or is_elementwise(op):
            joined = joined or kind is tt.JoinOp
            queue += op.operands
    return bits // 2 if joined else bits


def k_width(a: SSAValue, b: SSAValue) -> int:
    """Return the number of adjacent elements along K that a thread of `mma.sync` holds, for both operands."""
    return max(32 // min(loaded_bits(a), loaded_bits(b)), 1)


# Dots of 8-bit and 32-bit operands that are MN-major: `wgmma` reads such operands from shared memory only K-major.
#
#     d = dot(a, b, c)     a: M x K, rows along K     b: K x N, rows along N
#
# The *left* operand may come from registers instead, and loading it there may transpose it (`ldmatrix.trans`, or 32-bit
# loads). So the dot is transposed where the right operand is the MN-major one:
#
#     dT = dot(bT, aT, cT)              aT is read as stored, K contiguous; bT: registers
#     %m = ttg.local_alloc %b           #swizzled, rows as they were loaded: the target of asynchronous copies
#     %t = ttg.memdesc_trans %m         N x K
#     %r = ttg.local_load %t            #dot_op<0>
#
# Rows of the dot may be in any order, so they are *permuted* to suit the loads, and those of the result are permuted
# back. `ldmatrix.trans` moves pairs of bytes: a thread gets rows 2r and 2r + 1 where the instruction has r and r + 8.
# 32-bit elements are loaded one by one: rows 0-3 and 16-19 of four values of K are in different banks of what TMA
# writes, rows 0-7 are not. Transposing and permuting the accumulator emits no code: its registers do not move.
#
# Each byte of such an operand passes through shared memory twice (written, read) besides the reads of the instruction.
# Where the left operand cannot be exchanged, because it is MN-major too or is computed (the probabilities of
# attention), the right one is loaded in the same way and stored again, K-major. A thread with adjacent elements of a
# row would store them to as many rows in the same banks: for tiles of 128x256x128 in fp8 that took ten times as long as
# everything else.

SWAP = (1, 0)
WARP_ROWS = 16  # rows of the left operand that a warp holds for one instruction
EXCHANGE = (0, 2, 1, 3, 4)
LOADS = (tt.LoadOp, tt.DescriptorLoadOp)
ROW_ORDERS = {8: (8, 2, 1), 32: (2, 4, 4)}  # by the bits of an element: rows x, y, z come in the order y, x, z


def loaded(operand: SSAValue) -> tuple[SSAValue, bool] | None:
    """Return the loaded value of `operand`, and True if it is transposed after the load; None if it is computed."""
    value, is_swapped = converted_from(operand), False
    while isinstance(owner := value.owner, tt.TransOp) and array_values(owner.properties["order"]) == SWAP:
        value, is_swapped = converted_from(owner.operands[0]), not is_swapped
    return (value, is_swapped) if isinstance(owner, LOADS) else None


def is_mn_major(operand: SSAValue, k_dim: int) -> bool:
    """Return True if `operand` is loaded, MN-major, and has elements that `wgmma` cannot transpose."""
    if bit_width(operand.type) not in (8, 32) or (found := loaded(operand)) is None:
        return False
    value, is_swapped = found
    return order_for_memory(spread_of(value.type), shape_of(value.type))[0] != (1 - k_dim if is_swapped else k_dim)


def should_transpose(dot: Dot) -> bool:
    """Return True if the dot should be transposed: only its right operand is MN-major, and 64 divides N."""
    a, b, _ = dot.op.operands
    return (
        is_mn_major(b, 0)
        and loaded(a) is not None
        and not is_mn_major(a, 1)
        and dot.tile[1] % GROUP_ROWS == 0
        and not feeds_a_dot(dot.op)
    )


def reads_left(dot: Dot) -> bool:
    """Return True if the left operand should come from registers because it is MN-major."""
    return is_mn_major(dot.op.operands[0], 1) and not feeds_a_dot(dot.op)


def transpose_dot(op: Operation) -> Operation:
    """Replace `op` by the dot of the transposed operands."""
    a, b, c = (tt.TransOp.make(converted_from(value), SWAP, op.location) for value in op.operands)
    operands = (b.results[0], a.results[0], c.results[0])
    new = recreate(op, operands=operands, result_types=(c.results[0].type,))
    replace_op(op, a, b, c, new, tt.TransOp.make(new.results[0], SWAP, op.location))
    return new


def left_fragments(op: Operation, mma: NvidiaMma) -> SSAValue:
    """Load the left operand of `op` through shared memory, with its rows permuted."""
    operand = op.operands[0]
    return fragments(op, as_loaded(op, operand), operand.type, mma)


def as_loaded(op: Operation, operand: SSAValue) -> SSAValue:
    """Return an operand in shared memory, with its rows as they were loaded."""
    found = loaded(operand)
    assert found is not None, operand
    value, is_swapped = found
    memory = ttg.memdesc_type(shape_of(value.type), element_type(operand.type), loaded_encoding(value))
    alloc = ttg.LocalAllocOp.make(value, memory, op.location)
    load = value.owner
    assert isinstance(load, LOADS), load
    insert_after(load, alloc)
    view = alloc.results[0]
    return put(behind(view), ttg.MemDescTransOp.make(view, SWAP, op.location)) if is_swapped else view


def fragments(op: Operation, view: SSAValue, type: Attribute, mma: NvidiaMma) -> SSAValue:
    """Load a tile of `type`, rows x K, as a left operand with permuted rows."""
    rows, depth = shape_of(type)
    row_order, layout = ROW_ORDERS[bit_width(type)], DotOperand(0, mma, 32 // bit_width(type))
    view = put(op, ttg.MemDescReshapeOp.make(view, (rows // prod(row_order), *row_order, depth), op.location))
    view = put(op, ttg.MemDescTransOp.make(view, EXCHANGE, op.location))
    view = put(op, ttg.MemDescReshapeOp.make(view, (rows, depth), op.location))
    return put(op, ttg.LocalLoadOp.make(view, with_encoding(type, layout), op.location))


def is_copied_transposed(dot: Dot, mma: NvidiaMma) -> bool:
    """Return True if the right operand is MN-major, and the rows that the warps of a block hold of a left operand
    divide its columns.
    """
    columns = dot.tile[1]
    return (
        is_mn_major(dot.op.operands[1], 0) and columns % (WARP_ROWS * mma.warps_per_cta[0]) == 0 and not mma.cga_bases
    )


def transposed_copy(op: Operation, mma: NvidiaMma) -> SSAValue:
    """Return the right operand of `op` in K-major shared memory: loaded in the layout of a left operand, and stored,
    both without bank conflicts; where the operand was loaded, if a loop around `op` would repeat the copy.
    """
    operand = op.operands[1]
    depth, columns = shape_of(operand.type)
    first = ttg.MemDescTransOp.make(as_loaded(op, operand), SWAP, op.location)
    view = put(op, first)
    across = with_encoding(tensor_type((columns, depth), element_type(operand.type)), None)
    read = permuted_rows(op, fragments(op, view, across, mma), back=True)
    transposed = put(op, tt.TransOp.make(read, SWAP, op.location))
    shared = nvmma_shared((depth, columns), (0, 1), bit_width(operand.type))
    memory = ttg.memdesc_type((depth, columns), element_type(operand.type), shared)
    copy = put(op, ttg.LocalAllocOp.make(transposed, memory, op.location))
    insertion_point = behind(first.operands[0])
    if insertion_point.parent is not op.parent:
        move_before(insertion_point, first, *ops_behind(first, op))
    return copy


def loaded_encoding(value: SSAValue) -> Shared:
    """Return an encoding with rows as they were loaded, swizzled without bank conflicts for fragments, or for TMA."""
    held = spread_of(value.type)
    shape, bits = shape_of(value.type), bit_width(value.type)
    order = order_for_memory(held, shape)
    if bits == 32 or type(value.owner) is tt.DescriptorLoadOp:
        return nvmma_shared(shape, order, bits, held.cga_bases)
    # A matrix of `ldmatrix` has the rows k of bits 2, 3 and either 0 or 1: in distinct groups of 16 bytes.
    wide = shape[order[0]] >= 128
    return SwizzledShared(16, *((2, 8) if wide else (4, 4)), order, held.cga_bases)


def permuted_rows(op: Operation, value: SSAValue, back: bool = False) -> SSAValue:
    """Permute the rows of `value`, an accumulator of `op`, like those of the left operand, or `back`."""
    rows, columns = shape_of(value.type)
    x, y, z = ROW_ORDERS[bit_width(op.operands[0].type)]
    value = reshaped(op, value, (rows // (x * y * z), *((y, x) if back else (x, y)), z, columns))
    value = put(op, tt.TransOp.make(value, EXCHANGE, op.location))
    return reshaped(op, value, (rows, columns))


def reshaped(op: Operation, value: SSAValue, shape: tuple[int, ...]) -> SSAValue:
    type = tensor_type(shape, element_type(value.type))
    encoding = infer_reshape(shape_of(value.type), spread_of(value.type), shape)
    return put(op, tt.ReshapeOp.make(value, with_encoding(type, encoding), op.location))


INSTRUCTIONS = {3: "wgmma", 2: "mma.sync"}


class AccelerateMatmulPass(Pass):
    name = "tritongpu-accelerate-matmul"
    target: str = ""  # for modules of older compilers, which do not name it
    disable_mma_v3: bool = False
    keep_operands: bool = False  # store MN-major operands transposed, as Triton does

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
                remark(dot, "this dot does not use tensor cores, whose order of additions is not reproducible")
                continue
            accelerate(dot, target, allowed, self.keep_operands)
        for function in functions(module):
            Driver({}).run(function)  # removes dead conversions, hoists new constants
        for inner in ops_in_order(*module.regions):
            if type(inner) is tt.DotOp:
                widen_operands(inner, target)


def accelerate(op: Operation, target: Target, allowed: Sequence[int], keep_operands: bool) -> None:
    """Use the best instruction for `op`, and report why better ones are not used."""
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
    """Replace the dot by `result`, in the layout that its users expect."""
    replace_op(dot.op, ttg.ConvertLayoutOp.make(result, dot.d, dot.op.location))


def to_warp_dot(dot: Dot, mma: NvidiaMma) -> None:
    """Rewrite a dot for `mma.sync`, with all operands in registers."""
    op = dot.op
    a, b, c = op.operands
    width = k_width(a, b)
    accumulator = laid_out_at_value(op, c, mma)
    left, right = (laid_out_at_value(op, value, DotOperand(index, mma, width)) for index, value in enumerate((a, b)))
    finish(dot, put(op, recreate(op, operands=(left, right, accumulator), result_types=(accumulator.type,))))


def to_group_dot(dot: Dot, keep_operands: bool) -> None:
    """Rewrite a dot for `wgmma`, with B in shared memory, A there or in registers."""
    if (
        not keep_operands
        and should_transpose(dot)
        and (transposed := dot_of(transpose_dot(dot.op), dot.target)) is not None
    ):
        dot = transposed
    op, mma = dot.op, encoding(3, dot)
    a, b, c = op.operands
    is_read, is_shared = not keep_operands and reads_left(dot), is_from_memory(without_sign(a))
    left = left_fragments(op, mma) if is_read else in_shared_memory(op, a, 0) if is_shared else a
    is_across = not keep_operands and is_copied_transposed(dot, mma)
    right = transposed_copy(op, mma) if is_across else in_shared_memory(op, b, 1)
    accumulator = laid_out_at_value(op, permuted_rows(op, c) if is_read else c, mma)
    if not is_shared:
        left = laid_out_at_value(op, a, DotOperand(0, mma, 32 // bit_width(a.type)))
    new = ttng.WarpGroupDotOp.make(left, right, accumulator, None, op.location)
    new.properties |= op.properties
    new.attributes |= op.attributes
    result = put(op, new)
    finish(dot, permuted_rows(op, result, back=True) if is_read else result)


def in_shared_memory(op: Operation, operand: SSAValue, index: int) -> SSAValue:
    """Copy `operand` to shared memory, directly after its definition."""
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
    """Return the order with K contiguous, which `wgmma` needs unless elements have 16 bits."""
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
    if layout is not None:  # operands that the chosen instruction does not support are widened
        if layout.is_ampere and element in FP8 and Feature.MMA_FP8_FAST not in target.features:
            extend(op, f16)
    elif bit_width(a.type) < bit_width(c.type):  # without tensor cores
        extend(op, element_type(c.type))


def extend(op: Operation, element: Attribute) -> None:
    """Convert both operands to `element`, exactly."""
    for index in range(2):
        op.operands[index] = cast(op, op.operands[index], element)
