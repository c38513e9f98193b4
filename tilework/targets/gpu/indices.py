"""Evaluate linear layouts at run time: the coordinates of this thread's registers in a tensor, or their offsets.

    coordinates(low, layout)      # for each register its coordinates: [(%row, %column), (%row, %column + 1), ...]

The xor of the bases of the set bits of `lane` is a few shifts and masks: bits that shift by the same distance share one
shift. The contribution of the register index is a constant. Where the two have no bit in common, the xor is a sum, and
addressing modes can add a constant.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from tilework.layouts.linear import LinearLayout
from tilework.targets.gpu.lowering import Lowering
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.types import i32
from tilework.targets.llvm.values import Value, constant


class Spread(NamedTuple):
    """An i32 that depends on the thread, and the bits that may be set in it."""

    value: Value
    mask: int


def xor_columns(b: Builder, parts: Iterable[tuple[Value, Sequence[int]]]) -> Spread:
    """Return the xor, over the set bits of each value, of the bit's column."""
    total, covered = constant(i32, 0), 0
    for value, columns in parts:
        groups: dict[int, int] = {}  # distance -> bits of `value` that move by it
        for bit, column in enumerate(columns):
            while column:
                to = (column & -column).bit_length() - 1
                groups[to - bit] = groups.get(to - bit, 0) | 1 << bit
                column &= column - 1
        for distance, mask in groups.items():
            kept = b.and_(value, mask)
            moved = b.shl(kept, distance) if distance >= 0 else b.lshr(kept, -distance)
            target = mask << distance if distance >= 0 else mask >> -distance
            total = b.xor(total, moved) if covered & target else b.or_(total, moved)
            covered |= target
    return Spread(total, covered)


def combined(b: Builder, spread: Spread, fixed: int) -> Value:
    """Return `spread ^ fixed`, as a sum where they have no bit in common."""
    both = fixed & spread.mask
    base = b.xor(spread.value, both) if both else spread.value
    made = b.add(base, fixed ^ both)
    if base.constant is None and fixed != both:
        b.exact[made.text] = (base, fixed ^ both)
    b.bound(made, fixed ^ both, (fixed ^ both) + spread.mask)
    return made


def spread_of(low: Lowering, layout: LinearLayout, out: str, more: Mapping[str, Value] | None = None) -> Spread:
    """Return what lane, warp and block (and `more` values) contribute to one output of a layout."""
    position = layout.out_names.index(out)
    bases = dict(layout.bases)
    values = {**low.ids, **(more or {})}
    parts = [(value, [vector[position] for vector in bases[name]]) for name, value in values.items() if name in bases]
    return xor_columns(low.builder, parts)


def coordinates(low: Lowering, layout: LinearLayout) -> list[tuple[Value, ...]]:
    """Return the coordinates of each register of this thread, dimension 0 first."""
    names = sorted(layout.out_names, key=lambda name: int(name.removeprefix("dim")))
    spreads = [(layout.out_names.index(name), spread_of(low, layout, name)) for name in names]
    offsets = [layout.vector(column) for column in layout.images("register")]
    return [tuple(combined(low.builder, spread, offset[at]) for at, spread in spreads) for offset in offsets]


def chosen(
    b: Builder, index: Value, bits: Sequence[tuple[int, int]], first: int, read: Callable[[int], Value]
) -> Value:
    """Apply `read` to the offset that `index` selects: `first`, xor the offset of each (bit, offset) pair whose bit is
    set in `index`.
    """
    if not bits:
        return read(first)
    (bit, distance), *rest = bits
    without, with_bit = (chosen(b, index, rest, first ^ more, read) for more in (0, distance))
    return b.select(b.icmp("ne", b.and_(index, bit), 0), with_bit, without)
