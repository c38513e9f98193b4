"""`ttng` ops that make TMA descriptors: 128 bytes in global memory that say where the blocks of an array are.

ttng.tensormap_create %p, %base, [%box0, %box1], [%dim0, %dim1], [%stride], [%step0, %step1] {...} : (...) -> ()
ttng.tensormap_fenceproxy_acquire %p : !tt.ptr<i8>
%d = ttng.reinterpret_tensor_descriptor %p : !tt.ptr<i8> to !tt.tensordesc<tensor<64x64xf16, #shared>>
"""

from collections.abc import Sequence
from functools import cache
from typing import Self

from xdsl.dialects.builtin import IntegerAttr, LocationAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from tilework.ir.create import create_op
from tilework.ir.tt.constraints import DESCRIPTOR, I32, I64, POINTER
from tilework.ir.tt.text_parts import (
    SEGMENTS,
    Attributes,
    parse_attr_dict,
    parse_bracketed,
    parse_signature,
    print_attr_dict,
    print_bracketed,
    print_operands,
    print_signature,
    print_type,
)
from tilework.ir.ttg.text import OperandForm
from tilework.ir.types import array_values, i32, i32_array, int_attr


@cache
def tensormap_properties(
    elem_type: int, interleave_layout: int, swizzle_mode: int, fill_mode: int, segments: tuple[int, ...]
) -> Attributes:
    return {
        "elem_type": int_attr(elem_type, i32),
        "interleave_layout": int_attr(interleave_layout, i32),
        "swizzle_mode": int_attr(swizzle_mode, i32),
        "fill_mode": int_attr(fill_mode, i32),
        SEGMENTS: i32_array(*segments),
    }


# The largest value of each property.
TENSORMAP_LIMITS = {"elem_type": 15, "interleave_layout": 2, "swizzle_mode": 3, "fill_mode": 1}


@irdl_op_definition
class TensormapCreateOp(IRDLOperation):
    """Write a TMA descriptor of 128 bytes.

    ``ttng.tensormap_create %d, %base, [%box], [%dims], [%strides], [%steps] {elem_type = 3 : i32, ...} : (...) -> ()``
    """

    name = "ttng.tensormap_create"
    desc_ptr = operand_def(POINTER)
    global_address = operand_def(POINTER)
    box_dim = var_operand_def(I32)
    global_dim = var_operand_def(I32)
    global_stride = var_operand_def(I64)
    element_stride = var_operand_def(I32)
    elem_type = prop_def(IntegerAttr)
    interleave_layout = prop_def(IntegerAttr)
    swizzle_mode = prop_def(IntegerAttr)
    fill_mode = prop_def(IntegerAttr)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    @classmethod
    def make(
        cls,
        desc_ptr: SSAValue,
        global_address: SSAValue,
        box_dim: Sequence[SSAValue],
        global_dim: Sequence[SSAValue],
        global_stride: Sequence[SSAValue],
        element_stride: Sequence[SSAValue],
        elem_type: int,
        interleave_layout: int,
        swizzle_mode: int,
        fill_mode: int,
        loc: LocationAttr,
    ) -> Self:
        groups = (box_dim, global_dim, global_stride, element_stride)
        operands = [desc_ptr, global_address, *(value for group in groups for value in group)]
        segments = (1, 1, *(len(group) for group in groups))
        properties = tensormap_properties(elem_type, interleave_layout, swizzle_mode, fill_mode, segments)
        return create_op(cls, operands, (), loc, properties)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operands = [parser.parse_unresolved_operand()]
        parser.parse_punctuation(",")
        operands.append(parser.parse_unresolved_operand())
        segments = [1, 1]
        for _ in range(4):
            parser.parse_punctuation(",")
            group = parse_bracketed(parser)
            operands += group
            segments.append(len(group))
        properties, attributes = parse_attr_dict(cls, parser)
        position = parser.pos
        inputs, _ = parse_signature(parser)
        return cls.create(
            operands=parser.resolve_operands(operands, inputs, position),
            properties={**properties, SEGMENTS: i32_array(*segments)},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        print_operands(printer, self.operands[:2])
        start = 2
        for size in array_values(self.properties[SEGMENTS])[2:]:
            printer.print_string(", ")
            print_bracketed(printer, self.operands[start : start + size])
            start += size
        print_attr_dict(self, printer)
        print_signature(self, printer)

    def verify_(self) -> None:
        rank = len(self.box_dim)
        if rank == 0:
            raise VerifyException("a tensormap has at least one dimension")
        for name, group in (("global dim", self.global_dim), ("element stride", self.element_stride)):
            if len(group) != rank:
                raise VerifyException(f"Rank mismatch for {name}. Got {len(group)} but expected {rank}")
        if len(self.global_stride) != rank - 1:
            raise VerifyException(
                f"Rank mismatch for global stride. Got {len(self.global_stride)} but expected {rank - 1}"
            )
        for name, limit in TENSORMAP_LIMITS.items():
            value: IntegerAttr = getattr(self, name)
            if not 0 <= value.value.data <= limit:
                raise VerifyException(f"{name} must be between 0 and {limit}, but got {value.value.data}")


@irdl_op_definition
class TensormapFenceproxyAcquireOp(OperandForm):
    """A descriptor that was just written may be used by TMA: ``ttng.tensormap_fenceproxy_acquire %d : !tt.ptr<i8>``."""

    name = "ttng.tensormap_fenceproxy_acquire"
    desc_ptr = operand_def(POINTER)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())


@irdl_op_definition
class ReinterpretTensorDescOp(IRDLOperation):
    """Memory that holds a descriptor: ``%d = ttng.reinterpret_tensor_descriptor %p : !tt.ptr<i8> to !tt.tensordesc<...>``."""

    name = "ttng.reinterpret_tensor_descriptor"
    raw_desc = operand_def(POINTER)
    result = result_def(DESCRIPTOR)
    traits = traits_def(Pure())

    @classmethod
    def make(cls, raw_desc: SSAValue, type: Attribute, loc: LocationAttr) -> Self:
        return create_op(cls, (raw_desc,), (type,), loc)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        raw = parser.parse_unresolved_operand()
        properties, attributes = parse_attr_dict(cls, parser)
        parser.parse_punctuation(":")
        source = parser.parse_type()
        parser.parse_keyword("to")
        result = parser.parse_type()
        return cls.create(
            operands=(parser.resolve_operand(raw, source),),
            result_types=(result,),
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        print_operands(printer, self.operands)
        print_attr_dict(self, printer)
        print_type(printer, self.operands[0].type)
        printer.print_string(" to ")
        printer.print_attribute(self.results[0].type)
