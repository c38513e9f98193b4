"""`ttc.gather`: elements of a buffer picked along one axis by an index buffer of the result's shape.

    dst[o, p, j] = src[o, idx[o, p, j], j]          o: the axes before, j: those after, as one index each

An index outside the axis is taken modulo its size (its low bits, where the size is a power of two), so that no memory
outside the buffer is read.

`ttc.histogram`: how often each of 0 .. bins-1 occurs.

    bins[x] += 1   for every x of the source that is inside and not masked out

Without branches: an element that does not count adds 0 to bin 0. Elements that follow each other may fall into the same
bin, and the second increment would wait for the first to reach memory; so where there are many elements per bin, four
tables alternate and are added up at the end.
"""

from math import prod

from xdsl.ir import Attribute, Operation

from tilework.ir import ttc
from tilework.ir import types as ir
from tilework.ir.types import axis_of
from tilework.targets.cpu.lower.lowering import Lowering, lowers, shaped
from tilework.targets.llvm.scalar_types import element_bytes, memory_type
from tilework.targets.llvm.types import i64
from tilework.targets.llvm.values import Value, constant

TABLES = 4


def tables_of(op: Operation) -> int:
    """Return the number of tables: one, or TABLES if adding them up costs less than they save."""
    count, bins = prod(ttc.buffer_of(op.operands[0]).shape), prod(ttc.buffer_of(op.operands[-1]).shape)
    return TABLES if count >= TABLES * bins else 1


def scratch_bytes(op: Operation) -> int:
    """The bytes that `lower_histogram` will request with `low.scratch`: every table but the result itself."""
    result = ttc.buffer_of(op.operands[-1])
    return (tables_of(op) - 1) * prod(result.shape) * element_bytes(result.element)


@lowers(ttc.HistogramOp)
def lower_histogram(low: Lowering, op: Operation) -> None:
    b = low.builder
    source, *mask, target = op.operands
    element, counter = ttc.buffer_of(source).element, ttc.buffer_of(target).element
    count, bins, counted = prod(ttc.buffer_of(source).shape), prod(ttc.buffer_of(target).shape), memory_type(counter)
    size = bins * element_bytes(counter)
    tables = [low[target]]
    if extra := scratch_bytes(op):
        start = low.scratch(extra)
        b.fill(start, 0, extra)
        tables += [b.gep(start, index * size) for index in range(TABLES - 1)]
    b.fill(low[target], 0, size)

    def add(table: Value, position: Value) -> None:
        read = low.read(element, b.gep(low[source], b.mul(position, element_bytes(element))))
        value = b.cast(read, i64, is_signed=False)
        inside = b.icmp("ult", value, constant(i64, bins))
        if mask:
            inside = b.and_(inside, low.read(ir.i1, b.gep(low[mask[0]], position)))
        address = b.gep(table, b.select(inside, value, constant(i64, 0)), counted)
        align = counted.bits // 8
        b.store(b.add(b.load(counted, address, align=align), b.zext(inside, counted)), address, align=align)

    whole = count - count % len(tables)
    with b.loop(constant(i64, 0), whole, len(tables), unroll=1) as position:
        for index, table in enumerate(tables):
            add(table, b.add(position, index))
    for position in range(whole, count):
        add(tables[position - whole], constant(i64, position))
    if len(tables) > 1:
        add_tables(low, tables, bins, counter)


def add_tables(low: Lowering, tables: list[Value], bins: int, counter: Attribute) -> None:
    """The sum of all tables, into the first one."""
    b = low.builder
    lanes, align = min(bins, low.target.lanes(memory_type(counter).bits)), element_bytes(counter)

    def add(position: Value, lanes: int) -> None:
        addresses = [b.gep(table, b.mul(position, element_bytes(counter))) for table in tables]
        total, *values = [b.load(shaped(memory_type(counter), lanes), address, align=align) for address in addresses]
        for value in values:
            total = b.add(total, value)
        b.store(total, addresses[0], align=align)

    whole = bins - bins % lanes
    with b.loop(constant(i64, 0), whole, lanes, unroll=1) as position:
        add(position, lanes)
    if whole < bins:
        add(constant(i64, whole), bins - whole)


AT_ONCE = 4  # elements per round of the loop, as loads from anywhere take long


@lowers(ttc.GatherOp)
def lower_gather(low: Lowering, op: Operation) -> None:
    b = low.builder
    source, indices, target = op.operands
    axis = axis_of(op)
    kind, index_kind = ttc.buffer_of(source), ttc.buffer_of(indices)
    size, picked, inner = kind.shape[axis], index_kind.shape[axis], prod(kind.shape[axis + 1 :])
    bytes_, index_bytes = element_bytes(kind.element), element_bytes(index_kind.element)
    count = picked * inner
    step = AT_ONCE if count % AT_ONCE == 0 else 1

    def move(source_start: Value, target_start: Value, within: Value) -> None:
        position = b.add(target_start, within)
        index = low.read(index_kind.element, b.gep(low[indices], b.mul(position, index_bytes)))
        index = wrapped(low, index, size)
        column = remainder(low, within, inner)
        offset = b.add(source_start, b.add(b.mul(index, inner), column))
        value = low.read(kind.element, b.gep(low[source], b.mul(offset, bytes_)))
        low.write(kind.element, value, b.gep(low[target], b.mul(position, bytes_)))

    with b.loop(constant(i64, 0), prod(kind.shape[:axis]), unroll=1) as outer:
        source_start, target_start = b.mul(outer, size * inner), b.mul(outer, count)
        with b.loop(constant(i64, 0), count, step, unroll=1) as within:
            for lane in range(step):
                move(source_start, target_start, b.add(within, lane))


def wrapped(low: Lowering, index: Value, size: int) -> Value:
    """A signed index modulo `size`, as i64."""
    b = low.builder
    wide = b.cast(index, i64)
    if size & (size - 1) == 0:
        return b.and_(wide, size - 1)
    rest = b.srem(wide, constant(i64, size))
    return b.select(b.icmp("slt", rest, 0), b.add(rest, size), rest)


def remainder(low: Lowering, value: Value, size: int) -> Value:
    """A non-negative value modulo `size`."""
    b = low.builder
    return b.and_(value, size - 1) if size & (size - 1) == 0 else b.urem(value, constant(i64, size))
