"""From the form of an op (`ir/forms.py`) a function that reads what follows its name and builds it.

Operands and types are collected in the order of the text; then the types that are not written are inferred, the operands
resolved and the op is made, unchecked: that is the verifier's work. `OLDER` has for a few ops what must be done in
between to text of older compilers; it is filled by those who know them.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.parser import Parser, UnresolvedOperand

from tilework.ir.create import create_op
from tilework.ir.forms import (
    ALL,
    FORMS,
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
    parse_form,
    walk,
)
from tilework.ir.infer import solve
from tilework.ir.locations import unknown
from tilework.ir.types import i32_array

Types = Attribute | Sequence[Attribute]
LITERAL = re.compile(r"[A-Za-z_]\w*|->|\S")


class Reading:
    """What has been read of an op."""

    __slots__ = ("attributes", "operands", "position", "properties", "regions", "signature", "types")

    def __init__(self) -> None:
        self.operands: dict[str, Sequence[UnresolvedOperand]] = {}
        self.types: dict[str, Types] = {}
        self.properties: dict[str, Attribute] = {}
        self.attributes: dict[str, Attribute] = {}
        self.regions: dict[str, Region] = {}
        self.signature: tuple[Sequence[Attribute], Sequence[Attribute] | None] | None = None
        self.position = 0  # where the last list of types starts


Step = Callable[[Parser, Reading], None]
Attempt = Callable[[Parser, Reading], bool]
Reader = Callable[[Parser, type[Operation]], Operation]
Older = Callable[[Parser, Reading], None]
OLDER: dict[str, Older] = {}
READERS: dict[type[Operation], Reader] = {}  # by hand, of ops that are not ours


@cache
def reader_of(cls: type[Operation]) -> Reader | None:
    """What reads the text of ops of `cls`, if we know it."""
    if (reader := READERS.get(cls)) is not None:
        return reader
    form = FORMS.get(cls)
    return compile_reader(cls, form.text) if form is not None and form.text else None


def compile_reader(cls: type[Operation], form: str, older: Older | None = None) -> Reader:
    """The function that reads ops of `cls`."""
    nodes, fields = parse_form(form), fields_of(cls)
    steps = make_steps(nodes, fields)
    has_signature = any(isinstance(node, Signature) for node in nodes)
    written = {node.name for node in walk(nodes) if isinstance(node, TypeOf)}
    rules = [] if has_signature else solve(cls, fields, written)
    older = older or OLDER.get(cls.name)
    operand_slots, result_slots = tuple(fields.operands.values()), tuple(fields.results.values())

    def read(parser: Parser, op_type: type[Operation]) -> Operation:
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
        if reading.signature is not None:
            inputs, outputs = reading.signature
            operands = parser.resolve_operands([o for group in groups for o in group], inputs, reading.position)
        else:
            outputs = None
            operands: Sequence[SSAValue] = []
            for slot, group in zip(operand_slots, groups, strict=True):
                operands += resolve(parser, group, types.get(slot.name), reading.position)
        if outputs is None:
            outputs = []
            for slot in result_slots:
                found: Any = types[slot.name]
                if slot.is_variadic:
                    outputs += found
                else:
                    outputs.append(found)
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
    parser: Parser, group: Sequence[UnresolvedOperand], types: Types | None, position: int
) -> Sequence[SSAValue]:
    """The values of one operand of the class; without a type they must have been defined before."""
    if not group:
        return ()
    if types is None:
        return [resolve_defined(parser, operand) for operand in group]
    if isinstance(types, Attribute):
        return [parser.resolve_operand(operand, types) for operand in group]
    return parser.resolve_operands(group, types, position)


def resolve_defined(parser: Parser, operand: UnresolvedOperand) -> SSAValue:
    """An operand whose type the text leaves out: its definition must come before its use."""
    known = parser.ssa_values.get(operand.operand_name)
    if known is None or operand.index >= len(known):
        parser.raise_error(f"the type of %{operand.operand_name} is not known here", operand.span)
    return known[operand.index]


def spread(parser: Parser, fields: Fields, reading: Reading) -> None:
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


def check_sizes(parser: Parser, cls: type[Operation], fields: Fields, groups: Sequence[Sequence[Any]]) -> None:
    """Operands that come in groups of one size."""
    sizes = {slot.name: len(group) for slot, group in zip(fields.operands.values(), groups) if slot.is_variadic}
    if len(set(sizes.values())) > 1:
        first, *others = ("sizes" if name == "shape" else name for name in sizes)
        parser.raise_error(f"{cls.name} needs as many {first} as {' and '.join(others)}, not {list(sizes.values())}")


def make_steps(nodes: Sequence[Node], fields: Fields) -> list[Step]:
    return [step for node in nodes for step in node_steps(node, fields)]


def node_steps(node: Node, fields: Fields) -> list[Step]:
    if isinstance(node, Literal):
        return [literal_step(word) for word in LITERAL.findall(node.text)]
    if isinstance(node, Group):
        return [group_step(node, fields)]
    if isinstance(node, Dictionary):
        return [dictionary_step(fields)]
    if isinstance(node, Signature):
        return [read_signature]
    if isinstance(node, TypeOf):
        return [type_step(node, fields)]
    return [value_step(node.name, fields)]


def literal_step(word: str) -> Step:
    if word[0].isalpha():

        def read(parser: Parser, reading: Reading) -> None:
            if parser.parse_optional_keyword(word) is None:
                parser.raise_error(f"expected {word}")

        return read
    if word == "*":
        return lambda parser, reading: void(parser.parse_characters(word))
    return lambda parser, reading: void(parser.parse_punctuation(word))  # pyright: ignore[reportArgumentType]


def void(_: object) -> None:
    return None


def value_step(name: str, fields: Fields) -> Step:
    if (declared := fields.properties.get(name)) is not None:
        return property_step(declared)
    if name in fields.regions:

        def read_region(parser: Parser, reading: Reading) -> None:
            reading.regions[name] = parser.parse_region()

        return read_region
    if name != ALL and not fields.operands[name].is_many:

        def read_one(parser: Parser, reading: Reading) -> None:
            reading.operands[name] = (parser.parse_unresolved_operand(),)

        return read_one

    def read_all(parser: Parser, reading: Reading) -> None:
        reading.operands[name] = parse_operands(parser)

    def read_some(parser: Parser, reading: Reading) -> None:
        reading.operands[name] = parse_optional_operands(parser)

    return read_all if name == ALL else read_some


def property_step(declared: Property) -> Step:
    def read(parser: Parser, reading: Reading) -> None:
        reading.properties[declared.key] = declared.codec.require(parser)

    return read


def parse_operands(parser: Parser) -> list[UnresolvedOperand]:
    """``%a, %b``, at least one."""
    return parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)


def parse_optional_operands(parser: Parser) -> list[UnresolvedOperand]:
    """``%a, %b``, perhaps none."""
    return (
        parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
        )
        or []
    )


def type_step(node: TypeOf, fields: Fields) -> Step:
    name = node.name
    slot = fields.operands.get(name) or fields.results.get(name)
    if name == ALL:

        def read_inputs(parser: Parser, reading: Reading) -> None:
            reading.position = parser.pos
            reading.signature = parse_types(parser), None

        return read_inputs
    assert slot is not None, name
    if slot.is_many:

        def read_list(parser: Parser, reading: Reading) -> None:
            reading.position = parser.pos
            reading.types[name] = parse_types(parser)

        return read_list
    bare = slot.constraint.bare if node.bare else None

    def read_one(parser: Parser, reading: Reading) -> None:
        if bare is not None and (type := parser.parse_optional_type()) is None:
            reading.types[name] = bare(parser)
        else:
            reading.types[name] = type if bare is not None else parse_one_type(parser)

    return read_one


def parse_one_type(parser: Parser) -> Attribute:
    """``T``; an older compiler wrote ``(T) -> U``."""
    if parser.parse_optional_punctuation("("):
        type = parser.parse_type()
        parser.parse_punctuation(")")
        return type
    return parser.parse_type()


def parse_types(parser: Parser) -> list[Attribute]:
    """``f32, i32``."""
    return list(parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type))


def read_signature(parser: Parser, reading: Reading) -> None:
    reading.position = parser.pos
    type = parser.parse_function_type()
    reading.signature = type.inputs.data, type.outputs.data


def dictionary_step(fields: Fields) -> Step:
    keys = frozenset(declared.key for declared in fields.properties.values())

    def read(parser: Parser, reading: Reading) -> None:
        for name, value in parser.parse_optional_attr_dict().items():
            (reading.properties if name in keys else reading.attributes)[name] = value

    return read


def group_step(group: Group, fields: Fields) -> Step:
    """The first part of the group says whether it is there."""
    first, *others = group.nodes
    words = LITERAL.findall(first.text) if isinstance(first, Literal) else []
    if isinstance(first, Literal) and not words:
        first = others.pop(0)
    attempt = keyword_attempt(words[0]) if words else value_attempt(first, fields)
    rest = [literal_step(word) for word in words[1:]] + make_steps(others, fields)

    def read(parser: Parser, reading: Reading) -> None:
        if attempt(parser, reading):
            for step in rest:
                step(parser, reading)

    return read


def keyword_attempt(word: str) -> Attempt:
    if word[0].isalpha():
        return lambda parser, reading: parser.parse_optional_keyword(word) is not None
    return lambda parser, reading: parser.parse_optional_punctuation(word) is not None  # pyright: ignore


def value_attempt(node: Node, fields: Fields) -> Attempt:
    assert isinstance(node, Value), f"a group starts with a word or a value, not {node}"
    name = node.name
    if (declared := fields.properties.get(name)) is not None:

        def read_property(parser: Parser, reading: Reading) -> bool:
            if (found := declared.codec.read(parser)) is not None:
                reading.properties[declared.key] = found
            return found is not None

        return read_property
    if name == ALL or fields.operands[name].is_many:

        def read_some(parser: Parser, reading: Reading) -> bool:
            reading.operands[name] = found = parse_optional_operands(parser)
            return bool(found)

        return read_some

    def read_one(parser: Parser, reading: Reading) -> bool:
        if (found := parser.parse_optional_unresolved_operand()) is not None:
            reading.operands[name] = (found,)
        return found is not None

    return read_one
