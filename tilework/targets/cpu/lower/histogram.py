"""`ttc.histogram`: how often each of 0 .. bins-1 occurs.

    bins[x] += 1   for every x of the source that is inside and not masked out

Without branches: an element that does not count adds 0 to bin 0. Elements that follow each other may fall into the same
bin, and the second increment would wait for the first to reach memory; so where there are many elements per bin, four
tables take turns and are added up at the end.
"""

from math import prod

from xdsl.ir import Attribute, Operation

from tilework.ir import ttc
from tilework.ir import types as ir
from tilework.targets.cpu.lower.lowering import Lowering, lowers, shaped
from tilework.targets.llvm.scalar_types import element_bytes, memory_type
from tilework.targets.llvm.types import i64
from tilework.targets.llvm.values import Value, constant

TABLES = 4


def tables_of(op: Operation) -> int:
    """The number of tables: one, or TABLES if adding them up costs less than they save."""
    count, bins = prod(ttc.buffer_of(op.operands[0]).shape), prod(ttc.buffer_of(op.operands[-1]).shape)
    return TABLES if count >= TABLES * bins else 1


def scratch_bytes(op: Operation) -> int:
    """What `lower_histogram` will ask for with `low.scratch`: every table but the result itself."""
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
        tables += [b.gep(start, number * size) for number in range(TABLES - 1)]
    b.fill(low[target], 0, size)

    def add(table: Value, position: Value) -> None:
        read = low.read(element, b.gep(low[source], b.mul(position, element_bytes(element))))
        value = b.cast(read, i64, is_signed=False)
        inside = b.icmp("ult", value, constant(i64, bins))
        if mask:
            inside = b.and_(inside, low.read(ir.i1, b.gep(low[mask[0]], position)))
        place = b.gep(table, b.select(inside, value, constant(i64, 0)), counted)
        align = counted.bits // 8
        b.store(b.add(b.load(counted, place, align=align), b.zext(inside, counted)), place, align=align)

    whole = count - count % len(tables)
    with b.loop(constant(i64, 0), whole, len(tables), unroll=1) as position:
        for number, table in enumerate(tables):
            add(table, b.add(position, number))
    for position in range(whole, count):
        add(tables[position - whole], constant(i64, position))
    if len(tables) > 1:
        add_tables(low, tables, bins, counter)


def add_tables(low: Lowering, tables: list[Value], bins: int, counter: Attribute) -> None:
    """The sum of all tables, into the first one."""
    b = low.builder
    lanes, align = min(bins, low.target.lanes(memory_type(counter).bits)), element_bytes(counter)

    def add(position: Value, lanes: int) -> None:
        places = [b.gep(table, b.mul(position, element_bytes(counter))) for table in tables]
        total, *values = [b.load(shaped(memory_type(counter), lanes), place, align=align) for place in places]
        for value in values:
            total = b.add(total, value)
        b.store(total, places[0], align=align)

    whole = bins - bins % lanes
    with b.loop(constant(i64, 0), whole, lanes, unroll=1) as position:
        add(position, lanes)
    if whole < bins:
        add(constant(i64, whole), bins - whole)
