"""The meaning of an encoding: the linear layout of a tensor of a given shape, and queries about it.

>>> from tilework.layouts.encodings import Blocked
>>> print(to_linear(Blocked((1, 4), (4, 8), (4, 1), (1, 0)), (16, 32)))
 - register=1 -> (0, 1)
   register=2 -> (0, 2)
 - lane=1 -> (0, 4)
   lane=2 -> (0, 8)
   lane=4 -> (0, 16)
   lane=8 -> (1, 0)
   lane=16 -> (2, 0)
 - warp=1 -> (4, 0)
   warp=2 -> (8, 0)
 - block is a size 1 dimension
where out dims are: [dim0 (size 16), dim1 (size 32)]

A named encoding describes a *tile*: 4 registers of a thread are 4 columns, 8 lanes 32 columns, 4 lanes 4 rows, ...
Then the tile is fitted to the tensor. Where the tensor is larger it is repeated, which takes more registers; where the
tensor is smaller the largest bases become zero, which makes copies:

>>> to_linear(Blocked((1, 4), (4, 8), (4, 1), (1, 0)), (32, 64)).bases[0]
('register', ((0, 1), (0, 2), (0, 32), (16, 0)))
>>> to_linear(Blocked((1, 4), (4, 8), (4, 1), (1, 0)), (16, 16)).bases[1]
('lane', ((0, 4), (0, 8), (0, 0), (1, 0), (2, 0)))

The blocks of a cluster divide the tensor first, as the `cga` bases say; all this then happens inside each block.

Passes query orders, which list dimensions from the fastest, and sizes:

>>> tile = Blocked((1, 4), (4, 8), (4, 1), (1, 0))
>>> order(tile, (64, 64)), elems_per_thread(tile, (64, 64)), contig_per_thread(tile, (64, 64))
((1, 0), (4, 8), (1, 4))
>>> contig_per_thread(NvidiaMma(2, 0, (2, 2), (16, 8)), (64, 64))
(1, 2)
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from tilework.layouts.encodings import (
    Bases,
    Blocked,
    Distributed,
    DotOperand,
    Encoding,
    Linear,
    NvidiaMma,
    NvmmaShared,
    PaddedShared,
    SharedLinear,
    Slice,
    SwizzledShared,
)
from tilework.layouts.linear import LayoutError, LinearLayout, log2

Shape = tuple[int, ...]
TMA_BOX = 256  # the most elements of a dimension that one TMA copy moves
MEMO = 16384


@lru_cache(maxsize=MEMO)
def to_linear(encoding: Encoding, shape: Shape) -> LinearLayout:
    """Return the layout of a tensor of `shape`: ins register, lane, warp, block (or offset, block), outs dim0, dim1,
    ..."""
    if len(shape) != encoding.rank:
        raise LayoutError(f"a layout of rank {encoding.rank} does not fit a tensor of shape {list(shape)}")
    return RULES[type(encoding)](encoding, shape)


def dim_names(rank: int) -> tuple[str, ...]:
    return tuple([f"dim{dim}" for dim in range(rank)])


class Tile:
    """A tile under construction; each basis moves one bit of one dimension, or nothing.

    `order` lists the dimensions in which the tile grows when it is fitted. `id(n, in, dim)` puts n values of an in side
    by side along a dimension; `copies(n, in)` makes them copies.
    """

    def __init__(self, order: Sequence[int], ins: Sequence[str] = ("register", "lane", "warp")) -> None:
        self.order = order
        self.bits = [0] * len(order)
        self.bases: dict[str, list[tuple[int, int] | None]] = {name: [] for name in ins}

    def id(self, size: int, in_name: str, dim: int) -> "Tile":
        first = self.bits[dim]
        self.bits[dim] = last = first + log2(size)
        self.bases[in_name] += [(dim, bit) for bit in range(first, last)]
        return self

    def copies(self, size: int, in_name: str) -> "Tile":
        self.bases[in_name] += [None] * log2(size)
        return self

    def grid(self, in_name: str, shape: Sequence[int], order: Sequence[int], copied: int | None = None) -> "Tile":
        """Append a grid, `order[0]` fastest; copies along the dimension `copied`."""
        for dim in order:
            if dim == copied:
                self.copies(shape[dim], in_name)
            else:
                self.id(shape[dim], in_name, dim)
        return self

    def bits_of(self, in_name: str, bases: Sequence[Sequence[int]], unit: Sequence[int], copied: int = -1) -> "Tile":
        """Append bases that count parts, of 2**unit elements along the last dimensions; along `copied` they are copies.
        A basis moves in one dimension, or in none.
        """
        first = len(self.order) - len(unit)
        for basis in bases:
            moved = [(dim, value) for dim, value in enumerate(basis) if value and dim != copied]
            if not moved:
                self.bases[in_name].append(None)
                continue
            ((dim, value),) = moved
            bit = value.bit_length() - 1 + (unit[dim - first] if dim >= first else 0)
            self.bases[in_name].append((dim, bit))
            self.bits[dim] = max(self.bits[dim], bit + 1)
        return self

    def fit(self, cga: Bases, shape: Shape) -> LinearLayout:
        """Repeat or truncate the tile to the part of `shape` that a block has, then one for each block."""
        blocks, wanted = split_blocks(cga, shape)
        for dim in self.order:
            if self.bits[dim] < wanted[dim]:
                self.id(1 << (wanted[dim] - self.bits[dim]), next(iter(self.bases)), dim)
        shifts = out_shifts(shape)
        columns = [
            (name, tuple([1 << (shifts[b[0]] + b[1]) if b is not None and b[1] < wanted[b[0]] else 0 for b in bases]))
            for name, bases in self.bases.items()
        ]
        columns.append(("block", pack_blocks(blocks, wanted, shifts)))
        return LinearLayout.packed(tuple(columns), tuple(zip(dim_names(len(shape)), shape, strict=True)))


def split_blocks(cga: Bases, shape: Shape) -> tuple[Bases, list[int]]:
    """Return the `cga` bases truncated to the shape, and log2 of the part of each dimension that one block has."""
    bits = [log2(size) for size in shape]
    if not cga:
        return (), bits
    cut = [tuple([value if value < size else 0 for value, size in zip(basis, shape, strict=True)]) for basis in cga]
    wanted = []
    for dim, total in enumerate(bits):
        largest = max(basis[dim] for basis in cut)
        wanted.append(total - largest.bit_length())
    return tuple(cut), wanted


def pack_blocks(blocks: Bases, wanted: Sequence[int], shifts: Sequence[int]) -> tuple[int, ...]:
    """Return the packed basis of each bit of the block: its coordinates count parts of the tensor."""
    return tuple([sum(value << (wanted[dim] + shifts[dim]) for dim, value in enumerate(basis)) for basis in blocks])


# Distributed


def blocked(encoding: Blocked, shape: Shape) -> LinearLayout:
    """Registers, then lanes, then warps, each a grid in `order`."""
    order = encoding.order
    tile = Tile(order).grid("register", encoding.size_per_thread, order)
    tile.grid("lane", encoding.threads_per_warp, order).grid("warp", encoding.warps_per_cta, order)
    return tile.fit(encoding.cga, shape)


def mma_warp_order(encoding: NvidiaMma) -> tuple[int, ...]:
    """Return the dimensions of consecutive warps, first to last: rows of `mma.sync`, columns of a `wgmma` warp
    group."""
    dims = range(encoding.rank)
    return tuple(dims) if encoding.is_hopper else tuple(reversed(dims))


def mma(encoding: NvidiaMma, shape: Shape) -> LinearLayout:
    """Four lanes with two neighbours each are 8 columns, 8 groups of four lanes 8 rows; more registers complete it."""
    inner, outer = encoding.rank - 1, encoding.rank - 2
    rows, columns = encoding.instr_shape[:2] if encoding.is_hopper else encoding.instr_shape[-2:]
    tile = Tile(tuple(reversed(range(encoding.rank))))
    tile.id(2, "register", inner).id(4, "lane", inner).id(8, "lane", outer)
    tile.id(rows // 8, "register", outer).id(columns // 8, "register", inner)
    return tile.grid("warp", encoding.warps_per_cta, mma_warp_order(encoding)).fit(encoding.cga, shape)


def blocked_operand(encoding: DotOperand, shape: Shape) -> LinearLayout:
    """Blocked, with all of K in each thread."""
    parent, k = encoding.parent, encoding.k_dim
    assert isinstance(parent, Blocked)
    order = parent.order
    held = parent.size_per_thread[:k] + (shape[k],) + parent.size_per_thread[k + 1 :]
    tile = Tile(order).grid("register", held, order).grid("lane", parent.threads_per_warp, order, k)
    return tile.grid("warp", parent.warps_per_cta, order, k).fit(encoding.cga_bases, shape)


def mma_operand(encoding: DotOperand, shape: Shape) -> LinearLayout:
    """Four lanes along K with `k_width` neighbours each, twice; 8 groups of four along the other dimension, twice in
    A."""
    parent, k = encoding.parent, encoding.k_dim
    assert isinstance(parent, NvidiaMma)
    other = encoding.rank - 2 if encoding.op_idx == 0 else encoding.rank - 1
    tile = Tile((k, other, *range(encoding.rank - 2)))
    tile.id(encoding.k_width, "register", k).id(4, "lane", k).id(8, "lane", other)
    if encoding.op_idx == 0:
        tile.id(2, "register", other)
    tile.id(2, "register", k)
    return tile.grid("warp", parent.warps_per_cta, mma_warp_order(parent), k).fit(encoding.cga_bases, shape)


def slice_of(encoding: Slice, shape: Shape) -> LinearLayout:
    """The parent on a tensor with one element along the dimension; registers that held the rest of it are gone."""
    dim = encoding.dim
    whole = to_linear(encoding.parent, shape[:dim] + (1,) + shape[dim:])
    outs = tuple(zip(dim_names(len(shape)), shape, strict=True))
    # the dimension has one element, so it has no bits in a packed basis
    return LinearLayout.packed(whole.columns, outs).remove_zero_bases("register")


def linear(encoding: Linear, shape: Shape) -> LinearLayout:
    """The given layout, with more registers for a larger shape; registers outside a smaller one are dropped."""
    layout = encoding.layout
    for dim in first_moved(layout, "register"):
        name = f"dim{dim}"
        size, wanted = layout.out_size(name), shape[dim]
        if wanted > size:
            layout = layout.resize_out(name, wanted)
            shift = layout.fields[name][0]
            more = tuple(1 << (shift + bit) for bit in range(log2(size), log2(wanted)))
            layout = layout.replace_in("register", layout.by_in["register"] + more)
        elif wanted < size:
            outside = layout.out_mask([name]) ^ (wanted - 1) << layout.fields[name][0]
            kept = tuple(column for column in layout.by_in["register"] if not column & outside)
            layout = layout.replace_in("register", kept).resize_out(name, wanted)
    return layout


def first_moved(layout: LinearLayout, in_name: str, default: Iterable[int] | None = None) -> tuple[int, ...]:
    """Return the dimensions in the order in which the bases of an in first move along them; the others after them.

    >>> first_moved(LinearLayout({"register": [(1, 0), (0, 1)]}, {"dim0": 2, "dim1": 2}), "register")
    (0, 1)
    """
    rank = len(layout.outs)
    found = dict.fromkeys(dim for vector in dict(layout.bases)[in_name] for dim, value in enumerate(vector) if value)
    return tuple(dict.fromkeys([*found, *(reversed(range(rank)) if default is None else default)]))


# Shared


def swizzled(encoding: SwizzledShared, shape: Shape) -> LinearLayout:
    """Row-major in `order`; in row bit y the column is xored with `vec` times its phase."""
    blocks, bits = split_blocks(encoding.cga, shape)
    shifts = out_shifts(shape)
    column = encoding.order[0]
    offsets = [1 << (shifts[column] + bit) for bit in range(bits[column])]
    for index, dim in enumerate(encoding.order[1:]):
        for bit in range(bits[dim]):
            phase = encoding.phase(1 << bit) if index == 0 else 0
            moved = (encoding.vec * phase) & ((1 << bits[column]) - 1)
            offsets.append(1 << (shifts[dim] + bit) | moved << shifts[column])
    return shared_layout(offsets, pack_blocks(blocks, bits, shifts), shape)


def nvmma(encoding: NvmmaShared, shape: Shape) -> LinearLayout:
    """Tiles of 8 rows, swizzled; tiles below each other up to a TMA box, then what is left, dimension by dimension."""
    blocks, bits = split_blocks(encoding.cga, shape)
    shifts = out_shifts(shape)
    box = [min(count, log2(TMA_BOX)) for count in bits]
    rank, swizzle = len(shape), encoding.swizzling_byte_width
    column = 0 if encoding.transposed and swizzle else rank - 1
    outer = [dim for dim in reversed(range(rank)) if dim != column]
    if swizzle:
        if not outer:
            raise LayoutError("a swizzled nvmma_shared layout has rank 2 or more")
        box[column] = log2(swizzle * encoding.vec // 16) - encoding.fp4_padded
        height = box[outer[0]] if encoding.transposed else sum(box[dim] for dim in outer)
        if bits[column] < box[column] or height < 3:
            raise LayoutError(
                f"{list(shape)} is smaller than the tile of a {swizzle}-byte swizzle: "
                f"8 rows of {1 << box[column]} elements"
            )
    rows = [1 << (shifts[dim] + bit) for dim in outer for bit in range(box[dim])]
    if column == 0:  # the rows are as many as the last dimension has, but count through the others first
        start = sum(box[dim] for dim in outer[1:])
        rows = rows[start:] + rows[:start]
    offsets = [1 << (shifts[column] + bit) for bit in range(box[column])]
    vec = encoding.vec
    if encoding.fp4_padded:  # 8 bytes of data, then 8 that nothing uses
        vec //= 2
        offsets.insert(log2(vec), 0)
    for bit, row in enumerate(rows):
        phase = ((1 << bit) // encoding.per_phase) % encoding.max_phase if bit < 3 else 0
        offsets.append(row | (vec * phase) << shifts[column])
    for dim in range(rank) if swizzle else reversed(range(rank)):
        offsets += [1 << (shifts[dim] + bit) for bit in range(box[dim], bits[dim])]
    return shared_layout(offsets, pack_blocks(blocks, bits, shifts), shape)


def as_written(encoding: SharedLinear | PaddedShared, shape: Shape) -> LinearLayout:
    """A shared layout given by its bases belongs to one shape."""
    sizes = tuple(size for _, size in encoding.layout.outs)
    if sizes != shape:
        raise LayoutError(f"a shared layout of shape {list(sizes)} does not fit a tensor of shape {list(shape)}")
    return encoding.layout


def out_shifts(shape: Shape) -> list[int]:
    """Return the shift of each dimension in a packed basis."""
    shifts, shift = [], 0
    for size in shape:
        shifts.append(shift)
        shift += log2(size)
    return shifts


def shared_layout(offsets: list[int], blocks: tuple[int, ...], shape: Shape) -> LinearLayout:
    outs = tuple(zip(dim_names(len(shape)), shape, strict=True))
    return LinearLayout.packed((("offset", tuple(offsets)), ("block", blocks)), outs)


OPERAND_RULES: dict[type, Callable[[DotOperand, Shape], LinearLayout]] = {
    Blocked: blocked_operand,
    NvidiaMma: mma_operand,
}
"""Layouts of operands of instructions, by the layout of the result: every warp along K holds the same elements."""

RULES: dict[type, Callable[[Any, Shape], LinearLayout]] = {
    Blocked: blocked,
    NvidiaMma: mma,
    DotOperand: lambda encoding, shape: OPERAND_RULES[type(encoding.parent)](encoding, shape),
    Slice: slice_of,
    Linear: linear,
    SwizzledShared: swizzled,
    NvmmaShared: nvmma,
    SharedLinear: as_written,
    PaddedShared: as_written,
}


# Orders


@lru_cache(maxsize=MEMO)
def order(encoding: Distributed, shape: Shape) -> Shape:
    """Return the dimensions from the fastest, as the registers move.

    >>> order(Blocked((2, 1), (32, 1), (4, 1), (0, 1)), (64, 64))
    (0, 1)
    """
    return first_moved(to_linear(encoding, shape), "register")


def thread_order(encoding: Distributed, shape: Shape) -> Shape:
    """Return the dimensions in which neighbouring lanes are neighbours, first to last; then the others, as registers
    move."""
    return first_moved(to_linear(encoding, shape), "lane", order(encoding, shape))


def warp_order(encoding: Distributed, shape: Shape) -> Shape:
    """Return the dimensions along which neighbouring warps are, first to last; then the others, as registers move."""
    return first_moved(to_linear(encoding, shape), "warp", order(encoding, shape))


@lru_cache(maxsize=MEMO)
def order_for_memory(encoding: Distributed, shape: Shape) -> Shape:
    """Return the order in which a load or store should access memory: the registers', unless only lanes move
    fastest."""
    registers, lanes = order(encoding, shape), thread_order(encoding, shape)
    if registers != lanes and elems_per_thread(encoding, shape)[lanes[0]] == 1:
        return lanes
    return registers


# Sizes


def per_dim(layout: LinearLayout, in_name: str) -> Shape:
    """Return the number of locations of an in along each dimension; copies count for the dimension of the basis before.

    >>> per_dim(LinearLayout({"lane": [(0, 1), (0, 0), (1, 0)]}, {"dim0": 2, "dim1": 2}), "lane")
    (2, 4)
    """
    sizes, last = [1] * len(layout.outs), 0
    for vector in dict(layout.bases)[in_name]:
        last = next((dim for dim, value in enumerate(vector) if value), last)
        sizes[last] *= 2
    return tuple(sizes)


@lru_cache(maxsize=MEMO)
def elems_per_thread(encoding: Distributed, shape: Shape) -> Shape:
    """Return the number of elements of one thread along each dimension, copies included."""
    if isinstance(encoding, Blocked):
        part = shape_per_cta(encoding, shape)
        grid = zip(encoding.size_per_thread, encoding.threads_per_warp, encoding.warps_per_cta, part, strict=True)
        return tuple(size * max(1, whole // (size * lanes * warps)) for size, lanes, warps, whole in grid)
    return per_dim(to_linear(encoding, shape), "register")


def total_elems_per_thread(encoding: Distributed, shape: Shape) -> int:
    """Return the number of registers that one thread has of the tensor."""
    return to_linear(encoding, shape).in_size("register")


@lru_cache(maxsize=MEMO)
def contig_per_thread(encoding: Distributed, shape: Shape) -> Shape:
    """Return the contiguous elements of the first registers of a thread along each dimension."""
    layout = to_linear(encoding, shape)
    vectors = iter(dict(layout.bases)["register"])
    found, vector = [1] * len(shape), next(vectors, None)
    for dim in order(encoding, shape):
        while vector is not None and vector[dim] == found[dim] and sum(map(bool, vector)) == 1:
            found[dim] *= 2
            vector = next(vectors, None)
    return tuple(found)


def machine_of(encoding: Distributed) -> tuple[int, int, int]:
    """Return the warps, the lanes of each and the blocks that hold a tensor, copies included: the same for every shape.

    >>> machine_of(Blocked((1, 4), (4, 8), (4, 1), (1, 0)))
    (4, 32, 1)
    """
    layout = to_linear(encoding, (1,) * encoding.rank)
    return layout.in_size("warp"), layout.in_size("lane"), layout.in_size("block")


# Blocks of a cluster


def shape_per_cta(encoding: Encoding, shape: Shape) -> Shape:
    """Return the part of the tensor that one block holds; leading buffer dimensions of a memdesc are not divided."""
    bases = encoding.cga_bases
    split = [1 << sum(basis[dim] != 0 for basis in bases) for dim in range(encoding.rank)]
    extra = len(shape) - len(split)
    return shape[:extra] + tuple(size // min(size, parts) for size, parts in zip(shape[extra:], split, strict=True))


# Views


@lru_cache(maxsize=MEMO)
def is_expensive_view(src_shape: Shape, src: Distributed, dst_shape: Shape, dst: Distributed) -> bool:
    """Return True if a reshape that may reorder would have to move or copy elements between threads.

    It is a renaming only when each thread holds as many elements after as before, and the same copies.
    """
    before, after = to_linear(src, src_shape), to_linear(dst, dst_shape)
    if before.in_size("register") != after.in_size("register"):
        return True
    return before.free_variable_masks != after.free_variable_masks
