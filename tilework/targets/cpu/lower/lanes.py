"""The change of the values of a nest from one lane to the next.

The innermost loop of a nest runs L neighbouring indices of one dimension at once, and a value of its body is then

- *uniform*: the same in every lane, held as one scalar;
- `Linear`: ``start + stride * e`` for the index e along the dimension. Addresses and indices are mostly this; `start`
and
  `stride` do not depend on e, so they are computed before the loop and no vector is made;
- `Interval`: a condition that holds for ``low <= e < high``, the usual mask of a load;
- a vector of L elements.

`strides` finds out which, for all dimensions of the nest together: for each value and dimension how much one step of
the index adds. For ``%p + (%row * %n + %i * 8 + %j)`` on f32 and the dimensions (%i, %j) that is (32, 4), in bytes; 0
means that the value does not change, RUNTIME that it grows by an amount known only at run time, None that it is no
line.

A vector along one dimension may also be one of those in which a value that is divided passes no multiple of the divisor
(`nests.py`): then a quotient is still, and a rest a line.

A line that is extended to 64 bits goes on where its 32 bits would wrap around: an address that wraps once inside a tile
points nowhere, unless arrays have 2**31 elements. With a large stride it may wrap again and come back: then it is no
line. With one that is known only at run time the address of each lane is computed from its own 32 bits (`Linear.sum`).
Where such a value is not an address its lanes are computed one by one, exactly. So are those of a condition that
compares integers which wrap around inside the tile, as ``start + %j < %n`` does where `start` is near 2**31: that is
known once per row, at run time.

`OpenNest` is the part of a nest that the rules for loads, stores, checks and reductions see: its values and lanes.
"""

from abc import ABC, abstractmethod
from collections.abc import Container, Sequence
from typing import NamedTuple, TypeAlias

from xdsl.ir import Block, Operation, SSAValue

from tilework.ir import arith, tt, ttc
from tilework.ir.arith import predicate_of
from tilework.ir.types import PointerType, bit_width, i1
from tilework.targets.cpu.lower.lowering import Lowering, shaped
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.scalar_types import pointee_bytes
from tilework.targets.llvm.types import i1 as llvm_i1
from tilework.targets.llvm.types import i64
from tilework.targets.llvm.values import Value, constant
from tilework.transforms.folding.arith import constant_int

RUNTIME = "runtime"
Stride: TypeAlias = int | str | None
Strides: TypeAlias = tuple[Stride, ...]
NEVER = constant(llvm_i1, 0)


class Linear(NamedTuple):
    """``start + stride * e``; for a pointer the stride is an i64 in bytes, else it has the type of start."""

    start: Value
    stride: Value
    is_exact: bool = True  # false where wrap-around was ruled out by assumption
    wraps: Value = NEVER  # true if that assumption is wrong in this tile; unused for pointers
    sum: "tuple[Kind, Linear, int] | None" = (
        None  # of a pointer: another, and a line of 32 bits times bytes that may wrap around
    )


class Interval(NamedTuple):
    """True for ``low <= e < high``, both i64; elsewhere false, unless `wraps`: then `condition` is evaluated lane
    by lane.
    """

    low: Value
    high: Value
    wraps: Value
    condition: Operation


Kind: TypeAlias = Value | Linear | Interval


def plus(a: Stride, b: Stride) -> Stride:
    if a is None or b is None:
        return None
    if a.__class__ is str or b.__class__ is str:
        return RUNTIME
    return a + b  # type: ignore[operator]


def minus(a: Stride, b: Stride) -> Stride:
    return plus(a, -b if isinstance(b, int) else b)


def times(a: Stride, factor: int | None) -> Stride:
    """Return a stride multiplied by a constant, or by a loop-invariant value (None)."""
    if a == 0 or a is None:
        return a
    return a * factor if isinstance(a, int) and factor is not None else RUNTIME


SIGNED_ORDERS = frozenset({2, 3, 4, 5})  # slt sle sgt sge
KEEPING = (arith.TruncIOp, tt.IntToPtrOp, tt.PtrToIntOp, arith.IndexCastOp)


LEAST_DIVISOR = 8  # smaller ones have no vectors between their multiples
SHIFTS = (arith.ShRSIOp, arith.ShRUIOp)
RESTS = (arith.RemSIOp, arith.RemUIOp, arith.AndIOp)
DIVISIONS = frozenset({*RESTS, *SHIFTS, arith.DivSIOp, arith.DivUIOp})


class Division(NamedTuple):
    """A division of a non-negative integer, whose result is the remainder or the quotient."""

    divisor: int
    is_rest: bool


def division(op: Operation) -> Division | None:
    """The division that an op does, if its divisor is a large enough constant."""
    cls = type(op)
    if cls not in DIVISIONS or (divisor := constant_int(op.operands[1])) is None or bit_width(op.operands[0].type) < 32:
        return None
    if cls in SHIFTS:
        divisor = 1 << divisor if 0 <= divisor < 31 else 0
    elif cls is arith.AndIOp:
        divisor = 0 if divisor & (divisor + 1) else divisor + 1
    return Division(divisor, cls in RESTS) if divisor >= LEAST_DIVISOR else None


def strides(
    block: Block, shape: Sequence[int], conditions: Container[SSAValue] | None = None
) -> dict[SSAValue, Strides]:
    """The strides of every value of a nest's body; a value from outside is absent and does not change.

    With `conditions`: in a piece, where these hold.
    """
    rank = len(shape)
    still: Strides = (0,) * rank
    known: dict[SSAValue, Strides] = {
        arg: tuple(int(dim == position) for dim in range(rank)) for position, arg in enumerate(block.args)
    }
    for op in block.ops:
        if op.results:
            operands = [known.get(operand, still) for operand in op.operands]
            if conditions is None:
                found = op_strides(op, operands, shape)
            elif op.results[0] in conditions:
                found = still
            elif (part := division(op)) is not None:
                found = tuple(a * part.is_rest if a == 0 or a == 1 else None for a in operands[0])
            else:
                found = op_strides(op, operands, shape)
            for result in op.results:
                known[result] = found
    return known


def op_strides(op: Operation, operands: list[Strides], shape: Sequence[int]) -> Strides:
    """The strides of the result of one op."""
    cls, rank = type(op), len(shape)
    if cls is arith.AddiOp or cls is arith.SubiOp:
        found = tuple(map(plus if cls is arith.AddiOp else minus, *operands))
        if bit_width(op.results[0].type) > 32:  # lines that were extended need not be as far apart everywhere
            found = tuple(None if one == 0 and a != 0 else one for one, a in zip(found, operands[0], strict=True))
        return found
    if cls is arith.MuliOp:
        factors = [constant_int(operand) for operand in op.operands]
        return tuple(stride_of_mul(a, b, factors) for a, b in zip(*operands, strict=True))
    if cls is arith.ShLIOp and (amount := constant_int(op.operands[1])) is not None and 0 <= amount < 31:
        return tuple(times(a, 1 << amount) for a in operands[0])
    if cls is tt.AddPtrOp:
        size = pointee_bytes(op.operands[0].type)
        offsets = extended(op.operands[1], operands[1], shape)
        return tuple(plus(a, times(b, size)) for a, b in zip(operands[0], offsets, strict=True))
    if cls is ttc.CheckOp:
        return operands[0] if None not in operands[0] else vary(operands[:1], rank)
    if cls in KEEPING:
        return operands[0]
    if cls is arith.ExtSIOp:
        return tuple(None if one == RUNTIME else one for one in extended(op.operands[0], operands[0], shape))
    if cls is tt.BitcastOp and isinstance(op.operands[0].type, PointerType):
        return operands[0] if isinstance(op.results[0].type, PointerType) else vary(operands, rank)
    if cls is tt.AtomicRMWOp or cls is tt.AtomicCASOp or op.regions:
        return (None,) * rank  # each index has its own effect, or its own way through the region
    return vary(operands, rank)


def extended(value: SSAValue, own: Strides, shape: Sequence[int]) -> Strides:
    """Return the stride after an extension to 64 bits; a line that wraps around repeatedly, as in hash functions, is
    linear no more.
    """
    bits = bit_width(value.type)
    if bits == 64:
        return own
    fits = [bits == 32 and (not isinstance(one, int) or abs(one) * size < 1 << 31) for one, size in zip(own, shape)]
    return tuple(one if one == 0 or fit else None for one, fit in zip(own, fits))


def vary(operands: list[Strides], rank: int) -> Strides:
    """Return the strides of a result that is no linear function of its operands: 0 along dimensions in which all
    operands are constant, else unknown."""
    if not operands:
        return (0,) * rank
    return tuple(None if any(column) or None in column else 0 for column in zip(*operands, strict=True))


def stride_of_mul(a: Stride, b: Stride, factors: list[int | None]) -> Stride:
    if a == 0:
        return times(b, factors[0])
    if b == 0:
        return times(a, factors[1])
    return None


def intervals(block: Block, known: dict[SSAValue, Strides], dim: int) -> dict[SSAValue, None]:
    """The conditions of a body that are an `Interval` along `dim`, in order."""
    found: dict[SSAValue, None] = {}

    def stride(value: SSAValue) -> Stride:
        return known[value][dim] if value in known else 0

    for op in block.ops:
        if type(op) is arith.CmpiOp and predicate_of(op) in SIGNED_ORDERS and bit_width(op.operands[0].type) >= 32:
            if {stride(op.operands[0]), stride(op.operands[1])} == {0, 1}:
                found[op.results[0]] = None
        elif type(op) is arith.AndIOp and op.results[0].type == i1:
            inside = [operand in found for operand in op.operands]
            if any(inside) and all(yes or stride(o) == 0 for yes, o in zip(inside, op.operands, strict=True)):
                found[op.results[0]] = None
    return found


def leaves_range(b: Builder, start: Value, stride: Value, size: int) -> Value:
    """True if ``start + stride * e`` overflows its type for some ``e < size``."""
    if stride.constant == 1:
        return b.icmp("sgt", start, (1 << (start.type.bits - 1)) - size)
    last = b.add(b.sext(start, i64), b.mul(b.sext(stride, i64), size - 1))
    return b.icmp("ne", b.sext(b.trunc(last, start.type), i64), last)


def compared(b: Builder, line: Linear, name: str, bound: Value, size: int, condition: Operation) -> Interval:
    """The interval where a line of stride 1 is less than a limit (or compares to it as `name` says)."""
    edge, zero = b.sub(b.sext(bound, i64), b.sext(line.start, i64)), constant(i64, 0)
    if name in ("sle", "sgt"):
        edge = b.add(edge, 1)
    low, high = (zero, edge) if name in ("slt", "sle") else (edge, constant(i64, size))
    if line.start.type is i64:  # the difference of values below 2**62 does not overflow
        far = b.icmp("slt", b.or_(b.add(line.start, 1 << 62), b.add(bound, 1 << 62)), 0)
    else:
        far = leaves_range(b, line.start, constant(line.start.type, 1), size)
    wraps = b.or_(line.wraps, far)
    if line.start.type is i64 or high is not edge:  # a value below a 32-bit integer has not wrapped around
        high = b.select(wraps, zero, high)
    return Interval(low, high, wraps, condition)


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
        """A value as lanes; a uniform one remains a scalar."""
        kind = self.kind(value)
        if kind.__class__ is Value:
            return kind  # type: ignore[return-value]
        if isinstance(kind, Interval) and self.mode == FAST:
            return constant(llvm_i1, 1)
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
