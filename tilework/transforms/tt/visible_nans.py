"""Every NaN whose bits can be seen gets the same bits, in kernels that are reproducible.

    tt.store %p, %x : f32          %bits = tt.bitcast %x : f32 -> i32
                                   %size = arith.andi %bits, 0x7FFFFFFF
                          ==>      %nan = arith.cmpi ugt, %size, 0x7F800000
                                   %one = arith.select %nan, 0x7FC00000, %bits
                                   %y = tt.bitcast %one : i32 -> f32
                                   tt.store %p, %y : f32

Processors make NaNs of different signs and payloads, and hand on those of their operands or do not. Computing with them shows
nothing of that: what shows it is memory, a cast to the bits, a sign that is copied, a message. The pattern is looked for among integers,
where no compiler takes one NaN for another. What cannot be a NaN (a constant, an integer before) is left alone.
Stage: TTIR to TTIR, the last pass. Cost: one walk.
"""

from xdsl.dialects import arith, math
from xdsl.ir import Operation, SSAValue

from tilework.ir import tt
from tilework.ir.arith_ext import convert
from tilework.ir.functions import ops_in_order
from tilework.ir.rewrite import constant_value, defining_op
from tilework.ir.types import element_type, integer_type, is_float, with_element
from tilework.numerics.formats import IR_NAMES, of_ir
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.passes import FunctionPass

SHOW_BITS = frozenset({
    tt.StoreOp, tt.DescriptorStoreOp, tt.DescriptorReduceOp, tt.DescriptorScatterOp, tt.AtomicRMWOp, tt.AtomicCASOp,
    tt.BitcastOp, arith.BitcastOp, math.CopySignOp, tt.ExternElementwiseOp, tt.PrintOp,
})  # fmt: skip
NUMBERS = (arith.SIToFPOp, arith.UIToFPOp)


class VisibleNansPass(FunctionPass):
    name = "tt-visible-nans"

    def run_on(self, function: Operation) -> None:
        for op in [op for op in ops_in_order(*function.regions) if type(op) in SHOW_BITS]:
            code = Emitter(op.location)
            for place, operand in enumerate(op.operands):
                if is_float(element_type(operand.type)) and may_be_nan(operand):
                    op.operands[place] = canonical(code, operand)
            code.insert_before(op)


def may_be_nan(value: SSAValue) -> bool:
    """Of a format with several NaNs, and not seen to be a number."""
    name = str(element_type(value.type))
    if name not in IR_NAMES or of_ir(name).last_number is None:
        return False
    owner = defining_op(value)
    if owner is not None and type(owner) is tt.SplatOp:
        return may_be_nan(owner.operands[0])
    known = constant_value(value)
    if known is not None:
        return known != known
    return type(owner) not in NUMBERS


def canonical(code: Emitter, value: SSAValue) -> SSAValue:
    format = of_ir(str(element_type(value.type)))
    last = format.last_number
    assert last is not None
    type = with_element(value.type, integer_type(format.bits))
    bits = code.append(convert(tt.BitcastOp, value, type, code.loc))
    size = code.binary(arith.AndIOp, bits, code.constant((1 << (format.bits - 1)) - 1, type))
    is_nan = code.compare("ugt", size, code.constant(last, type))
    one = code.select(is_nan, code.constant(format.nan, type), bits)
    return code.append(convert(tt.BitcastOp, one, value.type, code.loc))
