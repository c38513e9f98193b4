"""How often loops run, and the loop that `fuse_nested_loops.py` makes of two: in 32 bits, though the product need not fit.

Where it may not, a loop around the new one does so many outer iterations at a time that it does, mostly all of them:

    scf.for %i = 0 to %n {                  scf.for %s = 0 to %n step (2**31 - 1) / %m : i64 {
      scf.for %j = 0 to %m { ... }    ==>     scf.for %i = %s to min(%n, %s + (2**31 - 1) / %m) {
    }                                           scf.for %j = 0 to %m { ... }
                                              }
                                            }

A counter of 64 bits takes twice as many instructions in each iteration; it is left for inner loops that may have more than 2**31 - 1 of them.
"""

from xdsl.dialects import arith
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from tilework.analysis.integer_ranges import IntegerRanges
from tilework.ir.arith_ext import convert
from tilework.ir.functions import function_around
from tilework.ir.rewrite import constant_value, insert_before, replace_values
from tilework.ir.scf_ext import make_for, make_yield
from tilework.ir.types import bit_width, i32, i64
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.building.iterations import iterations

MOST = (1 << 31) - 1


def counts_by_bound(loop: Operation) -> bool:
    """The iterations of `loop` are its upper bound, or that divided by its step: a negative one is none."""
    lower, upper, _ = loop.operands[:3]
    return constant_value(lower) == 0 and constant_value(upper) is None


def trip_count(code: Emitter, loop: Operation) -> SSAValue:
    """``ceil((upper - lower) / step)``: a number without a sign, or, if `counts_by_bound`, negative for an empty loop too."""
    lower, upper, step = loop.operands[:3]
    if not counts_by_bound(loop):
        return iterations(code, lower, upper, step)
    return upper if constant_value(step) == 1 else code.binary(arith.CeilDivSIOp, upper, step)


def rounds_at_once(outer: Operation, inner: Operation) -> SSAValue | None:
    """How many iterations of `outer` are done at a time, as an i32: with those of `inner` they are below 2**31. None: 64 bits are needed.

    If that may not be all of them, `outer` comes into a loop that does it several times.
    """
    ranges = IntegerRanges(function_around(outer))
    most_outer, most_inner = (most_iterations(ranges, loop) for loop in (outer, inner))
    if outer.operands[0].type != i32 or inner.operands[0].type != i32 or most_inner > MOST:
        return None
    before, lower, step = Emitter(outer.location), outer.operands[0], outer.operands[2]
    count = iterations(before, *outer.operands[:3])
    if most_outer * most_inner <= MOST:
        before.insert_before(outer)
        return count
    one = before.constant(1, i32)
    length = before.binary(arith.MaxSIOp, trip_count(before, inner), one)
    number = before.binary(arith.DivUIOp, before.constant(MOST, i32), length)
    further = before.binary(arith.MuliOp, number, step)
    count, at_once = (widened(before, number, i64, arith.ExtUIOp) for number in (count, number))
    zero, initial = before.constant(0, i64), (lower, *outer.operands[3:])
    around, inside = Block(arg_types=(i64, *(value.type for value in initial))), Emitter(outer.location)
    done, first, *carried = around.args
    now = inside.binary(arith.MinSIOp, inside.binary(arith.SubiOp, count, done), at_once)
    rounds = inside.append(convert(arith.TruncIOp, now, i32, outer.location))
    following = inside.binary(arith.AddiOp, first, further)
    loop = make_for(zero, count, at_once, initial, Region(around), outer.location)
    before.insert_before(outer)
    insert_before(outer, loop)
    replace_values(outer.results, loop.results[1:])
    outer.detach()
    outer.operands = (first, *outer.operands[1:3], *carried)
    around.add_ops((*inside.ops, outer))
    around.add_op(make_yield((following, *outer.results), outer.location))
    return rounds


def most_iterations(ranges: IntegerRanges, loop: Operation) -> int:
    """More are not possible; one, if there are none."""
    (least, _), (_, most), (step, _) = map(ranges.of, loop.operands[:3])
    return max(1, -((least - most) // max(step, 1)))


def widened(code: Emitter, count: SSAValue, type: Attribute, extension: type[Operation]) -> SSAValue:
    """A number of iterations in a wider type; a constant stays one."""
    if count.type == type:
        return count
    if isinstance(known := constant_value(count), int):
        return code.constant(known % (1 << bit_width(count.type)) if extension is arith.ExtUIOp else known, type)
    return code.append(convert(extension, count, type, code.loc))
