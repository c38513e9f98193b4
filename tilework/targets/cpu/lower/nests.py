"""`ttc.nest`: loops over the index space, the innermost one on vectors.

    ttc.nest [64, 128] {^bb0(%i, %j): ...}

    for i in 0 .. 63:
        what depends on %i alone, and the starts of lines along %j
        for e in 0, 16, 32, .. 112:
            what changes along %j, sixteen at a time

Which dimension is the vector's, and the order of the loops, is decided first (`choose`): most accesses to memory should
be contiguous, and a dimension that is folded goes inside, so that accumulators remain in registers. Every op of the
body is emitted at the depth where all it needs is known; reads move out of loops only where the nest writes nothing
they could see. There is no code per element: the size of the text depends on the body and not on the shape.

A dimension that is no multiple of the lanes ends in one chunk with fewer of them, 96 and 4 of 100: the body once more,
after the loop, on narrower vectors. Lanes that do not exist are never read, written or divided by.

Addresses like ``x % 64 + 192 * (x // 64)`` are a line in a chunk in which no quotient changes, a *piece*:

    for e in 0, 32, 64, ..:
        r, q = (start + e) % 64, (start + e) // 64        scalars
        if start + e >= 0 and r <= 64 - 32:               all lanes are between two multiples of 64
            load p[r + 192 * q ..]                        one vector
        else:
            ...                                           lane by lane, exactly

In a piece ``x // d`` is uniform and ``x % d`` a line, and so are most of the values computed from them (`Nest.whole`).
The loop tests at run time which chunks are pieces, so nothing has to be known of `start` or of its sign. A nest tests
only if that makes an address a line.

If a body is short, a chunk with all lanes on and one with some lanes masked off get a loop each, and the first has no
tests at all. In a long body each masked access tests for itself.

Rows whose addresses may wrap around in 32 bits: ``%p + (%start + %j * %n)``, where the kernel is given `%n`.

if start + 63 * n fits into 32 bits:           once per row
    for e in 0, 32:  load p + start + n * e    each lane is 4 * n bytes behind the one before
else:
    for e in 0, 32:  ...                       each lane has its own 32 bits, and its own address
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from itertools import chain
from typing import Any

from xdsl.ir import Operation, SSAValue

from tilework.ir import arith, tt, ttc
from tilework.ir.arith import predicate_of
from tilework.ir.types import array_values, bit_width, is_float
from tilework.targets.cpu.lower.checks import emit_assert, emit_check
from tilework.targets.cpu.lower.lanes import (
    CHECK,
    FAST,
    SLOW,
    Interval,
    Kind,
    Linear,
    OpenNest,
    Stride,
    Strides,
    compared,
    division,
    intervals,
    leaves_range,
    strides,
)
from tilework.targets.cpu.lower.lowering import Lowering, spread
from tilework.targets.cpu.lower.nest_access import (
    Promised,
    access_stride,
    emit_load,
    emit_read,
    emit_store,
    emit_write,
    fetch_promised,
    later_rows,
    rows_past,
)
from tilework.targets.cpu.lower.reduce_rules import Fold, hand_out
from tilework.targets.llvm.scalar_types import pointee_bytes
from tilework.targets.llvm.scalars import FUNCTION_OF, INTEGER_PREDICATES
from tilework.targets.llvm.types import i1, i32, i64
from tilework.targets.llvm.values import Value, constant

FEWEST = 8  # lanes of a piece
ENOUGH = 4  # times the lanes: so large a divisor has mostly pieces, whatever it is a multiple of


def walk_ways(nest: OpenNest, is_row: bool, walk: Callable[[], None]) -> None:
    """`walk` the loop of a nest: twice if it is a row with such addresses."""
    b, kinds, mode = nest.b, nest.kinds, nest.mode
    sums = {value: kind for value, kind in kinds.items() if isinstance(kind, Linear) and kind.sum is not None}
    if not sums or not is_row:
        walk()
        return
    wraps = reduce(b.or_, (line.wraps for line in sums.values()))
    plain = kinds | {value: line._replace(sum=None) for value, line in sums.items()}
    for way, condition in ((plain, b.xor(wraps, constant(i1, 1))), (kinds, wraps)):
        with b.if_(condition):
            nest.kinds, nest.is_rare = dict(way), way is kinds
            walk()
    nest.kinds, nest.mode, nest.is_rare = kinds, mode, False


VECTORS = 4  # machine vectors that one value of the widest type takes
MOST_LANES = 32
LONG_BODY = 20  # a body of more cost is not emitted twice
HEAVY_BODY = 60  # a body of more cost needs the registers for itself
COSTS = {"exp": 25, "exp2": 25, "sqrt": 4, "abs": 1, "floor": 1, "ceil": 1, "rsqrt": 8}
FREE = (arith.ConstantOp, ttc.EndOp, ttc.CheckOp)
WRITES = (ttc.WriteOp, ttc.ReduceOp)
ATOMICS = (tt.AtomicRMWOp, tt.AtomicCASOp)
EFFECTS = (*WRITES, *ATOMICS, tt.StoreOp, ttc.AssertOp)


class Nest(OpenNest):
    """The loops of a nest, and what is emitted in which of them."""

    def __init__(self, low: Lowering, op: Operation) -> None:
        super().__init__(low, op.regions[0].block)
        self.shape = array_values(op.properties["shape"])
        self.strides = strides(self.block, self.shape)
        divides = any(map(division, self.block.ops))
        # in pieces, where there may be some
        self.whole = strides(self.block, self.shape, ()) if divides else self.strides
        self.ops = [inner for inner in self.block.ops if type(inner) is not ttc.EndOp]
        self.work = working_ops(self.ops) if low.sanitizes else self.ops
        self.folds = [Fold(self, inner) for inner in self.ops if type(inner) is ttc.ReduceOp]
        self.written = {inner.operands[where] for inner in self.ops for where in written_operands(inner)}
        self.stores = any(type(inner) is tt.StoreOp or type(inner) in ATOMICS for inner in self.ops)
        self.dim, self.order = self.choose()
        self.intervals = intervals(self.block, self.strides, self.dim) if self.shape else {}
        if divides:
            self.whole = strides(self.block, self.shape, self.intervals)
        self.has_pieces = False
        self.lanes = self.step = self.choose_lanes()  # a step of the loop along `dim`
        self.bounds: tuple[Value, Value] | None = None  # of the outermost loop, if not all of it is to run
        self.depths = self.find_depths()
        self.promised: Sequence[Promised] = ()

    # Decisions

    def stride(self, value: SSAValue, dim: int | None = None) -> Stride:
        found = self.strides.get(value)
        return 0 if found is None or not self.shape else found[self.dim if dim is None else dim]

    def choose(self) -> tuple[int, list[int]]:
        """The dimension of the vector, and the dimensions from the outermost loop to the innermost."""
        rank = len(self.shape)
        if rank == 0:
            return 0, []
        if any(tt.is_ordered(op) for op in self.ops):
            return rank - 1, list(range(rank))
        scores = [self.score(dim) for dim in range(rank)]
        dim = max(range(rank), key=lambda d: (scores[d], d))
        axes, others = {fold.axis for fold in self.folds}, [d for d in range(rank) if d != dim]
        if len(axes) == 1 and dim not in axes:
            return dim, [*(d for d in others if d not in axes), dim, *axes]
        return dim, [*others, dim]

    def score(self, dim: int) -> float:
        """Rate vectors along `dim`: contiguous accesses count for it, scattered ones against it."""
        size = self.shape[dim]
        if size == 1:
            return -1000.0
        total = 0.0
        for op in self.ops:
            found = access_stride(op, self.whole, dim)
            if found is not None:
                stride, element = found
                total += 1.0 if stride == element else 0.3 if stride == 0 else -1.0
        return total if size >= 4 else total - 2.0 * (4 - size)

    def choose_lanes(self) -> int:
        """Return the number of lanes: as many as fill some machine vectors with the widest type, at most the
        dimension's size."""
        if not self.shape or any(self.is_single(op) for op in self.ops):
            return 1
        if not all(self.low.is_elementwise(fold.combine) for fold in self.folds):
            return 1
        wanted = self.wanted_lanes()
        lanes = piece_lanes(self, wanted)
        self.has_pieces = lanes > 0
        return lanes or min(wanted, self.shape[self.dim])

    def wanted_lanes(self) -> int:
        """The lanes of a dimension that is large enough."""
        vectors = VECTORS if self.cost() < HEAVY_BODY else VECTORS // 2
        return min(MOST_LANES, vectors * self.register_lanes())

    def register_lanes(self) -> int:
        """Elements of the widest type that one vector register of the machine holds."""
        computes = any(type(op) in self.low.elementwise and self.is_vector(op) for op in self.work)
        widest = 8
        for op in self.work:
            if op.results and self.is_vector(op):
                bits = max(bit_width(value.type) for value in (*op.results, *op.operands) if not self.is_line(value))
                widest = max(widest, 32 if bits < 32 and computes and is_float(op.results[0].type) else bits)
        return self.low.target.lanes(widest)

    def is_single(self, op: Operation) -> bool:
        """An op that works on one element at a time."""
        return type(op) not in self.low.elementwise and type(op) not in SPECIAL

    def is_line(self, value: SSAValue) -> bool:
        """Held as scalars: uniform, linear or an interval."""
        return self.stride(value) is not None or value in self.intervals

    def is_vector(self, op: Operation) -> bool:
        return bool(op.results) and not self.is_line(op.results[0])

    def cost(self) -> int:
        """Instructions per vector, roughly."""
        total = 0
        for op in self.work:
            if type(op) in FREE or (op.results and self.is_line(op.results[0])):
                continue
            name = FUNCTION_OF.get(type(op))
            total += COSTS.get(name, 30) if name else 20 if type(op) is tt.ExternElementwiseOp else 1
        return total

    def find_depths(self) -> dict[Operation, int]:
        """Find how many loops surround each op: as few as its operands allow."""
        depth_of = {dim: position + 1 for position, dim in enumerate(self.order)}
        depth: dict[SSAValue, int] = {
            arg: 0 if position == self.dim else depth_of.get(position, 0)
            for position, arg in enumerate(self.block.args)
        }
        found: dict[Operation, int] = {}
        for op in self.ops:
            if type(op) in EFFECTS or self.is_single(op) or self.sees_writes(op):
                level = len(self.order)
            else:
                level = max((depth.get(operand, 0) for operand in op.operands), default=0)
                if type(op) is ttc.CheckOp or (op.results and not self.is_line(op.results[0])):
                    level = max(level, depth_of.get(self.dim, 0))
            found[op] = level
            for result in op.results:
                depth[result] = level
        return found

    def sees_writes(self, op: Operation) -> bool:
        """A read that must not move across the writes of the nest."""
        if type(op) is ttc.ReadOp:
            return op.operands[0] in self.written
        return type(op) is tt.LoadOp and self.stores

    # Emission

    def emit(self) -> None:
        if self.shape:
            self.kinds[self.block.args[self.dim]] = Linear(constant(i32, 0), constant(i32, 1))
        self.level(0)

    def level(self, depth: int) -> None:
        """The ops with `depth` loops around them, then the next loop."""
        for op in self.ops:
            if self.depths[op] == depth:
                self.emit_op(op)
        if depth == len(self.order):
            fetch_promised(self)
            return
        dim = self.order[depth]
        walk_ways(self, dim == self.dim, lambda: self.walk(dim, depth))

    def walk(self, dim: int, depth: int) -> None:
        """The loop along `dim`, which has `depth` loops around it."""
        is_innermost = depth == len(self.order) - 1
        folds = [fold for fold in self.folds if fold.axis == dim] if is_innermost else []
        size, step = self.shape[dim], self.step if dim == self.dim else 1
        rest = size % step
        for fold in folds:
            fold.begin(size == step)
        bounds = self.bounds if depth == 0 else None
        start, end = bounds or (constant(i64, 0), constant(i64, size))
        if is_innermost and dim == self.dim:
            self.rows = rows_past(self)
        if is_innermost and dim == self.dim and size > step:
            self.ahead = self.low.target.stream_ahead
            if depth > 0 and (self.ahead or not self.stores):
                self.later = later_rows(self, depth)
        if size == step:
            self.set_index(dim, constant(i64, 0))
            emit_chunk(self, dim, depth + 1, folds)
        elif dim == self.dim and is_innermost and (limit := self.full_chunks()) is not None:
            last = self.last_chunk()
            if bounds is not None:
                limit, last = self.b.smin(self.b.smax(limit, start), end), self.b.smin(last, end)
            self.mode = FAST
            self.loop(dim, start, limit, folds, depth)
            self.mode = SLOW
            self.loop(dim, limit, self.whole_chunks(last, rest), folds, depth)
            self.mode = CHECK
            end = last
        else:
            if dim == self.dim and self.has_pieces:
                end = self.b.smin(self.last_chunk(), end)
            self.loop(dim, start, self.whole_chunks(end, rest), folds, depth)
        if rest:
            self.last_lanes(dim, rest, end, depth)
        for fold in folds:
            fold.finish()

    def whole_chunks(self, end: Value, rest: int) -> Value:
        """The end of a loop that leaves `rest` lanes out."""
        return self.b.smin(end, constant(i64, self.shape[self.dim] - rest)) if rest else end

    def last_lanes(self, dim: int, rest: int, end: Value, depth: int) -> None:
        """The `rest` indices behind the last whole chunk, if they are below `end`."""
        b, first = self.b, constant(i64, self.shape[dim] - rest)
        with b.if_(b.icmp("sgt", end, first)), self.fewer_lanes(rest):
            self.set_index(dim, first)
            self.level(depth + 1)

    @contextmanager
    def fewer_lanes(self, step: int) -> Iterator[None]:
        whole = self.lanes, self.step
        self.lanes, self.step = self.lanes // self.step * step, step
        yield
        self.lanes, self.step = whole

    def loop(self, dim: int, start: Value, end: Value, folds: "list[Fold]", depth: int) -> None:
        step = self.step if dim == self.dim else 1
        initial = [value for fold in folds for value in fold.values]
        with self.b.loop_carrying(start, end, step, initial) as loop:
            self.set_index(dim, loop.index)
            hand_out(folds, loop.carried)
            emit_chunk(self, dim, depth + 1, folds)
            loop.next([value for fold in folds for value in fold.values])
        hand_out(folds, loop.results)

    def set_index(self, dim: int, index: Value) -> None:
        if dim == self.dim:
            self.chunk = index
        else:
            self.kinds[self.block.args[dim]] = self.b.trunc(index, i32)
        self.index = index

    def full_chunks(self) -> Value | None:
        """The first index from which a condition may be false, or None where one loop is enough (or better).

        Below it every `Interval` of the body holds.
        """
        found = [kind for value in self.intervals if isinstance(kind := self.kinds.get(value), Interval)]
        is_short = found and not self.has_pieces and not self.is_rare and self.cost() <= LONG_BODY
        if not is_short or any(kind.low.constant != 0 for kind in found):
            return None
        b = self.b
        high = found[0].high
        for kind in found[1:]:
            high = b.smin(high, kind.high)
        limit = b.smax(b.smin(high, constant(i64, self.shape[self.dim])), constant(i64, 0))
        return b.and_(limit, -self.lanes)

    def last_chunk(self) -> Value:
        """The end of the loop of a nest that only stores: behind the last lane that a store writes."""
        b, size = self.b, constant(i64, self.shape[self.dim])
        edges = [self.kinds.get(op.operands[2]) for op in self.ops if type(op) is tt.StoreOp and len(op.operands) > 2]
        effects = sum(type(op) in EFFECTS for op in self.ops)
        if len(edges) != effects or not all(isinstance(edge, Interval) for edge in edges):
            return size
        high = constant(i64, 0)
        for edge in edges:
            assert isinstance(edge, Interval)
            high = b.smax(high, b.select(edge.wraps, size, edge.high))
        return b.smin(high, size)

    def emit_op(self, op: Operation) -> None:
        """Emit one op, in the cheapest form that holds its value."""
        cls = type(op)
        if self.low.lines is not None:
            self.low.locate(op)
        if (rule := SPECIAL.get(cls)) is not None:
            rule(self, op)
            return
        if self.is_single(op):
            self.emit_single(op)
            return
        result = op.results[0]
        stride = self.stride(result)
        if self.has_pieces and self.mode == FAST and stride is None:
            emit_in_piece(self, op)
        elif result in self.intervals:
            self.kinds[result] = self.interval(op)
        else:
            self.kinds[result] = self.form(op)
        made = self.kinds[result]
        if isinstance(made, Interval):
            made = Value(i1, "poison", None)  # no register holds it
        self.low.name_result(op, made.start if isinstance(made, Linear) else made)

    def apply(self, op: Operation) -> Value:
        """The elementwise rule on vectors, or on scalars if all operands are."""
        args = spread(self.b, [self.vector(operand) for operand in op.operands])
        return self.low.elementwise[type(op)](self.low, op, *args)

    def emit_single(self, op: Operation) -> None:
        """A nest that holds such an op has one lane, and what the op and its regions use is made scalars."""
        assert self.lanes == 1, f"{op.name} on {self.lanes} lanes"
        for inner in op.walk():
            for operand in inner.operands:
                if operand in self.kinds:
                    self.low[operand] = self.vector(operand)
        self.low.lower(op)
        for result in op.results:
            self.kinds[result] = self.low[result]

    # Values

    def form(self, op: Operation) -> Kind:
        """The result of an op as lanes, as a line, or as a scalar, such as the difference of two lines."""
        stride = self.stride(op.results[0])
        if stride is None or (stride == 0 and not any(isinstance(self.kind(one), Linear) for one in op.operands)):
            return self.apply(op)
        made = self.line(op)
        return made.start if stride == 0 and isinstance(made, Linear) else made

    def line(self, op: Operation) -> Kind:
        """The result of an op that keeps lines: start and stride go through it apart."""
        b, cls = self.b, type(op)
        kinds = [self.kind(operand) for operand in op.operands]
        if any(kind.__class__ is Interval for kind in kinds):
            return self.apply(op)
        lines = [kind for kind in kinds if isinstance(kind, Linear)]
        is_exact, wraps = all(line.is_exact for line in lines), reduce(b.or_, (line.wraps for line in lines))
        starts = [kind.start if isinstance(kind, Linear) else kind for kind in kinds]
        steps = [kind.stride if isinstance(kind, Linear) else None for kind in kinds]
        rule = self.low.elementwise[cls]
        start = rule(self.low, op, *starts)
        type_ = i64 if start.type.is_pointer else start.type
        if cls is tt.AddPtrOp:
            size = pointee_bytes(op.operands[0].type)
            total = steps[0] or constant(i64, 0)
            if steps[1] is not None:
                total = b.add(total, b.mul(b.cast(steps[1], i64, is_signed=True), size))
                is_exact = is_exact and steps[1].type is i64
                if steps[1].type is not i64 and steps[1].constant is None:
                    wraps = b.or_(wraps, leaves_range(b, lines[-1].start, steps[1], self.shape[self.dim]))
                    return Linear(start, total, is_exact, wraps, sum=(kinds[0], lines[-1], size))
            return Linear(start, total, is_exact)
        if cls is arith.AddiOp or cls is arith.SubiOp:
            zero = constant(type_, 0)
            combine = b.add if cls is arith.AddiOp else b.sub
            return Linear(start, combine(steps[0] or zero, steps[1] or zero), is_exact, wraps)
        if cls is arith.MuliOp:
            factor, step = (starts[1], steps[0]) if steps[0] is not None else (starts[0], steps[1])
            assert step is not None
            return Linear(start, b.mul(step, factor), is_exact, wraps)
        step = steps[0]
        assert step is not None
        if cls is arith.ShLIOp:
            return Linear(start, b.shl(step, starts[1]), is_exact, wraps)
        if type_.bits > step.type.bits:
            wraps = b.or_(wraps, leaves_range(b, lines[0].start, step, self.shape[self.dim]))
        return Linear(start, b.cast(step, type_, is_signed=True), is_exact and wraps.constant == 0, wraps)

    def interval(self, op: Operation) -> Kind:
        """A comparison of a line with a scalar, or the intersection of two intervals."""
        b = self.b
        lhs, rhs = (self.kind(operand) for operand in op.operands)
        if type(op) is arith.AndIOp:
            if not isinstance(lhs, Interval):
                lhs, rhs = rhs, lhs
            assert isinstance(lhs, Interval)
            if isinstance(rhs, Interval):
                low, high = b.smax(lhs.low, rhs.low), b.smin(lhs.high, rhs.high)
                return Interval(low, high, b.or_(lhs.wraps, rhs.wraps), op)
            assert isinstance(rhs, Value)
            return Interval(lhs.low, b.select(rhs, lhs.high, constant(i64, 0)), lhs.wraps, op)
        name = INTEGER_PREDICATES[predicate_of(op)]
        if not isinstance(lhs, Linear):
            lhs, rhs, name = rhs, lhs, {"slt": "sgt", "sle": "sge", "sgt": "slt", "sge": "sle"}[name]
        assert isinstance(lhs, Linear) and isinstance(rhs, Value)
        return compared(b, lhs, name, rhs, self.shape[self.dim], op)


def working_ops(ops: list[Operation]) -> list[Operation]:
    """Return the ops except asserts and what is computed only for them, so that a sanitized nest has the layout and the
    rounding of the plain one.
    """
    asserting: set[Operation] = set()
    for op in reversed(ops):
        users = {use.operation for result in op.results for use in result.uses}
        if type(op) is ttc.AssertOp or (users and users <= asserting):
            asserting.add(op)
    return [op for op in ops if op not in asserting]


def written_operands(op: Operation) -> Sequence[int]:
    """The operands that are buffers which the op writes."""
    if type(op) is ttc.WriteOp:
        return (1,)
    if type(op) is ttc.ReduceOp:
        sources, accumulators, _ = array_values(op.properties["operandSegmentSizes"])
        return range(sources, sources + accumulators)
    return ()


SPECIAL: dict[type[Operation], Any] = {
    ttc.AssertOp: emit_assert,
    ttc.CheckOp: emit_check,
    tt.LoadOp: emit_load,
    tt.StoreOp: emit_store,
    ttc.ReadOp: emit_read,
    ttc.WriteOp: emit_write,
    ttc.ReduceOp: lambda nest, op: next(fold for fold in nest.folds if fold.op is op).add(),
}


def piece_lanes(nest: Nest, wanted: int) -> int:
    """The lane count of pieces, at most `wanted`; 0 if the nest has none, or they would not help."""
    if nest.whole is nest.strides or any(fold.is_tree for fold in nest.folds) or nest.order[-1] != nest.dim:
        return 0
    if not any(is_helped(nest, op) for op in nest.ops):
        return 0
    divisors = [part.divisor for op in quotients(nest) if (part := division(op)) is not None]
    lanes = wanted
    while lanes >= FEWEST:
        if lanes <= nest.shape[nest.dim] and all(d % lanes == 0 or d >= ENOUGH * lanes for d in divisors):
            return lanes
        lanes //= 2
    return 0


def is_helped(nest: Nest, op: Operation) -> bool:
    """Return True if an access of memory is a vector, or one element for all lanes, in pieces alone."""
    if type(op) is not tt.LoadOp and type(op) is not tt.StoreOp:
        return False
    before, found = access_stride(op, nest.strides, nest.dim), access_stride(op, nest.whole, nest.dim)
    return before is not None and found is not None and before[0] is None and found[0] in (0, found[1])


def quotients(nest: Nest) -> list[Operation]:
    """The divisions that decide what a piece is: of lines that go from lane to lane."""

    def along(known: dict[SSAValue, Strides], value: SSAValue) -> object:
        return known[value][nest.dim] if value in known else 0

    return [
        op
        for op in nest.ops
        if division(op) is not None
        and along(nest.strides, op.results[0]) is None
        and along(nest.whole, op.results[0]) is not None
        and along(nest.whole, op.operands[0]) == 1
    ]


def scouts(nest: Nest) -> list[Operation]:
    """The divisions and what they are computed from in the loop, in order."""
    needed, left = set[Operation](), quotients(nest)
    while left:
        op = left.pop()
        if op not in needed and nest.stride(op.results[0]) is None:
            needed.add(op)
            left += [owner for value in op.operands if isinstance(owner := value.owner, Operation)]
    return [op for op in nest.ops if op in needed]


def emit_in_piece(nest: Nest, op: Operation) -> None:
    """An op that makes no line in every chunk, in a piece."""
    result = op.results[0]
    if result not in nest.kinds:  # else it is one of those that decided
        nest.kinds[result] = nest.line(op) if nest.whole[result][nest.dim] else nest.apply(op)


def emit_chunk(nest: Nest, dim: int, depth: int, folds: "Sequence[Fold]") -> None:
    """The ops in a step of the loop along `dim`: twice if it may be a piece."""
    outside = nest.kinds
    is_piece = None
    if nest.has_pieces and dim == nest.dim and nest.mode == CHECK:
        nest.kinds = dict(outside)
        is_piece = condition(nest)
    in_piece, nest.kinds = nest.kinds, outside
    if is_piece is None:
        nest.level(depth)
        return
    before, after = [fold.values for fold in folds], list[list[Value]]()

    def emit(mode: str, kinds: dict[SSAValue, Kind]) -> list[Value]:
        nest.mode, nest.kinds = mode, kinds
        for fold, values in zip(folds, before, strict=True):
            fold.values = values
        nest.level(depth)
        after[:] = [fold.values for fold in folds]
        return list(chain.from_iterable(after))

    found = iter(nest.b.if_else(is_piece, lambda: emit(FAST, in_piece), lambda: emit(CHECK, dict(outside))))
    nest.mode, nest.kinds = CHECK, outside
    for fold, values in zip(folds, after, strict=True):
        fold.values = [next(found) for _ in values]


def condition(nest: Nest) -> Value | None:
    """Return True if the chunk is a piece with all lanes on; None if that cannot be said. The quotients are among the
    kinds then.
    """
    b, lanes = nest.b, nest.lanes
    holds = constant(i1, 1)
    for value in nest.intervals:
        kind = nest.kinds.get(value)
        if isinstance(kind, Interval):
            holds = b.and_(holds, b.icmp("sle", b.add(nest.chunk, lanes), kind.high))
            if kind.low.constant != 0:
                holds = b.and_(holds, b.icmp("sge", nest.chunk, kind.low))
    found = set(quotients(nest))
    for op in scouts(nest):
        if type(op) not in nest.low.elementwise:
            return None
        if op not in found:
            emit_in_piece(nest, op)
            continue
        line, part = nest.kind(op.operands[0]), division(op)
        if not isinstance(line, Linear) or not line.is_exact or part is None:
            return None
        first, divisor = nest.base(line), part.divisor
        largest = (1 << (first.type.bits - 1)) - lanes
        rest = b.urem(first, divisor)
        holds = b.and_(holds, b.icmp("ule", first, largest))
        holds = b.and_(holds, b.icmp("ule", rest, divisor - lanes))
        if part.is_rest:
            start = b.sub(rest, b.cast(nest.chunk, first.type, is_signed=True))
            nest.kinds[op.results[0]] = Linear(start, constant(first.type, 1))
        else:
            nest.kinds[op.results[0]] = b.udiv(first, divisor)
    return holds
