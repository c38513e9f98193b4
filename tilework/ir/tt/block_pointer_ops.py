"""`tt` ops on block pointers: one pointer to a whole block of a tensor in memory."""

from collections.abc import Sequence
from typing import Self

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    SameVariadicOperandSize,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tilework.ir.create import create_op
from tilework.ir.tt.constraints import BLOCK_POINTER, I32, I32_ARRAY, I64, POINTER, TensorSize
from tilework.ir.tt.shape_ops import order_property
from tilework.ir.tt.text_parts import (
    parse_attr_dict,
    parse_bracketed,
    parse_pointer,
    print_attr_dict,
    print_bracketed,
    print_operands,
    print_unprefixed,
)
from tilework.ir.types import (
    PointerType,
    array_values,
    element_type,
    i32,
    i64,
    pointer_type,
    shape_of,
    tensor_type,
)


@irdl_op_definition
class MakeTensorPtrOp(IRDLOperation):
    """A block of a tensor in memory, as one pointer.

    ``%p = tt.make_tensor_ptr %base, [%m, %n], [%sm, %sn], [%i, %j] {order = array<i32: 1, 0>} : <tensor<64x32xf16>>``
    """

    name = "tt.make_tensor_ptr"
    base = operand_def(POINTER)
    shape = var_operand_def(I64)
    strides = var_operand_def(I64)
    offsets = var_operand_def(I32)
    order = prop_def(I32_ARRAY)
    result = result_def(BLOCK_POINTER)
    irdl_options = (SameVariadicOperandSize(),)
    traits = traits_def(Pure(), TensorSize())

    @classmethod
    def make(
        cls,
        base: SSAValue,
        shape: Sequence[SSAValue],
        strides: Sequence[SSAValue],
        offsets: Sequence[SSAValue],
        block_shape: Sequence[int],
        order: Sequence[int],
        loc: LocationAttr,
    ) -> Self:
        pointer = base.type
        assert isinstance(pointer, PointerType), pointer
        space = pointer.address_space.value.data
        block = tensor_type(tuple(block_shape), pointer.pointee)
        return create_op(
            cls, (base, *shape, *strides, *offsets), (pointer_type(block, space),), loc, order_property(tuple(order))
        )

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        base = parser.parse_unresolved_operand()
        groups = []
        for type in (i64, i64, i32):
            parser.parse_punctuation(",")
            groups.append([(operand, type) for operand in parse_bracketed(parser)])
        if len({len(group) for group in groups}) > 1:
            parser.raise_error("tt.make_tensor_ptr needs as many sizes as strides and offsets")
        properties, attributes = parse_attr_dict(cls, parser)
        parser.parse_punctuation(":")
        result = parse_pointer(parser)
        if not isinstance(result, PointerType):
            parser.raise_error(f"expected a pointer to a block, but got {result}")
        scalar = pointer_type(element_type(result.pointee), result.address_space.value.data)
        operands = [parser.resolve_operand(base, scalar)]
        operands += [parser.resolve_operand(operand, type) for group in groups for operand, type in group]
        return cls.create(operands=operands, result_types=(result,), properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        base, *rest = self.operands
        rank = len(rest) // 3
        print_operands(printer, (base,))
        for start in range(0, 3 * rank, rank):
            printer.print_string(", ")
            print_bracketed(printer, rest[start : start + rank])
        print_attr_dict(self, printer)
        printer.print_string(" : ")
        print_unprefixed(printer, self.results[0].type)

    def verify_(self) -> None:
        base, result = self.base.type, self.result.type
        assert isinstance(base, PointerType) and isinstance(result, PointerType)
        if base.pointee != element_type(result.pointee) or base.address_space != result.address_space:
            raise VerifyException(f"tt.make_tensor_ptr from {base} cannot give {result}")
        rank = len(shape_of(result.pointee))
        if len(self.shape) != rank:
            raise VerifyException(f"tt.make_tensor_ptr of rank {rank} has {len(self.shape)} sizes")
        if sorted(order := array_values(self.order)) != list(range(rank)):
            raise VerifyException(f"order must be a permutation of [0, ..., rank - 1], got {list(order)}")


@irdl_op_definition
class AdvanceOp(IRDLOperation):
    """Move a block pointer by elements: ``%q = tt.advance %p, [%i, %j] : <tensor<64x32xf16>>``."""

    name = "tt.advance"
    ptr = operand_def(BLOCK_POINTER)
    offsets = var_operand_def(I32)
    result = result_def(BLOCK_POINTER)
    traits = traits_def(Pure(), TensorSize())

    @classmethod
    def make(cls, ptr: SSAValue, offsets: Sequence[SSAValue], loc: LocationAttr) -> Self:
        return create_op(cls, (ptr, *offsets), (ptr.type,), loc)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        ptr = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        offsets = parse_bracketed(parser)
        properties, attributes = parse_attr_dict(cls, parser)
        parser.parse_punctuation(":")
        type = parse_pointer(parser)
        operands = [parser.resolve_operand(ptr, type), *(parser.resolve_operand(v, i32) for v in offsets)]
        return cls.create(operands=operands, result_types=(type,), properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        print_operands(printer, self.operands[:1])
        printer.print_string(", ")
        print_bracketed(printer, self.operands[1:])
        print_attr_dict(self, printer)
        printer.print_string(" : ")
        print_unprefixed(printer, self.results[0].type)

    def verify_(self) -> None:
        if self.ptr.type != self.result.type:
            raise VerifyException(f"tt.advance of {self.ptr.type} cannot give {self.result.type}")
        pointer = self.ptr.type
        assert isinstance(pointer, PointerType)
        if len(self.offsets) != (rank := len(shape_of(pointer.pointee))):
            raise VerifyException(f"tt.advance of rank {rank} has {len(self.offsets)} offsets")
