"""Forms: the text after the name of an op, as one string from which its reader and its writer are compiled.

    form = "$operands(? cacheModifier = $cache)(? evictionPolicy = $evict) {} : type($ptr)"

    $x           an operand, several (``%a, %b``) where it is variadic, a property, or a region
    $operands    all operands
    type($x)     the type of an operand or result, the types where it is variadic
    bare($x)     its type without the prefix that all types there have: ``<f32>`` for ``!tt.ptr<f32>``
    signature    ``(T, U) -> V``, the types of all operands and results
    (? ...)      written where the first thing named in it is there: an operand that is given, a property that is not
                 at its default
    {}           the attribute dictionary: the properties that the form does not name and that are not at their
                 default, and the discardable attributes
    other text   itself; white space is written as it is here

The types that a form does not name are inferred (`infer`, see `ir/declare.py`).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    OptionalDef,
    RangeLengthConstraint,
    RangeOf,
    SameVariadicOperandSize,
    VariadicDef,
)

from tilework.ir.property_text import Codec, codec_of
from tilework.ir.types import array_values

SEGMENTS = "operandSegmentSizes"
ALL = "operands"
CONVERSION = "$operands {} : type($src) -> type($result)"
SAME_TYPE = "$operands {} : type($result)"
RETURN = "{}(? $operands : type($operands))"
COMBINE_RETURN = "(? $operands) {}(? : type($operands))"
PRINT = "$prefix {}(? : $operands : type($operands))"
ASSERT = "$condition, $message {} : type($condition)"
ACCESS = "$operands(? cacheModifier = $cache)(? evictionPolicy = $evict) {} : type($ptr)"
TOKEN = re.compile(r"\(\?| ?\{\}|\$(\w+)|\b(type|bare)\(\$(\w+)\)|\bsignature\b|.")


@dataclass(frozen=True)
class Literal:
    text: str


@dataclass(frozen=True)
class Value:
    name: str


@dataclass(frozen=True)
class TypeOf:
    name: str
    bare: bool


@dataclass(frozen=True)
class Signature:
    pass


@dataclass(frozen=True)
class Dictionary:
    pass


@dataclass(frozen=True)
class Group:
    nodes: "tuple[Node, ...]"


Node = Literal | Value | TypeOf | Signature | Dictionary | Group


@cache
def parse_form(form: str) -> tuple[Node, ...]:
    """The parts of `form`; the text after an op's name starts with a space, unless it may be empty."""
    stack: list[list[Node]] = [[]]
    parens: list[bool] = []  # the open ones: is it a group?
    for match in TOKEN.finditer(form):
        text = match[0]
        if text in ("(?", "("):
            parens.append(text == "(?")
        if text == "(?":
            stack.append([])
        elif text == ")" and parens.pop():
            group = Group(tuple(stack.pop()))
            stack[-1].append(group)
        elif match[1] is not None:
            stack[-1].append(Value(match[1]))
        elif match[2] is not None:
            stack[-1].append(TypeOf(match[3], match[2] == "bare"))
        elif text == "signature":
            stack[-1].append(Signature())
        elif text.endswith("{}"):
            stack[-1].append(Dictionary())
        elif stack[-1] and isinstance(last := stack[-1][-1], Literal):
            stack[-1][-1] = Literal(last.text + text)
        else:
            stack[-1].append(Literal(text))
    (nodes,) = stack
    first = nodes[0] if nodes else None
    if isinstance(first, Literal) and not first.text.startswith("("):
        nodes[0] = Literal(f" {first.text}")
    elif isinstance(first, Value | TypeOf):
        nodes.insert(0, Literal(" "))
    return tuple(nodes)


def walk(nodes: Sequence[Node]) -> Iterator[Node]:
    """The parts and those of their groups."""
    for node in nodes:
        yield node
        if isinstance(node, Group):
            yield from walk(node.nodes)


@dataclass(frozen=True)
class Property:
    """A property: its field in the class, its key in the IR."""

    field: str
    key: str
    codec: Codec
    default: Attribute | None
    is_optional: bool


@dataclass(frozen=True)
class Slot:
    """An operand or result of the class."""

    name: str
    constraint: Any
    is_variadic: bool
    is_optional: bool

    @property
    def is_many(self) -> bool:
        """It may have more than one value."""
        return self.is_variadic and not self.is_optional

    @property
    def only(self) -> Attribute | None:
        """The one type it may have."""
        return getattr(self.constraint, "only", None)


@dataclass(frozen=True)
class Fields:
    """The declared fields of an op class, by name."""

    operands: dict[str, Slot]
    results: dict[str, Slot]
    properties: dict[str, Property]
    regions: tuple[str, ...]
    has_segments: bool
    has_same_sizes: bool

    @property
    def is_fixed(self) -> bool:
        """Every operand is there exactly once."""
        return not any(slot.is_variadic for slot in self.operands.values())


def slots(definitions: Sequence[tuple[str, Any]]) -> dict[str, Slot]:
    found = {}
    for name, definition in definitions:
        constraint = definition.constr
        if isinstance(constraint, RangeLengthConstraint):
            constraint = constraint.constraint
        if isinstance(constraint, RangeOf):
            constraint = constraint.constr
        is_variadic, is_optional = isinstance(definition, VariadicDef), isinstance(definition, OptionalDef)
        found[name] = Slot(name, constraint, is_variadic, is_optional)
    return found


@dataclass(frozen=True)
class Form:
    """The form of an op and what its types follow from."""

    text: str
    infer: Mapping[str, Any] = field(default_factory=dict)


FORMS: dict[type[Operation], Form] = {}
EXTRA: dict[type[Operation], dict[str, Property]] = {}  # properties that xDSL's classes know less of, or nothing


@cache
def fields_of(cls: type[Operation]) -> Fields:
    """The fields of an op class."""
    assert issubclass(cls, IRDLOperation), cls
    definition = cls.get_irdl_definition()
    properties = {}
    for name, (key, _) in definition.accessor_names.items():
        if (declared := definition.properties.get(key)) is not None:
            is_optional = isinstance(declared, OptionalDef)
            default = None if is_optional else declared.default_value
            properties[name] = Property(name, key, codec_of(key, declared.constr), default, is_optional)
    for name, extra in EXTRA.get(cls, {}).items():
        known = definition.properties.get(extra.key)
        usual = None if known is None else known.default_value
        properties[name] = extra if usual is None else replace(extra, default=usual)
    options = [type(option) for option in definition.options]
    return Fields(
        slots(definition.operands),
        slots(definition.results),
        properties,
        tuple(name for name, _ in definition.regions),
        AttrSizedOperandSegments in options,
        SameVariadicOperandSize in options,
    )


def group_sizes(fields: Fields, op: Operation) -> Sequence[int]:
    """Return the number of values of each operand of the class in `op`."""
    if fields.has_segments:
        return array_values(op.properties[SEGMENTS])
    variadic = sum(slot.is_variadic for slot in fields.operands.values())
    rest = len(op.operands) - (len(fields.operands) - variadic)
    return [rest // variadic if slot.is_variadic else 1 for slot in fields.operands.values()]


def operands_named(fields: Fields, op: Operation, name: str) -> Sequence[SSAValue]:
    """The values of the operand `name`; all of them for ``operands``."""
    if name == ALL:
        return op.operands
    start = 0
    for slot, size in zip(fields.operands, group_sizes(fields, op), strict=True):
        if slot == name:
            return op.operands[start : start + size]
        start += size
    raise KeyError(name)
