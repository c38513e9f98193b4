"""The text of `scf` and `cf`, which MLIR writes otherwise than xDSL: attributes, empty lists, types of indices.

%r = scf.for %i = %a to %b step %c iter_args(%x = %y) -> (f32)  : i32 { ... } {tt.num_stages = 3 : i32}
cf.cond_br %c, ^bb1(%a : i32), ^bb2
"""

from collections.abc import Iterable, Sequence

from xdsl.dialects import cf, scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.traits import IsTerminator

from tilework.ir.attr_text import result_types
from tilework.ir.create import append_op, create_op
from tilework.ir.form_reader import READERS
from tilework.ir.form_writer import WRITERS, attributes_text, operands_text, signature_text, types_text
from tilework.ir.forms import FORMS, RETURN, SEGMENTS, Form
from tilework.ir.locations import unknown
from tilework.ir.property_text import OpPrinter
from tilework.ir.types import array_values, i1, index

FORMS[scf.YieldOp] = Form(RETURN)
FORMS[scf.ConditionOp] = Form("($condition) {}(? $args : type($args))", {"condition": i1})


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


def read_assignment(parser: Parser) -> tuple[Parser.UnresolvedArgument, UnresolvedOperand]:
    """``%a = %x``."""
    argument = parser.parse_argument(expect_type=False)
    parser.parse_punctuation("=")
    return argument, parser.parse_unresolved_operand()


def assignments(printer: OpPrinter, arguments: Iterable[SSAValue], values: Iterable[SSAValue]) -> str:
    """``(%a = %x, %b = %y)``."""
    names = printer.names
    pairs = zip(arguments, values, strict=True)
    return f"({', '.join(f'{names[argument]} = {names[value]}' for argument, value in pairs)})"


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


def write_for(printer: OpPrinter, op: Operation) -> str:
    lower, upper, step, *initial = op.operands
    variable, *carried = op.regions[0].blocks[0].args
    names = printer.names
    text = f" {names[variable]} = {names[lower]} to {names[upper]} step {names[step]} "
    if initial:
        text += f"iter_args{assignments(printer, carried, initial)} -> ({types_text(printer, op.results)}) "
    if not isinstance(variable.type, IndexType):
        text += f" : {printer.texts.of(variable.type)} "
    printer.out.append(text)
    printer.region(op.regions[0], entry_arguments=False, empty_block=False, terminators=bool(initial))
    return attributes_text(printer, op)


def read_if(parser: Parser, op_type: type[Operation]) -> Operation:
    """``%c -> (i32) { ... } else { ... } {k = v}``."""
    condition = parser.resolve_operand(parser.parse_unresolved_operand(), i1)
    types = read_types(parser)
    regions = [read_body(parser), read_body(parser) if parser.parse_optional_keyword("else") else Region()]
    attributes = parser.parse_optional_attr_dict()
    return op_type.create(operands=(condition,), result_types=types, attributes=attributes, regions=regions)


def write_if(printer: OpPrinter, op: Operation) -> str:
    results = f" -> ({types_text(printer, op.results)})" if op.results else ""
    printer.out.append(f" {printer.names[op.operands[0]]}{results} ")
    for number, region in enumerate(op.regions):
        if region.blocks or not number:
            printer.out.append(" else " if number else "")
            printer.region(region, entry_arguments=False, empty_block=False, terminators=bool(op.results))
    return attributes_text(printer, op)


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


def write_while(printer: OpPrinter, op: Operation) -> str:
    before, after = op.regions
    start = f" {assignments(printer, before.blocks[0].args, op.operands)}" if op.operands else ""
    printer.out.append(f"{start} : {signature_text(printer, op)} ")
    printer.region(before, entry_arguments=False, empty_block=False)
    printer.out.append(" do ")
    printer.region(after, empty_block=False)
    extra = attributes_text(printer, op)
    return f" attributes{extra}" if extra else ""


def write_execute_region(printer: OpPrinter, op: Operation) -> str:
    types = tuple(result.type for result in op.results)
    printer.out.append(f" -> {result_types(printer.texts, types)} " if types else " ")
    printer.region(op.regions[0], empty_block=False)
    return attributes_text(printer, op)


def successor_text(printer: OpPrinter, block: Block, values: Sequence[SSAValue]) -> str:
    """``^bb1(%a : i32)``."""
    arguments = f"({operands_text(printer, values)} : {types_text(printer, values)})" if values else ""
    return f"{printer.block_name(block)}{arguments}"


def write_branch(printer: OpPrinter, op: Operation) -> str:
    return f" {successor_text(printer, op.successors[0], op.operands)}{attributes_text(printer, op)}"


def write_conditional_branch(printer: OpPrinter, op: Operation) -> str:
    condition, *values = op.operands
    first = array_values(op.properties[SEGMENTS])[1]
    then = successor_text(printer, op.successors[0], values[:first])
    other = successor_text(printer, op.successors[1], values[first:])
    return f" {printer.names[condition]}, {then}, {other}{attributes_text(printer, op)}"


READERS |= {scf.ForOp: read_for, scf.IfOp: read_if, scf.WhileOp: read_while}
WRITERS |= {
    cf.BranchOp: write_branch,
    cf.ConditionalBranchOp: write_conditional_branch,
    scf.ExecuteRegionOp: write_execute_region,
    scf.ForOp: write_for,
    scf.IfOp: write_if,
    scf.WhileOp: write_while,
}
