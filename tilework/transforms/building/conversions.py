"""Values with other elements or in another layout, made in front of an op."""

from xdsl.dialects import arith
from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from tilework.ir import tt, ttg
from tilework.ir.arith_ext import convert
from tilework.ir.encodings import with_encoding
from tilework.ir.rewrite import put
from tilework.ir.types import bit_width, element_type, is_float, with_element
from tilework.layouts.encodings import Encoding


def laid_out(op: Operation, value: SSAValue, layout: Encoding | None, location: LocationAttr | None = None) -> SSAValue:
    """`value` in another layout, at the location of `op` if no other is given."""
    return put(op, ttg.ConvertLayoutOp.make(value, with_encoding(value.type, layout), location or op.location))


def laid_out_there(op: Operation, value: SSAValue, layout: Encoding | None) -> SSAValue:
    """The same at the location of `value`; at that of `op` if that is not known."""
    return laid_out(op, value, layout, value.op.location if isinstance(value, OpResult) else None)


def cast(op: Operation, value: SSAValue, element: Attribute) -> SSAValue:
    """`value` with other elements; floats of 8 bits become wider ones."""
    source, wanted = element_type(value.type), with_element(value.type, element)
    if source == element:
        return value
    if is_float(element) and bit_width(source) == 8:
        return put(op, tt.FpToFpOp.make(value, wanted, op.location))
    grows = bit_width(element) > bit_width(source)
    kinds = (arith.ExtFOp, arith.TruncFOp) if is_float(element) else (arith.ExtSIOp, arith.TruncIOp)
    return put(op, convert(kinds[not grows], value, wanted, op.location))
