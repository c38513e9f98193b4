"""From the form of an op (`ir/forms.py`) a function that gives what follows its name, at 3 to 10 us an op.

    tt.splat, "$src {} : type($src) -> type($result)"   gives   " %x : i32 -> tensor<64xi32>"

The function is one f-string, made once from the form. An op has at most one region in its form; the text before it has
gone to the printer's output when it is written.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import zip_longest
from typing import Any

from xdsl.ir import Attribute, Operation, SSAValue

from tilework.ir.attr_text import dictionary, signature
from tilework.ir.create import operands_of
from tilework.ir.forms import (
    ALL,
    FORMS,
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
WRITERS: dict[type[Operation], Writer] = {}  # by hand, of ops that are not ours


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


@cache
def writer_of(cls: type[Operation]) -> Writer | None:
    """What writes the text of ops of `cls`, if we know it."""
    if (writer := WRITERS.get(cls)) is not None:
        return writer
    if (text := getattr(cls, "text", None)) is not None:
        return lambda printer, op: text(op, printer)
    form = FORMS.get(cls)
    return compile_writer(cls, form.text) if form is not None and form.text else None


def compile_writer(cls: type[Operation], form: str) -> Writer:
    """The function that writes ops of `cls`: for `tt.splat` it is

        def write(printer, op):
            names, of, operands, results = printer.names, printer.texts.of, operands_of(op), op.results
            return f" {', '.join([names[value] for value in operands])}{part(printer, op)} : {of(operands[0].type)} -> ..."

    where `part` writes the dictionary.
    """
    nodes, fields = parse_form(form), fields_of(cls)
    hidden = hidden_keys(nodes, fields)
    places = [place for place, node in enumerate(nodes) if isinstance(node, Value) and node.name in fields.regions]
    if not places:
        return writer_from(nodes, fields, hidden)
    (place,) = places
    before, after = (writer_from(part, fields, hidden) for part in (nodes[:place], nodes[place + 1 :]))

    def write(printer: OpPrinter, op: Operation) -> str:
        printer.out.append(before(printer, op))
        printer.region(op.regions[0])
        return after(printer, op)

    return write


def writer_from(nodes: Sequence[Node], fields: Fields, hidden: Mapping[str, Attribute | None]) -> Writer:
    scope: dict[str, Any] = {"operands_of": operands_of}
    parts = expressions(nodes, fields, hidden, scope)
    exec(WRITER.replace("PARTS", "".join(parts)), scope)
    return scope["write"]


WRITER = """
def write(printer, op):
    names, of, operands, results = printer.names, printer.texts.of, operands_of(op), op.results
    return f'PARTS'
"""


def hidden_keys(nodes: Sequence[Node], fields: Fields) -> Mapping[str, Attribute | None]:
    """The properties that the dictionary leaves out: with None always, else at this value."""
    named = {node.name for node in walk(nodes) if isinstance(node, Value)}
    hidden: dict[str, Attribute | None] = {SEGMENTS: None}
    for field, declared in fields.properties.items():
        if field in named or declared.default is not None:
            hidden[declared.key] = None if field in named else declared.default
    return hidden


def expressions(
    nodes: Sequence[Node], fields: Fields, hidden: Mapping[str, Attribute | None], scope: dict[str, Any]
) -> Iterator[str]:
    """For each part what stands for it in an f-string; functions that it calls go to `scope`.

    The parts that are mostly not there (clauses of properties, the dictionary) are one function together, which finds
    out quickly that there is nothing to write.
    """
    rare: list[Piece] = []
    for node, following in zip_longest(nodes, nodes[1:]):
        if is_rare(node, fields):
            rare.append(rare_piece(node, fields, hidden))
            if following is None or not is_rare(following, fields):
                yield rare_expression(rare, fields, hidden, scope)
                rare = []
        elif isinstance(node, Literal):
            yield node.text
        elif isinstance(node, Signature):
            yield called(signature_text, scope)
        elif isinstance(node, TypeOf):
            yield type_expression(node, fields, scope)
        elif isinstance(node, Group) and is_always(anchor_of(node), fields):
            yield from expressions(node.nodes, fields, hidden, scope)
        elif isinstance(node, Group):
            yield called(operand_group(node, fields, hidden), scope)
        else:
            assert isinstance(node, Value), node
            yield value_expression(node.name, fields, scope)


def called(piece: Piece, scope: dict[str, Any]) -> str:
    name = f"part{len(scope)}"
    scope[name] = piece
    return f"{{{name}(printer, op)}}"


def is_rare(node: Node | None, fields: Fields) -> bool:
    """The dictionary, or a group for a property that has a default or need not be there."""
    if isinstance(node, Group):
        anchor = fields.properties.get(anchor_of(node))
        return anchor is not None and (anchor.is_optional or anchor.default is not None)
    return isinstance(node, Dictionary)


def anchor_of(group: Group) -> str:
    """What must be there for the group to be written."""
    return next(node.name for node in walk(group.nodes) if isinstance(node, Value | TypeOf))


def is_always(name: str, fields: Fields) -> bool:
    """Every op of the class has it."""
    if (slot := fields.operands.get(name)) is not None:
        return not slot.is_variadic
    return name in fields.results or (name in fields.properties and not fields.properties[name].is_optional)


def rare_expression(
    pieces: Sequence[Piece], fields: Fields, hidden: Mapping[str, Attribute | None], scope: dict[str, Any]
) -> str:
    """All `pieces`, unless a look shows that there are neither attributes nor unusual properties."""
    properties = fields.properties.values()
    usual = {declared.key: declared.default for declared in properties if declared.default is not None}
    unsure = {*usual, *(declared.key for declared in properties if declared.is_optional)}
    silent = frozenset(key for key in hidden if key not in unsure)

    def write(printer: OpPrinter, op: Operation) -> str:
        if not op.attributes:
            for key, value in op.properties.items():
                if key not in silent and usual.get(key) is not value:
                    break
            else:
                return ""
        return "".join([piece(printer, op) for piece in pieces])

    return f'{called(write, scope)[:-1]} if op.properties or op.attributes else ""}}'


def value_expression(name: str, fields: Fields, scope: dict[str, Any]) -> str:
    if (declared := fields.properties.get(name)) is not None:
        scope[f"text_{name}"] = declared.codec.text
        return f'{{text_{name}(printer, op.properties["{declared.key}"])}}'
    if name == ALL:
        return '{", ".join([names[value] for value in operands])}'
    if (index := fixed_index(name, fields)) is not None:
        return f"{{names[operands[{index}]]}}"
    return called(lambda printer, op: operands_text(printer, operands_named(fields, op, name)), scope)


def fixed_index(name: str, fields: Fields) -> int | None:
    """Where the operand `name` is in every op."""
    found = list(fields.operands).index(name)
    slots = list(fields.operands.values())[: found + 1]
    return None if any(slot.is_variadic for slot in slots) else found


def type_expression(node: TypeOf, fields: Fields, scope: dict[str, Any]) -> str:
    name = node.name
    if name in fields.results:
        if fields.results[name].is_variadic:
            assert len(fields.results) == 1, "one variadic result is all an op may have"
            return called(lambda printer, op: types_text(printer, op.results), scope)
        value = f"results[{list(fields.results).index(name)}]"
    elif name == ALL or (index := fixed_index(name, fields)) is None:
        return called(lambda printer, op: types_text(printer, operands_named(fields, op, name)), scope)
    else:
        value = f"operands[{index}]"
    if node.bare:
        scope["bare"] = bare
        return f"{{bare(of({value}.type))}}"
    return f"{{of({value}.type)}}"


def bare(text: str) -> str:
    """``<f32>`` of ``!tt.ptr<f32>``."""
    return text[text.index("<") :]


def operand_group(group: Group, fields: Fields, hidden: Mapping[str, Attribute | None]) -> Piece:
    anchor, write = anchor_of(group), writer_from(group.nodes, fields, hidden)
    return lambda printer, op: write(printer, op) if operands_named(fields, op, anchor) else ""


def rare_piece(node: Node, fields: Fields, hidden: Mapping[str, Attribute | None]) -> Piece:
    if isinstance(node, Dictionary):
        return dictionary_piece(hidden)
    assert isinstance(node, Group), node
    declared, write = fields.properties[anchor_of(node)], writer_from(node.nodes, fields, hidden)

    def write_clause(printer: OpPrinter, op: Operation) -> str:
        value = op.properties.get(declared.key)
        return "" if value is None or value == declared.default else write(printer, op)

    return write_clause


def dictionary_piece(hidden: Mapping[str, Attribute | None]) -> Piece:
    def write(printer: OpPrinter, op: Operation) -> str:
        extra = {
            key: value
            for key, value in op.properties.items()
            if key not in hidden or not ((usual := hidden[key]) is None or usual == value)
        }
        shown = {**extra, **op.attributes}
        return f" {dictionary(printer.texts, shown)}" if shown else ""

    return write
