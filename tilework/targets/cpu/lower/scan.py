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

Where the axis is no multiple of the lanes, the square at the end is narrower, and the last elements of a prefix come one by one.

Where the order of combinations is promised: `scan_tree.py`. All but the last need a combination that runs on vectors. The left operand is always what came earlier in the scan.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith
from xdsl.ir import Attribute, Operation

from tilework.ir import ttc
from tilework.ir.nesting import only_op
from tilework.targets.cpu.lower.lowering import Lowering
from tilework.targets.cpu.run.fork import ACCESS_COST
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.scalar_types import element_bytes, register_type
from tilework.targets.llvm.types import i64
from tilework.targets.llvm.values import Value, constant

IN_FLIGHT = 4  # vectors handled together
INTERLEAVED = 128  # bits of the vectors that one instruction interleaves; for longer ones LLVM searches for long, and finds more of them
MOST_LANES = 8  # a square of lanes x lanes repeats the combination `lanes` times
CHEAP = 8  # a combination of more ops is not repeated for every logarithmic step
SUMS = frozenset({arith.AddfOp, arith.AddiOp})
Row = list[Value]


@dataclass(frozen=True)
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
        axis, self.reverse = (op.properties[name].value.data for name in ("axis", "reverse"))  # type: ignore[attr-defined]
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
        """What can be scanned apart: columns of a matrix, or else rows; and how many of them together."""
        if self.inner > 1 and self.outer == 1:
            return self.inner, min(self.inner, IN_FLIGHT * self.lanes) if self.lanes > 1 else 1
        in_squares = self.inner == 1 and self.lanes > 1 and self.length >= self.lanes
        return self.outer, self.lanes if in_squares else 1

    def cost(self) -> int:
        """Instructions, about."""
        return self.outer * self.length * self.inner * (len(list(self.block.ops)) + ACCESS_COST) // self.lanes

    def emit(self, first: Value, last: Value) -> None:
        """Some of the `parts`."""
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
        """Where `count` positions begin on the axis."""
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
        """``scan(start, position, width, running)`` for the positions from `first` to `end`; the running values behind them."""
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
        steps = [transposed(b, [b.widened(row[number], lanes) for row in rows]) for number in range(len(self.buffers))]
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
        places = [b.add(corner, place * lanes) for place in order]
        local = [self.within(self.flipped(self.read(place, lanes))) for place in places]
        before: Row | None = None  # what comes before a vector inside this run
        for place, values in zip(places, local, strict=True):
            earlier = running if before is None else before if running is None else self.combine(running, before)
            self.write(self.flipped(values if earlier is None else self.combine(earlier, values)), place)
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
        """From the order in memory to that of the scan, and back."""
        if not self.reverse:
            return values
        return [self.b.shuffle(value, None, range(self.lanes - 1, -1, -1)) for value in values]

    # One after the other

    def sequence(self, first: Value, last: Value) -> None:
        with self.b.loop(first, last, unroll=1) as row:
            self.strip(self.b.mul(row, self.length), 1)


def transposed(b: Builder, rows: Sequence[Value]) -> list[Value]:
    """n vectors of n lanes, n a power of two. Short ones: each round interleaves the vectors of the first half with the others; of long
    ones each bit of the number of a vector changes places with that of a lane."""
    count, current, bits = len(rows), list(rows), range(len(rows).bit_length() - 1)
    if rows[0].type.bits > INTERLEAVED:
        for bit in bits:
            for first in (number for number in range(count) if not number >> bit & 1):
                second = first | 1 << bit
                current[first], current[second] = b.exchanged(current[first], current[second], bit)
        return current
    mixed = [lane // 2 + (count if lane % 2 else 0) for lane in range(2 * count)]
    for _ in bits:
        pairs = zip(current[: count // 2], current[count // 2 :], strict=True)
        current = [b.shuffle(x, y, part) for x, y in pairs for part in (mixed[:count], mixed[count:])]
    return current
