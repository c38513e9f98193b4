"""Two's-complement arithmetic on Python integers, at any bit width: the one table that compile-time folding uses.

    >>> BINARY["sdiv"](-7, 2, 32), BINARY["udiv"](-7, 2, 32), BINARY["shl"](1, 40, 32)
    (-3, 2147483644, None)

Operations have LLVM's names. An operand may be given as its signed or as its unsigned value; a result is to be taken
modulo ``2**width``. None marks what LLVM calls poison or undefined: division by zero, signed division that overflows,
and a shift by the width or more. `ir/integer_ops.py` maps the ops of `arith` to these functions, and
`targets/llvm/folding.py` the instructions of LLVM.
"""

from collections.abc import Callable

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
