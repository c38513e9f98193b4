"""The layouts that have a name: the encodings after the `#` of `tensor<16x32xf32, #blocked>`.

There are two families. A *distributed* encoding says which register of which lane of which warp holds each element:

    Blocked       a grid of threads, each with a small tile:   Blocked((1, 4), (4, 8), (4, 1), (1, 0))
    NvidiaMma     the accumulator of tensor cores              NvidiaMma(2, 0, (2, 2), (16, 8))
    DotOperand    an operand of tensor cores                   DotOperand(0, NvidiaMma(...), 2)
    Slice         its parent with a dimension reduced away     Slice(1, Blocked(...))
    Linear        anything else, as a matrix over bits         Linear(LinearLayout(...))

A *shared* encoding gives the offset of each element in shared memory: `SwizzledShared`, `NvmmaShared`, `SharedLinear`,
`PaddedShared`. AMD's are in `amd.py`. Code outside of `layouts/` uses the properties of the two families, or the linear
layout of an encoding (`to_linear.py`, `queries.py`), and not its kind; code that depends on the kind says why.

Everything here is a frozen, hashable value; the constructor checks it. The meaning of an encoding for a tensor of a
given shape is a `LinearLayout`: `to_linear.py`. Its text follows from its fields, in their order: `size_per_thread` is
written `sizePerThread`, or as `spelled` says, and omitted if it has its default (`ir/encodings.py`).

>>> Blocked((1, 4), (4, 8), (4, 1), (1, 0)).rank
2
>>> Slice(1, Blocked((1, 4), (4, 8), (4, 1), (1, 0))).rank
1
>>> Blocked((1, 3), (4, 8), (4, 1), (1, 0))
Traceback (most recent call last):
    ...
tilework.layouts.linear.LayoutError: Every element in sizePerThread must be a power of two.
"""

from collections.abc import Callable, Sequence
from dataclasses import field, fields, replace
from importlib import import_module
from math import prod
from typing import Any, ClassVar, TypeAlias

from tilework.layouts.linear import LayoutError, LinearLayout
from tilework.light_dataclass import light_dataclass

Ints: TypeAlias = tuple[int, ...]
Bases: TypeAlias = tuple[Ints, ...]
"""One vector per bit; as `CGALayout = [[1, 0], [0, 0]]`: block 1 is a row further, block 2 holds a copy."""

DISTRIBUTED_INS = ("register", "lane", "warp", "block")
SHARED_INS = ("offset", "block")


def is_power_of_two(value: int) -> bool:
    """
    >>> [n for n in range(10) if is_power_of_two(n)]
    [1, 2, 4, 8]
    """
    return value > 0 and value & (value - 1) == 0


def spelled(
    name: str = "", *, outside: bool = False, implied: Callable[[dict[str, Any]], Any] | None = None
) -> dict[str, Any]:
    """The text form of a field: its name, whether it comes before the braces, and its value if it is omitted.

    Without `implied` that is the default of the field, for which it is omitted. `implied` computes it from the other
    fields, by their names here.
    """
    return {"name": name, "outside": outside, "implied": implied}


class Encoding:
    """The base of all layouts with a name; their hash is cached, because they are keys of every table.

    ``class Blocked(Distributed, name="blocked", alias="blocked")`` is written `#ttg.blocked<{...}>`, and `#blocked`
    where the text of a module gives it a name.
    """

    NAME: ClassVar[str] = ""
    ALIAS: ClassVar[str | None] = None

    def _repr_html_(self) -> str:
        """The picture that a notebook shows."""
        return import_module("tilework.layouts.picture").encoding_html(self)

    def __init_subclass__(cls, name: str = "", alias: str | None = None) -> None:
        cls.NAME, cls.ALIAS = name, alias
        cls.__hash__ = Encoding.__hash__  # else the decorator replaces it
        if name:
            KINDS.append(cls)

    @property
    def rank(self) -> int:
        """The number of dimensions: the length of the order of the elements."""
        return len(self.order)  # type: ignore[attr-defined]

    @property
    def cga_bases(self) -> Bases:
        """The distribution of the tensor over the blocks of a cluster: a basis for each bit of the block, counted in
        parts."""
        return self.cga  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        memo = vars(self).get("_hash")
        if memo is None:
            values = tuple(getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]
            memo = vars(self)["_hash"] = hash((type(self).__name__, values))
        return memo

    def __getstate__(self) -> dict[str, object]:
        """Return the state without the cached hash: hashes of strings differ between processes."""
        return {name: value for name, value in vars(self).items() if name != "_hash"}


KINDS: list[type[Encoding]] = []
"""Every kind of encoding."""


class Distributed(Encoding):
    """An encoding that says which register of which lane of which warp holds each element."""

    is_accumulator: ClassVar[bool] = False  # the results of tensor cores
    is_for_memory: ClassVar[bool] = False  # threads have contiguous elements, for loads and stores

    @property
    def operand_index(self) -> int | None:
        """0 or 1 for operand A or B of a dot."""
        return None

    @property
    def root(self) -> "Distributed":
        """The layout from which this is derived by slicing, or as an operand."""
        return self

    def with_root(self, root: "Distributed") -> "Distributed":
        """Return the same slices or operand of another layout."""
        return root

    def root_dim(self, dim: int) -> int:
        """Return the dimension of the root that `dim` is."""
        return dim

    def on_warps(self, count: int, columns: int) -> "Distributed | None":
        """Return a layout of the same kind for fewer warps, its instructions at most `columns` wide; None if there is
        none."""
        return None

    def check_operand_parent(self, op_idx: int, parent: "Distributed") -> None:
        """Refuse an operand of `parent` beside a result in this layout."""
        if parent != self:
            raise LayoutError("Incompatible parent encoding")

    def check_operand(self, op_idx: int, k_width: int) -> None:
        """Refuse an operand that a dot with a result in this layout does not have."""
        raise LayoutError("ttg.dot_op unexpected parent layout: a layout that dots have is wanted")

    def before_slice(self, dim: int) -> "Distributed | None":
        """Return the layout of which this is the slice along `dim`, if it is one."""
        return None

    @property
    def description(self) -> str:
        """A description for remarks."""
        return "a layout of its own"


class Accumulator(Distributed):
    """The layout of the result of a matrix instruction on a grid of warps."""

    is_accumulator = True
    warps_per_cta: Ints

    @property
    def rank(self) -> int:
        return len(self.warps_per_cta)

    @property
    def description(self) -> str:
        return "the result of a dot"


class Shared(Encoding):
    """An encoding that gives the offset of each element in shared memory."""

    is_matrix_tile: ClassVar[bool] = False  # the layout that TMA writes and tensor cores read
    intervals: tuple[tuple[int, int], ...]
    intervals = ()  # of padding: (elements, unused elements after them)

    @property
    def alignment(self) -> int:
        """The alignment of the base address in bytes."""
        return 16

    @property
    def buffer_alignment(self) -> int:
        """The alignment of each of several buffers in bytes."""
        return 1

    def without_leading(self, count: int) -> "Shared | None":
        """Return the encoding of blocks without their first `count` dimensions, of one element each; None if TMA copies
        no such blocks."""
        return None

    @property
    def swizzle(self) -> int:
        """The bytes of a row in which the hardware permutes pieces; 0 if it does not."""
        return 0

    def unswizzled(self) -> "Shared":
        """Return the encoding without an xor that software applies to the pieces of a row."""
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


@light_dataclass
class Blocked(Distributed, name="blocked", alias="blocked"):
    """Threads in a grid, each holding a tile of `size_per_thread` elements; repeated until the tensor is covered.

    `order` lists the dimensions from the fastest: `(1, 0)` is row-major. `threads_per_warp` and `warps_per_cta` are
    grids too; a grid larger than the tensor holds copies.
    """

    is_for_memory = True

    size_per_thread: Ints
    threads_per_warp: Ints
    warps_per_cta: Ints = field(metadata=spelled("warpsPerCTA"))
    order: Ints
    cga: Bases = field(default=(), metadata=spelled("CGALayout"))

    def __post_init__(self) -> None:
        lengths = {len(self.size_per_thread), len(self.threads_per_warp), len(self.warps_per_cta), len(self.order)}
        if len(lengths) != 1:
            raise LayoutError("sizePerThread, threadsPerWarp, warpsPerCTA, and order must all have the same rank.")
        if not self.order:
            raise LayoutError("a blocked layout has at least one dimension")
        check_powers_of_two("sizePerThread", self.size_per_thread)
        check_powers_of_two("threadsPerWarp", self.threads_per_warp)
        check_powers_of_two("warpsPerCTA", self.warps_per_cta)
        check_order(self.order)
        check_cga(self.cga, self.rank)

    def on_warps(self, count: int, columns: int) -> "Blocked":
        warps = list(self.warps_per_cta)
        while prod(warps) > count:
            warps[warps.index(max(warps))] //= 2
        return replace(self, warps_per_cta=tuple(warps))

    def check_operand(self, op_idx: int, k_width: int) -> None:
        if k_width != 0:
            raise LayoutError("ttg.dot_op kWidth parameter is not supported when the parent is a blocked layout")

    @property
    def description(self) -> str:
        return f"rows of {max(self.size_per_thread)} elements per thread"


@light_dataclass
class NvidiaMma(Accumulator, name="nvidia_mma", alias="mma"):
    """The accumulator of a tensor-core instruction: major 2 is `mma.sync`, major 3 is `wgmma`.

    `instr_shape` is `(16, 8)` for version 2 (`(1, 16, 8)` in a batch), `(16, N, K)` for version 3, whose first four
    warps are one warp group.
    """

    version_major: int
    version_minor: int
    warps_per_cta: Ints = field(metadata=spelled("warpsPerCTA"))
    cga: Bases = field(default=(), kw_only=True, metadata=spelled("CGALayout"))
    instr_shape: Ints

    def __post_init__(self) -> None:
        if self.version_major not in (2, 3):
            raise LayoutError(f"versionMajor = {self.version_major}: tensor cores of version 2 and 3 are known")
        if self.rank not in (2, 3):
            raise LayoutError(f"nvidia_mma has rank 2 or 3, not {self.rank}")
        if len(self.instr_shape) not in ((2, 3) if self.version_major == 2 else (3,)):
            raise LayoutError(f"instrShape = {list(self.instr_shape)} does not fit version {self.version_major}")
        check_powers_of_two("warpsPerCTA", self.warps_per_cta)
        check_cga(self.cga, self.rank)

    def check_operand(self, op_idx: int, k_width: int) -> None:
        if k_width == 0:
            raise LayoutError("ttg.dot_op kWidth parameter is mandatory for Ampere or Hopper MMA parent")
        if op_idx != 0 and self.is_hopper:
            raise LayoutError(
                "ttg.dot_op opIdx parameter must be 0 for Hopper MMA parent, since Hopper WGMMA only "
                "allows first operand to be in registers"
            )
        check_powers_of_two("kWidth", (k_width,))

    def on_warps(self, count: int, columns: int) -> "NvidiaMma | None":
        if not self.is_hopper:
            return None
        rows, width, depth = self.instr_shape
        return replace(self, warps_per_cta=(count, 1), instr_shape=(rows, min(width, columns), depth))

    @property
    def is_ampere(self) -> bool:
        """True for the accumulator of `mma.sync`."""
        return self.version_major == 2

    @property
    def is_hopper(self) -> bool:
        """True for the accumulator of `wgmma`."""
        return self.version_major == 3


@light_dataclass
class Slice(Distributed, name="slice"):
    """`parent` without its dimension `dim`: the layout of a tensor in `parent` after a reduction along `dim`."""

    dim: int
    parent: Distributed

    def __post_init__(self) -> None:
        if self.parent.rank < 2:
            raise LayoutError(f"parent layout must have at least rank >= 2, got {self.parent.rank}")
        if not 0 <= self.dim < self.parent.rank:
            raise LayoutError(f"slice dim={self.dim} must be less than the parent rank={self.parent.rank}")

    @property
    def rank(self) -> int:
        return self.parent.rank - 1

    @property
    def cga_bases(self) -> Bases:
        return tuple(basis[: self.dim] + basis[self.dim + 1 :] for basis in self.parent.cga_bases)

    @property
    def root(self) -> Distributed:
        return self.parent.root

    def with_root(self, root: Distributed) -> Distributed:
        return Slice(self.dim, self.parent.with_root(root))

    def root_dim(self, dim: int) -> int:
        return self.parent.root_dim(dim + (dim >= self.dim))

    def before_slice(self, dim: int) -> Distributed | None:
        return self.parent if dim == self.dim else None

    @property
    def description(self) -> str:
        return f"a reduction along dimension {self.dim}"


@light_dataclass
class DotOperand(Distributed, name="dot_op"):
    """Operand A (`op_idx` 0) or B (1) of a dot whose result is in `parent`.

    `k_width`: the neighbours along K that a thread holds in one register (4 bytes or more); 0 under a blocked parent.
    """

    op_idx: int
    parent: Distributed
    k_width: int = 0

    def __post_init__(self) -> None:
        if self.op_idx not in (0, 1):
            raise LayoutError(f"ttg.dot_op opIdx parameter can be 0 or 1, got: {self.op_idx}")
        self.parent.check_operand(self.op_idx, self.k_width)

    @property
    def rank(self) -> int:
        return self.parent.rank

    @property
    def cga_bases(self) -> Bases:
        k = self.k_dim
        return tuple(basis[:k] + (0,) + basis[k + 1 :] for basis in self.parent.cga_bases)

    @property
    def operand_index(self) -> int:
        return self.op_idx

    @property
    def root(self) -> Distributed:
        return self.parent.root

    def with_root(self, root: Distributed) -> Distributed:
        return DotOperand(self.op_idx, self.parent.with_root(root), self.k_width)

    def root_dim(self, dim: int) -> int:
        return self.parent.root_dim(dim)

    @property
    def description(self) -> str:
        return f"the {'right' if self.op_idx else 'left'} operand of a dot"

    @property
    def k_dim(self) -> int:
        """The dimension that the dot sums over: the last of A, the last but one of B."""
        return self.rank - 1 if self.op_idx == 0 else self.rank - 2


@light_dataclass
class Linear(WrittenAsBases, Distributed, name="linear", alias="linear"):
    """A distributed layout without a name: `layout` maps register, lane, warp, block to `dim0`, `dim1`, ..."""

    layout: LinearLayout

    def __post_init__(self) -> None:
        if self.layout.in_names != DISTRIBUTED_INS:
            raise LayoutError(f"a linear layout maps {list(DISTRIBUTED_INS)}, not {list(self.layout.in_names)}")
        check_dim_names(self.layout)
        for name, vectors in self.layout.bases:
            for vector in vectors:
                if sum(value != 0 for value in vector) > 1:
                    raise LayoutError(
                        "In a distributed layout, each base must move in at most one dimension: "
                        f"the {name} basis {list(vector)} moves in more than one dimension"
                    )
                if any(value & (value - 1) for value in vector):
                    raise LayoutError(f"the {name} basis {list(vector)} is not a power of two")
        bare = self.layout
        for name in DISTRIBUTED_INS:
            bare = bare.remove_zero_bases(name)
        if not bare.is_invertible:
            raise LayoutError("After removing the zero bases the layout must be bijective")


def check_dim_names(layout: LinearLayout) -> None:
    """Refuse outs other than dim0, dim1, ..."""
    if layout.out_names != tuple(f"dim{i}" for i in range(len(layout.outs))):
        raise LayoutError(f"the layout of a tensor gives dim0, dim1, ...; this one gives {list(layout.out_names)}")


@light_dataclass
class SwizzledShared(Shared, name="swizzled_shared", alias="shared"):
    """Rows in shared memory whose pieces of `vec` elements are permuted by an xor that changes every `per_phase` rows.

    Element (row, column) of a row of C columns is at `row*C + ((column//vec) ^ (row//per_phase % max_phase))*vec +
    column % vec`; `order` names the dimensions that play column and row. `max_phase` 1 is plain row-major.
    """

    vec: int
    per_phase: int
    max_phase: int
    order: Ints
    cga: Bases = field(default=(), metadata=spelled("CGALayout"))

    def __post_init__(self) -> None:
        check_powers_of_two("vec, perPhase, maxPhase", (self.vec, self.per_phase, self.max_phase))
        check_order(self.order)
        check_cga(self.cga, self.rank)

    def phase(self, row: int) -> int:
        """Return the value with which pieces of a row are xored; linear in the bits of `row`."""
        return row // self.per_phase % self.max_phase

    def unswizzled(self) -> Shared:
        return replace(self, vec=1, per_phase=1, max_phase=1)

    def without_leading(self, count: int) -> Shared:
        order = tuple(dim - count for dim in self.order if dim >= count)
        return replace(self, order=order, cga=tuple(basis[count:] for basis in self.cga))


@light_dataclass
class NvmmaShared(Shared, name="nvmma_shared", alias="shared"):
    """A matrix as TMA writes it and `wgmma` reads it: 8-row tiles of `swizzling_byte_width` bytes a row, swizzled.

    `transposed`: the first dimension is the contiguous one. Text may omit `element_bit_width`: then it is 0, and the
    layout has no elements.
    """

    is_matrix_tile = True

    swizzling_byte_width: int
    transposed: bool
    element_bit_width: int = 0
    fp4_padded: bool = False
    rank: int = field(  # pyright: ignore[reportIncompatibleVariableOverride, reportIncompatibleMethodOverride]
        default=2, metadata=spelled(implied=lambda known: len(known["cga"][0]) if known["cga"] else 2)
    )
    cga: Bases = field(default=(), metadata=spelled("CGALayout"))

    def __post_init__(self) -> None:
        if self.swizzling_byte_width not in (0, 32, 64, 128):
            raise LayoutError(f"swizzlingByteWidth must be 0, 32, 64, or 128, not {self.swizzling_byte_width}")
        if self.element_bit_width not in (0, 8, 16, 32, 64):
            raise LayoutError(f"elementBitWidth = {self.element_bit_width} must be 8, 16, 32 or 64")
        check_cga(self.cga, self.rank)

    @property
    def vec(self) -> int:
        """Elements in 16 bytes, the unit of the swizzle."""
        if not self.element_bit_width:
            raise LayoutError("this nvmma_shared layout does not say its elementBitWidth")
        return 128 // self.element_bit_width

    @property
    def per_phase(self) -> int:
        """Rows until the xor changes; the hardware repeats it so that 128 bytes have one phase."""
        return 128 // self.swizzling_byte_width if self.swizzling_byte_width else 1

    @property
    def max_phase(self) -> int:
        """Phases until the xor repeats."""
        return self.swizzling_byte_width // 16 if self.swizzling_byte_width else 1

    @property
    def alignment(self) -> int:
        return 128 * self.max_phase

    def without_leading(self, count: int) -> Shared:
        return replace(self, rank=self.rank - count, cga=tuple(basis[count:] for basis in self.cga))

    @property
    def buffer_alignment(self) -> int:
        """TMA may write to each of them."""
        return self.alignment

    @property
    def swizzle(self) -> int:
        return self.swizzling_byte_width


@light_dataclass
class SharedLinear(WrittenAsBases, Shared, name="shared_linear", alias="shared"):
    """An offset in shared memory for each element, without a name: `layout` maps offset, block to `dim0`, ..."""

    layout: LinearLayout
    alignment: int = field(  # pyright: ignore[reportIncompatibleMethodOverride, reportIncompatibleVariableOverride]
        default=16, metadata=spelled(outside=True)
    )

    def __post_init__(self) -> None:
        check_shared_layout("shared_linear", self.layout)
        if not is_power_of_two(self.alignment):
            raise LayoutError(f"alignment = {self.alignment} must be a power of two")


def check_shared_layout(name: str, layout: LinearLayout) -> None:
    """Refuse a layout of shared memory with two offsets for an element, or none."""
    if layout.in_names != SHARED_INS:
        raise LayoutError(f"{name} maps {list(SHARED_INS)}, not {list(layout.in_names)}")
    check_dim_names(layout)
    if not layout.is_surjective:
        raise LayoutError(f"{name} must be surjective: some element has no offset")
    if not layout.remove_zero_bases("block").remove_zero_bases("offset").is_invertible:
        raise LayoutError(f"{name} must be invertible once zero bases are removed")


@light_dataclass
class PaddedShared(WrittenAsBases, Shared, name="padded_shared", alias="shared"):
    """`layout` (offset, block to dims), with `padding` unused elements after every `interval` elements.

    `intervals` holds the pairs (interval, padding): `((16, 4),)` puts offset o at `o + o // 16 * 4`.
    """

    intervals: tuple[tuple[int, int], ...] = field(metadata=spelled(outside=True))
    layout: LinearLayout

    def __post_init__(self) -> None:
        if not self.intervals:
            raise LayoutError("padded_shared must have at least one interval-padding pair")
        for pair in self.intervals:
            check_powers_of_two("an interval and its padding", pair)
        if len({interval for interval, _ in self.intervals}) != len(self.intervals):
            raise LayoutError("padded_shared interval values cannot have duplicates")
        if 0 in self.layout.by_in["offset"]:
            raise LayoutError("Broadcasting in offset dimension is not supported.")
        check_shared_layout("padded_shared", self.layout)
