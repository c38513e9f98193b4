"""How to move a tensor from one distributed layout to another, as cheaply as the two allow.

`comp`, the place in the source of the element at each place of the destination, decides. What it leaves alone, starting
from the slowest level (block, then warp, lane, register), costs nothing:

    nothing left        "none"       the layouts agree
    registers           "register"   each thread renames its registers
    lanes, registers    "shuffle"    the lanes of a warp exchange registers, if one exchange is enough
                        "warp"       ... else through shared memory, and only the warp has to wait
    warps               "shared"     through shared memory, with a barrier
    blocks              "cluster"    through the shared memory of other blocks

>>> a = LinearLayout({"register": [(0, 1)], "lane": [(0, 2), (1, 0)], "warp": [(2, 0)], "block": []}, ("dim0", "dim1"))
>>> d = LinearLayout({"register": [(1, 0)], "lane": [(0, 1), (0, 2)], "warp": [(2, 0)], "block": []}, ("dim0", "dim1"))
>>> conversion(a, d).kind
'shuffle'

How the trip through shared memory is arranged is in `swizzle.py`.
"""

from dataclasses import dataclass
from functools import lru_cache

from tilework.layouts.linear import LinearLayout
from tilework.layouts.swizzle import SharedPlan, shared_plan
from tilework.layouts.to_linear import MEMO

__all__ = [
    "Conversion",
    "SharedPlan",
    "conversion",
    "minimal_conversion",
    "needs_shared",
    "scratch_bytes",
    "shared_plan",
    "shuffle_permutation",
]

SLOWEST_FIRST = ("block", "warp", "lane", "register")


@dataclass(frozen=True)
class Conversion:
    """`kind` as in the module; `comp` maps places of the destination to places of the source, trivial levels dropped.

    `exchanges` counts the register bits that swap with lane bits, for "shuffle" and "warp".
    """

    kind: str
    comp: LinearLayout
    exchanges: int = 0


@lru_cache(maxsize=MEMO)
def conversion(src: LinearLayout, dst: LinearLayout) -> Conversion:
    """The cheapest way from `src` to `dst`, two layouts of the same tensor."""
    comp = minimal_conversion(src, dst)
    if "block" in comp.by_in:
        return Conversion("cluster", comp)
    if "warp" in comp.by_in:
        return Conversion("shared", comp)
    if "lane" in comp.by_in:
        permutation = shuffle_permutation(src, dst)
        exchanges = -1 if permutation is None else count_exchanges(permutation, register_bits(src, dst))
        if 0 <= exchanges < 2:
            return Conversion("shuffle", comp, exchanges)
        return Conversion("warp" if can_sync_in_warp(src, dst) else "shared", comp, max(exchanges, 0))
    return Conversion("register" if comp.by_in else "none", comp)


@lru_cache(maxsize=MEMO)
def minimal_conversion(src: LinearLayout, dst: LinearLayout) -> LinearLayout:
    """Where each place of `dst` finds its element in `src`, without the slow levels that stay as they are."""
    comp = dst.invert_and_compose(src)
    for level in SLOWEST_FIRST:
        if level not in comp.by_in:
            continue
        rest = comp.quotient([level])
        if rest is None:
            break
        comp = rest
    return comp


def needs_shared(src: LinearLayout, dst: LinearLayout) -> bool:
    """Whether the elements go through shared memory."""
    return conversion(src, dst).kind in ("warp", "shared", "cluster")


def can_sync_in_warp(src: LinearLayout, dst: LinearLayout) -> bool:
    """Whether each warp reads only what it wrote itself: no level above lanes moves, and no warp holds copies."""
    return not src.free_variable_masks["warp"] and not dst.free_variable_masks["warp"]


# Shuffles


def register_bits(src: LinearLayout, dst: LinearLayout) -> int:
    """The register bits that a shuffle works on: those of the side that has more, copies left out."""
    return max(len([column for column in side.by_in["register"] if column]) for side in (src, dst))


def shuffle_permutation(src: LinearLayout, dst: LinearLayout) -> tuple[int, ...] | None:
    """Where each bit of a place in `src` is in `dst`: the register bits, then the lane bits. None if bits are mixed.

    A register bit that holds copies is not counted. A lane bit that holds copies on both sides stays where it is; other
    bits without an element take what is free, in order.
    """
    bits = register_bits(src, dst)
    lanes = max(len(side.by_in["lane"]) for side in (src, dst))
    mine, theirs = (padded_columns(side, bits, lanes) for side in (src, dst))
    goes: list[int | None] = [None] * len(mine)
    free = set(range(len(theirs)))
    for place, column in enumerate(mine):
        if column:
            if theirs.count(column) != 1 or mine.count(column) != 1:
                return None
            goes[place] = theirs.index(column)
        elif not theirs[place]:
            goes[place] = place
        if (to := goes[place]) is not None:
            free.discard(to)
    left = iter(sorted(free))
    return tuple(next(left) if to is None else to for to in goes)


def padded_columns(side: LinearLayout, bits: int, lanes: int) -> list[int]:
    """The register columns without copies and the lane columns, both filled up with zeros."""
    registers = [column for column in side.by_in["register"] if column]
    own = side.by_in["lane"]
    return [*registers, *[0] * (bits - len(registers)), *own, *[0] * (lanes - len(own))]


def only_exchange(comp: LinearLayout) -> tuple[int, int] | None:
    """The register bit and the lane bit that change places, if nothing else moves."""
    names, bases = comp.out_names, dict(comp.bases)
    if names not in (("register", "lane"), ("lane", "register")) or set(bases) != set(names):
        return None
    at = names.index("lane")
    moved = {
        (name, bit): (vector[1 - at], vector[at])
        for name, vectors in bases.items()
        for bit, vector in enumerate(vectors)
        if (vector[1 - at], vector[at]) != ((1 << bit, 0) if name == "register" else (0, 1 << bit))
    }
    if len(moved) != 2 or {name for name, _ in moved} != set(names):
        return None
    register, lane = (next(bit for name, bit in moved if name == kind) for kind in ("register", "lane"))
    is_exchange = moved["register", register] == (0, 1 << lane) and moved["lane", lane] == (1 << register, 0)
    return (register, lane) if is_exchange else None


def count_exchanges(permutation: tuple[int, ...], bits: int) -> int:
    """The register bits that become lane bits: each needs one exchange between lanes.

    >>> count_exchanges((1, 2, 0), 1)  # r0 -> l0 -> l1 -> r0
    1
    """
    return sum(permutation[place] >= bits for place in range(bits))


# Shared memory


@lru_cache(maxsize=MEMO)
def scratch_bytes(
    src: LinearLayout, dst: LinearLayout, bits: int, loads_matrices: bool = True, stores_matrices: bool = True
) -> int:
    """The bytes of shared memory that the conversion needs for elements of `bits` bits: 0 if it needs none.

    Pointers have 64 bits; elements smaller than a byte are stored as bytes. Each block of a cluster has room for its
    own part (Triton gives every block room for the whole tensor).
    """
    way = conversion(src, dst).kind
    if way not in ("warp", "shared", "cluster"):
        return 0
    if way == "cluster":
        return (1 << (src.total_out_bits - len([c for c in src.by_in["block"] if c]))) * max(8, bits) // 8
    return shared_plan(src, dst, bits, loads_matrices, stores_matrices).bytes
