"""`ldmatrix` and `stmatrix`: a warp moves up to four matrices of 8 rows of 16 bytes between shared memory and registers.

    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%w0, %w1, %w2, %w3}, [%address];

Lane 8j + r has the address of row r of matrix j. Afterwards lane 4r + q has in word j the 4 bytes 4q ... of that row. With
`.trans` the elements have 16 bits, and lane 4c + q has two of column c: those of rows 2q and 2q + 1. An element may be two of
8 bits.

Whether registers can be filled so is a question to the layout that gives their offsets in memory. In elements of 16 bits:

    plain     register (one bit) +1, lane bits 0, 1: +2, +4                       lane bits 2, 3, 4: rows
    .trans    lane bits 2, 3, 4: +1, +2, +4         register (one bit): rows 0, 1; lane bits 0, 1: rows 2, 4

and nothing else may move inside of 16 bytes. Rows can lie anywhere. Two more bits of the register's number choose the matrix.
The address of a lane comes from the same layout, with the bases of rows and matrices in the place of those of lanes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tilework.layouts.banks import lane_conflicts
from tilework.layouts.linear import LinearLayout
from tilework.layouts.packing import log2
from tilework.targets.gpu.axes import mask_of, subsets
from tilework.targets.gpu.shared_access import Move
from tilework.targets.gpu.words import WORD, pack_word, unpack_word
from tilework.targets.llvm.types import i32, struct, void
from tilework.targets.llvm.values import Value

ROW = 128  # bits
MOST = 2  # log2 of the matrices that move together
LANE_BITS = 5


@dataclass(frozen=True)
class Matrices:
    """How registers lie in matrices: bits of a register's number that tell apart the elements of a word, and the matrices of
    one instruction; and the offsets of rows 1, 2 and 4."""

    is_transposed: bool
    inside: tuple[int, ...]
    matrices: tuple[int, ...]
    rows: tuple[int, ...]

    @property
    def name(self) -> str:
        """The end of the name of the intrinsic: ``m8n8.x4.trans.b16.p3``."""
        return f"m8n8.x{1 << len(self.matrices)}{'.trans' if self.is_transposed else ''}.b16.p3"

    def addresses(self, offsets: LinearLayout) -> LinearLayout:
        """The layout in which the offset of a lane is where its row begins."""
        columns = [*self.rows, *(offsets.by_in["register"][bit] for bit in self.matrices)]
        return offsets.replace_in("lane", columns + [0] * (LANE_BITS - len(columns)))

    @property
    def bytes(self) -> int:
        """What a thread moves at a time."""
        return 4 << len(self.matrices)

    def accesses(self, move: Move, turn: int) -> list[tuple[int, list[list[int]]]]:
        """(offset, the registers in each word) of every instruction of a round."""
        taken, inside = move.copies | mask_of((*self.inside, *self.matrices)), subsets(self.inside)
        words = subsets(self.matrices)
        return [
            (offset % move.round_size, [[first | word | at for at in inside] for word in words])
            for first, offset in enumerate(move.fixed)
            if not first & taken and offset // move.round_size == turn
        ]

    def load(self, move: Move, turn: int) -> dict[int, Value]:
        """The registers of one round."""
        low, b = move.low, move.low.builder
        found: dict[int, Value] = {}
        for offset, words in self.accesses(move, turn):
            type = struct(*[i32] * len(words)) if len(words) > 1 else i32
            loaded = b.call(f"llvm.nvvm.ldmatrix.sync.aligned.{self.name}", type, [move.address(offset)])
            for place, registers in enumerate(words):
                word = b.extract_value(loaded, place) if len(words) > 1 else loaded
                found.update(zip(registers, unpack_word(low, word, move.held), strict=True))
        return found

    def store(self, move: Move, registers: Sequence[Value], turn: int) -> None:
        low, b = move.low, move.low.builder
        for offset, words in self.accesses(move, turn):
            held = [pack_word(low, [registers[member] for member in members]) for members in words]
            b.call(f"llvm.nvvm.stmatrix.sync.aligned.{self.name}", void, [move.address(offset), *held])


def matrix_form(offsets: LinearLayout, bits: int, limit: int) -> Matrices | None:
    """How registers of `bits` bits at these offsets move as matrices, if they can; all of them below `limit`."""
    registers, lanes = offsets.by_in["register"], offsets.by_in["lane"]
    if bits not in (8, 16, 32) or len(lanes) != LANE_BITS:
        return None
    each, row = WORD // bits, ROW // bits
    usable = [bit for bit, column in enumerate(registers) if 0 < column < limit]
    inside = [bit for bit in usable if registers[bit] < each]
    inside.sort(key=lambda bit: registers[bit])
    if (
        lanes[:2] == (each, 2 * each)
        and [registers[bit] for bit in inside] == [1, 2][: len(inside)]
        and 1 << len(inside) == each
    ):
        rows, is_transposed = lanes[2:], False
    elif bits < 32 and lanes[2:] == tuple(16 // bits << bit for bit in range(3)):
        pair = [bit for bit in usable if registers[bit] < 16 // bits]
        along = [bit for bit in usable if registers[bit] >= row]
        if len(pair) != (bits == 8) or not along:
            return None
        first_row = min(along, key=lambda bit: lane_conflicts((registers[bit], *lanes[:2], 0, 0), log2(row), bits))
        rows, is_transposed = (registers[first_row], *lanes[:2]), True
        inside = [*pair, first_row]
    else:
        return None
    others = [column for bit, column in enumerate(registers) if bit not in inside]
    others += [
        *rows,
        *(column for name, columns in offsets.columns if name not in ("register", "lane") for column in columns),
    ]
    if any(column & (row - 1) for column in others) or any(offsets.by_in.get("block", ())):
        return None
    matrices = [bit for bit in usable if bit not in inside][:MOST]
    return Matrices(is_transposed, tuple(inside), tuple(matrices), tuple(rows))
