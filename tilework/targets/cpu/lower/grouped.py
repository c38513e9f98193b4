"""Nests whose innermost dimensions are smaller than a vector: one vector spans several of them.

    ttc.nest [256, 2, 2] {^bb0(%i, %j, %k): ... read %keys[%i * 4 + %j * 2 + %k] ... read %half[%i * 2 + %j] ...}

    for i in 0, 4, 8, ..:                 sixteen lanes are i .. i+3, both j, both k
        keys[4i .. 4i + 15]               one vector
        half[2i .. 2i + 7]                eight elements, each of them in two lanes:  0 0 1 1 2 2 ..

An index, and every address computed from indices, is a base per chunk plus a constant offset per lane (`offsets`).
A read takes the whole stretch of memory between its lowest and its highest lane and deals the elements out by a
shuffle; a write must fill its stretch. Nests where that is not so, with masks or with reductions are left to `Nest`.
The same serves a dimension that is walked in steps of two or three elements: sorting networks consist of such nests.
"""

from collections.abc import Sequence
from math import prod

from xdsl.ir import Operation, SSAValue

from tilework.ir import tt, ttc
from tilework.targets.cpu.lower.lanes import RUNTIME, Linear, Stride
from tilework.targets.cpu.lower.lowering import Lowering, shaped
from tilework.targets.cpu.lower.nest_access import access_stride, element_address, is_volatile
from tilework.targets.cpu.lower.nests import SPECIAL, Nest
from tilework.targets.llvm.scalar_types import element_bytes
from tilework.targets.llvm.types import i32, i64
from tilework.targets.llvm.values import Value, constant

READS = (tt.LoadOp, ttc.ReadOp)
ACCESSES = (*READS, tt.StoreOp, ttc.WriteOp)
WIDEST = 2  # a stretch of memory has at most so many times the elements that are wanted


def nest_of(low: Lowering, op: Operation) -> Nest:
    """The better of the two ways to emit a nest."""
    plain = Nest(low, op)
    grouped = GroupedNest(low, op) if is_candidate(plain) else None
    return grouped if grouped is not None and grouped.is_possible() else plain


def is_candidate(nest: Nest) -> bool:
    """Return True if the nest has elementwise ops only, and not just full vectors with contiguous or uniform
    accesses.
    """
    if not nest.shape or nest.folds or any(nest.is_single(op) for op in nest.ops):
        return False
    found = [access_stride(op, nest.strides, nest.dim) for op in nest.ops]
    is_smooth = all(access is None or access[0] in (0, access[1]) for access in found)
    return not (is_smooth and nest.lanes == nest.wanted_lanes())


class GroupedNest(Nest):
    """Lanes along `group`: `step` indices of dimension `dim`, and all of the dimensions behind it."""

    def __init__(self, low: Lowering, op: Operation) -> None:
        super().__init__(low, op)
        self.intervals, self.has_pieces = {}, False
        lanes, inner, self.dim = self.wanted_lanes(), 1, len(self.shape) - 1
        while self.dim and inner * self.shape[self.dim] < lanes:
            inner *= self.shape[self.dim]
            self.dim -= 1
        self.step = min(max(1, lanes // inner), self.shape[self.dim])
        self.lanes = self.step * inner
        self.group = range(self.dim, len(self.shape))
        self.known_indices: dict[int, list[list[int]]] = {}  # by the step
        self.order = list(range(self.dim + 1))
        self.depths = self.find_depths()

    def is_possible(self) -> bool:
        """Return True if every access is one stretch of memory, also of the fewer lanes at the end, and the lanes are
        worth it.
        """
        if self.lanes < 4 or not self.has_stretches():
            return False
        if not (rest := self.shape[self.dim] % self.step):
            return True
        with self.fewer_lanes(rest):
            return self.has_stretches()

    def has_stretches(self) -> bool:
        return all(self.is_stretch(op) for op in self.ops if type(op) in SPECIAL)

    def is_stretch(self, op: Operation) -> bool:
        kind = type(op)
        if kind not in ACCESSES or (kind is tt.LoadOp and (len(op.operands) > 1 or is_volatile(op))):
            return False
        if kind is tt.StoreOp and len(op.operands) > 2:
            return False
        offsets = self.offsets(op)
        if offsets is None:
            return False
        if kind not in READS:
            return sorted(offsets) == list(range(self.lanes))
        span = max(offsets) - min(offsets) + 1
        return span <= WIDEST * self.lanes and (kind is ttc.ReadOp or len(set(offsets)) == span)

    def offsets(self, op: Operation) -> list[int] | None:
        """The distance in elements of each lane of an access from lane 0; None where it is unknown."""
        found = [access_stride(op, self.strides, dim) for dim in range(len(self.shape))]
        strides = [access[0] if access else 0 for access in found]
        if not all(isinstance(strides[dim], int) for dim in self.group):
            return None
        size = found[0][1] if found[0] else 1
        moved = self.lane_offsets(strides)
        return None if any(offset % size for offset in moved) else [offset // size for offset in moved]

    # Values

    def stride(self, value: SSAValue, dim: int | None = None) -> Stride:
        """0: the same in all lanes; RUNTIME: an offset per lane; None: a vector."""
        known = self.strides.get(value)
        found = () if known is None else known[self.dim :]
        if not any(found) and None not in found:
            return 0
        return RUNTIME if all(isinstance(stride, int) for stride in found) else None

    def lane_indices(self) -> list[list[int]]:
        """The index of every lane along each dimension of the group."""
        if (known := self.known_indices.get(self.step)) is not None:
            return known
        sizes = [self.step, *self.shape[self.dim + 1 :]]
        behind = [prod(sizes[position + 1 :]) for position in range(len(sizes))]
        found = [
            [lane // after % size for lane in range(self.lanes)] for size, after in zip(sizes, behind, strict=True)
        ]
        self.known_indices[self.step] = found
        return found

    def lane_offsets(self, strides: Sequence[Stride]) -> list[int]:
        """The offset of each lane from lane 0, for a value with these strides along all dimensions."""
        total = [0] * self.lanes
        for dim, indices in zip(self.group, self.lane_indices(), strict=True):
            stride = strides[dim]
            assert isinstance(stride, int), "the offsets of lanes are known"
            total = [offset + stride * index for offset, index in zip(total, indices, strict=True)]
        return total

    def vector(self, value: SSAValue) -> Value:
        kind = self.kind(value)
        if not isinstance(kind, Linear):
            assert isinstance(kind, Value), "there are no intervals here"
            return kind
        if not kind.is_exact:
            owner = value.owner
            assert isinstance(owner, Operation)
            return self.apply(owner)
        base, offsets = self.base(kind), self.lane_offsets(self.strides[value])
        if not any(offsets):
            return base
        b = self.b
        if base.type.is_pointer:
            return b.gep(base, constant(shaped(i64, self.lanes), offsets))
        return b.add(b.splat(base, self.lanes), constant(shaped(base.type, self.lanes), offsets))

    # Emission

    def emit(self) -> None:
        for dim in self.group:
            self.kinds[self.block.args[dim]] = Linear(constant(i32, 0), constant(i32, int(dim == self.dim)))
        self.level(0)

    def emit_op(self, op: Operation) -> None:
        if type(op) not in ACCESSES:
            super().emit_op(op)
            return
        if self.low.lines is not None:
            self.low.locate(op)
        offsets = self.offsets(op)
        assert offsets is not None, "every access is a stretch"
        if type(op) in READS:
            self.kinds[op.results[0]] = self.read(op, offsets)
        else:
            self.write(op, offsets)

    def read(self, op: Operation, offsets: list[int]) -> Value:
        """Load one vector from the lowest offset to the highest, and distribute it to the lanes."""
        b, element = self.b, op.results[0].type
        address, first, span = self.lane_0(op, 0), min(offsets), max(offsets) - min(offsets) + 1
        if span == 1:
            return self.low.read(element, address)
        if type(op) is ttc.ReadOp and type(op.operands[0].owner) is ttc.AllocOp:
            more = -span % self.low.target.lanes(8 * element_bytes(element))
            first, span = first - more, span + more  # whole machine vectors: an arena has other bytes before a buffer
        stretch = self.low.read(element, b.gep(address, first * element_bytes(element)), span)
        return b.shuffle(stretch, None, [offset - first for offset in offsets])

    def write(self, op: Operation, offsets: list[int]) -> None:
        b, buffer = self.b, int(type(op) is ttc.WriteOp)
        given = op.operands[1 - buffer]
        value = self.vector(given)
        if self.lanes == 1:
            self.low.write(given.type, value, self.lane_0(op, buffer))
            return
        if not value.type.is_vector:
            value = b.splat(value, self.lanes)
        lanes = [offsets.index(offset) for offset in range(self.lanes)]
        self.low.write(given.type, b.shuffle(value, None, lanes), self.lane_0(op, buffer))

    def lane_0(self, op: Operation, position: int) -> Value:
        """The address that lane 0 accesses; operand `position` is the pointer or the buffer."""
        if type(op) is tt.LoadOp or type(op) is tt.StoreOp:
            return self.first(op.operands[position])
        return element_address(self.low, op, position, self.first)

    def first(self, value: SSAValue) -> Value:
        """The value in lane 0."""
        kind = self.kind(value)
        if isinstance(kind, Linear):
            return self.base(kind)
        assert isinstance(kind, Value) and not kind.type.is_vector, "an address is a line"
        return kind
