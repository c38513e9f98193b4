"""What the rules for loads, stores, checks and reductions know of the nest in which they emit: its values and its lanes."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from xdsl.ir import Block, Operation, SSAValue

from tilework.targets.cpu.lower.lanes import Interval, Kind, Linear
from tilework.targets.cpu.lower.lowering import Lowering, shaped
from tilework.targets.llvm.types import i1, i64
from tilework.targets.llvm.values import Value, constant

CHECK, FAST, SLOW = "check", "fast", "slow"  # what is known of the masks of a chunk: nothing, all on, some off


class OpenNest(ABC):
    """One nest being emitted: `kinds` holds what is known of the values of its body."""

    dim: int  # the dimension of the vector
    lanes: int
    index: Value  # of the innermost loop
    shape: Sequence[int]
    step: int  # of the loop along `dim`
    fold_bytes: int = 0  # of scratch memory that folds use

    def __init__(self, low: Lowering, block: Block) -> None:
        self.low, self.b = low, low.builder
        self.block = block
        self.kinds: dict[SSAValue, Kind] = {}
        self.chunk: Value = constant(i64, 0)  # the index of lane 0 along `dim`
        self.mode = CHECK
        self.is_rare = False  # what is emitted is hardly ever run
        self.later: dict[Operation, Linear] = {}  # where loads will be in a row that is read soon
        self.past: dict[Operation, Value] = {}  # stores that may go past the caches, and whether they do
        self.rows: dict[Operation, tuple[Value, Value]] = {}  # the same for this row, and whether it begins with a line
        self.ahead = 0  # bytes between what is read and what is fetched into the cache then

    @abstractmethod
    def apply(self, op: Operation) -> Value:
        """The result of an op of the body, lane by lane."""

    def kind(self, value: SSAValue) -> Kind:
        found = self.kinds.get(value)
        return self.low[value] if found is None else found

    def base(self, line: Linear) -> Value:
        """The value of lane 0."""
        b = self.b
        if line.start.type.is_pointer:
            return b.gep(line.start, b.mul(self.chunk, line.stride))
        return b.add(line.start, b.mul(b.trunc(self.chunk, line.stride.type), line.stride))

    def vector(self, value: SSAValue) -> Value:
        """A value as lanes; a uniform one stays a scalar."""
        kind = self.kind(value)
        if kind.__class__ is Value:
            return kind  # type: ignore[return-value]
        if isinstance(kind, Interval) and self.mode == FAST:
            return constant(i1, 1)
        if isinstance(kind, Interval):
            return self.apply(kind.condition)
        assert isinstance(kind, Linear)
        is_address = self.lanes == 1 and kind.start.type.is_pointer and kind.sum is None
        if not kind.is_exact and not is_address:
            owner = value.owner
            assert isinstance(owner, Operation)
            return self.apply(owner)
        base = self.base(kind)
        if self.lanes == 1:
            return base
        return self.spread_line(base, kind.stride)

    def spread_line(self, base: Value, stride: Value) -> Value:
        """base, base + stride, base + 2 * stride, ... by lane."""
        b = self.b
        type_ = shaped(stride.type, self.lanes)
        steps = b.mul(b.iota(type_), b.splat(stride, self.lanes))
        return b.gep(base, steps) if base.type.is_pointer else b.add(b.splat(base, self.lanes), steps)
