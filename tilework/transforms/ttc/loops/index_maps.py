"""The source of each element of a tile, as digits of its row-major index.

The row-major index of an element of a 4x8 tile has two digits, the column (below 8) and the row (below 4); ops that
move elements only drop, permute or fix digits. An index is a tuple of digits, the lowest first, each expressed by the
loop nest's index, ``nest's index // divisor % radix``, or known:

    %t = tt.trans %x : tensor<4x8xf32> -> tensor<8x4xf32>
    the element i of %t  is  the element  (i // 4 % 8,  i // 1 % 4)  of %x:  the row was the lower digit

`sources` gives the elements of the operands that one element of a result needs. A reshape keeps all digits as they are,
a broadcast drops some, a split adds a fixed one. Digits that follow each other are written as one, so that equal
indices are equal tuples. A digit can be cut where its radix can be divided: 8 into 2 and 4. Where an op would have to
cut elsewhere (a transposed 6x4 seen as 3x8), the digit is computed from the integer that the lower digits form:
``(digits) // divisor % radix``.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from math import prod
from typing import NamedTuple

from xdsl.ir import Operation, OpResult, SSAValue

from tilework.ir import arith, tt, ub
from tilework.ir.effects import ELEMENTWISE
from tilework.ir.rewrite import attr_value
from tilework.ir.types import Shape, array_values, axis_of, is_tensor, shape_of


class Digit(NamedTuple):
    """``index // divisor % radix`` of the nest's index, or of the value `of`; the fixed `value` if the divisor is 0."""

    radix: int
    divisor: int
    value: int = 0
    of: "Digits" = ()


Digits = tuple[Digit, ...]
Source = tuple[SSAValue, Digits]
SMALL_AXIS = 2  # a reduction along so few elements is computed where it is used


def fixed(value: int, radix: int) -> Digit:
    return Digit(radix, 0, value)


@cache
def whole(count: int) -> Digits:
    """The index of a tile of `count` elements."""
    return (Digit(count, 1),) if count > 1 else ()


@cache
def spans(shape: Shape) -> tuple[tuple[int, int], ...]:
    """(step of the row-major index, step times size) of each dimension: (8, 32) and (1, 8) of 4x8."""
    ends = [prod(shape[dimension:]) for dimension in range(len(shape) + 1)]
    return tuple((ends[dimension + 1], ends[dimension]) for dimension in range(len(shape)))


@cache
def agree(one: Shape, other: Shape) -> bool:
    """Return True if loops over both shapes of as many elements are loops over one: 48x80 and 96x40 are, 48x80 and
    60x64 are not."""
    return all(a % b == 0 or b % a == 0 for a, _ in spans(one) for b, _ in spans(other))


@cache
def part(digits: Digits, low: int, high: int) -> Digits:
    """The digits of ``value // low % (high // low)``, cut where necessary."""
    found: list[Digit] = []
    weight = 1
    for digit in digits:
        end = weight * digit.radix
        first, last = max(low, weight), min(high, end)
        if first < last:
            if first % weight or last % first or end % last:
                return (Digit(high // low, low, of=digits),)
            found.append(cut(digit, first // weight, last // weight))
        weight = end
    return joined(found)


def cut(digit: Digit, low: int, high: int) -> Digit:
    """``digit // low % (high // low)``, both of which divide the radix."""
    radix = high // low
    if digit.divisor == 0:
        return fixed(digit.value // low % radix, radix)
    return Digit(radix, digit.divisor * low, of=digit.of)


def joined(digits: Iterable[Digit]) -> Digits:
    """Merge adjacent digits where possible."""
    found: list[Digit] = []
    for digit in digits:
        if digit.radix == 1:
            continue
        last = found[-1] if found else digit
        if found and last.divisor == digit.divisor == 0:
            found[-1] = fixed(last.value + last.radix * digit.value, last.radix * digit.radix)
        elif found and last.divisor and last.of == digit.of and last.divisor * last.radix == digit.divisor:
            found[-1] = last._replace(radix=last.radix * digit.radix)
        else:
            found.append(digit)
    return tuple(found)


def parts(digits: Digits, spans: Iterable[tuple[int, int]]) -> Digits:
    """Several parts as one index, the lowest first."""
    return joined(digit for low, high in spans for digit in part(digits, low, high))


def is_lazy(op: Operation) -> bool:
    """Return True if elements of the result are computed where they are used, from those of the operands."""
    kind = type(op)
    if kind is arith.ConstantOp:
        return attr_value(op.properties["value"]) is not None
    if kind in ELEMENTWISE:
        return True
    return kind in MAPS and (kind not in LAZY_IF or LAZY_IF[kind](op))


def is_small_reduce(op: Operation) -> bool:
    """Return True for a reduction of at most two elements by straight-line code."""
    if shape_of(op.operands[0].type)[axis_of(op)] > SMALL_AXIS or not op.regions or not is_tensor(op.results[0].type):
        return False
    region = op.regions[0]
    return len(region.blocks) == 1 and not any(inner.regions for inner in region.block.ops)


def sources(value: SSAValue, digits: Digits) -> Sequence[Source]:
    """The values that the element `digits` of the lazy `value` is computed from."""
    assert isinstance(value, OpResult), value
    op = value.op
    if (rule := MAPS.get(type(op))) is not None:
        return rule(op, value.index, digits)
    return [(operand, digits) for operand in op._operands]


def broadcast_source(op: Operation, index: int, digits: Digits) -> Sequence[Source]:
    """Dimensions of one element have no digits."""
    sizes = zip(spans(shape_of(op.results[0].type)), shape_of(op.operands[0].type), strict=True)
    return [(op.operands[0], parts(digits, [span for span, size in sizes if size > 1][::-1]))]


def trans_source(op: Operation, index: int, digits: Digits) -> Sequence[Source]:
    """Dimension i of the result is dimension order[i] of the source."""
    order = array_values(op.properties["order"])
    found = spans(shape_of(op.results[0].type))
    return [(op.operands[0], parts(digits, [found[order.index(dim)] for dim in reversed(range(len(order)))]))]


def join_sources(op: Operation, index: int, digits: Digits) -> Sequence[Source]:
    """The last index selects the operand; both are read when it varies."""
    return chosen(op, digits, part(digits, 2, prod(shape_of(op.results[0].type))))


def cat_sources(op: Operation, index: int, digits: Digits) -> Sequence[Source]:
    """The highest digit of the index selects the operand."""
    return chosen(op, digits, part(digits, 1, prod(shape_of(op.operands[0].type))))


def selector(op: Operation, digits: Digits) -> Digits:
    """The digit that selects the operand of a join or cat."""
    count = prod(shape_of(op.results[0].type))
    return part(digits, 1, 2) if type(op) is tt.JoinOp else part(digits, count // 2, count)


def chosen(op: Operation, digits: Digits, rest: Digits) -> Sequence[Source]:
    (which,) = selector(op, digits)
    if which.divisor == 0:
        return [(op.operands[which.value], rest)]
    return [(operand, rest) for operand in op.operands]


def reduce_sources(op: Operation, index: int, digits: Digits) -> Sequence[Source]:
    """Return the elements along the axis: those of every operand at 0, then at 1."""
    shape = shape_of(op.operands[0].type)
    (start, end), count = spans(shape)[axis_of(op)], prod(shape)
    size = end // start
    below, above = part(digits, 1, start), part(digits, start, count // size)
    found: list[Source] = []
    for weight in range(size):
        inner = joined((*below, fixed(weight, size), *above))
        found += [(operand, inner) for operand in op.operands]
    return found


def no_growth(op: Operation) -> bool:
    """Return True if a `tt.resize` only leaves elements out."""
    given, made = shape_of(op.operands[0].type), shape_of(op.results[0].type)
    return all(size <= have for size, have in zip(made, given, strict=True))


MAPS: dict[type[Operation], Callable[[Operation, int, Digits], Sequence[Source]]] = {
    **dict.fromkeys((arith.ConstantOp, ub.PoisonOp, tt.MakeRangeOp, tt.ResizeOp), lambda op, index, digits: []),
    **dict.fromkeys((tt.ExpandDimsOp, tt.ReshapeOp), lambda op, index, digits: [(op.operands[0], digits)]),
    tt.BroadcastOp: broadcast_source,
    tt.CatOp: cat_sources,
    tt.GatherOp: lambda op, index, digits: [(op.operands[1], digits)],  # the element itself is read from a buffer
    tt.JoinOp: join_sources,
    tt.ReduceOp: reduce_sources,
    tt.SplatOp: lambda op, index, digits: [(op.operands[0], ())],
    tt.SplitOp: lambda op, index, digits: [(op.operands[0], joined((fixed(index, 2), *digits)))],
    tt.TransOp: trans_source,
}

LAZY_IF: dict[type[Operation], Callable[[Operation], bool]] = {tt.ReduceOp: is_small_reduce, tt.ResizeOp: no_growth}
PICKING = (tt.GatherOp, tt.ResizeOp)  # they read elements of a buffer: the first operand is stored as a whole


@cache
def cuts_of(digits: Digits) -> frozenset[int]:
    """The cuts of the nest's index into loops such that each digit consists of whole loops."""
    found: set[int] = set()
    for digit in digits:
        if digit.of:
            found |= cuts_of(digit.of)
        elif digit.divisor:
            found |= {digit.divisor, digit.divisor * digit.radix}
    return frozenset(found)
