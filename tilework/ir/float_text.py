"""Floats as MLIR writes them, and the bit patterns it reads.

The first of these forms that gives the same bits back is taken:

    six digits and a zero   1.500000e+00
    all significant digits  1.44269502, 9.99999974E-6     (only when a `.` appears)
    the bits in hexadecimal 0x7FC00000, 0x4B800000        (NaN, infinities, large integers)

The digits of the second form are cut, not rounded, when the exact decimal expansion is much longer than needed:
1e-5 in f32 is 9.99999974737875e-06 and prints as 9.99999974E-6.
"""

import math
from functools import lru_cache

from xdsl.dialects.builtin import AnyFloat

# Significant bits of a float, with the hidden one.
PRECISION: dict[str, int] = {
    "f16": 11,
    "bf16": 8,
    "f32": 24,
    "f64": 53,
    "f8E4M3FN": 4,
    "f8E4M3FNUZ": 4,
    "f8E5M2": 3,
    "f8E5M2FNUZ": 3,
}
PADDING = 3  # zeros written before a number goes to scientific form


def float_bits(value: float, type: AnyFloat) -> int:
    """The bit pattern of `value`, rounded to `type`."""
    return int.from_bytes(type.pack((value,)), "little")


def float_from_bits(bits: int, type: AnyFloat) -> float:
    """The value of a bit pattern; ValueError when it has more bits than the type."""
    size = type.compile_time_size
    if bits >> (8 * size):
        raise ValueError(f"0x{bits:X} does not fit {type}")
    return next(iter(type.iter_unpack(bits.to_bytes(size, "little"))))


@lru_cache(maxsize=1024)
def float_text(value: float, type: AnyFloat, negative_zero: bool = False) -> str:
    """`value` as MLIR prints it. Call through `number_text`: the cache cannot tell -0.0 from 0.0."""
    if value == 0.0:
        return "-0.000000e+00" if negative_zero else "0.000000e+00"
    bits = float_bits(value, type)
    if math.isfinite(value):
        short = scientific(*decimal_digits(abs(value), 6), precision=6)
        short = f"-{short}" if value < 0 else short
        if float_bits(float(short), type) == bits:
            return short
        full = shortest(*decimal_digits(abs(value), precision := digits_of(type)), precision)
        if "." in full:
            return f"-{full}" if value < 0 else full
    return f"0x{bits:X}"


def number_text(value: float, type: AnyFloat) -> str:
    """The text of one float: ``number_text(0.5, f32)`` is ``5.000000e-01``."""
    return float_text(value, type, value == 0.0 and math.copysign(1.0, value) < 0)


def bits_text(raw: bytes, type: AnyFloat) -> str:
    """The text of one element given by its bytes; NaN bits are kept as they are."""
    value = next(iter(type.iter_unpack(raw)))
    if value != value or math.isinf(value):
        return f"0x{int.from_bytes(raw, 'little'):X}"
    return number_text(value, type)


def digits_of(type: AnyFloat) -> int:
    """Decimal digits that tell every value of `type` from its neighbours."""
    return 2 + PRECISION.get(type.name, 53) * 59 // 196


def decimal_digits(value: float, precision: int) -> tuple[str, int]:
    """Digits d and exponent e with value = d * 10**e, at most `precision` digits, no trailing zeros.

    59/196 is log10(2) from below: the significand is first divided by the powers of ten it can surely spare (this
    cuts), and only what is still too long is rounded, half up.
    """
    significand, denominator = value.as_integer_ratio()
    exponent = 1 - denominator.bit_length()  # the denominator is a power of two: n/2**k = n*5**k / 10**k
    significand *= 5**-exponent
    spare = significand.bit_length() - (precision * 196 + 58) // 59
    if spare > 0 and (tens := spare * 59 // 196):
        significand //= 10**tens
        exponent += tens
    digits = str(significand)
    if (extra := len(digits) - precision) > 0:
        kept = int(digits[:precision]) + (digits[precision] >= "5")
        digits, exponent = str(kept), exponent + extra
    stripped = digits.rstrip("0")
    return stripped, exponent + len(digits) - len(stripped)


def scientific(digits: str, exponent: int, precision: int) -> str:
    """``1.500000e+00``: one digit more than `precision`, filled with zeros."""
    power = exponent + len(digits) - 1
    return f"{digits[0]}.{digits[1:].ljust(precision, '0')}e{'-' if power < 0 else '+'}{abs(power):02d}"


def shortest(digits: str, exponent: int, precision: int) -> str:
    """``1.44269502``, ``0.00765``, ``9.99999974E-6``, or plain digits for an integer."""
    count = len(digits)
    power = exponent + count - 1
    if exponent >= 0:
        if exponent <= PADDING and count + exponent <= precision:
            return digits + "0" * exponent
    elif power >= 0:
        return f"{digits[: power + 1]}.{digits[power + 1 :]}"
    elif -power <= PADDING:
        return f"0.{'0' * (-power - 1)}{digits}"
    return f"{digits[0]}.{digits[1:] or '0'}E{'-' if power < 0 else '+'}{abs(power)}"
