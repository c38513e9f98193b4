"""Rearranging what a thread holds: the same change made to a layout's register bases and to the list of registers.

>>> layout = LinearLayout({"register": [(4,), (1,), (2,)]}, {"dim0": 8})
>>> sort = ColumnAction((1, 2, 0), "register", 3)
>>> sort.on_layout(layout).bases
(('register', ((1,), (2,), (4,))),)
>>> sort.on_values([0, 4, 1, 5, 2, 6, 3, 7])  # the elements that the eight registers held, now in order
[0, 1, 2, 3, 4, 5, 6, 7]
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from tilework.layouts.errors import LayoutError
from tilework.layouts.linear import LinearLayout
from tilework.layouts.packing import log2

T = TypeVar("T")


@dataclass(frozen=True)
class ColumnAction:
    """New basis i of the in `dim` is old basis `perm[i]`; bases that `perm` leaves out (of `bits`) are dropped."""

    perm: tuple[int, ...]
    dim: str
    bits: int

    @property
    def is_identity(self) -> bool:
        return self.perm == tuple(range(self.bits))

    def on_layout(self, layout: LinearLayout) -> LinearLayout:
        """The layout with its bases rearranged."""
        columns = layout.by_in[self.dim]
        if len(columns) != self.bits:
            raise LayoutError(f"{self.dim} has {len(columns)} bases, this rearranges {self.bits}")
        return layout.replace_in(self.dim, [columns[bit] for bit in self.perm])

    def on_values(self, values: Sequence[T]) -> list[T]:
        """The registers rearranged: the new one at i is the old one at the bits of i, scattered."""
        if len(values) != 1 << self.bits:
            raise LayoutError(f"{len(values)} values, this rearranges {1 << self.bits}")
        places = [0]
        for bit in self.perm:
            places += [place | 1 << bit for place in places]
        return [values[place] for place in places]

    def inverse(self) -> "ColumnAction":
        """The action that undoes a permutation."""
        if len(self.perm) != self.bits:
            raise LayoutError("an action that drops bases cannot be undone")
        back = [0] * self.bits
        for new, old in enumerate(self.perm):
            back[old] = new
        return ColumnAction(tuple(back), self.dim, self.bits)

    def then(self, other: "ColumnAction") -> "ColumnAction":
        """First this, then `other`."""
        if other.bits != len(self.perm) or other.dim != self.dim:
            raise LayoutError("the second action does not fit what the first leaves")
        return ColumnAction(tuple(self.perm[bit] for bit in other.perm), self.dim, self.bits)


def reg_perm_for_divide(layout: LinearLayout, tile: LinearLayout, left: bool = True) -> ColumnAction | None:
    """The order of registers in which `tile` divides `layout`; None if a basis of the tile is not there.

    The register bases of the tile come first (left), or last after they are scaled to the top of every out (right).

    >>> layout = LinearLayout({"register": [(4,), (1,), (2,)]}, {"dim0": 8})
    >>> reg_perm_for_divide(layout, LinearLayout.identity(4, "register", "dim0")).perm
    (1, 2, 0)
    """
    mine, theirs = layout.by_in["register"], tile.by_in.get("register", ())
    wanted = []
    for column in theirs:
        packed = 0
        for (name, _), value in zip(tile.outs, tile.vector(column), strict=True):
            if name not in layout.fields or layout.out_size(name) < tile.out_size(name):
                return None
            scale = 0 if left else log2(layout.out_size(name) // tile.out_size(name))
            packed |= value << (layout.fields[name][0] + scale)
        if packed not in mine:
            return None
        wanted.append(mine.index(packed))
    rest = [bit for bit in range(len(mine)) if bit not in wanted]
    return ColumnAction(tuple(wanted + rest if left else rest + wanted), "register", len(mine))


def remove_broadcasted_regs(layout: LinearLayout) -> ColumnAction:
    """Drops the register bases that are zero: each element once.

    >>> remove_broadcasted_regs(LinearLayout({"register": [(0,), (1,)]}, {"dim0": 2})).perm
    (1,)
    """
    columns = layout.by_in["register"]
    return ColumnAction(tuple(bit for bit, column in enumerate(columns) if column), "register", len(columns))


def broadcast_as(values: Sequence[T], layout: LinearLayout) -> list[T]:
    """Undoes `remove_broadcasted_regs`: the registers of `layout`, copies again where it has them.

    >>> broadcast_as("ab", LinearLayout({"register": [(0,), (1,)]}, {"dim0": 2}))
    ['a', 'a', 'b', 'b']
    """
    places, bit = [0], 0
    for column in layout.by_in["register"]:
        step = 1 << bit if column else 0
        places += [place | step for place in places]
        bit += bool(column)
    if len(values) != 1 << bit:
        raise LayoutError(f"{len(values)} values for a layout with {1 << bit} different registers")
    return [values[place] for place in places]


def reps(layout: LinearLayout, tile: LinearLayout) -> LinearLayout | None:
    """Where the copies of `tile` go in `layout`: like `divide_left`, but other bases may move below the tile's bits.

    The first bases of each in must be the tile's, and no other basis may use a bit that the tile uses. The tile's bases
    are zero in the answer, so that it has as many as `layout`.

    >>> tile = LinearLayout({"lane": [(2,)]}, {"dim0": 4})
    >>> reps(LinearLayout({"lane": [(2,), (1,)]}, {"dim0": 4}), tile).bases
    (('lane', ((0,), (1,))),)
    """
    if not set(tile.out_names) <= set(layout.out_names) or not set(tile.in_names) <= set(layout.in_names):
        return None
    shifts = {name: layout.fields[name][0] for name in tile.out_names}
    placed: dict[str, tuple[int, ...]] = {}
    used = 0
    for name, columns in tile.columns:
        moved = []
        for column in columns:
            vector = zip(tile.out_names, tile.vector(column), strict=True)
            moved.append(sum(value << shifts[out] for out, value in vector))
            used |= moved[-1]
        placed[name] = tuple(moved)
    answer = []
    for name, columns in layout.columns:
        front = placed.get(name, ())
        rest = columns[len(front) :]
        if columns[: len(front)] != front or any(column & used for column in rest):
            return None
        answer.append((name, (0,) * len(front) + rest))
    return LinearLayout.packed(tuple(answer), layout.outs)
