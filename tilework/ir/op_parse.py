"""Reading the ops whose xDSL classes know less of the text: scalars only, no attributes, no empty lists.

    %m = arith.cmpi slt, %a, %b {tt.constancy = dense<16> : tensor<1xi32>} : tensor<64xi32>

Each function reads what follows the op's name and builds the op without checking its operands' kinds: that is the
verifier's work. Flags that are not written are not stored, as in ops the compiler builds. The counterpart of
`ir/op_text.py`, with the same shapes of text.
"""

from collections.abc import Callable

from xdsl.dialects.arith import FastMathFlagsAttr, IntegerOverflowAttr
from xdsl.ir import Attribute, Operation
from xdsl.parser import Parser, UnresolvedOperand

from tilework.ir.create import create_op
from tilework.ir.locations import unknown
from tilework.ir.op_text import CASTS, FLOAT_PREDICATES, INTEGER_PREDICATES, SAME_TYPE
from tilework.ir.types import i1, i64, int_attr, with_element

Reader = Callable[[Parser, type[Operation]], Operation]


def read_flags(parser: Parser) -> dict[str, Attribute]:
    """``fastmath<contract>`` or ``overflow<nsw>``, if there."""
    if parser.parse_optional_keyword("fastmath"):
        return {"fastmath": FastMathFlagsAttr(FastMathFlagsAttr.parse_parameter(parser))}
    if parser.parse_optional_keyword("overflow"):
        return {"overflowFlags": IntegerOverflowAttr(IntegerOverflowAttr.parse_parameter(parser))}
    return {}


def read_same_type(parser: Parser, op_type: type[Operation]) -> Operation:
    """``%a, %b fastmath<contract> : T``."""
    operands = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
    properties, attributes = read_flags(parser), parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    type = parser.parse_type()
    values = [parser.resolve_operand(operand, type) for operand in operands]
    return create_op(op_type, values, (type,), unknown, properties, attributes)


def read_cast(parser: Parser, op_type: type[Operation]) -> Operation:
    """``%a : T to R``."""
    operand = parser.parse_unresolved_operand()
    properties, attributes = read_flags(parser), parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    source = parser.parse_type()
    parser.parse_keyword("to")
    result = parser.parse_type()
    value = parser.resolve_operand(operand, source)
    return create_op(op_type, (value,), (result,), unknown, properties, attributes)


def read_comparison(predicates: tuple[str, ...]) -> Reader:
    def read(parser: Parser, op_type: type[Operation]) -> Operation:
        """``slt, %a, %b : T``."""
        position = parser.pos
        word = parser.parse_identifier()
        if word not in predicates:
            parser.raise_error(f"'{word}' is no comparison: {', '.join(predicates)}", position)
        parser.parse_punctuation(",")
        left = parser.parse_unresolved_operand()
        parser.parse_punctuation(",")
        right = parser.parse_unresolved_operand()
        properties, attributes = read_flags(parser), parser.parse_optional_attr_dict()
        properties["predicate"] = int_attr(predicates.index(word), i64)
        parser.parse_punctuation(":")
        type = parser.parse_type()
        values = [parser.resolve_operand(left, type), parser.resolve_operand(right, type)]
        return create_op(op_type, values, (with_element(type, i1),), unknown, properties, attributes)

    return read


def read_while(parser: Parser, op_type: type[Operation]) -> Operation:
    """``(%a = %x) : (i32) -> i32 { ... } do { ... } attributes {...}``; nothing carried: `` : () -> () { ... }``."""

    def read_assignment() -> tuple[Parser.UnresolvedArgument, UnresolvedOperand]:
        argument = parser.parse_argument(expect_type=False)
        parser.parse_punctuation("=")
        return argument, parser.parse_unresolved_operand()

    pairs = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, read_assignment) or []
    parser.parse_punctuation(":")
    position = parser.pos
    types = parser.parse_function_type()
    values = parser.resolve_operands([operand for _, operand in pairs], types.inputs.data, position)
    arguments = [argument.resolve(value.type) for (argument, _), value in zip(pairs, values, strict=True)]
    before = parser.parse_region(arguments)
    parser.parse_keyword("do")
    after = parser.parse_region()
    extra = parser.parse_optional_attr_dict_with_keyword()
    return op_type.create(
        operands=values,
        result_types=types.outputs.data,
        attributes={} if extra is None else dict(extra.data),
        regions=[before, after],
    )


READERS: dict[str, Reader] = {
    **dict.fromkeys(SAME_TYPE, read_same_type),
    **dict.fromkeys(CASTS, read_cast),
    "arith.cmpf": read_comparison(FLOAT_PREDICATES),
    "arith.cmpi": read_comparison(INTEGER_PREDICATES),
    "scf.while": read_while,
}
