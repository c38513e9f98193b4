"""From the form of an op (`ir/fields.py`) a function that gives what follows its name, at 3 to 10 us an op.

    tt.splat, "$src {} : type($src) -> type($result)"   gives   " %x : i32 -> tensor<64xi32>"

The function is one f-string, made once from the form. An op has at most one region in its form; the text before it has
gone to the printer's output when it is written.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from types import CodeType
from typing import Any

from xdsl.ir import Attribute, Operation, SSAValue

from tilework.ir.attr_text import dictionary, signature
from tilework.ir.create import operands_of
from tilework.ir.fields import (
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

Writer = Callable[[OpPrinter, Operation], str]
WRITERS: dict[type[Operation], Writer] = {}  # of ops without a form, by hand


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
    """Return the function that writes the text of ops of `cls`, or None for a class without one."""
    if (writer := WRITERS.get(cls)) is not None:
        return writer
    if (text := getattr(cls, "text", None)) is not None:
        return lambda printer, op: text(op, printer)
    form = getattr(cls, "form", "")
    return compile_writer(cls, form) if form else None


def compile_writer(cls: type[Operation], form: str) -> Writer:
    """The function that writes ops of `cls`: for `tt.splat` it is

        def write(printer, op):
            names, of, operands, results = printer.names, printer.texts.of, operands_of(op), op.results
            return f" {', '.join([...])}{part(printer, op)} : {of(operands[0].type)} -> ..."

    where `part` writes the dictionary.
    """
    nodes, fields = parse_form(form), fields_of(cls)
    source = WriterSource(fields, nodes)
    indices = [index for index, node in enumerate(nodes) if isinstance(node, Value) and node.name in fields.regions]
    if not indices:
        return source.function(nodes)
    (index,) = indices
    before, after = source.function(nodes[:index]), source.function(nodes[index + 1 :])

    def write(printer: OpPrinter, op: Operation) -> str:
        printer.out.append(before(printer, op))
        printer.region(op.regions[0])
        return after(printer, op)

    return write


WRITER = """
def write(printer, op):
    names, of, operands, results = printer.names, printer.texts.of, operands_of(op), op.results
    return f'PARTS'
"""


@cache
def compiled(source: str) -> CodeType:
    """Many ops have the same form."""
    return compile(source, "<form>", "exec")


class WriterSource:
    """Return the parts of a form as the text of an f-string; functions that they call are in `scope`."""

    def __init__(self, fields: Fields, nodes: Sequence[Node]) -> None:
        self.fields = fields
        self.scope: dict[str, Any] = {"operands_of": operands_of, "bare": bare}
        properties = fields.properties.values()
        named = {node.name for node in walk(nodes) if isinstance(node, Value)}
        self.usual = {declared.key: declared.default for declared in properties if declared.default is not None}
        # What the dictionary leaves out, and what of that every op has.
        self.hidden = {SEGMENTS, *(declared.key for declared in properties if declared.name in named)}
        self.silent = self.hidden - {*self.usual, *(declared.key for declared in properties if declared.is_optional)}

    def function(self, nodes: Sequence[Node]) -> Writer:
        """Return the function that writes `nodes`."""
        exec(compiled(WRITER.replace("PARTS", "".join(self.expressions(nodes)))), self.scope)
        return self.scope["write"]

    def later(self, nodes: Sequence[Node]) -> Writer:
        """The same, made when it is first needed."""
        made: list[Writer] = []

        def write(printer: OpPrinter, op: Operation) -> str:
            if not made:
                made.append(self.function(nodes))
            return made[0](printer, op)

        return write

    def expressions(self, nodes: Sequence[Node]) -> Iterator[str]:
        """Parts that are mostly not there (clauses of properties, the dictionary) are one function together."""
        for is_rare, group in groupby(nodes, self.is_rare):
            if is_rare:
                yield self.rare([self.clause(node) if isinstance(node, Group) else self.dictionary for node in group])
            else:
                yield from map(self.expression, group)

    def expression(self, node: Node) -> str:
        if isinstance(node, Literal):
            return node.text.replace("{", "{{").replace("}", "}}")  # of an f-string
        if isinstance(node, Signature):
            return self.call(signature_text)
        if isinstance(node, TypeOf):
            return self.type(node)
        if isinstance(node, Value):
            return self.value(node.name)
        assert isinstance(node, Group), node
        anchor = anchor_of(node)
        slot = self.fields.operands.get(anchor)
        if anchor != ALL and (slot is None or not slot.is_variadic):  # it is always there
            return "".join(self.expressions(node.nodes))
        write = self.later(node.nodes)
        return self.call(lambda printer, op: write(printer, op) if operands_named(self.fields, op, anchor) else "")

    def call(self, piece: Writer, condition: str = "") -> str:
        name = f"part{len(self.scope)}"
        self.scope[name] = piece
        return f"{{{name}(printer, op){condition}}}"

    def value(self, name: str) -> str:
        if (declared := self.fields.properties.get(name)) is not None:
            self.scope[f"text_{name}"] = declared.codec.text
            return f'{{text_{name}(printer, op.properties["{declared.key}"])}}'
        if name == ALL:
            return '{", ".join([names[value] for value in operands])}'
        if (index := self.fixed_index(name)) is not None:
            return f"{{names[operands[{index}]]}}"
        return self.call(lambda printer, op: operands_text(printer, operands_named(self.fields, op, name)))

    def fixed_index(self, name: str) -> int | None:
        """Return the index of the operand `name`, if it is the same in every op."""
        found = list(self.fields.operands).index(name)
        slots = list(self.fields.operands.values())[: found + 1]
        return None if any(slot.is_variadic for slot in slots) else found

    def type(self, node: TypeOf) -> str:
        fields, name = self.fields, node.name
        if name in fields.results and fields.results[name].is_variadic:
            assert len(fields.results) == 1, "one variadic result is all an op may have"
            return self.call(lambda printer, op: types_text(printer, op.results))
        if name in fields.results:
            value = f"results[{list(fields.results).index(name)}]"
        elif name == ALL or (index := self.fixed_index(name)) is None:
            assert not node.bare, f"the type of {name} cannot be written without its prefix"
            return self.call(lambda printer, op: types_text(printer, operands_named(fields, op, name)))
        else:
            value = f"operands[{index}]"
        return f"{{bare(of({value}.type))}}" if node.bare else f"{{of({value}.type)}}"

    def is_rare(self, node: Node) -> bool:
        """The dictionary, or a group for a property that has a default or need not be there."""
        if isinstance(node, Group):
            anchor = self.fields.properties.get(anchor_of(node))
            return anchor is not None and (anchor.is_optional or anchor.default is not None)
        return isinstance(node, Dictionary)

    def rare(self, pieces: Sequence[Writer]) -> str:
        """All `pieces`, unless a look shows that there are neither attributes nor unusual properties."""
        usual, silent = self.usual, frozenset(self.silent)

        def write(printer: OpPrinter, op: Operation) -> str:
            if not op.attributes:
                for key, value in op.properties.items():
                    if key not in silent and usual.get(key) is not value:
                        break
                else:
                    return ""
            return "".join([piece(printer, op) for piece in pieces])

        return self.call(write, ' if op.properties or op.attributes else ""')

    def clause(self, group: Group) -> Writer:
        declared, write = self.fields.properties[anchor_of(group)], self.later(group.nodes)

        def write_clause(printer: OpPrinter, op: Operation) -> str:
            value = op.properties.get(declared.key)
            return "" if value is None or value == declared.default else write(printer, op)

        return write_clause

    def dictionary(self, printer: OpPrinter, op: Operation) -> str:
        shown = {k: v for k, v in op.properties.items() if k not in self.hidden and self.usual.get(k) != v}
        shown |= op.attributes
        return f" {dictionary(printer.texts, shown)}" if shown else ""


def anchor_of(group: Group) -> str:
    """Return the field whose presence decides whether the group is written."""
    return next(node.name for node in walk(group.nodes) if isinstance(node, Value | TypeOf))


def bare(text: str) -> str:
    """``<f32>`` of ``!tt.ptr<f32>``."""
    return text[text.index("<") :]
