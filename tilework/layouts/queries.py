"""Questions about an encoding that passes ask: orders, sizes, what a thread holds.

>>> from tilework.layouts.encodings import Blocked, NvidiaMma
>>> tile = Blocked((1, 4), (4, 8), (4, 1), (1, 0))
>>> order(tile), elems_per_thread(tile, (64, 64)), contig_per_thread(tile, (64, 64))
((1, 0), (4, 8), (1, 4))
>>> accumulator = NvidiaMma(2, 0, (2, 2), (16, 8))
>>> threads_per_warp(accumulator), contig_per_thread(accumulator, (64, 64))
((8, 4), (1, 2))

An order lists dimensions from the fastest.
"""

from functools import lru_cache
from math import prod

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
    Shared,
    SharedLinear,
    Slice,
    SwizzledShared,
)
from tilework.layouts.errors import LayoutError
from tilework.layouts.linear import LinearLayout
from tilework.layouts.to_linear import MEMO, first_moved, mma_warp_order, to_linear

Ints = tuple[int, ...]

# Orders


@lru_cache(maxsize=MEMO)
def order(encoding: Encoding, shape: Ints | None = None) -> Ints:
    """The dimensions from the fastest: as declared, or, for a given shape, as the registers (offsets) move.

    >>> order(Blocked((1, 1), (32, 1), (4, 1), (0, 1)))
    (0, 1)
    """
    if isinstance(encoding, Shared):
        return shared_order(encoding, shape)
    return declared_order(encoding) if shape is None else first_moved(to_linear(encoding, shape), "register")


def declared_order(encoding: Encoding) -> Ints:
    """The order without a shape."""
    rank = encoding.rank
    match encoding:
        case Blocked() | SwizzledShared():
            return encoding.order
        case Slice(dim, parent):
            return without_dim(declared_order(parent), dim)
        case DotOperand():
            other = rank - 2 if encoding.op_idx == 0 else rank - 1
            return (encoding.k_dim, other, *reversed(range(rank - 2)))
        case Linear():
            return first_moved(encoding.layout, "register")
        case _:
            return tuple(reversed(range(rank)))


def shared_order(encoding: Encoding, shape: Ints | None) -> Ints:
    match encoding:
        case SwizzledShared():
            return encoding.order
        case NvmmaShared():
            dims = range(encoding.rank)
            return tuple(dims) if encoding.transposed else tuple(reversed(dims))
        case SharedLinear() | PaddedShared():
            return first_moved(encoding.layout, "offset")
        case _:
            raise AssertionError(f"not a shared encoding: {encoding}")


def without_dim(dims: Ints, gone: int) -> Ints:
    """The dimensions after `gone` is removed and the later ones are renumbered.

    >>> without_dim((2, 0, 1), 1)
    (1, 0)
    """
    return tuple(dim - (dim > gone) for dim in dims if dim != gone)


def thread_order(encoding: Distributed, shape: Ints | None = None) -> Ints:
    """The dimensions in which neighbouring lanes are neighbours, first to last; then the others, as registers move."""
    if shape is not None:
        return first_moved(to_linear(encoding, shape), "lane", order(encoding, shape))
    match encoding:
        case Slice(dim, parent):
            return without_dim(thread_order(parent), dim)
        case Linear():
            return first_moved(encoding.layout, "lane")
        case _:
            return declared_order(encoding)


def warp_order(encoding: Distributed, shape: Ints | None = None) -> Ints:
    """The dimensions along which neighbouring warps are, first to last; then the others, as registers move."""
    if shape is not None:
        return first_moved(to_linear(encoding, shape), "warp", order(encoding, shape))
    match encoding:
        case Blocked():
            return encoding.order
        case Slice(dim, parent):
            return without_dim(warp_order(parent), dim)
        case DotOperand():
            return warp_order(encoding.parent)
        case NvidiaMma():
            return mma_warp_order(encoding)
        case Linear():
            return first_moved(encoding.layout, "warp")
        case _:
            raise AssertionError(f"not a distributed encoding: {encoding}")


@lru_cache(maxsize=MEMO)
def order_for_memory(encoding: Distributed, shape: Ints) -> Ints:
    """The order in which a load or store should walk memory: the registers', unless only lanes move fastest."""
    registers, lanes = order(encoding, shape), thread_order(encoding, shape)
    if registers != lanes and elems_per_thread(encoding, shape)[lanes[0]] == 1:
        return lanes
    return registers


# Sizes


def per_dim(layout: LinearLayout, in_name: str) -> Ints:
    """How many places of an in there are along each dimension; copies count for the dimension of the basis before.

    >>> per_dim(LinearLayout({"lane": [(0, 1), (0, 0), (1, 0)]}, {"dim0": 2, "dim1": 2}), "lane")
    (2, 4)
    """
    sizes, last = [1] * len(layout.outs), 0
    for vector in dict(layout.bases)[in_name]:
        last = next((dim for dim, value in enumerate(vector) if value), last)
        sizes[last] *= 2
    return tuple(sizes)


@lru_cache(maxsize=MEMO)
def elems_per_thread(encoding: Distributed, shape: Ints) -> Ints:
    """How many elements one thread holds along each dimension, copies included."""
    if isinstance(encoding, Blocked):
        part = shape_per_cta(encoding, shape)
        grid = zip(encoding.size_per_thread, encoding.threads_per_warp, encoding.warps_per_cta, part, strict=True)
        return tuple(size * max(1, whole // (size * lanes * warps)) for size, lanes, warps, whole in grid)
    return per_dim(to_linear(encoding, shape), "register")


def total_elems_per_thread(encoding: Distributed, shape: Ints) -> int:
    """How many registers one thread has of the tensor."""
    return to_linear(encoding, shape).in_size("register")


@lru_cache(maxsize=MEMO)
def contig_per_thread(encoding: Distributed, shape: Ints) -> Ints:
    """How many neighbours along each dimension the first registers of a thread are."""
    layout = to_linear(encoding, shape)
    vectors = iter(dict(layout.bases)["register"])
    found, vector = [1] * len(shape), next(vectors, None)
    for dim in order(encoding, shape):
        while vector is not None and vector[dim] == found[dim] and sum(map(bool, vector)) == 1:
            found[dim] *= 2
            vector = next(vectors, None)
    return tuple(found)


def threads_per_warp(encoding: Distributed, shape: Ints | None = None) -> Ints:
    """The lanes of a warp as a grid over the dimensions."""
    if shape is not None:
        return per_dim(to_linear(encoding, shape), "lane")
    match encoding:
        case Blocked():
            return encoding.threads_per_warp
        case NvidiaMma():
            return (1,) * (encoding.rank - 2) + (8, 4)
        case Slice(dim, parent):
            whole = threads_per_warp(parent)
            return whole[:dim] + whole[dim + 1 :]
        case Linear():
            return per_dim(encoding.layout, "lane")
        case _:
            raise LayoutError(f"the lanes of {type(encoding).__name__} are a grid only for a given shape")


def warps_per_cta(encoding: Distributed, shape: Ints | None = None) -> Ints:
    """The warps of a block as a grid over the dimensions."""
    if shape is not None:
        return per_dim(to_linear(encoding, shape), "warp")
    match encoding:
        case Blocked() | NvidiaMma():
            return encoding.warps_per_cta
        case Slice(dim, parent):
            whole = warps_per_cta(parent)
            return whole[:dim] + whole[dim + 1 :]
        case DotOperand():
            whole, k = warps_per_cta(encoding.parent), encoding.k_dim
            return whole[:k] + (1,) + whole[k + 1 :]
        case Linear():
            return per_dim(encoding.layout, "warp")
        case _:
            raise AssertionError(f"not a distributed encoding: {encoding}")


def num_warps(encoding: Distributed) -> int:
    """The warps that hold a tensor in this encoding, copies included."""
    match encoding:
        case Blocked() | NvidiaMma():
            return prod(encoding.warps_per_cta)
        case Slice() | DotOperand():
            return num_warps(encoding.parent)
        case Linear():
            return encoding.layout.in_size("warp")
        case _:
            raise AssertionError(f"not a distributed encoding: {encoding}")


def num_threads_per_warp(encoding: Distributed) -> int:
    """The lanes of a warp, copies included: 32 on NVIDIA GPUs."""
    match encoding:
        case Blocked():
            return prod(encoding.threads_per_warp)
        case NvidiaMma():
            return 32
        case Slice() | DotOperand():
            return num_threads_per_warp(encoding.parent)
        case Linear():
            return encoding.layout.in_size("lane")
        case _:
            raise AssertionError(f"not a distributed encoding: {encoding}")


# Blocks of a cluster


def cga_bases(encoding: Encoding) -> Bases:
    """How the blocks of a cluster share the tensor: a basis for each bit of the block, counted in parts."""
    match encoding:
        case Slice(dim, parent):
            return tuple(basis[:dim] + basis[dim + 1 :] for basis in cga_bases(parent))
        case DotOperand():
            k = encoding.k_dim
            return tuple(basis[:k] + (0,) + basis[k + 1 :] for basis in cga_bases(encoding.parent))
        case Linear() | SharedLinear() | PaddedShared():
            vectors = dict(encoding.layout.bases)["block"]
            least = [min((v[dim] for v in vectors if v[dim]), default=1) for dim in range(encoding.rank)]
            return tuple(tuple(value // unit for value, unit in zip(v, least, strict=True)) for v in vectors)
        case _:
            return encoding.cga  # type: ignore[union-attr]


def num_ctas(encoding: Encoding) -> int:
    """How many blocks hold the tensor together."""
    return 1 << len(cga_bases(encoding))


def cta_split_num(encoding: Encoding) -> Ints:
    """Into how many parts the blocks divide each dimension.

    >>> cta_split_num(Blocked((1, 1), (1, 32), (4, 1), (1, 0), ((1, 0), (0, 0))))
    (2, 1)
    """
    bases = cga_bases(encoding)
    return tuple(1 << sum(basis[dim] != 0 for basis in bases) for dim in range(encoding.rank))


def ctas_per_cga(encoding: Encoding) -> Ints:
    """The blocks as a grid over the dimensions, those with copies included."""
    sizes, last = [1] * encoding.rank, 0
    for basis in cga_bases(encoding):
        last = next((dim for dim, value in enumerate(basis) if value), last)
        sizes[last] *= 2
    return tuple(sizes)


def cta_order(encoding: Encoding) -> Ints:
    """The dimensions along which neighbouring blocks are, first to last."""
    found = [dim for basis in cga_bases(encoding) for dim, value in enumerate(basis) if value]
    return tuple(dict.fromkeys([*found, *reversed(range(encoding.rank))]))


def shape_per_cta(encoding: Encoding, shape: Ints) -> Ints:
    """The part of the tensor that one block holds; leading buffer dimensions of a memdesc are not divided."""
    split = cta_split_num(encoding)
    extra = len(shape) - len(split)
    return shape[:extra] + tuple(size // min(size, parts) for size, parts in zip(shape[extra:], split, strict=True))


# Views


@lru_cache(maxsize=MEMO)
def is_expensive_view(src_shape: Ints, src: Distributed, dst_shape: Ints, dst: Distributed) -> bool:
    """Whether a reshape that may reorder would have to move or copy elements between threads.

    It is a renaming only when each thread holds as many elements after as before, and the same copies.
    """
    before, after = to_linear(src, src_shape), to_linear(dst, dst_shape)
    if before.in_size("register") != after.in_size("register"):
        return True
    return before.free_variable_masks != after.free_variable_masks
