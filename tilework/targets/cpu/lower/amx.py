"""Blocks of a matrix product on the tile registers of x86 (AMX).

A tile is up to 16 rows of up to 64 bytes; there are eight. ``tdpbf16ps c, a, b`` adds to 16 x 16 sums the products of 16 rows of A
by 16 columns of B along 32 steps of K: a row of A is 64 bytes, a row of B is the line that `packing.py` makes of two steps
of K (four for int8). A block is two tiles by two:

    tmm0 tmm1      sums            tmm4      A            tmm6 tmm7      B
    tmm2 tmm3                      tmm5

The shape of tiles is configured for each thread, so every product does it first, and releases them behind: a thread that
has tiles in use takes longer to be switched. The process must be allowed to use them (`HostTarget`).
"""

from tilework.targets.cpu.lower.dot_units import Sizes
from tilework.targets.cpu.lower.microkernel import Operand, Unit, Work
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.types import i8, i64, void
from tilework.targets.llvm.values import Value, constant

# where the bytes of a row (16 bits each) and the rows (8 bits) of tiles are
CONFIGURATION_BYTES, BYTES_AT, ROWS_AT = 64, 16, 48
FIRST_LEFT, FIRST_RIGHT = 4, 6  # the numbers of tiles


def configure(b: Builder, unit: Unit, tile: Sizes) -> None:
    """Give the tiles of C, A and B their shapes."""
    left_bytes, column_bytes = tile.depth * unit.element.bits // 8, tile.columns * 4
    shapes = (
        [(tile.rows, column_bytes)] * 4 + [(tile.rows, left_bytes)] * 2 + [(tile.depth // unit.group, column_bytes)] * 2
    )
    data = bytearray(CONFIGURATION_BYTES)
    data[0] = 1  # the palette
    for number, (rows, row_bytes) in enumerate(shapes):
        data[BYTES_AT + 2 * number] = row_bytes
        data[ROWS_AT + number] = rows
    name = f"tiles.{tile.rows}x{tile.columns}x{tile.depth}.{unit.element.text}"
    instruction(b, "ldtilecfg", b.module.data(name, data))


def release(b: Builder) -> None:
    instruction(b, "tilerelease")


def emit_tiles(b: Builder, unit: Unit, work: Work, total: Operand, tile: Sizes) -> None:
    """Add one block to C, as rows and columns of tiles."""
    left, right, rows, columns = work.left, work.right, work.rows // tile.rows, len(work.widths)
    sums = [
        (2 * row + column, b.gep(total.address, row * tile.rows * total.stride + column * tile.columns * 4))
        for row in range(rows)
        for column in range(columns)
    ]
    for number, place in sums:
        instruction(b, "tileloadd64", number, place, total.stride)
    starts, rounds = [left.address, right.address], work.depth * unit.group // tile.depth
    with b.loop_carrying(constant(i64, 0), rounds, 1, starts, unroll=1) as loop:
        at_left, at_right = loop.carried
        for column in range(columns):
            place = b.gep(at_right, column * tile.columns * 4)
            instruction(b, "tileloadd64", FIRST_RIGHT + column, place, right.stride)
        for row in range(rows):
            place = b.gep(at_left, row * tile.rows * left.stride)
            instruction(b, "tileloadd64", FIRST_LEFT + row, place, left.stride)
            for column in range(columns):
                instruction(b, unit.tiles, 2 * row + column, FIRST_LEFT + row, FIRST_RIGHT + column)
        lines = tile.depth // unit.group
        loop.next([b.gep(at_left, tile.depth * unit.element.bits // 8), b.gep(at_right, lines * right.stride)])
    for number, place in sums:
        instruction(b, "tilestored64", number, place, total.stride)


def instruction(b: Builder, name: str, *operands: int | Value) -> None:
    """An intrinsic; numbers before an address are tiles, the one behind it is a stride."""
    found, is_stride = list[Value](), False
    for operand in operands:
        found.append(operand if isinstance(operand, Value) else constant(i64 if is_stride else i8, operand))
        is_stride |= isinstance(operand, Value)
    b.call(f"llvm.x86.{name}", void, found)
