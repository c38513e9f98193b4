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
from collections.abc import Iterator, Sequence
from functools import cache

from tilework.light_dataclass import light_dataclass

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
