"""Names of `tt` ops that older compilers wrote: they are read as the ops of today and never built.

    %y = tt.view %x : tensor<64xf32> -> tensor<8x8xf32>          tt.reshape %x allow_reorder
    %v = tt.experimental_descriptor_load %d[%i] : !tt.ptr<i8> -> tensor<64xf32>
                                                                 tt.descriptor_load %d[%i]

A descriptor used to be an argument of type ``!tt.ptr<i8>`` whose blocks only its uses know. The first use gives the
argument its type of today, ``!tt.tensordesc<tensor<64xf32>>``; the other uses must agree.
"""

from xdsl.ir import Attribute, BlockArgument
from xdsl.irdl import IRDLOperation, irdl_op_definition
from xdsl.parser import Parser, UnresolvedOperand

from tilework.ir.tt.descriptor_ops import DescriptorLoadOp, DescriptorStoreOp
from tilework.ir.tt.shape_ops import ReshapeOp
from tilework.ir.tt.text_parts import UNIT, resolve_defined
from tilework.ir.types import TensorDescType, i8, is_tensor, pointer_type, tensordesc_type


@irdl_op_definition
class ViewOp(IRDLOperation):
    """``tt.view %x : T -> U`` is ``tt.reshape %x allow_reorder : T -> U``."""

    name = "tt.view"

    @classmethod
    def parse(cls, parser: Parser) -> ReshapeOp:  # pyright: ignore[reportIncompatibleMethodOverride]
        op = ReshapeOp.parse(parser)
        op.properties["allow_reorder"] = UNIT
        return op


def descriptor_type(parser: Parser, operand: UnresolvedOperand, written: Attribute, block: Attribute) -> Attribute:
    """The type of the descriptor `operand`; an argument written as ``!tt.ptr<i8>`` becomes one of `block`."""
    if written != pointer_type(i8):
        return written
    value = resolve_defined(parser, operand)
    if not isinstance(value, BlockArgument):
        parser.raise_error(f"the descriptor %{operand.operand_name} must be an argument of the function", operand.span)
    if not is_tensor(block):
        parser.raise_error(f"a descriptor reads and writes tensors, not {block}")
    wanted = tensordesc_type(block)
    if isinstance(value.type, TensorDescType) and value.type != wanted:
        parser.raise_error(
            f"the descriptor %{operand.operand_name} is of {value.type.block}, not {block}", operand.span
        )
    value._type = wanted  # pyright: ignore[reportPrivateUsage]
    return wanted


@irdl_op_definition
class ExperimentalDescriptorLoadOp(IRDLOperation):
    """``tt.experimental_descriptor_load %d[%i] : !tt.ptr<i8> -> T`` is ``tt.descriptor_load``."""

    name = "tt.experimental_descriptor_load"

    @classmethod
    def parse(cls, parser: Parser) -> DescriptorLoadOp:  # pyright: ignore[reportIncompatibleMethodOverride]
        return DescriptorLoadOp.parse_as(parser, descriptor_type)


@irdl_op_definition
class ExperimentalDescriptorStoreOp(IRDLOperation):
    """``tt.experimental_descriptor_store %d[%i], %v : !tt.ptr<i8>, T`` is ``tt.descriptor_store``."""

    name = "tt.experimental_descriptor_store"

    @classmethod
    def parse(cls, parser: Parser) -> DescriptorStoreOp:  # pyright: ignore[reportIncompatibleMethodOverride]
        return DescriptorStoreOp.parse_as(parser, descriptor_type)


OLD_NAMES = frozenset({ExperimentalDescriptorLoadOp, ExperimentalDescriptorStoreOp, ViewOp})
