"""Vectors of bits in one integer: the fields of the outs side by side, the first out in the lowest bits.

With outs dim0 of size 4 and dim1 of size 8, the coordinate (3, 5) is packed as `3 | 5 << 2`:

>>> place = packer((("dim0", 4), ("dim1", 8)))
>>> 3 << place["dim0"] | 5 << place["dim1"]
23
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from tilework.layouts.errors import LayoutError

Vectors: TypeAlias = Sequence[Sequence[int]]
Columns: TypeAlias = tuple[tuple[str, tuple[int, ...]], ...]
Outs: TypeAlias = tuple[tuple[str, int], ...]
Named: TypeAlias = Mapping[str, int] | Sequence[tuple[str, int]]


def log2(size: int) -> int:
    """The bits of a power of two.

    >>> log2(32)
    5
    """
    if size < 1 or size & (size - 1):
        raise LayoutError(f"{size} is not a power of two")
    return size.bit_length() - 1


def pairs(named: Named) -> Outs:
    """A mapping or a list of pairs, as a tuple of pairs."""
    return tuple(dict(named).items())


def pack(vector: Sequence[int], outs: Outs, in_name: str) -> int:
    """One vector, checked.

    >>> pack((3, 5), (("dim0", 4), ("dim1", 8)), "lane")
    23
    """
    if len(vector) != len(outs):
        raise LayoutError(f"the {in_name} basis {list(vector)} does not have one number for each of {list(outs)}")
    packed = shift = 0
    for value, (out, size) in zip(vector, outs, strict=True):
        if not 0 <= value < size:
            raise LayoutError(f"the {in_name} basis {list(vector)} does not fit {out} of size {size}")
        packed |= value << shift
        shift += log2(size)
    return packed


def sized(outs: Named | Sequence[str], bases: Iterable[tuple[str, Vectors]]) -> Outs:
    """The name and size of each out; names alone get the smallest size that holds every basis.

    >>> sized(("dim0", "dim1"), [("lane", [(0, 1), (2, 0)])])
    (('dim0', 4), ('dim1', 2))
    """
    listed = tuple(outs.items()) if isinstance(outs, Mapping) else tuple(outs)
    names = [out for out in listed if isinstance(out, str)]
    if not names:
        return tuple(out for out in listed if not isinstance(out, str))
    largest = [0] * len(names)
    for _, vectors in bases:
        for vector in vectors:
            largest = [max(a, b) for a, b in zip(largest, vector, strict=True)]
    return tuple((name, 1 << value.bit_length()) for name, value in zip(names, largest, strict=True))


def packer(outs: Iterable[tuple[str, int]]) -> dict[str, int]:
    """The shift of each out in a packed basis."""
    found, shift = {}, 0
    for name, size in outs:
        found[name] = shift
        shift += size.bit_length() - 1
    return found


def repack(column: int, moves: Iterable[tuple[tuple[int, int], int]]) -> int:
    """Fields moved: each ((shift, mask), new shift)."""
    packed = 0
    for (shift, mask), place in moves:
        packed |= (column >> shift & mask) << place
    return packed


def combine(columns: Sequence[int], place: int) -> int:
    """The xor of the columns that the bits of `place` select.

    >>> combine((1, 2, 4), 0b101)
    5
    """
    packed = bit = 0
    while place:
        if place & 1:
            packed ^= columns[bit]
        place >>= 1
        bit += 1
    return packed


def merge(first: Sequence[str], second: Sequence[str]) -> list[str]:
    """Both lists of names in one that keeps the order of each.

    >>> merge(["register", "lane"], ["lane", "warp"])
    ['register', 'lane', 'warp']
    """
    if list(second) == list(first):
        return list(first)
    merged, rest = [], list(second)
    for name in first:
        if name in rest:
            at = rest.index(name)
            merged += rest[:at]
            rest = rest[at + 1 :]
        elif name in merged:
            raise LayoutError(f"{list(first)} and {list(second)} order their dimensions differently")
        merged.append(name)
    merged += rest
    if len(set(merged)) != len(merged):
        raise LayoutError(f"{list(first)} and {list(second)} order their dimensions differently")
    return merged


def describe(bases: Iterable[tuple[str, Vectors]], outs: Outs) -> str:
    """One basis per line, then the outs."""
    lines = []
    for name, vectors in bases:
        for bit, vector in enumerate(vectors):
            lines.append(f" {' ' if bit else '-'} {name}={1 << bit} -> ({', '.join(map(str, vector))})")
        if not vectors:
            lines.append(f" - {name} is a size 1 dimension")
    lines.append(f"where out dims are: [{', '.join(f'{name} (size {size})' for name, size in outs)}]")
    return "\n".join(lines)
