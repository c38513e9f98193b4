"""`ttc.scan` by the tree of `ir/module_facts.py`, while chunks of elements come in the order of the scan.

    chunk          0      1         2              3                            4
    own scan       s0     s1        s2             s3                           s4
    in front              t0        t01            t2, then t01                 t0123
    kept           t0     t01       t2             t0123                        t4            on level 0, 1, 0, 2, 0

Chunk `i` takes the totals that its ones (in reverse, its zeros) stand for in front of all its elements, from the lowest level up. With
the ones at its end done its last element is the total of a whole block, which is kept. A chunk is one element, or as many as a vector
has lanes; those are scanned in the same way, by shuffles. A total is put in front of about half as many vectors as there are levels.
"""

from collections.abc import Callable, Sequence

from xdsl.ir import Operation

from tilework.ir import ttc
from tilework.ir.module_facts import follows_tree
from tilework.targets.cpu.lower.lowering import Lowering, lowers
from tilework.targets.cpu.lower.reduce_tree import Stack
from tilework.targets.cpu.lower.scan import Row, Scan
from tilework.targets.cpu.run.fork import FORK_WORK, share_op
from tilework.targets.llvm.types import i64
from tilework.targets.llvm.values import Value, constant


@lowers(ttc.ScanOp)
def lower_scan(low: Lowering, op: Operation) -> None:
    """In the order that is fastest (`scan.py`), or in the one that is promised; threads share large ones."""
    made = TreeScan if follows_tree(op) else Scan
    scan = made(low, op)
    size, step = scan.parts()
    if scan.lanes > 1 and size >= 2 * step and size % step == 0 and scan.cost() >= FORK_WORK:
        share_op(low, op, size, step, lambda first, last: made(low, op).emit(first, last))
    else:
        scan.emit(constant(i64, 0), constant(i64, size))


class TreeScan(Scan):
    """A scan whose order is promised."""

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
            place = b.add(start, b.mul(index, self.inner))
            self.write(levels.join(index, self.read(place, width), lambda row: row), place)

    def vectors(self, start: Value) -> None:
        """Scan one row, a vector of it at a time."""
        b, lanes = self.b, self.lanes
        whole, rest = divmod(self.length, lanes)
        levels = Levels(self, 1, whole + (rest > 0))

        def chunk(number: Value, count: int) -> None:
            place = b.add(start, b.mul(number, lanes))
            values = self.within_lanes(self.read(place, count), count)
            last = 0 if self.reverse else count - 1

            def total(row: Row) -> Row:
                return [b.extract(value, last) for value in row] if count > 1 else row

            self.write(levels.join(number, values, total), place)

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


def other_half(place: int, bit: int, count: int, reverse: bool) -> int | None:
    """Where the total is that comes in front of an element: the last one of the half before, or the first of the half behind."""
    block = place >> bit
    if reverse:
        return (block + 1) << bit if block % 2 == 0 and (block + 1) << bit < count else None
    return (block << bit) - 1 if block % 2 else None


class Levels:
    """Totals of blocks of 1, 2, 4 ... chunks, `width` lanes each."""

    def __init__(self, scan: TreeScan, width: int, count: int) -> None:
        self.scan, self.count, self.top = scan, count, (count - 1).bit_length()
        self.stack = Stack(scan.low, [buffer.element for buffer in scan.buffers], width, self.top + 1)

    def join(self, number: Value, values: Row, total: Callable[[Row], Row]) -> Row:
        """The elements of chunk `number` with all in front that is before them; its total is kept."""
        scan, b = self.scan, self.scan.b
        ends = b.cttz(number if scan.reverse else b.xor(number, constant(i64, -1)))
        level = b.smin(ends, constant(i64, self.top))  # chunk 0, in reverse the last one, ends everything
        with b.loop_carrying(constant(i64, 0), level, 1, values, unroll=1) as loop:
            loop.next(self.in_front(number, loop.index, list(loop.carried)))
        values = list(loop.results)
        self.stack.write(level, total(values))
        taken = b.xor(number, constant(i64, (1 << self.top) - 1)) if scan.reverse else number
        left = b.lshr(taken, level)
        with b.loop_carrying(constant(i64, 0), b.ctpop(left), 1, [left, level, *values], unroll=1) as loop:
            bits, below, *row = loop.carried
            skipped = b.cttz(bits)
            here = b.add(below, skipped)
            following = self.in_front(number, here, row)
            rest = b.lshr(b.lshr(bits, skipped), 1)
            loop.next([rest, b.add(here, 1), *following])
        return list(loop.results[2:])

    def in_front(self, number: Value, level: Value, values: Sequence[Value]) -> Row:
        """What is kept on a level in front of the elements, if the block behind it has any chunks."""
        scan, b, row = self.scan, self.scan.b, list(values)

        def joined() -> Row:
            return scan.combine(self.stack.read(level), row)

        if not scan.reverse or self.count == 1 << self.top:
            return joined()
        first = b.shl(b.or_(b.lshr(number, level), 1), level)
        return list(b.if_else(b.icmp("slt", first, self.count), joined, lambda: row))
