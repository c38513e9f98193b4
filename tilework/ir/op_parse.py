"""Reading the ops whose xDSL classes know less of the text: scalars only, no attributes, no empty lists, one spelling
of a list of types.

    %m = arith.cmpi slt, %a, %b {tt.constancy = dense<16> : tensor<1xi32>} : tensor<64xi32>

Each function reads what follows the op's name and builds the op without checking its operands' kinds: that is the
verifier's work. Flags that are not written are not stored, as in ops the compiler builds. The counterpart of
`ir/op_text.py`, with the same shapes of text.
"""

from collections.abc import Callable, Sequence

from xdsl.dialects import scf
from xdsl.dialects.arith import FastMathFlagsAttr, IntegerOverflowAttr
from xdsl.ir import Attribute, Operation, Region
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.traits import IsTerminator

from tilework.ir.create import append_op, create_op
from tilework.ir.locations import unknown
from tilework.ir.op_text import CASTS, FLOAT_PREDICATES, INTEGER_PREDICATES, SAME_TYPE
from tilework.ir.types import i1, i64, index, int_attr, with_element

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
        """``slt, %a, %b : T``; the word may be quoted."""
        position = parser.pos
        word = parser.parse_optional_str_literal() or parser.parse_identifier()
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


def read_types(parser: Parser) -> Sequence[Attribute]:
    """``-> i32`` or ``-> (i32, f32)``, perhaps nothing."""
    if parser.parse_optional_punctuation("->") is None:
        return ()
    types = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
    return (parser.parse_type(),) if types is None else types


def read_body(parser: Parser, arguments: Sequence[Parser.Argument] = ()) -> Region:
    """``{ ... }``; the yield of nothing at its end may be left out."""
    region = parser.parse_region(arguments)
    last = region.blocks[-1].last_op
    if last is None or not last.has_trait(IsTerminator, value_if_unregistered=False):
        append_op(region.blocks[-1], create_op(scf.YieldOp, (), (), unknown))
    return region


def read_if(parser: Parser, op_type: type[Operation]) -> Operation:
    """``%c -> (i32) { ... } else { ... } {k = v}``."""
    condition = parser.resolve_operand(parser.parse_unresolved_operand(), i1)
    types = read_types(parser)
    regions = [read_body(parser), read_body(parser) if parser.parse_optional_keyword("else") else Region()]
    attributes = parser.parse_optional_attr_dict()
    return op_type.create(operands=(condition,), result_types=types, attributes=attributes, regions=regions)


def read_for(parser: Parser, op_type: type[Operation]) -> Operation:
    """``%i = %a to %b step %c iter_args(%x = %y) -> (f32) : i32 { ... } {k = v}``; the index type may be left out."""
    variable = parser.parse_argument(expect_type=False)
    bounds = []
    for word in ("=", "to", "step"):
        parser.parse_characters(word)
        bounds.append(parser.parse_unresolved_operand())
    pairs = []
    if parser.parse_optional_keyword("iter_args"):
        pairs = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: read_assignment(parser))
    position = parser.pos
    types = read_types(parser)
    type = parser.parse_type() if parser.parse_optional_punctuation(":") else index
    limits = [parser.resolve_operand(bound, type) for bound in bounds]
    carried = parser.resolve_operands([operand for _, operand in pairs], types, position)
    arguments = [argument.resolve(value.type) for (argument, _), value in zip(pairs, carried, strict=True)]
    body = read_body(parser, [variable.resolve(type), *arguments])  # pyright: ignore[reportAttributeAccessIssue]
    attributes = parser.parse_optional_attr_dict()
    return op_type.create(operands=[*limits, *carried], result_types=types, attributes=attributes, regions=[body])


def read_assignment(parser: Parser) -> tuple[Parser.UnresolvedArgument, UnresolvedOperand]:
    """``%a = %x``."""
    argument = parser.parse_argument(expect_type=False)
    parser.parse_punctuation("=")
    return argument, parser.parse_unresolved_operand()


def read_while(parser: Parser, op_type: type[Operation]) -> Operation:
    """``(%a = %x) : (i32) -> i32 { ... } do { ... } attributes {...}``; nothing carried: `` : () -> () { ... }``."""
    pairs = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, lambda: read_assignment(parser)) or []
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
    "scf.for": read_for,
    "scf.if": read_if,
    "scf.while": read_while,
}
