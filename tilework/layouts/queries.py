"""Queries of passes about an encoding: orders, sizes, the elements of a thread.

>>> from tilework.layouts.encodings import Blocked, NvidiaMma
>>> tile = Blocked((1, 4), (4, 8), (4, 1), (1, 0))
>>> order(tile, (64, 64)), elems_per_thread(tile, (64, 64)), contig_per_thread(tile, (64, 64))
((1, 0), (4, 8), (1, 4))
>>> contig_per_thread(NvidiaMma(2, 0, (2, 2), (16, 8)), (64, 64))
(1, 2)

An order lists dimensions from the fastest.
"""

from functools import lru_cache

from tilework.layouts.encodings import Blocked, Distributed, Encoding
from tilework.layouts.linear import LinearLayout
from tilework.layouts.to_linear import MEMO, first_moved, to_linear

Ints = tuple[int, ...]

# Orders


@lru_cache(maxsize=MEMO)
def order(encoding: Distributed, shape: Ints) -> Ints:
    """Return the dimensions from the fastest, as the registers move.

    >>> order(Blocked((2, 1), (32, 1), (4, 1), (0, 1)), (64, 64))
    (0, 1)
    """
    return first_moved(to_linear(encoding, shape), "register")


def thread_order(encoding: Distributed, shape: Ints) -> Ints:
    """Return the dimensions in which neighbouring lanes are neighbours, first to last; then the others, as registers
    move."""
    return first_moved(to_linear(encoding, shape), "lane", order(encoding, shape))


def warp_order(encoding: Distributed, shape: Ints) -> Ints:
    """Return the dimensions along which neighbouring warps are, first to last; then the others, as registers move."""
    return first_moved(to_linear(encoding, shape), "warp", order(encoding, shape))


@lru_cache(maxsize=MEMO)
def order_for_memory(encoding: Distributed, shape: Ints) -> Ints:
    """Return the order in which a load or store should access memory: the registers', unless only lanes move
    fastest."""
    registers, lanes = order(encoding, shape), thread_order(encoding, shape)
    if registers != lanes and elems_per_thread(encoding, shape)[lanes[0]] == 1:
        return lanes
    return registers


# Sizes


def per_dim(layout: LinearLayout, in_name: str) -> Ints:
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
def elems_per_thread(encoding: Distributed, shape: Ints) -> Ints:
    """Return the number of elements of one thread along each dimension, copies included."""
    if isinstance(encoding, Blocked):
        part = shape_per_cta(encoding, shape)
        grid = zip(encoding.size_per_thread, encoding.threads_per_warp, encoding.warps_per_cta, part, strict=True)
        return tuple(size * max(1, whole // (size * lanes * warps)) for size, lanes, warps, whole in grid)
    return per_dim(to_linear(encoding, shape), "register")


def total_elems_per_thread(encoding: Distributed, shape: Ints) -> int:
    """Return the number of registers that one thread has of the tensor."""
    return to_linear(encoding, shape).in_size("register")


@lru_cache(maxsize=MEMO)
def contig_per_thread(encoding: Distributed, shape: Ints) -> Ints:
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


def shape_per_cta(encoding: Encoding, shape: Ints) -> Ints:
    """Return the part of the tensor that one block holds; leading buffer dimensions of a memdesc are not divided."""
    bases = encoding.cga_bases
    split = [1 << sum(basis[dim] != 0 for basis in bases) for dim in range(encoding.rank)]
    extra = len(shape) - len(split)
    return shape[:extra] + tuple(size // min(size, parts) for size, parts in zip(shape[extra:], split, strict=True))


# Views


@lru_cache(maxsize=MEMO)
def is_expensive_view(src_shape: Ints, src: Distributed, dst_shape: Ints, dst: Distributed) -> bool:
    """Return True if a reshape that may reorder would have to move or copy elements between threads.

    It is a renaming only when each thread holds as many elements after as before, and the same copies.
    """
    before, after = to_linear(src, src_shape), to_linear(dst, dst_shape)
    if before.in_size("register") != after.in_size("register"):
        return True
    return before.free_variable_masks != after.free_variable_masks
