"""The fields of an op class: its operands, results, properties, regions and successors.

    class LoadOp(Op):
        ptr = operand_def(PTR_LIKE)                  op.ptr      the value
        mask = opt_operand_def(BOOL_LIKE)            op.mask     the value, or None
        indices = var_operand_def(I32)               op.indices  a tuple of values
        is_volatile = prop_def(I1_PROPERTY, default_value=FALSE, prop_name="isVolatile")

A field describes itself and is the accessor of the op's part. `fields_of` collects the fields of a class, those of the
class before those of its bases; `verify_fields` checks an op against them.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from typing import Any

from xdsl.dialects.builtin import DenseArrayBase
from xdsl.ir import Attribute, Operation, OpTraits, SSAValue
from xdsl.traits import OpTrait
from xdsl.utils.exceptions import VerifyException

from tilework.ir.attr_text import Codec, codec_of
from tilework.ir.constraints import Kind, KindT
from tilework.ir.create import operands_of
from tilework.ir.types import array_values
from tilework.light_dataclass import light_dataclass

SEGMENTS = "operandSegmentSizes"
ALL = "operands"


class Field:
    """A field of an op class, by the name that the class gives it."""

    name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name


class Slot(Field):
    """An operand or result: one value, one or none (`is_optional`), or any number."""

    def __init__(self, constraint: Any, *, is_variadic: bool = False, is_optional: bool = False) -> None:
        self.constraint: Kind[Attribute] | None = constraint
        self.is_variadic = is_variadic
        self.is_optional = is_optional
        self.is_many = is_variadic and not is_optional  # it may have more than one value
        self.only: Attribute | None = None if constraint is None else constraint.only  # the one type it may have

    def pick(self, values: Sequence[SSAValue]) -> Any:
        """The field of an op in which it has these values."""
        return values if self.is_many else values[0] if values else None

    def verify(self, what: str, values: Sequence[SSAValue]) -> None:
        if self.constraint is None:
            return
        for value in values:
            if not self.constraint.accepts(value.type):
                raise VerifyException(f"{what} '{self.name}' must be {self.constraint.text}, but got {value.type}")


class Operand(Slot):
    def __get__(self, op: Operation | None, owner: type) -> Any:
        if op is None:
            return self
        return self.pick(operands_named(fields_of(owner), op, self.name))


class Result(Slot):
    def __get__(self, op: Operation | None, owner: type) -> Any:
        if op is None:
            return self
        index = fields_of(owner).result_names.index(self.name)
        return self.pick(op.results[index:] if self.is_variadic else op.results[index : index + 1])


class Property(Field):
    """A property: an attribute that `key` names in the IR."""

    def __init__(self, constraint: Any, default: Attribute | None, key: str | None, *, is_optional: bool) -> None:
        self.constraint = constraint
        self.default = default
        self.key = key or ""
        self.is_optional = is_optional

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self.key = self.key or name

    @property
    def codec(self) -> Codec:
        return codec_of(self.key, self.constraint)

    def __get__(self, op: Operation | None, owner: type) -> Any:
        if op is None:
            return self
        if self.is_optional or self.default is not None:
            return op.properties.get(self.key, self.default)
        return op.properties[self.key]

    def __set__(self, op: Operation, value: Attribute) -> None:
        op.properties[self.key] = value

    def verify(self, value: Attribute) -> None:
        constraint = self.constraint
        if isinstance(constraint, Kind):
            if not constraint.accepts(value):
                raise VerifyException(f"property must be {constraint.text}, but got {value}")
        elif not isinstance(value, constraint):
            raise VerifyException(f"property '{self.key}' must be {constraint.__name__}, but got {value}")


class RegionField(Field):
    def __init__(self, *, is_variadic: bool, is_block: bool) -> None:
        self.is_variadic = is_variadic
        self.is_block = is_block

    def __get__(self, op: Operation | None, owner: type) -> Any:
        if op is None:
            return self
        index = fields_of(owner).regions.index(self.name)
        return op.regions[index:] if self.is_variadic else op.regions[index]


class Successor(Field):
    def __get__(self, op: Operation | None, owner: type) -> Any:
        return self if op is None else op.successors[fields_of(owner).successors.index(self.name)]


def operand_def(constraint: Kind[Attribute] | None = None) -> Any:
    """One value."""
    return Operand(constraint)


def opt_operand_def(constraint: Kind[Attribute] | None = None) -> Any:
    """A value that may be missing."""
    return Operand(constraint, is_variadic=True, is_optional=True)


def var_operand_def(constraint: Kind[Attribute] | None = None) -> Any:
    """Any number of values."""
    return Operand(constraint, is_variadic=True)


def result_def(constraint: Kind[Attribute] | None = None) -> Any:
    """One result."""
    return Result(constraint)


def var_result_def(constraint: Kind[Attribute] | None = None) -> Any:
    """Any number of results; an op has at most one such field, the last of its results."""
    return Result(constraint, is_variadic=True)


def prop_def(
    constraint: Kind[Attribute] | type[Attribute],
    *,
    default_value: Attribute | None = None,
    prop_name: str | None = None,
) -> Any:
    """A property: a kind of attributes, or a class. An op gets the default where it is not given."""
    return Property(constraint, default_value, prop_name, is_optional=False)


def opt_prop_def(
    constraint: Kind[Attribute] | type[Attribute],
    *,
    default_value: Attribute | None = None,
    prop_name: str | None = None,
) -> Any:
    """A property that may be missing, which means its default."""
    return Property(constraint, default_value, prop_name, is_optional=True)


def default_prop(kind: Kind[KindT], value: Any, key: str | None = None) -> KindT:
    """A property that is `value`, a Python value, where it is not given."""
    assert kind.codec is not None
    return prop_def(kind, default_value=kind.codec.attribute(value), prop_name=key)


def region_def(blocks: str = "") -> Any:
    """One region; `region_def("single_block")` has exactly one block."""
    return RegionField(is_variadic=False, is_block=blocks == "single_block")


def var_region_def() -> Any:
    """Any number of regions."""
    return RegionField(is_variadic=True, is_block=False)


def successor_def() -> Any:
    """A block that the op may branch to."""
    return Successor()


def traits_def(*traits: OpTrait) -> OpTraits:
    """The traits of an op, or of a family."""
    return OpTraits(lambda: traits)


class Fields:
    """The declared fields of an op class, by name."""

    def __init__(self, cls: type[Operation]) -> None:
        found: dict[str, Any] = {}
        for base in cls.__mro__:
            for name, field in vars(base).items():
                found.setdefault(name, field)
        self.operands = {name: field for name, field in found.items() if isinstance(field, Operand)}
        self.results = {name: field for name, field in found.items() if isinstance(field, Result)}
        self.properties = {name: field for name, field in found.items() if isinstance(field, Property)}
        self.region_fields = [field for field in found.values() if isinstance(field, RegionField)]
        self.regions = tuple(field.name for field in self.region_fields)
        self.successors = tuple(field.name for field in found.values() if isinstance(field, Successor))
        self.result_names = tuple(self.results)
        variadic = sum(slot.is_variadic for slot in self.operands.values())
        self.is_fixed = variadic == 0  # every operand is there exactly once
        self.has_same_sizes = getattr(cls, "SAME_SIZES", False)  # variadic operands have one size
        self.has_segments = variadic > 1 and not self.has_same_sizes


@cache
def fields_of(cls: type[Operation]) -> Fields:
    return Fields(cls)


def group_sizes(fields: Fields, op: Operation) -> Sequence[int]:
    """Return the number of values of each operand of the class in `op`."""
    if fields.has_segments:
        return array_values(op.properties[SEGMENTS])
    variadic = sum(slot.is_variadic for slot in fields.operands.values())
    rest = len(operands_of(op)) - (len(fields.operands) - variadic)
    return [rest // variadic if slot.is_variadic else 1 for slot in fields.operands.values()]


def operands_named(fields: Fields, op: Operation, name: str) -> Sequence[SSAValue]:
    """The values of the operand `name`; all of them for ``operands``."""
    if name == ALL:
        return op.operands
    start = 0
    for slot, size in zip(fields.operands, group_sizes(fields, op), strict=True):
        if slot == name:
            return operands_of(op)[start : start + size]
        start += size
    raise KeyError(name)


def verify_fields(op: Operation) -> None:
    """Check the parts of `op` against the fields of its class, then its traits."""
    fields = fields_of(type(op))
    verify_count("operand", len(op.operands), fields.operands.values())
    verify_sizes(fields, op)
    for slot in fields.operands.values():
        slot.verify("operand", operands_named(fields, op, slot.name))
    verify_count("result", len(op.results), fields.results.values())
    for slot in fields.results.values():
        values = getattr(op, slot.name)
        slot.verify("result", values if slot.is_many else (values,))
    verify_count("region", len(op.regions), fields.region_fields)
    for field, region in zip(fields.region_fields, op.regions, strict=False):
        if field.is_block and (count := len(region.blocks)) != 1:
            raise VerifyException(f"region '{field.name}' has {count} blocks instead of one")
    if len(op.successors) != len(fields.successors):
        raise VerifyException(f"Expected {len(fields.successors)} successors, but got {len(op.successors)}")
    verify_properties(fields, op)
    for trait in op.traits:
        trait.verify(op)


def verify_count(what: str, count: int, fields: Collection[Any]) -> None:
    """Check that an op has as many operands, results or regions as its fields allow."""
    least = sum(not field.is_variadic for field in fields)
    if count < least or (count > least and least == len(fields)):
        some = f"{'' if least == len(fields) else 'at least '}{least} {what}{'' if least == 1 else 's'}"
        raise VerifyException(f"Expected {some}, but got {count}")


def verify_sizes(fields: Fields, op: Operation) -> None:
    """Check that every operand of the class has as many values as it may have."""
    if fields.has_segments:
        segments = op.properties.get(SEGMENTS)
        if not isinstance(segments, DenseArrayBase) or len(segments) != len(fields.operands):
            raise VerifyException(f"property '{SEGMENTS}' needs {len(fields.operands)} integers, not {segments}")
    sizes = group_sizes(fields, op)
    for slot, size in zip(fields.operands.values(), sizes, strict=True):
        if size < 0 or (size != 1 and not slot.is_variadic) or (size > 1 and slot.is_optional):
            raise VerifyException(f"operand '{slot.name}' cannot have {size} values")
    if sum(sizes) != len(op.operands):
        raise VerifyException(f"has {len(op.operands)} operands, which its fields divide into {list(sizes)}")


def verify_properties(fields: Fields, op: Operation) -> None:
    """Check that the properties are those of the class, each of its kind."""
    for field in fields.properties.values():
        if field.key in op.properties:
            field.verify(op.properties[field.key])
        elif not field.is_optional:
            raise VerifyException(f"property '{field.key}' expected in operation '{op.name}'")
    known = {SEGMENTS, *(field.key for field in fields.properties.values())}
    if unknown := [key for key in op.properties if key not in known]:
        raise VerifyException(f"property '{unknown[0]}' is not defined by the operation '{op.name}'")


# ---- Forms: the text after the name of an op, as one string from which its reader and its writer are compiled.
#
#     form = "$operands(? cacheModifier = $cache)(? evictionPolicy = $evict) {} : type($ptr)"
#
#     $x           an operand, several (``%a, %b``) where it is variadic, a property, or a region
#     $operands    all operands
#     type($x)     the type of an operand or result, the types where it is variadic
#     bare($x)     its type without the prefix that all types there have: ``<f32>`` for ``!tt.ptr<f32>``
#     signature    ``(T, U) -> V``, the types of all operands and results
#     (? ...)      written where the first thing named in it is there: an operand that is given, a property that is not
#                  at its default
#     {}           the attribute dictionary: the properties that the form does not name and that are not at their
#                  default, and the discardable attributes
#     other text   itself; white space is written as it is here
#
# The types that a form does not name are inferred (`infer`, see `ir/declare.py`).


CONVERSION = "$operands {} : type($src) -> type($result)"
SAME_TYPE = "$operands {} : type($result)"
RETURN = "{}(? $operands : type($operands))"
COMBINE_RETURN = "(? $operands) {}(? : type($operands))"
PRINT = "$prefix {}(? : $operands : type($operands))"
ASSERT = "$condition, $message {} : type($condition)"
ACCESS = "$operands(? cacheModifier = $cache)(? evictionPolicy = $evict) {} : type($ptr)"
TOKEN = re.compile(r"\(\?| ?\{\}|\$(\w+)|\b(type|bare)\(\$(\w+)\)|\bsignature\b|.")


@light_dataclass
class Literal:
    text: str


@light_dataclass
class Value:
    name: str


@light_dataclass
class TypeOf:
    name: str
    bare: bool


@light_dataclass
class Signature:
    pass


@light_dataclass
class Dictionary:
    pass


@light_dataclass
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
