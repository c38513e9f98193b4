"""`tt.gather` and `tt.histogram`: where an element comes from, or goes, depends on data.

A gather whose warps hold all that they may pick is made of shuffles: the index tells lane and register of the source.
Lanes that want different registers read all and select. Otherwise the source goes to scratch memory, and each thread
reads from there. An index outside the axis is undefined; it is taken modulo the size, so that nothing outside is read.

A histogram counts in scratch memory: all threads clear the bins, wait, add one for each of their elements (copies and
masked ones excepted, and values outside the bins), wait, and read the bins in the layout of the result.
"""

from functools import partial, reduce

from xdsl.ir import Operation

from tilework.analysis.scratch import is_warp_local
from tilework.ir import tt
from tilework.ir.encodings import encoding_of, layout_of
from tilework.ir.enums import RMWOp
from tilework.ir.types import axis_of, element_type, shape_of
from tilework.layouts.linear import LinearLayout
from tilework.layouts.queries import order
from tilework.targets.gpu.axes import Bit, mask_of, moving_bits, numbers, stays_in_block, subsets
from tilework.targets.gpu.global_access import both, copied_registers
from tilework.targets.gpu.indices import chosen, coordinates, image
from tilework.targets.gpu.lowering import Lowering, Registers, lowers
from tilework.targets.gpu.shared_access import Move, Table
from tilework.targets.gpu.views import register_places
from tilework.targets.gpu.words import from_memory, held_type
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.types import i32, integer
from tilework.targets.llvm.values import Value, constant


@lowers(tt.GatherOp)
def lower_gather(low: Lowering, op: Operation) -> Registers:
    source, indices = op.operands
    axis = axis_of(op)
    bits = moving_bits(low, op, layout_of(source.type))
    stays_in_block(low, op, bits, axis)
    picked = [index_of(low, index, shape_of(source.type)[axis]) for index in low[indices]]
    if is_warp_local(layout_of(source.type), layout_of(indices.type), axis):
        return by_shuffles(low, op, bits, picked)
    return through_memory(low, op, picked)


def index_of(low: Lowering, index: Value, size: int) -> Value:
    """An index as an i32 inside the axis."""
    b = low.builder
    return b.and_(as_word(b, index), size - 1)


def as_word(b: Builder, value: Value) -> Value:
    return b.trunc(value, i32) if value.type.bits > 32 else b.zext(value, i32)


def by_shuffles(low: Lowering, op: Operation, bits: list[Bit], picked: list[Value]) -> Registers:
    """The bits of the index that are lane bits say from which lane, those that are register bits which register."""
    b, axis = low.builder, axis_of(op)
    source, indices = op.operands
    along = {
        level: {bit.place: bit.number for bit in bits if bit.dim == axis and bit.level == level} for level in LEVELS
    }
    across = [bit for bit in bits if bit.dim != axis]
    places = register_places(layout_of(source.type))
    rows = {beside(places[row], axis): row for row in subsets(sorted(numbers(across, "register")))}
    count = shape_of(source.type)[axis].bit_length() - 1
    lane_columns = [1 << along["lane"][place] if place in along["lane"] else 0 for place in range(count)]
    row_lane = b.and_(low.lane, ~mask_of(along["lane"].values()) & low.lane_mask)
    registers: Registers = low[source]

    picks = [(1 << place, 1 << along["register"][place]) for place in sorted(along["register"], reverse=True)]
    made = []
    for place, index in zip(register_places(layout_of(indices.type)), picked, strict=True):
        lane = b.or_(row_lane, image(b, [(index, lane_columns)]).value)
        row = rows[beside(place, axis)]
        made.append(chosen(b, index, picks, row, lambda number, lane=lane: low.shuffle(registers[number], lane)))
    return tuple(made)


LEVELS = ("register", "lane")


def beside(place: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """Coordinates without the axis."""
    return place[:axis] + place[axis + 1 :]


def through_memory(low: Lowering, op: Operation, picked: list[Value]) -> Registers:
    """The source in scratch memory, the dimension fastest that its registers follow."""
    b, axis = low.builder, axis_of(op)
    source, indices = op.operands
    layout, wanted = layout_of(source.type), layout_of(indices.type)
    if layout.by_in["block"] and across_blocks(layout, axis) != across_blocks(wanted, axis):
        raise low.refuse(op, "a gather between the blocks of a cluster")
    encoding, shape = encoding_of(source.type), shape_of(source.type)
    assert encoding is not None
    shifts, shift = [0] * len(shape), 0
    for dim in order(encoding, shape):
        shifts[dim] = shift
        shift += shape[dim].bit_length() - 1
    base, element = low.scratch_address(op), element_type(source.type)
    offsets = layout.map_columns(lambda column: flat(layout, column, shifts), (("offset", 1 << shift),))
    mine = low.is_first_copy(offsets, in_block=True)
    Move(low, base, offsets, element).store_if(mine, low[source])
    low.barrier()
    held = held_type(element)
    made = []
    for index, place in zip(picked, coordinates(low, wanted), strict=True):
        offset = constant(i32, 0)
        for dim, at in enumerate(place):
            offset = b.or_(offset, b.shl(index if dim == axis else at, shifts[dim]))
        made.append(
            from_memory(low, element, b.load(held, b.gep(base, b.mul(offset, held.bits // 8)), align=held.bits // 8))
        )
    return tuple(made)


def across_blocks(layout: LinearLayout, axis: int) -> list[tuple[int, ...]]:
    """The bits of a block's index, except those along the axis."""
    return [beside(vector, axis) for vector in dict(layout.bases)["block"]]


def flat(layout: LinearLayout, column: int, shifts: list[int]) -> int:
    """A packed basis as an offset."""
    vector = zip(layout.out_names, layout.vector(column), strict=True)
    return sum(moved << shifts[int(name.removeprefix("dim"))] for name, moved in vector)


@lowers(tt.HistogramOp)
def lower_histogram(low: Lowering, op: Operation) -> Registers:
    values = op.operands[0]
    masks = low[op.operands[1]] if len(op.operands) > 1 else None
    layout, result = layout_of(values.type), op.results[0].type
    if any(layout.by_in["block"]):
        raise low.refuse(op, "a histogram of the elements of several blocks")
    (bins,) = shape_of(result)
    base, element = low.scratch_address(op), element_type(result)
    Table(low, base, bins, layout, element).fill(constant(held_type(element), 0))
    low.barrier()
    mine, copies = low.is_first_copy(layout, in_block=True), copied_registers(values.type)
    for number, value in enumerate(low[values]):
        if not number & copies:
            count_one(
                low, base, bins, held_type(element).bits, value, [mine, masks[number] if masks is not None else None]
            )
    low.barrier()
    return Move(low, base, layout_of(result).rename_outs(["offset"]), element).load()


def count_one(low: Lowering, base: Value, bins: int, bits: int, value: Value, conditions: list[Value | None]) -> None:
    """Add one to the bin of a value, if it is inside and all conditions hold."""
    b = low.builder
    inside = b.icmp("ult", value, bins) if bins.bit_length() <= value.type.bits else None
    may = reduce(partial(both, low), conditions, inside)
    address = b.gep(base, b.mul(as_word(b, value), bits // 8))
    low.gpu.change_shared(b, address, may, RMWOp.ADD, constant(integer(bits), 1))
