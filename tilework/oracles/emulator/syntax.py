"""The abstract syntax of PTX: a module has variables and functions, a function has instructions.

    >>> from tilework.oracles.emulator.parser import parse_ptx
    >>> text = ".version 8.0\\n.target sm_80\\n.func f() { .reg .b32 %r<3>; add.s32 %r1, %r2, 5; }"
    >>> ins = parse_ptx(text).functions["f"].instructions[0]
    >>> ins.opcode, ins.modifiers, ins.operands
    ('add', ('s32',), (Reg(name='%r1'), Reg(name='%r2'), Imm(value=5, kind='int')))

Registers declared in an inner scope are renamed (``%r1@2``), so that a name is unique in its function.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from tilework.errors import TritonError


class EmulatorError(TritonError):
    """An error that a GPU would raise too: invalid PTX, a bad access, a deadlocked block."""


class Trapped(EmulatorError):
    """A thread executed `trap`, or an assertion failed."""


class Unsupported(EmulatorError):
    """An instruction, or a form of one, that the emulator does not implement."""

    def __init__(self, ins: Any, why: str = "") -> None:
        location = f" (from {ins.location})" if ins.location else ""
        text = f"{ins.language} line {ins.line}{location}: {ins.name} is not supported"
        super().__init__(f"{text}{': ' if why else ''}{why}\n  {ins.text}")
        self.ins = ins


def located_error(kind: type[EmulatorError], text: str) -> EmulatorError:
    """Return an error whose message already names the instruction and the thread."""
    error = kind(text)
    error.located = True  # type: ignore[attr-defined]
    return error


def inlined(locations: Sequence[tuple[str, int]]) -> str:
    """``kernel.cu:12``, or ``header.h:7, inlined at kernel.cu:12``; empty without a location."""
    return ", inlined at ".join(f"{file}:{line}" for file, line in locations)


def dimensions(given: int | Sequence[int], what: str) -> tuple[int, int, int]:
    """Return the three sizes of a grid or a block."""
    sizes = [given] if isinstance(given, int | np.integer) else list(given)
    if not 1 <= len(sizes) <= 3:
        raise EmulatorError(f"a {what} has one to three dimensions, not {len(sizes)}")
    x, y, z = (*(int(size) for size in sizes), 1, 1)[:3]
    return x, y, z


class PtxSyntaxError(EmulatorError):
    """Text that is not PTX; the message names the line."""


@dataclass(frozen=True)
class Reg:
    """A register of its function: ``%r1``."""

    name: str


@dataclass(frozen=True)
class Imm:
    """An immediate: `value` is an integer, or for ``0f...`` and ``0d...`` the bits of the float (`kind` "f32" or
    "f64")."""

    value: int
    kind: str = "int"


@dataclass(frozen=True)
class Special:
    """A special register: ``%tid.x``, ``%laneid``."""

    name: str


@dataclass(frozen=True)
class Symbol:
    """The name of a variable, a parameter, a function or a label, plus an offset in bytes."""

    name: str
    offset: int = 0


@dataclass(frozen=True)
class Address:
    """``[base+offset]``; `parts` are the operands after it in the brackets, as in ``[%rd1, {%r1, %r2}]``."""

    base: "Reg | Symbol | Imm"
    offset: int = 0
    parts: "tuple[Operand, ...]" = ()


@dataclass(frozen=True)
class Vector:
    """``{%r1, %r2, _, 0}``."""

    items: "tuple[Operand, ...]"


@dataclass(frozen=True)
class Pair:
    """Two results written ``%r1|%p1``."""

    first: "Operand"
    second: "Operand"


@dataclass(frozen=True)
class Not:
    """A negated predicate among the operands: ``!%p1``."""

    operand: Reg


@dataclass(frozen=True)
class Sink:
    """``_``: a result that is discarded, or a missing operand."""


Operand = Reg | Imm | Special | Symbol | Address | Vector | Pair | Not | Sink


def items(operand: Operand) -> tuple[Operand, ...]:
    """Return the parts of a vector or a pair; any other operand itself."""
    match operand:
        case Vector():
            return operand.items
        case Pair():
            return operand.first, operand.second
        case _:
            return (operand,)


def pair(operand: Operand) -> tuple[Operand, Operand]:
    """Return two results, of which the second may be missing."""
    return (operand.first, operand.second) if isinstance(operand, Pair) else (operand, Sink())


@dataclass(frozen=True, eq=False)
class Instruction:
    """One instruction. `line` is its line in the PTX text, `source` the (file, line) of the last ``.loc`` before it,
    `callers` the locations where the code was inlined, innermost first."""

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    predicate: Reg | None = None
    negated: bool = False
    line: int = 0
    source: tuple[str, int] | None = None
    text: str = ""
    callers: tuple[tuple[str, int], ...] = ()

    language: ClassVar[str] = "PTX"

    @property
    def locations(self) -> tuple[tuple[str, int], ...]:
        """(file, line), then the locations where it is inlined; empty without ``.loc``."""
        return (self.source, *self.callers) if self.source else ()

    @property
    def location(self) -> str:
        return inlined(self.locations)

    @property
    def name(self) -> str:
        """The opcode with its modifiers: ``add.rn.f32``."""
        return ".".join((self.opcode, *self.modifiers))


@dataclass(frozen=True)
class Variable:
    """Memory with a name. `type` is the type of an element ("b8"), `count` the number of elements (None: the size is
    given at launch), `initial` its bytes, `pointers` the (byte offset, symbol, is generic) of addresses in the initial
    value."""

    name: str
    space: str  # "global", "const", "shared", "local", "param"
    type: str
    count: int | None
    align: int
    initial: bytes = b""
    pointers: tuple[tuple[int, Symbol, bool], ...] = ()

    @property
    def size(self) -> int:
        return (self.count or 0) * TYPE_BYTES[self.type] if self.count is not None else 0


@dataclass(eq=False)
class Function:
    """A kernel (`is_kernel`) or a device function; without a body it is only declared."""

    name: str
    is_kernel: bool
    params: list[Variable]
    returns: list[Variable]
    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)  # label: index of the instruction after it
    registers: dict[str, str] = field(default_factory=dict)  # name: type
    variables: dict[str, Variable] = field(default_factory=dict)  # shared, local and param variables of the body
    targets: dict[str, tuple[str, ...]] = field(default_factory=dict)  # name of a .branchtargets list: its labels
    limits: dict[str, tuple[int, ...]] = field(default_factory=dict)  # "maxntid": (128, 1, 1)
    has_body: bool = False
    line: int = 0


@dataclass(eq=False)
class PtxModule:
    """A PTX file."""

    version: tuple[int, int]
    target: str
    variables: dict[str, Variable]
    functions: dict[str, Function]

    @property
    def kernels(self) -> list[str]:
        return [name for name, function in self.functions.items() if function.is_kernel]


TYPE_BYTES = {
    **{f"{kind}{bits}": bits // 8 for kind in "bsu" for bits in (8, 16, 32, 64)},
    **{"b128": 16, "f16": 2, "f16x2": 4, "bf16": 2, "bf16x2": 4, "tf32": 4, "f32": 4, "f64": 8, "f32x2": 8},
    **{"e4m3": 1, "e5m2": 1, "e4m3x2": 2, "e5m2x2": 2, "pred": 1, "texref": 8, "samplerref": 8, "surfref": 8},
}
