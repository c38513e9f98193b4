"""`tt` ops about the running program: its place in the grid, printing and assertions."""

from collections.abc import Iterable
from dataclasses import replace

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Operation
from xdsl.irdl import operand_def, prop_def, result_def, traits_def, var_operand_def
from xdsl.parser import Parser
from xdsl.traits import MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from tilework.ir.constraints import ANY, BOOL_LIKE, I1_PROPERTY, I32, I32_ARRAY, Kind, TensorSize, enum_property
from tilework.ir.declare import Op
from tilework.ir.enums import ProgramDim
from tilework.ir.forms import ASSERT, PRINT
from tilework.ir.property_text import STRING
from tilework.ir.types import Shape, array_values, i32_array, shape_of


class GetProgramIdOp(Op):
    """Where in the grid this program is: ``%pid = tt.get_program_id x : i32``."""

    name = "tt.get_program_id"
    axis = prop_def(enum_property(ProgramDim))
    result = result_def(I32)
    form = "(? $axis) {} : type($result)"
    traits = traits_def(Pure())


class GetNumProgramsOp(Op):
    """How many programs the grid has along an axis: ``%n = tt.get_num_programs x : i32``."""

    name = "tt.get_num_programs"
    axis = prop_def(enum_property(ProgramDim))
    result = result_def(I32)
    form = "(? $axis) {} : type($result)"
    traits = traits_def(Pure())


def parse_message(parser: Parser) -> str | None:
    """A string; an older compiler wrote file, function and line behind it."""
    found = parser.parse_optional_str_literal()
    while parser.parse_optional_punctuation(","):
        if parser.parse_optional_str_literal() is None:
            parser.parse_integer()
    return found


MESSAGE: Kind[StringAttr] = Kind(
    "a string", lambda value: isinstance(value, StringAttr), codec=replace(STRING, parse=parse_message)
)


class PrintBase(Op):
    """What the `print` ops of tensors and of buffers share."""

    prefix = prop_def(StringAttr)
    hex = prop_def(I1_PROPERTY)

    def verify_(self) -> None:
        if (flags := len(array_values(self.properties["isSigned"]))) != len(self.operands):
            raise VerifyException(f"isSigned has {flags} entries for {len(self.operands)} values")


class PrintOp(PrintBase):
    """Print values from the device: ``tt.print "x: " {hex = false, isSigned = array<i32: 1>} : %x : i32``."""

    name = "tt.print"
    args = var_operand_def(ANY)
    is_signed = prop_def(I32_ARRAY, prop_name="isSigned")
    form = PRINT
    traits = traits_def(MemoryWriteEffect(), TensorSize())


VISIBLE = "tilework.visible"


def set_visible_sizes(op: Operation, sizes: Iterable[Shape]) -> None:
    """Note how much of each operand is no padding, for who prints or counts what the user sees."""
    op.attributes[VISIBLE] = ArrayAttr([i32_array(*size) for size in sizes])


def visible_sizes(op: Operation) -> list[Shape]:
    """How much of each operand the user sees, of those that `op` had when its tiles were padded."""
    if isinstance(given := op.attributes.get(VISIBLE), ArrayAttr):
        return [array_values(size) for size in given]
    return [shape_of(operand.type) for operand in op.operands]


class AssertOp(Op):
    """Stop the kernel with a message where the condition is false: ``tt.assert %cond, "message" : tensor<8xi1>``."""

    name = "tt.assert"
    condition = operand_def(BOOL_LIKE)
    message = prop_def(MESSAGE)
    form = ASSERT
    traits = traits_def(MemoryWriteEffect(), TensorSize())
