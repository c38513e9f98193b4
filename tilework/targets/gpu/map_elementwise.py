"""`tt.map_elementwise`: a scalar function of each element, or of `pack` adjacent elements at a time.

    pack = 2:   f(a0, a1, b0, b1) -> (r0, r1)      # adjacent a0, a1 of the first operand, b0, b1 of the second

Elements are adjacent in row-major order. Mostly they are registers of one thread; where several lanes of a warp hold
them, the lanes exchange them, all compute, and each keeps its own result.
"""

from math import prod

from xdsl.ir import Operation

from tilework.ir import tt
from tilework.ir.encodings import layout_of
from tilework.ir.types import int_property, shape_of
from tilework.targets.gpu.axes import Bit, bits_at, call, lane_is, mask_of, moving_bits, subsets
from tilework.targets.gpu.lowering import Lowering, Registers, lowers
from tilework.targets.llvm.values import Value


@lowers(tt.MapElementwiseOp)
def lower_map_elementwise(low: Lowering, op: Operation) -> list[Registers]:
    pack = int_property(op, "pack")
    neighbours = neighbour_bits(low, op, pack)
    registers, lanes = mask_of(bits_at(neighbours, "register")), bits_at(neighbours, "lane")
    layout = layout_of(op.operands[0].type)
    kept = mask_of(bit for bit, column in enumerate(layout.by_in["register"]) if column)
    sources: list[Registers] = [low[operand] for operand in op.operands]
    made: list[dict[int, Value]] = [{} for _ in op.results]
    for first in subsets([bit for bit in range(kept.bit_length()) if (kept & ~registers) >> bit & 1]):
        groups = [neighbours_of(low, source, first, neighbours) for source in sources]
        returned = call(low, op.regions[0], [value for group in groups for value in group])
        for result, found in enumerate(made):
            keep_own(low, found, first, neighbours, returned[result * pack : (result + 1) * pack], lanes)
    return [tuple(found[register & kept] for register in range(layout.in_size("register"))) for found in made]


def neighbour_bits(low: Lowering, op: Operation, pack: int) -> list[Bit]:
    """Return the bits that distinguish `pack` adjacent elements, the lowest first."""
    type = op.operands[0].type
    bits = moving_bits(low, op, layout_of(type))
    shape = shape_of(type)
    row_major = [bit for dim in reversed(range(len(shape))) for bit in bits if bit.dim == dim]
    count = pack.bit_length() - 1
    if pack > prod(shape) or any(bit.level not in ("register", "lane") for bit in row_major[:count]):
        raise low.refuse(op, f"tl.map_elementwise with pack={pack}, of elements that no warp has")
    return row_major[:count]


def neighbours_of(low: Lowering, source: Registers, first: int, neighbours: list[Bit]) -> list[Value]:
    """Return the adjacent elements that start in register `first` of the lowest lane that holds one."""
    b = low.builder
    columns = {(register, 0): source[first | register] for register in subsets(bits_at(neighbours, "register"))}
    for bit in bits_at(neighbours, "lane"):
        upper = lane_is(low, 1 << bit, 1 << bit)
        for (register, lane), value in list(columns.items()):
            other = low.shuffle_xor(value, 1 << bit)
            columns[register, lane] = b.select(upper, other, value)
            columns[register, lane | 1 << bit] = b.select(upper, value, other)
    return [columns[register_and_lane(index, neighbours)] for index in range(1 << len(neighbours))]


def register_and_lane(index: int, neighbours: list[Bit]) -> tuple[int, int]:
    """Return the register and lane of the adjacent element `index`."""
    levels = {"register": 0, "lane": 0}
    for position, bit in enumerate(neighbours):
        levels[bit.level] |= (index >> position & 1) << bit.index
    return levels["register"], levels["lane"]


def keep_own(
    low: Lowering, found: dict[int, Value], first: int, neighbours: list[Bit], values: list[Value], lanes: list[int]
) -> None:
    """Add the results that belong to this lane to `found`."""
    b = low.builder
    for index, value in enumerate(values):
        register, lane = register_and_lane(index, neighbours)
        register |= first
        if register not in found:
            found[register] = value
        else:
            found[register] = b.select(lane_is(low, mask_of(lanes), lane), value, found[register])
