"""How the lanes of a wave lie in shared memory, for instructions that write lane after lane behind one place.

    lane l, register r, warp w     at offset P l ^ U(r, w), in elements; P l is within the `size` elements of the wave
    the instruction                writes for lane i at i * width: that is where lane P^-1 (i ^ U) belongs

>>> offsets = LinearLayout({"register": [(1,)], "lane": [(2,), (4 ^ 2,)], "warp": [(8,)]}, ("offset",))
>>> wave_copy(offsets, 2)
WaveCopy(size=8, back=(1, 3))
"""

from typing import NamedTuple

from tilework.layouts.linear import LinearLayout


class WaveCopy(NamedTuple):
    """The elements of a wave, and the columns of P^-1."""

    size: int
    back: tuple[int, ...]

    @property
    def is_in_order(self) -> bool:
        return self.back == tuple(1 << bit for bit in range(len(self.back)))


def wave_copy(offsets: LinearLayout, width: int) -> WaveCopy | None:
    """For `width` neighbours of each lane; None where they are none, or the wave is not in one piece."""
    registers, lanes = offsets.by_in["register"], offsets.by_in["lane"]
    steps = width.bit_length() - 1
    size = width << len(lanes)
    if list(registers[:steps]) != [1 << bit for bit in range(steps)]:
        return None
    if any(column % width for column in (*lanes, *registers[steps:], *offsets.by_in["warp"])):
        return None
    if 0 in (*registers, *offsets.by_in["warp"]) or any(column >= size for column in lanes):
        return None
    places = LinearLayout({"lane": [(column // width,) for column in lanes]}, (("place", size // width),))
    return WaveCopy(size, places.invert().by_in["place"]) if places.is_invertible else None
