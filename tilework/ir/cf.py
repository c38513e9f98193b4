"""The `cf` dialect: branches between blocks.

cf.cond_br %c, ^bb1(%a : i32), ^bb2
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Block, Dialect, SSAValue
from xdsl.traits import IsTerminator, Pure

from tilework.ir.attr_text import OpPrinter
from tilework.ir.constraints import I1
from tilework.ir.declare import Op, dialect_ops
from tilework.ir.fields import SEGMENTS, operand_def, successor_def, traits_def, var_operand_def
from tilework.ir.form_text import attributes_text, operands_text, parse_operands, parse_types, types_text
from tilework.ir.types import array_values, i1, i32_array

if TYPE_CHECKING:
    from xdsl.parser import Parser


def successor_text(printer: OpPrinter, block: Block, values: Sequence[SSAValue]) -> str:
    """``^bb1(%a : i32)``."""
    arguments = f"({operands_text(printer, values)} : {types_text(printer, values)})" if values else ""
    return f"{printer.block_name(block)}{arguments}"


def read_successor(parser: "Parser") -> tuple[Block, Sequence[SSAValue]]:
    """``^bb1(%a : i32)``."""
    block = parser.parse_successor()
    if parser.parse_optional_punctuation("(") is None:
        return block, ()
    operands = parse_operands(parser)
    parser.parse_punctuation(":")
    position = parser.pos
    values = parser.resolve_operands(operands, parse_types(parser), position)
    parser.parse_punctuation(")")
    return block, values


class BranchOp(Op):
    """Go to a block: ``cf.br ^bb1(%a : i32)``."""

    name = "cf.br"
    arguments = var_operand_def()
    successor = successor_def()
    traits = traits_def(IsTerminator(), Pure())

    @classmethod
    def parse(cls, parser: "Parser") -> Self:
        block, values = read_successor(parser)
        attributes = parser.parse_optional_attr_dict()
        return cls.create(operands=values, successors=(block,), attributes=attributes)

    def text(self, printer: OpPrinter) -> str:
        return f" {successor_text(printer, self.successors[0], self.operands)}{attributes_text(printer, self)}"


class ConditionalBranchOp(Op):
    """Go to one of two blocks: ``cf.cond_br %c, ^bb1(%a : i32), ^bb2``."""

    name = "cf.cond_br"
    cond = operand_def(I1)
    then_arguments = var_operand_def()
    else_arguments = var_operand_def()
    then_block = successor_def()
    else_block = successor_def()
    traits = traits_def(IsTerminator(), Pure())

    @classmethod
    def parse(cls, parser: "Parser") -> Self:
        condition = parser.resolve_operand(parser.parse_unresolved_operand(), i1)
        parser.parse_punctuation(",")
        then_block, then_values = read_successor(parser)
        parser.parse_punctuation(",")
        else_block, else_values = read_successor(parser)
        attributes = parser.parse_optional_attr_dict()
        return cls.create(
            operands=(condition, *then_values, *else_values),
            properties={SEGMENTS: i32_array(1, len(then_values), len(else_values))},
            successors=(then_block, else_block),
            attributes=attributes,
        )

    def text(self, printer: OpPrinter) -> str:
        condition, *values = self.operands
        first = array_values(self.properties[SEGMENTS])[1]
        then = successor_text(printer, self.successors[0], values[:first])
        other = successor_text(printer, self.successors[1], values[first:])
        return f" {printer.names[condition]}, {then}, {other}{attributes_text(printer, self)}"


Cf = Dialect("cf", dialect_ops("cf"), [])


def make_br(block: Block, args: Sequence[SSAValue], loc: LocationAttr) -> BranchOp:
    """``cf.br``."""
    return BranchOp.create(operands=args, successors=(block,), location=loc)


def make_cond_br(
    cond: SSAValue,
    true_block: Block,
    true_args: Sequence[SSAValue],
    false_block: Block,
    false_args: Sequence[SSAValue],
    loc: LocationAttr,
) -> ConditionalBranchOp:
    """``cf.cond_br``."""
    return ConditionalBranchOp.create(
        operands=(cond, *true_args, *false_args),
        properties={SEGMENTS: i32_array(1, len(true_args), len(false_args))},
        successors=(true_block, false_block),
        location=loc,
    )
