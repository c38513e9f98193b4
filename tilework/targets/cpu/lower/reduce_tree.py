"""Folding by the tree of `ir/module_facts.py` while the elements come one after the other: a binary counter of partial results.

    element        0      1         2            3                   4
    level 0        x0     .         x2           .                   x4
    level 1               x0 x1     x0 x1        .                   .
    level 2                                      (x0 x1) (x2 x3)     (x0 x1) (x2 x3)

Element `t` is combined with as many levels as `t` has ones at its end, and is left on the next one. What is left behind the last
element is combined from the lowest level up. An element may be a vector (the fold goes across it), or the total of a chunk whose lanes
lie along the axis and have been folded, neighbours with neighbours: the chunk is a power of two, so its total is a node of the tree.
"""

from collections.abc import Callable, Sequence

from xdsl.ir import Attribute

from tilework.targets.cpu.lower.lowering import Lowering
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.scalar_types import element_bytes
from tilework.targets.llvm.types import i8, i64
from tilework.targets.llvm.values import Value, constant

Row = list[Value]


class Stack:
    """Rows of values on the stack, one for each level: of each element so many `lanes`."""

    def __init__(self, low: Lowering, elements: Sequence[Attribute], lanes: int, levels: int) -> None:
        self.low, self.elements, self.lanes = low, elements, lanes
        self.sizes = [lanes * element_bytes(element) for element in elements]
        self.memory = [low.builder.alloca(i8, size * levels, align=64) for size in self.sizes]

    def places(self, level: Value) -> list[Value]:
        b = self.low.builder
        return [b.gep(stack, b.mul(level, size)) for stack, size in zip(self.memory, self.sizes, strict=True)]

    def read(self, level: Value) -> Row:
        pairs = zip(self.elements, self.places(level), strict=True)
        return [self.low.read(element, place, self.lanes) for element, place in pairs]

    def write(self, level: Value, values: Row) -> None:
        for element, value, place in zip(self.elements, values, self.places(level), strict=True):
            self.low.write(element, value, place)


class Counter:
    """Partial results of `count` elements: ``read(level)`` and ``write(level, values)`` say where they are, ``combine(earlier, later)``."""

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

    def add(self, b: Builder, number: Value, values: Row) -> None:
        """The element `number` (an i64) joins."""
        ones = b.cttz(b.xor(number, constant(i64, -1)))
        with b.loop_carrying(constant(i64, 0), ones, 1, values, unroll=1) as loop:
            loop.next(self.combine(self.read(loop.index), list(loop.carried)))
        self.write(ones, list(loop.results))

    def total(self) -> Row:
        """All of them, once the last one has joined."""
        left = [level for level in range(self.levels(self.count)) if self.count >> level & 1]
        values = self.read(constant(i64, left[0]))
        for level in left[1:]:
            values = self.combine(self.read(constant(i64, level)), values)
        return values
