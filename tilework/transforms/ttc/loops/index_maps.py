"""Where an element of a tile comes from, as bits of its row-major index.

Every size in a tile is a power of two, so the row-major index of an element is a string of bits, and ops that move
elements only drop, permute or fix bits. An index is a tuple of bits, the lowest first; each is the number of a bit of the
loop nest's index, or `ZERO` or `ONE`:

    %t = tt.trans %x : tensor<4x8xf32> -> tensor<8x4xf32>
    the element (0, 1, 2, 3, 4) of %t  is  the element (2, 3, 4, 0, 1) of %x:  the two bits of the row were the lowest

`sources` gives the elements of the operands that one element of a result needs. A reshape keeps all bits as they are, a
broadcast drops some, a split adds a fixed one.
"""

from collections.abc import Callable, Sequence
from functools import cache
from math import prod

from xdsl.dialects import arith, ub
from xdsl.ir import Operation, OpResult, SSAValue

from tilework.ir import tt
from tilework.ir.effects import ELEMENTWISE
from tilework.ir.rewrite import attr_value
from tilework.ir.types import Shape, array_values, axis_of, is_tensor, shape_of

Bits = tuple[int, ...]
Source = tuple[SSAValue, Bits]
ZERO, ONE = -1, -2
SMALL_AXIS = 2  # a reduction along so few elements is computed where it is used


@cache
def width(size: int) -> int:
    """The bits of an index below `size`."""
    assert size & (size - 1) == 0, f"{size} is not a power of two"
    return size.bit_length() - 1


@cache
def whole(count: int) -> Bits:
    """The index of a tile of 2**count elements, bit by bit."""
    return tuple(range(count))


@cache
def tile_bits(shape: Shape) -> int:
    """The bits of the row-major index of a tile."""
    return width(prod(shape))


@cache
def spans(shape: Shape) -> tuple[tuple[int, int], ...]:
    """The first bit of each dimension, and the one behind it."""
    ends = [tile_bits(shape[dimension:]) for dimension in range(len(shape) + 1)]
    return tuple((ends[dimension + 1], ends[dimension]) for dimension in range(len(shape)))


def is_lazy(op: Operation) -> bool:
    """Elements of the result are computed where they are used, from those of the operands."""
    kind = type(op)
    if kind is arith.ConstantOp:
        return attr_value(op.properties["value"]) is not None
    return kind in ELEMENTWISE or (kind in MAPS and (kind is not tt.ReduceOp or is_small_reduce(op)))


def is_small_reduce(op: Operation) -> bool:
    """A reduction of two elements, by straight code."""
    if shape_of(op.operands[0].type)[axis_of(op)] > SMALL_AXIS or not op.regions or not is_tensor(op.results[0].type):
        return False
    region = op.regions[0]
    return len(region.blocks) == 1 and not any(inner.regions for inner in region.block.ops)


def sources(value: SSAValue, bits: Bits) -> Sequence[Source]:
    """What the element `bits` of the lazy `value` is computed from."""
    assert isinstance(value, OpResult), value
    op = value.op
    if (rule := MAPS.get(type(op))) is not None:
        return rule(op, value.index, bits)
    return [(operand, bits) for operand in op.operands]


def same_order(op: Operation, number: int, bits: Bits) -> Sequence[Source]:
    return [(op.operands[0], bits)]


def no_source(op: Operation, number: int, bits: Bits) -> Sequence[Source]:
    return []


def splat_source(op: Operation, number: int, bits: Bits) -> Sequence[Source]:
    return [(op.operands[0], ())]


def broadcast_source(op: Operation, number: int, bits: Bits) -> Sequence[Source]:
    """Dimensions of one element have no bits."""
    return [(op.operands[0], broadcast_bits(shape_of(op.operands[0].type), shape_of(op.results[0].type), bits))]


def broadcast_bits(source: Shape, result: Shape, bits: Bits) -> Bits:
    kept = [span for span, size in zip(spans(result), source, strict=True) if size > 1]
    return tuple(bit for start, end in reversed(kept) for bit in bits[start:end])


def trans_source(op: Operation, number: int, bits: Bits) -> Sequence[Source]:
    """Dimension i of the result is dimension order[i] of the source."""
    order = array_values(op.properties["order"])
    parts = spans(shape_of(op.results[0].type))
    places = [parts[order.index(dimension)] for dimension in range(len(order))]
    return [(op.operands[0], tuple(bit for start, end in reversed(places) for bit in bits[start:end]))]


def join_sources(op: Operation, number: int, bits: Bits) -> Sequence[Source]:
    """The last index says which operand; both are read when it varies."""
    return chosen(op.operands, bits[0], bits[1:])


def cat_sources(op: Operation, number: int, bits: Bits) -> Sequence[Source]:
    """The first bit of the index says which operand."""
    return chosen(op.operands, bits[-1], bits[:-1])


def chosen(operands: Sequence[SSAValue], selector: int, rest: Bits) -> Sequence[Source]:
    if selector in (ZERO, ONE):
        return [(operands[0 if selector == ZERO else 1], rest)]
    return [(operand, rest) for operand in operands]


def split_source(op: Operation, number: int, bits: Bits) -> Sequence[Source]:
    return [(op.operands[0], (ONE if number else ZERO, *bits))]


def reduce_sources(op: Operation, number: int, bits: Bits) -> Sequence[Source]:
    """All elements along the axis: first of every operand at 0, then at 1."""
    start, end = spans(shape_of(op.operands[0].type))[axis_of(op)]
    places = (ZERO, ONE) if end > start else (None,)
    found: list[Source] = []
    for place in places:
        inner = bits if place is None else (*bits[:start], place, *bits[start:])
        found += [(operand, inner) for operand in op.operands]
    return found


def gather_source(op: Operation, number: int, bits: Bits) -> Sequence[Source]:
    """The index; the element itself is read from a buffer."""
    return [(op.operands[1], bits)]


MAPS: dict[type[Operation], Callable[[Operation, int, Bits], Sequence[Source]]] = {
    arith.ConstantOp: no_source,
    ub.PoisonOp: no_source,
    tt.BroadcastOp: broadcast_source,
    tt.CatOp: cat_sources,
    tt.ExpandDimsOp: same_order,
    tt.GatherOp: gather_source,
    tt.JoinOp: join_sources,
    tt.MakeRangeOp: no_source,
    tt.ReduceOp: reduce_sources,
    tt.ReshapeOp: same_order,
    tt.SplatOp: splat_source,
    tt.SplitOp: split_source,
    tt.TransOp: trans_source,
}


def cuts_of(bits: Bits) -> set[int]:
    """Where the nest's index must be cut into loops, so that each run of bits is whole loops."""
    found: set[int] = set()
    previous = None
    for bit in bits:
        if bit < 0:
            if previous is not None and previous >= 0:
                found.add(previous + 1)
        elif previous is None or bit != previous + 1 or previous < 0:
            found.add(bit)
            if previous is not None and previous >= 0:
                found.add(previous + 1)
        previous = bit
    if previous is not None and previous >= 0:
        found.add(previous + 1)
    return found
