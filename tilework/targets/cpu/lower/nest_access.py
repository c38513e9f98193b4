"""Loads, stores, reads and writes in a nest: one vector where memory is contiguous, lanes one by one where it is not.

An address is uniform (a scalar), `Linear` or a vector of pointers; a mask is absent, uniform, an `Interval` or a vector
of i1. A chunk with all lanes on takes the fast way, one test away at most. Otherwise a small function of the module
does the rest, lane by lane: it gets the mask as the bits of an integer and touches no memory of lanes that are off.
Lanes that are off read as `other`, or as 0 without it.
"""

import operator
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilework.analysis.provenance import NO_PARAMETER, Provenance, flows, is_address, spread
from tilework.ir import scf, tt, ttc, ttg
from tilework.ir.enums import CacheModifier, EvictionPolicy
from tilework.ir.functions import ops_in_order
from tilework.ir.types import int_property
from tilework.targets.cpu.lower.lanes import (
    FAST,
    SLOW,
    Interval,
    Kind,
    Linear,
    OpenNest,
    Stride,
    Strides,
    plus,
    strides,
    times,
)
from tilework.targets.cpu.lower.lowering import Lowering
from tilework.targets.cpu.target import CACHE_LINE
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.scalar_types import element_bytes, memory_type, pointee_bytes, register_type
from tilework.targets.llvm.types import Type, f64, i1, i32, i64, integer, ptr, vector, void
from tilework.targets.llvm.values import Value, constant, signed

if TYPE_CHECKING:
    from tilework.targets.cpu.lower.nests import Nest


LONG_ROW = 2048  # bytes; the hardware prefetcher or the loop along a longer one fetches most of it


def access_stride(op: Operation, strides: dict[SSAValue, Strides], dim: int) -> tuple[Stride, int] | None:
    """(stride in bytes along `dim`, bytes of an element) of an op that accesses memory."""
    if type(op) is tt.LoadOp or type(op) is tt.StoreOp:
        pointer = op.operands[0]
        return strides[pointer][dim] if pointer in strides else 0, pointee_bytes(pointer.type)
    if type(op) is ttc.ReadOp or type(op) is ttc.WriteOp:
        position = int(type(op) is ttc.WriteOp)
        total: Stride = 0
        for index, scale in scaled_indices(op, position):
            total = plus(total, times(strides[index][dim] if index in strides else 0, scale))
        return total, element_bytes(ttc.buffer_of(op.operands[position]).element)
    return None


def scaled_indices(op: Operation, position: int) -> list[tuple[SSAValue, int]]:
    """(index, bytes that one step of it moves) of the buffer that is operand `position`; its indices follow."""
    type_ = ttc.buffer_of(op.operands[position])
    return scaled(type_, op.operands[position + 1 : position + 1 + len(type_.shape)])


def scaled(type: ttc.BufferType, indices: Sequence[SSAValue]) -> list[tuple[SSAValue, int]]:
    """(index, bytes that one step of it moves), the last index first."""
    scales = accumulate(reversed(type.shape), operator.mul, initial=element_bytes(type.element))
    return list(zip(reversed(indices), scales, strict=False))


def element_address(low: Lowering, op: Operation, position: int, value_of: Callable[[SSAValue], Value]) -> Value:
    """The address of one element of the buffer that is operand `position`; its indices follow."""
    b, offset = low.builder, constant(i64, 0)
    for index, scale in scaled_indices(op, position):
        offset = b.add(offset, b.mul(b.sext(value_of(index), i64), scale))
    return b.gep(low[op.operands[position]], offset)


def buffer_address(nest: OpenNest, op: Operation, position: int) -> Kind:
    return address_of(nest, nest.low[op.operands[position]], scaled_indices(op, position))


def address_of(nest: OpenNest, buffer: Value, indices: Sequence[tuple[SSAValue, int]]) -> Kind:
    """The address of an element of a buffer; linear indices give linear addresses."""
    b = nest.b
    start, stride, scattered = constant(i64, 0), constant(i64, 0), None
    for index, scale in indices:
        kind = nest.kind(index)
        if isinstance(kind, Linear):
            start = b.add(start, b.mul(b.sext(kind.start, i64), scale))
            stride = b.add(stride, b.mul(b.sext(kind.stride, i64), scale))
            continue
        value = nest.vector(index)
        moved = b.mul(b.sext(value, value.type.with_scalar(i64)), scale)
        if value.type.is_vector:
            scattered = moved if scattered is None else b.add(scattered, moved)
        else:
            start = b.add(start, moved)
    base = b.gep(buffer, start)
    if scattered is not None:
        if stride.constant != 0:
            scattered = b.add(scattered, nest.spread_line(b.mul(nest.chunk, stride), stride))
        return b.gep(base, scattered)
    return base if stride.constant == 0 else Linear(base, stride)


# Ops


def emit_read(nest: OpenNest, op: Operation) -> None:
    nest.kinds[op.results[0]] = load(nest, op.results[0].type, buffer_address(nest, op, 0), None, None)


def emit_write(nest: OpenNest, op: Operation) -> None:
    store(nest, op.operands[0].type, buffer_address(nest, op, 1), nest.vector(op.operands[0]), None)


def emit_load(nest: OpenNest, op: Operation) -> None:
    type_ = op.results[0].type
    pointer, *rest = op.operands
    other = nest.vector(rest[1]) if len(rest) > 1 else constant(register_type(type_), 0)
    mask = mask_of(nest, rest)
    fetch_ahead(nest, op, type_)
    nest.kinds[op.results[0]] = load(nest, type_, nest.kind(pointer), mask, other, is_volatile(op))


def mask_of(nest: OpenNest, rest: Sequence[SSAValue]) -> Kind | None:
    """The mask among the operands behind a pointer (and a value), unless it is known to hold: no line."""
    mask = nest.kind(rest[0]) if rest else None
    if isinstance(mask, Interval) and nest.mode == FAST:
        return None
    return nest.vector(rest[0]) if rest and (nest.lanes == 1 or isinstance(mask, Linear)) else mask


def fetch_ahead(nest: OpenNest, op: Operation, element: Attribute) -> None:
    """Fetch what an access comes to soon: in a short row that is further down, or in this one if it is long. Lines that
    a store has to wait for hold up those behind it.
    """
    size, write = element_bytes(element), type(op) is tt.StoreOp
    if op in nest.later:
        fetch_lines(nest, size, nest.later[op], 0, write)
    elif nest.ahead and nest.mode != SLOW and nest.shape[nest.dim] * size > LONG_ROW:
        if 2 * nest.lanes * size >= CACHE_LINE:
            fetch_lines(nest, size, nest.kind(op.operands[0]), nest.ahead, write)


def fetch_lines(nest: OpenNest, size: int, address: Kind, distance: int, write: bool) -> None:
    """Prefetch the memory `distance` bytes after the lanes, if they are contiguous."""
    if not isinstance(address, Linear) or step_of(address) != size:
        return
    start = nest.base(address)
    for offset in range(0, nest.lanes * size, CACHE_LINE):
        nest.b.prefetch(nest.b.gep(start, distance + offset), write)


def emit_store(nest: OpenNest, op: Operation) -> None:
    pointer, value, *rest = op.operands
    mask = mask_of(nest, rest)
    past = None
    if op in nest.rows and nest.lanes * element_bytes(value.type) % CACHE_LINE == 0:
        past = Past(*nest.rows[op], lambda: fetch_ahead(nest, op, value.type))
    else:
        fetch_ahead(nest, op, value.type)
    store(nest, value.type, nest.kind(pointer), nest.vector(value), mask, past)


def streams(op: Operation) -> bool:
    """A store with the cache modifier ``.cs``: its data is not read soon, so it need not be cached."""
    return type(op) is tt.StoreOp and int_property(op, "cache") == CacheModifier.CS


def is_volatile(op: Operation) -> bool:
    return bool(int_property(op, "isVolatile")) or int_property(op, "cache") == CacheModifier.CV


def load(
    nest: OpenNest, element: Attribute, address: Kind, mask: Any, other: Value | None, volatile: bool = False
) -> Value:
    """The elements at `address`; a scalar if neither the address nor the mask nor `other` changes from lane to lane."""
    low, b, lanes = nest.low, nest.b, nest.lanes
    if isinstance(address, Linear) and lanes == 1:
        (address,) = lane_addresses(nest, address)
    if (
        isinstance(address, Value)
        and not address.type.is_vector
        and (mask is None or (isinstance(mask, Value) and not mask.type.is_vector))
    ):
        if mask is None:
            return low.read(element, address, volatile=volatile)
        assert other is not None
        count = other.type.count if other.type.is_vector else 1

        def once() -> list[Value]:
            value = low.read(element, address, volatile=volatile)  # type: ignore[arg-type]
            return [b.splat(value, count) if count > 1 else value]

        return b.if_else(mask, once, lambda: [other])[0]
    other = other if other is not None else constant(register_type(element), 0)
    default = other if other.type.is_vector else b.splat(other, lanes)

    def part() -> Value:
        return some_lanes(nest, element, address, by_lane(nest, mask), default, True)

    return chosen(nest, mask, lambda: all_lanes(nest, element, address, None, volatile), part, default)


def chosen(
    nest: OpenNest, mask: Any, whole: Callable[[], Value], part: Callable[[], Value], default: Value | None
) -> Value:
    """The fast way, the slow one, or a test between them. Without a `default` the ways have effects only."""
    b = nest.b

    def both(condition: Value, otherwise: Callable[[], Value]) -> Value:
        made = b.if_else(
            condition,
            lambda: [whole()] if default is not None else (whole(), [])[1],
            lambda: [otherwise()] if default is not None else (otherwise(), [])[1],
        )
        return made[0] if made else NOTHING

    if nest.is_rare:
        return part()
    if mask is None:
        return whole()
    if isinstance(mask, Interval):
        if nest.mode == SLOW:
            return part()
        is_full = b.icmp("sle", b.add(nest.chunk, nest.lanes), mask.high)
        if mask.low.constant != 0:
            is_full = b.and_(is_full, b.icmp("sge", nest.chunk, mask.low))
        return both(is_full, part)
    if not mask.type.is_vector:
        return both(mask, lambda: default if default is not None else NOTHING)
    return both(b.icmp("eq", b.mask_bits(mask), -1), part)


NOTHING = Value(void, "")
STREAM_ALIGN = 16  # bytes that stores past the caches need on x86; wider ones are divided


class Past(NamedTuple):
    """Return if a store goes past the caches, and if lines begin where it does; what else there is to do if it does
    not.
    """

    streams: Value
    is_line: Value
    otherwise: Callable[[], None]


def interval_lanes(nest: OpenNest, mask: Interval) -> tuple[Value, Value]:
    """(first lane, lane count) of a chunk inside an interval."""
    b, lanes, zero = nest.b, constant(i64, nest.lanes), constant(i64, 0)
    end = b.smin(b.sub(mask.high, nest.chunk), lanes)
    first = zero if mask.low.constant == 0 else b.smin(b.smax(b.sub(mask.low, nest.chunk), zero), lanes)
    return first, b.smax(b.sub(end, first), zero)


def lane_mask(nest: OpenNest, mask: Any) -> Value:
    """The lanes that are on, as a vector of i1."""
    if not isinstance(mask, Interval):
        return mask
    if mask.wraps.constant != 0:
        return nest.apply(mask.condition)
    b = nest.b
    first, count = interval_lanes(nest, mask)
    lanes = b.iota(vector(i32, nest.lanes))
    below = b.icmp("slt", lanes, b.splat(b.trunc(b.add(first, count), i32), nest.lanes))
    if first.constant == 0:
        return below
    return b.and_(below, b.icmp("sge", lanes, b.splat(b.trunc(first, i32), nest.lanes)))


def masked_type(nest: OpenNest, held: Type, size: int) -> Type | None:
    """The type as which the machine loads and stores some lanes of such a vector; None if it does not."""
    if not held.is_vector or held.is_pointer or not nest.low.target.masks_lanes(size):
        return None
    return held if size >= 4 else held.with_scalar(integer(8 * size))


def mask_bits(nest: OpenNest, mask: Any) -> Value:
    """The lanes that are on, as the bits of an i64."""
    b = nest.b
    if isinstance(mask, Interval) and mask.wraps.constant == 0:
        first, count = interval_lanes(nest, mask)
        one = constant(i64, 1)
        return b.shl(b.sub(b.shl(one, count), one), first)
    return b.zext(b.mask_bits(lane_mask(nest, mask)), i64)


def lane_addresses(nest: OpenNest, address: Kind) -> list[Value]:
    """The pointer of each lane."""
    b = nest.b
    if isinstance(address, Linear) and address.sum is not None:
        other, line, size = address.sum
        offsets = list(accumulate([line.stride] * (nest.lanes - 1), b.add, initial=nest.base(line)))
        addresses = zip(lane_addresses(nest, other), offsets, strict=True)
        return [b.gep(start, b.mul(b.sext(offset, i64), size)) for start, offset in addresses]
    if isinstance(address, Linear):
        base = nest.base(address)
        return [b.gep(base, b.mul(address.stride, lane)) for lane in range(nest.lanes)]
    assert isinstance(address, Value)
    return b.lanes(address) if address.type.is_vector else [address] * nest.lanes


def pointer_vector(nest: OpenNest, address: Kind) -> Value:
    b = nest.b
    if isinstance(address, Linear) and address.sum is not None:
        other, line, size = address.sum
        offsets = nest.spread_line(nest.base(line), line.stride)
        return b.gep(pointer_vector(nest, other), b.mul(b.sext(offsets, offsets.type.with_scalar(i64)), size))
    if isinstance(address, Linear):
        return nest.spread_line(nest.base(address), address.stride)
    assert isinstance(address, Value)
    return address if address.type.is_vector else b.splat(address, nest.lanes)


def step_of(address: Kind) -> int | None:
    """The constant stride of an address in bytes."""
    if isinstance(address, Linear) and address.stride.constant is not None:
        return signed(i64, address.stride.constant)
    return None


def all_lanes(
    nest: OpenNest,
    element: Attribute,
    address: Kind,
    value: Value | None,
    volatile: bool = False,
    past: Past | None = None,
) -> Value:
    """Load all lanes, or store `value` to all lanes."""
    low, b, lanes = nest.low, nest.b, nest.lanes
    size, step = element_bytes(element), step_of(address)
    if step == size or step == -size:
        assert isinstance(address, Linear)
        order = range(lanes) if step == size else range(lanes - 1, -1, -1)
        given = None if value is None else b.shuffle(value, None, order)
        start = b.gep(nest.base(address), 0 if step == size else -size * (lanes - 1))
        if given is None:
            return b.shuffle(low.read(element, start, lanes, volatile=volatile), None, order)
        if past is not None:
            store_past(nest, past, low.to_memory(element, given), start, size)
        else:
            low.write(element, given, start)
        return NOTHING
    if value is None:
        held = memory_type(element)
        found = [b.load(held, start, align=size, volatile=volatile) for start in lane_addresses(nest, address)]
        return low.from_memory(element, b.build_vector(found))
    for start, lane in zip(lane_addresses(nest, address), b.lanes(low.to_memory(element, value)), strict=True):
        b.store(lane, start, align=size)
    return NOTHING


def store_past(nest: OpenNest, past: Past, held: Value, start: Value, size: int) -> None:
    """Store past the caches, in vectors as wide as the alignment allows, or through them."""
    b = nest.b

    def stream(align: int) -> tuple[()]:
        b.stream(held, start, align)
        return ()

    def keep() -> tuple[()]:
        past.otherwise()
        b.store(held, start, align=size)
        return ()

    widest = nest.low.target.vector_bytes
    wide = past.is_line if widest > STREAM_ALIGN else constant(i1, 1)
    b.if_else(past.streams, lambda: b.if_else(wide, lambda: stream(widest), lambda: stream(STREAM_ALIGN)), keep)


def by_lane(nest: OpenNest, mask: Any) -> Any:
    """Return a mask with one i1 per lane, also for no mask or a uniform one."""
    if mask is None or (isinstance(mask, Value) and not mask.type.is_vector):
        return nest.b.splat(constant(i1, 1) if mask is None else mask, nest.lanes)
    return mask


def some_lanes(nest: OpenNest, element: Attribute, address: Kind, mask: Any, value: Value, is_load: bool) -> Value:
    """The lanes that are on: with a mask if the machine has such loads and they are contiguous, or one copy of bytes
    there, else a function of the module. Of a load `value` is what the others are.
    """
    low, b = nest.low, nest.b
    held = low.to_memory(element, value)
    size = element_bytes(element)
    is_contiguous = step_of(address) == size
    start = nest.base(address) if is_contiguous else pointer_vector(nest, address)  # type: ignore[arg-type]
    made = NOTHING
    if is_contiguous and (type_ := masked_type(nest, held.type, size)) is not None:
        on = lane_mask(nest, mask)
        if is_load:
            made = b.bitcast(b.masked_load(type_, start, on, b.bitcast(held, type_), align=size), held.type)
        else:
            b.masked_store(b.bitcast(held, type_), start, on, align=size)
    else:

        def called() -> list[Value]:
            kind = f"{'load' if is_load else 'store'}.{'contiguous' if is_contiguous else 'scattered'}"
            name = f"tilework.{kind}.{held.type.suffix}"
            if name not in low.module.functions:
                define_partial(low.module, name, start.type, held.type, size, is_load)
            found = b.call(name, held.type if is_load else void, [start, mask_bits(nest, mask), held])
            return [found] if is_load else []

        def copied() -> list[Value]:
            slot = b.alloca(held.type, align=64)
            b.store(held, slot, align=64)
            offset, count = (b.mul(each, size) for each in interval_lanes(nest, mask))
            here, there = b.gep(slot, offset), b.gep(start, offset)
            b.copy(here if is_load else there, there if is_load else here, count)
            return [b.load(held.type, slot, align=64)] if is_load else []

        is_run = is_contiguous and isinstance(mask, Interval)
        found = b.if_else(mask.wraps, called, copied) if is_run else called()
        made = found[0] if is_load else NOTHING
    return low.from_memory(element, made) if is_load else NOTHING


def store(nest: OpenNest, element: Attribute, address: Kind, value: Value, mask: Any, past: Past | None = None) -> None:
    """Write lanes; of lanes with the same address the last one wins."""
    low, b, lanes = nest.low, nest.b, nest.lanes
    if isinstance(address, Linear) and lanes == 1:
        (address,) = lane_addresses(nest, address)
    is_single = isinstance(address, Value) and not address.type.is_vector and not value.type.is_vector
    if is_single and (mask is None or (isinstance(mask, Value) and not mask.type.is_vector)):
        if mask is None:
            low.write(element, value, address)  # type: ignore[arg-type]
        elif mask.constant != 0:
            with b.if_(mask):
                low.write(element, value, address)  # type: ignore[arg-type]
        return
    full = value if value.type.is_vector or lanes == 1 else b.splat(value, lanes)

    def part() -> Value:
        return some_lanes(nest, element, address, by_lane(nest, mask), full, False)

    chosen(nest, mask, lambda: all_lanes(nest, element, address, full, past=past), part, None)


def define_partial(module: Any, name: str, start: Type, lanes: Type, size: int, is_load: bool) -> None:
    """Define ``lanes @name(address, i64 bits, lanes values)``, which moves the lanes whose bits are set, the lowest
    first."""
    params = [(start, "address"), (i64, "bits"), (lanes, "values")]
    attributes = ("nounwind", "noinline")
    function = module.function(name, lanes if is_load else void, params, linkage="internal", attributes=attributes)
    b = Builder(function)
    address, bits, values = function.args
    slot = b.alloca(lanes, align=64)
    addresses = b.alloca(start, align=64) if start.is_vector else None
    b.store(values, slot, align=64)
    if addresses is not None:
        b.store(address, addresses, align=64)

    def move_one(left: Value) -> tuple[Value, Value]:
        lane = b.cttz(left)
        item = b.gep(slot, lane, lanes.scalar)
        if addresses is None:
            target = b.gep(address, lane, lanes.scalar)
        else:
            target = b.load(ptr, b.gep(addresses, lane, ptr), align=8)
        source, goal = (target, item) if is_load else (item, target)
        b.store(b.load(lanes.scalar, source, align=size), goal, align=size)
        rest = b.and_(left, b.add(left, -1))
        return rest, b.icmp("eq", rest, 0)

    with b.if_(b.icmp("ne", bits, 0)):
        b.until(bits, move_one)
    b.ret(b.load(lanes, slot, align=64) if is_load else None)


# ---- Stores past the caches: those that request it (``.cs``), and those of launches that store more than the last
# cache holds.
#
#     tl.store(out + i, x + y)        65536 elements of 4 bytes; in a grid of 256 programs these are 64 MB
#
#     if grid * 262144 >= 36 MB and the row begins at a multiple of 16 bytes:      once for each row
#         stores go past the caches: lines are not read first, and drive no others out
#     else:
#         they remain in the cache for the next reader
#
# The size of the cache is that of the machine which compiles. Whether such stores pay depends on the processor:
# `target.py` has those that were measured; on others the kernel must request them. A loop around the nest multiplies
# what is stored by its rounds. Left alone are arrays that the kernel itself reads, tiles that each round of a loop
# stores to the same address, small ones, and kernels whose programs may wait for each other. x86 keeps no order of such
# stores: a fence follows each nest (`fork.py`).
#
# Lines of memory that a nest fetches into the cache before they are needed: of rows further down, and of stores that
# later nests do. Those at some distance in the same row are `nest_access.fetch_ahead`'s.


ROWS_AHEAD = 2  # of a tile: its rows are far apart, so the hardware prefetcher does not find the next one


class Promised(NamedTuple):
    """A store of a later nest: the block, the ops that make its address, the address, the bytes of an element; whether
    it goes past the caches.
    """

    block: Block
    ops: list[Operation]
    address: SSAValue
    size: int
    past: Value


def later_rows(nest: "Nest", depth: int) -> dict[Operation, Linear]:
    """The addresses of accesses to short rows some iterations of the outer loop later."""
    outer = nest.order[depth - 1]
    accesses = [op for op in nest.ops if type(op) in (tt.LoadOp, tt.StoreOp) and row_bytes(nest, op) <= LONG_ROW]
    longest = max((row_bytes(nest, op) for op in accesses), default=0)
    rows = max(ROWS_AHEAD, 2 * nest.ahead // longest) if accesses else 0
    if not accesses or nest.shape[outer] <= rows:
        return {}
    around = nest.block.args[outer]
    now, nest.kinds = nest.kinds, dict(nest.kinds)
    nest.kinds[around] = nest.b.add(nest.vector(around), rows)
    for op in nest.ops:
        if nest.depths[op] == depth and type(op) in nest.low.elementwise:
            if nest.stride(op.results[0]) is not None:
                nest.kinds[op.results[0]] = nest.form(op)
    found = {op: kind for op in accesses if isinstance(kind := nest.kinds.get(op.operands[0]), Linear)}
    nest.kinds = now
    return found


def row_bytes(nest: "Nest", access: Operation) -> int:
    return nest.shape[nest.dim] * pointee_bytes(access.operands[0].type)


def fetch_promised(nest: "Nest") -> None:
    """Fetch the lines at these indices that later nests store to."""
    for block, ops, address, size, past in nest.promised:
        known, nest.kinds = nest.kinds, dict(nest.kinds)
        nest.strides |= strides(block, nest.shape)
        nest.kinds |= {arg: nest.kind(own) for arg, own in zip(block.args, nest.block.args, strict=True)}
        with nest.b.if_(nest.b.xor(past, constant(i1, 1))):
            for op in ops:
                nest.kinds[op.results[0]] = nest.form(op)
            fetch_lines(nest, size, nest.kind(address), 0, write=True)
        nest.kinds = known


LEAST = 4096  # bytes of a tile: waiting for the stores at its end takes some time
MEETING = (tt.AtomicRMWOp, tt.AtomicCASOp, tt.CallOp, ttg.BarrierOp)  # programs that have these may know of each other


def streamed_stores(function: Operation) -> frozenset[Operation]:
    """The stores of a kernel that may go past the caches if the launch stores much."""
    ops = ops_in_order(*function.regions)
    stores = [op for op in ops if type(op) is tt.StoreOp and is_plain(op)]
    if not stores or any(type(op) in MEETING or (type(op) is tt.LoadOp and is_volatile(op)) for op in ops):
        return frozenset()
    provenance: Provenance = {}
    for position, argument in enumerate(function.regions[0].blocks[0].args):
        if is_address(argument.type):
            provenance[argument] = frozenset({position})
    spread(provenance, [edge for op in ops for edge in flows(op)])
    read = [provenance.get(op.operands[0], NO_PARAMETER) for op in ops if type(op) is tt.LoadOp]
    if NO_PARAMETER in read:
        return frozenset()
    known = frozenset[int]().union(*read)
    return frozenset(op for op in stores if (own := provenance.get(op.operands[0], NO_PARAMETER)) and not own & known)


def is_plain(store: Operation) -> bool:
    """A store of a tile without a cache modifier, to another address in each iteration of the loops around it."""
    nest = store.parent_op()
    if type(nest) is not ttc.NestOp or int_property(store, "cache") != CacheModifier.NONE:
        return False
    if int_property(store, "evict") == EvictionPolicy.LAST:
        return False
    return all(type(loop) is scf.ForOp and changes_in(store.operands[0], loop) for loop in loops_around(nest))


def loops_around(nest: Operation) -> Iterator[Operation]:
    """Yield the loops around a nest, from the innermost one."""
    around = nest.parent_op()
    while around is not None:
        if type(around) is scf.ForOp or type(around) is scf.WhileOp:
            yield around
        around = around.parent_op()


def changes_in(value: SSAValue, loop: Operation) -> bool:
    """Return True if a value is computed from what is another one in each round."""
    left, seen = [value], set[SSAValue]()
    while left:
        owner = (value := left.pop()).owner
        if value in seen:
            continue
        seen.add(value)
        if owner is loop.regions[0].block:
            return True
        op = owner.parent_op() if isinstance(owner, Block) else owner
        if op is not None and (op is owner or type(op) is scf.ForOp):
            left += op.operands
    return False


def is_large(low: Lowering, nest: Operation, size: int) -> Value:
    """Return True if a launch stores more than the last cache holds, if a run of the nest stores `size` bytes."""
    b = low.builder
    stored, limit = constant(f64, float(size)), constant(f64, float(low.target.streams_from))
    for extent in low.grid:
        stored = b.fmul(stored, b.sitofp(extent, f64))
    for loop in loops_around(nest):
        start, end, step = (b.sitofp(low[operand], f64) for operand in loop.operands[:3])
        stored, limit = b.fmul(stored, b.fsub(end, start)), b.fmul(limit, step)
    return b.fcmp("oge", stored, limit)


def stores_past(nest: "Nest", op: Operation) -> dict[Operation, Value]:
    """The stores of a nest that go past the caches, and whether they do."""
    requested = {store: constant(i1, 1) for store in nest.ops if streams(store)}
    fitting = [store for store in nest.ops if store in nest.low.streamed and suits(nest, store)]
    stored = sum(element_bytes(store.operands[1].type) for store in fitting) * prod(nest.shape)
    if stored < LEAST:
        return requested
    return requested | dict.fromkeys(fitting, is_large(nest.low, op, stored))


def suits(nest: "Nest", store: Operation) -> bool:
    """Return True if each chunk of the innermost loop fills lines."""
    size = element_bytes(store.operands[1].type)
    is_contiguous = bool(nest.shape) and access_stride(store, nest.strides, nest.dim) == (size, size)
    return is_contiguous and nest.order[-1] == nest.dim and nest.lanes * size % CACHE_LINE == 0


def rows_past(nest: "Nest") -> dict[Operation, tuple[Value, Value]]:
    """Return for the stores of a row two bits: whether they bypass the caches, and whether the row begins at a cache
    line."""
    b, found = nest.b, dict[Operation, tuple[Value, Value]]()
    for store, past in nest.past.items():
        line = nest.kinds.get(store.operands[0])
        if isinstance(line, Linear) and line.sum is None and step_of(line) == element_bytes(store.operands[1].type):
            address = b.ptrtoint(line.start, i64)
            is_line, is_aligned = (b.icmp("eq", b.and_(address, align - 1), 0) for align in (CACHE_LINE, STREAM_ALIGN))
            found[store] = b.and_(past, is_aligned), is_line
    return found
