"""The integer functions of libdevice."""

from tilework.targets.llvm.math.lanes import Lanes, where
from tilework.targets.llvm.types import i32, i64
from tilework.targets.llvm.values import constant


def as_i32(x: Lanes, value: Lanes) -> Lanes:
    return Lanes(x.b, x.b.trunc(value.v, x.v.type.with_scalar(i32)))


def clz(x: Lanes) -> Lanes:
    return as_i32(x, Lanes(x.b, x.b.ctlz(x.v)))


def popc(x: Lanes) -> Lanes:
    return as_i32(x, Lanes(x.b, x.b.ctpop(x.v)))


def ffs(x: Lanes) -> Lanes:
    """1 + the place of the lowest bit; 0 for 0."""
    return as_i32(x, where(x.equal(0), 0, Lanes(x.b, x.b.cttz(x.v)) + 1))


def brev(x: Lanes) -> Lanes:
    return Lanes(x.b, x.b.bitreverse(x.v))


def byte_perm(x: Lanes, y: Lanes, selector: Lanes) -> Lanes:
    """Four bytes chosen from the eight of y:x, each by a nibble; its top bit spreads the byte's sign."""
    b = x.b
    wide = x.v.type.with_scalar(i64)
    both = Lanes(b, b.or_(b.zext(x.v, wide), b.shl(b.zext(y.v, wide), 32)))
    choice = Lanes(b, b.zext(selector.v, wide))
    total = Lanes(b, constant(wide, 0))
    for place in range(4):
        nibble = choice.logical_shift(4 * place) & 15
        byte = both.logical_shift((nibble & 7) << 3) & 255
        sign = where((byte & 128).differs(0), 255, byte.const(0))
        total = total | (where((nibble & 8).differs(0), sign, byte) << (8 * place))
    return Lanes(b, b.trunc(total.v, x.v.type))


def mulhi(x: Lanes, y: Lanes) -> Lanes:
    return Lanes(x.b, x.b.mul_high(x.v, y.v, True))


def umulhi(x: Lanes, y: Lanes) -> Lanes:
    return Lanes(x.b, x.b.mul_high(x.v, y.v, False))


def mul24(x: Lanes, y: Lanes) -> Lanes:
    return ((x << 8) >> 8) * ((y << 8) >> 8)


def umul24(x: Lanes, y: Lanes) -> Lanes:
    return (x & 0xFFFFFF) * (y & 0xFFFFFF)


def hadd(x: Lanes, y: Lanes) -> Lanes:
    """(x + y) >> 1 without overflow."""
    return (x & y) + ((x ^ y) >> 1)


def uhadd(x: Lanes, y: Lanes) -> Lanes:
    return (x & y) + (x ^ y).logical_shift(1)


def rhadd(x: Lanes, y: Lanes) -> Lanes:
    """(x + y + 1) >> 1 without overflow."""
    return (x | y) - ((x ^ y) >> 1)


def urhadd(x: Lanes, y: Lanes) -> Lanes:
    return (x | y) - (x ^ y).logical_shift(1)


def sad(x: Lanes, y: Lanes, z: Lanes) -> Lanes:
    return Lanes(x.b, x.b.sub(x.b.smax(x.v, y.v), x.b.smin(x.v, y.v))) + z


def usad(x: Lanes, y: Lanes, z: Lanes) -> Lanes:
    return Lanes(x.b, x.b.sub(x.b.umax(x.v, y.v), x.b.umin(x.v, y.v))) + z


def hiloint2double(high: Lanes, low: Lanes) -> Lanes:
    from_high, from_low = (high.b.zext(part.v, part.v.type.with_scalar(i64)) for part in (high, low))
    return Lanes(high.b, high.b.or_(high.b.shl(from_high, 32), from_low))
