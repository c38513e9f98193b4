"""Parses the text of an LLVM module, as Triton, llvmlite and `opt` print it.

    >>> module = parse_llvm("define i32 @f(i32 %x) {\\n  %y = add nsw i32 %x, 1\\n  ret i32 %y\\n}")
    >>> [one.opcode for one in module.functions["f"].blocks["0"]]
    ['add', 'ret']

Attributes, flags and metadata other than source locations are skipped, because they change no value.
"""

import re
import struct
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np

from tilework.oracles.emulator.llvm.ir import (
    VOID,
    Assembly,
    Expression,
    Float,
    Function,
    Instruction,
    Int,
    Literal,
    Local,
    Locations,
    Many,
    Module,
    Operand,
    Other,
    Pointer,
    Sequence,
    Struct,
    Symbol,
    Type,
    Typed,
    Undefined,
    Variable,
    Zero,
)
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
    "trunc", "zext", "sext", "fptrunc", "fpext", "fptoui", "fptosi", "uitofp", "sitofp", "ptrtoint", "inttoptr",
    "bitcast", "addrspacecast", "ptrtoaddr",
}  # fmt: skip
BINARY = {
    "add", "sub", "mul", "udiv", "sdiv", "urem", "srem", "shl", "lshr", "ashr", "and", "or", "xor", "fadd", "fsub",
    "fmul", "fdiv", "frem",
}  # fmt: skip
VALUE_WORDS = (
    {"true", "false", "null", "undef", "poison", "zeroinitializer", "none", "splat", "asm", "getelementptr"}
    | CASTS
    | BINARY
)


class LlvmSyntaxError(EmulatorError):
    """Text that is not LLVM, or an unknown form; the message names the line."""


class Cursor:
    """The tokens of one statement, and the index of the next one."""

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
        """Skip the parentheses that begin here."""
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
        """Read a comma-separated list up to an end token."""
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

    def skip_flags(self) -> None:
        """Skip flags and attributes, up to a type."""
        while self.next and not self.at_type():
            token = self.take()
            if self.next == "(" and token not in ("=",):
                self.skip_brackets()
            elif token == "align":
                self.take()

    def skip_attributes(self) -> None:
        """Skip the attributes of an argument, up to its value."""
        while (
            self.next and self.next not in VALUE_WORDS and re.match(r'[A-Za-z_"]', self.next) and self.next[:2] != 'c"'
        ):
            token = self.take()
            if self.next == "(":
                self.skip_brackets()
            elif token == "align":
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
        return Literal(parse_literal(token, kind))

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
        """Read comma-separated operands."""
        found = [self.typed()]
        while len(found) < most and self.accept(","):
            found.append(self.typed())
        return found

    def rest(self) -> list[Typed]:
        """Read operands after commas, each with its type."""
        found = []
        while self.accept(",") and self.next[:1] != "!":
            if self.accept("align", "syncscope"):
                break
            found.append(self.typed())
        return found

    def label(self) -> str:
        self.expect("label")
        return name_of(self.take())

    def after(self, keyword: str, default: int) -> int:
        """Return the integer after a keyword further on."""
        rest = self.tokens[self.at :]
        return int(rest[rest.index(keyword) + 1]) if keyword in rest else default


def name_of(token: str) -> str:
    return token[2:-1] if token[1:2] == '"' else token[1:]


def parse_literal(token: str, kind: Type) -> int | float:
    if not isinstance(kind, Float):
        return int(token)
    if token.startswith("0xH"):
        return float(np.array(int(token[3:], 16), np.uint16).view(np.float16))
    if token.startswith("0xR"):
        return float(np.array(int(token[3:], 16) << 16, np.uint32).view(np.float32))
    if token.startswith("0x"):
        return struct.unpack("<d", int(token[2:], 16).to_bytes(8, "little"))[0]
    return float(token)


LABEL = re.compile(r'^("[^"]*"|[\w.$-]+):')
ORDERINGS = {"unordered", "monotonic", "acquire", "release", "acq_rel", "seq_cst"}


class Reader:
    """Parses a module, statement by statement."""

    def __init__(self) -> None:
        self.types: dict[str, Type] = {}
        self.module = Module({}, {})
        self.locations = Locations()
        self.attributes: dict[str, str] = {}
        self.groups: dict[str, str] = {}  # function: the id of its attribute group

    def read(self, text: str) -> Module:
        for found in re.finditer(r"^!(\d+) = (?:distinct )?!?(.*)$", text, re.MULTILINE):
            self.locations.nodes[f"!{found[1]}"] = found[2]
        lines = text.split("\n")
        at = 0
        while at < len(lines):
            line = lines[at]
            if line.startswith("define "):
                at = self.function(lines, at)
            elif line.startswith("@"):
                self.variable(Cursor(line, at + 1, self.types))
            elif line.startswith("%") and "= type" in line:
                cursor = Cursor(line, at + 1, self.types)
                name = cursor.take()
                cursor.at += 2
                self.types[name] = cursor.type()
            elif line.startswith("attributes "):
                group, _, rest = line[len("attributes ") :].partition(" = ")
                self.attributes[group] = rest
            at += 1
        for name, group in self.groups.items():
            self.module.functions[name].attributes = self.attributes.get(group, "")
        return self.module

    def variable(self, cursor: Cursor) -> None:
        name = name_of(cursor.take())
        keywords = []
        while cursor.next not in ("global", "constant", "alias", ""):
            keywords.append(cursor.next)
            if cursor.next == "addrspace":
                break
            cursor.take()
            if cursor.next == "(":
                cursor.skip_brackets()
        space = cursor.address_space()
        while cursor.next not in ("global", "constant", "alias", ""):
            cursor.take()
        cursor.take()
        kind = cursor.type()
        is_here = cursor.next not in (",", "") and not {"external", "extern_weak"} & set(keywords)
        initial = cursor.operand(kind) if is_here else None
        self.module.variables[name] = Variable(name, space, kind, initial, cursor.after("align", 16))

    def function(self, lines: list[str], at: int) -> int:
        """Read the function that begins at this line; return the line of its end."""
        head = lines[at]
        while not head.rstrip().endswith("{"):
            at += 1
            head += " " + lines[at]
        cursor = Cursor(head, at + 1, self.types)
        cursor.take()
        is_kernel = "amdgpu_kernel" in cursor.tokens
        cursor.skip_flags()
        result = cursor.type()
        name = name_of(cursor.take())
        cursor.expect("(")
        params: list[tuple[Type, str]] = []
        while not cursor.accept(")"):
            kind = cursor.type()
            cursor.skip_attributes()
            params.append((kind, name_of(cursor.take()) if cursor.next[:1] == "%" else str(len(params))))
            cursor.accept(",")
        group = next((token for token in cursor.tokens[cursor.at :] if token[:1] == "#"), "")
        function = Function(name, result, params, is_kernel)
        self.groups[name] = group
        unnamed = sum(1 for _, param in params if param.isdigit())
        here = function.blocks.setdefault(str(unnamed), [])
        first = True
        at += 1
        while not lines[at].startswith("}"):
            line = lines[at]
            if line.strip() and not line.lstrip().startswith(";"):
                if line[0] != " " and (label := LABEL.match(line)):
                    if first:
                        function.blocks.clear()
                    here = function.blocks.setdefault(label[1].strip('"'), [])
                else:
                    line_number = at + 1
                    if re.match(r"\s+switch\b", line):
                        while "]" not in lines[at]:
                            at += 1
                            line += " " + lines[at].partition(";")[0]
                    if not line.lstrip().startswith("#dbg"):
                        here.append(self.instruction(Cursor(line, line_number, self.types)))
                first = False
            at += 1
        self.module.functions[name] = function
        return at

    def instruction(self, cursor: Cursor) -> Instruction:
        result = None
        if cursor.next[:1] == "%":
            result = name_of(cursor.take())
            cursor.expect("=")
        opcode = cursor.take()
        while opcode in ("tail", "musttail", "notail"):
            opcode = cursor.take()
        extra: dict[str, Any] = {}
        try:
            kind, operands = self.body(opcode, cursor, extra)
        except (ValueError, IndexError, KeyError) as error:
            raise LlvmSyntaxError(f"LLVM line {cursor.line}: cannot read {cursor.text}") from error
        locations: tuple[tuple[str, int], ...] = ()
        if "!dbg" in cursor.tokens:
            locations = self.locations.locations(cursor.tokens[cursor.tokens.index("!dbg") + 1])
        return Instruction(opcode, kind, tuple(operands), extra, result, cursor.line, cursor.text, locations)

    def body(self, opcode: str, cursor: Cursor, extra: dict[str, Any]) -> tuple[Type, list[Typed]]:
        """Return (the type of the result, the operands) of an instruction; the rest goes to `extra`."""
        read = getattr(self, f"read_{opcode}", None)
        if read is not None:
            return read(cursor, extra)
        if opcode in BINARY or opcode in ("fneg", "freeze"):
            cursor.skip_flags()
            kind = cursor.type()
            operands = [(kind, cursor.operand(kind))]
            if cursor.accept(",") and opcode in BINARY:
                operands.append((kind, cursor.operand(kind)))
            return kind, operands
        if opcode in CASTS:
            cursor.skip_flags()
            operands = [cursor.typed()]
            cursor.expect("to")
            return cursor.type(), operands
        raise LlvmSyntaxError(f"LLVM line {cursor.line}: {opcode} is not known: {cursor.text}")

    def read_icmp(self, cursor: Cursor, extra: dict[str, Any]) -> tuple[Type, list[Typed]]:
        cursor.skip_flags()
        extra["predicate"] = cursor.tokens[cursor.at - 1]
        kind = cursor.type()
        first = cursor.operand(kind)
        cursor.expect(",")
        bit: Type = Sequence(kind.count, Int(1), True) if isinstance(kind, Sequence) else Int(1)
        return bit, [(kind, first), (kind, cursor.operand(kind))]

    read_fcmp = read_icmp

    def read_select(self, cursor: Cursor, extra: dict[str, Any]) -> tuple[Type, list[Typed]]:
        cursor.skip_flags()
        operands = [cursor.typed(), *cursor.rest()]
        return operands[1][0], operands

    def read_getelementptr(self, cursor: Cursor, extra: dict[str, Any]) -> tuple[Type, list[Typed]]:
        cursor.skip_flags()
        extra["element"] = cursor.type()
        operands = cursor.rest()
        kind = next((kind for kind, _ in operands if isinstance(kind, Sequence)), None)
        base = operands[0][0]
        if kind is not None and not isinstance(base, Sequence):
            base = Sequence(kind.count, base, True)
        return base, operands

    def access(self, cursor: Cursor, extra: dict[str, Any], default: int = 0) -> None:
        extra["align"] = cursor.after("align", default)
        keywords = cursor.tokens[cursor.at :]
        extra["ordering"] = tuple(keyword for keyword in keywords if keyword in ORDERINGS)
        extra["scope"] = keywords[keywords.index("syncscope") + 2].strip('"') if "syncscope" in keywords else "system"

    def read_load(self, cursor: Cursor, extra: dict[str, Any]) -> tuple[Type, list[Typed]]:
        extra["atomic"] = "atomic" in (cursor.next, cursor.tokens[cursor.at + 1])
        cursor.skip_flags()
        kind = cursor.type()
        cursor.expect(",")
        operands = [cursor.typed()]
        self.access(cursor, extra)
        return kind, operands

    def read_store(self, cursor: Cursor, extra: dict[str, Any]) -> tuple[Type, list[Typed]]:
        extra["atomic"] = "atomic" in (cursor.next, cursor.tokens[cursor.at + 1])
        cursor.skip_flags()
        operands = cursor.several(2)
        self.access(cursor, extra)
        return VOID, operands

    def read_atomicrmw(self, cursor: Cursor, extra: dict[str, Any]) -> tuple[Type, list[Typed]]:
        cursor.skip_flags()
        extra["operation"] = cursor.tokens[cursor.at - 1]
        operands = cursor.several(2)
        self.access(cursor, extra)
        return operands[1][0], operands

    def read_cmpxchg(self, cursor: Cursor, extra: dict[str, Any]) -> tuple[Type, list[Typed]]:
        cursor.skip_flags()
        operands = cursor.several(3)
        self.access(cursor, extra)
        return Struct((operands[1][0], Int(1))), operands

    def read_fence(self, cursor: Cursor, extra: dict[str, Any]) -> tuple[Type, list[Typed]]:
        self.access(cursor, extra)
        return VOID, []

    def read_alloca(self, cursor: Cursor, extra: dict[str, Any]) -> tuple[Type, list[Typed]]:
        cursor.skip_flags()
        extra["element"] = cursor.type()
        rest = cursor.tokens[cursor.at :]
        space = int(rest[rest.index("addrspace") + 2]) if "addrspace" in rest else 5
        extra["align"] = cursor.after("align", 16)
        extra["count"] = 1
        if cursor.accept(",") and cursor.at_type():
            count = cursor.typed()[1]
            extra["count"] = count.value if isinstance(count, Literal) else None
        return Pointer(space), []

    def read_phi(self, cursor: Cursor, extra: dict[str, Any]) -> tuple[Type, list[Typed]]:
        cursor.skip_flags()
        kind = cursor.type()
        operands, labels = [], []
        while cursor.accept("[", ","):
            if cursor.next[:1] == "!":
                break
            cursor.accept("[")
            operands.append((kind, cursor.operand(kind)))
            cursor.expect(",")
            labels.append(name_of(cursor.take()))
            cursor.expect("]")
        extra["labels"] = labels
        return kind, operands

    def read_br(self, cursor: Cursor, extra: dict[str, Any]) -> tuple[Type, list[Typed]]:
        operands = [] if cursor.next == "label" else [cursor.typed()]
        cursor.accept(",")
        extra["labels"] = [cursor.label()]
        if operands:
            cursor.expect(",")
            extra["labels"].append(cursor.label())
        return VOID, operands

    def read_switch(self, cursor: Cursor, extra: dict[str, Any]) -> tuple[Type, list[Typed]]:
        operands = [cursor.typed()]
        cursor.expect(",")
        labels = [cursor.label()]
        cursor.expect("[")
        while not cursor.accept("]"):
            operands.append(cursor.typed())
            cursor.expect(",")
            labels.append(cursor.label())
        extra["labels"] = labels
        return VOID, operands

    def read_ret(self, cursor: Cursor, extra: dict[str, Any]) -> tuple[Type, list[Typed]]:
        return VOID, [] if cursor.accept("void") else [cursor.typed()]

    def read_unreachable(self, cursor: Cursor, extra: dict[str, Any]) -> tuple[Type, list[Typed]]:
        return VOID, []

    def read_vector(self, cursor: Cursor, extra: dict[str, Any]) -> tuple[Type, list[Typed]]:
        operands = [cursor.typed(), *cursor.rest()]
        return operands[0][0], operands

    read_insertelement = read_vector

    def read_extractelement(self, cursor: Cursor, extra: dict[str, Any]) -> tuple[Type, list[Typed]]:
        kind, operands = self.read_vector(cursor, extra)
        assert isinstance(kind, Sequence)
        return kind.element, operands

    def read_shufflevector(self, cursor: Cursor, extra: dict[str, Any]) -> tuple[Type, list[Typed]]:
        kind, operands = self.read_vector(cursor, extra)
        mask = operands.pop()
        assert isinstance(kind, Sequence) and isinstance(mask[0], Sequence)
        extra["indices"] = indices(mask[1], mask[0].count)
        return Sequence(mask[0].count, kind.element, True), operands

    def read_extractvalue(self, cursor: Cursor, extra: dict[str, Any]) -> tuple[Type, list[Typed]]:
        operands = [cursor.typed()]
        kind: Any = operands[0][0]
        extra["indices"] = self.integers(cursor)
        for index in extra["indices"]:
            kind = kind.fields[index] if isinstance(kind, Struct) else kind.element
        return kind, operands

    def read_insertvalue(self, cursor: Cursor, extra: dict[str, Any]) -> tuple[Type, list[Typed]]:
        operands = cursor.several(2)
        extra["indices"] = self.integers(cursor)
        return operands[0][0], operands

    def integers(self, cursor: Cursor) -> list[int]:
        found = []
        while cursor.accept(",") and cursor.next.isdigit():
            found.append(int(cursor.take()))
        return found

    def read_call(self, cursor: Cursor, extra: dict[str, Any]) -> tuple[Type, list[Typed]]:
        cursor.skip_flags()
        kind = cursor.type()
        if cursor.next == "(":
            cursor.skip_brackets()
        extra["callee"] = cursor.operand(kind)
        cursor.expect("(")
        return kind, cursor.until(")", cursor.typed)


def indices(mask: Operand, count: int) -> list[int]:
    """Return the indices of a shufflevector; -1 is an unused element."""
    if isinstance(mask, Zero):
        return [0] * count
    if isinstance(mask, Undefined):
        return [-1] * count
    assert isinstance(mask, Many)
    parts = mask.parts * count if mask.is_splat else mask.parts
    return [int(part.value) if isinstance(part, Literal) else 0 if isinstance(part, Zero) else -1 for _, part in parts]


def parse_llvm(text: str) -> Module:
    return Reader().read(text)
