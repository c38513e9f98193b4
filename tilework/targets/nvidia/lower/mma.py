"""`tt.dot` as `mma.sync`: each warp multiplies tiles of 16 rows by 8 columns.

    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {d0, d1, d2, d3}, {a0, a1, a2, a3}, {b0, b1}, {c0, c1, c2, c3};

The registers of the lane in row r (of 8) and column q (of 4) of a warp, with `e` elements of A and B in a 32-bit
register:

    a0, a1   row r and row r + 8, elements q*e ... of K     b0   column r, elements q*e ... of K
    a2, a3   the same, 4*e further along K                  b1   the same, 4*e further
    c0, c1   row r, columns 2q and 2q + 1                   c2, c3   the same in row r + 8

An operand layout gives each lane runs of `kWidth` adjacent elements along K. The registers of a row of A, in the order
of K, correspond to those of a column of B: cut both lists into steps of two registers, and every step multiplies
matching elements, whatever `kWidth` is. (A step takes the elements of K in another order than the tensor, which a sum
allows.)

A small tensor has duplicates. Duplicate rows or columns compute the same result several times. Duplicates along K would
count twice: only one of the lanes with the same elements contributes them, and with one register instead of two the
instruction is the one with half the K.
"""

from xdsl.ir import Attribute, Operation, SSAValue

from tilework.ir import tt
from tilework.ir.encodings import encoding_of, layout_of
from tilework.ir.types import bf16, bit_width, element_type, f8E4M3FN, f8E5M2, f32, i8
from tilework.ir.types import f16 as half
from tilework.ir.types import f64 as double
from tilework.ir.types import i32 as int32
from tilework.layouts.encodings import NvidiaMma
from tilework.light_dataclass import light_dataclass
from tilework.target import Feature
from tilework.targets.gpu.dot_rules import lines, multiply_add
from tilework.targets.gpu.lowering import Lowering, Registers
from tilework.targets.gpu.packing import REGISTER_BITS, pack_register, pack_registers, unpack_register
from tilework.targets.gpu.views import Coords, register_coords
from tilework.targets.llvm.types import f16, f64
from tilework.targets.llvm.values import Value, constant
from tilework.targets.nvidia.lower import lowers
from tilework.targets.nvidia.lower.inline_ptx import ptx

OPERAND_TYPES: dict[Attribute, str] = {
    half: "f16", bf16: "bf16", f32: "tf32", double: "f64", i8: "s8", f8E4M3FN: "e4m3", f8E5M2: "e5m2",
}  # fmt: skip
ACCUMULATOR_TYPES: dict[Attribute, str] = {half: "f16", f32: "f32", double: "f64", int32: "s32"}
K_LANES = 4  # lanes along K
K_LANE_BITS = 2  # the lane bits that count them

Fragments = dict[Coords, list[Value]]  # by row (of A) or column (of B): the registers of a lane, in the order of K


@light_dataclass
class Instruction:
    """One form of `mma.sync`: its rows, the registers per lane of a row of A, K, and its types."""

    rows: int
    registers: int
    depth: int
    a: str
    b: str
    sum: str

    @property
    def name(self) -> str:
        types = f"{'satfinite.' if self.sum == 's32' else ''}{self.sum}.{self.a}.{self.b}.{self.sum}"
        return f"mma.sync.aligned.m{self.rows}n8k{self.depth}.row.col.{types}"


@lowers(tt.DotOp, overrides=True)
def lower_dot(low: Lowering, op: Operation) -> Registers:
    """Use tensor cores if the accumulator has their layout."""
    encoding = encoding_of(op.results[0].type)
    if not isinstance(encoding, NvidiaMma):
        return multiply_add(low, op)
    if not encoding.is_ampere:
        raise low.refuse(op, "tt.dot with the layout of a warp-group dot")
    return dot_on_tensor_cores(low, op)


def dot_on_tensor_cores(low: Lowering, op: Operation) -> Registers:
    a, b, c = op.operands
    left, right = fragments(low, a, -1), fragments(low, b, -2)
    count = len(next(iter(left.values())))
    form = instruction(low, op, count)
    all_coords = register_coords(layout_of(c.type))
    known: dict[Coords, Value] = {}
    for coords, register in zip(all_coords, low[c], strict=True):
        known.setdefault(coords, register)
    tiles = {tile: corners(known, tile) for tile in known if not (tile[-2] & 8 or tile[-1] & 1)}
    sums = {tile: pack_sums(low, [known[corner] for corner in found]) for tile, found in tiles.items()}
    for start in range(0, count, form.registers):
        step = slice(start, start + form.registers)
        for tile, (_, _, below, _) in tiles.items():
            *batch, row, column = tile
            factors = [left[*batch, row][step], left[*batch, below[-2]][step]]
            sums[tile] = multiply(low, form, factors, right[*batch, column][step], sums[tile])
    made: dict[Coords, Value] = {}
    for tile, found in tiles.items():
        for corner, value in zip(found, unpack_sums(low, sums[tile]), strict=True):
            made.setdefault(corner, value)
    return tuple(made[coords] for coords in all_coords)


def corners(known: dict[Coords, Value], tile: Coords) -> list[Coords]:
    """Return the four elements that a lane has of a tile; those beyond a small tensor are duplicates of others."""
    *batch, row, column = tile
    found = []
    for down in (row, row + 8):
        for right in (column, column + 1):
            at = (*batch, down if (*batch, down, column) in known else row, right)
            found.append(at if at in known else (*at[:-1], column))
    return found


def instruction(low: Lowering, op: Operation, registers: int) -> Instruction:
    """Return the form for operands with this many registers per row."""
    a, b, c = (element_type(operand.type) for operand in op.operands)
    kinds = OPERAND_TYPES.get(a), OPERAND_TYPES.get(b), ACCUMULATOR_TYPES.get(c)
    if None in kinds:
        raise low.refuse(op, f"a dot of {a} and {b} in {c} on tensor cores")
    if bit_width(a) == 8 and a != i8 and not low.gpu.has(Feature.MMA_FP8):
        raise low.refuse(op, f"a dot of {a} and {b} on tensor cores")
    left, right, total = (str(kind) for kind in kinds)
    if a == double:
        rows, registers = (16, min(registers, 4)) if low.gpu.has(Feature.MMA_F64_ROWS) else (8, 1)
        return Instruction(rows, registers, registers * K_LANES, left, right, total)
    registers = min(registers, 2)
    return Instruction(16, registers, registers * K_LANES * REGISTER_BITS // bit_width(a), left, right, total)


def fragments(low: Lowering, value: SSAValue, k_axis: int) -> Fragments:
    """Return the packed registers of each row of A, or column of B."""
    layout = layout_of(value.type)
    each = max(1, REGISTER_BITS // bit_width(value.type))
    copied = sum(1 << bit for bit, column in enumerate(layout.by_in["lane"][:K_LANE_BITS]) if not column)
    found: Fragments = {}
    for coords, line in lines(register_coords(layout), low[value], k_axis).items():
        elements = [line[k] for k in sorted(line)]
        elements += [constant(elements[0].type, 0)] * (-len(elements) % each)
        made = [pack_register(low, elements[first : first + each]) for first in range(0, len(elements), each)]
        found[coords] = [first_only(low, packed, copied) for packed in made] if copied and k_axis == -1 else made
    return found


def first_only(low: Lowering, packed: Value, copied: int) -> Value:
    """Return a register of A, zeroed in duplicate lanes, which the lane id bits `copied` distinguish."""
    b = low.builder
    return b.select(b.icmp("eq", b.and_(low.lane, copied), 0), packed, constant(packed.type, 0))


def pack_sums(low: Lowering, sums: list[Value]) -> list[Value]:
    """Pack accumulators for the instruction: f16 in pairs."""
    return pack_registers(low, sums) if sums[0].type is f16 else sums


def unpack_sums(low: Lowering, sums: list[Value]) -> list[Value]:
    if len(sums) == 4:
        return sums
    return [value for packed in sums for value in unpack_register(low, packed, f16)]


def multiply(
    low: Lowering, form: Instruction, rows: list[list[Value]], columns: list[Value], sums: list[Value]
) -> list[Value]:
    """Emit one step of one tile; `rows` has the registers of the upper and of the lower row."""
    if form.rows == 16:
        factors = [register for pair in zip(*rows, strict=True) for register in pair]
        return emit(low, form, factors, columns, sums)
    upper, lower = rows
    return [*emit(low, form, upper, columns, sums[:2]), *emit(low, form, lower, columns, sums[2:])]


def emit(low: Lowering, form: Instruction, a: list[Value], b: list[Value], c: list[Value]) -> list[Value]:
    types = [value.type for value in c]
    assert form.a != "f64" or types[0] is f64
    groups, first = [], 0
    for count in (len(c), len(a), len(b), len(c)):
        groups.append("{" + ", ".join(f"${index}" for index in range(first, first + count)) + "}")
        first += count
    return ptx(low.builder, f"{form.name} {', '.join(groups)};", types, [*a, *b, *c], convergent=True)
