"""Transposing reads of LDS (gfx950): operands of dots whose memory is contiguous along the rows or columns of the
result, where matrix instructions want elements that are adjacent along K in one lane.

    ds_read_b64_tr_b16 v[0:1], v2       rows 0 to 3 of 16 elements, in 16 lanes
    ds_read_b64_tr_b8  v[0:1], v2       rows 0 to 7

Each lane passes the address of 8 bytes; the 16 lanes of a group read in their order the rows of a matrix with 16
columns, and lane i gets column i. For 16-bit elements:

    result of lane i, element j      is element i % 4 of the bytes that lane 4j + i / 4 of the group addresses

So it fits offsets where the first lane bits move by 1, 2 (and 4 for bytes), and every other bit by whole 8 bytes: those
lane bits select an element; the other two lane bits of the group (one for bytes) are the low bits of the lane that
addresses it, and the bits of the register its high bits.
"""

from collections.abc import Sequence

from tilework.layouts.linear import LinearLayout, log2
from tilework.light_dataclass import light_dataclass
from tilework.targets.gpu.axes import mask_of, subsets
from tilework.targets.gpu.lowering import Lowering
from tilework.targets.gpu.packing import unpack_register
from tilework.targets.gpu.shared_access import Move
from tilework.targets.llvm.types import i16, i32, vector
from tilework.targets.llvm.values import Value

READ_BITS = 64  # of a lane
GROUP_BITS = 4  # log2 of the lanes that exchange elements


@light_dataclass
class TransposedRead:
    """A read in which `rows`, bits of a register's index, select a row of the transposed matrix; `bits` per element."""

    bits: int
    rows: tuple[int, ...]
    bytes: int = READ_BITS // 8

    def addresses(self, offsets: LinearLayout) -> LinearLayout:
        """Return the layout in which the offset of a lane is that of the 8 bytes that it addresses."""
        lanes, registers = offsets.by_in["lane"], offsets.by_in["register"]
        group = [*lanes[len(self.rows) : GROUP_BITS], *(registers[bit] for bit in self.rows)]
        return offsets.replace_in("lane", [*group, *lanes[GROUP_BITS:]])

    def prepare(self, low: Lowering) -> None:
        """Emit nothing: LLVM hoists addresses."""

    def load(self, move: Move, round_index: int) -> dict[int, Value]:
        """Read the registers of one round."""
        low, b, members = move.low, move.low.builder, subsets(self.rows)
        taken, found = move.copies | mask_of(self.rows), dict[int, Value]()
        name, type = ("tr16.b64.v4i16", vector(i16, 4)) if self.bits == 16 else ("tr8.b64.v2i32", vector(i32, 2))
        for first, offset in enumerate(move.fixed):
            if first & taken or offset // move.round_size != round_index:
                continue
            address = move.address(offset % move.round_size)
            notes = b.module.load_notes.get(address.type, "")
            read = b.call(f"llvm.amdgcn.ds.read.{name}", type, [address], attributes="convergent", notes=notes)
            halves = b.lanes(b.bitcast(read, vector(i32, 2)))
            values = [value for half in halves for value in unpack_register(low, half, move.held)]
            found.update(zip([first | member for member in members], values, strict=True))
        return found

    def store(self, move: Move, registers: Sequence[Value], round_index: int) -> None:
        raise AssertionError("there is no transposing write")


def transposed_read(offsets: LinearLayout, bits: int, limit: int) -> TransposedRead | None:
    """Return the transposing read of registers of `bits` bits at these offsets (below `limit`), or None."""
    if bits not in (8, 16):
        return None
    registers, lanes = offsets.by_in["register"], offsets.by_in["lane"]
    count = READ_BITS // bits
    rows = tuple(bit for bit, column in enumerate(registers) if 0 < column < limit)[: log2(count)]
    inside = len(rows)
    columns = [column for name, found in offsets.columns for column in (found[inside:] if name == "lane" else found)]
    fits = 1 << inside == count and lanes[:inside] == tuple(1 << bit for bit in range(inside))
    return TransposedRead(bits, rows) if fits and not any(column & (count - 1) for column in columns) else None
