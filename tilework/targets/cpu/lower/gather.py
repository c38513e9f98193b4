"""`ttc.gather`: elements of a buffer picked along one axis by an index buffer of the result's shape.

    dst[o, p, j] = src[o, idx[o, p, j], j]          o: the axes before, j: those after, as one index each

An index outside the axis is taken modulo its size (its low bits, where the size is a power of two), so that no memory
outside the buffer is read.
"""

from math import prod

from xdsl.ir import Operation

from tilework.ir import ttc
from tilework.ir.types import axis_of
from tilework.targets.cpu.lower.lowering import Lowering, lowers
from tilework.targets.llvm.scalar_types import element_bytes
from tilework.targets.llvm.types import i64
from tilework.targets.llvm.values import Value, constant

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

    def move(source_start: Value, target_start: Value, place: Value) -> None:
        position = b.add(target_start, place)
        index = low.read(index_kind.element, b.gep(low[indices], b.mul(position, index_bytes)))
        index = wrapped(low, index, size)
        column = remainder(low, place, inner)
        offset = b.add(source_start, b.add(b.mul(index, inner), column))
        value = low.read(kind.element, b.gep(low[source], b.mul(offset, bytes_)))
        low.write(kind.element, value, b.gep(low[target], b.mul(position, bytes_)))

    with b.loop(constant(i64, 0), prod(kind.shape[:axis]), unroll=1) as outer:
        source_start, target_start = b.mul(outer, size * inner), b.mul(outer, count)
        with b.loop(constant(i64, 0), count, step, unroll=1) as place:
            for lane in range(step):
                move(source_start, target_start, b.add(place, lane))


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
