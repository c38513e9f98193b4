"""Sums over rows that a loop carries, rescaled or not: each thread carries its own part, and lanes meet behind the loop.

    %n = scf.for .. iter_args(%t = %init) {                  %m = scf.for .. iter_args(%p = [%init, 0, 0, 0]) {
      %s = reduce add %x, axis 1 : 128x64, #mma -> 128         %v = tt.reshape %x : 128x8x4x2           registers, lanes, registers
      %r = arith.mulf %t, %f : 128                   ==>       %s = reduce add, axes 3 and 1 : 128x4    no lane moves
      %u = arith.addf %r, %s                                   %u = arith.addf (arith.mulf %p, %f), %s : 128x4
      scf.yield %u                                             scf.yield %u
    }                                                        }
                                                             %n = reduce add %m, axis 1 : 128

A factor of the row is the same for its parts. For layouts of tensor cores, where the parts of a row are in four lanes.
"""

from dataclasses import dataclass
from itertools import groupby
from math import prod

from xdsl.dialects import arith, scf
from xdsl.ir import Attribute, Operation, SSAValue

from tilework.ir import tt, ttg
from tilework.ir.encodings import distributed_of, is_accumulator, layout_of, spread_of, with_encoding
from tilework.ir.nesting import body_of, end_of, only_op
from tilework.ir.rewrite import constant_value, recreate, replace_all_uses
from tilework.ir.scf_ext import also_carry
from tilework.ir.types import axis_of, element_type, f32, i32, shape_of, tensor_type, with_element
from tilework.layouts.encodings import Slice
from tilework.layouts.reshape import infer_reshape
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.ttg.carried_reductions import combine_behind
from tilework.transforms.ttg.pipeline.loops import body_ops


@dataclass(frozen=True)
class RowSum:
    """A carried sum: which value of the loop, what is summed, and the factor of the sum so far."""

    position: int
    reduce: Operation
    update: Operation
    factor: SSAValue | None


def carry_row_sums(loop: Operation) -> None:
    """Rewrite the sums that `loop` carries; their old arguments stay behind, dead."""
    for found in [found for op in body_ops(loop) if (found := row_sum(loop, op)) is not None]:
        carry_parts(loop, found)


def row_sum(loop: Operation, reduce: Operation) -> RowSum | None:
    """What `reduce` adds to a value that `loop` carries, if nothing else sees that."""
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
    """The columns of `source` cut into those that registers hold and those that threads do, in turn, the highest first."""
    held = {vector[1] for name, vectors in layout_of(source.type).bases if name == "register" for vector in vectors}
    bits = [1 << bit for bit in reversed(range(shape_of(source.type)[1].bit_length() - 1))]
    return [(is_held, prod(2 for _ in run)) for is_held, run in groupby(bits, held.__contains__)]


def carry_parts(loop: Operation, found: RowSum) -> None:
    """Carry a part for each thread, and add them up behind `loop`."""
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
    """A vector repeated along an axis that it does not have."""
    parent = spread_of(type_)
    row = code.append(ttg.ConvertLayoutOp.make(row, with_encoding(row.type, Slice(axis, parent)), code.loc))
    column = code.append(tt.ExpandDimsOp.make(row, axis, code.loc))
    return code.append(tt.BroadcastOp.make(column, with_element(type_, element_type(row.type)), code.loc))


def first_part(code: Emitter, initial: SSAValue, type_: Attribute) -> SSAValue:
    """What a loop starts with: the first part is all of it."""
    zero, parts = code.constant(0.0, type_), shape_of(type_)[1:]
    if constant_value(initial) == 0.0:
        return zero
    parent = spread_of(type_)
    row = with_encoding(tensor_type(parts, i32), Slice(0, parent))
    numbers = recreate(tt.MakeRangeOp.make(0, *parts, code.loc), result_types=(row,))
    place = spread(code, code.append(numbers), type_, axis=0)
    is_first = code.compare("eq", place, code.constant(0, place.type))
    return code.select(is_first, spread(code, initial, type_), zero)
