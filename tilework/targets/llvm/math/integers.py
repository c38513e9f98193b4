"""The integer functions of libdevice."""

from collections.abc import Callable

from tilework.targets.llvm.math.lanes import Lanes, from_bits, function, where
from tilework.targets.llvm.types import i32, i64
from tilework.targets.llvm.values import constant

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
    for place in range(4):
        nibble = choice.logical_shift(4 * place) & 15
        byte = both.logical_shift((nibble & 7) << 3) & 255
        sign = where((byte & 128).differs(0), 255, byte.const(0))
        total = total | (where((nibble & 8).differs(0), sign, byte) << (8 * place))
    return Lanes(b, b.trunc(total.v, x.v.type))


def hiloint2double(high: Lanes, low: Lanes) -> Lanes:
    from_high, from_low = (high.b.zext(part.v, part.v.type.with_scalar(i64)) for part in (high, low))
    return from_bits(Lanes(high.b, high.b.or_(high.b.shl(from_high, 32), from_low)))


FUNCTIONS: dict[str, Callable[..., Lanes]] = {
    "clz": lambda x: as_i32(ctlz(x)),
    "popc": lambda x: as_i32(ctpop(x)),
    "ffs": lambda x: as_i32(where(x.equal(0), 0, cttz(x) + 1)),  # 1 + the place of the lowest bit
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
