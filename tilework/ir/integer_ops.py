"""Two's-complement arithmetic on Python integers, at any bit width, and the integer ops of `arith` by it.

    >>> BINARY["sdiv"](-7, 2, 32), BINARY["udiv"](-7, 2, 32), BINARY["shl"](1, 40, 32)
    (-3, 2147483644, None)
    >>> EVALUATE[arith.DivSIOp](-7, 2, 32), EVALUATE[arith.ShLIOp](1, 40, 32), compare(ULT, -1, 1, 32)
    (-3, None, False)

`BINARY` has LLVM's names. An operand may be given as its signed or as its unsigned value; a result is to be taken
modulo ``2**width``. None marks what LLVM calls poison or undefined: division by zero, signed division that overflows,
and a shift by the width or more. `targets/llvm/folding.py` maps the instructions of LLVM to these functions.
"""

import operator
from collections.abc import Callable

from xdsl.ir import Operation

from tilework.ir import arith
from tilework.ir.types import int_property

Evaluate = Callable[[int, int, int], int | None]  # (lhs, rhs, width) -> value


def unsigned(value: int, width: int) -> int:
    return value & ((1 << width) - 1)


def signed(value: int, width: int) -> int:
    value = unsigned(value, width)
    return value - (1 << width) if value >> (width - 1) else value


def divide_signed(lhs: int, rhs: int, width: int) -> int | None:
    """Return the quotient, rounded towards zero."""
    lhs, rhs = signed(lhs, width), signed(rhs, width)
    if rhs == 0 or (rhs == -1 and lhs == -(1 << (width - 1))):
        return None
    quotient = abs(lhs) // abs(rhs)
    return quotient if (lhs < 0) == (rhs < 0) else -quotient


def remainder_signed(lhs: int, rhs: int, width: int) -> int | None:
    quotient = divide_signed(lhs, rhs, width)
    return None if quotient is None else signed(lhs, width) - quotient * signed(rhs, width)


BINARY: dict[str, Evaluate] = {
    "add": lambda a, b, w: a + b,
    "sub": lambda a, b, w: a - b,
    "mul": lambda a, b, w: a * b,
    "udiv": lambda a, b, w: unsigned(a, w) // unsigned(b, w) if b else None,
    "urem": lambda a, b, w: unsigned(a, w) % unsigned(b, w) if b else None,
    "sdiv": divide_signed,
    "srem": remainder_signed,
    "and": lambda a, b, w: a & b,
    "or": lambda a, b, w: a | b,
    "xor": lambda a, b, w: a ^ b,
    "shl": lambda a, b, w: a << b if 0 <= b < w else None,
    "lshr": lambda a, b, w: unsigned(a, w) >> b if 0 <= b < w else None,
    "ashr": lambda a, b, w: signed(a, w) >> b if 0 <= b < w else None,
    "umin": lambda a, b, w: min(unsigned(a, w), unsigned(b, w)),
    "umax": lambda a, b, w: max(unsigned(a, w), unsigned(b, w)),
    "smin": lambda a, b, w: min(signed(a, w), signed(b, w)),
    "smax": lambda a, b, w: max(signed(a, w), signed(b, w)),
}


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
