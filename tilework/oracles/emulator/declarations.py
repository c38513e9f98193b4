"""Declarations of variables and parameters: alignment, type, size and initial value.

.global .align 16 .b8 table[8] = {1, 2, 3};        .param .align 8 .b8 k_param_0[24]        .extern .shared .b8 buffer[];
"""

import struct

from tilework.oracles.emulator.syntax import TYPE_BYTES, Imm, Symbol, Variable
from tilework.oracles.emulator.tokens import Cursor, float_bits, negated, number


class Declarations(Cursor):
    """The part of the parser that reads them."""

    def variables(self, space: str) -> list[Variable]:
        """After the space: alignment, type, names with sizes and initial values, up to the semicolon."""
        align, type, lanes = self.type_of_variable()
        found = self.listed(lambda: self.variable(space, align, type, lanes))
        self.expect(";")
        return found

    def type_of_variable(self) -> tuple[int, str, int]:
        align, lanes, type, is_pointer = 0, 1, "", False
        while self.peek().startswith("."):
            text = self.next().text
            is_pointer |= text == ".ptr"
            if text == ".align":
                given = self.integer()
                if given < 1 or given & (given - 1):
                    raise self.error(f"an alignment is a power of two, not {given}")
                align = align if is_pointer else given  # behind .ptr it is that of what the pointer points to
            elif text in (".v2", ".v4", ".v8"):
                lanes = int(text[2:])
            elif text == ".attribute":
                self.skip_to(")")
            elif text in (".ptr", ".global", ".const", ".shared", ".local", ".param", ".noalias", ".unified"):
                continue
            elif text[1:] in TYPE_BYTES:
                type = text[1:]
            else:
                raise self.error(f"{text!r} is not the type of a variable")
        if not type:
            raise self.error(f"expected a type, found {self.peek()!r}")
        return align or TYPE_BYTES[type] * lanes, type, lanes

    def variable(self, space: str, align: int, type: str, lanes: int) -> Variable:
        name = self.word()
        count: int | None = lanes
        while self.accept("["):
            if self.accept("]"):
                count = None
                continue
            count = (count or 1) * self.size_of_array()
            self.expect("]")
        initial, pointers = b"", ()
        if self.accept("="):
            values, pointers = bytearray(), []
            self.initial_value(type, values, pointers)
            initial, pointers = bytes(values), tuple(pointers)
            if count is None:
                count = len(initial) // TYPE_BYTES[type]
        return Variable(name, space, type, count, align, initial, tuple(pointers))

    def size_of_array(self) -> int:
        size = self.integer()
        if size < 0:
            raise self.error(f"an array of {size} elements")
        return size

    def initial_value(self, type: str, into: bytearray, pointers: list[tuple[int, Symbol, bool]]) -> None:
        if self.accept("{"):
            while not self.accept("}"):
                self.initial_value(type, into, pointers)
                self.accept(",")
            return
        size = TYPE_BYTES[type]
        if self.tokens[self.at].kind == "word":
            name = self.word()
            if self.peek() == "(" and name != "generic":
                raise self.error(f"{name!r} is not known in an initial value")
            generic = name == "generic"
            if generic:
                self.expect("(")
                name = self.word()
            offset = self.integer() if self.accept("+") else 0
            if generic:
                self.expect(")")
                offset += self.integer() if self.accept("+") else 0
            pointers.append((len(into), Symbol(name, offset), generic))
            into += bytes(size)
            return
        if self.tokens[self.at].kind not in ("number", "float") and self.peek() != "-":
            raise self.error("an initial value is a number or the name of a variable")
        value = self.constant()
        bits = value.value & ((1 << 8 * size) - 1)
        if value.kind == "int" and type in ("f32", "f64"):
            bits = int.from_bytes(struct.pack("<f" if size == 4 else "<d", value.value), "little")
        elif value.kind == "f64" and size == 4:
            bits = int.from_bytes(struct.pack("<f", struct.unpack("<d", struct.pack("<Q", value.value))[0]), "little")
        into += bits.to_bytes(size, "little")

    def parameters(self) -> list[Variable]:
        """A list in parentheses, or nothing."""
        found = []
        if not self.accept("("):
            return found
        while not self.accept(")"):
            if self.peek() == ".reg":
                self.next()
            else:
                self.expect(".param")
            align, type, lanes = self.type_of_variable()
            found.append(self.variable("param", align, type, lanes))
            self.accept(",")
        return found

    def constant(self) -> Imm:
        """A number, which may have a sign."""
        if self.accept("-"):
            return negated(self.constant())
        if self.tokens[self.at].kind not in ("number", "float"):
            raise self.error(f"expected a number, found {self.peek() or 'the end'!r}")
        token = self.next()
        return Imm(number(token.text)) if token.kind == "number" else float_bits(token.text)
