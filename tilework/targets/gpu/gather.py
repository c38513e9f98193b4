"""`tt.gather`, `tt.histogram`, `ttg.local_gather` and `ttg.local_scatter`: data-dependent reads, writes and counts.

A gather in which every warp holds all candidates is lowered to shuffles: the index determines the lane and register of
the source. Lanes that need different registers read all of them and select. Otherwise the source is stored to scratch
memory, from which each thread reads. An index outside the axis is undefined; it is taken modulo the size, so that no
access is out of bounds.

A histogram counts in scratch memory: all threads clear the bins, wait, add one for each of their elements (except
duplicates, masked elements and values outside the bins), wait, and read the bins in the layout of the result.

`ttg.local_gather` and `ttg.local_scatter` access a buffer of the kernel: each thread computes the offset of an element
from its coordinates, one of which is the index.
"""

from collections.abc import Iterator
from functools import partial, reduce
from typing import cast

from xdsl.ir import Operation, SSAValue

from tilework.analysis.scratch import is_warp_local
from tilework.ir import tt, ttg
from tilework.ir.encodings import encoding_of, layout_of
from tilework.ir.enums import RMWOp
from tilework.ir.types import axis_of, element_type, shape_of
from tilework.layouts.linear import LinearLayout
from tilework.layouts.to_linear import order
from tilework.targets.gpu.axes import Bit, bits_at, check_in_block, mask_of, moving_bits, subsets
from tilework.targets.gpu.device import Access
from tilework.targets.gpu.global_access import both, copied_registers
from tilework.targets.gpu.lowering import Lowering, Registers, Shared, lowers
from tilework.targets.gpu.packing import access_shape, from_memory, held_type, pack, to_memory
from tilework.targets.gpu.shared_access import Move, Table
from tilework.targets.gpu.views import chosen, coordinates, register_coords, xor_columns
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.types import i32, integer
from tilework.targets.llvm.values import Value, constant


@lowers(tt.GatherOp)
def lower_gather(low: Lowering, op: Operation) -> Registers:
    source, indices = op.operands
    axis = axis_of(op)
    bits = moving_bits(low, op, layout_of(source.type))
    check_in_block(low, op, bits, axis)
    picked = [index_of(low, index, shape_of(source.type)[axis]) for index in low[indices]]
    if is_warp_local(layout_of(source.type), layout_of(indices.type), axis):
        return by_shuffles(low, op, bits, picked)
    return through_memory(low, op, picked)


def index_of(low: Lowering, index: Value, size: int) -> Value:
    """Return an index as an i32 that is in bounds."""
    b = low.builder
    return b.and_(as_i32(b, index), size - 1)


def as_i32(b: Builder, value: Value) -> Value:
    return b.trunc(value, i32) if value.type.bits > 32 else b.zext(value, i32)


def by_shuffles(low: Lowering, op: Operation, bits: list[Bit], picked: list[Value]) -> Registers:
    """Gather by shuffles: the lane bits of the index select the source lane, the register bits the source register."""
    b, axis = low.builder, axis_of(op)
    source, indices = op.operands
    along = {
        level: {bit.position: bit.index for bit in bits if bit.dim == axis and bit.level == level} for level in LEVELS
    }
    across = [bit for bit in bits if bit.dim != axis]
    source_coords = register_coords(layout_of(source.type))
    rows = {beside(source_coords[row], axis): row for row in subsets(sorted(bits_at(across, "register")))}
    count = shape_of(source.type)[axis].bit_length() - 1
    lane_columns = [1 << along["lane"][bit] if bit in along["lane"] else 0 for bit in range(count)]
    row_lane = b.and_(low.lane, ~mask_of(along["lane"].values()) & low.lane_mask)
    registers: Registers = low[source]

    picks = [(1 << bit, 1 << along["register"][bit]) for bit in sorted(along["register"], reverse=True)]
    made = []
    for coords, index in zip(register_coords(layout_of(indices.type)), picked, strict=True):
        lane = b.or_(row_lane, xor_columns(b, [(index, lane_columns)]).value)
        row = rows[beside(coords, axis)]
        made.append(chosen(b, index, picks, row, lambda register, lane=lane: low.shuffle(registers[register], lane)))
    return tuple(made)


LEVELS = ("register", "lane")


def beside(coords: tuple[int, ...], axis: int) -> tuple[int, ...]:
    """Return the coordinates without the axis."""
    return coords[:axis] + coords[axis + 1 :]


def through_memory(low: Lowering, op: Operation, picked: list[Value]) -> Registers:
    """Gather from scratch memory, where the source is stored with its fastest register dimension contiguous."""
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
    for index, coords in zip(picked, coordinates(low, wanted), strict=True):
        offset = constant(i32, 0)
        for dim, at in enumerate(coords):
            offset = b.or_(offset, b.shl(index if dim == axis else at, shifts[dim]))
        made.append(
            from_memory(low, element, b.load(held, b.gep(base, b.mul(offset, held.bits // 8)), align=held.bits // 8))
        )
    return tuple(made)


def across_blocks(layout: LinearLayout, axis: int) -> list[tuple[int, ...]]:
    """Return the bases of the block id, without their coordinate along the axis."""
    return [beside(vector, axis) for vector in dict(layout.bases)["block"]]


def flat(layout: LinearLayout, column: int, shifts: list[int]) -> int:
    """Return a packed basis as an offset."""
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
    for register, value in enumerate(low[values]):
        if not register & copies:
            count_one(
                low, base, bins, held_type(element).bits, value, [mine, masks[register] if masks is not None else None]
            )
    low.barrier()
    return Move(low, base, layout_of(result).rename_outs(["offset"]), element).load()


def count_one(low: Lowering, base: Value, bins: int, bits: int, value: Value, conditions: list[Value | None]) -> None:
    """Add one to the bin of a value, if it is in range and all conditions hold."""
    b = low.builder
    inside = b.icmp("ult", value, bins) if bins.bit_length() <= value.type.bits else None
    may = reduce(partial(both, low), conditions, inside)
    address = b.gep(base, b.mul(as_i32(b, value), bits // 8))
    low.gpu.change_shared(b, address, may, RMWOp.ADD, constant(integer(bits), 1))


def selected_addresses(
    low: Lowering, op: Operation, memory: SSAValue, indices: SSAValue, bytes: int
) -> Iterator[tuple[int, Value]]:
    """Yield each register of `indices` that is no duplicate, with the address of the element (of `bytes`) that it
    selects.

    An index outside the axis is undefined; it is taken modulo the size.
    """
    if low.facts.num_ctas > 1:
        raise low.refuse(op, "indexed access to shared memory in a cluster")
    b, axis, buffer = low.builder, axis_of(op), cast(Shared, low[memory])
    layout, size = layout_of(indices.type), shape_of(memory.type)[axis]
    inverse = layout_of(memory.type).pseudoinvert()
    at = inverse.out_names.index("offset")
    columns = [[vector[at] for vector in dict(inverse.bases)[f"dim{dim}"]] for dim in range(len(layout.outs))]
    copies = copied_registers(indices.type)
    pairs = zip(low[indices], coordinates(low, layout), strict=True)
    for register, (index, coords) in enumerate(pairs):
        if not register & copies:
            used = (index_of(low, index, size) if dim == axis else coord for dim, coord in enumerate(coords))
            offset = b.xor(xor_columns(b, zip(used, columns, strict=True)).value, buffer.offset)
            yield register, b.gep(buffer.base, b.mul(offset, bytes))


@lowers(ttg.LocalGatherOp)
def lower_local_gather(low: Lowering, op: Operation) -> Registers:
    memory, indices = op.operands[:2]
    element, copies, made = element_type(op.results[0].type), copied_registers(indices.type), dict[int, Value]()
    held = held_type(element)
    bytes = held.bits // 8
    for register, address in selected_addresses(low, op, memory, indices, bytes):
        made[register] = from_memory(low, element, low.builder.load(held, address, align=bytes))
    return tuple(made[register & ~copies] for register in range(len(low[indices])))


@lowers(ttg.LocalScatterOp)
def lower_local_scatter(low: Lowering, op: Operation) -> None:
    memory, indices, values = op.operands[:3]
    element = element_type(values.type)
    bits, mine = held_type(element).bits, low.is_first_copy(layout_of(indices.type), in_block=True)
    shape = access_shape(bits, 1)
    for register, address in selected_addresses(low, op, memory, indices, bits // 8):
        given = pack(low, [to_memory(low, element, low[values][register])], shape.type)
        low.gpu.store_shared(low.builder, Access(address, shape, mine), given)
    low.gpu.stored_for_matrices(low.builder, memory.type)
