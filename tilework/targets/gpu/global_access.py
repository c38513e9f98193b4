"""`tt.load` and `tt.store`: predicated accesses to global memory, as wide as pointers and masks allow.

Registers that are adjacent in memory move together, up to 16 bytes at a time: as many as are adjacent in the layout,
have pointers that are known to be contiguous and aligned, and share one bit of the mask. Where several threads hold the
same element, all load it and one stores it.
"""

from math import prod

from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilework.ir import tt, ttg
from tilework.ir.effects import is_pure
from tilework.ir.encodings import encoding_of, layout_of
from tilework.ir.enums import CacheModifier, EvictionPolicy
from tilework.ir.functions import ops_in_order
from tilework.ir.rewrite import defining_op
from tilework.ir.ttg.shared_memory_ops import LINE
from tilework.ir.types import PointerType, array_values, bit_width, element_type, int_property, is_tensor, shape_of
from tilework.layouts.linear import LinearLayout
from tilework.layouts.to_linear import order
from tilework.targets.gpu.device import Access, Hints
from tilework.targets.gpu.lowering import Lowering, Registers, lowers
from tilework.targets.gpu.packing import access_shape, from_memory, held_type, pack, to_memory, unpack
from tilework.targets.gpu.views import register_coords
from tilework.targets.llvm.types import i32, i64
from tilework.targets.llvm.values import Value, constant

PLAIN = Hints()
MOST_KEPT = 1 << 18  # bits of a tile: an eighth of the L1 cache of a multiprocessor


def segments(op: Operation) -> list[SSAValue | None]:
    """Return the operand of each segment, or None if the segment is empty."""
    found: list[SSAValue | None] = []
    position = 0
    for count in array_values(op.properties["operandSegmentSizes"]):
        found.append(op.operands[position] if count else None)
        position += count
    return found


def vector_run(layout: LinearLayout, axis: int) -> int:
    """Return how many of the first registers are adjacent along `axis`."""
    run = 1
    for vector_ in dict(layout.bases)["register"]:
        if vector_[axis] != run or sum(map(bool, vector_)) != 1:
            break
        run *= 2
    return run


def width_of(low: Lowering, pointers: SSAValue, mask: SSAValue | None, bits: int, base: SSAValue | None = None) -> int:
    """Return how many registers move together; with a `base`, `pointers` are offsets from it."""
    type = pointers.type
    if not is_tensor(type):
        return 1
    encoding = encoding_of(type)
    assert encoding is not None
    dims = order(encoding, shape_of(type))
    layout = layout_of(type)
    if not dims:
        return 1
    aligned = low.axis.alignment(pointers, dims) if base is None else low.axis.alignment_from(base, pointers, dims)
    width = min(vector_run(layout, dims[0]), aligned, max(1, low.gpu.target.limits.vector_bits // bits))
    if mask is not None:
        width = min(width, low.axis.mask_alignment(mask, dims))
    return width


def pointee(type: Attribute) -> Attribute:
    pointer = element_type(type)
    assert isinstance(pointer, PointerType)
    return pointer.pointee


def hints_of(low: Lowering, op: Operation) -> Hints:
    """Return the cache hints of an op.

    Data that all programs load (the weights of a layer) gets `evict_last` in L1, so that streamed data does not evict
    it; in L2 such lines would outlive the kernel.
    """
    cache, evict = CacheModifier(int_property(op, "cache", 1)), EvictionPolicy(int_property(op, "evict", 1))
    is_own = evict is EvictionPolicy.NORMAL and type(op) is tt.LoadOp and is_the_same_for_all(low, op)
    return Hints(cache, EvictionPolicy.LAST if is_own else evict, bool(int_property(op, "isVolatile")), is_own)


def is_the_same_for_all(low: Lowering, load: Operation) -> bool:
    """Return True if all programs load the same small tile: its pointers depend only on arguments and constants."""
    pointers = load.operands[0]
    if not is_tensor(pointers.type) or prod(shape_of(pointers.type)) * bit_width(pointee(pointers.type)) > MOST_KEPT:
        return False
    left, seen = [pointers], {pointers}
    function = None
    while left:
        value = left.pop()
        op = defining_op(value)
        if op is None:
            function = value.owner.parent_op() if isinstance(value.owner, Block) else None
            if not isinstance(function, tt.FuncOp):
                return False
        elif type(op) is tt.GetProgramIdOp or op.regions or not is_pure(op):
            return False
        else:
            left += [operand for operand in op.operands if operand not in seen]
            seen.update(op.operands)
    return function is not None and has_program_ids(low, function)


def has_program_ids(low: Lowering, function: Operation) -> bool:
    """Return True if a function reads a program id; its ops are searched once."""
    if function not in low.program_ids:
        low.program_ids[function] = any(type(op) is tt.GetProgramIdOp for op in ops_in_order(*function.regions))
    return low.program_ids[function]


@lowers(tt.LoadOp)
def lower_load(low: Lowering, op: Operation) -> Registers:
    pointers, mask, other = segments(op)
    assert pointers is not None
    width = width_of(low, pointers, mask, held_type(pointee(pointers.type)).bits)
    return load_tile(low, op, low[pointers], width, mask, other)


def load_tile(
    low: Lowering, op: Operation, addresses: Registers, width: int, mask: SSAValue | None, other: SSAValue | None
) -> Registers:
    """Load from addresses in groups of `width` adjacent ones; equal addresses are loaded once."""
    element, hints = element_type(op.results[0].type), hints_of(low, op)
    masks: Registers | None = low[mask] if mask is not None else None
    others: Registers | None = low[other] if other is not None else None
    known: dict[tuple[str, ...], Registers] = {}
    made: list[Value] = []
    for first in range(0, len(addresses), width):
        fallback = others[first : first + width] if others is not None else None
        predicate = masks[first] if masks is not None else None
        key = (addresses[first].text, predicate.text if predicate else "", *(value.text for value in fallback or ()))
        if key not in known or hints.is_volatile:
            known[key] = load(low, element, addresses[first], width, predicate, fallback, hints)
        made += known[key]
    return tuple(made)


def load(
    low: Lowering,
    element: Attribute,
    address: Value,
    width: int,
    predicate: Value | None,
    other: Registers | None = None,
    hints: Hints = PLAIN,
) -> Registers:
    """Load `width` adjacent elements; where the predicate is false the result is `other`, or zero."""
    held = held_type(element)
    if predicate is not None and predicate.constant == 0:
        return other if other is not None else (from_memory(low, element, constant(held, 0)),) * width
    moved = access_shape(held.bits, width)
    if predicate is None or predicate.constant == 1:
        predicate = other = None
    given = None if other is None else pack(low, [to_memory(low, element, value) for value in other], moved.type)
    loaded = low.gpu.load(low.builder, Access(address, moved, predicate, hints), given)
    return tuple(from_memory(low, element, value) for value in unpack(low, loaded, held, width))


@lowers(tt.StoreOp)
def lower_store(low: Lowering, op: Operation) -> None:
    pointers, values, *masked = op.operands
    mask = masked[0] if masked else None
    width = width_of(low, pointers, mask, held_type(pointee(pointers.type)).bits)
    store_tile(low, op, low[pointers], width, values, mask)


def store_tile(
    low: Lowering, op: Operation, addresses: Registers, width: int, values: SSAValue, mask: SSAValue | None
) -> None:
    """Store a tile; of the threads that hold an element, one stores it."""
    element, registers = element_type(values.type), low[values]
    hints, moved = hints_of(low, op), access_shape(held_type(element).bits, width)
    masks = low[mask] if mask is not None else None
    mine, copies = store_predicate(low, values.type), copied_registers(values.type)
    for first in range(0, len(addresses), width):
        if not first & copies:
            predicate = both(low, mine, masks[first] if masks is not None else None)
            if predicate is not None and predicate.constant == 0:
                continue
            held = [to_memory(low, element, value) for value in registers[first : first + width]]
            given = pack(low, held, moved.type)
            low.gpu.store(low.builder, Access(addresses[first], moved, predicate, hints), given)


@lowers(ttg.FetchOp)
def lower_fetch(low: Lowering, op: Operation) -> None:
    """Prefetch each cache line once, by the thread whose part of the tile is the first in the line."""
    b, (pointers, *masked) = low.builder, op.operands
    mask, bits = masked[0] if masked else None, held_type(pointee(pointers.type)).bits
    addresses, masks = low[pointers], low[mask] if mask is not None else None
    width, offsets = width_of(low, pointers, mask, bits), line_offsets(low, pointers, bits)
    firsts: dict[int, Value] = {}
    for part in range(0, len(addresses), width):
        if (offset := offsets[part]) not in firsts:
            in_line = b.and_(b.trunc(b.ptrtoint(addresses[part], i64), i32), LINE - 1)
            firsts[offset] = b.icmp("ult", in_line, width * bits // 8)
        predicate = both(low, firsts[offset], masks[part] if masks is not None else None)
        assert predicate is not None, "one thread prefetches each line"
        low.gpu.fetch(b, addresses[part], predicate)


def line_offsets(low: Lowering, pointers: SSAValue, bits: int) -> list[int]:
    """Return each register's byte offset in a cache line, relative to the first register, as if all rows started at the
    same offset. Of rows that do not, the prefetch may miss a part of a line at one end."""
    contiguity = low.axis.of(pointers).contiguity
    dim = contiguity.index(max(contiguity))
    return [coords[dim] * bits // 8 % LINE for coords in register_coords(layout_of(pointers.type))]


def both(low: Lowering, one: Value | None, other: Value | None) -> Value | None:
    """Return the conjunction of two predicates; None is true."""
    found = other if one is None else one if other is None else low.builder.and_(one, other)
    return None if found is not None and found.constant == 1 else found


def copied_registers(type: Attribute) -> int:
    """Return the mask of the register index bits that only distinguish duplicates."""
    if not is_tensor(type):
        return 0
    return sum(1 << bit for bit, column in enumerate(layout_of(type).by_in["register"]) if not column)


def store_predicate(low: Lowering, type: Attribute) -> Value | None:
    """Return a condition that holds in the one thread that stores each element; the first thread stores a scalar."""
    if is_tensor(type):
        return low.is_first_copy(layout_of(type))
    mine = low.builder.icmp("eq", low.thread, 0)
    return mine if low.block.constant is not None else low.builder.and_(mine, low.builder.icmp("eq", low.block, 0))
