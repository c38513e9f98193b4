"""Arithmetic and conversions in the four rounding modes: rn (nearest even), rz (to zero), rd (down), ru (up).

The processor's rounding mode is never changed. A result is computed to nearest together with its exact error, and moved
to the neighbouring float when the error is on the other side of the wanted direction. f32 goes through f64, where
products are exact. For f64 the error is exact unless it underflows (results below 2^-969).
"""

import math
import operator
from collections.abc import Callable
from functools import reduce

from tilework.targets.llvm.math.lanes import (
    Lanes,
    Pair,
    bits,
    exact,
    fma,
    from_bits,
    narrow,
    sqrt,
    two_product,
    two_sum,
    where,
    widen,
)
from tilework.targets.llvm.types import Type, f32, f64, i32, i64

MODES = ("rn", "rz", "rd", "ru")


def neighbour(x: Lanes, up: Lanes) -> Lanes:
    """The next float above or below."""
    pattern = bits(x)
    positive = bits(x) >= 0
    step = where(positive, where(up, 1, pattern.const(-1)), where(up, -1, pattern.const(1)))
    moved = from_bits(pattern + step)
    smallest = from_bits(pattern.const(1))
    return where(x.equal(0.0), where(up, smallest, -smallest), moved)


def directed(result: Lanes, error: Lanes, mode: str) -> Lanes:
    """`result`, or its neighbour when `error` (exact minus result) requires it."""
    if mode == "rn":
        return result
    below, above = error < 0.0, error > 0.0
    if mode == "rz":
        below, above = below & (result > 0.0), above & (result < 0.0)
    elif mode == "rd":
        above = above & ~above
    else:
        below = below & ~below
    return where(below | above, neighbour(result, above), result)


def narrow_directed(value: Pair, mode: str) -> Lanes:
    """A pair of f64 as one f32."""
    result = narrow(value.hi)
    error = value.hi - widen(result)
    return directed(result, narrow_sign(where(error.equal(0.0), value.lo, error)), mode)


def narrow_sign(error: Lanes) -> Lanes:
    """The sign of an f64 as an f32 of -1, 0 or 1."""
    return narrow(where(error > 0.0, 1.0, where(error < 0.0, -1.0, error.const(0.0))))


def overflowed(result: Lanes, error: Lanes, *args: Lanes) -> Lanes:
    """The error of a result that became infinite though all operands are finite points back to finite numbers."""
    finite = reduce(operator.and_, [abs(arg) < math.inf for arg in args])
    return where(abs(result).equal(math.inf) & finite, where(result > 0.0, -1.0, result.const(1.0)), error)


def exact_quotient(x: Lanes, y: Lanes) -> Pair:
    """The quotient, and a number with the sign of its error."""
    quotient = x / y
    rest = fma(-quotient, y, x)
    return Pair(quotient, where(y < 0.0, -rest, rest))


def exact_root(x: Lanes) -> Pair:
    root = sqrt(x)
    return Pair(root, fma(-root, root, x))


def exact_fma(x: Lanes, y: Lanes, z: Lanes) -> Pair:
    """Boldo and Muller's error of a fused multiply-add."""
    result = fma(x, y, z)
    product = two_product(x, y)
    first = two_sum(z, product.lo)
    second = two_sum(product.hi, first.hi)
    return Pair(result, ((second.hi - result) + second.lo) + first.lo)


EXACT: dict[str, Callable[..., Pair]] = {
    "add": two_sum,
    "sub": lambda x, y: two_sum(x, -y),
    "mul": two_product,
    "div": exact_quotient,
    "rcp": lambda x: exact_quotient(x.const(1.0), x),
    "sqrt": exact_root,
    "fma": exact_fma,
}


def arithmetic(op: str, mode: str) -> Callable[..., Lanes]:
    """`add_rd` and the like, for f32 and f64."""

    def function(*args: Lanes) -> Lanes:
        if args[0].scalar is f32:
            wide = [widen(arg) for arg in args]
            if op == "fma":
                product = wide[0] * wide[1]
                return narrow_directed(two_sum(product, wide[2]), mode)
            return narrow_directed(EXACT[op](*wide), mode)
        result, error = EXACT[op](*args)
        return directed(result, overflowed(result, error, *args) if op not in ("sqrt", "rcp") else error, mode)

    return function


def to_whole(mode: str, scalar: Type, is_signed: bool) -> Callable[[Lanes], Lanes]:
    """`float2int_rd` and the like: round, then convert with saturation; NaN is 0."""

    def function(x: Lanes) -> Lanes:
        rounder = {"rd": x.b.floor, "ru": x.b.ceil, "rz": x.b.trunc_float, "rn": x.b.rint}[mode]
        whole = rounder(x.v)
        type = x.v.type.with_scalar(scalar)
        return Lanes(x.b, x.b.fptosi_sat(whole, type) if is_signed else x.b.fptoui_sat(whole, type))

    return function


def from_whole(mode: str, target: Type, is_signed: bool) -> Callable[[Lanes], Lanes]:
    """`ll2float_rz` and the like: the integer as an exact pair of f64, rounded once."""

    def function(x: Lanes) -> Lanes:
        b, double = x.b, x.v.type.with_scalar(f64)
        convert = b.sitofp if is_signed else b.uitofp
        if x.scalar is i32:
            whole = Lanes(b, convert(x.v, double))
            pair = exact(whole)
        else:
            high = b.ashr(x.v, x.of(32)) if is_signed else b.lshr(x.v, x.of(32))
            low = Lanes(b, b.uitofp(b.and_(x.v, x.of(0xFFFFFFFF)), double))
            pair = two_sum(Lanes(b, convert(high, double)) * 2.0**32, low)
        return narrow_directed(pair, mode) if target is f32 else directed(pair.hi, pair.lo, mode)

    return function


def double2float(mode: str) -> Callable[[Lanes], Lanes]:
    return lambda x: narrow_directed(exact(x), mode)


def conversions() -> dict[str, Callable[[Lanes], Lanes]]:
    """Every conversion by its libdevice name."""
    made: dict[str, Callable[[Lanes], Lanes]] = {}
    for mode in MODES:
        made[f"double2float_{mode}"] = double2float(mode)
        for source in ("float", "double"):
            for name, scalar, is_signed in [
                ("int", i32, True),
                ("uint", i32, False),
                ("ll", i64, True),
                ("ull", i64, False),
            ]:
                made[f"{source}2{name}_{mode}"] = to_whole(mode, scalar, is_signed)
                if not (source == "double" and scalar is i32):
                    made[f"{name}2{source}_{mode}"] = from_whole(mode, f32 if source == "float" else f64, is_signed)
    made["int2double_rn"], made["uint2double_rn"] = from_whole("rn", f64, True), from_whole("rn", f64, False)
    return made
