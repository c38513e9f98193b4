"""`tt` ops about the running program: its place in the grid, printing and assertions."""

from collections.abc import Sequence
from functools import cache
from typing import Self

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, LocationAttr, StringAttr
from xdsl.ir import SSAValue
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
from xdsl.utils.exceptions import VerifyException

from tilework.ir.create import create_op
from tilework.ir.enums import ProgramDim
from tilework.ir.tt.constraints import ANY, BOOL_LIKE, I32, TensorSize
from tilework.ir.tt.shape import axis_property
from tilework.ir.tt.text import (
    Attributes,
    parse_attr_dict,
    parse_type,
    parse_types,
    print_attr_dict,
    print_enum,
    print_operands,
    print_type,
    print_values_with_types,
)
from tilework.ir.types import array_values, i1, i32, i32_array, int_attr, string_attr


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

    def verify_(self) -> None:
        axis = self.properties["axis"]
        if not isinstance(axis, IntegerAttr) or axis.value.data not in (0, 1, 2):
            raise VerifyException(f"{self.name} needs axis 0, 1 or 2, but got {axis}")


@irdl_op_definition
class GetProgramIdOp(GridOp):
    """Where in the grid this program is: ``%pid = tt.get_program_id x : i32``."""

    name = "tt.get_program_id"
    axis = prop_def(IntegerAttr)
    result = result_def(I32)
    traits = traits_def(Pure())


@irdl_op_definition
class GetNumProgramsOp(GridOp):
    """How many programs the grid has along an axis: ``%n = tt.get_num_programs x : i32``."""

    name = "tt.get_num_programs"
    axis = prop_def(IntegerAttr)
    result = result_def(I32)
    traits = traits_def(Pure())


@cache
def print_properties(prefix: str, hex: bool, is_signed: tuple[int, ...]) -> Attributes:
    return {"prefix": string_attr(prefix), "hex": int_attr(hex, i1), "isSigned": i32_array(*is_signed)}


@irdl_op_definition
class PrintOp(IRDLOperation):
    """Print values from the device: ``tt.print "x: " {hex = false, isSigned = array<i32: 1>} : %x : i32``."""

    name = "tt.print"
    prefix = prop_def(StringAttr)
    hex = prop_def(IntegerAttr)
    is_signed = prop_def(DenseArrayBase, prop_name="isSigned")
    args = var_operand_def(ANY)
    traits = traits_def(MemoryWriteEffect(), TensorSize())

    @classmethod
    def make(
        cls, prefix: str, hex: bool, args: Sequence[SSAValue], is_signed: Sequence[int], loc: LocationAttr
    ) -> Self:
        return create_op(cls, args, (), loc, print_properties(prefix, hex, tuple(is_signed)))

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        prefix = parser.parse_str_literal()
        properties, attributes = parse_attr_dict(cls, parser)
        operands: Sequence[SSAValue] = ()
        if parser.parse_optional_punctuation(":"):
            names = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
            position = parser.pos
            parser.parse_punctuation(":")
            operands = parser.resolve_operands(names, parse_types(parser), position)
        return cls.create(
            operands=operands,
            properties={**print_properties(prefix, False, (0,) * len(operands)), **properties},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.properties["prefix"])
        print_attr_dict(self, printer, ("prefix",))
        if self.operands:
            printer.print_string(" :")
            print_values_with_types(printer, self.operands)

    def verify_(self) -> None:
        if (flags := len(array_values(self.is_signed))) != len(self.args):
            raise VerifyException(f"isSigned has {flags} entries for {len(self.args)} values")


@irdl_op_definition
class AssertOp(IRDLOperation):
    """Stop the kernel with a message where the condition is false: ``tt.assert %cond, "message" : tensor<8xi1>``."""

    name = "tt.assert"
    condition = operand_def(BOOL_LIKE)
    message = prop_def(StringAttr)
    traits = traits_def(MemoryWriteEffect(), TensorSize())

    @classmethod
    def make(cls, cond: SSAValue, message: str, loc: LocationAttr) -> Self:
        return create_op(cls, (cond,), (), loc, {"message": string_attr(message)})

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        """Also reads the older form with file, function and line after the message."""
        condition = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        message = string_attr(parser.parse_str_literal())
        while parser.parse_optional_punctuation(","):
            if parser.parse_optional_str_literal() is None:
                parser.parse_integer()
        properties, attributes = parse_attr_dict(cls, parser)
        operand = parser.resolve_operand(condition, parse_type(parser))
        return cls.create(operands=(operand,), properties={**properties, "message": message}, attributes=attributes)

    def print(self, printer: Printer) -> None:
        print_operands(printer, self.operands)
        printer.print_string(", ")
        printer.print_attribute(self.properties["message"])
        print_attr_dict(self, printer, ("message",))
        print_type(printer, self.operands[0].type)
