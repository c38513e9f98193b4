"""Take the maximum of dot results before scaling them, so that the scaling of each becomes part of a multiply-add.

    for ..:                                                q2 = q * (scale < 0 ? -1 : 1);  positive = |scale|
      s = dot(q, k) * scale                                for ..:
      m = max(s, 1)                              ==>         d = dot(q2, k)
      p = exp2(s - m[:, None])                               m = max(d, 1) * positive
                                                             p = exp2(d * positive - m[:, None])

Multiplication by the sign of the scale is exact, and rounding is monotonic, so the maxima are the same. (A scale of 0
times an infinite result is a NaN, which a maximum ignores and a multiplication does not; `s` has it in any case.) This
saves one instruction per score of attention. Fires for dots that start at 0 and whose left operand, like the scale,
comes from outside of the loop, if the scaled result is only used by one maximum and by subtractions. Other dots with
the same left operand, such as those of masked tiles in a later loop, get `q2` and `positive` too: shared memory has
room for only one of them.
Stage: TTIR to TTIR. Cost: one walk.
"""

from typing import NamedTuple

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type
from xdsl.ir import Operation, SSAValue

from tilework.ir import arith, math, tt
from tilework.ir.arith import cmpf, unary
from tilework.ir.functions import ops_in_order
from tilework.ir.nesting import is_inside, only_op, owner_of
from tilework.ir.rewrite import constant_value, defining_op, insert_after, replace_uses
from tilework.ir.scf import loop_around
from tilework.ir.types import element_type, is_tensor, shape_of
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.passes import function_pass

MAXIMA = (arith.MaxnumfOp, arith.MaximumfOp)
FACTORS = (Float16Type, BFloat16Type, Float32Type)


@function_pass("tt-scaled-maximum")
def scaled_maximum(function: Operation) -> None:
    dots = [op for op in ops_in_order(*function.regions) if type(op) is tt.DotOp]
    found = {dot: scaling for dot in dots if (scaling := scaling_of(dot)) is not None}
    lefts = {dot: dot.operands[0] for dot in dots}
    for scaling in found.values():
        alike = [dot for dot in dots if lefts[dot] is scaling.left]
        maximum = maximum_of(scaling)
        if maximum is not None and all(dot in found and found[dot].scale is scaling.scale for dot in alike):
            for dot in alike:
                move_sign(found[dot])
            scale_maximum(scaling, maximum)


class Scaling(NamedTuple):
    """A dot in a loop whose result is scaled; the left operand and the scale come from outside."""

    loop: Operation
    dot: Operation
    left: SSAValue
    scaled: Operation
    scale: SSAValue


def scaling_of(dot: Operation) -> Scaling | None:
    """The pattern that starts at a dot."""
    loop, (result,), left = loop_around(dot), dot.results, dot.operands[0]
    scaled = result.get_user_of_unique_use()
    if loop is None or scaled is None or type(scaled) is not arith.MulfOp or constant_value(dot.operands[2]) != 0:
        return None
    factor = scaled.operands[0] if scaled.operands[1] is result else scaled.operands[1]
    splat = defining_op(factor)
    if splat is None or type(splat) is not tt.SplatOp or not isinstance(element_type(left.type), FACTORS):
        return None
    scale = splat.operands[0]
    if any(is_inside(owner, loop) for value in (left, scale) if (owner := owner_of(value)) is not None):
        return None
    return Scaling(loop, dot, left, scaled, scale)


def maximum_of(scaling: Scaling) -> Operation | None:
    """The maximum of the scaled result over an axis, if its only other use is a subtraction."""
    (scaled,) = scaling.scaled.results
    users = [use.operation for use in scaled.uses]
    maxima = [user for user in users if type(user) is tt.ReduceOp and len(user.operands) == 1]
    if len(maxima) != 1 or type(only_op(maxima[0].regions[0].block)) not in MAXIMA:
        return None
    users.remove(maxima[0])
    if not users or any(type(user) is not arith.SubfOp or user.operands[0] is not scaled for user in users):
        return None
    return maxima[0] if is_tensor(maxima[0].results[0].type) else None


def move_sign(scaling: Scaling) -> None:
    """Move the sign of the scale to the left operand, once; `cse` merges what several dots share."""
    loop, dot, left, scaled, scale = scaling
    if dot.operands[0] is not left:
        return
    code = Emitter(dot.location)
    element = element_type(left.type)
    is_negative = code.append(cmpf("olt", scale, code.constant(0.0, scale.type), code.loc))
    sign = code.select(is_negative, code.constant(-1.0, element), code.constant(1.0, element))
    dot.operands[0] = code.binary(arith.MulfOp, left, code.splat(sign, shape_of(left.type)))
    positive = code.append(unary(math.AbsFOp, scale, code.loc))
    whole = code.splat(positive, shape_of(scaled.results[0].type))
    code.insert_before(loop)
    for index, operand in enumerate(scaled.operands):
        if operand is not dot.results[0]:
            scaled.operands[index] = whole


def scale_maximum(scaling: Scaling, maximum: Operation) -> None:
    """Move the scaling behind the maximum."""
    (result,) = maximum.results
    maximum.operands[0] = scaling.dot.results[0]
    code = Emitter(maximum.location)
    positive = code.append(unary(math.AbsFOp, scaling.scale, code.loc))
    scaled = code.binary(arith.MulfOp, result, code.splat(positive, shape_of(result.type)))
    insert_after(maximum, *code.ops)
    replace_uses(result, scaled, lambda user: user is not scaled.owner)
