"""Operands of a matrix product, converted and rearranged for the micro-kernel.

A stays in its order, row by row; it is copied only to convert it (f16 to f32, say). B is copied strip by strip: the
columns of one block, so that a step of K reads one contiguous line. Where an instruction consumes several steps of K at
once, they lie side by side. Two columns of B, four bytes at a time:

    k0: p q            k0 k1 k2 k3  k0 k1 k2 k3
    k1: r s      ==>    p  r  t  v   q  s  u  w
    k2: t u
    k3: v w
"""

from collections.abc import Sequence

from xdsl.ir import Attribute

from tilework.targets.cpu.lower.microkernel import Operand, Unit
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.conversions import widen
from tilework.targets.llvm.scalar_types import memory_type
from tilework.targets.llvm.types import Type, i32, i64, integer, vector
from tilework.targets.llvm.values import Value, constant

CHUNK = 16  # columns rearranged at once where steps of K are interleaved
UNROLLED_ROWS = 8  # of chunks; LLVM takes long for more shuffles of bytes


def is_as_stored(element: Attribute, wanted: Type) -> bool:
    """Whether elements of a buffer have the bits that an instruction takes; integers carry the bits of floats."""
    stored = memory_type(element)
    return stored is wanted or (wanted.is_int and not stored.is_int and stored.bits == wanted.bits)


def converted(b: Builder, value: Value, element: Attribute, wanted: Type) -> Value:
    """Elements of a buffer as `wanted`, exactly."""
    if is_as_stored(element, wanted):
        return b.bitcast(value, value.type.with_scalar(wanted))
    if not wanted.is_int:
        value = widen(b, value, element)
    return value if value.type.scalar is wanted else b.cast(value, value.type.with_scalar(wanted))


def convert_all(
    b: Builder, source: Value, element: Attribute, target: Value, wanted: Type, count: int, lanes: int
) -> None:
    """Copy `count` elements that follow each other."""
    stored = memory_type(element)

    def copy(index: Value, width: int) -> None:
        value = b.load(vector(stored, width), b.gep(source, index, stored), align=stored.bits // 8)
        b.store(converted(b, value, element, wanted), b.gep(target, index, wanted), align=wanted.bits // 8)

    whole = count - count % lanes
    if whole:
        with b.loop(constant(i64, 0), whole, lanes, unroll=1) as index:
            copy(index, lanes)
    if count > whole:
        copy(constant(i64, whole), count - whole)


def pack_strip(
    b: Builder, unit: Unit, source: Operand, element: Attribute, panel: Value, depth: int, widths: Sequence[int]
) -> None:
    """Copy a strip of B, `depth` steps of K of as many columns as `widths` add up to, one line after another; steps
    that are missing in the last group are zeros."""
    stored, columns, group = memory_type(element), sum(widths), unit.group
    chunks = widths if group == 1 else chunked(columns)
    line_bytes = columns * (unit.operand.bits // 8)

    def pack_chunk(here: Value, there: Value, steps: int, width: int) -> None:
        rows = [
            converted(b, b.load(vector(stored, width), at, align=stored.bits // 8), element, unit.element)
            for step in range(steps)
            for at in [b.gep(here, step * source.stride)]
        ]
        rows += [constant(vector(unit.element, width), 0)] * (group - steps)
        line = interleaved(b, rows)
        if unit.right_offset:  # half of the numbers that there are: adding it turns over the highest bit
            line = b.xor(line, -unit.right_offset)
        b.store(line, there, align=unit.element.bits // 8)

    def pack_line(here: Value, there: Value, steps: int) -> None:
        if group * len(chunks) > UNROLLED_ROWS and chunks[0] == chunks[-1]:
            with b.loop(constant(i64, 0), columns, chunks[0], unroll=1) as start:
                at, to = (b.gep(place, start, type) for place, type in ((here, stored), (there, unit.operand)))
                pack_chunk(at, to, steps, chunks[0])
            return
        start = 0
        for width in chunks:
            at, to = b.gep(here, start * (stored.bits // 8)), b.gep(there, start * (unit.operand.bits // 8))
            pack_chunk(at, to, steps, width)
            start += width

    with b.loop_carrying(constant(i64, 0), depth // group, 1, [source.address, panel], unroll=1) as loop:
        here, there = loop.carried
        pack_line(here, there, group)
        loop.next([b.gep(here, group * source.stride), b.gep(there, line_bytes)])
    if rest := depth % group:
        here, there = loop.results
        pack_line(here, there, rest)


def sum_rows(b: Builder, unit: Unit, left: Operand, sums: Value, rows: int, depth: int, lanes: int) -> None:
    """What makes up for B's offset: that times the sum of each row of A, which has `depth` operands; one number a row."""
    one = constant(vector(unit.element, lanes * unit.group), 1)

    def added(total: Value, at: Value, width: int) -> Value:
        ones = b.bitcast(b.shuffle(one, None, range(width * unit.group)), vector(unit.operand, width))
        values = b.load(ones.type, at, align=unit.element.bits // 8)
        return unit.accumulate(b, total, values, ones)

    whole, rest = divmod(depth, lanes)
    with b.loop(constant(i64, 0), rows, unroll=1) as row:
        at, total = b.gep(left.address, b.mul(row, left.stride)), constant(i32, 0)
        if whole:
            zeros, size = constant(vector(i32, lanes), 0), lanes * unit.operand.bits // 8
            with b.loop_carrying(constant(i64, 0), whole, 1, [at, zeros], unroll=1) as loop:
                here, found = loop.carried
                loop.next([b.gep(here, size), added(found, here, lanes)])
            at, found = loop.results
            total = b.reduce("add", found)
        if rest:
            total = b.add(total, b.reduce("add", added(constant(vector(i32, rest), 0), at, rest)))
        b.store(b.mul(total, unit.right_offset), b.gep(sums, row, i32), align=4)


def chunked(columns: int) -> list[int]:
    """`columns` in pieces of at most CHUNK."""
    whole, rest = divmod(columns, CHUNK)
    return [CHUNK] * whole + ([rest] if rest else [])


def interleaved(b: Builder, rows: Sequence[Value]) -> Value:
    """Lane 0 of every row, then lane 1 of every row ... of as many rows as a power of two: pairs of lanes, then pairs of pairs."""
    width, element, count = rows[0].type.count, rows[0].type.scalar, len(rows)
    order = [lane + side for lane in range(width) for side in (0, width)]
    while len(rows) > 1:
        pairs = [b.shuffle(first, second, order) for first, second in zip(rows[::2], rows[1::2], strict=True)]
        wider = vector(integer(2 * rows[0].type.scalar.bits), width)
        rows = [b.bitcast(pair, wider) for pair in pairs]
    return b.bitcast(rows[0], vector(element, count * width)) if count > 1 else rows[0]
