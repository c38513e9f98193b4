"""The values of LLVM in the emulator: an array over the threads of a workgroup, with the elements that are undefined.

A scalar is a pair (data, undefined). `data` has an element per thread, or one for all of them; `undefined` is None, or
has for each thread the reason why its element is undefined (0: it is defined). Vectors, structures and buffer resources
are lists of values, so that an element can be extracted, inserted or shuffled without a copy.

"""

from collections.abc import Iterable
from functools import reduce
from typing import Any

import numpy as np

from tilework.numerics.rounding import UNSIGNED
from tilework.oracles.emulator.llvm.ir import Int, Pointer, Sequence, Type, dtype_of, leaves, size_of
from tilework.oracles.emulator.memory import Array

Scalar = tuple[Array, Array | None]
Value = Any  # Scalar or a list of values

REASONS = (
    "",
    "undef or poison",
    "LDS that was never written",
    "a lane that is not active",
    "a shift by too much, or a division by zero",
)
POISON, UNWRITTEN, INACTIVE, IMPOSSIBLE = range(1, len(REASONS))


def either(a: Array | None, b: Array | None) -> Array | None:
    """Return the undefined elements if one of two is undefined."""
    return b if a is None else a if b is None else np.maximum(a, b)


def any_of(scalars: Iterable[Scalar]) -> Array | None:
    return reduce(either, (undefined for _, undefined in scalars), None)


def merge(mask: Array, new: Value, old: Value) -> Value:
    """Return `new` where the mask is set, else `old`."""
    if isinstance(new, list):
        return [merge(mask, one, other) for one, other in zip(new, old, strict=True)]
    data = np.where(mask, new[0], old[0])
    if new[1] is None and old[1] is None:
        return data, None
    zero = np.uint8(0)
    return data, np.where(mask, zero if new[1] is None else new[1], zero if old[1] is None else old[1])


def undefined_of(kind: Type, why: int = POISON) -> Value:
    if isinstance(kind, Sequence | list) or hasattr(kind, "fields"):
        return [undefined_of(part, why) for part in parts(kind)]
    if kind == Pointer(8):
        return [undefined_of(Int(64), why), undefined_of(Int(64), why)]
    return np.zeros(1, dtype_of(kind)), np.full(1, why, np.uint8)


def parts(kind: Any) -> list[Type]:
    return [kind.element] * kind.count if isinstance(kind, Sequence) else list(kind.fields)


def flatten(value: Value) -> list[Scalar]:
    """Return the scalars of a value, in memory order."""
    if not isinstance(value, list):
        return [value]
    return [leaf for part in value for leaf in flatten(part)]


def unflatten(kind: Type, scalars: list[Scalar]) -> Value:
    """Return the value of this type that has these scalars, which are consumed."""
    if isinstance(kind, Sequence) or hasattr(kind, "fields"):
        return [unflatten(part, scalars) for part in parts(kind)]
    return scalars.pop(0)


def to_bytes(kind: Type, value: Value) -> tuple[Array, Array | None]:
    """Return the bytes of a value without padding, [thread or 1, byte], and the reasons why they are undefined."""
    scalars, kinds = flatten(value), [leaf for _, leaf in leaves(kind)]
    if all(leaf == Int(1) for leaf in kinds) and len(kinds) > 1:
        rows = np.stack(np.broadcast_arrays(*(data for data, _ in scalars)), axis=-1)
        return np.packbits(rows, axis=-1, bitorder="little"), any_of(scalars)
    columns = [bits(data, leaf) for (data, _), leaf in zip(scalars, kinds, strict=True)]
    if len({column.dtype for column in columns}) == 1:
        rows = np.stack(np.broadcast_arrays(*columns), axis=-1) if len(columns) > 1 else columns[0][:, None]
        return np.ascontiguousarray(rows).view(np.uint8), any_of(scalars)
    count = max(len(column) for column in columns)
    rows = [
        np.ascontiguousarray(np.broadcast_to(column, count)).view(np.uint8).reshape(count, -1) for column in columns
    ]
    return np.concatenate(rows, axis=1), any_of(scalars)


def bits(data: Array, kind: Type) -> Array:
    """Return a scalar as unsigned integers of its size in memory."""
    if data.dtype.kind == "b":
        return data.view(np.uint8)
    if data.dtype.kind == "O":  # wider than 64 bits: two halves
        raw = b"".join(int(one).to_bytes(size_of(kind), "little") for one in data)
        return np.frombuffer(raw, f"V{size_of(kind)}")
    return np.ascontiguousarray(data).view(UNSIGNED[data.dtype.itemsize])


def from_bytes(kind: Type, rows: Array, undefined: Array | None) -> Value:
    """Return the value of a type from its bytes [thread, byte]."""
    kinds = [leaf for _, leaf in leaves(kind)]
    if all(leaf == Int(1) for leaf in kinds) and len(kinds) > 1:
        columns = np.unpackbits(rows, axis=-1, count=len(kinds), bitorder="little").view(bool)
        return unflatten(kind, [(columns[:, index], undefined) for index in range(len(kinds))])
    found: list[Scalar] = []
    at = 0
    for leaf in kinds:
        size = size_of(leaf)
        found.append((from_row(leaf, np.ascontiguousarray(rows[:, at : at + size])), undefined))
        at += size
    return unflatten(kind, found)


def from_row(kind: Type, row: Array) -> Array:
    """Return a scalar from contiguous bytes."""
    dtype = dtype_of(kind)
    if dtype.kind == "O":
        return np.array([int.from_bytes(one.tobytes(), "little") for one in row], object)
    if dtype.kind == "b":
        return (row[:, 0] & 1).astype(bool)
    return row.view(dtype)[:, 0]


def bitcast(to: Type, kind: Type, value: Value) -> Value:
    """Return the same bits as another type."""
    if not isinstance(to, Sequence) and not isinstance(kind, Sequence):
        data, undefined = value
        return (data if data.dtype == dtype_of(to) else np.ascontiguousarray(data).view(dtype_of(to))), undefined
    source, target = [leaf for _, leaf in leaves(kind)], [leaf for _, leaf in leaves(to)]
    if len(source) == len(target) and size_of(source[0]) == size_of(target[0]) and Int(1) not in (source[0], target[0]):
        found = [bitcast(b, a, one) for a, b, one in zip(source, target, flatten(value), strict=True)]
        return unflatten(to, found)
    scalars = flatten(value)
    if any(undefined is not None for _, undefined in scalars) and len(target) != len(source):
        return bitcast_by_parts(to, source, target, scalars)
    return from_bytes(to, *to_bytes(kind, value))


def bitcast_by_parts(to: Type, source: list[Type], target: list[Type], scalars: list[Scalar]) -> Value:
    """Bitcast each element separately, so that an undefined one does not affect the others."""
    if len(source) % len(target) and len(target) % len(source):
        whole = Sequence(len(source), source[0], True)
        return from_bytes(to, *to_bytes(whole, list(scalars)))
    found: list[Scalar] = []
    if len(source) >= len(target):
        width = len(source) // len(target)
        for index, leaf in enumerate(target):
            some = scalars[index * width : (index + 1) * width]
            found += flatten(from_bytes(leaf, *to_bytes(Sequence(width, source[0], True), list(some))))
    else:
        width = len(target) // len(source)
        for leaf, one in zip(source, scalars, strict=True):
            found += flatten(from_bytes(Sequence(width, target[0], True), *to_bytes(leaf, one)))
    return unflatten(to, found)


def signed(data: Array, width: int) -> Array:
    """Return the bits as a signed integer."""
    if width in (8, 16, 32, 64):
        return data.view(f"i{width // 8}")
    if data.dtype.kind == "O":
        return (data ^ (1 << width - 1)) - (1 << width - 1)
    wide = data.astype(np.int64)
    return (wide ^ (1 << width - 1)) - (1 << width - 1)


def unsigned(data: Array, kind: Int) -> Array:
    """Return an integer of any type as bits of this one."""
    dtype = dtype_of(kind)
    if dtype.kind == "b":
        return (data & 1).astype(bool)
    if dtype.kind == "O":
        return data.astype(object) & ((1 << kind.bits) - 1)
    if data.dtype.kind == "O":
        data = np.array([int(one) & (1 << kind.bits) - 1 for one in data], dtype)
    found = data.astype(dtype)
    return found if kind.bits == 8 * dtype.itemsize else found & dtype.type((1 << kind.bits) - 1)
