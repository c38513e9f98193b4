"""PTX text to tokens, by one regular expression; numbers to their values.

>>> [token.text for token in tokenize("add.s32 %r1, %r2, 5;  // sum")]
['add.s32', '%r1', ',', '%r2', ',', '5', ';', '']
"""

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from tilework.oracles.emulator.syntax import Imm, PtxSyntaxError

BLANK = " \t\r\f"
TOKEN = re.compile(
    r"""[ \t\r\f]*+(?:(?P<word>[%$._a-zA-Z](?:[\w$.%]|::)*)|(?P<newline>\n)|(?P<comment>//[^\n]*|/\*.*?\*/)
      |(?P<float>0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|\d+\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+)
      |(?P<number>0[xX][0-9a-fA-F]+U?|0[bB][01]+U?|\d+U?)
      |(?P<string>"[^"\n]*")
      |(?P<sign>[-+*/{}()\[\]<>,;:@!|=&~^?])|(?P<end>\Z))""",
    re.VERBOSE | re.DOTALL,
)
SPACES = {".global": "global", ".const": "const", ".shared": "shared", ".local": "local", ".param": "param"}
Item = TypeVar("Item")
GLUED = tuple(f"{directive}." for directive in (".reg", *SPACES))


@dataclass(slots=True)
class Token:
    kind: str
    text: str
    line: int


def tokenize(text: str) -> list[Token]:
    tokens: list[Token] = []
    at, line, kind = 0, 1, ""
    while kind != "end":
        match = TOKEN.match(text, at)
        if match is None:
            wrong = text[at:].lstrip(BLANK)[:20].splitlines()[0]
            raise PtxSyntaxError(f"PTX line {line}: {wrong!r} is not PTX")
        at, kind = match.end(), match.lastgroup or ""
        found = match[kind]
        if kind == "newline":
            line += 1
        elif kind == "comment":
            line += found.count("\n")
        elif kind == "word" and found.startswith(GLUED):  # ".reg.b32" is ".reg .b32"
            tokens += [Token(kind, f".{part}", line) for part in found[1:].split(".")]
        else:
            tokens.append(Token(kind, found, line))
    return tokens


def files_of(tokens: list[Token]) -> dict[int, str]:
    """The names of the source files by number; nvcc writes them after the code that refers to them."""
    found = {}
    for directive, index, name in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if directive.text == ".file" and index.kind == "number" and name.kind == "string":
            found[number(index.text)] = name.text.strip('"')
    return found


def number(text: str) -> int:
    text = text.rstrip("U")
    if text.isdigit() and text[0] == "0" and text.strip("01234567"):
        raise PtxSyntaxError(f"{text} is not a number: it starts with 0, which means octal")
    if len(text) > 1 and text[0] == "0" and text[1].isdigit():
        return int(text, 8)
    return int(text, 0)


def float_bits(text: str) -> Imm:
    match text[:2].lower():
        case "0f":
            return Imm(int(text[2:], 16), "f32")
        case "0d":
            return Imm(int(text[2:], 16), "f64")
    return Imm(int.from_bytes(struct.pack("<d", float(text)), "little"), "f64")


def negated(value: Imm) -> Imm:
    return Imm(
        -value.value if value.kind == "int" else value.value ^ 1 << (31 if value.kind == "f32" else 63), value.kind
    )


class Cursor:
    """A place among the tokens of a text; `at` is the next one."""

    def __init__(self, tokens: list[Token], lines: list[str]) -> None:
        self.tokens, self.lines, self.at = tokens, lines, 0

    def peek(self) -> str:
        return self.tokens[self.at].text

    def next(self) -> Token:
        token = self.tokens[self.at]
        if token.kind == "end":
            raise self.error("the text ends too early")
        self.at += 1
        return token

    def accept(self, text: str) -> bool:
        if self.tokens[self.at].text != text:
            return False
        self.at += 1
        return True

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise self.error(f"expected {text!r}, found {self.peek() or 'the end'!r}")

    def error(self, what: str) -> PtxSyntaxError:
        line = self.tokens[self.at].line
        shown = self.lines[line - 1].strip() if line <= len(self.lines) else ""
        return PtxSyntaxError(f"PTX line {line}: {what}" + (f"\n  {shown}" if shown else ""))

    def word(self) -> str:
        if self.tokens[self.at].kind != "word":
            raise self.error(f"expected a name, found {self.peek() or 'the end'!r}")
        return self.next().text

    def integer(self) -> int:
        sign = -1 if self.accept("-") else 1
        if self.tokens[self.at].kind != "number":
            raise self.error(f"expected a number, found {self.peek() or 'the end'!r}")
        return sign * number(self.next().text)

    def position(self) -> tuple[int, ...]:
        """What .loc says: file, line and column."""
        found = [self.integer(), self.integer()]
        if self.tokens[self.at].kind == "number":
            found.append(self.integer())
        return tuple(found)

    def listed(self, one: Callable[[], Item]) -> list[Item]:
        """One or more, with commas between them."""
        found = [one()]
        while self.accept(","):
            found.append(one())
        return found

    def skip_to(self, text: str) -> None:
        while self.next().text != text:
            pass

    def skip_braces(self) -> None:
        depth = 0
        while True:
            text = self.next().text
            depth += (text == "{") - (text == "}")
            if depth == 0 and text == "}":
                return

    def skip_rest_of(self, line: int) -> None:
        while self.tokens[self.at].line == line and self.tokens[self.at].kind != "end":
            self.at += 1
