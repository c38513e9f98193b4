"""`ttc.scan`: running combinations along one axis of a buffer.

The buffer is seen as outer x length x inner, with `length` the scanned axis. Four ways, the first that applies:

* *columns*: the axis is not the last one, so neighbours in memory belong to different scans. Vectors of neighbours walk
  along the axis, the running value in registers.
* *rows*: at least as many rows as a vector has lanes. Squares of lanes x lanes elements are transposed in registers, so
  that the lanes of a vector are different rows; then as before, and transposed back.
* *prefix*: few rows, a cheap combination. Within a vector in logarithmic steps, for 4 lanes:

      a      b      c      d
      a      ab     bc     cd         combined with the lane one below
      a      ab     abc    abcd       combined with the lane two below

  Of several vectors at once; the running value is combined last, so only that step waits for the vectors before.
* *sequence*: one element after the other, for combinations with control flow.

Where the axis is no multiple of the lanes, the square at the end is narrower, and the last elements of a prefix come
one by one.

Where the order of combinations is promised: `scan.py`. All but the last need a combination that runs on vectors. The
left operand is always what came earlier in the scan.

`ttc.scan` by the tree of `ir/module_facts.py`, while chunks of elements come in the order of the scan.

    chunk          0      1         2              3                            4
    own scan       s0     s1        s2             s3                           s4
    in front              t0        t01            t2, then t01                 t0123
    kept           t0     t01       t2             t0123                        t4            on level 0, 1, 0, 2, 0

Chunk `i` combines the totals that its ones (in reverse, its zeros) select with all its elements, from the lowest
level up. With the ones at its end done its last element is the total of a whole block, which is kept. A chunk is one
element, or as many as a vector has lanes; those are scanned in the same way, by shuffles. A total is put in front of
about half as many vectors as there are levels.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from xdsl.ir import Attribute, Operation

from tilework.ir import arith, ttc
from tilework.ir.module_facts import follows_tree
from tilework.ir.nesting import only_op
from tilework.light_dataclass import light_dataclass
from tilework.targets.cpu.lower.fork import ACCESS_COST, FORK_WORK, share_op
from tilework.targets.cpu.lower.lowering import Lowering, lowers
from tilework.targets.cpu.lower.reduce_rules import Stack
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.scalar_types import element_bytes, register_type
from tilework.targets.llvm.types import i64
from tilework.targets.llvm.values import Value, constant

IN_FLIGHT = 4  # vectors handled together
# bits of the vectors that one instruction interleaves; for longer ones LLVM searches for long, and finds more of them
INTERLEAVED = 128
MOST_LANES = 8  # a square of lanes x lanes repeats the combination `lanes` times
CHEAP = 8  # a combination of more ops is not repeated for every logarithmic step
SUMS = frozenset({arith.AddfOp, arith.AddiOp})
Row = list[Value]


@light_dataclass
class Buffers:
    """One source and its target."""

    element: Attribute
    source: Value
    target: Value

    def at(self, b: Builder, base: Value, offset: Value) -> Value:
        return b.gep(base, b.mul(offset, element_bytes(self.element)))


class Scan:
    """One `ttc.scan` being lowered; positions count along the scan, from the end of the axis with `reverse`."""

    def __init__(self, low: Lowering, op: Operation) -> None:
        self.low, self.b = low, low.builder
        count = len(op.operands) // 2
        properties: Any = op.properties
        axis, self.reverse = (properties[name].value.data for name in ("axis", "reverse"))
        shape = ttc.buffer_of(op.operands[0]).shape
        self.outer, self.length, self.inner = prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])
        self.buffers = [
            Buffers(ttc.buffer_of(source).element, low[source], low[target])
            for source, target in zip(op.operands[:count], op.operands[count:], strict=True)
        ]
        self.block = op.regions[0].blocks[0]
        is_vector = len(op.regions[0].blocks) == 1 and low.is_elementwise(self.block)
        widest = max(register_type(buffer.element).bits for buffer in self.buffers)
        self.lanes = min(MOST_LANES, low.target.lanes(max(8, widest))) if is_vector else 1
        self.is_cheap = len(list(self.block.ops)) <= CHEAP
        self.is_sum = count == 1 and type(only_op(self.block)) in SUMS

    def parts(self) -> tuple[int, int]:
        """The independent parts of a scan: columns of a matrix, or else rows; and how many of them are scanned
        together.
        """
        if self.inner > 1 and self.outer == 1:
            return self.inner, min(self.inner, IN_FLIGHT * self.lanes) if self.lanes > 1 else 1
        in_squares = self.inner == 1 and self.lanes > 1 and self.length >= self.lanes
        return self.outer, self.lanes if in_squares else 1

    def cost(self) -> int:
        """Instructions, about."""
        return self.outer * self.length * self.inner * (len(list(self.block.ops)) + ACCESS_COST) // self.lanes

    def emit(self, first: Value, last: Value) -> None:
        """Emit some of the `parts`."""
        size, step = self.parts()
        if self.inner > 1:
            self.columns(first, last)
        elif step == 1:
            self.sequence(first, last)
        elif size % step == 0:
            self.rows(first, last)
        else:
            whole = constant(i64, size - size % step)
            if size > step:
                self.rows(first, whole)
            (self.prefix if self.is_cheap else self.sequence)(whole, last)

    def combine(self, earlier: Row, later: Row) -> Row:
        return self.low.region(self.block, [*earlier, *later])

    def index(self, position: Value, count: int = 1) -> Value:
        """The first of `count` positions on the axis."""
        return self.b.sub(constant(i64, self.length - count), position) if self.reverse else position

    def read(self, offset: Value, lanes: int) -> Row:
        """`lanes` neighbours of every source from an element offset on."""
        return [self.low.read(one.element, one.at(self.b, one.source, offset), lanes) for one in self.buffers]

    def write(self, values: Row, offset: Value) -> None:
        for buffer, value in zip(self.buffers, values, strict=True):
            self.low.write(buffer.element, value, buffer.at(self.b, buffer.target, offset))

    # Neighbours in memory belong to different scans

    def columns(self, first: Value, last: Value) -> None:
        """Columns from `first` to `last` of one matrix, or all those of several."""
        b, one = self.b, self.outer == 1
        width = min(self.inner, IN_FLIGHT * self.lanes) if self.lanes > 1 else 1
        whole = self.inner - self.inner % width
        outer_bounds = (constant(i64, 0), constant(i64, 1)) if one else (first, last)
        bounds = (first, b.smin(last, constant(i64, whole))) if one else (constant(i64, 0), constant(i64, whole))
        with b.loop(*outer_bounds, unroll=1) as outer:
            start = b.mul(outer, self.length * self.inner)
            with b.loop(*bounds, width, unroll=1) as column:
                self.strip(b.add(start, column), width)
            if whole < self.inner:
                self.strip(b.add(start, constant(i64, whole)), self.inner - whole)

    def strip(self, start: Value, width: int, first: int = 0, running: Row | None = None) -> None:
        """Scan `width` neighbouring columns, from position `first` on."""
        b = self.b

        def one(start: Value, position: Value, _: int, running: Row | None) -> Row:
            here = b.add(start, b.mul(self.index(position), self.inner))
            values = self.read(here, width)
            total = values if running is None else self.combine(running, values)
            self.write(total, here)
            return total

        self.along(start, 1, first, self.length, one, running)

    def along(
        self, start: Value, width: int, first: int, end: int, scan: Callable[..., Row], running: Row | None = None
    ) -> Row:
        """``scan(start, position, width, running)`` for the positions from `first` to `end`; the running values behind
        them.
        """
        if running is None:
            running, first = scan(start, constant(i64, first), width, None), first + width
        if first < end:
            with self.b.loop_carrying(constant(i64, first), end, width, running, unroll=1) as loop:
                loop.next(scan(start, loop.index, width, list(loop.carried)))
            running = list(loop.results)
        return running

    # Lanes are rows

    def rows(self, first: Value, last: Value) -> None:
        """Scan rows, as many at a time as a vector has lanes."""
        b, lanes = self.b, self.lanes
        rest = self.length % lanes
        whole = self.length - rest
        with b.loop(first, last, lanes, unroll=1) as row:
            start = b.mul(row, self.length)
            running = self.along(start, lanes, 0, whole, self.square)
            if rest:
                self.square(start, constant(i64, whole), rest, running)

    def square(self, start: Value, position: Value, width: int, running: Row | None) -> Row:
        """Scan `width` positions of as many rows as there are lanes; the running values after them."""
        b, lanes = self.b, self.lanes
        corner = b.add(start, self.index(position, width))
        rows = [self.read(b.add(corner, row * self.length), width) for row in range(lanes)]
        steps = [transposed(b, [b.widened(row[index], lanes) for row in rows]) for index in range(len(self.buffers))]
        results: list[Row] = [[] for _ in self.buffers]
        for step in range(width - 1, -1, -1) if self.reverse else range(width):
            values = [columns[step] for columns in steps]
            running = values if running is None else self.combine(running, values)
            for result, value in zip(results, running, strict=True):
                result.append(value)
        assert running is not None
        in_order = [result[::-1] if self.reverse else result for result in results]
        finished = [transposed(b, result + result[-1:] * (lanes - width)) for result in in_order]
        for row in range(lanes):
            kept = [b.some_lanes(result[row], range(width)) for result in finished]
            self.write(kept, b.add(corner, row * self.length))
        return running

    # Logarithmic steps

    def prefix(self, first: Value, last: Value) -> None:
        """Scan the rows from `first` to `last` one by one, several vectors at a time."""
        b = self.b
        width = self.lanes * min(IN_FLIGHT, self.length // self.lanes)
        whole = self.length - self.length % width
        with b.loop(first, last, unroll=1) as row:
            start = b.mul(row, self.length)
            running = self.along(start, width, 0, whole, self.run)
            if left := (self.length - whole) // self.lanes * self.lanes:
                running = self.run(start, constant(i64, whole), left, running)
            if whole + left < self.length:  # fewer elements than a vector has
                self.strip(start, 1, whole + left, [b.extract(value, 0) for value in running])

    def run(self, start: Value, position: Value, width: int, running: Row | None) -> Row:
        """Scan `width` positions of one row; the running value after them, in every lane."""
        b, lanes, count = self.b, self.lanes, width // self.lanes
        corner = b.add(start, self.index(position, width))
        order = range(count - 1, -1, -1) if self.reverse else range(count)
        starts = [b.add(corner, offset * lanes) for offset in order]
        local = [self.within(self.flipped(self.read(offset, lanes))) for offset in starts]
        before: Row | None = None  # what comes before a vector inside this run
        for offset, values in zip(starts, local, strict=True):
            earlier = running if before is None else before if running is None else self.combine(running, before)
            self.write(self.flipped(values if earlier is None else self.combine(earlier, values)), offset)
            total = [b.shuffle(value, None, [lanes - 1] * lanes) for value in values]
            before = total if before is None else self.combine(before, total)
        assert before is not None
        return before if running is None else self.combine(running, before)

    def within(self, values: Row) -> Row:
        """The scan of the lanes of one vector."""
        b, lanes, distance = self.b, self.lanes, 1
        while distance < lanes:
            if self.is_sum:  # lanes without a partner add zero
                zero = constant(values[0].type, 0)
                shifted = b.shuffle(values[0], zero, [lanes] * distance + list(range(lanes - distance)))
                values = self.combine([shifted], values)
            else:
                moved = [b.shuffle(value, None, [-1] * distance + list(range(lanes - distance))) for value in values]
                combined = self.combine(moved, values)
                values = [
                    b.shuffle(value, new, [lane if lane < distance else lanes + lane for lane in range(lanes)])
                    for value, new in zip(values, combined, strict=True)
                ]
            distance *= 2
        return values

    def flipped(self, values: Row) -> Row:
        """Convert between the order in memory and that of the scan."""
        if not self.reverse:
            return values
        return [self.b.shuffle(value, None, range(self.lanes - 1, -1, -1)) for value in values]

    # One after the other

    def sequence(self, first: Value, last: Value) -> None:
        with self.b.loop(first, last, unroll=1) as row:
            self.strip(self.b.mul(row, self.length), 1)


def transposed(b: Builder, rows: Sequence[Value]) -> list[Value]:
    """n vectors of n lanes, n a power of two. Short ones: each round interleaves the vectors of the first half with the
    others; of long ones each bit of the index of a vector is exchanged with one of the lane.
    """
    count, current, bits = len(rows), list(rows), range(len(rows).bit_length() - 1)
    if rows[0].type.bits > INTERLEAVED:
        for bit in bits:
            for first in (index for index in range(count) if not index >> bit & 1):
                second = first | 1 << bit
                current[first], current[second] = b.exchanged(current[first], current[second], bit)
        return current
    mixed = [lane // 2 + (count if lane % 2 else 0) for lane in range(2 * count)]
    for _ in bits:
        pairs = zip(current[: count // 2], current[count // 2 :], strict=True)
        current = [b.shuffle(x, y, part) for x, y in pairs for part in (mixed[:count], mixed[count:])]
    return current


@lowers(ttc.ScanOp)
def lower_scan(low: Lowering, op: Operation) -> None:
    """Lower a scan in the fastest order (`scan.py`), or in the one that the op requires; threads share large scans."""
    made = TreeScan if follows_tree(op) else Scan
    scan = made(low, op)
    size, step = scan.parts()
    if scan.lanes > 1 and size >= 2 * step and size % step == 0 and scan.cost() >= FORK_WORK:
        share_op(low, op, size, step, lambda first, last: made(low, op).emit(first, last))
    else:
        scan.emit(constant(i64, 0), constant(i64, size))


class TreeScan(Scan):
    """A scan in a fixed order."""

    def parts(self) -> tuple[int, int]:
        return super().parts() if self.inner > 1 else (self.outer, 1)

    def emit(self, first: Value, last: Value) -> None:
        if self.inner > 1:
            self.columns(first, last)
            return
        with self.b.loop(first, last, unroll=1) as row:
            start = self.b.mul(row, self.length)
            if 1 < self.lanes <= self.length:
                self.vectors(start)
            else:
                self.strip(start, 1)

    def strip(self, start: Value, width: int) -> None:
        """Scan `width` neighbouring columns; a chunk is one element of each."""
        b, levels = self.b, Levels(self, width, self.length)
        with b.loop(constant(i64, 0), self.length, unroll=1) as position:
            index = self.index(position)
            offset = b.add(start, b.mul(index, self.inner))
            self.write(levels.join(index, self.read(offset, width), lambda row: row), offset)

    def vectors(self, start: Value) -> None:
        """Scan one row, a vector of it at a time."""
        b, lanes = self.b, self.lanes
        whole, rest = divmod(self.length, lanes)
        levels = Levels(self, 1, whole + (rest > 0))

        def chunk(index: Value, count: int) -> None:
            offset = b.add(start, b.mul(index, lanes))
            values = self.within_lanes(self.read(offset, count), count)
            last = 0 if self.reverse else count - 1

            def total(row: Row) -> Row:
                return [b.extract(value, last) for value in row] if count > 1 else row

            self.write(levels.join(index, values, total), offset)

        if rest and self.reverse:
            chunk(constant(i64, whole), rest)
        with b.loop(constant(i64, 0), whole, unroll=1) as position:
            chunk(b.sub(constant(i64, whole - 1), position) if self.reverse else position, lanes)
        if rest and not self.reverse:
            chunk(constant(i64, whole), rest)

    def within_lanes(self, values: Row, count: int) -> Row:
        """The scan of `count` lanes."""
        b, bit = self.b, 0
        while count > 1 << bit:
            ahead = [other_half(lane, bit, count, self.reverse) for lane in range(count)]
            moved = [b.shuffle(value, None, [-1 if lane is None else lane for lane in ahead]) for value in values]
            joined = self.combine(moved, values)
            taken = [lane if ahead[lane] is None else count + lane for lane in range(count)]
            values = [b.shuffle(old, new, taken) for old, new in zip(values, joined, strict=True)]
            bit += 1
        return values


def other_half(position: int, bit: int, count: int, reverse: bool) -> int | None:
    """The index of the total in front of an element: the last one of the half before, or the first of the half
    behind.
    """
    block = position >> bit
    if reverse:
        return (block + 1) << bit if block % 2 == 0 and (block + 1) << bit < count else None
    return (block << bit) - 1 if block % 2 else None


class Levels:
    """Totals of blocks of 1, 2, 4 ... chunks, `width` lanes each."""

    def __init__(self, scan: TreeScan, width: int, count: int) -> None:
        self.scan, self.count, self.top = scan, count, (count - 1).bit_length()
        self.stack = Stack(scan.low, [buffer.element for buffer in scan.buffers], width, self.top + 1)

    def join(self, index: Value, values: Row, total: Callable[[Row], Row]) -> Row:
        """The elements of chunk `index`, combined with all that precede them; its total is kept."""
        scan, b = self.scan, self.scan.b
        ends = b.cttz(index if scan.reverse else b.xor(index, constant(i64, -1)))
        level = b.smin(ends, constant(i64, self.top))  # chunk 0, in reverse the last one, ends everything
        with b.loop_carrying(constant(i64, 0), level, 1, values, unroll=1) as loop:
            loop.next(self.in_front(index, loop.index, list(loop.carried)))
        values = list(loop.results)
        self.stack.write(level, total(values))
        taken = b.xor(index, constant(i64, (1 << self.top) - 1)) if scan.reverse else index
        left = b.lshr(taken, level)
        with b.loop_carrying(constant(i64, 0), b.ctpop(left), 1, [left, level, *values], unroll=1) as loop:
            bits, below, *row = loop.carried
            skipped = b.cttz(bits)
            here = b.add(below, skipped)
            following = self.in_front(index, here, row)
            rest = b.lshr(b.lshr(bits, skipped), 1)
            loop.next([rest, b.add(here, 1), *following])
        return list(loop.results[2:])

    def in_front(self, index: Value, level: Value, values: Sequence[Value]) -> Row:
        """The partial result of a level in front of the elements, if the block behind it has any chunks."""
        scan, b, row = self.scan, self.scan.b, list(values)

        def joined() -> Row:
            return scan.combine(self.stack.read(level), row)

        if not scan.reverse or self.count == 1 << self.top:
            return joined()
        first = b.shl(b.or_(b.lshr(index, level), 1), level)
        return list(b.if_else(b.icmp("slt", first, self.count), joined, lambda: row))
