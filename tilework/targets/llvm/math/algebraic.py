"""Roots, norms, remainders, roundings and the bit-level functions of floats.

The integer functions of libdevice.
"""

import math
import operator
from collections.abc import Callable
from functools import reduce

from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.math import coefficients as c
from tilework.targets.llvm.math.lanes import (
    BIAS,
    FRACTION,
    Lanes,
    bits,
    ceil,
    copysign,
    elementwise_calls,
    floor,
    fma,
    from_bits,
    function,
    into_range,
    narrow,
    polynomial,
    power_of_two,
    rint,
    sqrt,
    to_float,
    trunc,
    where,
    widen,
)
from tilework.targets.llvm.math.logarithm import SMALLEST, pow
from tilework.targets.llvm.types import Type, f32, f64, i32, i64
from tilework.targets.llvm.values import Value, constant

ctlz, cttz, ctpop, smin, smax, umin, umax = map(function, ("ctlz", "cttz", "ctpop", "smin", "smax", "umin", "umax"))


def as_i32(x: Lanes) -> Lanes:
    """The low 32 bits."""
    return Lanes(x.b, x.b.trunc(x.v, x.v.type.with_scalar(i32)))


def byte_perm(x: Lanes, y: Lanes, selector: Lanes) -> Lanes:
    """Four bytes chosen from the eight of y:x, each by a nibble; its top bit spreads the byte's sign."""
    b = x.b
    wide = x.v.type.with_scalar(i64)
    both = Lanes(b, b.or_(b.zext(x.v, wide), b.shl(b.zext(y.v, wide), 32)))
    choice = Lanes(b, b.zext(selector.v, wide))
    total = Lanes(b, constant(wide, 0))
    for index in range(4):
        nibble = choice.logical_shift(4 * index) & 15
        byte = both.logical_shift((nibble & 7) << 3) & 255
        sign = where((byte & 128).differs(0), 255, byte.const(0))
        total = total | (where((nibble & 8).differs(0), sign, byte) << (8 * index))
    return Lanes(b, b.trunc(total.v, x.v.type))


def hiloint2double(high: Lanes, low: Lanes) -> Lanes:
    from_high, from_low = (high.b.zext(part.v, part.v.type.with_scalar(i64)) for part in (high, low))
    return from_bits(Lanes(high.b, high.b.or_(high.b.shl(from_high, 32), from_low)))


FUNCTIONS: dict[str, Callable[..., Lanes]] = {
    "clz": lambda x: as_i32(ctlz(x)),
    "popc": lambda x: as_i32(ctpop(x)),
    "ffs": lambda x: as_i32(where(x.equal(0), 0, cttz(x) + 1)),  # 1 + the index of the lowest bit
    "brev": function("bitreverse"),
    "byte_perm": byte_perm,
    "hiloint2double": hiloint2double,
    "mulhi": lambda x, y: Lanes(x.b, x.b.mul_high(x.v, y.v, True)),
    "umulhi": lambda x, y: Lanes(x.b, x.b.mul_high(x.v, y.v, False)),
    "mul24": lambda x, y: ((x << 8) >> 8) * ((y << 8) >> 8),
    "umul24": lambda x, y: (x & 0xFFFFFF) * (y & 0xFFFFFF),
    # half the sum (and 1), without overflow
    "hadd": lambda x, y: (x & y) + ((x ^ y) >> 1),
    "uhadd": lambda x, y: (x & y) + (x ^ y).logical_shift(1),
    "rhadd": lambda x, y: (x | y) - ((x ^ y) >> 1),
    "urhadd": lambda x, y: (x | y) - (x ^ y).logical_shift(1),
    "sad": lambda x, y, z: smax(x, y) - smin(x, y) + z,
    "usad": lambda x, y, z: umax(x, y) - umin(x, y) + z,
}


def cbrt(x: Lanes) -> Lanes:
    """x = m * 2^(3q) with m in [1, 8): a polynomial times a root of 2, then Newton, the last step with fma."""
    bias, fraction = BIAS[x.scalar], FRACTION[x.scalar]
    a = abs(x)
    tiny = a < SMALLEST[x.scalar]
    up = 3 * (fraction // 3 + 1)
    pattern = bits(where(tiny, a * 2.0**up, a))
    exponent = pattern.logical_shift(fraction) - where(tiny, pattern.const(bias + up), pattern.const(bias))
    m = from_bits((pattern & ((1 << fraction) - 1)) | (bias << fraction))
    positive = bias // 2  # thirds, so that the division truncates the right way
    shifted = exponent + 3 * positive
    third = Lanes(x.b, x.b.udiv(shifted.v, shifted.of(3)))
    left = shifted - third * 3
    y = polynomial(m, c.CBRT) * where(left.equal(1), 2.0 ** (1 / 3), where(left.equal(2), 2.0 ** (2 / 3), m.const(1.0)))
    m = m * where(left.equal(1), 2.0, where(left.equal(2), 4.0, m.const(1.0)))
    for _ in range(0 if x.scalar is f32 else 2):
        y = y - (y * y * y - m) / (3.0 * (y * y))
    square = y * y
    rest = fma(square, y, -m) + fma(y, y, -square) * y
    y = y - rest / (3.0 * square)
    result = copysign(y * power_of_two(third - positive), x)
    return where((a > 0.0) & (a < math.inf), result, x)


def norm(*args: Lanes) -> Lanes:
    """The length of a vector."""
    length, _, back = scaled_norm(*args)
    return length * back


def reciprocal_norm(*args: Lanes) -> Lanes:
    """1 / norm, also where the norm itself would overflow."""
    length, factor, _ = scaled_norm(*args)
    return 1.0 / length * factor


def scaled_norm(*args: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """(length * factor, factor, 1 / factor), squares with their errors; the power of two keeps all of them in range."""
    sizes = [abs(arg) for arg in args]
    big = reduce(lambda big, size: where(size > big, size, big), sizes)
    factor, back = into_range(big)
    total, low = big.const(0.0), big.const(0.0)
    for size in sizes:
        scaled = size * factor
        square = scaled * scaled
        new = total + square
        part = new - total
        low = low + ((total - (new - part)) + (square - part)) + fma(scaled, scaled, -square)
        total = new
    root = sqrt(total)
    rest = (fma(-root, root, total) + low) / (root + root)
    result = where((root > 0.0) & (root < math.inf), root + rest, root)
    infinite = reduce(operator.or_, [size.equal(math.inf) for size in sizes])
    nan = reduce(operator.or_, [arg.is_nan() for arg in args])
    return where(infinite, math.inf, where(nan, math.nan, result)), factor, back


def fmod(x: Lanes, y: Lanes) -> Lanes:
    """x - trunc(x / y) y, exact.

    Directly if all quotients are below 2^50 (f32: 2^21), else lane by lane in integers (in f64).
    """
    b, is_single = x.b, x.scalar is f32
    a, d = abs(x), abs(y)
    fits = (a < d * (2.0**21 if is_single else 2.0**50)) & (d > (2.0**-100 if is_single else 2.0**-960))

    def fast() -> list[Value]:
        r = fma(-trunc(a / d), d, a)  # the quotient may be one too large
        r = where(r < 0.0, r + d, r)
        return [where(r >= d, r - d, r).v]

    def slow() -> list[Value]:
        if is_single:
            return [narrow(fmod(widen(a), widen(d))).v]
        return [elementwise_calls(b, "tilework.fmod", f64, [a.v, d.v], fmod_body)]

    (result,) = b.if_else(b.any_lane((~fits).v), slow, fast, weights=(1, 100))
    return remainder_edges(x, y, copysign(Lanes(b, result), x))


def remainder_edges(x: Lanes, y: Lanes, result: Lanes) -> Lanes:
    """Return the remainder with its special cases: by infinity it is x; by 0, and of infinity, it is NaN."""
    a, d = abs(x), abs(y)
    result = where(d.equal(math.inf) & (a < math.inf), x, result)
    return where((a < math.inf) & y.differs(0.0) & ~y.is_nan(), result, where(x.is_nan() | y.is_nan(), x + y, math.nan))


def fmod_body(b: Builder, args: tuple[Value, ...]) -> Value:
    """fmod of two non-negative numbers: long division of the significands, eleven bits at a time."""
    x, y = args

    def parts(value: Value) -> tuple[Value, Value]:
        pattern = b.bitcast(value, i64)
        exponent = b.lshr(pattern, 52)
        normal = b.icmp("ne", exponent, 0)
        fraction = b.and_(pattern, (1 << 52) - 1)
        return b.select(normal, b.or_(fraction, 1 << 52), fraction), b.select(normal, exponent, constant(i64, 1))

    a, ea = parts(x)
    d, ed = parts(y)
    usable = b.and_(b.icmp("ne", d, 0), b.and_(b.icmp("ult", ea, 2047), b.icmp("ult", ed, 2047)))
    d = b.select(usable, d, constant(i64, 1))
    count = b.select(b.and_(usable, b.icmp("sgt", ea, ed)), b.sub(ea, ed), constant(i64, 0))
    whole = b.udiv(count, 11)

    def divide(index: Value, values: tuple[Value, ...]) -> list[Value]:
        return [b.urem(b.shl(values[0], 11), d)]

    first = b.select(b.icmp("slt", ea, ed), a, b.urem(a, d))
    (divided,) = b.rounds(constant(i64, 0), whole, [first], divide, unroll=None)
    left = b.sub(count, b.mul(whole, 11))
    rest = b.select(b.icmp("slt", ea, ed), a, b.urem(b.shl(divided, left), d))
    exponent = b.select(b.icmp("slt", ea, ed), ea, ed)
    # rest * 2^(exponent - 1075): normalise by hand, so that subnormal results are exact
    zeros = b.sub(b.ctlz(rest), 11)
    most = b.sub(exponent, 1)
    shift = b.select(b.icmp("slt", zeros, most), zeros, most)
    moved = b.shl(rest, shift)
    kept = b.sub(exponent, shift)
    normal = b.icmp("ne", b.lshr(moved, 52), 0)
    field = b.select(normal, kept, constant(i64, 0))
    pattern = b.or_(b.shl(field, 52), b.and_(moved, (1 << 52) - 1))
    return b.bitcast(b.select(b.icmp("eq", rest, 0), constant(i64, 0), pattern), f64)


def remainder(x: Lanes, y: Lanes) -> Lanes:
    """x - rint(x / y) y: fmod by 2y, then one or two subtractions of y; f64."""
    a, d = abs(x), abs(y)
    doubled = d < 2.0**1023
    r = abs(fmod(a, where(doubled, d + d, d)))
    r = where(doubled, r, a)
    small = d < 2.0**-1021
    above = where(small, r + r > d, r > d * 0.5)
    r = where(above, r - d, r)
    again = where(small, r + r >= d, r >= d * 0.5)
    r = where(above & again, r - d, r)
    return remainder_edges(x, y, from_bits(bits(r) ^ (bits(x) & -(1 << 63))))


def nextafter(x: Lanes, y: Lanes) -> Lanes:
    """The next float from x towards y."""
    pattern = bits(x)
    away = (x < y).v
    grow = Lanes(x.b, x.b.icmp("eq", x.b.zext(away, pattern.v.type), x.b.zext((x > 0.0).v, pattern.v.type)))
    step = where(grow, pattern + 1, pattern - 1)
    from_zero = copysign(from_bits(pattern.const(1)), y)
    moved = where(x.equal(0.0), from_zero, from_bits(step))
    return where(x.is_nan() | y.is_nan(), x + y, where(x.equal(y), y, moved))


def logb(x: Lanes) -> Lanes:
    """The exponent, as a float."""
    result = to_float(exponent_of(x))
    special = where(x.equal(0.0), -math.inf, x * x)
    return where((abs(x) > 0.0) & (abs(x) < math.inf), result, special)


def exponent_of(x: Lanes) -> Lanes:
    scalar: Type = x.scalar
    fraction = FRACTION[scalar]
    tiny = abs(x) < SMALLEST[scalar]
    pattern = bits(abs(where(tiny, x * 2.0**fraction, x)))
    exponent = pattern.logical_shift(fraction) - BIAS[scalar]
    return where(tiny, exponent - fraction, exponent)


def ilogb(x: Lanes) -> Lanes:
    """The exponent as i32; INT_MIN for 0 and NaN, INT_MAX for infinity."""
    result = exponent_of(x)
    narrow = Lanes(x.b, x.b.trunc(result.v, x.v.type.with_scalar(i32)))
    special = where(abs(x).equal(math.inf), 2**31 - 1, narrow.const(-(2**31)))
    return where((abs(x) > 0.0) & (abs(x) < math.inf), narrow, special)


def ldexp(x: Lanes, n: Lanes) -> Lanes:
    """x * 2^n in three multiplications, so that no step overflows or rounds before the last.

    A step is a power of two that is a normal number. Far down it leaves more than the digits of x to the next one:
    where it gives a subnormal number the result is 0.
    """
    bias = BIAS[x.scalar]
    least, limit = 1 - bias, 3 * bias - 3
    whole = where(n > limit, limit, where(n < -limit, n.const(-limit), n))
    if x.scalar is f64:
        whole = Lanes(x.b, x.b.sext(whole.v, x.v.type.with_scalar(i64)))
    for _ in range(2):
        step = where(whole > bias, bias, where(whole < least, whole.const(least + FRACTION[x.scalar] + 1), whole))
        x, whole = x * power_of_two(step), whole - step
    return x * power_of_two(where(whole > bias, bias, where(whole < least, whole.const(least), whole)))


def to_long(x: Lanes) -> Lanes:
    """A float that is an integer, as i64."""
    return Lanes(x.b, x.b.fptosi_sat(x.v, x.v.type.with_scalar(i64)))


round_half_away = function("round_half_away")
DIRECT: dict[str, Callable[..., Lanes]] = {
    "rsqrt": lambda x: 1.0 / sqrt(x),
    "nextafter": nextafter,
    "fdim": lambda x, y: where(x.is_nan() | y.is_nan(), x + y, where(x > y, x - y, 0.0)),
    "logb": logb,
    "ilogb": ilogb,
    "ldexp": ldexp,
    "scalbn": ldexp,
    "saturate": lambda x: where(x > 0.0, where(x < 1.0, x, 1.0), 0.0),  # NaN is 0
    "round": round_half_away,
    "llrint": lambda x: to_long(rint(x)),
    "llround": lambda x: to_long(round_half_away(x)),
    "isnan": Lanes.is_nan,
    "isinf": lambda x: abs(x).equal(math.inf),
    "isfinite": lambda x: abs(x) < math.inf,
    "signbit": lambda x: Lanes(x.b, x.b.zext((bits(x) < 0).v, x.v.type.with_scalar(i32))),
    "fdivide": lambda x, y: x / y,
    "abs": lambda x: abs(x),
    "sqrt": sqrt,
    "floor": floor,
    "ceil": ceil,
    "trunc": trunc,
    "rint": rint,
    "nearbyint": rint,
    "fma": fma,
    "copysign": copysign,
    "cbrt": cbrt,
    "rcbrt": lambda x: 1.0 / cbrt(x),
    "fmod": fmod,
    **dict.fromkeys(("hypot", "norm3d", "norm4d"), norm),
    **dict.fromkeys(("rhypot", "rnorm3d", "rnorm4d"), reciprocal_norm),
}
THROUGH_F64: dict[str, Callable[..., Lanes]] = {
    "rsqrt_rn": lambda x: 1.0 / sqrt(x),
    "remainder": remainder,
    "powi": lambda x, n: pow(x, Lanes(x.b, x.b.sitofp(n.v, x.v.type))),
}
