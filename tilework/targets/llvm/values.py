"""Values of the builder: a type, the text that names it, and what is known about it.

    >>> constant(i32, -1)
    Value(type=i32, text='-1', constant=4294967295)
    >>> constant(vector(f32, 4), 1.5).text
    'splat (float 0x3FF8000000000000)'

An integer constant is held modulo its width (unsigned), a floating-point one as the Python float it rounds to. A vector
constant is one value if all lanes are equal (also of a pointer: 0 is null), and a tuple of values otherwise.
"""

import struct as packing
from typing import Any, NamedTuple

from tilework.numerics.formats import rounded
from tilework.targets.llvm.types import FORMATS, Type, bf16, f16, f32, f64, i1


class Value(NamedTuple):
    """One SSA value, argument, global or constant of LLVM; frozen, cheap to make."""

    type: Type
    text: str
    constant: Any = None

    @property
    def typed(self) -> str:
        """As an operand with its type: ``i32 %a``."""
        return f"{self.type.text} {self.text}"


def round_float(type: Type, value: float) -> float:
    """`value` rounded to nearest even in `type`: overflow is infinite, small values become subnormal.

    >>> round_float(f16, 65520.0), round_float(bf16, 1.00390625)
    (inf, 1.0)
    """
    return rounded(value, FORMATS[type])


def float_bits(type: Type, value: float) -> int:
    """The bit pattern of a value that `type` holds exactly; NaN is the quiet one.

    >>> hex(float_bits(bf16, 1.0)), hex(float_bits(f16, 65504.0))
    ('0x3f80', '0x7bff')
    """
    if type is f64:
        return int.from_bytes(packing.pack("<d", value), "little")
    if type is f16:
        return int.from_bytes(packing.pack("<e", value), "little")
    bits = int.from_bytes(packing.pack("<f", value), "little")
    return bits >> 16 if type is bf16 else bits


def float_from_bits(type: Type, bits: int) -> float:
    """The value with this bit pattern; the payload of a NaN is lost."""
    if type is f64:
        return packing.unpack("<d", bits.to_bytes(8, "little"))[0]
    if type is f16:
        return packing.unpack("<e", bits.to_bytes(2, "little"))[0]
    return packing.unpack("<f", (bits << 16 if type is bf16 else bits).to_bytes(4, "little"))[0]


def signed(type: Type, value: int) -> int:
    """The two's-complement reading of an integer constant."""
    bits = type.scalar.bits
    return value - (1 << bits) if value >> (bits - 1) else value


def scalar_text(type: Type, value: int | float) -> str:
    """LLVM's spelling of one scalar: integers in decimal, floats by their bits."""
    if type.kind == "int":
        if type is i1:
            return "true" if value else "false"
        return str(signed(type, int(value)))
    if type.kind == "ptr":
        assert value == 0, f"the only pointer constant is null, not {value}"
        return "null"
    if type is f32 or type is f64:
        if type is f32 and value != value:
            value = float_from_bits(f32, float_bits(f32, value))  # only the payload bits that a float has
        return f"0x{float_bits(f64, value):016X}"
    return f"0x{'H' if type is f16 else 'R'}{float_bits(type, value):04X}"


def normalized(type: Type, value: int | float) -> int | float:
    """`value` as constants of the scalar `type` hold it."""
    if type.kind == "float":
        return round_float(type, float(value))
    assert int(value) == value, f"{value} is not an integer, as {type} needs"
    return int(value) & type.mask


_INTERNED: dict[tuple[Type, Any], Value] = {}  # NaN is never found again, which costs only time


def constant(type: Type, value: Any) -> Value:
    """The constant `value` of `type`; a scalar fills every lane of a vector, a list or tuple gives each its own."""
    if value.__class__ is tuple or value.__class__ is list:
        return lanes_constant(type, value)
    key = (type, value) if value != 0 else (type, str(value))  # 0.0 and -0.0 are equal but not the same
    if (found := _INTERNED.get(key)) is not None:
        return found
    scalar = normalized(type.scalar, value)
    text = scalar_text(type.scalar, scalar)
    if type.kind == "vector":
        text = f"splat ({type.scalar.text} {text})"
    return _INTERNED.setdefault(key, Value(type, text, scalar))


def lanes_constant(type: Type, values: Any) -> Value:
    """A vector constant lane by lane; equal lanes (bit for bit) give the splat."""
    assert len(values) == type.count, f"{len(values)} lanes for {type}"
    scalar = type.scalar
    scalars = tuple(normalized(scalar, value) for value in values)
    spelled = [scalar_text(scalar, each) for each in scalars]
    if len(set(spelled)) == 1:
        return constant(type, scalars[0])
    return Value(type, "<" + ", ".join(f"{scalar.text} {text}" for text in spelled) + ">", scalars)


def lanes_of(value: Value) -> tuple[Any, ...]:
    """The constant of each lane."""
    known = value.constant
    return known if known.__class__ is tuple else (known,) * value.type.count
