"""Parsing and printing shared by the text forms of `ttg` and `ttng` ops.

ttng.init_barrier %b, 1 : !ttg.memdesc<1xi64, #shared, #smem, mutable>
%t = ttg.async_copy_global_to_local %p, %d mask %m : tensor<...> -> <64x64xf16, #shared, #smem, mutable>
"""

from collections.abc import Collection
from typing import Self

from xdsl.dialects.builtin import IntegerAttr, LocationAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from tilework.ir.create import create_op
from tilework.ir.tt.text_parts import parse_attr_dict, parse_type, print_attr_dict, print_operands, print_type
from tilework.ir.ttg.memdesc_types import MemDescType
from tilework.ir.types import i32, int_attr


class OperandForm(IRDLOperation):
    """One operand with its type: ``ttg.local_dealloc %x : T``."""

    @classmethod
    def make(cls, operand: SSAValue, loc: LocationAttr) -> Self:
        return create_op(cls, (operand,), (), loc)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operand = parser.parse_unresolved_operand()
        properties, attributes = parse_attr_dict(cls, parser)
        value = parser.resolve_operand(operand, parse_type(parser))
        return cls.create(operands=(value,), properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        print_operands(printer, self.operands)
        print_attr_dict(self, printer)
        print_type(printer, self.operands[0].type)


def parse_number(parser: Parser) -> IntegerAttr:
    """``, 8192``, as an i32 property."""
    parser.parse_punctuation(",")
    return int_attr(parser.parse_integer(), i32)


def print_number(printer: Printer, attribute: Attribute) -> None:
    """The inverse of `parse_number`."""
    assert isinstance(attribute, IntegerAttr), attribute
    printer.print_string(f", {attribute.value.data}")


def parse_optional_word(parser: Parser, word: str) -> UnresolvedOperand | None:
    """``mask %m``, perhaps nothing."""
    return parser.parse_unresolved_operand() if parser.parse_optional_keyword(word) else None


def print_optional_word(printer: Printer, word: str, value: SSAValue | None) -> None:
    """The inverse of `parse_optional_word`."""
    if value is not None:
        printer.print_string(f" {word} ")
        printer.print_ssa_value(value)


def parse_memdesc(parser: Parser) -> Attribute:
    """``<64xf16, #shared, #smem>`` or ``!ttg.memdesc<...>``, where the form fixes the kind of type."""
    if (type := parser.parse_optional_type()) is not None:
        return type
    return MemDescType.new(MemDescType.parse_parameters(parser))


def print_memdesc(printer: Printer, type: Attribute) -> None:
    """The inverse of `parse_memdesc`, without the prefix."""
    assert isinstance(type, MemDescType), type
    type.print_parameters(printer)


def hidden_properties(op: IRDLOperation, defaults: dict[str, Attribute], written: Collection[str] = ()) -> list[str]:
    """The names of the properties that are not in the dictionary: defaults, and those `written` elsewhere."""
    return [name for name, value in op.properties.items() if name in written or defaults.get(name) == value]
