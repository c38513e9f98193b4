"""What moving a tile takes: from one layout to another, and to global memory (docs/cost-model.md).

    128x128 f16 of tensor cores, 8 warps, to [1, 8] elements of a thread        trip: 65536 bytes of shared memory, 2 barriers
        stored in that layout                                                   64 instructions, 1024 sectors
        stored as it was computed, [1, 2]                                       256 instructions, 2048 times half a sector

A thread that has two neighbours of 2 bytes writes 4 bytes, four of them 16 bytes of a row. L2 has to get the rest of such a sector from DRAM, and
may have written it before the other half comes.
A trip through shared memory costs what it writes and reads there, with bank conflicts; all warps wait for each other, before it is read and before it
is written again, unless each reads what it has written itself.
"""

from functools import lru_cache
from typing import NamedTuple

from tilework.layouts.conversion import conversion, shared_plan
from tilework.layouts.linear import LinearLayout
from tilework.layouts.swizzle import span_size
from tilework.layouts.to_linear import MEMO

SECTOR = 32  # bytes that L2 is asked for at once
LANES = 32
WORD = 4  # bytes of a register


class Trip(NamedTuple):
    """What all threads need to bring a tile into another layout."""

    kind: str  # `layouts/conversion.py`
    shared_bytes: int = 0  # that pass through the banks of shared memory, as if there were no conflicts but more bytes
    instructions: int = 0  # of warps
    barriers: int = 0  # of all warps
    scratch: int = 0  # bytes of shared memory that it occupies


def trip(source: LinearLayout, result: LinearLayout, bits: int, matrices: tuple[bool, bool]) -> Trip:
    """From one layout to another, on a GPU whose warps load and store matrices or not."""
    kind = conversion(source, result).kind
    if kind == "shuffle":
        words = held_bytes(result, bits) // (LANES * WORD) or 1
        return Trip(kind, words * LANES * WORD, words)
    if kind not in ("warp", "shared", "cluster"):
        return Trip(kind)
    plan = shared_plan(source, result, bits, *matrices)
    written, read = held_bytes(source, bits), held_bytes(result, bits)
    moved = written * (1 + plan.write_conflicts) + read * (1 + plan.read_conflicts)
    each = LANES * max(plan.vector * bits // 8, 1)
    return Trip(kind, moved, (written + read) // each or 1, 0 if kind == "warp" else 2 * plan.reps, plan.bytes)


def held_bytes(layout: LinearLayout, bits: int) -> int:
    """What all threads have in their registers."""
    registers = sum(map(bool, layout.by_in["register"]))
    return ((max(bits, 8) // 8) << registers) * layout.in_size("lane") * layout.in_size("warp")


class Accesses(NamedTuple):
    """How a tile goes to global memory."""

    instructions: int  # of warps
    sectors: int  # that these write, once for each instruction
    are_full: bool  # an instruction writes all of a sector

    @property
    def dram_bytes(self) -> int:
        """What DRAM has to do with it: parts of sectors are read, and written each time."""
        return self.sectors * SECTOR * (1 if self.are_full else 2)


@lru_cache(maxsize=MEMO)
def accesses(layout: LinearLayout, fastest: int, most: int, bits: int) -> Accesses:
    """Of a store in `layout`, where all along the dimension `fastest` lies side by side and a thread writes at most so many elements at once.

    >>> from tilework.layouts.encodings import NvidiaMma
    >>> from tilework.layouts.to_linear import to_linear
    >>> accesses(to_linear(NvidiaMma(3, 0, (4, 1), (16, 64, 16)), (64, 64)), 1, 8, 16)
    Accesses(instructions=64, sectors=512, are_full=False)
    """
    levels = dict(layout.bases)
    registers, warps = [vector for vector in levels["register"] if any(vector)], levels["warp"]
    run = 1
    while run < most and registers and registers[0][fastest] == run and sum(map(bool, registers[0])) == 1:
        registers, run = registers[1:], 2 * run
    shift = max(SECTOR * 8 // max(bits, 8), 1).bit_length() - 1
    lanes = [sector_at(layout, vector, fastest, shift) for vector in levels["lane"]]
    each, touched = 1 << len(registers), 1 << span_size(lanes)
    written = (run << sum(map(any, levels["lane"]))) * max(bits, 8) // 8
    return Accesses(each << len(warps), each * touched << sum(map(any, warps)), written >= touched * SECTOR)


def sector_at(layout: LinearLayout, place: tuple[int, ...], fastest: int, shift: int) -> int:
    """The number of a sector: the higher bits of the place along `fastest`, and the other dimensions."""
    number = 0
    for dim, value in enumerate(place):
        number = number * layout.outs[dim][1] + (value >> shift if dim == fastest else value)
    return number
