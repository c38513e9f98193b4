"""The facts that `axis_info.py` finds, and how they combine.

A fact (`AxisInfo`) describes every dimension of an integer or pointer value by three numbers. The tensor

    [[10, 11, 12, 13, 18, 19, 20, 21],
     [20, 21, 22, 23, 28, 29, 30, 31]]        contiguity = [1, 4], divisibility = [1, 2], constancy = [1, 1]

- contiguity: the dimension splits into aligned runs of that many elements, each one more than the last;
- divisibility: divides the **first** element of every such run (in bytes for pointers);
- constancy: the dimension splits into aligned runs of that many equal elements;
- constant: the value of all elements, when it is known, as an unsigned number of the element's width.

A rule that shortens the runs must not keep a divisor that only held at the start of the longer ones: `at_run_starts`.
"""

from collections.abc import Callable
from functools import cache
from math import gcd
from typing import NamedTuple

from xdsl.ir import Attribute

from tilework.ir.types import bit_width, shape_of

MAX = 1 << 62  # divides zero; products saturate here

Numbers = tuple[int, ...]


class AxisInfo(NamedTuple):
    """The facts about one value, one number per dimension; a scalar has one dimension of one element."""

    contiguity: Numbers
    divisibility: Numbers
    constancy: Numbers
    constant: int | None = None

    def __str__(self) -> str:
        contiguity, divisibility, constancy = (", ".join(map(str, numbers)) for numbers in self[:3])
        constant = "<none>" if self.constant is None else self.constant
        return (
            f"contiguity = [{contiguity}], divisibility = [{divisibility}], "
            f"constancy = [{constancy}], constant_value = {constant}"
        )


@cache
def dimensions(type: Attribute) -> Numbers:
    """The shape of a tensor; a scalar counts as one dimension of one element."""
    return shape_of(type) or (1,)


@cache
def pessimistic(rank: int) -> AxisInfo:
    """Nothing is known."""
    return AxisInfo((1,) * rank, (1,) * rank, (1,) * rank)


def unknown(type: Attribute) -> AxisInfo:
    """Nothing is known about a value of `type`."""
    return pessimistic(len(dimensions(type)))


@cache
def undefined(rank: int) -> AxisInfo:
    """Everything holds: the value of a poison, neutral in `join`."""
    return AxisInfo((MAX,) * rank, (MAX,) * rank, (MAX,) * rank)


def power_of_two_divisor(value: int) -> int:
    """The lowest set bit; `MAX` for zero: 24 gives 8."""
    return min(value & -value, MAX) if value else MAX


def of_constant(value: int, type: Attribute) -> AxisInfo:
    """All elements of `type` are `value` (taken modulo the width)."""
    value &= (1 << bit_width(type)) - 1
    shape = dimensions(type)
    rank = len(shape)
    return AxisInfo((1,) * rank, (power_of_two_divisor(value),) * rank, shape, value)


def join(a: AxisInfo, b: AxisInfo) -> AxisInfo:
    """What holds of a value that is either `a` or `b`."""
    if a == b:
        return a
    constant = a.constant if a.constant == b.constant else None
    return merge(a, b, each(gcd, a.contiguity, b.contiguity), each(gcd, a.constancy, b.constancy), constant)


def merge(a: AxisInfo, b: AxisInfo, contiguity: Numbers, constancy: Numbers, constant: int | None) -> AxisInfo:
    """Runs of `contiguity` elements, each taken whole from `a` or from `b`."""
    divisibility = each(gcd, at_run_starts(a, contiguity), at_run_starts(b, contiguity))
    return AxisInfo(contiguity, divisibility, constancy, constant)


def at_run_starts(info: AxisInfo, contiguity: Numbers) -> Numbers:
    """The divisors of `info` at the starts of runs of `contiguity` elements.

    In 8, 9, 10, 11 the run of four starts at a multiple of 8, but its runs of two only at multiples of 2.
    """
    return tuple(
        divisor if run % own == 0 or own == MAX else gcd(divisor, own, run)
        for divisor, own, run in zip(info.divisibility, info.contiguity, contiguity, strict=True)
    )


def each(function: Callable[[int, int], int], a: Numbers, b: Numbers) -> Numbers:
    return tuple(map(function, a, b))


def product(a: int, b: int) -> int:
    return min(a * b, MAX)


def signed(value: int, type: Attribute) -> int:
    """The signed reading of an unsigned number of the width of `type`."""
    width = bit_width(type)
    return value - (1 << width) if value >> (width - 1) else value


def is_constant(info: AxisInfo, value: int) -> bool:
    return info.constant == value


def spans(runs: Numbers, type: Attribute) -> tuple[bool, ...]:
    """Per dimension: one run covers it."""
    return tuple(run >= size for run, size in zip(runs, dimensions(type), strict=True))
