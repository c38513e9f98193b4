"""The readers and writers of ops, made from their forms (`ir/fields.py`).

`reader_of` compiles the form of an op to a function that parses the text after its name, `writer_of` to one that
writes it.

Operands and types are collected in the order of the text; then the types that are not written are inferred, the
operands resolved and the op is created, unchecked: that is the verifier's work. `OLDER` has for a few ops the changes
to text of older compilers in between; the modules of `legacy/` fill it.

`infer` of an op class has the types that follow from other types, for its reader and its builder:

    infer = {"result": (loaded_type, "ptr"), "mask": (mask_type, "result"), "other": "result"}

The type of `result` is a function of that of `ptr`; `other` has the type of `result` (and the other way round). An
argument may be a property, as its Python value: ``{"result": (expanded_type, "src", "axis")}``; only builders use such
a rule. A fixed type is its own result. ``{"$operands": "result"}`` is about every operand. The types of a variadic
operand are inferred one by one. A constraint that only one type satisfies (`I32`) and the trait `SameType` imply a
rule.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from types import CodeType
from typing import TYPE_CHECKING, Any

from xdsl.ir import Attribute, Operation, Region, SSAValue

from tilework.ir.attr_text import OpPrinter, dictionary, signature
from tilework.ir.constraints import SameType
from tilework.ir.create import create_op, operands_of
from tilework.ir.fields import (
    ALL,
    SEGMENTS,
    Dictionary,
    Fields,
    Group,
    Literal,
    Node,
    Property,
    Signature,
    TypeOf,
    Value,
    fields_of,
    operands_named,
    parse_form,
    walk,
)
from tilework.ir.locations import unknown
from tilework.ir.types import i32_array
from tilework.light_dataclass import light_dataclass

if TYPE_CHECKING:
    from xdsl.parser import Parser, UnresolvedOperand


OPERANDS = "$operands"


@light_dataclass
class Rule:
    """The type of `target`: that of the first source, or `function` of all sources."""

    target: str
    function: Callable[..., Attribute] | None
    sources: tuple[str, ...]
    fixed: Attribute | None = None

    def apply(self, types: Mapping[str, Any]) -> Any:
        if self.fixed is not None:
            return self.fixed
        first, *others = (types[source] for source in self.sources)
        if self.function is None:
            return first
        if isinstance(first, Attribute):
            return self.function(first, *others)
        return [self.function(type, *others) for type in first]


def rules_of(cls: type[Operation], fields: Fields) -> list[Rule]:
    """Return the type rules of a class, the most certain first."""
    slots = [*fields.operands.values(), *fields.results.values()]
    rules = [Rule(slot.name, None, (), slot.only) for slot in slots if slot.only is not None]
    reversed_rules: list[Rule] = []
    declared: dict[str, Any] = dict(getattr(cls, "infer", {}))
    if (source := declared.pop(OPERANDS, None)) is not None:
        declared = dict.fromkeys(fields.operands, source) | declared
    if cls.has_trait(SameType):
        declared |= {slot.name: slots[0].name for slot in slots[1:]}
    for target, rule in declared.items():
        if isinstance(rule, str):
            rules.append(Rule(target, None, (rule,)))
            reversed_rules.append(Rule(rule, None, (target,)))
        elif isinstance(rule, Attribute):
            rules.append(Rule(target, None, (), rule))
        else:
            function, *sources = rule
            rules.append(Rule(target, function, tuple(sources)))
    return rules + reversed_rules


def solve(cls: type[Operation], fields: Fields, known: Collection[str]) -> list[Rule]:
    """The rules to apply, in order, where the types of `known` are given."""
    given, order = set(known), []
    rules = rules_of(cls, fields)
    optional = {slot.name for slot in fields.operands.values() if slot.is_optional}
    while True:
        usable = (
            rule
            for rule in rules
            if rule.target not in given and all(source in given and source not in optional for source in rule.sources)
        )
        if (rule := next(usable, None)) is None:
            return order
        given.add(rule.target)
        order.append(rule)


Types = Attribute | Sequence[Attribute]
LITERAL = re.compile(r"#[\w.]+|[A-Za-z_]\w*|->|\S")


class Reading:
    """The parts of an op that have been read."""

    __slots__ = ("attributes", "operands", "position", "properties", "regions", "signature", "types")

    def __init__(self) -> None:
        self.operands: dict[str, Sequence[UnresolvedOperand]] = {}
        self.types: dict[str, Types] = {}
        self.properties: dict[str, Attribute] = {}
        self.attributes: dict[str, Attribute] = {}
        self.regions: dict[str, Region] = {}
        self.signature: tuple[Sequence[Attribute] | None, Sequence[Attribute] | None] = None, None
        self.position = 0  # where the last list of types starts


Step = Callable[["Parser", Reading], object]
Attempt = Callable[["Parser", Reading], bool]
Reader = Callable[["Parser", type[Operation]], Operation]
Older = Callable[["Parser", Reading], None]
OLDER: dict[str, Older] = {}


@cache
def reader_of(cls: type[Operation]) -> Reader | None:
    """Return the function that reads the text of ops of `cls`, or None for a class without one."""
    form = getattr(cls, "form", "")
    return compile_reader(cls, form) if form else None


def compile_reader(cls: type[Operation], form: str, older: Older | None = None) -> Reader:
    """The function that reads ops of `cls`."""
    nodes, fields = parse_form(form), fields_of(cls)
    steps = [required(*part) for node in nodes for part in node_parts(node, fields)]
    has_signature = any(isinstance(node, Signature) for node in nodes)
    written = {node.name for node in walk(nodes) if isinstance(node, TypeOf)}
    rules = [] if has_signature else solve(cls, fields, written)
    older = older or OLDER.get(cls.name)
    operand_slots, result_slots = tuple(fields.operands.values()), tuple(fields.results.values())

    def read(parser: "Parser", op_type: type[Operation]) -> Operation:
        reading = Reading()
        for step in steps:
            step(parser, reading)
        if older is not None:
            older(parser, reading)
        if ALL in reading.operands:
            spread(parser, fields, reading)
        groups = [reading.operands.get(slot.name, ()) for slot in operand_slots]
        types = reading.types
        for rule in rules:
            if rule.target not in types:
                types[rule.target] = rule.apply(types)
        inputs, outputs = reading.signature
        if inputs is not None:
            operands = parser.resolve_operands([o for group in groups for o in group], inputs, reading.position)
        else:
            operands: Sequence[SSAValue] = []
            for slot, group in zip(operand_slots, groups, strict=True):
                operands += resolve(parser, group, types.get(slot.name), reading.position)
        if outputs is None:
            outputs = []
            for slot in result_slots:
                found: Any = types[slot.name]
                outputs += found if slot.is_many else (found,)
        if fields.has_segments:
            reading.properties[SEGMENTS] = i32_array(*map(len, groups))
        elif fields.has_same_sizes:
            check_sizes(parser, op_type, fields, groups)
        op = create_op(op_type, operands, outputs, unknown, reading.properties, reading.attributes)
        for name in fields.regions:
            op.add_region(reading.regions[name])
        return op

    return read


def resolve(
    parser: "Parser", group: Sequence["UnresolvedOperand"], types: Types | None, position: int
) -> Sequence[SSAValue]:
    """The values of one operand of the class; without a type they must have been defined before."""
    if not group:
        return ()
    if types is None:
        return [resolve_defined(parser, operand) for operand in group]
    if isinstance(types, Attribute):
        return [parser.resolve_operand(operand, types) for operand in group]
    return parser.resolve_operands(group, types, position)


def resolve_defined(parser: "Parser", operand: "UnresolvedOperand") -> SSAValue:
    """An operand whose type the text leaves out: its definition must come before its use."""
    known = parser.ssa_values.get(operand.operand_name)
    if known is None or operand.index >= len(known):
        parser.raise_error(f"the type of %{operand.operand_name} is not known here", operand.span)
    return known[operand.index]


def spread(parser: "Parser", fields: Fields, reading: Reading) -> None:
    """Give the list of all operands to those of the class, in order: optional ones first come, first served."""
    given = reading.operands.pop(ALL)
    needed = sum(not slot.is_variadic for slot in fields.operands.values())
    spare = len(given) - needed
    start = 0
    for slot in fields.operands.values():
        size = min(1, max(spare, 0)) if slot.is_optional else max(spare, 0) if slot.is_variadic else 1
        spare -= size if slot.is_variadic else 0
        reading.operands[slot.name] = given[start : start + size]
        start += size
    if spare:
        most = len(fields.operands)
        if spare > 0:
            parser.raise_error(f"at most {most} operands are expected, but got {len(given)}", given[most].span)
        parser.raise_error(f"{needed} operands are expected, but got {len(given)}")


def check_sizes(parser: "Parser", cls: type[Operation], fields: Fields, groups: Sequence[Sequence[Any]]) -> None:
    """Operands that come in groups of one size."""
    sizes = {slot.name: len(group) for slot, group in zip(fields.operands.values(), groups) if slot.is_variadic}
    if len(set(sizes.values())) > 1:
        first, *others = ("sizes" if name == "shape" else name for name in sizes)
        parser.raise_error(f"{cls.name} needs as many {first} as {' and '.join(others)}, not {list(sizes.values())}")


def required(attempt: Attempt, fail: Callable[["Parser"], object] | None) -> Step:
    """Return the result of `attempt`; call `fail` if there is none."""
    if fail is None:
        return attempt

    def read(parser: "Parser", reading: Reading) -> None:
        if not attempt(parser, reading):
            fail(parser)

    return read


def node_parts(node: Node, fields: Fields) -> Iterator[tuple[Attempt, Callable[["Parser"], object] | None]]:
    """The functions that read `node`, each with one that raises the error when it is missing (None: it may be)."""
    if isinstance(node, Literal):
        yield from map(literal_part, LITERAL.findall(node.text))
    elif isinstance(node, Group):
        yield group_attempt(node, fields), None
    elif isinstance(node, Dictionary):
        yield dictionary_attempt(fields), None
    elif isinstance(node, Signature):
        yield read_signature, None
    elif isinstance(node, TypeOf):
        yield type_attempt(node, fields), None
    elif (declared := fields.properties.get(node.name)) is not None:
        yield property_attempt(declared), declared.codec.require
    elif node.name in fields.regions:
        yield region_attempt(node.name), None
    else:
        yield operands_part(node.name, fields)


def literal_part(literal: str) -> tuple[Attempt, Callable[["Parser"], object]]:
    is_keyword = literal[0].isalpha()
    message = f"expected {literal}" if is_keyword else f"Expected '{literal}'"

    def read(parser: "Parser", reading: Reading) -> bool:
        if literal[0] == "#" and parser._current_token.text == literal:
            return bool(parser._consume_token())
        found = parser.parse_optional_keyword(literal) if is_keyword else parser.parse_optional_characters(literal)
        return found is not None

    return read, lambda parser: parser.raise_error(message)


def property_attempt(declared: Property) -> Attempt:
    def read(parser: "Parser", reading: Reading) -> bool:
        if (found := declared.codec.read(parser)) is not None:
            reading.properties[declared.key] = found
        return found is not None

    return read


def region_attempt(name: str) -> Attempt:
    def read(parser: "Parser", reading: Reading) -> bool:
        reading.regions[name] = parser.parse_region()
        return True

    return read


def operands_part(name: str, fields: Fields) -> tuple[Attempt, Callable[["Parser"], object] | None]:
    if name != ALL and not fields.operands[name].is_many:

        def read_one(parser: "Parser", reading: Reading) -> bool:
            if (found := parser.parse_optional_unresolved_operand()) is not None:
                reading.operands[name] = (found,)
            return found is not None

        return read_one, lambda parser: parser.parse_unresolved_operand()

    def read_some(parser: "Parser", reading: Reading) -> bool:
        reading.operands[name] = found = parse_optional_operands(parser)
        return bool(found)

    return read_some, parse_operands if name == ALL else None


def parse_operands(parser: "Parser") -> list["UnresolvedOperand"]:
    """``%a, %b``, at least one."""
    return parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)


def parse_optional_operands(parser: "Parser") -> list["UnresolvedOperand"]:
    """``%a, %b``, perhaps none."""
    first, others = parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
    return parser.parse_optional_undelimited_comma_separated_list(first, others) or []


def type_attempt(node: TypeOf, fields: Fields) -> Attempt:
    name = node.name
    slot = fields.operands.get(name) or fields.results.get(name)
    bare = slot.constraint.bare if slot is not None and slot.constraint is not None and node.bare else None

    def read(parser: "Parser", reading: Reading) -> bool:
        reading.position = parser.pos
        if slot is None:
            reading.signature = parse_types(parser), None
        elif slot.is_many:
            reading.types[name] = parse_types(parser)
        elif bare is None:
            reading.types[name] = parse_one_type(parser)
        else:
            reading.types[name] = parser.parse_optional_type() or bare(parser)
        return True

    return read


def parse_one_type(parser: "Parser") -> Attribute:
    """``T``; an older compiler wrote ``(T) -> U``."""
    if parser.parse_optional_punctuation("("):
        type = parser.parse_type()
        parser.parse_punctuation(")")
        return type
    return parser.parse_type()


def parse_types(parser: "Parser") -> list[Attribute]:
    """``f32, i32``."""
    return list(parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type))


def read_signature(parser: "Parser", reading: Reading) -> bool:
    reading.position = parser.pos
    type = parser.parse_function_type()
    reading.signature = type.inputs.data, type.outputs.data
    return True


def dictionary_attempt(fields: Fields) -> Attempt:
    keys = frozenset(declared.key for declared in fields.properties.values())

    def read(parser: "Parser", reading: Reading) -> bool:
        for name, value in parser.parse_optional_attr_dict().items():
            (reading.properties if name in keys else reading.attributes)[name] = value
        return True

    return read


def group_attempt(group: Group, fields: Fields) -> Attempt:
    """The first part of the group says whether it is there; a type is, where what it is the type of was."""
    first = group.nodes[0]
    named = first.name if isinstance(first, TypeOf) else None
    (attempt, _), *others = (part for node in group.nodes for part in node_parts(node, fields))
    rest = [required(*part) for part in others]

    def read(parser: "Parser", reading: Reading) -> bool:
        if found := (named is None or bool(reading.operands.get(named))) and attempt(parser, reading):
            for step in rest:
                step(parser, reading)
        return found

    return read


# ---- From the form of an op (`ir/fields.py`) a function that gives what follows its name, at 3 to 10 us an op.
#
#     tt.splat, "$src {} : type($src) -> type($result)"   gives   " %x : i32 -> tensor<64xi32>"
#
# The function is one f-string, made once from the form. An op has at most one region in its form; the text before it
# has gone to the printer's output when it is written.


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
        """Return a writer of all `pieces` that writes nothing for ops without attributes and unusual properties."""
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
