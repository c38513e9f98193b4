"""The text of the ops a compile prints most, one small function per shape of text.

Every op can print itself through xDSL's printer, which costs 30 to 100 us; these functions cost 3 to 10. `LEAVES` maps
an op's name to a function that gives what follows the name:

    arith.addi -> write_binary -> " %a, %b : tensor<64xi32>"
    tt.splat   -> write_arrow  -> " %x : i32 -> tensor<64xi32>"

Ops with regions and functions are in `ir/printer.py`; ops without an entry print themselves.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilework.ir.attr_text import AttributeText, bare_or_quoted, dictionary, signature

SEGMENTS = "operandSegmentSizes"
# The number of a predicate is its position.
INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
FLOAT_PREDICATES = (
    *("false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord"),
    *("ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true"),
)
FAST_MATH = ("reassoc", "nnan", "ninf", "nsz", "arcp", "contract", "afn")
OVERFLOW = ("nsw", "nuw")
# `%a, %b : T`: operands and result of one type.
SAME_TYPE = (
    *("arith.addi", "arith.subi", "arith.muli", "arith.divsi", "arith.divui", "arith.remsi", "arith.remui"),
    *("arith.ceildivsi", "arith.ceildivui", "arith.floordivsi", "arith.andi", "arith.ori", "arith.xori"),
    *("arith.shli", "arith.shrui", "arith.shrsi", "arith.maxsi", "arith.maxui", "arith.minsi", "arith.minui"),
    *("arith.addf", "arith.subf", "arith.mulf", "arith.divf", "arith.remf", "arith.negf"),
    *("arith.maximumf", "arith.maxnumf", "arith.minimumf", "arith.minnumf"),
    *("math.exp", "math.exp2", "math.log", "math.log2", "math.sin", "math.cos", "math.sqrt", "math.rsqrt"),
    *("math.floor", "math.ceil", "math.erf", "math.absf", "math.absi", "math.fma", "math.tanh", "math.trunc"),
)
# `%a : T to R`.
CASTS = (
    *("arith.trunci", "arith.extui", "arith.extsi", "arith.truncf", "arith.extf", "arith.bitcast"),
    *("arith.sitofp", "arith.uitofp", "arith.fptosi", "arith.fptoui", "arith.index_cast", "arith.index_castui"),
)


class OpPrinter(Protocol):
    """What a text function needs of the printer: names, attribute text, blocks."""

    names: dict[SSAValue, str]
    texts: AttributeText

    def block_name(self, block: Block) -> str: ...


LeafWriter = Callable[[OpPrinter, Operation], str]


def attributes_text(printer: OpPrinter, op: Operation, hidden: Iterable[str] = ()) -> str:
    """`` {k = v}``: the properties that are not `hidden` and the discardable attributes, or nothing."""
    shown: Mapping[str, Attribute] = op.attributes
    if op.properties:
        shown = {k: v for k, v in op.properties.items() if k not in hidden and k != SEGMENTS}
        shown.update(op.attributes)
    return f" {dictionary(printer.texts, shown)}" if shown else ""


def operands_text(printer: OpPrinter, values: Iterable[SSAValue]) -> str:
    """``%a, %b``."""
    names = printer.names
    return ", ".join([names[value] for value in values])


def types_text(printer: OpPrinter, values: Iterable[SSAValue]) -> str:
    """``i32, f32``."""
    of = printer.texts.of
    return ", ".join([of(value.type) for value in values])


def flags_text(op: Operation) -> str:
    """`` fastmath<contract>``, `` overflow<nsw>``, or nothing; flags in the order of their bits."""
    text = ""
    for key, word, order in (("fastmath", "fastmath", FAST_MATH), ("overflowFlags", "overflow", OVERFLOW)):
        flags: Any = op.properties.get(key)
        if flags is not None and flags.data:
            present = [flag for flag in order if flag in flags.data]
            text += f" {word}<{'fast' if len(present) == len(FAST_MATH) else ', '.join(present)}>"
    return text


def number(attribute: Any) -> int:
    """The value of an integer property."""
    return attribute.value.data


def write_same_type(printer: OpPrinter, op: Operation) -> str:
    """`` %a, %b : T``, the result's type once; arithmetic flags before the attributes."""
    flags = flags_text(op) if op.properties else ""
    extra = attributes_text(printer, op, ("fastmath", "overflowFlags")) if op.attributes else ""
    return f" {operands_text(printer, op.operands)}{flags}{extra} : {printer.texts.of(op.results[0].type)}"


def write_cast(printer: OpPrinter, op: Operation) -> str:
    """`` %a : T to R``."""
    source, of = op.operands[0], printer.texts.of
    flags = flags_text(op) if op.properties else ""
    extra = attributes_text(printer, op, ("fastmath", "overflowFlags")) if op.attributes else ""
    return f" {printer.names[source]}{flags}{extra} : {of(source.type)} to {of(op.results[0].type)}"


def write_constant(printer: OpPrinter, op: Operation) -> str:
    extra = attributes_text(printer, op, ("value",)) if op.attributes else ""
    return f"{extra} {printer.texts.of(op.properties['value'])}"


def write_comparison(predicates: tuple[str, ...]) -> LeafWriter:
    def write(printer: OpPrinter, op: Operation) -> str:
        left, right = op.operands
        names, properties = printer.names, op.properties
        flags = flags_text(op) if len(properties) > 1 else ""
        extra = attributes_text(printer, op, ("predicate", "fastmath")) if op.attributes else ""
        predicate = predicates[number(properties["predicate"])]
        return f" {predicate}, {names[left]}, {names[right]}{flags}{extra} : {printer.texts.of(left.type)}"

    return write


def write_select(printer: OpPrinter, op: Operation) -> str:
    """The condition's type is written when it is a tensor."""
    condition = op.operands[0].type
    of = printer.texts.of
    kind = of(condition)
    kind = "" if kind == "i1" else f"{kind}, "
    values = operands_text(printer, op.operands)
    return f" {values}{attributes_text(printer, op)} : {kind}{of(op.results[0].type)}"


def write_terminator(printer: OpPrinter, op: Operation) -> str:
    """`` %a, %b : i32, f32``, or nothing."""
    if not op.operands:
        return attributes_text(printer, op)
    extra = attributes_text(printer, op) if op.attributes else ""
    return f"{extra} {operands_text(printer, op.operands)} : {types_text(printer, op.operands)}"


def write_condition(printer: OpPrinter, op: Operation) -> str:
    """``(%c) %a : i32``, of `scf.condition`."""
    condition, *passed = op.operands
    values = f" {operands_text(printer, passed)} : {types_text(printer, passed)}" if passed else ""
    return f"({printer.names[condition]}){attributes_text(printer, op)}{values}"


def successor_text(printer: OpPrinter, block: Block, values: list[SSAValue]) -> str:
    """``^bb1(%a : i32)``."""
    arguments = f"({operands_text(printer, values)} : {types_text(printer, values)})" if values else ""
    return f"{printer.block_name(block)}{arguments}"


def write_branch(printer: OpPrinter, op: Operation) -> str:
    return f" {successor_text(printer, op.successors[0], list(op.operands))}{attributes_text(printer, op)}"


def write_conditional_branch(printer: OpPrinter, op: Operation) -> str:
    condition, *values = op.operands
    sizes: Any = op.properties[SEGMENTS]
    first = sizes.get_values()[1]
    then = successor_text(printer, op.successors[0], values[:first])
    other = successor_text(printer, op.successors[1], values[first:])
    return f" {printer.names[condition]}, {then}, {other}{attributes_text(printer, op)}"


def generic_head(printer: OpPrinter, op: Operation) -> str:
    """``(%a, %b)[^bb1] <{axis = 0 : i32}>``: the generic form up to the regions."""
    successors = f"[{', '.join(map(printer.block_name, op.successors))}]" if op.successors else ""
    properties = f" <{dictionary(printer.texts, op.properties)}>" if op.properties else ""
    return f"({operands_text(printer, op.operands)}){successors}{properties}"


def generic_tail(printer: OpPrinter, op: Operation, attributes: Mapping[str, Attribute]) -> str:
    """`` {k = v} : (i32) -> i32``."""
    extra = f" {dictionary(printer.texts, attributes)}" if attributes else ""
    types = signature(printer.texts, (v.type for v in op.operands), (v.type for v in op.results))
    return f"{extra} : {types}"


def symbol_text(name: Any) -> str:
    """``@f``, ``@"a b"``."""
    return f"@{bare_or_quoted(name.data)}"


LEAVES: dict[str, LeafWriter] = {
    **dict.fromkeys(SAME_TYPE, write_same_type),
    **dict.fromkeys(CASTS, write_cast),
    "scf.yield": write_terminator,
    "arith.cmpf": write_comparison(FLOAT_PREDICATES),
    "arith.cmpi": write_comparison(INTEGER_PREDICATES),
    "arith.constant": write_constant,
    "arith.select": write_select,
    "cf.br": write_branch,
    "cf.cond_br": write_conditional_branch,
    "scf.condition": write_condition,
}
