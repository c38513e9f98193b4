"""Linear equations over bits, and the division of layouts.

A matrix over bits is a list of columns, each an integer. Solving `given * X = wanted` is elimination: reduce each
wanted column with the pivots of `given`, and note which columns were used.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tilework.layouts.packing import Columns, Outs, combine, log2, packer, repack

if TYPE_CHECKING:
    from tilework.layouts.linear import LinearLayout


def eliminate(columns: Iterable[int], tag_bits: int) -> tuple[dict[int, int], int]:
    """Gaussian elimination of the columns, low columns first: (pivots by their highest bit, mask of free columns).

    Column i carries the tag `1 << i` in its low `tag_bits` bits: a reduced column says which columns it is the sum of.

    >>> eliminate([0b01, 0b11, 0b10], 3)[1]  # the third is the sum of the first two
    4
    """
    pivots: dict[int, int] = {}
    free = 0
    for index, column in enumerate(columns):
        value = column << tag_bits | 1 << index
        while (height := value.bit_length()) > tag_bits:
            if (pivot := pivots.get(height)) is None:
                pivots[height] = value
                break
            value ^= pivot
        else:
            free |= 1 << index
    return pivots, free


def solve(wanted: Columns, given: "LinearLayout", same: frozenset[str]) -> Columns | None:
    """The columns of the smallest X with `given * X = wanted`, or None; ins in `same` go to themselves."""
    place = packer((name, 1 << len(columns)) for name, columns in given.columns)
    if same:
        left = [(index, c) for n, cs in given.columns for index, c in enumerate(cs, place[n]) if n not in same]
        columns, spots = [c for _, c in left], [1 << index for index, _ in left]
        pivots, tags = eliminate(columns, len(columns))[0], len(columns)
    else:
        pivots, tags, spots = given.eliminated[0], given.total_in_bits, None
    mask = (1 << tags) - 1
    answer = []
    for name, columns in wanted:
        if name in same:
            answer.append((name, tuple(1 << (place[name] + bit) for bit in range(len(columns)))))
            continue
        found = []
        for column in columns:
            value = column << tags
            while (height := value.bit_length()) > tags:
                if (pivot := pivots.get(height)) is None:
                    return None
                value ^= pivot
            value &= mask
            found.append(value if spots is None else combine(spots, value))
        answer.append((name, tuple(found)))
    return tuple(answer)


def divide(whole: "LinearLayout", tile: "LinearLayout") -> tuple[Columns, Outs] | None:
    """What is left of `whole` when `tile` is divided out: the C of `tile * C`.

    The bases of the tile come first in every in and use the low bits of every out. Nothing else may use those bits.
    """
    if not has_room_for(whole, tile):
        return None
    inside = dict(tile.outs)
    outs = tuple((name, size // inside.get(name, 1)) for name, size in whole.outs)
    place, moves, back, taken = packer(outs), [], [], 0
    for name, size in outs:
        shift = whole.fields[name][0]
        back.append(((shift + log2(inside.get(name, 1)), size - 1), place[name]))
        if name in inside:
            moves.append((tile.fields[name], shift))
            taken |= (inside[name] - 1) << shift
    columns = []
    for name, mine in whole.columns:
        theirs = tile.by_in.get(name, ())
        part, rest = mine[: len(theirs)], mine[len(theirs) :]
        if part != tuple([repack(column, moves) for column in theirs]) or any(column & taken for column in rest):
            return None
        columns.append((name, tuple([repack(column, back) for column in rest])))
    return tuple(columns), outs


def has_room_for(whole: "LinearLayout", tile: "LinearLayout") -> bool:
    """Whether every in and out of `tile` is in `whole`, and not smaller there."""
    ins = all(name in whole.by_in and len(c) <= len(whole.by_in[name]) for name, c in tile.columns)
    return ins and all(name in whole.fields and size <= whole.out_size(name) for name, size in tile.outs)
