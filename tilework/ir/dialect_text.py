"""The text of `arith`, `math`, `scf` and `cf` as MLIR writes it: xDSL's classes lack tensors and attributes, and differ
in empty lists and index types.

    %m = arith.cmpi slt, %a, %b {tt.constancy = dense<16> : tensor<1xi32>} : tensor<64xi32>
    %y = arith.addf %a, %b fastmath<contract> : f32
    %z = arith.sitofp %i : i32 to f32
    %r = scf.for %i = %a to %b step %c iter_args(%x = %y) -> (f32)  : i32 { ... } {tt.num_stages = 3 : i32}
    cf.cond_br %c, ^bb1(%a : i32), ^bb2
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from xdsl.dialects import arith, cf, math, scf
from xdsl.dialects.arith import (
    CMPF_COMPARISON_OPERATIONS,
    CMPI_COMPARISON_OPERATIONS,
    FastMathFlagsAttr,
    IntegerOverflowAttr,
)
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.traits import IsTerminator

from tilework.ir.arith_ext import Arith, SelectOp
from tilework.ir.attr_text import result_types
from tilework.ir.create import append_op, create_op
from tilework.ir.form_reader import OPERANDS, READERS
from tilework.ir.form_writer import WRITERS, attributes_text, operands_text, signature_text, types_text
from tilework.ir.forms import EXTRA, FORMS, RETURN, SEGMENTS, Form, Property
from tilework.ir.locations import unknown
from tilework.ir.property_text import Codec, OpPrinter, keywords, same
from tilework.ir.tt.memory_ops import mask_type
from tilework.ir.types import array_values, i1, i64, index

FAST_MATH = ("reassoc", "nnan", "ninf", "nsz", "arcp", "contract", "afn")
OVERFLOW = ("nsw", "nuw")
CASTS = frozenset(
    {
        *(arith.TruncIOp, arith.ExtUIOp, arith.ExtSIOp, arith.TruncFOp, arith.ExtFOp, arith.BitcastOp),
        *(arith.SIToFPOp, arith.UIToFPOp, arith.FPToSIOp, arith.FPToUIOp, arith.IndexCastOp),
    }
)
COMPARISONS = {arith.CmpiOp: CMPI_COMPARISON_OPERATIONS, arith.CmpfOp: CMPF_COMPARISON_OPERATIONS}
# Written by itself or by xDSL.
OTHERS = frozenset(
    {*(arith.ConstantOp, SelectOp, arith.AddUIExtendedOp, arith.MulSIExtendedOp, arith.MulUIExtendedOp, math.FPowIOp)}
)


def flags_property(key: str, word: str, order: tuple[str, ...], kind: type[Any]) -> Property:
    """``fastmath<contract>``: a word and flags, in the order of their bits."""

    def text(printer: OpPrinter, flags: Any) -> str:
        present = [flag for flag in order if flag in flags.data]
        return f"{word}<{'fast' if len(present) == len(FAST_MATH) else ', '.join(present)}>"

    def parse(parser: Parser) -> Attribute | None:
        return kind(kind.parse_parameter(parser)) if parser.parse_optional_keyword(word) else None

    return Property(key, key, Codec(word, same, same, text, parse), kind("none"), is_optional=True)


FLAGS = {
    "fastmath": flags_property("fastmath", "fastmath", FAST_MATH, FastMathFlagsAttr),
    "overflowFlags": flags_property("overflowFlags", "overflow", OVERFLOW, IntegerOverflowAttr),
}


def predicate_property(words: tuple[str, ...]) -> Property:
    """The word of a comparison, which may be quoted; its integer is its index."""
    codec = keywords(words, tuple(range(len(words))), i64)

    def parse(parser: Parser) -> int:
        position = parser.pos
        word = parser.parse_optional_str_literal() or parser.parse_identifier()
        if word not in words:
            parser.raise_error(f"'{word}' is no comparison: {', '.join(words)}", position)
        return words.index(word)

    return Property("predicate", "predicate", replace(codec, parse=parse), None, is_optional=False)


def declare_form(cls: type[Operation]) -> None:
    """The form of `cls`, by what kind of op it is."""
    EXTRA[cls] = FLAGS
    if cls in CASTS:
        FORMS[cls] = Form("$input(? $fastmath)(? $overflowFlags) {} : type($input) to type($result)")
    elif cls in COMPARISONS:
        EXTRA[cls] = {**FLAGS, "predicate": predicate_property(tuple(COMPARISONS[cls]))}
        infer = {"rhs": "lhs", "result": (mask_type, "lhs")}
        FORMS[cls] = Form("$predicate, $lhs, $rhs(? $fastmath) {} : type($lhs)", infer)
    else:
        infer = {OPERANDS: "result"}
        FORMS[cls] = Form("$operands(? $fastmath)(? $overflowFlags) {} : type($result)", infer)


for op_type in {*Arith.operations, *math.Math.operations} - OTHERS:
    declare_form(op_type)


def write_constant(printer: OpPrinter, op: Operation) -> str:
    """`` {k = v} 16 : i32``."""
    extra = attributes_text(printer, op, ("value",)) if op.attributes else ""
    return f"{extra} {printer.texts.of(op.properties['value'])}"


WRITERS[arith.ConstantOp] = write_constant


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
