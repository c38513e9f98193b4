"""Text forms shared by several ops, as base classes: an op inherits its `parse` and `print` from its form.

    class PreciseSqrtOp(SameTypeForm): ...       %y = tt.precise_sqrt %x : f32
    class SplatOp(ConversionOp): ...             %y = tt.splat %x : f32 -> tensor<8xf32>

The fields, the traits and the rules between them stay with the op, except where a whole op exists twice: `tt.print` and
`tt.assert` of tensors are `ttc.print` and `ttc.assert` of buffers.
"""

from collections.abc import Collection, Sequence
from functools import cache
from typing import Self

from xdsl.dialects.builtin import LocationAttr, StringAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, prop_def
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from tilework.ir.constraints import I1_PROPERTY, I32_ARRAY
from tilework.ir.create import create_op
from tilework.ir.tt.text_parts import (
    Attributes,
    parse_attr_dict,
    parse_bracketed,
    parse_conversion_type,
    parse_operands,
    parse_optional_operands,
    parse_signature,
    parse_type,
    parse_values_with_types,
    print_attr_dict,
    print_bracketed,
    print_conversion_type,
    print_operands,
    print_signature,
    print_type,
    print_types,
    print_values_with_types,
    resolve_typed,
)
from tilework.ir.types import array_values, i1, i32_array, int_attr, string_attr


class BareForm(IRDLOperation):
    """An op without operands and results: ``gpu.barrier``."""

    @classmethod
    def make(cls, loc: LocationAttr) -> Self:
        return create_op(cls, (), (), loc)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        properties, attributes = parse_attr_dict(cls, parser)
        return cls.create(properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        print_attr_dict(self, printer)


class ConversionForm(IRDLOperation):
    """Operands of one type, results of another: ``%z = tt.name %x, %y : T -> U``."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operands = parse_operands(parser)
        properties, attributes = parse_attr_dict(cls, parser)
        source, result = parse_conversion_type(parser)
        return cls.create(
            operands=[parser.resolve_operand(operand, source) for operand in operands],
            result_types=(result,) * len(cls.get_irdl_definition().results),
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        print_operands(printer, self.operands)
        print_attr_dict(self, printer)
        print_conversion_type(printer, self.operands[0].type, self.results[0].type)


class ConversionOp(ConversionForm):
    """An op that is given by its operand and the type of its result."""

    @classmethod
    def make(cls, src: SSAValue, type: Attribute, loc: LocationAttr) -> Self:
        return create_op(cls, (src,), (type,), loc)


class SameTypeForm(IRDLOperation):
    """Operands and result of one type: ``%z = tt.name %x, %y : T``."""

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operands = parse_operands(parser)
        properties, attributes = parse_attr_dict(cls, parser)
        type = parse_type(parser)
        return cls.create(
            operands=[parser.resolve_operand(operand, type) for operand in operands],
            result_types=(type,),
            properties=properties,
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        print_operands(printer, self.operands)
        print_attr_dict(self, printer)
        print_type(printer, self.results[0].type)


class SignatureForm(IRDLOperation):
    """The types as those of a function: ``%z = tt.name %x, %y : (T, U) -> V``."""

    @classmethod
    def parse_head(cls, parser: Parser) -> tuple[Attributes, list[UnresolvedOperand]]:
        """What comes before the attributes: properties that have a text of their own, and the operands."""
        return {}, parse_optional_operands(parser)

    def print_head(self, printer: Printer) -> Collection[str]:
        """The inverse of `parse_head`; the names of the properties it has written."""
        print_operands(printer, self.operands)
        return ()

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        written, operands = cls.parse_head(parser)
        properties, attributes = parse_attr_dict(cls, parser)
        position = parser.pos
        inputs, outputs = parse_signature(parser)
        return cls.create(
            operands=parser.resolve_operands(operands, inputs, position),
            result_types=outputs,
            properties={**properties, **written},
            attributes=attributes,
        )

    def print(self, printer: Printer) -> None:
        print_attr_dict(self, printer, self.print_head(printer))
        print_signature(self, printer)


class PickForm(SignatureForm):
    """A signature with places in brackets: ``%y = tt.gather %x[%i] : (T, I) -> U``."""

    @classmethod
    def parse_head(cls, parser: Parser) -> tuple[Attributes, list[UnresolvedOperand]]:
        return {}, [parser.parse_unresolved_operand(), *parse_bracketed(parser)]

    def print_head(self, printer: Printer) -> Collection[str]:
        print_operands(printer, self.operands[:1])
        print_bracketed(printer, self.operands[1:])
        return ()


class ReturnForm(IRDLOperation):
    """A terminator with perhaps no values, attributes first: ``tt.return {k} %v : f32``."""

    @classmethod
    def make(cls, values: Sequence[SSAValue], loc: LocationAttr) -> Self:
        return create_op(cls, values, (), loc)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        properties, attributes = parse_attr_dict(cls, parser)
        return cls.create(operands=parse_values_with_types(parser), properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        print_attr_dict(self, printer)
        print_values_with_types(printer, self.operands)


class CombineReturnForm(IRDLOperation):
    """The terminator of a combining region, at least one value: ``tt.reduce.return %a, %b {k} : f32, i32``."""

    @classmethod
    def make(cls, values: Sequence[SSAValue], loc: LocationAttr) -> Self:
        return create_op(cls, values, (), loc)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operands = parse_operands(parser)
        properties, attributes = parse_attr_dict(cls, parser)
        return cls.create(operands=resolve_typed(parser, operands), properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        print_operands(printer, self.operands)
        print_attr_dict(self, printer)
        printer.print_string(" : ")
        print_types(printer, [value.type for value in self.operands])


@cache
def print_properties(prefix: str, hex: bool, is_signed: tuple[int, ...]) -> Attributes:
    return {"prefix": string_attr(prefix), "hex": int_attr(hex, i1), "isSigned": i32_array(*is_signed)}


class PrintForm(IRDLOperation):
    """Print values from the device: ``tt.print "x: " {hex = false, isSigned = array<i32: 1>} : %x : i32``."""

    prefix = prop_def(StringAttr)
    hex = prop_def(I1_PROPERTY)
    is_signed = prop_def(I32_ARRAY, prop_name="isSigned")

    @classmethod
    def make(
        cls, prefix: str, hex: bool, args: Sequence[SSAValue], is_signed: Sequence[int], loc: LocationAttr
    ) -> Self:
        return create_op(cls, args, (), loc, print_properties(prefix, hex, tuple(is_signed)))

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        prefix = parser.parse_str_literal()
        properties, attributes = parse_attr_dict(cls, parser)
        values: Sequence[SSAValue] = ()
        if parser.parse_optional_punctuation(":"):
            values = resolve_typed(parser, parse_operands(parser))
        properties = {**print_properties(prefix, False, (0,) * len(values)), **properties}
        return cls.create(operands=values, properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.properties["prefix"])
        print_attr_dict(self, printer, ("prefix",))
        if self.operands:
            printer.print_string(" :")
            print_values_with_types(printer, self.operands)

    def verify_(self) -> None:
        if (flags := len(array_values(self.is_signed))) != len(self.operands):
            raise VerifyException(f"isSigned has {flags} entries for {len(self.operands)} values")


class AssertForm(IRDLOperation):
    """Stop the kernel where the condition is false: ``tt.assert %cond, "message" : tensor<8xi1>``."""

    message = prop_def(StringAttr)

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
