"""Matrix products: zeros along K, of both operands, because 0 times infinity is no 0; other rows and columns are not seen.

A load that may give anything in the invisible lanes gives zeros there, so that it stays a copy to shared memory that a loop
starts early. Any other value is selected. In kernels that are reproducible the zeros of one operand are negative: adding 0 * 0 to a
sum of -0 makes it +0, and adding -0 * 0 changes nothing.
"""

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from tilework.ir import tt
from tilework.ir.module_facts import is_reproducible
from tilework.ir.rewrite import constant, constant_value, defining_op, insert_before
from tilework.ir.types import array_values, element_type, i32_array, is_float
from tilework.numerics.formats import of_ir
from tilework.transforms.padding.padded import Padding

UNIT_EXPONENT = 127  # the byte of a scale that is 1
TWO_NEGATIVE_ZEROS = 0x88 - 0x100  # of 4 bits each, as a byte: what integers are in a scaled dot
KEEPS_ZERO = frozenset(
    {
        arith.ExtFOp,
        arith.TruncFOp,
        arith.SIToFPOp,
        arith.UIToFPOp,
        arith.ExtSIOp,
        arith.ExtUIOp,
        arith.TruncIOp,
        tt.FpToFpOp,
        tt.BitcastOp,
    }
)


def pad_dot(padding: Padding, op: Operation) -> None:
    zeros = {place: zero for place in (0, 1) if (zero := negative_zero(op, place)) is not None}
    signed = list(zeros) if is_reproducible(op) else []
    for place, axis in ((0, -1), (1, -2)):
        axis += len(padding.size(op.operands[place]))
        if axis not in padding.axes(op.operands[place]):
            continue
        if signed or not is_zero_along(padding, op.operands[place], axis):
            zero = zeros[place] if place in signed[:1] else 0
            op.operands[place] = padding.filled(op.operands[place], [axis], zero, op)


def negative_zero(op: Operation, place: int) -> int | float | None:
    """-0 as an element of an operand, if there is one."""
    element = element_type(op.operands[place].type)
    if is_float(element):
        return -0.0 if of_ir(str(element)).has_negative_zero else None
    return TWO_NEGATIVE_ZEROS if type(op) is tt.DotScaledOp else None


def pad_scaled_dot(padding: Padding, op: Operation) -> None:
    """Values are 0 along K, and scales 1: as bytes some are NaN."""
    assert isinstance(op, tt.DotScaledOp)
    pad_dot(padding, op)
    for place, operand in enumerate(tuple(op.operands)):
        if operand in (op.a_scale, op.b_scale) and place > 2:
            last = len(padding.size(operand)) - 1
            if last in padding.axes(operand):
                unit = 1.0 if is_float(element_type(operand.type)) else UNIT_EXPONENT
                op.operands[place] = padding.filled(operand, [last], unit, op)


def is_zero_along(padding: Padding, value: SSAValue, axis: int) -> bool:
    """Whether the invisible lanes along `axis` hold 0, also because the load that gives them can be asked to."""
    owner = defining_op(value)
    if isinstance(owner, tt.LoadOp):
        if owner.other is None:
            zero = constant(0, value.type, owner.location)
            insert_before(owner, zero)
            owner.operands = (*owner.operands, zero.results[0])
            owner.properties["operandSegmentSizes"] = i32_array(1, 1, 1)
        return constant_value(owner.other) == 0  # pyright: ignore[reportArgumentType]
    if isinstance(owner, tt.TransOp):
        return is_zero_along(padding, owner.src, array_values(owner.order)[axis])
    if owner is not None and type(owner) in KEEPS_ZERO:
        return is_zero_along(padding, owner.operands[0], axis)
    return constant_value(value) == 0
