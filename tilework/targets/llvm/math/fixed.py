"""Fixed-point numbers: integers of 256 bits with 192 of them after the point, for what a pair cannot hold.

Every operation is on one number, kept in `Lanes` of i256, whose sums and differences are exact. Products are internal
functions, because LLVM writes one as some two hundred instructions.
"""

from collections.abc import Sequence
from fractions import Fraction

from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.math.lanes import Lanes, Pair, bits, from_bits, power_of_two, to_float, to_int
from tilework.targets.llvm.types import f64, i1, i64, integer
from tilework.targets.llvm.values import Value, constant

POINT = 192
FIXED, PRODUCT = integer(256), integer(512)
ONE = 1 << POINT


def fixed_number(b: Builder, number: int) -> Lanes:
    """A constant in units of 2^-192."""
    return Lanes(b, constant(FIXED, number))


def fixed_table(b: Builder, name: str, numbers: Sequence[int], index: Lanes) -> Lanes:
    """One of many constants."""
    table = b.module.table(name, FIXED, numbers, align=16)
    return Lanes(b, b.load(FIXED, b.gep(table, index.v, FIXED), align=16))


def fixed_inverse(k: Lanes, largest: int) -> Lanes:
    """1/k of an integer from 1 to `largest`, which is the same in the whole module."""
    numbers = [0, *(round(Fraction(ONE, number)) for number in range(1, largest + 1))]
    return fixed_table(k.b, "tilework.fixed_inverses", numbers, k)


def times_body(b: Builder, args: tuple[Value, ...]) -> Value:
    product = b.mul(*(b.sext(arg, PRODUCT) for arg in args))
    return b.trunc(b.ashr(product, POINT), FIXED)


def times(a: Lanes, b: Lanes) -> Lanes:
    return Lanes(a.b, a.b.outline("tilework.fixed_times", FIXED, [a.v, b.v], times_body))


def widened(a: Lanes) -> Lanes:
    """An i64 as a multiple of 2^-192."""
    return Lanes(a.b, a.b.sext(a.v, FIXED))


def scaled(a: Lanes, number: Lanes) -> Lanes:
    """A number times an i64, modulo 2^256 units."""
    args = [a.v, widened(number).v]
    return Lanes(a.b, a.b.outline("tilework.fixed_scaled", FIXED, args, lambda b, args: b.mul(*args)))


def from_float(x: Lanes) -> Lanes:
    """A float of magnitude below 2^10, cut after 2^-52."""
    return widened(to_int(x * 2.0**52)) << (POINT - 52)


def reciprocal_body(b: Builder, args: tuple[Value, ...]) -> Value:
    """Two steps of Newton's method on the significand, then a shift."""
    pattern = bits(Lanes(b, args[0]))
    significand = from_bits(pattern & ((1 << 52) - 1) | (1023 << 52))
    wide, near = from_float(significand), from_float(1.0 / significand)
    for _ in range(2):
        near = near + times(near, fixed_number(b, ONE) - times(near, wide))
    exponent = Lanes(b, b.smin((pattern >> 52).v, 1023 + 255)) - 1023
    return (near >> widened(exponent)).v


def reciprocal(x: Lanes) -> Lanes:
    """1/x of a float of at least 1."""
    return Lanes(x.b, x.b.outline("tilework.fixed_reciprocal", FIXED, [x.v], reciprocal_body))


def to_pair(a: Lanes) -> tuple[Pair, Lanes]:
    """A pair, of 62 bits, and the power of two to multiply it with."""
    b = a.b
    zeros = Lanes(b, b.intrinsic("ctlz", FIXED, (a ^ (a >> 255)).v, constant(i1, 0)))
    top = Lanes(b, b.trunc(((a << (zeros - 2)) >> POINT).v, i64))
    high = to_float(top, f64)
    return Pair(high, to_float(top - to_int(high), f64)), power_of_two(2 - Lanes(b, b.trunc(zeros.v, i64)))
