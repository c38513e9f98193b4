"""Linear layouts: a map from hardware locations to coordinates that is linear over bits.

A location is a few named integers (`register`, `lane`, `warp`, `block`; or `offset`), a coordinate is a few others
(`dim0`, `dim1`). The map is linear over bits: the image of `a ^ b` is the xor of the images. So it is enough to know
the image of each power of two, its *basis*:

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

A zero basis is a copy: the location that differs only in that bit holds the same element. Composing layouts, inverting
them and dividing a tile out of one is linear algebra on a matrix of some twenty bits.

Each basis is packed in one integer, the first out in the lowest bits, so that xor is one operation and reshaping the
outs is none. With outs dim0 of size 4 and dim1 of size 8, the coordinate (3, 5) is packed as `3 | 5 << 2`:

>>> shifts = packer((("dim0", 4), ("dim1", 8)))
>>> 3 << shifts["dim0"] | 5 << shifts["dim1"]
23

Sizes are powers of two. The order of ins and outs matters to flattening and reshaping. A matrix over bits is a list of
columns, each an integer. Solving `given * X = wanted` is elimination: reduce each wanted column with the pivots of
`given`, and record which columns were used.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import TypeAlias

from tilework.light_dataclass import light_dataclass
from tilework.process.forks import cached_property


class LayoutError(ValueError):
    """A layout that does not exist, or that an operation cannot produce; the message says which and why."""


Vectors: TypeAlias = Sequence[Sequence[int]]
Columns: TypeAlias = tuple[tuple[str, tuple[int, ...]], ...]
Outs: TypeAlias = tuple[tuple[str, int], ...]
Named: TypeAlias = Mapping[str, int] | Sequence[tuple[str, int]]


def log2(size: int) -> int:
    """Return the bits of a power of two.

    >>> log2(32)
    5
    """
    if size < 1 or size & (size - 1):
        raise LayoutError(f"{size} is not a power of two")
    return size.bit_length() - 1


def pairs(named: Named) -> Outs:
    """Return a mapping or a list of pairs as a tuple of pairs."""
    return tuple(dict(named).items())


def pack(vector: Sequence[int], outs: Outs, in_name: str) -> int:
    """Pack one vector, checked.

    >>> pack((3, 5), (("dim0", 4), ("dim1", 8)), "lane")
    23
    """
    if len(vector) != len(outs):
        raise LayoutError(f"the {in_name} basis {list(vector)} does not have one integer for each of {list(outs)}")
    packed = shift = 0
    for value, (out, size) in zip(vector, outs, strict=True):
        if not 0 <= value < size:
            raise LayoutError(f"the {in_name} basis {list(vector)} does not fit {out} of size {size}")
        packed |= value << shift
        shift += log2(size)
    return packed


def sized(outs: Named | Sequence[str], bases: Iterable[tuple[str, Vectors]]) -> Outs:
    """Return the name and size of each out; names alone get the smallest size that holds every basis.

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
    """Return the shift of each out in a packed basis."""
    found, shift = {}, 0
    for name, size in outs:
        found[name] = shift
        shift += size.bit_length() - 1
    return found


def repack(column: int, moves: Iterable[tuple[tuple[int, int], int]]) -> int:
    """Move fields: each ((shift, mask), new shift)."""
    packed = 0
    for (shift, mask), new in moves:
        packed |= (column >> shift & mask) << new
    return packed


def combine(columns: Sequence[int], selector: int) -> int:
    """Return the xor of the columns that the bits of `selector` select.

    >>> combine((1, 2, 4), 0b101)
    5
    """
    packed = bit = 0
    while selector:
        if selector & 1:
            packed ^= columns[bit]
        selector >>= 1
        bit += 1
    return packed


def merge(first: Sequence[str], second: Sequence[str]) -> list[str]:
    """Merge both lists of names into one that keeps the order of each.

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
    """Return one basis per line, then the outs."""
    lines = []
    for name, vectors in bases:
        for bit, vector in enumerate(vectors):
            lines.append(f" {' ' if bit else '-'} {name}={1 << bit} -> ({', '.join(map(str, vector))})")
        if not vectors:
            lines.append(f" - {name} is a size 1 dimension")
    lines.append(f"where out dims are: [{', '.join(f'{name} (size {size})' for name, size in outs)}]")
    return "\n".join(lines)


def eliminate(columns: Iterable[int], tag_bits: int) -> tuple[dict[int, int], int]:
    """Gaussian elimination of the columns, low columns first: (pivots by their highest bit, mask of free columns).

    Column i carries the tag `1 << i` in its low `tag_bits` bits, so that a reduced column records its summands.

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
    shifts = packer((name, 1 << len(columns)) for name, columns in given.columns)
    if same:
        left = [(index, c) for n, cs in given.columns for index, c in enumerate(cs, shifts[n]) if n not in same]
        columns, spots = [c for _, c in left], [1 << index for index, _ in left]
        pivots, tags = eliminate(columns, len(columns))[0], len(columns)
    else:
        pivots, tags, spots = given.eliminated[0], given.total_in_bits, None
    mask = (1 << tags) - 1
    answer = []
    for name, columns in wanted:
        if name in same:
            answer.append((name, tuple(1 << (shifts[name] + bit) for bit in range(len(columns)))))
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
    """Divide `tile` out of `whole`: return the C of `tile * C`.

    The bases of the tile come first in every in and use the low bits of every out. Nothing else may use those bits.
    """
    if not all(name in whole.by_in for name in tile.in_names):
        return None
    if not all(name in whole.fields and size <= whole.out_size(name) for name, size in tile.outs):
        return None
    inside = dict(tile.outs)
    outs = tuple((name, size // inside.get(name, 1)) for name, size in whole.outs)
    shifts, moves, back, taken = packer(outs), [], [], 0
    for name, size in outs:
        shift = whole.fields[name][0]
        back.append(((shift + log2(inside.get(name, 1)), size - 1), shifts[name]))
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


@light_dataclass
class LinearLayout:
    """A linear map; see the module. `columns` are the packed bases of each in, `outs` the name and size of each out."""

    columns: Columns
    outs: Outs

    def __init__(
        self, bases: Mapping[str, Vectors] | Iterable[tuple[str, Vectors]], outs: Named | Sequence[str]
    ) -> None:
        """Build from a vector per basis. Outs given as names only get the smallest size that holds every basis."""
        listed = tuple(dict(bases).items())
        known = sized(outs, listed)
        packed = ((name, tuple(pack(vector, known, name) for vector in vectors)) for name, vectors in listed)
        vars(self)["columns"] = tuple(packed)
        vars(self)["outs"] = known

    @classmethod
    def packed(cls, columns: Columns, outs: Outs) -> "LinearLayout":
        """Build from packed bases, unchecked: the result of every operation."""
        self = object.__new__(cls)
        vars(self)["columns"] = columns
        vars(self)["outs"] = outs
        return self

    def __hash__(self) -> int:
        if (memo := vars(self).get("_hash")) is None:
            memo = vars(self)["_hash"] = hash((self.columns, self.outs))
        return memo

    def __getstate__(self) -> dict[str, object]:
        """Return the state without cached values: hashes differ between processes."""
        return {"columns": self.columns, "outs": self.outs}

    # Constructors

    @classmethod
    def identity(cls, size: int, in_name: str, out: str) -> "LinearLayout":
        """Location i is coordinate i.

        >>> LinearLayout.identity(4, "register", "dim0").bases
        (('register', ((1,), (2,))),)
        """
        bits = log2(size)
        return cls.packed(((in_name, tuple(1 << bit for bit in range(bits))),), ((out, size),))

    @classmethod
    def zeros(cls, size: int, in_name: str, out: str, out_size: int = 1) -> "LinearLayout":
        """Return the layout that maps each of `size` inputs to coordinate 0."""
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
        """The field of each out in a packed basis: (shift, mask after shifting)."""
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
        """Return a packed coordinate as one integer per out."""
        return tuple(packed >> shift & mask for shift, mask in self.fields.values())

    def basis(self, in_name: str, bit: int) -> tuple[int, ...]:
        """Return the image of `1 << bit` of an in."""
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
        """The rank of the matrix: log2 of the number of coordinates that are reached."""
        return len(self.eliminated[0])

    @property
    def is_surjective(self) -> bool:
        """True if every coordinate is reached."""
        return self.rank == self.total_out_bits

    @property
    def is_injective(self) -> bool:
        """True if no coordinate is reached twice."""
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
        """The number of neighbours of the first in that are neighbours of the first out, aligned, whatever the other
        ins are.

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

    def apply(self, location: Mapping[str, int] | None = None, /, **more: int) -> dict[str, int]:
        """Return the coordinate of a location; ins that are not given are 0."""
        given = {**(location or {}), **more}
        if unknown := given.keys() - self.by_in.keys():
            raise LayoutError(f"the layout has no {sorted(unknown)}: its ins are {list(self.in_names)}")
        packed = 0
        for name, value in given.items():
            packed ^= combine(self.by_in[name], value)
        return dict(zip(self.out_names, self.vector(packed), strict=True))

    def images(self, in_name: str | None = None) -> list[int]:
        """Return the packed coordinate of every location, counted through all ins (the first fastest) or through one.

        >>> LinearLayout({"lane": [(1,), (3,)]}, {"dim0": 4}).images()
        [0, 1, 3, 2]
        """
        found = [0]
        for column in self.flat_columns if in_name is None else self.by_in[in_name]:
            found += [image ^ column for image in found]
        return found

    # Combining

    def __mul__(self, other: "LinearLayout") -> "LinearLayout":
        """Return the product: `self` is a tile, `other` arranges the tiles.

        >>> tile = LinearLayout.identity(4, "register", "dim0") * LinearLayout.identity(8, "lane", "dim0")
        >>> tile.bases
        (('register', ((1,), (2,))), ('lane', ((4,), (8,), (16,))))
        """
        mine, theirs = dict(self.outs), dict(other.outs)
        names = merge(self.out_names, other.out_names)
        outs = tuple((name, mine.get(name, 1) * theirs.get(name, 1)) for name in names)
        shifts = packer(outs)
        low = [(self.fields[name], shifts[name]) for name in self.out_names]
        high = [(other.fields[name], shifts[name] + log2(mine.get(name, 1))) for name in other.out_names]
        columns = []
        for name in merge(self.in_names, other.in_names):
            first = (repack(column, low) for column in self.by_in.get(name, ()))
            second = (repack(column, high) for column in other.by_in.get(name, ()))
            columns.append((name, (*first, *second)))
        return LinearLayout.packed(tuple(columns), outs)

    def compose(self, outer: "LinearLayout") -> "LinearLayout":
        """Return the map from x to outer(self(x)); the ins of `outer` are the outs of self."""
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
        """Apply `change` to every packed basis."""
        columns = tuple((name, tuple(map(change, columns))) for name, columns in self.columns)
        return LinearLayout.packed(columns, outs)

    # Renaming, reordering, cutting

    def transpose_outs(self, names: Sequence[str]) -> "LinearLayout":
        """Return the same outs in another order."""
        if self.out_names == tuple(names):
            return self
        if sorted(names) != sorted(self.out_names):
            raise LayoutError(f"{list(names)} are not the outs {list(self.out_names)}")
        return self.select_outs(names)

    def select_outs(self, names: Sequence[str]) -> "LinearLayout":
        outs = tuple((name, self.out_size(name)) for name in names)
        shifts = packer(outs)
        moves = [(self.fields[name], shifts[name]) for name in names]
        return self.map_columns(lambda column: repack(column, moves), outs)

    def reshape_outs(self, outs: Named) -> "LinearLayout":
        """Return the same coordinates, counted differently: flatten (first out is the most minor), then split."""
        sizes = pairs(outs)
        if sum(log2(size) for _, size in sizes) != self.total_out_bits:
            raise LayoutError(f"cannot cut {1 << self.total_out_bits} coordinates into {dict(sizes)}")
        return LinearLayout.packed(self.columns, sizes)

    def flatten_outs(self, name: str = "out") -> "LinearLayout":
        return LinearLayout.packed(self.columns, ((name, 1 << self.total_out_bits),))

    def rename_outs(self, names: Sequence[str]) -> "LinearLayout":
        """Return the same outs under other names."""
        outs = tuple((name, size) for name, (_, size) in zip(names, self.outs, strict=True))
        return LinearLayout.packed(self.columns, outs)

    def sublayout(self, ins: Iterable[str], outs: Iterable[str]) -> "LinearLayout":
        """Return only these ins (the others are 0) and outs, in their order."""
        wanted, kept = set(ins), set(outs)
        columns = tuple((name, column) for name, column in self.columns if name in wanted)
        chosen = LinearLayout.packed(columns, self.outs)
        left = [name for name in self.out_names if name in kept]
        return chosen if len(left) == len(self.outs) else chosen.select_outs(left)

    def out_mask(self, outs: Iterable[str]) -> int:
        """Return the bits of these outs in a packed basis."""
        found = 0
        for name in outs:
            shift, mask = self.fields[name]
            found |= mask << shift
        return found

    def remove_zero_bases(self, in_name: str) -> "LinearLayout":
        """Remove the copies along one in."""
        return self.replace_in(in_name, tuple(column for column in self.by_in[in_name] if column))

    def replace_in(self, in_name: str, columns: Iterable[int]) -> "LinearLayout":
        """Return the layout with other packed bases for one in."""
        new = tuple(columns)
        return LinearLayout.packed(tuple((n, new if n == in_name else c) for n, c in self.columns), self.outs)

    def resize_out(self, out: str, size: int) -> "LinearLayout":
        """Truncate an out to its low bits, or widen it."""
        outs = tuple((name, size if name == out else old) for name, old in self.outs)
        shifts = packer(outs)
        moves = []
        for name, new in outs:
            shift, mask = self.fields[name]
            moves.append(((shift, min(mask, new - 1)), shifts[name]))
        return self.map_columns(lambda column: repack(column, moves), outs)

    def widen(self, outs: Outs) -> "LinearLayout":
        """Widen to at least these outs, so that packed bases can be compared."""
        layout = self
        for name, size in outs:
            if layout.out_size(name) > size:
                raise LayoutError(f"{name} has {layout.out_size(name)} coordinates here, only {size} there")
            layout = layout.resize_out(name, size)
        return layout

    # Dividing and inverting

    def divide_left(self, tile: "LinearLayout") -> "LinearLayout | None":
        """Return the C with `self == tile * C`, if self is such a product; C has all ins and outs of self.

        >>> tile = LinearLayout.identity(4, "register", "dim0")
        >>> (tile * LinearLayout.identity(8, "lane", "dim0")).divide_left(tile).bases
        (('register', ()), ('lane', ((1,), (2,), (4,))))
        """
        divided = divide(self, tile)
        return None if divided is None else LinearLayout.packed(*divided)

    def is_trivial_over(self, names: Iterable[str]) -> bool:
        """Return True if each named in is mapped to the out of the same name unchanged, and nothing else is."""
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
        """Remove the ins and outs over which self is trivial; None if it is not."""
        gone = set(names)
        if not self.is_trivial_over(gone):
            return None
        return self.sublayout(set(self.in_names) - gone, set(self.out_names) - gone)

    def invert_and_compose(self, other: "LinearLayout") -> "LinearLayout":
        """Return the C with `other(C(x)) == self(x)`: the location in `other` of the element at location x of self.

        If `other` holds copies the smallest location is taken (free variables are 0), except for an in that both have
        with the same bases: it goes to itself, so that copies are not moved.

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
            raise LayoutError("the second layout does not contain every element of the first")
        return LinearLayout.packed(solved, other.in_sizes)

    def invert(self) -> "LinearLayout":
        """Return the map from coordinates to locations; self must be invertible."""
        if not self.is_invertible:
            raise LayoutError("only a layout with one location for every coordinate has an inverse")
        return self.pseudoinvert()

    def pseudoinvert(self) -> "LinearLayout":
        """Return the map from coordinates to the smallest of their locations; self must be surjective."""
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
        """The picture that a notebook shows."""
        return import_module("tilework.layouts.picture").layout_html(self)

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
