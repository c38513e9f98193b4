"""The launch grid of a kernel that is compiled ahead of time: three C expressions over its arguments.

>>> [str(part) for part in parse_grid("(n + BLOCK - 1) / BLOCK, 2, 1", {"BLOCK": 128})]
['(n + (128) - 1) / (128)', '2', '1']
>>> parse_expression("n > 8 ? n / 4 : 1").names()
{'n'}

For GPUs a C compiler reads them. For CPUs there is none: `Expression.emit` writes the same arithmetic as LLVM instructions, in
64 bits with a sign. C's operators on integers are known there; casts, calls and floats are not.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

TOKEN = re.compile(
    r"\s*(?:(0[xX][0-9a-fA-F]+|\d+)[uUlL]*|([A-Za-z_]\w*)|(<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%<>!~&|^?:()]))"
)
LEVELS = (("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", ">", "<=", ">="), ("<<", ">>"))
LEVELS += (("+", "-"), ("*", "/", "%"))
COMPARED = {"==": "eq", "!=": "ne", "<": "slt", ">": "sgt", "<=": "sle", ">=": "sge"}
COMPUTED = {"+": "add", "-": "sub", "*": "mul", "|": "or_", "^": "xor", "&": "and_", "<<": "shl", ">>": "ashr"}
DIVIDED = {"/": "sdiv", "%": "srem"}


class GridError(ValueError):
    """A grid that cannot be used."""


def parse_grid(text: str, constants: Mapping[str, Any]) -> list[str]:
    """The three expressions, with the values of constants in place of their names."""
    parts = [part.strip() for part in text.split(",")]
    assert len(parts) == 3, f"the grid has three parts, separated by commas: got {text!r}"
    if "" in parts:
        raise GridError(f"grid {text!r}: a part is empty; write 1 for a dimension that is not used")
    return [re.sub(r"[A-Za-z_]\w*", lambda found: value_of(found[0], constants), part) for part in parts]


def value_of(name: str, constants: Mapping[str, Any]) -> str:
    return f"({constants[name]})" if name in constants else name


@dataclass(frozen=True)
class Expression:
    """A C expression as a tree: an operator and its operands, a name, or a number."""

    text: str
    tree: Any

    def names(self) -> set[str]:
        return {leaf for leaf in leaves(self.tree) if isinstance(leaf, str)}

    def emit(self, b: Any, values: Mapping[str, Any], number: Any) -> tuple[Any, Any]:
        """The value, and whether it is none (a division by 0), of a builder of LLVM text; `number` makes an i64."""
        return emit(self.tree, b, values, number)


def leaves(tree: Any) -> list[Any]:
    return [leaf for part in tree[1:] for leaf in leaves(part)] if isinstance(tree, tuple) else [tree]


def parse_expression(text: str) -> Expression:
    """Read an expression; a GridError says what is not understood."""
    tokens, at = [], 0
    while at < len(text.rstrip()):
        if (found := TOKEN.match(text, at)) is None:
            raise GridError(
                f"grid {text!r}: {text[at:].strip()!r} is not understood, only C's operators on integers are"
            )
        tokens.append(int(found[1], 0 if found[1][:2] in ("0x", "0X") else 10) if found[1] else found[2] or found[3])
        at = found.end()
    reader = Reader(text, tokens)
    tree = reader.choice()
    if reader.at < len(tokens):
        raise reader.error()
    return Expression(text, tree)


class Reader:
    """Recursive descent over tokens, one level of precedence per row of LEVELS."""

    def __init__(self, text: str, tokens: list[Any]) -> None:
        self.text, self.tokens, self.at = text, tokens, 0

    def error(self) -> GridError:
        found = repr(self.tokens[self.at]) if self.at < len(self.tokens) else "the end"
        return GridError(f"grid {self.text!r}: {found} is not expected here; only C's operators on integers are known")

    def next_is(self, *wanted: str) -> str | None:
        if self.at < len(self.tokens) and self.tokens[self.at] in wanted:
            self.at += 1
            return self.tokens[self.at - 1]
        return None

    def need(self, token: str) -> None:
        if self.next_is(token) is None:
            raise self.error()

    def choice(self) -> Any:
        condition = self.binary(0)
        if self.next_is("?") is None:
            return condition
        then = self.choice()
        self.need(":")
        return ("?", condition, then, self.choice())

    def binary(self, level: int) -> Any:
        if level == len(LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while (operator := self.next_is(*LEVELS[level])) is not None:
            left = (operator, left, self.binary(level + 1))
        return left

    def unary(self) -> Any:
        if (operator := self.next_is("-", "+", "!", "~")) is not None:
            return ("unary" + operator, self.unary())
        if self.next_is("(") is not None:
            inside = self.choice()
            self.need(")")
            return inside
        if self.at == len(self.tokens) or (
            self.tokens[self.at] in ("?", ":", ")") or is_operator(self.tokens[self.at])
        ):
            raise self.error()
        self.at += 1
        return self.tokens[self.at - 1]


def is_operator(token: Any) -> bool:
    return isinstance(token, str) and not (token[0].isalpha() or token[0] == "_")


def emit(tree: Any, b: Any, values: Mapping[str, Any], number: Any) -> tuple[Any, Any]:
    """See `Expression.emit`. A side that C would not evaluate is computed too, and what goes wrong there is forgotten."""
    never = b.icmp("ne", number(0), number(0))
    if isinstance(tree, int):
        return number(tree), never
    if isinstance(tree, str):
        return values[tree], never

    def truth(value: Any) -> Any:
        return b.icmp("ne", value, number(0))

    def as_number(condition: Any) -> Any:
        return b.select(condition, number(1), number(0))

    operator, *parts = tree
    (first, wrong), *rest = [emit(part, b, values, number) for part in parts]
    if operator == "?":
        (then, then_wrong), (other, other_wrong) = rest
        condition = truth(first)
        return b.select(condition, then, other), b.or_(wrong, b.select(condition, then_wrong, other_wrong))
    if operator.startswith("unary"):
        made = {
            "unary-": lambda: b.sub(number(0), first),
            "unary+": lambda: first,
            "unary!": lambda: as_number(b.icmp("eq", first, number(0))),
            "unary~": lambda: b.xor(first, number(-1)),
        }
        return made[operator](), wrong
    ((second, second_wrong),) = rest
    if operator in ("&&", "||"):
        decides = truth(first) if operator == "||" else b.not_(truth(first))
        value = b.select(decides, as_number(truth(first)), as_number(truth(second)))
        return value, b.or_(wrong, b.select(decides, never, second_wrong))
    wrong = b.or_(wrong, second_wrong)
    if operator in DIVIDED:
        is_zero = b.icmp("eq", second, number(0))
        divisor = b.select(is_zero, number(1), second)
        return getattr(b, DIVIDED[operator])(first, divisor), b.or_(wrong, is_zero)
    if operator in COMPARED:
        return as_number(b.icmp(COMPARED[operator], first, second)), wrong
    return getattr(b, COMPUTED[operator])(first, second), wrong
