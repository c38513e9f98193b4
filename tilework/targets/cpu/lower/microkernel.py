"""Register blocks of a matrix multiplication, and the model of the host that chooses their size.

A block of `rows` x `vectors` accumulators walks along K. With 4 lanes, 2 rows and 1 vector, one step of K is

    acc0 += A[0, k] * B[k, 0:4]        one load of B, used by every row
    acc1 += A[1, k] * B[k, 0:4]        one element of A, broadcast to all lanes

ARM multiplies by a chosen lane of a register, so there a vector of A holds as many steps of K as it has lanes and A
needs no packing. x86 broadcasts an element while loading it.

Choosing: a step takes as long as its busiest unit, the multipliers (two), the load ports (two), the front end (four
instructions) or the latency of one accumulator. `choose_block` takes the block whose steps, summed over
the whole multiplication with its borders, take the least time, among those whose values fit in the registers:

    >>> neon = HostTarget.of("aarch64", "neoverse-n1", ())
    >>> choose_block(neon, dot_units.F32, 64, 64)
    Block(rows=4, vectors=4, lanes=4)

Operands of a matrix multiplication, converted and packed for the micro-kernel.

A keeps its order, row by row; it is copied only to convert it (f16 to f32, say). B is copied strip by strip: the
columns of one block, so that a step of K reads one contiguous line. Where an instruction consumes several steps of K at
once, they are contiguous. Two columns of B, four bytes at a time:

    k0: p q            k0 k1 k2 k3  k0 k1 k2 k3
    k1: r s      ==>    p  r  t  v   q  s  u  w
    k2: t u
    k3: v w
"""

from collections.abc import Callable, Sequence
from functools import cache

from xdsl.ir import Attribute

from tilework.light_dataclass import light_dataclass
from tilework.targets.cpu.target import CACHE_LINE, HostTarget
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.scalar_types import memory_type
from tilework.targets.llvm.scalars import widen
from tilework.targets.llvm.types import Type, i32, i64, integer, vector
from tilework.targets.llvm.values import Value, constant

MULTIPLIERS, LOAD_PORTS, FRONT_END = 2, 2, 4
LATENCY = {"aarch64": 4, "x86_64": 5}  # cycles until an accumulator can be added to again; Haswell's 5 is the longest

Accumulate = Callable[[Builder, Value, Value, Value], Value]
EmitBlock = Callable[..., list[Value]]


@light_dataclass
class Unit:
    """An instruction that multiplies and adds: `operand` is an element of a packed operand, which covers `group` steps
    of K.
    """

    name: str
    operand: Type
    sum: Type
    accumulate: Accumulate
    group: int = 1
    packed: Type | None = None  # the element while packing, `group` of which make an operand; None: the operand itself
    temporaries: int = 0  # registers for products that another instruction adds
    features: frozenset[str] = frozenset()  # that a function needs beside those which all code may use
    emit: "EmitBlock | None" = None  # of accumulators that are no rows; None: `emit_block`
    tiles: str = ""  # the instruction that multiplies whole tiles (dot_rules.py)
    right_offset: int = 0  # added to B, which makes it unsigned: the sums of A's rows correct for it

    @property
    def element(self) -> Type:
        return self.packed or self.operand


@light_dataclass
class Block:
    """Accumulators held in registers: `rows` x `vectors`, each of `lanes` lanes."""

    rows: int
    vectors: int
    lanes: int

    @property
    def columns(self) -> int:
        return self.vectors * self.lanes


def multiplies_by_lane(target: HostTarget) -> bool:
    """Return True if an instruction takes one factor from a lane of a register."""
    return target.arch == "aarch64"


@cache
def choose_block(target: HostTarget, unit: Unit, rows: int, columns: int) -> Block:
    """The block that the model finds fastest for `rows` x `columns` accumulators."""
    lanes = min(target.lanes(unit.sum.bits), columns)
    candidates = [
        Block(row_count, vector_count, lanes)
        for row_count in range(1, min(rows, 12) + 1)
        for vector_count in range(1, min(-(-columns // lanes), 12) + 1)
        if registers_of(target, row_count, vector_count) + unit.temporaries <= target.vector_registers
    ]

    def cost(block: Block) -> tuple[float, int, bool, float]:
        """Time; among equals, the least code; then whole cache lines of B and C; then the fewest loads."""
        borders = (1 + (rows % block.rows > 0)) * (1 + (columns % block.columns > 0))
        cuts_lines = block.columns * unit.sum.bits % (8 * CACHE_LINE) > 0
        return cycles_of(target, block, rows, columns), borders, cuts_lines, loads_of(target, block, rows, columns)

    return min(candidates, key=cost)


def registers_of(target: HostTarget, rows: int, vectors: int) -> int:
    """Registers alive in a step: accumulators, vectors of B, and those of A (one in flight where loads copy)."""
    return rows * vectors + vectors + (rows if multiplies_by_lane(target) else 1)


def cycles_of(target: HostTarget, block: Block, rows: int, columns: int) -> float:
    """Modelled time of one step of K over the whole multiplication: full blocks and borders."""
    whole_rows, row_border = divmod(rows, block.rows)
    whole_columns, column_border = divmod(-(-columns // block.lanes), block.vectors)
    heights = [(block.rows, whole_rows), (row_border, int(row_border > 0))]
    widths = [(block.vectors, whole_columns), (column_border, int(column_border > 0))]
    return sum(
        step_cycles(target, block, height, width) * times * repeats
        for height, times in heights
        for width, repeats in widths
    )


def loads_of(target: HostTarget, block: Block, rows: int, columns: int) -> float:
    """Vectors loaded in one step of K over the whole multiplication."""
    bands, strips = -(-rows // block.rows), -(-columns // block.columns)
    return bands * -(-columns // block.lanes) + strips * (rows / block.lanes if multiplies_by_lane(target) else rows)


def step_cycles(target: HostTarget, block: Block, rows: int, vectors: int) -> float:
    """Time of one step of K in one block."""
    multiplications = rows * vectors
    loads = vectors + (rows / block.lanes if multiplies_by_lane(target) else rows)
    latency = LATENCY.get(target.arch, 5)
    return max(multiplications / MULTIPLIERS, loads / LOAD_PORTS, (multiplications + loads + 1) / FRONT_END, latency)


@light_dataclass
class Operand:
    """The address of a matrix, and the bytes from one row (of A, C) or one step of K (of B) to the next."""

    address: Value
    stride: int


@light_dataclass
class Work:
    """One block: its factors, how many rows, the lanes of the vectors of a row, and how many operands along K."""

    left: Operand
    right: Operand
    rows: int
    widths: Sequence[int]
    depth: int


def along_depth(
    b: Builder, unit: Unit, work: Work, at_once: int, sums: Sequence[Value], steps: Callable[..., list[Value]]
) -> list[Value]:
    """Call ``steps(count, address in A, address in B, sums)`` for all operands along K, `at_once` of them per loop
    round.
    """
    trips, rest = divmod(work.depth, at_once)
    at_left, at_right = work.left.address, work.right.address
    if trips:
        with b.loop_carrying(constant(i32, 0), trips, 1, [at_left, at_right, *sums], unroll=1) as loop:
            here, there, *current = loop.carried
            following = steps(at_once, here, there, current)
            moved = [b.gep(here, at_once * unit.operand.bits // 8), b.gep(there, at_once * work.right.stride)]
            loop.next([*moved, *following])
        at_left, at_right, *sums = loop.results
    return steps(rest, at_left, at_right, sums) if rest else list(sums)


def emit_block(b: Builder, target: HostTarget, unit: Unit, work: Work, totals: Sequence[Value]) -> list[Value]:
    """totals + left @ right for one block, row by row."""
    by_lane, align = multiplies_by_lane(target), unit.element.bits // 8
    size = unit.operand.bits // 8
    starts = [sum(work.widths[:index]) * size for index in range(len(work.widths))]

    def held_row(start: Value, count: int) -> Callable[[int], Callable[[int], Value]]:
        """One row of A over `count` steps: a function from the step to a function from the lanes to the broadcast
        element.
        """
        if by_lane:
            values = b.load(vector(unit.operand, count), start, align=align)
            return lambda step: lambda lanes: b.shuffle(values, None, [step] * lanes)

        def broadcast(step: int) -> Callable[[int], Value]:
            loaded = b.load(unit.operand, b.gep(start, step * size), align=align)
            return lambda lanes: b.splat(loaded, lanes)

        return broadcast

    def steps(count: int, at_left: Value, at_right: Value, sums: Sequence[Value]) -> list[Value]:
        sums = list(sums)
        held = [held_row(b.gep(at_left, row * work.left.stride), count) for row in range(work.rows)]
        for step in range(count):
            line = b.gep(at_right, step * work.right.stride)
            pairs = zip(work.widths, starts, strict=True)
            across = [b.load(vector(unit.operand, width), b.gep(line, start), align=align) for width, start in pairs]
            for row in range(work.rows):
                factor = held[row](step)
                for column, value in enumerate(across):
                    position = row * len(across) + column
                    sums[position] = unit.accumulate(b, sums[position], factor(value.type.count), value)
        return sums

    return along_depth(b, unit, work, target.lanes(unit.operand.bits) if by_lane else 4, totals, steps)


CHUNK = 16  # columns rearranged at once where steps of K are interleaved
UNROLLED_ROWS = 8  # of chunks; LLVM takes long for more shuffles of bytes


def is_as_stored(element: Attribute, wanted: Type) -> bool:
    """Return True if elements of a buffer have the bits that an instruction takes; integers carry the bits of
    floats.
    """
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
        if unit.right_offset:  # half of the range: adding it inverts the highest bit
            line = b.xor(line, -unit.right_offset)
        b.store(line, there, align=unit.element.bits // 8)

    def pack_line(here: Value, there: Value, steps: int) -> None:
        if group * len(chunks) > UNROLLED_ROWS and chunks[0] == chunks[-1]:
            with b.loop(constant(i64, 0), columns, chunks[0], unroll=1) as start:
                at, to = (b.gep(address, start, type) for address, type in ((here, stored), (there, unit.operand)))
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
    """Compute the correction for B's offset: the offset times the sum of each row of A, which has `depth` operands; one
    integer a row.
    """
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
    """Lane 0 of every row, then lane 1 of every row ... of as many rows as a power of two: pairs of lanes, then pairs
    of pairs.
    """
    width, element, count = rows[0].type.count, rows[0].type.scalar, len(rows)
    order = [lane + side for lane in range(width) for side in (0, width)]
    while len(rows) > 1:
        pairs = [b.shuffle(first, second, order) for first, second in zip(rows[::2], rows[1::2], strict=True)]
        wider = vector(integer(2 * rows[0].type.scalar.bits), width)
        rows = [b.bitcast(pair, wider) for pair in pairs]
    return b.bitcast(rows[0], vector(element, count * width)) if count > 1 else rows[0]
