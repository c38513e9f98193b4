"""Floats narrower than the processor computes with: to f32 and back, rounded once.

    x = widen(b, value, f8E4M3FN)             # i8 bits -> float, exact
    y = narrow(b, x, bf16)                    # float or double -> bfloat, nearest even
    z = narrow(b, x, f8E5M2, saturate=True)   # numbers beyond the largest finite one become it

An operation on f16, bf16 or an 8-bit float widens to f32, computes there, and narrows: 24 bits are enough for the
result of + - * / sqrt to be what one rounding of the exact result gives. A double goes through f32 *rounded to odd*:
the odd last bit remembers what was cut off, so that the second rounding is still right. All functions take scalars and
vectors.
"""

from xdsl.ir import Attribute

from tilework.ir.types import f8E4M3FN, f8E4M3FNUZ, f8E5M2, f8E5M2FNUZ
from tilework.numerics import formats
from tilework.numerics.formats import Format
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.scalar_types import memory_type, register_type
from tilework.targets.llvm.types import Type, f16, f32, f64, i1, i8, i16, i32, i64, integer
from tilework.targets.llvm.types import bf16 as bfloat
from tilework.targets.llvm.values import Value, constant

FORMATS: dict[Attribute, Format] = {
    type: formats.of_ir(type.name) for type in (f8E4M3FN, f8E5M2, f8E4M3FNUZ, f8E5M2FNUZ)
}


def is_float8(type: Attribute) -> bool:
    return type in FORMATS


def widen(b: Builder, value: Value, type: Attribute) -> Value:
    """f16, bf16 and 8-bit floats as f32; f32 and f64 as they are. Exact."""
    scalar = value.type.scalar
    if scalar is f32 or scalar is f64:
        return value
    if scalar is f16:
        return b.fpext(value, value.type.with_scalar(f32))
    if scalar is bfloat:
        bits = b.zext(b.bitcast(value, value.type.with_scalar(i16)), value.type.with_scalar(i32))
        return b.bitcast(b.shl(bits, 16), value.type.with_scalar(f32))
    return widen_float8(b, value, type)


def widen_float8(b: Builder, bits: Value, type: Attribute) -> Value:
    """Move the exponent and fraction to their bits in a wider float; a product with a power of two then
    corrects the bias, and makes subnormals right."""
    if type == f8E5M2:  # the upper half of an f16
        half = b.shl(b.zext(bits, bits.type.with_scalar(i16)), 8)
        return b.fpext(b.bitcast(half, bits.type.with_scalar(f16)), bits.type.with_scalar(f32))
    format = FORMATS[type]
    real, int_type = bits.type.with_scalar(f32), bits.type.with_scalar(i32)
    wide = b.zext(bits, int_type)
    magnitude = b.shl(b.and_(wide, 0x7F), 23 - format.fraction)
    scaled = b.fmul(b.bitcast(magnitude, real), 2.0 ** (127 - format.bias))
    sign = b.shl(b.and_(wide, 0x80), 24)
    signed = b.bitcast(b.or_(b.bitcast(scaled, int_type), sign), real)
    if format.has_negative_zero:
        is_nan = b.icmp("eq", b.and_(wide, 0x7F), 0x7F)
    else:
        is_nan = b.icmp("eq", wide, 0x80)
    return b.select(is_nan, constant(real, float("nan")), signed)


def widen_half(b: Builder, value: Value) -> Value:
    """An f16 as f32 with integers and a product, for machines without an instruction."""
    int_type, real = value.type.with_scalar(i32), value.type.with_scalar(f32)
    bits = b.zext(b.bitcast(value, value.type.with_scalar(i16)), int_type)
    magnitude = b.shl(b.and_(bits, 0x7FFF), 13)
    scaled = b.bitcast(b.fmul(b.bitcast(magnitude, real), 2.0**112), int_type)
    is_finite = b.icmp("ult", magnitude, 0x7C00 << 13)
    made = b.select(is_finite, scaled, b.or_(magnitude, 0x7F800000))
    return b.bitcast(b.or_(made, b.shl(b.and_(bits, 0x8000), 16)), real)


def narrow_half(b: Builder, value: Value) -> Value:
    """f32 to f16, likewise."""
    return b.bitcast(narrow_bits(b, value, formats.FORMATS["fp16"]), value.type.with_scalar(f16))


def narrow(b: Builder, value: Value, type: Attribute, saturate: bool = False) -> Value:
    """An f32 or f64 to any float type, nearest even; only 8-bit floats may `saturate`."""
    wanted = register_type(type)
    scalar = value.type.scalar
    if scalar is wanted:
        return value
    if wanted is f64:
        return b.fpext(value, value.type.with_scalar(f64))
    if scalar is f64 and wanted is not f32:
        value = to_odd(b, value)
    if wanted is bfloat:
        return narrow_bfloat(b, value)
    if wanted is not i8:
        return b.fptrunc(value, value.type.with_scalar(wanted))
    return narrow_bits(b, value, FORMATS[type], saturate)


def narrow_bfloat(b: Builder, value: Value) -> Value:
    """f32 to bf16 with integers: LLVM's fptrunc is a call on x86, or an instruction that takes denormals for zero."""
    int_type = value.type.with_scalar(i32)
    bits = b.bitcast(value, int_type)
    rounded = b.add(bits, b.add(b.and_(b.lshr(bits, 16), 1), 0x7FFF))
    is_nan = b.fcmp("uno", value, value)
    kept = b.lshr(b.select(is_nan, b.or_(bits, 0x00400000), rounded), 16)
    return b.bitcast(b.trunc(kept, value.type.with_scalar(i16)), value.type.with_scalar(bfloat))


def upper_half(b: Builder, value: Value) -> Value:
    """The bf16 that an f32 is exactly."""
    return b.bitcast(b.trunc(b.lshr(b.bitcast(value, i32), 16), i16), bfloat)


def fma_to_odd(b: Builder, x: Value, y: Value, z: Value) -> Value:
    """x * y + z of doubles whose product is exact; an inexact sum gets an odd last bit, so that a narrower one is
    rounded once.
    """
    product = b.fmul(x, y)
    total = b.fadd(product, z)
    other = b.fsub(total, product)
    error = b.fadd(b.fsub(product, b.fsub(total, other)), b.fsub(z, other))
    bits = b.bitcast(total, x.type.with_scalar(i64))
    is_even = b.icmp("eq", b.and_(bits, 1), 0)
    is_inexact = b.and_(b.fcmp("one", error, 0.0), b.fcmp("olt", b.fabs(total), float("inf")))
    grows = b.icmp("sge", b.xor(bits, b.bitcast(error, bits.type)), 0)  # error and total have the same sign
    step = b.select(grows, constant(bits.type, 1), constant(bits.type, -1))
    return b.bitcast(b.select(b.and_(is_inexact, is_even), b.add(bits, step), bits), x.type)


def to_odd(b: Builder, value: Value) -> Value:
    """f64 to f32; inexact results get an odd last bit."""
    int_type = value.type.with_scalar(i32)
    near = b.fptrunc(value, value.type.with_scalar(f32))
    back = b.fpext(near, value.type)
    bits = b.bitcast(near, int_type)
    is_even = b.icmp("eq", b.and_(bits, 1), 0)
    is_inexact = b.fcmp("one", back, value)
    is_above = b.fcmp("ogt", b.fabs(back), b.fabs(value))
    step = b.select(is_above, constant(int_type, -1), constant(int_type, 1))
    moved = b.select(b.and_(is_inexact, is_even), b.add(bits, step), bits)
    return b.bitcast(moved, near.type)


def narrow_bits(b: Builder, value: Value, format: Format, saturate: bool = False) -> Value:
    """An f32 as the bits of a format of 8 or 16 bits.

    Normal numbers round by adding half a unit to the bits; subnormal ones by adding a float whose last bit is their
    unit.
    """
    int_type = value.type.with_scalar(i32)
    bits = b.bitcast(value, int_type)
    magnitude = b.and_(bits, 0x7FFFFFFF)
    dropped = 23 - format.fraction
    half = b.add(b.and_(b.lshr(magnitude, dropped), 1), (1 << (dropped - 1)) - 1 - ((127 - format.bias) << 23))
    normal = b.lshr(b.add(magnitude, half), dropped)
    magic = 2.0 ** (1 - format.bias - format.fraction + 23)
    lifted = b.fadd(b.bitcast(magnitude, value.type), magic)
    small = b.sub(b.bitcast(lifted, int_type), b.bitcast(constant(value.type, magic), int_type))
    is_small = b.icmp("ult", magnitude, (128 - format.bias) << 23)
    rounded = b.select(is_small, small, normal)
    if saturate:
        code = b.umin(rounded, format.largest)
    else:
        code = b.select(b.icmp("ugt", rounded, format.largest), constant(int_type, format.overflow), rounded)
    code = b.select(b.icmp("ugt", magnitude, 0x7F800000), constant(int_type, format.nan), code)
    sign = b.and_(b.lshr(bits, 32 - format.bits), 1 << format.bits - 1)
    if not format.has_negative_zero:
        sign = b.select(b.icmp("eq", code, 0), constant(int_type, 0), sign)
    return b.trunc(b.or_(code, sign), value.type.with_scalar(integer(format.bits)))


def narrow_to_zero(b: Builder, value: Value, type: Attribute) -> Value:
    """Towards zero: the nearest number, or its neighbour below in magnitude."""
    near = narrow(b, value, type)
    wide = near if near.type is value.type else widen(b, near, type)
    if wide.type.scalar is f32 and value.type.scalar is f64:
        wide = b.fpext(wide, value.type)
    is_above = b.fcmp("ogt", b.fabs(wide), b.fabs(value))
    whole = near.type.with_scalar(INTEGER_OF[near.type.scalar])
    bits = b.bitcast(near, whole)
    return b.bitcast(b.select(is_above, b.add(bits, -1), bits), near.type)


INTEGER_OF: dict[Type, Type] = {i8: i8, f16: i16, bfloat: i16, f32: i32, f64: i64}


def from_integer(b: Builder, value: Value, type: Attribute, is_signed: bool) -> Value:
    """An integer to a float, rounded once."""
    convert = b.sitofp if is_signed else b.uitofp
    wanted, bits = register_type(type), value.type.scalar.bits
    if wanted is f32 or wanted is f64:
        return convert(value, value.type.with_scalar(wanted))
    if bits <= 16:
        return narrow(b, convert(value, value.type.with_scalar(f32)), type)
    if bits == 64:  # 53 bits are exact in f64: fold the lowest 11 of large numbers into one sticky bit
        low = b.and_(value, 0x7FF)
        sticky = b.select(b.icmp("eq", low, 0), constant(value.type, 0), constant(value.type, 0x800))
        folded = b.or_(b.sub(value, low), sticky)
        magnitude = b.abs(value) if is_signed else value
        value = b.select(b.icmp("ugt", magnitude, 1 << 53), folded, value)
    return narrow(b, convert(value, value.type.with_scalar(f64)), type)


def to_integer(b: Builder, value: Value, type: Attribute, wanted: Type, is_signed: bool) -> Value:
    """A float of IR type `type` truncated to an integer. Out of range the limits apply (those of 16 bits for narrower
    types, which then keep the low bits); NaN is 0."""
    wide = widen(b, value, type)
    target = wide.type.with_scalar(wanted if wanted.bits >= 16 else i16)
    whole = b.fptosi_sat(wide, target) if is_signed else b.fptoui_sat(wide, target)
    return b.trunc(whole, wide.type.with_scalar(wanted))


def from_memory(b: Builder, element: Attribute, loaded: Value) -> Value:
    """A value loaded as a `memory_type` (a pointer also as an integer), in its register type."""
    wanted = register_type(element)
    if loaded.type.scalar is wanted:
        return loaded
    if wanted.is_pointer:
        return b.inttoptr(loaded, wanted)
    if wanted is i1:  # any byte but 0 is true
        return b.icmp("ne", loaded, constant(loaded.type, 0))
    return b.trunc(loaded, loaded.type.with_scalar(wanted))


def to_memory(b: Builder, element: Attribute, value: Value) -> Value:
    """A register value as memory holds it; an i1 becomes the byte 0 or 1."""
    held = memory_type(element)
    if value.type.scalar is held:
        return value
    return (b.zext if value.type.scalar is i1 else b.sext)(value, value.type.with_scalar(held))
