"""From the form of an op (`ir/forms.py`) a function that gives what follows its name, at 3 to 10 us an op.

    tt.splat, "$src {} : type($src) -> type($result)"   gives   " %x : i32 -> tensor<64xi32>"

A form is cut into pieces; each is a small function, and the text is what they give, joined. A piece that is a region
prints itself, after the text before it has gone to the printer's output.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from xdsl.ir import Attribute, Operation, SSAValue

from tilework.ir.attr_text import dictionary, signature
from tilework.ir.forms import (
    ALL,
    SEGMENTS,
    Dictionary,
    Fields,
    Group,
    Literal,
    Node,
    Signature,
    TypeOf,
    Value,
    fields_of,
    operands_named,
    parse_form,
    walk,
)
from tilework.ir.property_text import OpPrinter

Piece = Callable[[OpPrinter, Operation], str]
Writer = Callable[[OpPrinter, Operation], str]


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


def signature_text(printer: OpPrinter, op: Operation) -> str:
    """``(i32) -> f32``, of all operands and results."""
    return signature(printer.texts, (v.type for v in op.operands), (v.type for v in op.results))


def compile_writer(cls: type[Operation], form: str) -> Writer:
    """The function that writes ops of `cls`."""
    nodes, fields = parse_form(form), fields_of(cls)
    pieces = make_pieces(nodes, fields, hidden_keys(nodes, fields))
    if any(isinstance(node, Value) and node.name in fields.regions for node in nodes):

        def write_nested(printer: OpPrinter, op: Operation) -> str:
            for piece in pieces:
                printer.out.append(piece(printer, op))
            return ""

        return write_nested

    def write(printer: OpPrinter, op: Operation) -> str:
        return "".join([piece(printer, op) for piece in pieces])

    return write


def hidden_keys(nodes: Sequence[Node], fields: Fields) -> Mapping[str, Attribute | None]:
    """The properties that the dictionary leaves out: with None always, else at this value."""
    named = {node.name for node in walk(nodes) if isinstance(node, Value)}
    hidden: dict[str, Attribute | None] = {SEGMENTS: None}
    for field, declared in fields.properties.items():
        if field in named or declared.default is not None:
            hidden[declared.key] = None if field in named else declared.default
    return hidden


def make_pieces(nodes: Sequence[Node], fields: Fields, hidden: Mapping[str, Attribute | None]) -> list[Piece]:
    """One function for each part that is not plain text; the text before it is its prefix."""
    pieces: list[Piece] = []
    prefix = ""
    for node in nodes:
        if isinstance(node, Literal):
            prefix += node.text
            continue
        if prefix and isinstance(node, Dictionary | Group):
            pieces.append(constant_piece(prefix))
            prefix = ""
        pieces.append(make_piece(prefix, node, fields, hidden))
        prefix = ""
    if prefix:
        pieces.append(constant_piece(prefix))
    return pieces


def constant_piece(text: str) -> Piece:
    return lambda printer, op: text


def make_piece(prefix: str, node: Node, fields: Fields, hidden: Mapping[str, Attribute | None]) -> Piece:
    if isinstance(node, Dictionary):
        return dictionary_piece(hidden)
    if isinstance(node, Group):
        return group_piece(node, fields, hidden)
    if isinstance(node, Signature):
        return lambda printer, op: prefix + signature_text(printer, op)
    if isinstance(node, TypeOf):
        return type_piece(prefix, node, fields)
    assert isinstance(node, Value), node
    if (declared := fields.properties.get(node.name)) is not None:
        key, text = declared.key, declared.codec.text
        return lambda printer, op: prefix + text(printer, op.properties[key])
    if node.name in fields.regions:
        return region_piece(prefix, fields.regions.index(node.name))
    if node.name != ALL and fields.is_fixed:
        index = list(fields.operands).index(node.name)
        return lambda printer, op: prefix + printer.names[op.operands[index]]
    return values_piece(prefix, node.name, fields)


def region_piece(prefix: str, index: int) -> Piece:
    def write(printer: OpPrinter, op: Operation) -> str:
        printer.out.append(prefix)
        printer.region(op.regions[index])
        return ""

    return write


def values_piece(prefix: str, name: str, fields: Fields) -> Piece:
    if name == ALL:
        return lambda printer, op: prefix + operands_text(printer, op.operands)
    return lambda printer, op: prefix + operands_text(printer, operands_named(fields, op, name))


def type_piece(prefix: str, node: TypeOf, fields: Fields) -> Piece:
    if node.name in fields.results:
        index = list(fields.results).index(node.name)
        if fields.results[node.name].is_variadic:
            assert len(fields.results) == 1, "one variadic result is all an op may have"
            return lambda printer, op: prefix + types_text(printer, op.results)
        if node.bare:
            return lambda printer, op: prefix + bare_text(printer, op.results[index].type)
        return lambda printer, op: prefix + printer.texts.of(op.results[index].type)
    if node.name == ALL or fields.operands[node.name].is_variadic:
        return lambda printer, op: prefix + types_text(printer, operands_named(fields, op, node.name))
    index = list(fields.operands).index(node.name)
    if any(slot.is_variadic for slot in list(fields.operands.values())[:index]):
        return lambda printer, op: prefix + printer.texts.of(operands_named(fields, op, node.name)[0].type)
    if node.bare:
        return lambda printer, op: prefix + bare_text(printer, op.operands[index].type)
    return lambda printer, op: prefix + printer.texts.of(op.operands[index].type)


def bare_text(printer: OpPrinter, type: Attribute) -> str:
    """``<f32>`` of ``!tt.ptr<f32>``."""
    text = printer.texts.of(type)
    return text[text.index("<") :]


def group_piece(group: Group, fields: Fields, hidden: Mapping[str, Attribute | None]) -> Piece:
    pieces = make_pieces(group.nodes, fields, hidden)
    anchor = next(node.name for node in walk(group.nodes) if isinstance(node, Value | TypeOf))
    if (declared := fields.properties.get(anchor)) is not None:
        key, default = declared.key, declared.default

        def write_property(printer: OpPrinter, op: Operation) -> str:
            value = op.properties.get(key)
            if value is None or value is default or value == default:
                return ""
            return "".join([piece(printer, op) for piece in pieces])

        return write_property

    def write_operand(printer: OpPrinter, op: Operation) -> str:
        if anchor not in fields.results and not operands_named(fields, op, anchor):
            return ""
        return "".join([piece(printer, op) for piece in pieces])

    return write_operand


def dictionary_piece(hidden: Mapping[str, Attribute | None]) -> Piece:
    def write(printer: OpPrinter, op: Operation) -> str:
        shown: Mapping[str, Attribute] = op.attributes
        if op.properties:
            extra = {
                key: value
                for key, value in op.properties.items()
                if key not in hidden or not ((usual := hidden[key]) is None or usual is value or usual == value)
            }
            shown = {**extra, **shown} if extra else shown
        return f" {dictionary(printer.texts, shown)}" if shown else ""

    return write
