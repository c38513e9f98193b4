"""`tt` ops about the running program: its place in the grid, printing and assertions."""

from typing import Self

from xdsl.dialects.builtin import LocationAttr
from xdsl.irdl import (
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
from xdsl.traits import MemoryWriteEffect, Pure

from tilework.ir.create import create_op
from tilework.ir.enums import ProgramDim
from tilework.ir.tt.constraints import ANY, BOOL_LIKE, I32, TensorSize, enum_property
from tilework.ir.tt.forms import AssertForm, PrintForm
from tilework.ir.tt.shape_ops import axis_property
from tilework.ir.tt.text_parts import parse_attr_dict, parse_type, print_attr_dict, print_enum, print_type
from tilework.ir.types import i32


class GridOp(IRDLOperation):
    """The form of an op that asks about an axis of the grid: ``%x = tt.name x : i32``."""

    @classmethod
    def make(cls, axis: int, loc: LocationAttr) -> Self:
        return create_op(cls, (), (i32,), loc, axis_property(axis))

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Also reads the older ``{axis = 0 : i32}``."""
        word = parser.parse_optional_keyword_in(ProgramDim.keywords())
        properties, attributes = parse_attr_dict(cls, parser)
        if word is not None:
            properties = axis_property(ProgramDim.from_keyword(word))
        return cls.create(result_types=(parse_type(parser),), properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        print_enum(printer, ProgramDim, self.properties["axis"])
        print_attr_dict(self, printer, ("axis",))
        print_type(printer, self.results[0].type)


@irdl_op_definition
class GetProgramIdOp(GridOp):
    """Where in the grid this program is: ``%pid = tt.get_program_id x : i32``."""

    name = "tt.get_program_id"
    axis = prop_def(enum_property(ProgramDim))
    result = result_def(I32)
    traits = traits_def(Pure())


@irdl_op_definition
class GetNumProgramsOp(GridOp):
    """How many programs the grid has along an axis: ``%n = tt.get_num_programs x : i32``."""

    name = "tt.get_num_programs"
    axis = prop_def(enum_property(ProgramDim))
    result = result_def(I32)
    traits = traits_def(Pure())


@irdl_op_definition
class PrintOp(PrintForm):
    """Print values from the device: ``tt.print "x: " {hex = false, isSigned = array<i32: 1>} : %x : i32``."""

    name = "tt.print"
    args = var_operand_def(ANY)
    traits = traits_def(MemoryWriteEffect(), TensorSize())


@irdl_op_definition
class AssertOp(AssertForm):
    """Stop the kernel with a message where the condition is false: ``tt.assert %cond, "message" : tensor<8xi1>``."""

    name = "tt.assert"
    condition = operand_def(BOOL_LIKE)
    traits = traits_def(MemoryWriteEffect(), TensorSize())
