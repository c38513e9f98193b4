"""Parsing and printing shared by the text forms of `tt` ops.

Properties that the form does not spell out go to the attribute dictionary together with the discardable attributes,
sorted by name; defaults are left out:

    %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>

Printing uses only the public methods of the printer, so that a subclass decides about names, aliases and locations.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from typing import TypeVar

from xdsl.dialects.builtin import IntegerAttr, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from tilework.ir.enums import Keyword
from tilework.ir.types import PointerType, TensorDescType, i32, int_attr, pointer_type, tensordesc_type

Attributes = dict[str, Attribute]
OpT = TypeVar("OpT", bound=IRDLOperation)
KeywordT = TypeVar("KeywordT", bound=Keyword)

SEGMENTS = "operandSegmentSizes"
UNIT = UnitAttr()


@cache
def property_names(cls: type[IRDLOperation]) -> frozenset[str]:
    """The names under which ops of `cls` store properties."""
    return frozenset(cls.get_irdl_definition().properties)


def parse_attr_dict(cls: type[IRDLOperation], parser: Parser) -> tuple[Attributes, Attributes]:
    """An optional ``{k = v, ...}``, split into properties and discardable attributes."""
    names = property_names(cls)
    properties: Attributes = {}
    attributes: Attributes = {}
    for name, value in parser.parse_optional_attr_dict().items():
        (properties if name in names else attributes)[name] = value
    return properties, attributes


def print_attr_dict(op: Operation, printer: Printer, elided: Collection[str] = ()) -> None:
    """`` {k = v}`` with the properties and attributes of `op` that are not `elided`, or nothing."""
    shown: Mapping[str, Attribute] = op.attributes
    if op.properties:
        shown = {k: v for k, v in op.properties.items() if k not in elided and k != SEGMENTS}
        shown.update(op.attributes)
    if shown:
        printer.print_op_attributes(dict(sorted(shown.items())))


def print_operands(printer: Printer, values: Sequence[SSAValue]) -> None:
    """`` %a, %b``, or nothing."""
    if values:
        printer.print_string(" ")
        printer.print_list(values, printer.print_ssa_value)


def print_bracketed(printer: Printer, values: Sequence[SSAValue]) -> None:
    """``[%a, %b]``."""
    with printer.in_square_brackets():
        printer.print_list(values, printer.print_ssa_value)


def print_access(printer: Printer, array: SSAValue, indices: Sequence[SSAValue]) -> None:
    """`` %array[%i, %j]``."""
    print_operands(printer, (array,))
    print_bracketed(printer, indices)


def print_types(printer: Printer, types: Sequence[Attribute]) -> None:
    """``f32, i32``."""
    printer.print_list(types, printer.print_attribute)


def print_type(printer: Printer, type: Attribute) -> None:
    """`` : f32``."""
    printer.print_string(" : ")
    printer.print_attribute(type)


def print_conversion_type(printer: Printer, source: Attribute, result: Attribute) -> None:
    """`` : i32 -> tensor<4xi32>``."""
    printer.print_string(" : ")
    printer.print_attribute(source)
    printer.print_string(" -> ")
    printer.print_attribute(result)


def print_signature(op: Operation, printer: Printer) -> None:
    """`` : (T, T) -> T``, of all operands and results."""
    printer.print_string(" : ")
    printer.print_function_type([v.type for v in op.operands], [v.type for v in op.results])


def print_values_with_types(printer: Printer, values: Sequence[SSAValue]) -> None:
    """`` %a, %b : f32, f32``, or nothing."""
    if values:
        print_operands(printer, values)
        printer.print_string(" : ")
        print_types(printer, [value.type for value in values])


def print_enum(printer: Printer, enum: type[Keyword], attribute: Attribute) -> None:
    """The keyword of an enum property."""
    assert isinstance(attribute, IntegerAttr), attribute
    printer.print_string(enum(attribute.value.data).keyword)


def print_clause(printer: Printer, name: str, enum: type[Keyword], attribute: Attribute | None, default: int) -> None:
    """`` cacheModifier = ca``, or nothing at the default."""
    if isinstance(attribute, IntegerAttr) and attribute.value.data != default:
        printer.print_string(f" {name} = {enum(attribute.value.data).keyword}")


def parse_operands(parser: Parser) -> list[UnresolvedOperand]:
    """``%a, %b``, at least one."""
    return parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)


def parse_at_most(parser: Parser, count: int) -> list[UnresolvedOperand]:
    """``%a, %b``, at least one and at most `count`."""
    operands = parse_operands(parser)
    if len(operands) > count:
        parser.raise_error(f"at most {count} operands are expected, but got {len(operands)}", operands[count].span)
    return operands


def parse_optional_operands(parser: Parser) -> list[UnresolvedOperand]:
    """``%a, %b``, perhaps none."""
    return (
        parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
        )
        or []
    )


def parse_bracketed(parser: Parser) -> list[UnresolvedOperand]:
    """``[%a, %b]``."""
    return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_unresolved_operand)


def parse_types(parser: Parser) -> list[Attribute]:
    """``f32, i32``."""
    return list(parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type))


def parse_type(parser: Parser) -> Attribute:
    """``: f32``."""
    parser.parse_punctuation(":")
    return parser.parse_type()


def parse_conversion_type(parser: Parser) -> tuple[Attribute, Attribute]:
    """``: i32 -> tensor<4xi32>``; the older ``: (i32) -> tensor<4xi32>`` is read too."""
    parser.parse_punctuation(":")
    if parser.parse_optional_punctuation("("):
        source = parser.parse_type()
        parser.parse_punctuation(")")
    else:
        source = parser.parse_type()
    parser.parse_punctuation("->")
    return source, parser.parse_type()


def parse_signature(parser: Parser) -> tuple[Sequence[Attribute], Sequence[Attribute]]:
    """``: (T, T) -> T``."""
    parser.parse_punctuation(":")
    function_type = parser.parse_function_type()
    return function_type.inputs.data, function_type.outputs.data


def parse_values_with_types(parser: Parser) -> Sequence[SSAValue]:
    """``%a, %b : f32, f32``, perhaps nothing."""
    operands = parse_optional_operands(parser)
    return resolve_typed(parser, operands) if operands else ()


def resolve_typed(parser: Parser, operands: Sequence[UnresolvedOperand]) -> Sequence[SSAValue]:
    """``: T, U``, the types of the `operands` read before."""
    position = parser.pos
    parser.parse_punctuation(":")
    return parser.resolve_operands(operands, parse_types(parser), position)


def resolve_access(
    parser: Parser, array: UnresolvedOperand, type: Attribute, indices: Sequence[UnresolvedOperand]
) -> tuple[SSAValue, list[SSAValue]]:
    """The array of ``%array[%i, %j]``, which has `type`, and its i32 indices."""
    return parser.resolve_operand(array, type), [parser.resolve_operand(index, i32) for index in indices]


def parse_keyword(parser: Parser, enum: type[KeywordT]) -> IntegerAttr:
    """One of the keywords of `enum`, as its property."""
    position = parser.pos
    word = parser.parse_identifier(f" for {enum.__name__}")
    if word not in enum.keywords():
        parser.raise_error(f"expected one of {', '.join(enum.keywords())}, but got {word}", position, parser.pos)
    return int_attr(enum.from_keyword(word), i32)


def parse_clause(parser: Parser, name: str, enum: type[KeywordT]) -> IntegerAttr | None:
    """``cacheModifier = ca``, perhaps nothing."""
    if parser.parse_optional_keyword(name) is None:
        return None
    parser.parse_punctuation("=")
    return parse_keyword(parser, enum)


def unprefixed(kind: type[PointerType] | type[TensorDescType]) -> Callable[[Parser], Attribute]:
    """A parser of ``<f32>`` or ``!tt.ptr<f32>``, where the form fixes the kind of type."""

    def parse(parser: Parser) -> Attribute:
        if (type := parser.parse_optional_type()) is not None:
            return type
        parameters = kind.parse_parameters(parser)
        if kind is PointerType:
            pointee, space = parameters
            assert isinstance(space, IntegerAttr)
            return pointer_type(pointee, space.value.data)
        return tensordesc_type(parameters[0])

    return parse


parse_pointer = unprefixed(PointerType)
parse_descriptor = unprefixed(TensorDescType)


def print_unprefixed(printer: Printer, type: Attribute) -> None:
    """``<f32>`` for ``!tt.ptr<f32>``, where the form fixes the kind of type."""
    assert isinstance(type, PointerType | TensorDescType), type
    type.print_parameters(printer)


def is_true(attribute: Attribute | None) -> bool:
    """A boolean property that is set and not false; a unit attribute is true."""
    if isinstance(attribute, IntegerAttr):
        return attribute.value.data != 0
    return isinstance(attribute, UnitAttr)


def resolve_defined(parser: Parser, operand: UnresolvedOperand) -> SSAValue:
    """An operand whose type an older text form leaves out: its definition must come before its use."""
    known = parser.ssa_values.get(operand.operand_name)
    if known is None or operand.index >= len(known):
        parser.raise_error(f"the type of %{operand.operand_name} is not known here", operand.span)
    return known[operand.index]
