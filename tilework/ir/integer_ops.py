"""The integer ops of `arith` on Python's integers: results, and comparisons.

    >>> EVALUATE[arith.DivSIOp](-7, 2, 32), EVALUATE[arith.ShLIOp](1, 40, 32), compare(ULT, -1, 1, 32)
    (-3, None, False)

Numbers are read as signed, or modulo ``2**width``, as the op does; results are to be taken modulo ``2**width``.
Division by zero and shifts by the width or more have no value: None.
"""

from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.ir import Operation

Evaluate = Callable[[int, int, int], int | None]  # (lhs, rhs, width) -> value
EQ, NE, SLT, SLE, SGT, SGE, ULT, ULE, UGT, UGE = range(10)  # predicates of arith.cmpi
SWAPPED = {EQ: EQ, NE: NE, SLT: SGT, SLE: SGE, SGT: SLT, SGE: SLE, ULT: UGT, ULE: UGE, UGT: ULT, UGE: ULE}
INVERSE = {EQ: NE, NE: EQ, SLT: SGE, SLE: SGT, SGT: SLE, SGE: SLT, ULT: UGE, ULE: UGT, UGT: ULE, UGE: ULT}


def unsigned(value: int, width: int) -> int:
    return value & ((1 << width) - 1)


def signed(value: int, width: int) -> int:
    value = unsigned(value, width)
    return value - (1 << width) if value >> (width - 1) else value


def divide_signed(lhs: int, rhs: int, width: int) -> int | None:
    if rhs == 0 or (rhs == -1 and lhs == -(1 << (width - 1))):
        return None
    quotient = abs(lhs) // abs(rhs)
    return quotient if (lhs < 0) == (rhs < 0) else -quotient


def remainder_signed(lhs: int, rhs: int, width: int) -> int | None:
    quotient = divide_signed(lhs, rhs, width)
    return None if quotient is None else lhs - quotient * rhs


def divide_up(lhs: int, rhs: int) -> int:
    return -(-lhs // rhs)


def if_defined(amount: int, width: int, value: Callable[[], int]) -> int | None:
    """A shift by the width or more has no value."""
    return value() if 0 <= amount < width else None


EVALUATE: dict[type[Operation], Evaluate] = {
    arith.AddiOp: lambda a, b, w: a + b,
    arith.SubiOp: lambda a, b, w: a - b,
    arith.MuliOp: lambda a, b, w: a * b,
    arith.DivSIOp: divide_signed,
    arith.RemSIOp: remainder_signed,
    arith.DivUIOp: lambda a, b, w: unsigned(a, w) // unsigned(b, w) if b else None,
    arith.RemUIOp: lambda a, b, w: unsigned(a, w) % unsigned(b, w) if b else None,
    arith.FloorDivSIOp: lambda a, b, w: None if divide_signed(a, b, w) is None else a // b,
    arith.CeilDivSIOp: lambda a, b, w: None if divide_signed(a, b, w) is None else divide_up(a, b),
    arith.CeilDivUIOp: lambda a, b, w: divide_up(unsigned(a, w), unsigned(b, w)) if b else None,
    arith.AndIOp: lambda a, b, w: a & b,
    arith.OrIOp: lambda a, b, w: a | b,
    arith.XOrIOp: lambda a, b, w: a ^ b,
    arith.ShLIOp: lambda a, b, w: if_defined(b, w, lambda: a << b),
    arith.ShRUIOp: lambda a, b, w: if_defined(b, w, lambda: unsigned(a, w) >> b),
    arith.ShRSIOp: lambda a, b, w: if_defined(b, w, lambda: signed(a, w) >> b),
    arith.MaxSIOp: lambda a, b, w: max(signed(a, w), signed(b, w)),
    arith.MinSIOp: lambda a, b, w: min(signed(a, w), signed(b, w)),
    arith.MaxUIOp: lambda a, b, w: max(unsigned(a, w), unsigned(b, w)),
    arith.MinUIOp: lambda a, b, w: min(unsigned(a, w), unsigned(b, w)),
}
COMPARE: dict[int, Callable[[int, int], bool]] = {
    EQ: lambda a, b: a == b,
    NE: lambda a, b: a != b,
    SLT: lambda a, b: a < b,
    SLE: lambda a, b: a <= b,
    SGT: lambda a, b: a > b,
    SGE: lambda a, b: a >= b,
}


def compare(predicate: int, lhs: int, rhs: int, width: int) -> bool:
    if predicate >= ULT:
        return COMPARE[predicate - 4](unsigned(lhs, width), unsigned(rhs, width))
    return COMPARE[predicate](signed(lhs, width), signed(rhs, width))


def predicate_of(op: Operation) -> int:
    """The number of the predicate of a comparison, of floats too."""
    return op.properties["predicate"].value.data  # pyright: ignore[reportAttributeAccessIssue]
