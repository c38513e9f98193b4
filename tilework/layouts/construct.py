"""Encodings chosen by rule: the default of a tensor, and those of operands in shared memory for dots and TMA.

>>> default_blocked((128, 32), (1, 1), (1, 0), num_warps=4)
Blocked(size_per_thread=(1, 1), threads_per_warp=(1, 32), warps_per_cta=(4, 1), order=(1, 0), cga=())
>>> nvmma_shared((128, 64), (1, 0), bits=16).swizzling_byte_width
128
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod

from tilework.layouts.encodings import Bases, Blocked, DotOperand, NvidiaMma, NvmmaShared, SwizzledShared
from tilework.layouts.linear import log2
from tilework.layouts.to_linear import MEMO, split_blocks

Ints = tuple[int, ...]
Swizzle = tuple[int, int, int]  # elements of a piece, rows of a phase, phases


def clamp(value: int, low: int, high: int) -> int:
    return max(low, min(value, high))


def cga_from(ctas_per_cga: Sequence[int], cta_split_num: Sequence[int], cta_order: Sequence[int]) -> Bases:
    """Return the bases of a grid of blocks, of which `cta_split_num` hold different parts and the others copies.

    >>> cga_from((4, 1), (2, 1), (1, 0))
    ((1, 0), (0, 0))
    """
    rank, bases = len(cta_order), []
    for dim in cta_order:
        split = cta_split_num[dim]
        bases += [tuple(1 << bit if d == dim else 0 for d in range(rank)) for bit in range(log2(split))]
        bases += [(0,) * rank] * log2(ctas_per_cga[dim] // split)
    return tuple(bases)


@lru_cache(maxsize=MEMO)
def default_blocked(
    shape: Ints,
    size_per_thread: Ints | None = None,
    order: Ints | None = None,
    num_warps: int = 4,
    threads_per_warp: int = 32,
    num_ctas: int = 1,
    cga: Bases | None = None,
) -> Blocked:
    """Lanes along the fastest dimension, then the next; warps likewise; the slowest takes the rest.

    Blocks share the tensor as `cga` says; by default `num_ctas` of them do, along the slowest dimension.

    >>> default_blocked((64, 2, 32)).warps_per_cta
    (2, 2, 1)
    """
    rank = len(shape)
    held = size_per_thread or (1,) * rank
    order = tuple(reversed(range(rank))) if order is None else order
    cga = split_between_ctas(shape, held, order, num_ctas) if cga is None else cga
    part = [1 << bits for bits in split_blocks(cga, shape)[1]]
    threads, lanes, warps = num_warps * threads_per_warp, threads_per_warp, num_warps
    lane_grid, warp_grid = [1] * rank, [1] * rank
    for dim in order[:-1]:
        here = clamp(threads, 1, max(1, part[dim] // held[dim]))
        lane_grid[dim] = clamp(here, 1, lanes)
        warp_grid[dim] = clamp(here // lane_grid[dim], 1, warps)
        warps //= warp_grid[dim]
        lanes //= lane_grid[dim]
        threads //= here
    last = order[-1]
    lane_grid[last] = threads_per_warp // prod(lane_grid)
    warp_grid[last] = num_warps // prod(warp_grid)
    return Blocked(held, tuple(lane_grid), tuple(warp_grid), order, cga)


def split_between_ctas(shape: Ints, held: Ints, order: Ints, num_ctas: int) -> Bases:
    """Distribute the blocks of a cluster along the slowest dimension first, as far as it is large enough; the rest hold
    copies.

    >>> split_between_ctas((2,), (1,), (0,), 4)
    ((1,), (0,))
    """
    if num_ctas == 1:
        return ()
    grid, left = [1] * len(shape), num_ctas
    for dim in reversed(order):
        grid[dim] = clamp(left, 1, max(1, shape[dim] // held[dim]))
        left //= grid[dim]
    split = tuple(grid)
    grid[order[0]] *= left
    return cga_from(grid, split, order)


def dot_shared(
    dot: DotOperand, shape: Ints, order: Ints, bits: int, need_trans: bool = False, cga: Bases = ()
) -> SwizzledShared:
    """The layout in shared memory from which threads read a dot operand without bank conflicts.

    >>> dot_shared(DotOperand(0, NvidiaMma(2, 0, (2, 2), (16, 8)), 2), (128, 64), (1, 0), 16)
    SwizzledShared(vec=8, per_phase=1, max_phase=8, order=(1, 0), cga=())
    """
    rule = SWIZZLES.get(type(dot.parent))
    vec, per_phase, max_phase = (1, 1, 1) if rule is None else rule(dot, shape, order, bits, need_trans, cga)
    return SwizzledShared(vec, per_phase, max_phase, order, cga)


def matrix_swizzle(dot: DotOperand, shape: Ints, order: Ints, bits: int, need_trans: bool, cga: Bases) -> Swizzle:
    """For `ldmatrix`: the 8 rows that one tile reads must be in 8 different groups of four banks.

    A row of K elements shorter than 128 bytes repeats every `per_phase` rows.
    """
    row = 1 << split_blocks(cga, shape)[1][order[0]]
    per_phase = max(1024 // (bits * row), 1)
    vec, stride = 4 * dot.k_width, 8
    if need_trans:
        vec, stride = stride, vec
    if order[0] != dot.k_dim:
        vec, stride = stride, vec
    max_phase = max(min(stride, 1024 // (vec * bits)), 1)
    return vec, per_phase, max(max_phase // per_phase, 1)


SWIZZLES: dict[type, Callable[..., Swizzle]] = {NvidiaMma: matrix_swizzle}
"""The swizzle of operands in shared memory, by the layout of the result."""


def nvmma_shared(shape: Ints, order: Ints, bits: int, cga: Bases = ()) -> NvmmaShared:
    """The widest swizzle that divides a row; none for fewer than 8 rows.

    >>> nvmma_shared((64, 32), (1, 0), 16).swizzling_byte_width, nvmma_shared((4, 64), (1, 0), 16).swizzling_byte_width
    (64, 0)
    """
    part = [1 << count for count in split_blocks(cga, shape)[1]]
    rank = len(shape)
    row = part[order[0]] * bits // 8
    swizzle = next((width for width in (128, 64, 32) if row % width == 0), 0)
    if rank < 2 or prod(part) // part[order[0]] < 8:
        swizzle = 0
    return NvmmaShared(swizzle, rank > 1 and order[0] == 0, bits, False, rank, cga)
