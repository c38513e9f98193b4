"""What all encodings are, and what can be asked of each: the two families of `encodings.py`.

A *distributed* encoding says which register of which lane of which warp holds each element; a *shared* one, at which
offset of shared memory it lies. Code outside of `layouts/` asks these questions, or the linear layout of an encoding
(`to_linear.py`, `queries.py`), and not which kind it is; where the kind itself is the point, it says why.
"""

from collections.abc import Callable, Sequence
from dataclasses import fields
from importlib import import_module
from typing import Any, ClassVar, TypeAlias

from tilework.layouts.errors import LayoutError
from tilework.layouts.linear import LinearLayout

Ints: TypeAlias = tuple[int, ...]
Bases: TypeAlias = tuple[Ints, ...]
"""One vector per bit; as `CGALayout = [[1, 0], [0, 0]]`: block 1 is a row further, block 2 holds a copy."""

DISTRIBUTED_INS = ("register", "lane", "warp", "block")
SHARED_INS = ("offset", "block")


def is_power_of_two(value: int) -> bool:
    """1, 2, 4, 8, ...

    >>> [n for n in range(10) if is_power_of_two(n)]
    [1, 2, 4, 8]
    """
    return value > 0 and value & (value - 1) == 0


def spelled(
    name: str = "", *, outside: bool = False, implied: Callable[[dict[str, Any]], Any] | None = None
) -> dict[str, Any]:
    """How a field is written: its name, whether before or behind the braces, and what it is where it is not written.

    Without `implied` that is the default of the field, with which it is left out. `implied` computes it from the other
    fields, by their names here.
    """
    return {"name": name, "outside": outside, "implied": implied}


class Encoding:
    """What all layouts with a name share; their hash is computed once, as they are keys of every table.

    ``class Blocked(Distributed, name="blocked", alias="blocked")`` is written `#ttg.blocked<{...}>`, and `#blocked`
    where the text of a module gives it a name.
    """

    NAME: ClassVar[str] = ""
    ALIAS: ClassVar[str | None] = None

    def _repr_html_(self) -> str:
        """What a notebook shows; the picture is drawn with what is built on layouts."""
        return import_module("tilework.layouts.notebook").encoding_html(self)

    def __init_subclass__(cls, name: str = "", alias: str | None = None) -> None:
        cls.NAME, cls.ALIAS = name, alias
        cls.__hash__ = Encoding.__hash__  # else the decorator replaces it
        if name:
            KINDS.append(cls)

    @property
    def rank(self) -> int:
        """The number of dimensions: as many as the order of the elements has."""
        return len(self.order)  # type: ignore[attr-defined]

    @property
    def cga_bases(self) -> Bases:
        """How the blocks of a cluster share the tensor: a basis for each bit of the block, counted in parts."""
        return self.cga  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        memo = vars(self).get("_hash")
        if memo is None:
            values = tuple(getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]
            memo = vars(self)["_hash"] = hash((type(self).__name__, values))
        return memo

    def __getstate__(self) -> dict[str, object]:
        """Hashes of strings differ between processes, so the cached one stays here."""
        return {name: value for name, value in vars(self).items() if name != "_hash"}


KINDS: list[type[Encoding]] = []
"""Every kind of encoding."""


class Distributed(Encoding):
    """Says which register of which lane of which warp holds each element."""

    is_accumulator: ClassVar[bool] = False  # tensor cores give their results so
    is_for_memory: ClassVar[bool] = False  # threads have neighbours, as loads and stores want it

    @property
    def operand_index(self) -> int | None:
        """0 or 1 for operand A or B of a dot."""
        return None

    @property
    def root(self) -> "Distributed":
        """The layout that this is made from by slicing, or as an operand."""
        return self

    def with_root(self, root: "Distributed") -> "Distributed":
        """The same slices or operand of another layout."""
        return root

    def root_dim(self, dim: int) -> int:
        """Which dimension of the root `dim` is."""
        return dim

    def on_warps(self, count: int, columns: int) -> "Distributed | None":
        """A layout of the same kind for fewer warps, its instructions at most so many `columns` wide; None: no such one."""
        return None

    def check_operand(self, op_idx: int, k_width: int) -> None:
        """Refuse an operand that a dot with a result in this layout does not have."""
        raise LayoutError("ttg.dot_op unexpected parent layout: a layout that dots have is wanted")

    def before_slice(self, dim: int) -> "Distributed | None":
        """The layout of which this is the slice along `dim`, if it is one."""
        return None

    @property
    def in_words(self) -> str:
        """For remarks to people."""
        return "a layout of its own"


class Accumulator(Distributed):
    """How a matrix instruction gives its result to a grid of warps."""

    is_accumulator = True
    warps_per_cta: Ints

    @property
    def rank(self) -> int:
        return len(self.warps_per_cta)

    @property
    def in_words(self) -> str:
        return "the result of a dot"


class Shared(Encoding):
    """Says at which offset of shared memory each element lies."""

    is_matrix_tile: ClassVar[bool] = False  # TMA writes a matrix so, and tensor cores read it
    intervals: tuple[tuple[int, int], ...]
    intervals = ()  # of padding: (elements, unused elements behind them)

    @property
    def alignment(self) -> int:
        """Bytes that the base address must be a multiple of."""
        return 16

    @property
    def buffer_alignment(self) -> int:
        """Bytes that each of several buffers must start at a multiple of."""
        return 1

    def without_leading(self, count: int) -> "Shared | None":
        """For blocks without their first `count` dimensions, of one element each; None if TMA copies no such blocks."""
        return None

    @property
    def swizzle(self) -> int:
        """The bytes of a row in which the hardware permutes pieces; 0 if it does not."""
        return 0

    def unswizzled(self) -> "Shared":
        """The encoding without an xor that software applies to the pieces of a row."""
        return self


class WrittenAsBases(Encoding):
    """An encoding whose text is the bases of its `layout`."""

    layout: LinearLayout

    @property
    def rank(self) -> int:
        return len(self.layout.outs)

    @property
    def cga_bases(self) -> Bases:
        vectors = dict(self.layout.bases)["block"]
        least = [min((v[dim] for v in vectors if v[dim]), default=1) for dim in range(self.rank)]
        return tuple(tuple(value // unit for value, unit in zip(v, least, strict=True)) for v in vectors)


def check_powers_of_two(name: str, values: Sequence[int]) -> None:
    """Refuse a field with an entry that is not a power of two."""
    if not all(map(is_power_of_two, values)):
        raise LayoutError(f"Every element in {name} must be a power of two.")


def check_order(order: Sequence[int]) -> None:
    """Refuse an order that does not name every dimension once."""
    if sorted(order) != list(range(len(order))):
        raise LayoutError(f"order must be a permutation of 0..(rank-1), but was {list(order)}")


def check_cga(cga: Bases, rank: int) -> None:
    """Refuse bases of another rank."""
    for basis in cga:
        if len(basis) != rank:
            raise LayoutError(f"CGALayout has the basis {list(basis)}, but the layout has rank {rank}")
