"""Facts about the elements of integers and pointers along each axis, and the rule of each op.

A fact (`AxisInfo`) describes every dimension of an integer or pointer value by three integers. The tensor

    [[10, 11, 12, 13, 18, 19, 20, 21],
     [20, 21, 22, 23, 28, 29, 30, 31]]        contiguity = [1, 4], divisibility = [1, 2], constancy = [1, 1]

- contiguity: the dimension splits into aligned runs of that many elements, each one more than the last;
- divisibility: divides the **first** element of every such run (in bytes for pointers);
- constancy: the dimension splits into aligned runs of that many equal elements;
- constant: the value of all elements, if it is known, as an unsigned integer of the element's width.

A rule that shortens the runs must not keep a divisor that only held at the start of the longer ones: `at_run_starts`.

    %r = tt.make_range {start = 0, end = 64}      contiguity 64
    %s = tt.splat %n (a multiple of 16)           divisibility 16, constancy 64
    arith.addi %s, %r                             contiguity 64, divisibility 16
    arith.muli %s, %r                             contiguity 1, divisibility 16: neighbours are %n apart
    arith.cmpi slt, %r, %s                        constancy 16: the result changes only at multiples of 16

`TRANSFER` maps an op class to its rule; an op without a rule is unknown (`pessimistic`). Integers may overflow:
divisors are powers of two, runs that begin at their multiples do not cross the ends of a type, and `non_negative.py`
decides which values are not negative.
"""

from collections.abc import Callable, Sequence
from functools import cache
from math import gcd
from typing import NamedTuple

from xdsl.dialects import builtin
from xdsl.ir import Attribute, Operation

from tilework.analysis.non_negative import is_non_negative
from tilework.ir import arith, tt, ttg, ub
from tilework.ir.arith import EVALUATE, SGE, SGT, SLE, SLT, UGE, UGT, ULE, ULT, SelectOp, compare, predicate_of, signed
from tilework.ir.rewrite import constant_value
from tilework.ir.types import PointerType, axis_of, bit_width, element_type, is_float, shape_of

MAX = 1 << 62  # the divisor of zero; multiplications of divisors saturate here

PerAxis = tuple[int, ...]


class AxisInfo(NamedTuple):
    """The facts about one value, an integer per dimension; a scalar has one dimension of one element."""

    contiguity: PerAxis
    divisibility: PerAxis
    constancy: PerAxis
    constant: int | None = None

    def __str__(self) -> str:
        contiguity, divisibility, constancy = (", ".join(map(str, values)) for values in self[:3])
        constant = "<none>" if self.constant is None else self.constant
        return (
            f"contiguity = [{contiguity}], divisibility = [{divisibility}], "
            f"constancy = [{constancy}], constant_value = {constant}"
        )


@cache
def dimensions(type: Attribute) -> PerAxis:
    """Return the shape of a tensor; a scalar counts as one dimension of one element."""
    return shape_of(type) or (1,)


@cache
def pessimistic(rank: int) -> AxisInfo:
    """The facts about an unknown value."""
    return AxisInfo((1,) * rank, (1,) * rank, (1,) * rank)


def unknown(type: Attribute) -> AxisInfo:
    """The facts about an unknown value of `type`."""
    return pessimistic(len(dimensions(type)))


@cache
def undefined(rank: int) -> AxisInfo:
    """The facts about a poison value, which are neutral in `join`."""
    return AxisInfo((MAX,) * rank, (MAX,) * rank, (MAX,) * rank)


def power_of_two_divisor(value: int) -> int:
    """Return the lowest set bit; `MAX` for zero: 24 gives 8."""
    return min(value & -value, MAX) if value else MAX


def of_constant(value: int, type: Attribute) -> AxisInfo:
    """The facts about a constant whose elements are all `value` (taken modulo the width)."""
    value &= (1 << bit_width(type)) - 1
    shape = dimensions(type)
    rank = len(shape)
    return AxisInfo((1,) * rank, (power_of_two_divisor(value),) * rank, shape, value)


def join(a: AxisInfo, b: AxisInfo) -> AxisInfo:
    """Return what holds of a value that is either `a` or `b`."""
    if a == b:
        return a
    constant = a.constant if a.constant == b.constant else None
    return merge(a, b, each(gcd, a.contiguity, b.contiguity), each(gcd, a.constancy, b.constancy), constant)


def merge(a: AxisInfo, b: AxisInfo, contiguity: PerAxis, constancy: PerAxis, constant: int | None) -> AxisInfo:
    """Return the facts of runs of `contiguity` elements, each taken whole from `a` or from `b`."""
    divisibility = each(gcd, at_run_starts(a, contiguity), at_run_starts(b, contiguity))
    return AxisInfo(contiguity, divisibility, constancy, constant)


def at_run_starts(info: AxisInfo, contiguity: PerAxis, unit: int = 1) -> PerAxis:
    """Return the divisors of `info` at the starts of runs of `contiguity` elements that step by `unit`.

    In 8, 9, 10, 11 the run of four starts at a multiple of 8, but its runs of two only at multiples of 2. A pointer
    steps by the size of its pointee.
    """
    return tuple(
        divisor if run % own == 0 or own == MAX else gcd(divisor, gcd(own, run) * unit)
        for divisor, own, run in zip(info.divisibility, info.contiguity, contiguity, strict=True)
    )


def each(function: Callable[[int, int], int], a: PerAxis, b: PerAxis) -> PerAxis:
    return tuple(map(function, a, b))


def saturated(a: int, b: int) -> int:
    """Return `a` * `b`, at most `MAX`."""
    return min(a * b, MAX)


def spans(runs: PerAxis, type: Attribute) -> tuple[bool, ...]:
    """Return per dimension whether one run covers it."""
    return tuple(run >= size for run, size in zip(runs, dimensions(type), strict=True))


MAX_RANGE = 1 << 30  # the divisor of the 32-bit start of a range, when it is zero

Rule = Callable[[Operation, Sequence[AxisInfo]], AxisInfo]


# --- values created, copied and reshaped ------------------------------------------------------------------------------


def constant(op: Operation, known: Sequence[AxisInfo]) -> AxisInfo:
    result = op.results[0]
    value = None if is_float(element_type(result.type)) else constant_value(result)
    return unknown(result.type) if value is None else of_constant(int(value), result.type)


def make_range(op: Operation, known: Sequence[AxisInfo]) -> AxisInfo:
    start, end = (op.properties[name].value.data for name in ("start", "end"))  # pyright: ignore
    return AxisInfo((end - start,), (min(power_of_two_divisor(start), MAX_RANGE),), (1,))


def splat(op: Operation, known: Sequence[AxisInfo]) -> AxisInfo:
    shape = dimensions(op.results[0].type)
    return AxisInfo((1,) * len(shape), known[0].divisibility * len(shape), shape, known[0].constant)


def copy(op: Operation, known: Sequence[AxisInfo]) -> AxisInfo:
    """Casts; a cast between ranks (`builtin.unrealized_conversion_cast`) keeps nothing."""
    (info,) = known
    if len(info.contiguity) != len(dimensions(op.results[0].type)):
        return unknown(op.results[0].type)
    if info.constant is None:
        return info
    narrowed = info.constant & ((1 << bit_width(op.results[0].type)) - 1)
    return info._replace(constant=narrowed)


def extend_signed(op: Operation, known: Sequence[AxisInfo]) -> AxisInfo:
    (info,) = known
    if info.constant is None:
        return info
    extended = signed(info.constant, bit_width(op.operands[0].type)) & ((1 << bit_width(op.results[0].type)) - 1)
    return info._replace(constant=extended)


def bitcast(op: Operation, known: Sequence[AxisInfo]) -> AxisInfo:
    """Pointers to elements of another size are no longer one element apart."""
    (info,) = known
    old, new = pointee_bytes(op.operands[0].type), pointee_bytes(op.results[0].type)
    if old == new:
        return info
    contiguity = (1,) * len(info.contiguity)
    divisibility = tuple(
        divisor if run == 1 else gcd(divisor, old)
        for divisor, run in zip(info.divisibility, info.contiguity, strict=True)
    )
    return AxisInfo(contiguity, divisibility, info.constancy, info.constant)


def broadcast(op: Operation, known: Sequence[AxisInfo]) -> AxisInfo:
    (info,) = known
    old, new = dimensions(op.operands[0].type), dimensions(op.results[0].type)
    contiguity = tuple(run if a == b else 1 for run, a, b in zip(info.contiguity, old, new, strict=True))
    constancy = tuple(run if a == b else b for run, a, b in zip(info.constancy, old, new, strict=True))
    return AxisInfo(contiguity, info.divisibility, constancy, info.constant)


def expand_dims(op: Operation, known: Sequence[AxisInfo]) -> AxisInfo:
    (info,) = known
    axis = axis_of(op)
    if info.constant is not None:
        divisor = power_of_two_divisor(info.constant)
    else:
        divisor = gcd(*(1 if run > 1 else d for run, d in zip(info.contiguity, info.divisibility, strict=True)))
    return AxisInfo(
        (*info.contiguity[:axis], 1, *info.contiguity[axis:]),
        (*info.divisibility[:axis], divisor, *info.divisibility[axis:]),
        (*info.constancy[:axis], 1, *info.constancy[axis:]),
        info.constant,
    )


def transpose(op: Operation, known: Sequence[AxisInfo]) -> AxisInfo:
    (info,) = known
    order = op.properties["order"].get_values()  # pyright: ignore
    contiguity, divisibility, constancy = (tuple(values[axis] for axis in order) for values in info[:3])
    return AxisInfo(contiguity, divisibility, constancy, info.constant)


def poison(op: Operation, known: Sequence[AxisInfo]) -> AxisInfo:
    return undefined(len(dimensions(op.results[0].type)))


def load(op: Operation, known: Sequence[AxisInfo]) -> AxisInfo:
    """Equal addresses under equal masks give equal values; where masked off, as equal as `other`."""
    rank = len(dimensions(op.results[0].type))
    if any(len(info.constancy) != rank for info in known):  # a block pointer
        return pessimistic(rank)
    constancy = known[0].constancy
    for info in known[1:]:
        constancy = each(gcd, constancy, info.constancy)
    return AxisInfo((1,) * rank, (1,) * rank, constancy)


# --- arithmetic -------------------------------------------------------------------------------------------------------


def pointee_bytes(type: Attribute) -> int:
    """Return the size of the pointee of a pointer (or a tensor of them); 1 for any other type."""
    element = element_type(type)
    return max(1, bit_width(element.pointee) // 8) if isinstance(element, PointerType) else 1


def add(op: Operation, known: Sequence[AxisInfo]) -> AxisInfo:
    """The rule also of `tt.addptr`, whose offset counts elements and whose result counts bytes."""
    a, b = known
    return moved(a, b, pointee_bytes(op.results[0].type))


def moved(a: AxisInfo, b: AxisInfo, size: int) -> AxisInfo:
    """Return the facts of `a` + `b` * `size`."""
    contiguity = tuple(
        max(gcd(ka, cb), gcd(ca, kb))
        for ca, ka, cb, kb in zip(a.contiguity, a.constancy, b.contiguity, b.constancy, strict=True)
    )
    left, right = at_run_starts(a, contiguity, size), at_run_starts(b, contiguity)
    divisibility = tuple(gcd(x, saturated(y, size)) for x, y in zip(left, right, strict=True))
    return AxisInfo(contiguity, divisibility, each(gcd, a.constancy, b.constancy))


def subtract(op: Operation, known: Sequence[AxisInfo]) -> AxisInfo:
    a, b = known
    contiguity = each(gcd, a.contiguity, b.constancy)
    divisibility = each(gcd, at_run_starts(a, contiguity), at_run_starts(b, contiguity))
    return AxisInfo(contiguity, divisibility, each(gcd, a.constancy, b.constancy))


def multiply(op: Operation, known: Sequence[AxisInfo]) -> AxisInfo:
    a, b = known
    if a.constant == 0 or b.constant == 0:
        return of_constant(0, op.results[0].type)
    if b.constant == 1 or a.constant == 1:
        return a if b.constant == 1 else b
    divisibility = each(saturated, in_every_element(a), in_every_element(b))
    return AxisInfo((1,) * len(divisibility), divisibility, each(gcd, a.constancy, b.constancy))


def in_every_element(info: AxisInfo) -> PerAxis:
    """Return the divisor of all elements, not only of those that start a run."""
    return tuple(1 if run > 1 else divisor for run, divisor in zip(info.contiguity, info.divisibility, strict=True))


def divide(op: Operation, known: Sequence[AxisInfo]) -> AxisInfo:
    a, b = known
    type = op.results[0].type
    if b.constant == 1:
        return a
    divisibility = (1,) * len(a.contiguity)
    if a.constant == 0:
        divisibility = a.divisibility
    elif b.constant is not None and (power := magnitude_power_of_two(b.constant, type)):
        divisibility = tuple(max(1, d // power) for d in in_every_element(a))
    constancy = each(max, each(gcd, a.constancy, b.constancy), aligned_groups(op, a, b))
    return AxisInfo((1,) * len(a.contiguity), divisibility, constancy)


def aligned_groups(op: Operation, a: AxisInfo, b: AxisInfo) -> PerAxis:
    """Return the number of elements of a run of `a` between two multiples of `b`; 1 unless `b` is uniform.

    Their quotients are equal and their remainders a run: 32, 33, ... 47 divided by a multiple of 16. That does not hold
    for -16, -15, ... -1: a quotient is rounded towards zero, so that the first of them is in a group of its own.
    """
    type = op.results[0].type
    groups = tuple(
        gcd(c, da, db) if uniform else 1
        for c, da, db, uniform in zip(
            a.contiguity, a.divisibility, b.divisibility, spans(b.constancy, type), strict=True
        )
    )
    is_unsigned = op.__class__ in (arith.DivUIOp, arith.RemUIOp)
    is_rounded_down = max(groups) == 1 or is_unsigned or is_non_negative(op.operands[0])
    return groups if is_rounded_down else (1,) * len(groups)


def magnitude_power_of_two(value: int, type: Attribute) -> int | None:
    """Return 2**k for the constants 2**k and -2**k, else None."""
    magnitude = abs(signed(value, bit_width(type)))
    return magnitude if magnitude and magnitude & (magnitude - 1) == 0 else None


def remainder(op: Operation, known: Sequence[AxisInfo]) -> AxisInfo:
    a, b = known
    type = op.results[0].type
    if b.constant == 1:
        return of_constant(0, type)
    contiguity = aligned_groups(op, a, b)
    divisibility = tuple(
        gcd(x, y) if uniform > 1 else 1
        for x, y, uniform in zip(at_run_starts(a, contiguity), b.divisibility, b.constancy, strict=True)
    )
    return AxisInfo(contiguity, divisibility, each(gcd, a.constancy, b.constancy))


# --- bits, shifts, comparisons, choices -------------------------------------------------------------------------------


def bitwise(op: Operation, known: Sequence[AxisInfo]) -> AxisInfo:
    a, b = known
    ones = (1,) * len(a.contiguity)
    return AxisInfo(ones, ones, each(gcd, a.constancy, b.constancy))


def shift_left(op: Operation, known: Sequence[AxisInfo]) -> AxisInfo:
    a, shift = known
    if shift.constant == 0:
        return a
    divisibility = tuple(saturated(d, 1 << min(shift.constant or 0, 62)) for d in in_every_element(a))
    return AxisInfo((1,) * len(divisibility), divisibility, each(gcd, a.constancy, shift.constancy))


def shift_right(op: Operation, known: Sequence[AxisInfo]) -> AxisInfo:
    a, shift = known
    if shift.constant == 0:
        return a
    divisibility = (1,) * len(a.contiguity)
    if shift.constant is not None and shift.constant < bit_width(op.results[0].type):
        divisibility = tuple(max(1, d >> shift.constant) for d in in_every_element(a))
    return AxisInfo((1,) * len(divisibility), divisibility, each(gcd, a.constancy, shift.constancy))


GREATER_OR_LESS_EQUAL = frozenset({SLE, SGT, ULE, UGT})
LESS_OR_GREATER_EQUAL = frozenset({SLT, SGE, ULT, UGE})


def compare_ranges(op: Operation, known: Sequence[AxisInfo]) -> AxisInfo:
    """`16*i + (0..15) < n` has one result for all 16 elements if 16 divides `n`."""
    a, b = known
    type = op.operands[0].type
    if not shape_of(type):
        return pessimistic(1)
    predicate = predicate_of(op)
    if a.constant is not None and b.constant is not None:
        return of_constant(int(compare(predicate, a.constant, b.constant, bit_width(type))), op.results[0].type)
    constancy = each(gcd, a.constancy, b.constancy)
    moving, fixed = (b, a) if predicate in GREATER_OR_LESS_EQUAL else (a, b)
    if predicate in GREATER_OR_LESS_EQUAL or predicate in LESS_OR_GREATER_EQUAL:
        constancy = tuple(
            max(k, gcd(c, d, e)) if uniform else k
            for k, c, d, e, uniform in zip(
                constancy,
                moving.contiguity,
                moving.divisibility,
                fixed.divisibility,
                spans(fixed.constancy, type),
                strict=True,
            )
        )
    ones = (1,) * len(constancy)
    return AxisInfo(ones, ones, constancy)


def select(op: Operation, known: Sequence[AxisInfo]) -> AxisInfo:
    condition, a, b = known
    if condition.constant is not None:
        return a if condition.constant else b
    contiguity, constancy = each(gcd, a.contiguity, b.contiguity), each(gcd, a.constancy, b.constancy)
    if shape_of(op.operands[0].type):
        contiguity, constancy = each(gcd, contiguity, condition.constancy), each(gcd, constancy, condition.constancy)
    if a.constant is not None and a.constant == b.constant:
        return a
    return merge(a, b, contiguity, constancy, None)


def extremum(op: Operation, known: Sequence[AxisInfo]) -> AxisInfo:
    """Return the facts about a minimum or maximum. Two runs keep their distance, so one of them is smaller in all
    elements.

    That does not hold for a run that crosses an end of its type: -2, -1, 0, 1 as unsigned. Non-negative integers do not
    cross it, nor does a run that begins at a multiple of its length.
    """
    a, b = known
    contiguity = each(gcd, a.contiguity, b.contiguity)
    if max(contiguity) > 1 and not all(map(is_non_negative, op.operands)):
        contiguity = each(gcd, contiguity, each(gcd, a.divisibility, b.divisibility))
    return merge(a, b, contiguity, each(gcd, a.constancy, b.constancy), None)


def of_constants(rule: Rule) -> Rule:
    """Return a rule that computes the op if both operands are constant."""

    def apply(op: Operation, known: Sequence[AxisInfo]) -> AxisInfo:
        type, constants = op.results[0].type, [info.constant for info in known]
        if None not in constants:
            a, b = (constant for constant in constants if constant is not None)
            if (value := EVALUATE[op.__class__](a, b, bit_width(type))) is not None:
                return of_constant(value, type)
        return rule(op, known)

    return apply


ARITHMETIC: dict[type[Operation], Rule] = {
    arith.AddiOp: add,
    arith.SubiOp: subtract,
    arith.MuliOp: multiply,
    **dict.fromkeys((arith.DivSIOp, arith.DivUIOp), divide),
    **dict.fromkeys((arith.RemSIOp, arith.RemUIOp), remainder),
    **dict.fromkeys((arith.AndIOp, arith.OrIOp, arith.XOrIOp), bitwise),
    arith.ShLIOp: shift_left,
    **dict.fromkeys((arith.ShRUIOp, arith.ShRSIOp), shift_right),
    **dict.fromkeys((arith.MaxSIOp, arith.MinSIOp, arith.MaxUIOp, arith.MinUIOp), extremum),
}
TRANSFER: dict[type[Operation], Rule] = {
    arith.ConstantOp: constant,
    ub.PoisonOp: poison,
    tt.MakeRangeOp: make_range,
    tt.SplatOp: splat,
    tt.BroadcastOp: broadcast,
    tt.ExpandDimsOp: expand_dims,
    tt.TransOp: transpose,
    tt.LoadOp: load,
    tt.BitcastOp: bitcast,
    ttg.ConvertLayoutOp: copy,
    arith.ExtSIOp: extend_signed,
    arith.ExtUIOp: copy,
    arith.TruncIOp: copy,
    builtin.UnrealizedConversionCastOp: copy,
    **{kind: of_constants(rule) for kind, rule in ARITHMETIC.items()},
    tt.AddPtrOp: add,
    arith.CmpiOp: compare_ranges,
    SelectOp: select,
}
