"""How `wgmma` finds a matrix in shared memory: 64 bits that say where it starts and how its pieces lie.

    bits 0-13    start >> 4            bits 32-45   stride byte offset >> 4 ("SBO")
    bits 16-29   leading byte offset   bits 62-63   swizzle: 0 none, 1 128 bytes, 2 64 bytes, 3 32 bytes
                 >> 4 ("LBO")

The unit is 8 rows of `span` bytes (16 without a swizzle). In a *K-major* matrix a row is a piece along K and the 8 rows are
8 of M or N; in an *MN-major* one it is the other way round, which only 16-bit elements may be. LBO and SBO are the steps
from unit to unit in the two directions, and which is which depends on the form:

              K-major, swizzled   K-major, none   MN-major, swizzled   MN-major, none
    SBO       8 more of M/N       8 more of M/N   8 more of K          8 more of M/N
    LBO       not used            16 more bytes   span more of M/N     8 more of K

The swizzle moves 16-byte pieces by an xor of address bits, which is its own inverse. So a form is not taken from the name of
an encoding, but recognised: the offsets of the linear layout, with the xor undone, are compared with each table row.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tilework.layouts.packing import log2

SPANS = (128, 64, 32)
MODE = {0: 0, 128: 1, 64: 2, 32: 3}
UNIT = 16  # bytes: what a swizzle moves, and what descriptors count in
ROWS = 8


class Form(NamedTuple):
    """A form that descriptors have, with its steps in bytes."""

    span: int  # 0 without a swizzle
    is_k_major: bool
    leading: int
    stride: int

    @property
    def bits(self) -> int:
        """The descriptor without its start."""
        return self.leading // UNIT << 16 | self.stride // UNIT << 32 | MODE[self.span] << 62


def unswizzled(offset: int, span: int) -> int:
    """The offset in bytes before (or after) the xor of a swizzle.

    >>> unswizzled(0x80, 128), unswizzled(0x90, 128), unswizzled(0x90, 0)
    (144, 128, 144)
    """
    return offset ^ (offset >> 3 & (span // UNIT - 1) << 4) if span else offset


def doubling(first: int, count: int) -> list[int]:
    """`count` powers of two times `first`."""
    return [first << bit for bit in range(count)]


def form_of(rows: Sequence[int], depth: Sequence[int], bytes: int) -> Form | None:
    """The form of a matrix with these offsets (in bytes) of each bit of its number in M or N, and in K.

    A 64x16 piece of a row-major matrix of f16, 64 wide, with a swizzle of 128 bytes:

    >>> form_of([0x90, 0x120, 0x240, 0x400, 0x800, 0x1000], [2, 4, 8, 16], 2)
    Form(span=128, is_k_major=True, leading=16, stride=1024)
    """
    for span in (*SPANS, 0):
        mine = [unswizzled(offset, span) for offset in rows]
        deep = [unswizzled(offset, span) for offset in depth]
        if (found := k_major(mine, deep, span, bytes)) is not None:
            return found
        if bytes == 2 and (found := mn_major(mine, deep, span)) is not None:
            return found
    return None


def k_major(rows: Sequence[int], depth: Sequence[int], span: int, bytes: int) -> Form | None:
    width = span or UNIT
    stride = rows[3] if len(rows) > 3 else ROWS * width
    if list(rows) != doubling(width, 3) + doubling(stride, len(rows) - 3):
        return None
    if span:
        return Form(span, True, UNIT, stride) if list(depth) == doubling(bytes, len(depth)) else None
    near = log2(UNIT // bytes)
    leading = depth[near]
    return Form(0, True, leading, stride) if list(depth) == [*doubling(bytes, near), leading] else None


def mn_major(rows: Sequence[int], depth: Sequence[int], span: int) -> Form | None:
    """For elements of 2 bytes."""
    near = min(log2((span or UNIT) // 2), len(rows))
    far = rows[near] if len(rows) > near else ROWS * (span or UNIT)
    if list(rows) != doubling(2, near) + doubling(far, len(rows) - near):
        return None
    if list(depth[:3]) != doubling(span or UNIT, 3):
        return None
    return Form(span, False, far, depth[3]) if span else Form(0, False, depth[3], far)
