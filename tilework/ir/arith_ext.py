"""arith: what xDSL's dialect lacks, and cheap constructors for the rest.

`SelectOp` takes a tensor of conditions, `RemfOp` is the float remainder; `Arith` is xDSL's dialect with both. The
functions build any arith or math op without argument processing:

    binary(arith.AddiOp, a, b, loc)      cmpi("slt", a, b, loc)      convert(arith.ExtFOp, x, f32, loc)

The ops have no overflow or fast-math flags; `NO_SIGNED_WRAP` is the one that the sanitizer uses.
"""

from collections.abc import Sequence
from typing import Self, TypeVar

from xdsl.dialects import arith
from xdsl.dialects.arith import CMPF_COMPARISON_OPERATIONS, CMPI_COMPARISON_OPERATIONS
from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from tilework.ir.constraints import BOOL_LIKE, Elementwise
from tilework.ir.create import create_op
from tilework.ir.declare import Op
from tilework.ir.form_reader import parse_operands, parse_types
from tilework.ir.form_writer import attributes_text, operands_text
from tilework.ir.locations import unknown
from tilework.ir.property_text import OpPrinter
from tilework.ir.types import i1, i64, int_attr, shape_of, with_element

NO_SIGNED_WRAP = arith.IntegerOverflowAttr((arith.IntegerOverflowFlag.NSW,))
OpT = TypeVar("OpT", bound=Operation)


class SelectOp(Op):
    """``cond ? a : b``, with one condition for all elements or one for each.

    ``%z = arith.select %c, %x, %y : tensor<4xi1>, tensor<4xf32>``
    """

    name = "arith.select"
    cond = operand_def(BOOL_LIKE)
    lhs = operand_def()
    rhs = operand_def()
    result = result_def()
    traits = traits_def(Pure(), Elementwise())

    @classmethod
    def make(cls, cond: SSAValue, a: SSAValue, b: SSAValue, loc: LocationAttr) -> Self:
        return create_op(cls, (cond, a, b), (a.type,), loc)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        operands = parse_operands(parser)
        attributes = parser.parse_optional_attr_dict()
        position = parser.pos
        parser.parse_punctuation(":")
        *condition, type = parse_types(parser)
        types = (condition[0] if condition else i1, type, type)
        values = parser.resolve_operands(operands, types, position)
        return create_op(cls, values, (type,), unknown, {}, attributes)

    def text(self, printer: OpPrinter) -> str:
        """The condition's type is written when it is a tensor."""
        condition, type = self.operands[0].type, printer.texts.of(self.results[0].type)
        types = type if condition == i1 else f"{printer.texts.of(condition)}, {type}"
        return f" {operands_text(printer, self.operands)}{attributes_text(printer, self)} : {types}"

    def verify_(self) -> None:
        types = [self.lhs.type, self.rhs.type, self.result.type]
        if len(set(types)) != 1:
            raise VerifyException(f"arith.select cannot choose between {types[0]} and {types[1]} as {types[2]}")
        if (shape := shape_of(self.cond.type)) and shape != shape_of(types[0]):
            raise VerifyException(f"arith.select of {types[0]} cannot have a condition of {self.cond.type}")


@irdl_op_definition
class RemfOp(arith.FloatingPointLikeBinaryOperation):
    """The remainder of a float division, with the sign of the dividend: ``%z = arith.remf %x, %y : f32``."""

    name = "arith.remf"
    traits = traits_def(Pure(), Elementwise())

    @classmethod
    def make(cls, a: SSAValue, b: SSAValue, loc: LocationAttr) -> Self:
        return create_op(cls, (a, b), (a.type,), loc)


OWN_OPS: tuple[type[Operation], ...] = (SelectOp, RemfOp)
Arith = Dialect(
    "arith",
    [*(op for op in arith.Arith.operations if op.name not in {own.name for own in OWN_OPS}), *OWN_OPS],
    list(arith.Arith.attributes),
)


def binary(cls: type[OpT], lhs: SSAValue, rhs: SSAValue, loc: LocationAttr) -> OpT:
    """An op whose result has the type of its operands: ``arith.addi``, ``arith.mulf``, ``math.powf``."""
    return create_op(cls, (lhs, rhs), (lhs.type,), loc)


def unary(cls: type[OpT], x: SSAValue, loc: LocationAttr) -> OpT:
    """An op whose result has the type of its operand: ``arith.negf``, ``math.exp``."""
    return create_op(cls, (x,), (x.type,), loc)


def ternary(cls: type[OpT], a: SSAValue, b: SSAValue, c: SSAValue, loc: LocationAttr) -> OpT:
    """An op of three operands of one type: ``math.fma``."""
    return create_op(cls, (a, b, c), (a.type,), loc)


def convert(cls: type[OpT], x: SSAValue, type: Attribute, loc: LocationAttr) -> OpT:
    """A cast: ``arith.extsi``, ``arith.sitofp``, ``arith.bitcast``."""
    return create_op(cls, (x,), (type,), loc)


def predicate_properties(names: Sequence[str]) -> dict[str, dict[str, Attribute]]:
    """The property of each predicate; its number is its place in `names`."""
    return {name: {"predicate": int_attr(number, i64)} for number, name in enumerate(names)}


CMPI_PROPERTIES = predicate_properties(CMPI_COMPARISON_OPERATIONS)
CMPF_PROPERTIES = predicate_properties(CMPF_COMPARISON_OPERATIONS)


def cmpi(predicate: str, a: SSAValue, b: SSAValue, loc: LocationAttr) -> arith.CmpiOp:
    """``arith.cmpi`` with a predicate such as ``"slt"``, ``"uge"``, ``"ne"``."""
    return create_op(arith.CmpiOp, (a, b), (with_element(a.type, i1),), loc, CMPI_PROPERTIES[predicate])


def cmpf(predicate: str, a: SSAValue, b: SSAValue, loc: LocationAttr) -> arith.CmpfOp:
    """``arith.cmpf`` with a predicate such as ``"olt"``, ``"une"``."""
    return create_op(arith.CmpfOp, (a, b), (with_element(a.type, i1),), loc, CMPF_PROPERTIES[predicate])
