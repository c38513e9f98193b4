"""Types of LLVM, how long they are in memory, and the NumPy arrays that hold them.

>>> size_of(Sequence(4, Float("half"), True)), dtype_of(Int(32)), leaves(Struct((Int(8), Int(32))))
(8, dtype('uint32'), [(0, Int(bits=8)), (4, Int(bits=32))])
"""

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tilework.numerics.rounding import FLOATS

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
    """Integers are unsigned, one bit is a bool, more than 64 are Python's."""
    match kind:
        case Int(1):
            return np.dtype(bool)
        case Int(bits):
            return np.dtype(object) if bits > 64 else np.dtype(f"u{size_of(kind)}")
        case Float(name):
            return FLOATS[FLOAT_NAMES[name]]
        case Pointer(space):
            return np.dtype(np.uint32 if space in NARROW_SPACES else np.uint64)
    raise TypeError(f"{kind} is no scalar")


@cache
def size_of(kind: Type) -> int:
    """Bytes between two of them in an array; of a vector, of all its elements."""
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
    raise TypeError(f"{kind} is not in memory")


@cache
def align_of(kind: Type) -> int:
    match kind:
        case Struct(fields, is_packed):
            return 1 if is_packed else max((align_of(field) for field in fields), default=1)
        case Sequence(_, element, False):
            return align_of(element)
    return min(16, power_of_two(size_of(kind)))


def power_of_two(size: int) -> int:
    return 1 << max(0, size - 1).bit_length()


def rounded_up(size: int, align: int) -> int:
    return (size + align - 1) // align * align


@cache
def fields_of(kind: Struct) -> list[tuple[int, Type]]:
    """Each field with its offset."""
    found: list[tuple[int, Type]] = []
    end = 0
    for field in kind.fields:
        start = end if kind.is_packed else rounded_up(end, align_of(field))
        found.append((start, field))
        end = start + size_of(field)
    return found


def parts_of(kind: Type) -> list[tuple[int, Type]]:
    """The elements or fields of an aggregate, with their offsets."""
    if isinstance(kind, Struct):
        return fields_of(kind)
    assert isinstance(kind, Sequence), kind
    return [(index * size_of(kind.element), kind.element) for index in range(kind.count)]


@cache
def leaves(kind: Type) -> list[tuple[int, Type]]:
    """The scalars of a type, with their offsets."""
    if not isinstance(kind, Sequence | Struct):
        return [(0, kind)]
    return [(offset + inner, leaf) for offset, part in parts_of(kind) for inner, leaf in leaves(part)]
