"""Bank conflicts: how often an access to shared memory has to be repeated.

Each of 32 banks serves one 4-byte word per wavefront. An access of a warp takes one wavefront with 4 bytes per lane,
two with 8, four with 16. Lanes that access the same word of a bank share a wavefront; different words need several.

A 32x32 tile of 4-byte elements, row-major, each lane reading a row, four elements at a time: the 8 lanes of a wavefront
access the same banks, so it takes 7 more. With the pieces of a row permuted by an xor, none.

>>> from tilework.layouts.encodings import Blocked, SwizzledShared
>>> from tilework.layouts.to_linear import to_linear
>>> rows = to_linear(Blocked((1, 1), (32, 1), (1, 1), (0, 1)), (32, 32))
>>> bank_conflicts(rows, to_linear(SwizzledShared(1, 1, 1, (1, 0)), (32, 32)), 32)
7
>>> bank_conflicts(rows, to_linear(SwizzledShared(4, 1, 8, (1, 0)), (32, 32)), 32)
0
"""

from collections.abc import Sequence
from functools import lru_cache

from tilework.layouts.conversion import BANK_BITS, VECTOR_BITS, WORD_BITS, span_size
from tilework.layouts.linear import LinearLayout, log2
from tilework.layouts.to_linear import MEMO, first_moved

BANKS = BANK_BITS // WORD_BITS


def offsets_of(registers: LinearLayout, shared: LinearLayout) -> LinearLayout:
    """Return the offset in shared memory (in elements) of each location of a distributed layout."""
    return registers.invert_and_compose(shared).sublayout(registers.in_names, ("offset",))


def vector_bits(offsets: LinearLayout, bits: int) -> int:
    """Return log2 of the vector: the first offsets are registers in some order, and nothing else moves below them."""
    registers = offsets.by_in["register"]
    run = 0
    while run < log2(VECTOR_BITS // bits) and 1 << run in registers:
        run += 1
    others = [column for name, columns in offsets.columns if name != "register" for column in columns]
    while run:
        low = (1 << run) - 1
        rest = [column for column in registers if column not in {1 << bit for bit in range(run)}]
        if not any(column & low for column in (*rest, *others)):
            break
        run -= 1
    return run


@lru_cache(maxsize=MEMO)
def bank_conflicts(registers: LinearLayout, shared: LinearLayout, bits: int) -> int:
    """Return the additional wavefronts per wavefront of a plain load or store: 0 is perfect."""
    bits = max(bits, 8)
    offsets = offsets_of(registers, shared)
    return lane_conflicts(offsets.by_in["lane"], vector_bits(offsets, bits), bits)


def lane_conflicts(lanes: Sequence[int], vector: int, bits: int) -> int:
    """Like `bank_conflicts` for lanes whose offsets (in elements) have these bases, with `2**vector` elements for each
    lane.

    >>> lane_conflicts([1, 2, 4, 8, 16], 0, 32), lane_conflicts([32, 64, 128, 256, 512], 0, 32)
    (0, 31)
    """
    wide = max(0, vector + log2(bits) - log2(WORD_BITS))
    words = [offset * bits // WORD_BITS for offset in lanes[: max(0, len(lanes) - wide)]]
    return (1 << (span_size(words) - span_size(word % BANKS for word in words))) - 1


def warp_access(shared: LinearLayout, along: int, vector: int, fastest: int, bits: int) -> int | None:
    """Return the conflicts if the 32 lanes of a warp follow dimension `along`, each with `vector` elements along
    `fastest`.

    If the dimension has fewer than 32 (pieces of) elements, the other lanes continue along the other dimensions, the
    last first. None if the pieces are not contiguous in memory, or the tensor has not enough of them.

    >>> from tilework.layouts.encodings import SwizzledShared
    >>> from tilework.layouts.to_linear import to_linear
    >>> plain = to_linear(SwizzledShared(1, 1, 1, (1, 0)), (64, 64))
    >>> warp_access(plain, 1, 1, 1, 16), warp_access(plain, 0, 1, 1, 16), warp_access(plain, 0, 8, 1, 16)
    (0, 31, 7)
    """
    inverse = shared.pseudoinvert().sublayout(shared.out_names, ("offset",))
    piece, rank = log2(vector), len(shared.outs)
    if inverse.by_in[f"dim{fastest}"][:piece] != tuple(1 << bit for bit in range(piece)):
        return None
    lanes: list[int] = []
    for dim in (along, *(dim for dim in reversed(range(rank)) if dim != along)):
        lanes += inverse.by_in[f"dim{dim}"][piece if dim == fastest else 0 :]
    if len(lanes) < 5 or any(offset & (vector - 1) for offset in lanes):
        return None
    return lane_conflicts(lanes[:5], piece, bits)


def access_table(shared: LinearLayout, bits: int) -> list[tuple[str, int | None, int | None]]:
    """Return the conflicts of a warp that reads along a row or a column, with one element per lane and 16 bytes per
    lane; None if it cannot.

    >>> from tilework.layouts.encodings import SwizzledShared
    >>> from tilework.layouts.to_linear import to_linear
    >>> access_table(to_linear(SwizzledShared(1, 1, 1, (1, 0)), (64, 64)), 16)
    [('row', 0, 0), ('column', 31, 7)]
    """
    fastest, rank = first_moved(shared, "offset")[0], len(shared.outs)
    single, wide = 1, max(1, VECTOR_BITS // bits)
    ways = [(name, along) for name, along in (("row", rank - 1), ("column", rank - 2)) if along >= 0]
    return [
        (name, warp_access(shared, along, single, fastest, bits), warp_access(shared, along, wide, fastest, bits))
        for name, along in ways
    ]
