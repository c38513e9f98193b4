"""LLVM IR after parsing: a module has variables and functions, a function has blocks of instructions; and the types.

Operands are names of values, or constants as in the text; `translate_ir` converts them to arrays. Types have sizes in
memory and NumPy arrays that hold them:

    >>> size_of(Sequence(4, Float("half"), True)), dtype_of(Int(32)), leaves(Struct((Int(8), Int(32))))
    (8, dtype('uint32'), [(0, Int(bits=8)), (4, Int(bits=32))])

"""

import os
import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar

import numpy as np

from tilework.numerics.rounding import FLOATS
from tilework.oracles.emulator.syntax import inlined

FLOAT_NAMES = {"half": "fp16", "bfloat": "bf16", "float": "fp32", "double": "fp64"}
NARROW_SPACES = (2, 3, 5, 6)  # whose pointers have 32 bits
RESOURCE = 8  # the space of buffer resources


@dataclass(frozen=True)
class Int:
    bits: int


@dataclass(frozen=True)
class Float:
    name: str


@dataclass(frozen=True)
class Pointer:
    space: int = 0


@dataclass(frozen=True)
class Sequence:
    """A vector (`is_vector`) or an array."""

    count: int
    element: "Type"
    is_vector: bool = False


@dataclass(frozen=True)
class Struct:
    fields: "tuple[Type, ...]"
    is_packed: bool = False


@dataclass(frozen=True)
class Other:
    """void, label, metadata and the like."""

    name: str


Type = Int | Float | Pointer | Sequence | Struct | Other


@cache
def dtype_of(kind: Type) -> np.dtype[Any]:
    """Return the NumPy type: integers are unsigned, one bit is a bool, integers of more than 64 bits are objects."""
    match kind:
        case Int(1):
            return np.dtype(bool)
        case Int(bits):
            return np.dtype(object) if bits > 64 else np.dtype(f"u{size_of(kind)}")
        case Float(name):
            return FLOATS[FLOAT_NAMES[name]]
        case Pointer(space):
            return np.dtype(np.uint32 if space in NARROW_SPACES else np.uint64)
        case _:
            raise TypeError(f"{kind} is no scalar")


@cache
def size_of(kind: Type) -> int:
    """Return the bytes between two elements in an array; for a vector, the bytes of all elements."""
    match kind:
        case Int(bits):
            return power_of_two((bits + 7) // 8)
        case Float():
            return dtype_of(kind).itemsize
        case Pointer(space):
            return 16 if space == RESOURCE else dtype_of(kind).itemsize
        case Sequence(count, element, _):
            return count * size_of(element)
        case Struct():
            end = max((offset + size_of(field) for offset, field in fields_of(kind)), default=0)
            return end if kind.is_packed else rounded_up(end, align_of(kind))
        case _:
            raise TypeError(f"{kind} is not in memory")


@cache
def align_of(kind: Type) -> int:
    match kind:
        case Struct(fields, is_packed):
            return 1 if is_packed else max((align_of(field) for field in fields), default=1)
        case Sequence(_, element, False):
            return align_of(element)
        case _:
            return min(16, power_of_two(size_of(kind)))


def power_of_two(size: int) -> int:
    return 1 << max(0, size - 1).bit_length()


def rounded_up(size: int, align: int) -> int:
    return (size + align - 1) // align * align


@cache
def fields_of(kind: Struct) -> list[tuple[int, Type]]:
    """Return the fields with their offsets."""
    found: list[tuple[int, Type]] = []
    end = 0
    for part in kind.fields:
        start = end if kind.is_packed else rounded_up(end, align_of(part))
        found.append((start, part))
        end = start + size_of(part)
    return found


def parts_of(kind: Type) -> list[tuple[int, Type]]:
    """Return the elements or fields of an aggregate, with their offsets."""
    if isinstance(kind, Struct):
        return fields_of(kind)
    assert isinstance(kind, Sequence), kind
    return [(index * size_of(kind.element), kind.element) for index in range(kind.count)]


@cache
def leaves(kind: Type) -> list[tuple[int, Type]]:
    """Return the scalars of a type, with their offsets."""
    if not isinstance(kind, Sequence | Struct):
        return [(0, kind)]
    return [(offset + inner, leaf) for offset, part in parts_of(kind) for inner, leaf in leaves(part)]


VOID = Other("void")


@dataclass(frozen=True)
class Local:
    """``%x``."""

    name: str


@dataclass(frozen=True)
class Literal:
    """A numeric constant."""

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
    """The parts of a constant aggregate; a single one is a ``splat``."""

    parts: "tuple[Typed, ...]"
    is_splat: bool = False


@dataclass(frozen=True)
class Expression:
    """A constant expression, as the instruction that would compute it."""

    instruction: "Instruction"


@dataclass(frozen=True)
class Assembly:
    """The callee of ``call asm``."""

    text: str
    constraints: str


Operand = Local | Literal | Undefined | Zero | Symbol | Many | Expression | Assembly
Typed = tuple[Type, Operand]


@dataclass(frozen=True, eq=False)
class Instruction:
    """One instruction. `extra` has the rest that its opcode needs: a predicate, an alignment, labels."""

    opcode: str
    type: Type
    operands: tuple[Typed, ...]
    extra: dict[str, Any]
    result: str | None = None
    line: int = 0
    text: str = ""
    locations: tuple[tuple[str, int], ...] = ()  # (file, line), then those where it is inlined

    language: ClassVar[str] = "LLVM"

    @property
    def location(self) -> str:
        return inlined(self.locations)

    @property
    def name(self) -> str:
        return self.callee or self.opcode

    @property
    def callee(self) -> str:
        """The name of the called function."""
        target = self.extra.get("callee")
        return target.name if isinstance(target, Symbol) else ""


@dataclass(eq=False)
class Variable:
    """Memory with a name; `initial` None: defined outside of this module."""

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
    """The debug locations of `!dbg`: the (file, line) of a DILocation, and where its code was inlined."""

    def __init__(self) -> None:
        self.nodes: dict[str, str] = {}
        self.found: dict[str, tuple[tuple[str, int], ...]] = {}

    def attribute(self, node: str, name: str) -> str:
        found = re.search(rf'\b{name}: (?:"([^"]*)"|([^,)]+))', self.nodes.get(node, ""))
        return (found[1] if found[1] is not None else found[2]) if found else ""

    def locations(self, node: str) -> tuple[tuple[str, int], ...]:
        if node not in self.found:
            line, above = self.attribute(node, "line"), self.attribute(node, "inlinedAt")
            scope = self.attribute(node, "scope")
            while scope and not self.attribute(scope, "file"):
                scope = self.attribute(scope, "scope")
            unit = self.attribute(scope, "file")
            file = os.path.join(self.attribute(unit, "directory"), self.attribute(unit, "filename"))
            here = ((file, int(line)),) if line and file else ()
            self.found[node] = here + (self.locations(above) if above else ())
        return self.found[node]
