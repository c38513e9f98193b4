"""LLVM text after parsing: a module of variables and functions, a function of blocks of instructions.

Operands are names of values, or constants as the text has them: what they are as arrays, `translate_ir` knows.
"""

import os
import re
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tilework.oracles.emulator.llvm.ir_types import Other, Type
from tilework.oracles.emulator.syntax import inlined

VOID = Other("void")


@dataclass(frozen=True)
class Local:
    """``%x``."""

    name: str


@dataclass(frozen=True)
class Literal:
    """A number."""

    value: int | float


@dataclass(frozen=True)
class Undefined:
    """undef or poison."""


@dataclass(frozen=True)
class Zero:
    """null and zeroinitializer."""


@dataclass(frozen=True)
class Symbol:
    """``@x``."""

    name: str


@dataclass(frozen=True)
class Many:
    """The parts of a constant aggregate; a single one stands for all (``splat``)."""

    parts: "tuple[Typed, ...]"
    is_splat: bool = False


@dataclass(frozen=True)
class Expression:
    """A constant expression, as the instruction that would compute it."""

    instruction: "Instruction"


@dataclass(frozen=True)
class Assembly:
    """What is called by ``call asm``."""

    text: str
    constraints: str


Operand = Local | Literal | Undefined | Zero | Symbol | Many | Expression | Assembly
Typed = tuple[Type, Operand]


@dataclass(frozen=True, eq=False)
class Instruction:
    """One instruction. `extra` is what its opcode needs besides: a predicate, an alignment, labels."""

    opcode: str
    type: Type
    operands: tuple[Typed, ...]
    extra: dict[str, Any]
    result: str | None = None
    line: int = 0
    text: str = ""
    places: tuple[tuple[str, int], ...] = ()  # (file, line), then those that it is inlined at

    language: ClassVar[str] = "LLVM"

    @property
    def place(self) -> str:
        return inlined(self.places)

    @property
    def name(self) -> str:
        return self.callee or self.opcode

    @property
    def callee(self) -> str:
        """The name of the function that a call calls."""
        target = self.extra.get("callee")
        return target.name if isinstance(target, Symbol) else ""


@dataclass(eq=False)
class Variable:
    """Memory with a name; `initial` None is outside of this module."""

    name: str
    space: int
    type: Type
    initial: Operand | None
    align: int


@dataclass(eq=False)
class Function:
    name: str
    result: Type
    params: list[tuple[Type, str]]
    is_kernel: bool = False
    blocks: dict[str, list[Instruction]] = field(default_factory=dict)
    attributes: str = ""


@dataclass(eq=False)
class Module:
    variables: dict[str, Variable]
    functions: dict[str, Function]

    @property
    def kernels(self) -> list[str]:
        return [name for name, function in self.functions.items() if function.is_kernel and function.blocks]


class Locations:
    """What `!dbg` refers to: the (file, line) of a DILocation, and where its code was inlined."""

    def __init__(self) -> None:
        self.nodes: dict[str, str] = {}
        self.found: dict[str, tuple[tuple[str, int], ...]] = {}

    def attribute(self, node: str, name: str) -> str:
        found = re.search(rf'\b{name}: (?:"([^"]*)"|([^,)]+))', self.nodes.get(node, ""))
        return (found[1] if found[1] is not None else found[2]) if found else ""

    def places(self, node: str) -> tuple[tuple[str, int], ...]:
        if node not in self.found:
            line, above = self.attribute(node, "line"), self.attribute(node, "inlinedAt")
            scope = self.attribute(node, "scope")
            while scope and not self.attribute(scope, "file"):
                scope = self.attribute(scope, "scope")
            unit = self.attribute(scope, "file")
            file = os.path.join(self.attribute(unit, "directory"), self.attribute(unit, "filename"))
            here = ((file, int(line)),) if line and file else ()
            self.found[node] = here + (self.places(above) if above else ())
        return self.found[node]
