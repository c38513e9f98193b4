"""Reductions and scans: what is not seen must not count.

A function that is one op has a neutral element, which the invisible lanes hold:

    addf -0.0    mulf 1.0    maximumf -inf    maxnumf NaN    andi -1    ...        (x + -0.0 is x, bit by bit, and x + 0.0 is not)

Any other function is told which of its operands are valid, and takes the other one where only one is:

    (a, b) -> f(a, b)      ==>      (a, va, b, vb) -> (va ? (vb ? f(a, b) : a) : b, va | vb)

which is exact for every associative f, also for tuples (argmax); such reductions follow the order of the axis. Padding lies behind what is seen, so scans from the first element on need
nothing of this, and those from the last one do.
"""

from collections.abc import Callable
from math import inf, nan

from xdsl.dialects import arith
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation

from tilework.ir import tt
from tilework.ir.arith_ext import SelectOp, binary
from tilework.ir.module_facts import IN_ORDER
from tilework.ir.nesting import end_of, only_op
from tilework.ir.rewrite import insert_before, recreate
from tilework.ir.tt.inference import reduced_type
from tilework.ir.types import axis_of, bit_width, i1
from tilework.transforms.padding.elements import divisions_in, guard_divisions
from tilework.transforms.padding.padded import Padding

NEUTRAL: dict[type[Operation], Callable[[int], int | float]] = {  # by the number of bits
    arith.AddfOp: lambda bits: -0.0,
    arith.MulfOp: lambda bits: 1.0,
    arith.MaximumfOp: lambda bits: -inf,
    arith.MinimumfOp: lambda bits: inf,
    arith.MaxnumfOp: lambda bits: nan,  # the other operand is the maximum, also when it is -inf or NaN
    arith.MinnumfOp: lambda bits: nan,
    arith.AddiOp: lambda bits: 0,
    arith.MuliOp: lambda bits: 1,
    arith.MaxSIOp: lambda bits: -(1 << bits - 1),
    arith.MinSIOp: lambda bits: (1 << bits - 1) - 1,
    arith.MaxUIOp: lambda bits: 0,
    arith.MinUIOp: lambda bits: -1,
    arith.AndIOp: lambda bits: -1,
    arith.OrIOp: lambda bits: 0,
    arith.XOrIOp: lambda bits: 0,
}


def combine(padding: Padding, op: Operation, counts: bool) -> None:
    """Keep the padding along the axis out of what is seen, where it `counts`; where the function divides, all padding."""
    padded = padding.axes(op.operands[0])
    axes = [axis for axis in padded if axis == axis_of(op)] if counts else []
    if divisions_in(op):
        tell_validity(padding, op, padded)
    elif axes and (only := only_op(op.regions[0].blocks[0])) is not None and type(only) in NEUTRAL:
        (source,) = op.operands
        op.operands[0] = padding.filled(source, axes, NEUTRAL[type(only)](bit_width(source.type)), op)
    elif axes:
        tell_validity(padding, op, axes)


def tell_validity(padding: Padding, op: Operation, axes: list[int]) -> None:
    """Combine pairs of values and whether they are seen along `axes`."""
    count, block = len(op.operands), op.regions[0].blocks[0]
    own = block.insert_arg(i1, count, op.location)
    other = block.insert_arg(i1, 2 * count + 1, op.location)
    guard_divisions(op, block, (own, other), arith.AndIOp)
    end = end_of(block)
    chosen: list[Operation] = []
    for left, right, made in zip(block.args[:count], block.args[count + 1 :], end.operands, strict=False):
        both = SelectOp.make(other, made, left, end.location)
        chosen += (both, SelectOp.make(own, both.results[0], right, end.location))
    valid = binary(arith.OrIOp, own, other, end.location)
    insert_before(end, *chosen, valid)
    end.operands = (*(choice.results[0] for choice in chosen[1::2]), valid.results[0])
    seen = padding.seen(op.operands[0], axes)
    types = [result.type for result in op.results]
    last = reduced_type(seen.type, axis_of(op)) if type(op) is tt.ReduceOp else seen.type  # pyright: ignore
    new = recreate(op, operands=(*op.operands, seen), result_types=(*types, last), regions=op.regions)
    if type(op) is tt.ReduceOp:
        new.attributes[IN_ORDER] = UnitAttr()
    insert_before(op, new)
    for old, result in zip(op.results, new.results, strict=False):
        padding.keep_size(old, result)
        old.replace_all_uses_with(result)
    padding.dead.append(op)
