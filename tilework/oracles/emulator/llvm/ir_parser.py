"""Reads the text of an LLVM module, as Triton, llvmlite and `opt` print it.

    >>> module = parse_llvm("define i32 @f(i32 %x) {\\n  %y = add nsw i32 %x, 1\\n  ret i32 %y\\n}")
    >>> [one.opcode for one in module.functions["f"].blocks["0"]]
    ['add', 'ret']

What changes no value is skipped: attributes, flags, metadata other than source locations.
"""

import re
from typing import Any

from tilework.oracles.emulator.llvm.ir_text import (
    VOID,
    Function,
    Instruction,
    Literal,
    Locations,
    Many,
    Module,
    Operand,
    Typed,
    Undefined,
    Variable,
    Zero,
)
from tilework.oracles.emulator.llvm.ir_tokens import BINARY, CASTS, Cursor, LlvmSyntaxError, name_of
from tilework.oracles.emulator.llvm.ir_types import Int, Pointer, Sequence, Struct, Type

LABEL = re.compile(r'^("[^"]*"|[\w.$-]+):')
ORDERINGS = {"unordered", "monotonic", "acquire", "release", "acq_rel", "seq_cst"}


class Reader:
    """Reads a module, statement by statement."""

    def __init__(self) -> None:
        self.types: dict[str, Type] = {}
        self.module = Module({}, {})
        self.locations = Locations()
        self.attributes: dict[str, str] = {}
        self.groups: dict[str, str] = {}  # function: the number of its attributes

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
        words = []
        while cursor.next not in ("global", "constant", "alias", ""):
            words.append(cursor.next)
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
        is_here = cursor.next not in (",", "") and not {"external", "extern_weak"} & set(words)
        initial = cursor.operand(kind) if is_here else None
        self.module.variables[name] = Variable(name, space, kind, initial, cursor.after("align", 16))

    def function(self, lines: list[str], at: int) -> int:
        """The function that begins at this line; the line of its end."""
        head = lines[at]
        while not head.rstrip().endswith("{"):
            at += 1
            head += " " + lines[at]
        cursor = Cursor(head, at + 1, self.types)
        cursor.take()
        is_kernel = "amdgpu_kernel" in cursor.tokens
        cursor.skip_words()
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
                    number = at + 1
                    if re.match(r"\s+switch\b", line):
                        while "]" not in lines[at]:
                            at += 1
                            line += " " + lines[at].partition(";")[0]
                    if not line.lstrip().startswith("#dbg"):
                        here.append(self.instruction(Cursor(line, number, self.types)))
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
        places: tuple[tuple[str, int], ...] = ()
        if "!dbg" in cursor.tokens:
            places = self.locations.places(cursor.tokens[cursor.tokens.index("!dbg") + 1])
        return Instruction(opcode, kind, tuple(operands), extra, result, cursor.line, cursor.text, places)

    def body(self, opcode: str, cursor: Cursor, extra: dict[str, Any]) -> tuple[Type, list[Typed]]:
        """(the type of the result, the operands) of an instruction; the rest goes to `extra`."""
        read = getattr(self, f"read_{opcode}", None)
        if read is not None:
            return read(cursor, extra)
        if opcode in BINARY or opcode in ("fneg", "freeze"):
            cursor.skip_words()
            kind = cursor.type()
            operands = [(kind, cursor.operand(kind))]
            if cursor.accept(",") and opcode in BINARY:
                operands.append((kind, cursor.operand(kind)))
            return kind, operands
        if opcode in CASTS:
            cursor.skip_words()
            operands = [cursor.typed()]
            cursor.expect("to")
            return cursor.type(), operands
        raise LlvmSyntaxError(f"LLVM line {cursor.line}: {opcode} is not known: {cursor.text}")

    def read_icmp(self, cursor: Cursor, extra: dict[str, Any]) -> tuple[Type, list[Typed]]:
        cursor.skip_words()
        extra["predicate"] = cursor.tokens[cursor.at - 1]
        kind = cursor.type()
        first = cursor.operand(kind)
        cursor.expect(",")
        bit: Type = Sequence(kind.count, Int(1), True) if isinstance(kind, Sequence) else Int(1)
        return bit, [(kind, first), (kind, cursor.operand(kind))]

    read_fcmp = read_icmp

    def read_select(self, cursor: Cursor, extra: dict[str, Any]) -> tuple[Type, list[Typed]]:
        cursor.skip_words()
        operands = [cursor.typed(), *cursor.rest()]
        return operands[1][0], operands

    def read_getelementptr(self, cursor: Cursor, extra: dict[str, Any]) -> tuple[Type, list[Typed]]:
        cursor.skip_words()
        extra["element"] = cursor.type()
        operands = cursor.rest()
        kind = next((kind for kind, _ in operands if isinstance(kind, Sequence)), None)
        base = operands[0][0]
        if kind is not None and not isinstance(base, Sequence):
            base = Sequence(kind.count, base, True)
        return base, operands

    def access(self, cursor: Cursor, extra: dict[str, Any], default: int = 0) -> None:
        extra["align"] = cursor.after("align", default)
        words = cursor.tokens[cursor.at :]
        extra["ordering"] = tuple(word for word in words if word in ORDERINGS)
        extra["scope"] = words[words.index("syncscope") + 2].strip('"') if "syncscope" in words else "system"

    def read_load(self, cursor: Cursor, extra: dict[str, Any]) -> tuple[Type, list[Typed]]:
        extra["atomic"] = "atomic" in (cursor.next, cursor.tokens[cursor.at + 1])
        cursor.skip_words()
        kind = cursor.type()
        cursor.expect(",")
        operands = [cursor.typed()]
        self.access(cursor, extra)
        return kind, operands

    def read_store(self, cursor: Cursor, extra: dict[str, Any]) -> tuple[Type, list[Typed]]:
        extra["atomic"] = "atomic" in (cursor.next, cursor.tokens[cursor.at + 1])
        cursor.skip_words()
        operands = cursor.several(2)
        self.access(cursor, extra)
        return VOID, operands

    def read_atomicrmw(self, cursor: Cursor, extra: dict[str, Any]) -> tuple[Type, list[Typed]]:
        cursor.skip_words()
        extra["operation"] = cursor.tokens[cursor.at - 1]
        operands = cursor.several(2)
        self.access(cursor, extra)
        return operands[1][0], operands

    def read_cmpxchg(self, cursor: Cursor, extra: dict[str, Any]) -> tuple[Type, list[Typed]]:
        cursor.skip_words()
        operands = cursor.several(3)
        self.access(cursor, extra)
        return Struct((operands[1][0], Int(1))), operands

    def read_fence(self, cursor: Cursor, extra: dict[str, Any]) -> tuple[Type, list[Typed]]:
        self.access(cursor, extra)
        return VOID, []

    def read_alloca(self, cursor: Cursor, extra: dict[str, Any]) -> tuple[Type, list[Typed]]:
        cursor.skip_words()
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
        cursor.skip_words()
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
        extra["indices"] = self.numbers(cursor)
        for index in extra["indices"]:
            kind = kind.fields[index] if isinstance(kind, Struct) else kind.element
        return kind, operands

    def read_insertvalue(self, cursor: Cursor, extra: dict[str, Any]) -> tuple[Type, list[Typed]]:
        operands = cursor.several(2)
        extra["indices"] = self.numbers(cursor)
        return operands[0][0], operands

    def numbers(self, cursor: Cursor) -> list[int]:
        found = []
        while cursor.accept(",") and cursor.next.isdigit():
            found.append(int(cursor.take()))
        return found

    def read_call(self, cursor: Cursor, extra: dict[str, Any]) -> tuple[Type, list[Typed]]:
        cursor.skip_words()
        kind = cursor.type()
        if cursor.next == "(":
            cursor.skip_brackets()
        extra["callee"] = cursor.operand(kind)
        cursor.expect("(")
        return kind, cursor.until(")", cursor.typed)


def indices(mask: Operand, count: int) -> list[int]:
    """Those of a shufflevector; -1 is an element that nobody uses."""
    if isinstance(mask, Zero):
        return [0] * count
    if isinstance(mask, Undefined):
        return [-1] * count
    assert isinstance(mask, Many)
    parts = mask.parts * count if mask.is_splat else mask.parts
    return [int(part.value) if isinstance(part, Literal) else 0 if isinstance(part, Zero) else -1 for _, part in parts]


def parse_llvm(text: str) -> Module:
    return Reader().read(text)
