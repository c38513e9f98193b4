"""`ttc.reduce`: folding the values of a nest along one of its dimensions.

    for i:                                          for e in 0, 16, ..:
        total = <-0.0, ..>  (16 lanes)                  total = <-0.0, ..>
        for e in 0, 16, ..:                             for i:
            total += x[i, e .. e+15]                        total += x[i, e .. e+15]
        sum[i] = fold the lanes of total                sum[e .. e+15] = total
            along the vector                                across it

If the folded dimension is the innermost loop, the accumulators are values that the loop carries: as many lanes as the
nest has, which are several machine vectors, so that the additions of one do not wait for those of another. Otherwise
(two reductions of one nest along different dimensions) the accumulators are updated in their buffers. A combination
with a known neutral element starts from it; others take the first element by a choice.

The last chunk may have fewer lanes (`Nest.last_lanes`): those are combined with as many of the accumulators.

Lanes that are accumulated apart are combined out of order. A combination that is not known to be commutative therefore
folds each chunk to one element first, neighbours with neighbours. Where the order is fixed, chunks join as
`reduce_rules.py` says.

Folding by the tree of `ir/module_facts.py` while the elements come one after the other: a binary counter of partial
results.

    element        0      1         2            3                   4
    level 0        x0     .         x2           .                   x4
    level 1               x0 x1     x0 x1        .                   .
    level 2                                      (x0 x1) (x2 x3)     (x0 x1) (x2 x3)

Element `t` is combined with as many levels as `t` has ones at its end, and is left on the next one. What is left behind
the last element is combined from the lowest level up. An element may be a vector (the fold goes across it), or the
total of a chunk whose lanes are along the axis and have been folded, neighbours with neighbours: the chunk is a power
of two, so its total is a node of the tree.
"""

import math
from collections.abc import Callable, Sequence
from math import prod

from xdsl.ir import Attribute, Block, Operation, SSAValue

from tilework.analysis.combine_regions import is_commutative
from tilework.ir import arith, ttc
from tilework.ir.module_facts import follows_tree
from tilework.ir.nesting import only_op
from tilework.ir.types import array_values
from tilework.targets.cpu.lower.lanes import Kind, OpenNest
from tilework.targets.cpu.lower.lowering import Lowering, aligned
from tilework.targets.cpu.lower.nest_access import address_of, load, scaled, store
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.scalar_types import element_bytes, register_type
from tilework.targets.llvm.types import Type, i8, i64
from tilework.targets.llvm.values import Value, constant

Row = list[Value]


class Stack:
    """Rows of values on the stack, one for each level: of each element so many `lanes`."""

    def __init__(self, low: Lowering, elements: Sequence[Attribute], lanes: int, levels: int) -> None:
        self.low, self.elements, self.lanes = low, elements, lanes
        self.sizes = [lanes * element_bytes(element) for element in elements]
        self.memory = [low.builder.alloca(i8, size * levels, align=64) for size in self.sizes]

    def addresses(self, level: Value) -> list[Value]:
        b = self.low.builder
        return [b.gep(stack, b.mul(level, size)) for stack, size in zip(self.memory, self.sizes, strict=True)]

    def read(self, level: Value) -> Row:
        pairs = zip(self.elements, self.addresses(level), strict=True)
        return [self.low.read(element, address, self.lanes) for element, address in pairs]

    def write(self, level: Value, values: Row) -> None:
        for element, value, address in zip(self.elements, values, self.addresses(level), strict=True):
            self.low.write(element, value, address)


class Counter:
    """Partial results of `count` elements: ``read(level)`` and ``write(level, values)`` say where they are,
    ``combine(earlier, later)``.
    """

    def __init__(
        self,
        count: int,
        read: Callable[[Value], Row],
        write: Callable[[Value, Row], None],
        combine: Callable[[Row, Row], Row],
    ) -> None:
        self.count, self.read, self.write, self.combine = count, read, write, combine

    @staticmethod
    def levels(count: int) -> int:
        return count.bit_length()

    def add(self, b: Builder, index: Value, values: Row) -> None:
        """Add the element `index` (an i64)."""
        ones = b.cttz(b.xor(index, constant(i64, -1)))
        with b.loop_carrying(constant(i64, 0), ones, 1, values, unroll=1) as loop:
            loop.next(self.combine(self.read(loop.index), list(loop.carried)))
        self.write(ones, list(loop.results))

    def total(self) -> Row:
        """Return the combination of all values, after the last one was added."""
        left = [level for level in range(self.levels(self.count)) if self.count >> level & 1]
        values = self.read(constant(i64, left[0]))
        for level in left[1:]:
            values = self.combine(self.read(constant(i64, level)), values)
        return values


NEUTRAL_FLOATS: dict[type[Operation], float] = {
    arith.AddfOp: -0.0,
    arith.MulfOp: 1.0,
    arith.MaximumfOp: -math.inf,
    arith.MinimumfOp: math.inf,
    arith.MaxnumfOp: math.nan,  # ignored unless all are NaN
    arith.MinnumfOp: math.nan,
}


def neutral_element(combine: Block, type: Type) -> Value | None:
    """The neutral element of a combine region, if it is one well-known op on its two arguments."""
    cls = only_op(combine).__class__
    if type.kind == "float" and cls in NEUTRAL_FLOATS:
        return constant(type, NEUTRAL_FLOATS[cls])
    if type.kind != "int":
        return None
    largest = (1 << (type.bits - 1)) - 1
    identities = {
        arith.AddiOp: 0,
        arith.OrIOp: 0,
        arith.XOrIOp: 0,
        arith.MuliOp: 1,
        arith.AndIOp: -1,
        arith.MaxUIOp: 0,
        arith.MinUIOp: -1,
        arith.MaxSIOp: largest + 1,
        arith.MinSIOp: largest,
    }
    return constant(type, identities[cls]) if cls in identities else None


class Fold:
    """One reduction of a nest; `values` are its accumulators while the innermost loop runs."""

    def __init__(self, nest: OpenNest, op: Operation) -> None:
        self.nest, self.op = nest, op
        sources, accumulators, _ = array_values(op.properties["operandSegmentSizes"])
        self.sources = op.operands[:sources]
        self.buffers = op.operands[sources : sources + accumulators]
        self.indices = op.operands[sources + accumulators :]
        axis = ttc.reduced_axis(op)  # type: ignore[arg-type]
        assert axis is not None, "ttc.reduce leaves out one index of its nest"
        self.axis = axis
        self.combine: Block = op.regions[0].block
        types = [register_type(source.type) for source in self.sources]
        neutral = [neutral_element(self.combine, type) for type in types] if len(types) == 1 else [None]
        if any(element_bytes(source.type) == 1 and not str(source.type).startswith("i") for source in self.sources):
            neutral = [None]  # 8-bit floats are held as integers, but do not add up as such
        self.neutral = neutral[0]
        self.types = types
        self.is_ordered = self.neutral is None and (
            not nest.low.is_elementwise(self.combine) or not is_commutative(self.combine)
        )
        self.is_tree = follows_tree(op)
        self.values: list[Value] = []
        self.is_carried = False
        self.is_single = False
        self.step = 1  # along the axis, of the loop over whole chunks
        self.first_byte: int | None = None  # of its partial results in the scratch memory

    def begin(self, is_single: bool) -> None:
        """Start with accumulators in registers; `is_single`: there is one chunk, which is the result."""
        self.is_carried, self.is_single = True, is_single
        self.step = self.nest.step if self.axis == self.nest.dim else 1
        if is_single:
            self.values = []
            return
        if self.is_tree:
            self.counter = self.counter_in_stack()
            return
        b, lanes = self.nest.b, self.nest.lanes
        lanes = 1 if self.folds_chunks else lanes
        scalars = [self.neutral if self.neutral is not None else constant(type, 0) for type in self.types]
        self.values = [b.splat(scalar, lanes) if lanes > 1 else scalar for scalar in scalars]

    @property
    def folds_chunks(self) -> bool:
        """Return True if the accumulators are scalars, into which whole chunks are folded in order."""
        return (self.is_ordered or self.is_tree) and self.axis == self.nest.dim and self.nest.lanes > 1

    @property
    def chunks(self) -> int:
        """The number of chunks, or single elements, that are folded."""
        return -(-self.nest.shape[self.axis] // self.step)

    def joined(self, before: list[Value], after: list[Value]) -> list[Value]:
        return self.nest.low.region(self.combine, [*before, *after])

    def counter_in_stack(self) -> Counter:
        """Partial results of the innermost loop."""
        lanes, elements = 1 if self.folds_chunks else self.nest.lanes, [source.type for source in self.sources]
        stack = Stack(self.nest.low, elements, lanes, Counter.levels(self.chunks))
        return Counter(self.chunks, stack.read, stack.write, self.joined)

    def counter_in_arena(self) -> Counter:
        """Partial results of a loop with others inside: each level is as large as the accumulators."""
        nest, low = self.nest, self.nest.low
        b, levels = nest.b, Counter.levels(self.chunks)
        types = [ttc.buffer_of(buffer) for buffer in self.buffers]
        sizes = [aligned(prod(type.shape) * element_bytes(type.element)) for type in types]
        if self.first_byte is None:
            self.first_byte, nest.fold_bytes = nest.fold_bytes, nest.fold_bytes + levels * sum(sizes)
        memory = b.gep(low.scratch(nest.fold_bytes), self.first_byte)

        def addresses(level: Value) -> list[Kind]:
            starts = [levels * sum(sizes[:index]) for index in range(len(sizes))]
            return [
                address_of(nest, b.gep(b.gep(memory, start), b.mul(level, size)), scaled(type, self.indices))
                for start, size, type in zip(starts, sizes, types, strict=True)
            ]

        def read(level: Value) -> list[Value]:
            return [
                load(nest, type.element, address, None, None)
                for type, address in zip(types, addresses(level), strict=True)
            ]

        def write(level: Value, values: list[Value]) -> None:
            for type, value, address in zip(types, values, addresses(level), strict=True):
                store(nest, type.element, address, value, None)

        return Counter(self.chunks, read, write, self.joined)

    def add(self) -> None:
        """Combine the values of one chunk into the accumulators."""
        nest = self.nest
        b, lanes = nest.b, nest.lanes
        new = [nest.vector(source) for source in self.sources]
        new = [b.splat(value, lanes) if lanes > 1 and not value.type.is_vector else value for value in new]
        if self.folds_chunks:
            new = self.fold_lanes(new)
        if not self.is_carried:
            self.update_buffers(new)
        elif self.is_single:
            self.values = new
        elif self.is_tree:
            self.counter.add(b, b.udiv(nest.index, constant(i64, self.step)), new)
        else:
            combined = self.combined(new)
            if self.neutral is None and nest.index.constant is None:
                is_first = b.icmp("eq", nest.index, 0)
                combined = b.select_all(is_first, new, combined)
            self.values = combined

    def combined(self, new: list[Value]) -> list[Value]:
        """The accumulators and `new`, lane by lane; lanes that `new` does not have are unchanged."""
        b, held, count = self.nest.b, self.values, lanes_in(new[0])
        wide = lanes_in(held[0])
        first = held if count == wide else [b.some_lanes(value, range(count)) for value in held]
        made = self.nest.low.region(self.combine, [*first, *new])
        return made if count == wide else [replaced(b, old, some) for old, some in zip(held, made, strict=True)]

    def finish(self) -> None:
        """Write the accumulators, folded to one scalar if the lanes are along the axis."""
        nest = self.nest
        values = self.counter.total() if self.is_tree and not self.is_single else self.values
        if self.axis == nest.dim and nest.lanes > 1 and not self.folds_chunks:
            values = self.fold_lanes(values)
        self.write(values)
        self.is_carried = False

    def fold_lanes(self, values: list[Value]) -> list[Value]:
        """Fold to a scalar: the upper half of the lanes with the lower one, or neighbours, until one is left.

        Lanes that have no partner wait: of 7 the last one of all, or those in the middle.
        """
        b = self.nest.b
        while (count := lanes_in(values[0])) > 2:
            if self.is_ordered or self.is_tree:
                pairs = count // 2
                left, right, alone = range(0, 2 * pairs, 2), range(1, count, 2), range(2 * pairs, count)
            else:
                below = (1 << (count - 1).bit_length()) // 2
                pairs = count - below
                left, right, alone = range(pairs), range(below, count), range(pairs, below)
            halves = [b.some_lanes(value, lanes) for lanes in (left, right) for value in values]
            made = self.nest.low.region(self.combine, halves)
            waiting = [b.lanes(b.some_lanes(value, alone)) if alone else [] for value in values]
            values = [
                b.build_vector([*b.lanes(new), *old]) if old else new for new, old in zip(made, waiting, strict=True)
            ]
        return self.nest.low.region(self.combine, [b.extract(value, lane) for lane in (0, 1) for value in values])

    def write(self, values: list[Value]) -> None:
        for buffer, value in zip(self.buffers, values, strict=True):
            store(self.nest, ttc.buffer_of(buffer).element, self.address(buffer), value, None)

    def address(self, buffer: SSAValue) -> Kind:
        """The address of this chunk's part of an accumulator."""
        return address_of(self.nest, self.nest.low[buffer], scaled(ttc.buffer_of(buffer), self.indices))

    def update_buffers(self, new: list[Value]) -> None:
        """Accumulators in memory; the first index along the axis overwrites what is there."""
        nest = self.nest
        b = nest.b
        index = nest.kind(nest.block.args[self.axis])
        assert isinstance(index, Value), "the axis of a fold in memory is not that of the vector"
        if self.is_tree:
            counter, wide = self.counter_in_arena(), b.sext(index, i64)
            counter.add(b, wide, new)
            with b.if_(b.icmp("eq", wide, self.chunks - 1)):
                self.write(counter.total())
            return
        is_first = b.icmp("eq", index, 0)
        addresses = [self.address(buffer) for buffer in self.buffers]
        old = [load(nest, s.type, address, None, None) for s, address in zip(self.sources, addresses, strict=True)]
        combined = nest.low.region(self.combine, [*old, *new])
        for source, address, x, y in zip(self.sources, addresses, new, combined, strict=True):
            store(nest, source.type, address, b.select(is_first, x, y), None)


def lanes_in(value: Value) -> int:
    return value.type.count if value.type.is_vector else 1


def replaced(b: Builder, value: Value, first: Value) -> Value:
    """`value` with other first lanes."""
    count, wide = lanes_in(first), value.type.count
    if count == 1:
        return b.insert(value, first, 0)
    return b.shuffle(value, b.widened(first, wide), [*range(wide, wide + count), *range(count, wide)])


def hand_out(folds: list[Fold], values: Sequence[Value]) -> None:
    """Give each fold its part of the values that a loop carries."""
    position = 0
    for fold in folds:
        fold.values = list(values[position : position + len(fold.values)])
        position += len(fold.values)
