"""The integer ops of `arith` on Python's integers: results, and comparisons.

    >>> EVALUATE[arith.DivSIOp](-7, 2, 32), EVALUATE[arith.ShLIOp](1, 40, 32), compare(ULT, -1, 1, 32)
    (-3, None, False)

`numerics/twos_complement.py` says how operands and results are to be read; None is a value that is not defined.
"""

import operator

from xdsl.ir import Operation

from tilework.ir import arith
from tilework.ir.types import int_property
from tilework.numerics.twos_complement import BINARY, Evaluate, divide_signed, signed, unsigned

EQ, NE, SLT, SLE, SGT, SGE, ULT, ULE, UGT, UGE = range(10)  # predicates of arith.cmpi
SWAPPED = {EQ: EQ, NE: NE, SLT: SGT, SLE: SGE, SGT: SLT, SGE: SLE, ULT: UGT, ULE: UGE, UGT: ULT, UGE: ULE}
INVERSE = {EQ: NE, NE: EQ, SLT: SGE, SLE: SGT, SGT: SLE, SGE: SLT, ULT: UGE, ULE: UGT, UGT: ULE, UGE: ULT}


def divide_up(lhs: int, rhs: int) -> int:
    return -(-lhs // rhs)


def divide_rounded(lhs: int, rhs: int, width: int, upwards: bool) -> int | None:
    """Return the signed quotient, rounded down or `upwards`."""
    if divide_signed(lhs, rhs, width) is None:
        return None
    lhs, rhs = signed(lhs, width), signed(rhs, width)
    return divide_up(lhs, rhs) if upwards else lhs // rhs


EVALUATE: dict[type[Operation], Evaluate] = {
    arith.AddiOp: BINARY["add"],
    arith.SubiOp: BINARY["sub"],
    arith.MuliOp: BINARY["mul"],
    arith.DivSIOp: BINARY["sdiv"],
    arith.RemSIOp: BINARY["srem"],
    arith.DivUIOp: BINARY["udiv"],
    arith.RemUIOp: BINARY["urem"],
    arith.FloorDivSIOp: lambda a, b, w: divide_rounded(a, b, w, False),
    arith.CeilDivSIOp: lambda a, b, w: divide_rounded(a, b, w, True),
    arith.CeilDivUIOp: lambda a, b, w: divide_up(unsigned(a, w), unsigned(b, w)) if b else None,
    arith.AndIOp: BINARY["and"],
    arith.OrIOp: BINARY["or"],
    arith.XOrIOp: BINARY["xor"],
    arith.ShLIOp: BINARY["shl"],
    arith.ShRUIOp: BINARY["lshr"],
    arith.ShRSIOp: BINARY["ashr"],
    arith.MaxSIOp: BINARY["smax"],
    arith.MinSIOp: BINARY["smin"],
    arith.MaxUIOp: BINARY["umax"],
    arith.MinUIOp: BINARY["umin"],
}
COMPARE = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)  # unsigned ones are 4 higher


def compare(predicate: int, lhs: int, rhs: int, width: int) -> bool:
    if predicate >= ULT:
        return COMPARE[predicate - 4](unsigned(lhs, width), unsigned(rhs, width))
    return COMPARE[predicate](signed(lhs, width), signed(rhs, width))


def predicate_of(op: Operation) -> int:
    """The code of the predicate of an integer or float comparison."""
    return int_property(op, "predicate")
