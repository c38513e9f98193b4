"""The tokens of one statement of LLVM, and what can be read from them: types, operands, constant expressions."""

import re
import struct
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from tilework.oracles.emulator.llvm.ir_text import (
    Assembly,
    Expression,
    Instruction,
    Literal,
    Local,
    Many,
    Operand,
    Symbol,
    Typed,
    Undefined,
    Zero,
)
from tilework.oracles.emulator.llvm.ir_types import Float, Int, Other, Pointer, Sequence, Struct, Type
from tilework.oracles.emulator.syntax import EmulatorError

TOKEN = re.compile(
    r"""\s+ | ;.*$ | (c?"[^"]*" | [%@](?:"[^"]*"|[\w.$-]+) | ![\w.$-]* | \#\d+ | -?0x[HKLMR]?[0-9A-Fa-f]+
    | [-+]?\d+\.\d*(?:[eE][-+]?\d+)? | -?\d+ | [A-Za-z_.$][\w.$-]* | [()\[\]{}<>,=*:|]) | (.+)""",
    re.VERBOSE | re.MULTILINE,
)
Item = TypeVar("Item")
SIMPLE = {name: Float(name) for name in ("half", "bfloat", "float", "double")} | {
    name: Other(name) for name in ("void", "label", "metadata", "token", "x86_fp80", "fp128")
}
CASTS = {
    "trunc", "zext", "sext", "fptrunc", "fpext", "fptoui", "fptosi", "uitofp", "sitofp", "ptrtoint", "inttoptr", "bitcast",
    "addrspacecast", "ptrtoaddr",
}  # fmt: skip
BINARY = {
    "add", "sub", "mul", "udiv", "sdiv", "urem", "srem", "shl", "lshr", "ashr", "and", "or", "xor", "fadd", "fsub", "fmul", "fdiv",
    "frem",
}  # fmt: skip
VALUE_WORDS = (
    {"true", "false", "null", "undef", "poison", "zeroinitializer", "none", "splat", "asm", "getelementptr"}
    | CASTS
    | BINARY
)


class LlvmSyntaxError(EmulatorError):
    """Text that is not LLVM, or a form that is not known; says the line."""


class Cursor:
    """The tokens of one statement, and what can be read next."""

    def __init__(self, text: str, line: int, named: Mapping[str, Type]) -> None:
        self.text, self.line, self.named = text.strip(), line, named
        self.tokens: list[str] = []
        for token, strange in TOKEN.findall(text):
            if token:
                self.tokens.append(token)
            elif strange:
                raise LlvmSyntaxError(f"LLVM line {line}: cannot read {strange.strip()!r}")
        self.at = 0

    @property
    def next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1] if self.at <= len(self.tokens) else ""

    def accept(self, *tokens: str) -> bool:
        if self.next in tokens:
            self.at += 1
            return True
        return False

    def expect(self, token: str) -> None:
        if not self.accept(token):
            raise LlvmSyntaxError(f"LLVM line {self.line}: {token!r} expected before {self.next!r} in {self.text}")

    def skip_brackets(self) -> None:
        """Past what is in the parentheses that begin here."""
        depth = 0
        while True:
            token = self.take()
            depth += (token == "(") - (token == ")")
            if depth <= 0 or not token:
                return

    # types

    def at_type(self) -> bool:
        token = self.next
        return (
            token in SIMPLE
            or token in ("ptr", "<", "{", "[")
            or (token[:1] == "i" and token[1:].isdigit())
            or token in self.named
        )

    def type(self) -> Type:
        token = self.take()
        if token in SIMPLE:
            return SIMPLE[token]
        if token[:1] == "i" and token[1:].isdigit():
            return Int(int(token[1:]))
        if token == "ptr":
            return Pointer(self.address_space())
        if token in ("<", "["):
            if token == "<" and self.accept("{"):
                fields = self.until("}", self.type)
                self.expect(">")
                return Struct(tuple(fields), True)
            count = int(self.take())
            self.expect("x")
            found = Sequence(count, self.type(), token == "<")
            self.expect(">" if token == "<" else "]")
            return found
        if token == "{":
            return Struct(tuple(self.until("}", self.type)))
        if token in self.named:
            return self.named[token]
        raise LlvmSyntaxError(f"LLVM line {self.line}: {token!r} is no type in {self.text}")

    def until(self, end: str, one: Callable[[], Item]) -> list[Item]:
        """All that is listed before an end, with commas between."""
        found = []
        while not self.accept(end):
            found.append(one())
            self.accept(",")
        return found

    def address_space(self) -> int:
        if not self.accept("addrspace"):
            return 0
        self.expect("(")
        space = int(self.take())
        self.expect(")")
        return space

    # operands

    def skip_words(self) -> None:
        """Flags and attributes, up to a type."""
        while self.next and not self.at_type():
            word = self.take()
            if self.next == "(" and word not in ("=",):
                self.skip_brackets()
            elif word == "align":
                self.take()

    def skip_attributes(self) -> None:
        """Attributes of an argument, up to its value."""
        while (
            self.next and self.next not in VALUE_WORDS and re.match(r'[A-Za-z_"]', self.next) and self.next[:2] != 'c"'
        ):
            word = self.take()
            if self.next == "(":
                self.skip_brackets()
            elif word == "align":
                self.take()

    def typed(self) -> Typed:
        kind = self.type()
        self.skip_attributes()
        return kind, self.operand(kind)

    def operand(self, kind: Type) -> Operand:
        token = self.take()
        if token[:1] == "%":
            return Local(name_of(token))
        if token[:1] == "@":
            return Symbol(name_of(token))
        if token in ("undef", "poison"):
            return Undefined()
        if token in ("null", "zeroinitializer", "none"):
            return Zero()
        if token in ("true", "false"):
            return Literal(int(token == "true"))
        if token[:2] == 'c"':
            data = re.sub(rb"\\([0-9A-Fa-f]{2})", lambda found: bytes([int(found[1], 16)]), token[2:-1].encode())
            return Many(tuple((Int(8), Literal(byte)) for byte in data))
        if token == "splat":
            self.expect("(")
            part = self.typed()
            self.expect(")")
            return Many((part,), True)
        if token in ("<", "[", "{"):
            packed = token == "<" and self.accept("{")
            parts = self.until({"<": ">", "[": "]", "{": "}"}["{" if packed else token], self.typed)
            if packed:
                self.expect(">")
            return Many(tuple(parts))
        if token in CASTS | BINARY or token == "getelementptr":
            return Expression(self.expression(token))
        if token == "asm":
            while self.next[:1] != '"':
                self.take()
            text = self.take()[1:-1]
            self.expect(",")
            return Assembly(text, self.take()[1:-1])
        if token[:1] == "!":
            if self.next == "(":
                self.skip_brackets()
            return Zero()
        return Literal(number(token, kind))

    def expression(self, opcode: str) -> Instruction:
        while self.next != "(":
            self.take()
            if self.next == "(" and self.tokens[self.at - 1] == "inrange":
                self.skip_brackets()
        self.expect("(")
        extra: dict[str, Any] = {}
        if opcode == "getelementptr":
            extra["element"] = self.type()
            self.expect(",")
        operands = self.several()
        kind = operands[0][0]
        if opcode in CASTS:
            self.expect("to")
            kind = self.type()
        self.expect(")")
        return Instruction(opcode, kind, tuple(operands), extra, None, self.line, self.text)

    def several(self, most: int = 1 << 16) -> list[Typed]:
        """Operands with commas between."""
        found = [self.typed()]
        while len(found) < most and self.accept(","):
            found.append(self.typed())
        return found

    def rest(self) -> list[Typed]:
        """Operands after commas, each with its type."""
        found = []
        while self.accept(",") and self.next[:1] != "!":
            if self.accept("align", "syncscope"):
                break
            found.append(self.typed())
        return found

    def label(self) -> str:
        self.expect("label")
        return name_of(self.take())

    def after(self, word: str, default: int) -> int:
        """The number behind a word further on."""
        rest = self.tokens[self.at :]
        return int(rest[rest.index(word) + 1]) if word in rest else default


def name_of(token: str) -> str:
    return token[2:-1] if token[1:2] == '"' else token[1:]


def number(token: str, kind: Type) -> int | float:
    if not isinstance(kind, Float):
        return int(token)
    if token.startswith("0xH"):
        return float(np.array(int(token[3:], 16), np.uint16).view(np.float16))
    if token.startswith("0xR"):
        return float(np.array(int(token[3:], 16) << 16, np.uint32).view(np.float32))
    if token.startswith("0x"):
        return struct.unpack("<d", int(token[2:], 16).to_bytes(8, "little"))[0]
    return float(token)
