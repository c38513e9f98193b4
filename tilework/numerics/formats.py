"""Every float format as a value, and Python numbers rounded to it.

    >>> rounded(0.1, FORMATS["fp16"])
    0.0999755859375
    >>> FORMATS["fp8e4nv"].limit, FORMATS["fp8e4nv"].number(0x01)
    (448.0, 0.001953125)

A format has a sign, an exponent and a fraction; what differs is the bias, and what the largest codes mean.
"""

from math import copysign, frexp, inf, isfinite, ldexp, nan
from typing import TYPE_CHECKING

from tilework.light_dataclass import light_dataclass
from tilework.process.forks import cached_property

if TYPE_CHECKING:
    from fractions import Fraction


@light_dataclass
class Format:
    """A float format; `fraction` counts the stored bits, `largest`, `overflow` and `nan` are codes without sign.

    `overflow` is infinity, or the code used for it; `has_negative_zero` is false if that code is the only NaN.
    """

    name: str
    bits: int
    fraction: int
    bias: int
    largest: int
    overflow: int
    nan: int
    has_negative_zero: bool = True

    @classmethod
    def ieee(cls, name: str, bits: int, fraction: int) -> "Format":
        """The highest exponent is for infinity, with fraction 0, and NaN."""
        infinity = ((1 << (bits - 1 - fraction)) - 1) << fraction
        bias = (1 << (bits - 2 - fraction)) - 1
        return cls(name, bits, fraction, bias, infinity - 1, infinity, infinity | 1 << (fraction - 1))

    @cached_property
    def limit(self) -> float:
        """The largest finite number."""
        return self.number(self.largest)

    @cached_property
    def smallest(self) -> int:
        """The exponent of the smallest normal number."""
        return 1 - self.bias

    @cached_property
    def most(self) -> int:
        """The exponent of the largest number."""
        return (self.largest >> self.fraction) - self.bias

    @cached_property
    def last_number(self) -> int | None:
        """The largest code without sign that is a number or infinity; None if there is at most one NaN."""
        if not self.has_negative_zero or self.nan == self.largest:
            return None
        return self.largest if self.overflow == self.nan else self.overflow

    def number(self, code: int) -> float:
        """Return the number of a code that is finite and not negative."""
        exponent, fraction = divmod(code, 1 << self.fraction)
        hidden = 1 << self.fraction if exponent else 0
        return ldexp(float(hidden | fraction), max(exponent, 1) - self.bias - self.fraction)

    def value(self, code: int) -> float:
        """Return the number of any code."""
        sign = 1 << (self.bits - 1)
        size = code & (sign - 1)
        if code == self.nan or size > self.largest:
            return copysign(inf if size == self.overflow != self.nan else nan, -1 if code & sign else 1)
        return copysign(self.number(size), -1 if code & sign else 1)


FORMATS = {
    format.name: format
    for format in (
        Format("fp8e4b15", 8, 3, 15, 0x7E, 0x7E, 0x7E),  # no infinity, no NaN
        Format("fp8e4nv", 8, 3, 7, 0x7E, 0x7F, 0x7F),
        Format("fp8e4b8", 8, 3, 8, 0x7F, 0x80, 0x80, False),
        Format.ieee("fp8e5", 8, 2),
        Format("fp8e5b16", 8, 2, 16, 0x7F, 0x80, 0x80, False),
        Format.ieee("fp16", 16, 10),
        Format.ieee("bf16", 16, 7),
        Format.ieee("fp32", 32, 23),
        Format.ieee("fp64", 64, 52),
    )
}
FP8_TYPES = tuple(sorted(name for name in FORMATS if name.startswith("fp8")))
DOT_PRECISIONS = ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")  # precisions of f32 operands of a dot
IR_NAMES = {  # IR name of a format
    **{"f16": "fp16", "bf16": "bf16", "f32": "fp32", "f64": "fp64", "f8E4M3FN": "fp8e4nv", "f8E5M2": "fp8e5"},
    **{"f8E4M3FNUZ": "fp8e4b8", "f8E5M2FNUZ": "fp8e5b16"},
}
TF32 = Format.ieee("tf32", 19, 10)
E2M1 = Format("fp4e2m1", 4, 1, 1, 0x7, 0x7, 0x7)  # no infinity, no NaN
FP64 = FORMATS["fp64"]


def of_ir(name: str) -> Format:
    return FORMATS[IR_NAMES[name]]


def rounded(value: float, format: Format) -> float:
    """Return the nearest number of a format, ties to even; infinity beyond its range."""
    if format is FP64 or value == 0 or not isfinite(value):
        return value
    exponent = frexp(value)[1] - 1
    if exponent > format.most:
        return copysign(inf, value)
    unit = max(exponent, format.smallest) - format.fraction
    result = ldexp(round(ldexp(value, -unit)), unit)
    return copysign(result if abs(result) <= format.limit else inf, value)


def round_fraction(exact: "Fraction", format: Format) -> float:
    """Return the number of a format nearest to an exact one, ties to even; infinity beyond its range."""
    over, under, sign = abs(exact.numerator), exact.denominator, 1.0 if exact >= 0 else -1.0
    exponent = over.bit_length() - under.bit_length()
    exponent -= over << max(-exponent, 0) < under << max(exponent, 0)  # now 2**exponent <= over / under
    if exponent > format.most:
        return sign * inf
    unit = max(exponent, format.smallest) - format.fraction
    under <<= max(unit, 0)
    steps, rest = divmod(over << max(-unit, 0), under)
    steps += 2 * rest > under or (2 * rest == under and steps & 1)
    overflows = steps.bit_length() + unit > format.most + 1 or ldexp(steps, unit) > format.limit
    return sign * (inf if overflows else ldexp(steps, unit))


def nearest_odd(value: int) -> float:
    """Truncate `value` to 53 bits with any lost bits recorded in the last one, so that one later rounding is
    correct."""
    excess = abs(value).bit_length() - 53
    if excess <= 0:
        return float(value)
    head = abs(value) >> excess
    head |= head << excess != abs(value)
    return ldexp(float(head if value >= 0 else -head), excess)
