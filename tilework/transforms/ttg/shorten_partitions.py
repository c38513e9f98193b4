"""Save instructions in warp-specialized loops that tensor cores wait for, such as attention with short rows.

Two warps per scheduler hide little latency: an iteration takes as long as its own dependence chain. Where the cost
model says that tensor cores are not the limit, row sums are combined across lanes after the loop, and the rescaling of
an accumulator by row factors is marked: a branch skips it where all factors of a warp are 1
(`targets/nvidia/lower/emit.py`). Where several blocks share a multiprocessor, the branch costs more than it
saves.
Stage: TTGIR, after the last pass that chooses layouts. Cost: one walk.
"""

from itertools import groupby
from math import prod

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue

from tilework.analysis.cost import TENSOR, loop_cost
from tilework.ir import arith, scf, tt, ttg, ttng
from tilework.ir.encodings import distributed_of, is_accumulator, layout_of, spread_of, with_encoding
from tilework.ir.functions import ops_in_order
from tilework.ir.module_facts import is_reproducible
from tilework.ir.nesting import body_of, end_of, only_op
from tilework.ir.rewrite import constant_value, recreate, replace_all_uses
from tilework.ir.scf import also_carry
from tilework.ir.types import axis_of, element_type, f32, i32, shape_of, tensor_type, with_element
from tilework.layouts.encodings import Slice
from tilework.layouts.infer import infer_reshape
from tilework.light_dataclass import light_dataclass
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.common.dce import cut_dead_loop_arguments
from tilework.transforms.passes import function_pass
from tilework.transforms.ttg.optimize_thread_locality import combine_behind
from tilework.transforms.ttg.pipeline.loops import body_ops, loops_in

# Row sums that a loop carries, rescaled or not: each thread carries its own part, and lanes are combined after the
# loop.
#
#     %n = scf.for .. iter_args(%t = %init) {              %m = scf.for .. iter_args(%p = [%init, 0, 0, 0]) {
#       %s = reduce add %x, axis 1 : 128x64 -> 128           %v = tt.reshape %x : 128x8x4x2         (registers, lanes,
#                                                                                                    registers)
#       %r = arith.mulf %t, %f : 128               ==>       %s = reduce add, axes 3 and 1 : 128x4  without shuffles
#       %u = arith.addf %r, %s                               %u = arith.addf (arith.mulf %p, %f), %s : 128x4
#       scf.yield %u                                         scf.yield %u
#     }                                                    }
#                                                          %n = reduce add %m, axis 1 : 128
#
# A row factor is the same for all parts. Only for tensor-core layouts, where a row is in four lanes.


@light_dataclass
class RowSum:
    """A carried row sum: its index in the loop, the summed value, and the factor of the accumulator."""

    position: int
    reduce: Operation
    update: Operation
    factor: SSAValue | None


def carry_row_sums(loop: Operation) -> None:
    """Rewrite the row sums that `loop` carries; their old arguments become dead."""
    for found in [found for op in body_ops(loop) if (found := row_sum(loop, op)) is not None]:
        carry_parts(loop, found)


def row_sum(loop: Operation, reduce: Operation) -> RowSum | None:
    """Return the row sum by which `reduce` updates a value that `loop` carries, if it has no other use."""
    if type(reduce) is not tt.ReduceOp or len(reduce.operands) != 1 or type(loop) is not scf.ForOp:
        return None
    source, (op, body) = reduce.operands[0].type, (only_op(reduce.regions[0].block), body_of(loop))
    if type(op) is not arith.AddfOp or len(shape_of(source)) != 2 or axis_of(reduce) != 1 or not is_accumulator(source):
        return None
    update = reduce.results[0].get_user_of_unique_use()
    if element_type(source) != f32 or update is None or type(update) is not arith.AddfOp or update.parent is not body:
        return None
    uses = list(update.results[0].uses)
    if len(uses) != 1 or uses[0].operation is not end_of(body):
        return None
    argument = body.args[1 + uses[0].index]
    before = update.operands[update.operands[0] is reduce.results[0]]
    if before is argument and argument.get_user_of_unique_use() is update:
        return RowSum(uses[0].index, reduce, update, None)
    scaled = before.owner
    if (
        not isinstance(scaled, arith.MulfOp)
        or argument not in scaled.operands
        or argument.get_user_of_unique_use() is not scaled
    ):
        return None
    factor = scaled.operands[scaled.operands[0] is argument]
    return (
        RowSum(uses[0].index, reduce, update, factor) if scaled.results[0].get_user_of_unique_use() is update else None
    )


def runs_of_columns(source: SSAValue) -> list[tuple[bool, int]]:
    """Return the runs of column bits along registers (True) and along threads, as sizes, the highest first."""
    held = {vector[1] for name, vectors in layout_of(source.type).bases if name == "register" for vector in vectors}
    bits = [1 << bit for bit in reversed(range(shape_of(source.type)[1].bit_length() - 1))]
    return [(is_held, prod(2 for _ in run)) for is_held, run in groupby(bits, held.__contains__)]


def carry_parts(loop: Operation, found: RowSum) -> None:
    """Carry a part for each thread, and add them up after `loop`."""
    source, region = found.reduce.operands[0], found.reduce.regions[0]
    rows, encoding, runs = shape_of(source.type)[0], distributed_of(source.type), runs_of_columns(source)
    if encoding is None or [is_held for is_held, _ in runs].count(False) != 1:
        return
    shape = (rows, *(size for _, size in runs))
    viewed = with_encoding(tensor_type(shape, f32), infer_reshape(shape_of(source.type), encoding, shape))
    code = Emitter(found.reduce.location)
    part = code.append(tt.ReshapeOp.make(source, viewed, code.loc))
    for axis in reversed([axis for axis, (is_held, _) in enumerate(runs, 1) if is_held]):
        part = code.append(tt.ReduceOp.make((part,), axis, region.clone(), code.loc))
    before = Emitter(loop.location)
    (total,) = also_carry(loop, [first_part(before, loop.operands[3 + found.position], part.type)])
    before.insert_before(loop)
    if found.factor is not None:
        total = code.binary(arith.MulfOp, total, spread(code, found.factor, part.type))
    total = code.binary(arith.AddfOp, total, part)
    code.insert_before(found.update)
    whole = combine_behind(loop, found.position, total, 1, found.reduce)
    replace_all_uses(loop.results[found.position], whole.results[0])


def spread(code: Emitter, row: SSAValue, type_: Attribute, axis: int = 1) -> SSAValue:
    """Broadcast a vector along a new axis."""
    parent = spread_of(type_)
    row = code.append(ttg.ConvertLayoutOp.make(row, with_encoding(row.type, Slice(axis, parent)), code.loc))
    column = code.append(tt.ExpandDimsOp.make(row, axis, code.loc))
    return code.append(tt.BroadcastOp.make(column, with_element(type_, element_type(row.type)), code.loc))


def first_part(code: Emitter, initial: SSAValue, type_: Attribute) -> SSAValue:
    """Return the initial parts: the first is the initial value, the others are 0."""
    zero, parts = code.constant(0.0, type_), shape_of(type_)[1:]
    if constant_value(initial) == 0.0:
        return zero
    parent = spread_of(type_)
    row = with_encoding(tensor_type(parts, i32), Slice(0, parent))
    columns = recreate(tt.MakeRangeOp.make(0, *parts, code.loc), result_types=(row,))
    column = spread(code, code.append(columns), type_, axis=0)
    is_first = code.compare("eq", column, code.constant(0, column.type))
    return code.select(is_first, spread(code, initial, type_), zero)


SKIP_ONES = "tilework.skip-ones"
SUM = 2  # the index of the accumulator operand


@function_pass("tritongpu-shorten-partitions")
def shorten_partitions(function: Operation) -> None:
    special = [op for op in ops_in_order(*function.regions) if type(op) is ttg.WarpSpecializeOp]
    for loop in (loop for op in special for loop in loops_in(op)):
        shorten(loop)
    if special:
        cut_dead_loop_arguments(function)


def shorten(loop: Operation) -> None:
    dots = [op for op in body_ops(loop) if type(op) is ttng.WarpGroupDotOp]
    cost = loop_cost(loop) if dots else None
    if cost is None or cost.limit == TENSOR:
        return
    if not is_reproducible(loop):
        carry_row_sums(loop)
    for dot in dots:
        scaled = dot.operands[SUM].owner
        if type(scaled) is arith.MulfOp and scaled.parent is dot.parent:
            scaled.attributes[SKIP_ONES] = UnitAttr()
