"""Linear layouts: a map from places to coordinates that xor and bits describe completely.

A place is a few named numbers (`register`, `lane`, `warp`, `block`; or `offset`), a coordinate is a few others (`dim0`,
`dim1`). The map is linear over bits: the image of `a ^ b` is the xor of the images. So it is enough to know where each
power of two goes, its *basis*:

    register=1 -> (0, 1)      register 1 of a lane is one column to the right
    lane=1     -> (0, 2)      the next lane is two columns to the right
    lane=2     -> (1, 0)      ... the one after that a row down
    warp=1     -> (2, 0)

and register 1 of lane 3 is at (0, 1) ^ (0, 2) ^ (1, 0) = (1, 3):

>>> a = LinearLayout({"register": [(0, 1)], "lane": [(0, 2), (1, 0)], "warp": [(2, 0)]}, {"dim0": 4, "dim1": 4})
>>> a.apply(register=1, lane=3)
{'dim0': 1, 'dim1': 3}
>>> a.is_invertible
True

A zero basis is a copy: the place that differs in that bit only holds the same element. Every question about layouts is
linear algebra on a matrix of some twenty bits: composing them, inverting them, dividing a tile out of one.

Each basis is packed in one integer (`packing.py`), the first out in the lowest bits, so that xor is one operation and
reshaping the outs is none. Sizes are powers of two. The order of ins and outs matters to flattening and reshaping.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module

from tilework.layouts.elimination import divide, eliminate, solve
from tilework.layouts.errors import LayoutError
from tilework.layouts.packing import (
    Columns,
    Named,
    Outs,
    Vectors,
    combine,
    describe,
    log2,
    merge,
    pack,
    packer,
    pairs,
    repack,
    sized,
)
from tilework.process.forks import cached_property


@dataclass(frozen=True, init=False, repr=False)
class LinearLayout:
    """See the module. `columns` are the packed bases of each in, `outs` the name and size of each out."""

    columns: Columns
    outs: Outs

    def __init__(
        self, bases: Mapping[str, Vectors] | Iterable[tuple[str, Vectors]], outs: Named | Sequence[str]
    ) -> None:
        """From a vector per basis. Outs given as names only get the smallest size that holds every basis."""
        listed = tuple(dict(bases).items())
        known = sized(outs, listed)
        packed = ((name, tuple(pack(vector, known, name) for vector in vectors)) for name, vectors in listed)
        vars(self)["columns"] = tuple(packed)
        vars(self)["outs"] = known

    @classmethod
    def packed(cls, columns: Columns, outs: Outs) -> "LinearLayout":
        """From packed bases, unchecked: what every operation returns."""
        self = object.__new__(cls)
        vars(self)["columns"] = columns
        vars(self)["outs"] = outs
        return self

    def __hash__(self) -> int:
        if (memo := vars(self).get("_hash")) is None:
            memo = vars(self)["_hash"] = hash((self.columns, self.outs))
        return memo

    def __getstate__(self) -> dict[str, object]:
        """Without what is computed: hashes differ between processes."""
        return {"columns": self.columns, "outs": self.outs}

    # Constructors

    @classmethod
    def identity(cls, size: int, in_name: str, out: str) -> "LinearLayout":
        """Place i is coordinate i.

        >>> LinearLayout.identity(4, "register", "dim0").bases
        (('register', ((1,), (2,))),)
        """
        bits = log2(size)
        return cls.packed(((in_name, tuple(1 << bit for bit in range(bits))),), ((out, size),))

    @classmethod
    def zeros(cls, size: int, in_name: str, out: str, out_size: int = 1) -> "LinearLayout":
        """Every place is coordinate 0: `size` copies."""
        return cls.packed(((in_name, (0,) * log2(size)),), ((out, out_size),))

    # Facts

    @property
    def in_names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.columns)

    @property
    def out_names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.outs)

    @cached_property
    def by_in(self) -> dict[str, tuple[int, ...]]:
        """The packed bases of each in."""
        return dict(self.columns)

    @cached_property
    def fields(self) -> dict[str, tuple[int, int]]:
        """Where each out is in a packed basis: (shift, mask after shifting)."""
        found, shift = {}, 0
        for name, size in self.outs:
            found[name] = (shift, size - 1)
            shift += size.bit_length() - 1
        return found

    @cached_property
    def bases(self) -> tuple[tuple[str, tuple[tuple[int, ...], ...]], ...]:
        """The vector of every basis, by in."""
        return tuple((name, tuple(self.vector(column) for column in columns)) for name, columns in self.columns)

    def vector(self, packed: int) -> tuple[int, ...]:
        """A packed coordinate as one number per out."""
        return tuple(packed >> shift & mask for shift, mask in self.fields.values())

    def basis(self, in_name: str, bit: int) -> tuple[int, ...]:
        """Where `1 << bit` of an in goes."""
        return self.vector(self.by_in[in_name][bit])

    def in_size(self, in_name: str) -> int:
        return 1 << len(self.by_in[in_name])

    def out_size(self, out: str) -> int:
        return self.fields[out][1] + 1

    @property
    def in_sizes(self) -> Outs:
        return tuple((name, 1 << len(columns)) for name, columns in self.columns)

    @property
    def total_in_bits(self) -> int:
        return sum(len(columns) for _, columns in self.columns)

    @property
    def total_out_bits(self) -> int:
        return sum(size.bit_length() - 1 for _, size in self.outs)

    @property
    def flat_columns(self) -> tuple[int, ...]:
        """All packed bases, in the order of the ins."""
        return tuple(column for _, columns in self.columns for column in columns)

    @cached_property
    def eliminated(self) -> tuple[dict[int, int], int]:
        """The pivots of the matrix by their highest bit, and the mask of the columns that are free."""
        return eliminate(self.flat_columns, self.total_in_bits)

    @property
    def rank(self) -> int:
        """The rank of the matrix: log2 of how many coordinates are reached."""
        return len(self.eliminated[0])

    @property
    def is_surjective(self) -> bool:
        """Whether every coordinate is reached."""
        return self.rank == self.total_out_bits

    @property
    def is_injective(self) -> bool:
        """Whether no coordinate is reached twice."""
        return self.rank == self.total_in_bits

    @property
    def is_invertible(self) -> bool:
        return self.is_injective and self.is_surjective

    @property
    def free_variable_masks(self) -> dict[str, int]:
        """The bits of each in that can change without leaving the set of coordinates that the others reach.

        >>> LinearLayout({"lane": [(1,), (0,), (2,)]}, {"dim0": 4}).free_variable_masks
        {'lane': 2}
        """
        free, masks = self.eliminated[1], {}
        for name, columns in self.columns:
            masks[name] = free & ((1 << len(columns)) - 1)
            free >>= len(columns)
        return masks

    @property
    def num_consecutive_in_out(self) -> int:
        """How many neighbours of the first in are neighbours of the first out, aligned, whatever the rest is.

        The largest 2^k whose k bases are 1, 2, 4, ... in the first out, with no other basis touching those bits.
        """
        if not self.columns or not self.outs:
            return 1
        first, bits = self.columns[0][1], log2(self.outs[0][1])
        run = 0
        while run < len(first) and run < bits and first[run] == 1 << run:
            run += 1
        touched = 0
        for column in (*first[run:], *(c for _, columns in self.columns[1:] for c in columns)):
            touched |= column
        while run and touched & ((1 << run) - 1):
            run -= 1  # bases 0..run-1 are unit vectors: dropping one gives its bit to the others
            touched |= 1 << run
        return 1 << run

    # Evaluation

    def apply(self, places: Mapping[str, int] | None = None, /, **more: int) -> dict[str, int]:
        """The coordinate of a place; ins that are not given are 0."""
        given = {**(places or {}), **more}
        if unknown := given.keys() - self.by_in.keys():
            raise LayoutError(f"the layout has no {sorted(unknown)}: its ins are {list(self.in_names)}")
        packed = 0
        for name, place in given.items():
            packed ^= combine(self.by_in[name], place)
        return dict(zip(self.out_names, self.vector(packed), strict=True))

    def images(self, in_name: str | None = None) -> list[int]:
        """The packed coordinate of every place, counted through all ins (the first fastest) or through one.

        >>> LinearLayout({"lane": [(1,), (3,)]}, {"dim0": 4}).images()
        [0, 1, 3, 2]
        """
        found = [0]
        for column in self.flat_columns if in_name is None else self.by_in[in_name]:
            found += [place ^ column for place in found]
        return found

    # Combining

    def __mul__(self, other: "LinearLayout") -> "LinearLayout":
        """The product: `self` is a tile, `other` says where the tiles go.

        >>> tile = LinearLayout.identity(4, "register", "dim0") * LinearLayout.identity(8, "lane", "dim0")
        >>> tile.bases
        (('register', ((1,), (2,))), ('lane', ((4,), (8,), (16,))))
        """
        mine, theirs = dict(self.outs), dict(other.outs)
        names = merge(self.out_names, other.out_names)
        outs = tuple((name, mine.get(name, 1) * theirs.get(name, 1)) for name in names)
        place = packer(outs)
        low = [(self.fields[name], place[name]) for name in self.out_names]
        high = [(other.fields[name], place[name] + log2(mine.get(name, 1))) for name in other.out_names]
        columns = []
        for name in merge(self.in_names, other.in_names):
            first = (repack(column, low) for column in self.by_in.get(name, ()))
            second = (repack(column, high) for column in other.by_in.get(name, ()))
            columns.append((name, (*first, *second)))
        return LinearLayout.packed(tuple(columns), outs)

    def compose(self, outer: "LinearLayout") -> "LinearLayout":
        """x goes to outer(self(x)); the ins of `outer` are the outs of self."""
        if set(outer.in_names) != set(self.out_names):
            raise LayoutError(f"cannot compose: {list(self.out_names)} are not the ins {list(outer.in_names)}")
        for name in self.out_names:
            if self.out_size(name) > outer.in_size(name):
                raise LayoutError(
                    f"cannot compose: {name} has {self.out_size(name)} values, {outer.in_size(name)} known"
                )
        images = [image for name, size in self.outs for image in outer.by_in[name][: log2(size)]]
        return self.map_columns(lambda column: combine(images, column), outer.outs)

    def map_columns(self, change: Callable[[int], int], outs: Outs) -> "LinearLayout":
        """Every packed basis changed."""
        columns = tuple((name, tuple(map(change, columns))) for name, columns in self.columns)
        return LinearLayout.packed(columns, outs)

    # Renaming, reordering, cutting

    def transpose_outs(self, names: Sequence[str]) -> "LinearLayout":
        """The same outs in another order."""
        if self.out_names == tuple(names):
            return self
        if sorted(names) != sorted(self.out_names):
            raise LayoutError(f"{list(names)} are not the outs {list(self.out_names)}")
        return self.select_outs(names)

    def select_outs(self, names: Sequence[str]) -> "LinearLayout":
        outs = tuple((name, self.out_size(name)) for name in names)
        place = packer(outs)
        moves = [(self.fields[name], place[name]) for name in names]
        return self.map_columns(lambda column: repack(column, moves), outs)

    def reshape_outs(self, outs: Named) -> "LinearLayout":
        """The same coordinates, counted differently: flatten (first out is the most minor), then cut."""
        sizes = pairs(outs)
        if sum(log2(size) for _, size in sizes) != self.total_out_bits:
            raise LayoutError(f"cannot cut {1 << self.total_out_bits} coordinates into {dict(sizes)}")
        return LinearLayout.packed(self.columns, sizes)

    def flatten_outs(self, name: str = "out") -> "LinearLayout":
        return LinearLayout.packed(self.columns, ((name, 1 << self.total_out_bits),))

    def rename_outs(self, names: Sequence[str]) -> "LinearLayout":
        """The same outs, called otherwise."""
        outs = tuple((name, size) for name, (_, size) in zip(names, self.outs, strict=True))
        return LinearLayout.packed(self.columns, outs)

    def sublayout(self, ins: Iterable[str], outs: Iterable[str]) -> "LinearLayout":
        """Only these ins (the others are 0) and outs (the others are not asked), in the order they have here."""
        wanted, kept = set(ins), set(outs)
        columns = tuple((name, column) for name, column in self.columns if name in wanted)
        chosen = LinearLayout.packed(columns, self.outs)
        left = [name for name in self.out_names if name in kept]
        return chosen if len(left) == len(self.outs) else chosen.select_outs(left)

    def out_mask(self, outs: Iterable[str]) -> int:
        """The bits of these outs in a packed basis."""
        found = 0
        for name in outs:
            shift, mask = self.fields[name]
            found |= mask << shift
        return found

    def remove_zero_bases(self, in_name: str) -> "LinearLayout":
        """Without the copies along one in."""
        return self.replace_in(in_name, tuple(column for column in self.by_in[in_name] if column))

    def replace_in(self, in_name: str, columns: Iterable[int]) -> "LinearLayout":
        """With other packed bases for one in."""
        new = tuple(columns)
        return LinearLayout.packed(tuple((n, new if n == in_name else c) for n, c in self.columns), self.outs)

    def resize_out(self, out: str, size: int) -> "LinearLayout":
        """An out cut to its low bits, or given room for more."""
        outs = tuple((name, size if name == out else old) for name, old in self.outs)
        place = packer(outs)
        moves = []
        for name, new in outs:
            shift, mask = self.fields[name]
            moves.append(((shift, min(mask, new - 1)), place[name]))
        return self.map_columns(lambda column: repack(column, moves), outs)

    def widen(self, outs: Outs) -> "LinearLayout":
        """With room for at least these outs, so that packed bases can be compared."""
        layout = self
        for name, size in outs:
            if layout.out_size(name) > size:
                raise LayoutError(f"{name} has {layout.out_size(name)} coordinates here, only {size} there")
            layout = layout.resize_out(name, size)
        return layout

    # Dividing and inverting

    def divide_left(self, tile: "LinearLayout") -> "LinearLayout | None":
        """The C with `self == tile * C`, if self is such a product; C has all ins and outs of self.

        >>> tile = LinearLayout.identity(4, "register", "dim0")
        >>> (tile * LinearLayout.identity(8, "lane", "dim0")).divide_left(tile).bases
        (('register', ()), ('lane', ((1,), (2,), (4,))))
        """
        divided = divide(self, tile)
        return None if divided is None else LinearLayout.packed(*divided)

    def is_trivial_over(self, names: Iterable[str]) -> bool:
        """Whether each named in goes to the out of the same name unchanged, and nothing else goes there."""
        for name in names:
            if name not in self.by_in or name not in self.fields:
                return False
            shift, mask = self.fields[name]
            mine = self.by_in[name]
            if len(mine) != mask.bit_length() or any(column != 1 << (shift + i) for i, column in enumerate(mine)):
                return False
            field = mask << shift
            if any(column & field for other, columns in self.columns if other != name for column in columns):
                return False
        return True

    def quotient(self, names: Iterable[str]) -> "LinearLayout | None":
        """Without the ins and outs over which self is trivial; None if it is not."""
        gone = set(names)
        if not self.is_trivial_over(gone):
            return None
        return self.sublayout(set(self.in_names) - gone, set(self.out_names) - gone)

    def invert_and_compose(self, other: "LinearLayout") -> "LinearLayout":
        """The C with `other(C(x)) == self(x)`: the place in `other` of the element that is at place x in self.

        Where `other` holds copies the smallest place is taken (free variables are 0), except for an in that both have
        with the same bases: it goes to itself, so that copies stay where they are.

        >>> mine = LinearLayout({"register": [(1,)], "lane": [(2,)]}, {"dim0": 4})
        >>> theirs = LinearLayout({"register": [(2,)], "lane": [(1,)]}, {"dim0": 4})
        >>> mine.invert_and_compose(theirs).bases
        (('register', ((0, 1),)), ('lane', ((1, 0),)))
        """
        aligned = self if self.outs == other.outs else self.transpose_outs(other.out_names).widen(other.outs)
        same = frozenset(name for name, columns in aligned.columns if other.by_in.get(name) == columns)
        solved = solve(aligned.columns, other, same)
        if solved is None and same:
            solved = solve(aligned.columns, other, frozenset())
        if solved is None:
            raise LayoutError("some element of the first layout is nowhere in the second")
        return LinearLayout.packed(solved, other.in_sizes)

    def invert(self) -> "LinearLayout":
        """From coordinates to places; self must be invertible."""
        if not self.is_invertible:
            raise LayoutError("only a layout with one place for every coordinate has an inverse")
        return self.pseudoinvert()

    def pseudoinvert(self) -> "LinearLayout":
        """From coordinates to the smallest of their places; self must be surjective."""
        columns, bit = [], 0
        for name, size in self.outs:
            columns.append((name, tuple(1 << (bit + i) for i in range(log2(size)))))
            bit += log2(size)
        solved = solve(tuple(columns), self, frozenset())
        if solved is None:
            raise LayoutError("a layout that leaves coordinates out has no inverse")
        return LinearLayout.packed(solved, self.in_sizes)

    # Text

    def _repr_html_(self) -> str:
        """What a notebook shows; the picture is drawn with what is built on layouts."""
        return import_module("tilework.layouts.notebook").layout_html(self)

    def __repr__(self) -> str:
        return f"LinearLayout({dict(self.bases)}, {dict(self.outs)})"

    def __str__(self) -> str:
        """One basis per line.

        >>> print(LinearLayout({"register": [(0, 1), (1, 0)], "block": []}, {"dim0": 2, "dim1": 2}))
         - register=1 -> (0, 1)
           register=2 -> (1, 0)
         - block is a size 1 dimension
        where out dims are: [dim0 (size 2), dim1 (size 2)]
        """
        return describe(self.bases, self.outs)
