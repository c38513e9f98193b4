"""Canonicalize NaNs whose bits are observable, in reproducible kernels.

    tt.store %p, %x : f32          %bits = tt.bitcast %x : f32 -> i32
                                   %size = arith.andi %bits, 0x7FFFFFFF
                          ==>      %nan = arith.cmpi ugt, %size, 0x7F800000
                                   %one = arith.select %nan, 0x7FC00000, %bits
                                   %y = tt.bitcast %one : i32 -> f32
                                   tt.store %p, %y : f32

Processors generate NaNs of different signs and payloads, and some propagate those of their operands. Arithmetic does
not expose the difference, but memory, bitcasts, copied signs and messages do. The canonical pattern is selected on
integers, where no compiler replaces one NaN by another. Values that cannot be NaN (constants, converted integers) are
left alone. Where an atomic addition results in a NaN, the canonical pattern is stored: no further addition makes it
finite, and programs are serialized there.
Stage: TTIR to TTIR, the last pass. Cost: one walk.
"""

from xdsl.ir import Operation, SSAValue

from tilework.ir import arith, math, tt
from tilework.ir.enums import RMWOp
from tilework.ir.functions import ops_in_order
from tilework.ir.rewrite import constant_value, defining_op, insert_after
from tilework.ir.types import PointerType, element_type, integer_type, is_float, with_element
from tilework.numerics.formats import IR_NAMES, of_ir
from tilework.transforms.building.emitter import Emitter
from tilework.transforms.passes import function_pass

SHOW_BITS = frozenset({
    tt.StoreOp, tt.DescriptorStoreOp, tt.DescriptorReduceOp, tt.DescriptorScatterOp, tt.AtomicRMWOp, tt.AtomicCASOp,
    tt.BitcastOp, arith.BitcastOp, math.CopySignOp, tt.ExternElementwiseOp, tt.PrintOp,
})  # fmt: skip
CONVERTED_INTEGERS = (arith.SIToFPOp, arith.UIToFPOp)


@function_pass("tt-visible-nans")
def visible_nans(function: Operation) -> None:
    for op in [op for op in ops_in_order(*function.regions) if type(op) in SHOW_BITS]:
        code = Emitter(op.location)
        for index, operand in enumerate(op.operands):
            if is_float(element_type(operand.type)) and may_be_nan(operand):
                op.operands[index] = canonical(code, operand)
        code.insert_before(op)
        if isinstance(op, tt.AtomicRMWOp) and op.atomic_rmw_op.value.data == RMWOp.FADD:
            store_nan(op)


def may_be_nan(value: SSAValue) -> bool:
    """Return True if the format has several NaNs and `value` is not known to be a finite float."""
    name = str(element_type(value.type))
    if name not in IR_NAMES or of_ir(name).last_number is None:
        return False
    owner = defining_op(value)
    if owner is not None and type(owner) is tt.SplatOp:
        return may_be_nan(owner.operands[0])
    known = constant_value(value)
    if known is not None:
        return known != known
    return type(owner) not in CONVERTED_INTEGERS


def canonical(code: Emitter, value: SSAValue) -> SSAValue:
    bits, is_nan, nan = seen_as_bits(code, value)
    return code.convert(tt.BitcastOp, code.select(is_nan, nan, bits), value.type)


def seen_as_bits(code: Emitter, value: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
    """(the bits of floats, whether they are NaNs, the one pattern)."""
    format = of_ir(str(element_type(value.type)))
    last = format.last_number
    assert last is not None
    type = with_element(value.type, integer_type(format.bits))
    bits = code.convert(tt.BitcastOp, value, type)
    size = code.binary(arith.AndIOp, bits, (1 << (format.bits - 1)) - 1)
    return bits, code.compare("ugt", size, last), code.constant(format.nan, type)


def store_nan(op: Operation) -> None:
    """Store the canonical NaN behind an atomic addition where memory has become a NaN."""
    pointers, added, *masks = op.operands
    code = Emitter(op.location)
    total = code.binary(arith.AddfOp, op.results[0], added)
    _, is_nan, nan = seen_as_bits(code, total)
    wanted = code.binary(arith.AndIOp, is_nan, masks[0]) if masks else is_nan
    of = element_type(pointers.type)
    assert isinstance(of, PointerType)
    pointer_type = with_element(pointers.type, PointerType(element_type(nan.type), of.address_space))
    target = code.convert(tt.BitcastOp, pointers, pointer_type)
    code.ops.append(tt.StoreOp.make(target, nan, wanted, op.location))
    insert_after(op, *code.ops)
