"""`ldmatrix` and `stmatrix`: a warp moves up to four matrices of 8 rows of 16 bytes between shared memory and
registers.

    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%w0, %w1, %w2, %w3}, [%address];

Lane 8j + r passes the address of row r of matrix j. Afterwards lane 4r + q holds in its j-th register the 4 bytes 4q
... of that row. With `.trans` the elements have 16 bits, and lane 4c + q holds two of column c: those of rows 2q and 2q
+ 1. An element may be two of 8 bits.

Registers can be loaded this way if the layout of their offsets in memory has this form, in elements of 16 bits:

    plain     register (one bit) +1, lane bits 0, 1: +2, +4                       lane bits 2, 3, 4: rows
    .trans    lane bits 2, 3, 4: +1, +2, +4         register (one bit): rows 0, 1; lane bits 0, 1: rows 2, 4

and no other bit has an offset inside of 16 bytes. Rows can be anywhere. Two more bits of the register index select the
matrix. The address of a lane comes from the same layout, with the bases of rows and matrices instead of those of lanes.

For transposed 8-bit elements, each register of four is a byte permutation of those of two matrices. The two may have
some rows exchanged, to avoid rows of one matrix in the same banks: lanes that get those rows permute the other way
round.

    rows k of a matrix    0 1 4 5  8  9 12 13     in the swizzle of TMA, 0 and 8 are in the same banks
    and of another        2 3 6 7 10 11 14 15
    instead               0 1 4 5 10 11 14 15     lanes 4c + 2, 4c + 3 hold 10, 11 or 14, 15 instead of 8, 9 or 12, 13
                          2 3 6 7  8  9 12 13
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tilework.layouts.banks import lane_conflicts
from tilework.layouts.linear import LinearLayout, log2
from tilework.light_dataclass import light_dataclass
from tilework.targets.gpu.axes import mask_of, subsets
from tilework.targets.gpu.lowering import Lowering
from tilework.targets.gpu.packing import REGISTER_BITS, pack_register, unpack_register
from tilework.targets.gpu.shared_access import Move
from tilework.targets.llvm.types import i32, struct, void
from tilework.targets.llvm.values import Value
from tilework.targets.nvidia.lower.inline_ptx import nvvm

ROW = 128  # bits
MOST = 2  # log2 of the matrices that move together
LANE_BITS = 5
OTHER_SOURCE = 0x4444  # xor of a byte selector that exchanges its two sources
Pair = tuple[list[int], Value]  # elements of a layout, and the 32-bit register that holds them


@light_dataclass
class Matrices:
    """The mapping of registers to matrices: the bits of a register's index that select an element of a 32-bit register,
    and the matrix of one instruction; and the offsets of rows 1, 2 and 4. `swap`: lanes with this bit have the 32-bit
    registers of two matrices exchanged, which this bit of the matrix's index selects.
    """

    is_transposed: bool
    inside: tuple[int, ...]
    matrices: tuple[int, ...]
    rows: tuple[int, ...]
    swap: tuple[int, int] | None = None

    @property
    def name(self) -> str:
        """The suffix of the intrinsic's name: ``m8n8.x4.trans.b16.p3``."""
        return f"m8n8.x{1 << len(self.matrices)}{'.trans' if self.is_transposed else ''}.b16.p3"

    def addresses(self, offsets: LinearLayout) -> LinearLayout:
        """Return the layout in which the offset of a lane is the start of its row."""
        columns = [*self.rows, *(offsets.by_in["register"][bit] for bit in self.matrices)]
        return offsets.replace_in("lane", columns + [0] * (LANE_BITS - len(columns)))

    @property
    def bytes(self) -> int:
        """The bytes that a thread moves at a time."""
        return 4 << len(self.matrices)

    def accesses(self, move: Move, round_index: int) -> list[tuple[int, list[list[int]]]]:
        """Return (offset, the elements in each 32-bit register) of every instruction of a round."""
        taken, inside = move.copies | mask_of((*self.inside, *self.matrices)), subsets(self.inside)
        matrices = subsets(self.matrices)
        return [
            (offset % move.round_size, [[first | matrix | at for at in inside] for matrix in matrices])
            for first, offset in enumerate(move.fixed)
            if not first & taken and offset // move.round_size == round_index
        ]

    def load(self, move: Move, round_index: int) -> dict[int, Value]:
        """Load the registers of one round."""
        low, b = move.low, move.low.builder
        found: dict[int, Value] = {}
        for offset, groups in self.accesses(move, round_index):
            type = struct(*[i32] * len(groups)) if len(groups) > 1 else i32
            made = b.call(f"llvm.nvvm.ldmatrix.sync.aligned.{self.name}", type, [move.address(offset)])
            loaded = [b.extract_value(made, index) for index in range(len(groups))] if len(groups) > 1 else [made]
            pairs = list(zip(groups, loaded, strict=True))
            for registers, packed in pairs if self.swap is None else self.chosen(low, pairs):
                found.update(zip(registers, unpack_register(low, packed, move.held), strict=True))
        return found

    def swapped(self, low: Lowering) -> Value:
        """Return the xor of a byte selector in lanes where the registers of two matrices are exchanged."""
        b = low.builder
        assert self.swap is not None
        return b.mul(b.and_(b.lshr(low.lane, self.swap[0]), 1), OTHER_SOURCE)

    def chosen(self, low: Lowering, pairs: Sequence[Pair]) -> Iterator[Pair]:
        """Yield registers with elements of one column each, from those of two matrices that may be exchanged."""
        assert self.swap is not None
        b, away, column = low.builder, 1 << self.swap[1], 1 << self.inside[0]
        for index, (here, first) in enumerate(pairs):
            if index & away:
                continue
            there, second = pairs[index | away]
            members = sorted((register, byte) for byte, register in enumerate((*here, *there)))
            for side in (0, column):
                own = [(register, byte) for register, byte in members if register & column == side]
                selector = sum(byte << 4 * at for at, (_, byte) in enumerate(own))
                packed = nvvm(b, "prmt", i32, first, second, b.xor(self.swapped(low), selector))
                yield [register for register, _ in own], packed

    def prepare(self, low: Lowering) -> None:
        """Hoist the selector, which depends only on the thread."""
        if self.swap is not None:
            self.swapped(low)

    def store(self, move: Move, registers: Sequence[Value], round_index: int) -> None:
        low, b = move.low, move.low.builder
        for offset, groups in self.accesses(move, round_index):
            held = [pack_register(low, [registers[member] for member in members]) for members in groups]
            if self.swap is not None:
                lane, bit = self.swap
                is_other = b.icmp("ne", b.and_(low.lane, 1 << lane), 0)
                held = [b.select(is_other, held[index ^ 1 << bit], own) for index, own in enumerate(held)]
            b.call(f"llvm.nvvm.stmatrix.sync.aligned.{self.name}", void, [move.address(offset), *held])


def matrix_form(offsets: LinearLayout, bits: int, limit: int) -> Matrices | None:
    """Return the matrix access of registers of `bits` bits at these offsets (below `limit`), or None."""
    registers, lanes = offsets.by_in["register"], offsets.by_in["lane"]
    if bits not in (8, 16, 32) or len(lanes) != LANE_BITS:
        return None
    each, row = REGISTER_BITS // bits, ROW // bits
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
        first_row = min(along, key=lambda bit: row_conflicts((registers[bit], *lanes[:2]), bits))
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
    matrices = tuple([bit for bit in usable if bit not in inside][:MOST])
    whole = Matrices(is_transposed, tuple(inside), matrices, tuple(rows))
    exchanged = exchanges(whole, [registers[bit] for bit in matrices]) if is_transposed and bits == 8 else []
    return min((whole, *exchanged), key=lambda form: row_conflicts(form.rows, bits))


def exchanges(whole: Matrices, matrices: Sequence[int]) -> Iterator[Matrices]:
    """Yield variants with rows exchanged between two matrices, whose offsets are given: every other pair of rows, or
    every other four.
    """
    for lane in range(2):
        for index, column in enumerate(matrices):
            rows = [offset ^ column * (row == lane + 1) for row, offset in enumerate(whole.rows)]
            yield replace(whole, rows=tuple(rows), swap=(lane, index))


def row_conflicts(rows: Sequence[int], bits: int) -> int:
    """Return the bank conflicts of the rows of a matrix, given their offsets in elements of `bits` bits."""
    return lane_conflicts((*rows, 0, 0), log2(ROW // bits), bits)
