"""Fuse ops into the ones that do the same work in one step.

    arith.addf %x, (tt.dot %a, %b, 0)                    -> tt.dot %a, %b, %x
    tt.addptr (tt.addptr %p, 8), 8                       -> tt.addptr %p, 16
    arith.select %c, (tt.load %p, (splat %c), _), %o     -> tt.load %p, (splat %c), %o
    sum over k of x[m, k] * y[k, n], by broadcasting     -> tt.dot %x, %y, 0
    tt.reshape to one dimension, only added up after it  -> tt.reshape ... allow_reorder
    tt.reshape (tt.descriptor_load ...) to fewer dims    -> tt.descriptor_load of that shape

In reproducible modules the first (of floats), the fourth and the fifth do not fire.

A dot with other users is kept, since it would be computed twice; so is a load if memory is written between it and the
select. Offsets are added only where the sum cannot wrap: 64 bits, or constants.
Stage: TTIR to TTIR. Cost: one visit per op.
"""

from typing import cast

from xdsl.ir import Operation, SSAValue

from tilework.analysis.combine_regions import single_op
from tilework.ir import arith, tt
from tilework.ir.arith import SelectOp, binary
from tilework.ir.attr_text import UNIT
from tilework.ir.effects import writes
from tilework.ir.enums import InputPrecision
from tilework.ir.module_facts import is_reproducible
from tilework.ir.nesting import body_of, only_op
from tilework.ir.rewrite import recreate
from tilework.ir.types import Tensor, bit_width, i32_array, int_property, shape_of
from tilework.transforms.common.canonicalize import FOLDS
from tilework.transforms.folding.arith import constant_int, producer
from tilework.transforms.folding.structured import simplify_blocks
from tilework.transforms.folding.tiles import is_zero, splat_of
from tilework.transforms.folding.worklist import Driver, Rewrite, rule_table
from tilework.transforms.passes import function_pass

SMALLEST_DOT = 16  # a dot has at least 16 rows and columns


@function_pass("triton-combine")
def combine(function: Operation) -> None:
    Driver(EXACT_RULES if is_reproducible(function) else RULES).run(function, simplify_blocks)


def combine_dot_and_add(op: Operation, driver: Driver) -> bool:
    """Use the other addend as the accumulator of a dot that starts from zero and has no other use.

    Of two dots the second takes the first, so that they are computed in program order.
    """
    for result, addend in (op._operands[::-1], op._operands):
        dot = producer(result, tt.DotOp)
        if dot is None or not result.has_one_use() or not is_zero(dot._operands[2]):
            continue
        if type(op) is arith.AddfOp and int_property(dot, "maxNumImpreciseAcc") != 0:
            continue
        return driver.replace_with(op, recreate(dot, operands=(*dot._operands[:2], addend)))
    return False


def combine_addptr(op: Operation, driver: Driver) -> bool:
    """Add two offsets of a pointer to one."""
    pointer, outer = op._operands
    if (first := producer(pointer, tt.AddPtrOp)) is None:
        return False
    base, inner = first._operands
    if inner.type != outer.type:
        return False
    if bit_width(inner.type) == 64:
        total = driver.insert(op, binary(arith.AddiOp, inner, outer, op.location)).results[0]
    else:
        a, b = constant_int(inner), constant_int(outer)
        limit = 1 << (bit_width(inner.type) - 1)
        if a is None or b is None or not -limit <= a + b < limit:
            return False
        total = driver.constant(op, a + b, inner.type)
    return driver.replace_with(op, recreate(op, operands=(base, total)))


def combine_select_and_load(op: Operation, driver: Driver) -> bool:
    """Use the other side of the select as the `other` of the load."""
    condition, loaded, other = op._operands
    load = producer(loaded, tt.LoadOp)
    if load is None or len(load._operands) < 2 or splat_of(load._operands[1]) is not condition:
        return False
    if not can_move_to(load, op):
        return False
    operands = (*load._operands[:2], other)
    properties = {**load.properties, "operandSegmentSizes": i32_array(1, 1, 1)}
    return driver.replace_with(op, recreate(load, operands=operands, properties=properties))


def can_move_to(load: Operation, later: Operation) -> bool:
    """Return True if `load` can move to `later`: they are in the same block, with no write in between."""
    op = load.next_op
    while op is not None and op is not later and not writes(op):
        op = op.next_op
    return op is later and not writes(load)


def combine_broadcast_multiply_reduce(op: Operation, driver: Driver) -> bool:
    """Replace ``sum(x[:, :, None] * y[None, :, :], axis=1)`` by a dot."""
    if len(op._operands) != 1 or int_property(op, "axis") != 1 or not is_float_sum(op):
        return False
    if (mul := producer(op._operands[0], arith.MulfOp)) is None:
        return False
    sides = [broadcast_of_expanded(value, axis) for value, axis in zip(mul._operands, (2, 0), strict=True)]
    x, y = sides
    if x is None or y is None:
        return False
    rows, _, columns = shape_of(op._operands[0].type)
    if rows < SMALLEST_DOT or columns < SMALLEST_DOT:
        return False
    zero = driver.constant(op, 0.0, op.results[0].type)
    return driver.replace_with(op, tt.DotOp.make(x, y, zero, op.location, input_precision=InputPrecision.TF32))


def is_float_sum(op: Operation) -> bool:
    """Return True if the reduction adds its two arguments, floats of at most 32 bits."""
    add = only_op(body_of(op))
    return add is not None and type(add) is arith.AddfOp and bit_width(add.results[0].type) <= 32


def broadcast_of_expanded(value: SSAValue, axis: int) -> SSAValue | None:
    """The matrix that `value` repeats along a third dimension at `axis`, or None."""
    broadcast = producer(value, tt.BroadcastOp)
    expand = producer(broadcast._operands[0], tt.ExpandDimsOp) if broadcast is not None else None
    if expand is None or int_property(expand, "axis") != axis or len(shape_of(expand._operands[0].type)) != 2:
        return None
    return expand._operands[0]


def combine_reshape(op: Operation, driver: Driver) -> bool:
    return combine_reshape_and_descriptor_load(op, driver) or relax_order(op, driver) or keep_order(op, driver)


def relax_order(op: Operation, driver: Driver) -> bool:
    """The order of the elements does not matter to a histogram without a mask, nor to a sum, a maximum and so on."""
    result = op.results[0]
    if "allow_reorder" in op.properties or len(shape_of(result.type)) != 1 or result.first_use is None:
        return False
    if not all(is_any_order(use.operation) for use in result.uses):
        return False
    op.properties["allow_reorder"] = UNIT
    return True


def is_any_order(op: Operation) -> bool:
    if type(op) is tt.HistogramOp:
        return len(op.operands) == 1
    return type(op) is tt.ReduceOp and single_op(op.regions[0]) is not None


def keep_order(op: Operation, driver: Driver) -> bool:
    """Keep the order for reductions by any other function, or of several tiles, which layouts might reorder
    differently."""
    uses = (use.operation for use in op.results[0].uses)
    if "allow_reorder" not in op.properties or not any(
        type(user) is tt.ReduceOp and not is_any_order(user) for user in uses
    ):
        return False
    del op.properties["allow_reorder"]
    return True


def combine_reshape_and_descriptor_load(op: Operation, driver: Driver) -> bool:
    """A descriptor load can drop leading dimensions of size 1 itself."""
    (source,) = op._operands
    load = producer(source, tt.DescriptorLoadOp)
    if load is None or not source.has_one_use() or "allow_reorder" in op.properties:
        return False
    before, after = shape_of(source.type), shape_of(op.results[0].type)
    dropped = len(before) - len(after)
    if dropped <= 0 or before[dropped:] != after or any(size != 1 for size in before[:dropped]):
        return False
    new = recreate(load, result_types=(cast(Tensor, op.results[0].type),))
    driver.insert(load, new)
    driver.replace(op, new.results)
    driver.push(load)
    return True


REWRITES: dict[type[Operation], Rewrite] = {
    arith.AddiOp: combine_dot_and_add,
    arith.AddfOp: combine_dot_and_add,
    tt.AddPtrOp: combine_addptr,
    SelectOp: combine_select_and_load,
    tt.ReduceOp: combine_broadcast_multiply_reduce,
    tt.ReshapeOp: combine_reshape,
}
EXACT_REWRITES: dict[type[Operation], Rewrite] = {  # without those that change the order of roundings
    **{kind: REWRITES[kind] for kind in (arith.AddiOp, tt.AddPtrOp, SelectOp)},
    tt.ReshapeOp: combine_reshape_and_descriptor_load,
}
RULES, EXACT_RULES = rule_table(FOLDS, REWRITES), rule_table(FOLDS, EXACT_REWRITES)
