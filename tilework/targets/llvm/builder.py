"""A builder for LLVM text that folds constants and shares subexpressions as it goes.

    b = Builder(function)
    i, n = function.args
    x = b.mul(i, 4)               # %v0 = mul i32 %i, 4
    y = b.mul(4, i)               # the same value: operands are ordered, equal instructions are shared
    z = b.add(b.add(x, 3), -3)    # x again: constants added to a sum are collected
    with b.loop(0, n) as k:       # blocks, phi and back edge
        ...

An operand may be a Python number where another operand fixes its type. A pure instruction is identified by its text;
the table of known texts is scoped by dominance: what is built inside `loop` or `if_` is forgotten after it, what was
built before stays known inside. A block entered by hand (`enter`) starts with an empty table, unless it was made with
`inherit=True`, the caller's promise that every path to it passes through the point where it was created.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tilework.targets.llvm.arithmetic import Arithmetic, Casts
from tilework.targets.llvm.control import Control
from tilework.targets.llvm.memory import Memory
from tilework.targets.llvm.module import Block, Function, Module
from tilework.targets.llvm.types import Type
from tilework.targets.llvm.values import Value, constant
from tilework.targets.llvm.vectors import Vectors

new_tuple = tuple.__new__  # a Value without the cost of its Python constructor


class Builder(Arithmetic, Casts, Vectors, Memory, Control):
    """Writes one function. The methods are in one mixin per family; this class is what they share."""

    def __init__(self, function: Function) -> None:
        self.function: Function = function
        self.module: Module = function.module
        self.flags = ""  # fast-math flags of floating-point instructions, with a space behind
        self.suffix = ""  # debug location of every instruction
        # known of a value, by its text: base + constant, pointer + bytes, extension of another, copies of one scalar
        self.sums: dict[str, tuple[Value, int]] = {}
        self.exact: dict[str, tuple[Value, int]] = {}  # such sums that cannot wrap
        self.ranges: dict[str, tuple[int, int]] = {}  # the least and the greatest that an integer can be, not negative
        self.offsets: dict[str, tuple[Value, int]] = {}  # a pointer's base and byte offset, by its name
        self.terms: dict[str, tuple[Value, Value]] = {}  # or another and bytes that are not constant
        self.extensions: dict[str, tuple[str, Value]] = {}
        self.splats: dict[str, Value] = {}
        self.known: dict[str, Value] = {}
        self.log: list[str] = []
        self.block: Block = function.entry
        self.enter(function.entry)

    @property
    def location(self) -> str:
        """The metadata node of the current source position (see debug.py), or ''."""
        return self.suffix.removeprefix(", !dbg ")

    @location.setter
    def location(self, node: str) -> None:
        self.suffix = f", !dbg {node}" if node else ""

    @contextmanager
    def fast_math(self, *flags: str) -> Iterator[None]:
        """Put flags such as ``contract`` or ``nnan`` on the floating-point instructions built inside."""
        before, self.flags = self.flags, "".join(f"{flag} " for flag in flags)
        try:
            yield
        finally:
            self.flags = before

    def pair(self, a: Any, b: Any) -> tuple[Value, Value]:
        """Two operands of one type; a Python number takes the type of the other."""
        if a.__class__ is not Value:
            a = constant(b.type, a)
        elif b.__class__ is not Value:
            b = constant(a.type, b)
        assert a.type is b.type, f"operands of different types: {a.typed} and {b.typed}"
        return a, b

    def pure(self, text: str, type: Type) -> Value:
        """The value of an instruction without effects: built, or the one with the same text that is known here."""
        if (found := self.known.get(text)) is not None:
            return found
        function = self.function
        index = function.counter
        function.counter = index + 1
        made = new_tuple(Value, (type, f"%v{index}", None))
        self.block.lines.append(f"  {made.text} = {text}{self.suffix}")
        self.known[text] = made
        self.log.append(text)
        return made

    def effect(self, text: str, type: Type) -> Value:
        """The value of an instruction that reads memory or has effects: always built."""
        function = self.function
        index = function.counter
        function.counter = index + 1
        made = new_tuple(Value, (type, f"%v{index}", None))
        self.block.lines.append(f"  {made.text} = {text}{self.suffix}")
        return made

    def line(self, text: str) -> None:
        """An instruction without a value."""
        self.block.lines.append(f"  {text}{self.suffix}")

    def new_block(self, name: str, inherit: bool = False) -> Block:
        """A block to branch to; `enter` it to write into it."""
        made = self.function.block(name)
        made.known = dict(self.known) if inherit else None
        return made

    def enter(self, block: Block) -> None:
        """Continue in `block`, knowing only what the block is promised to know."""
        self.resume(block)
        self.known = block.known if block.known is not None else {}
        block.known = self.known
        self.log = []

    def resume(self, block: Block) -> None:
        """Continue in `block` with the present table; only for blocks that this point dominates."""
        assert not block.terminated, f"block {block.name} is finished"
        if not block.placed:
            block.placed = True
            self.function.blocks.append(block)
        self.block = block

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Forget on leaving what was built inside."""
        known, log, mark = self.known, self.log, len(self.log)
        yield
        self.known, self.log = known, log
        for text in log[mark:]:
            del known[text]
        del log[mark:]

    def outline(self, name: str, result: Type, args: Sequence[Value], body: Any) -> Value:
        """Call an internal function `@name`, written by ``body(builder, args)`` at its first use."""
        if (inner := unwritten(self.module, name, result, [arg.type for arg in args])) is not None:
            inner.ret(body(inner, inner.function.args))
        return self.pure(self.call_text(result, f"@{name}", args), result)


def unwritten(
    module: Module, name: str, result: Type, types: Sequence[Type], attributes: Sequence[str] = ("nounwind",)
) -> Builder | None:
    """The builder of an internal function at its first use, otherwise None."""
    if name in module.functions:
        return None
    params = [(type, f"a{position}") for position, type in enumerate(types)]
    return Builder(module.function(name, result, params, linkage="internal", attributes=attributes))
