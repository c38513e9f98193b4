"""The type of a result, from the types of the operands. No IR here: dtypes in, a dtype out.

A Python number beside a tensor is *weak*: it takes the tensor's type if it is not of a higher kind
(bool < int < float). Anything else follows the tables of `promote`:

    fp16 block * 1.5              -> fp16      1.5 is weak
    int32 block * 1.5             -> fp32      float is a higher kind, so 1.5 counts as fp32
    uint8 block + 300             -> error     300 is out of range for uint8
    fp16 scalar + bf16 block      -> fp16
    bf16 block + int32 block      -> fp32
    int32 block + uint32 block    -> uint32

Division (``/ // %``) computes 16-bit floats in fp32, and refuses to mix signed and unsigned integers.
"""

from functools import cache
from math import copysign, frexp, inf, isfinite, ldexp, trunc

from tilework.language.dtypes import (
    FLOAT_LAYOUT,
    bfloat16,
    dtype,
    float16,
    float32,
    float64,
    int1,
    int32,
    int64,
    uint32,
    uint64,
)

NOT_WEAK, LEFT_WEAK, RIGHT_WEAK = range(3)
DIVISIONS = frozenset({"/", "//", "%"})
DTYPES = {name: dtype(name) for name in (*dtype.SINT_TYPES, *dtype.UINT_TYPES, *dtype.FP_TYPES)}

FP32_MIN, FP32_MAX = 2.0**-126, (2 - 2.0**-23) * 2.0**127


class InvalidOperands(TypeError):
    """An operator that does not exist for these types: ``invalid operands of type pointer<fp32> and fp32``."""

    def __init__(self, left: object, right: object, operator: str, help: str) -> None:
        super().__init__(f"invalid operands of type {left} and {right} for `{operator}`: {help}")


def number_dtype(value: object) -> dtype:
    """The type of a Python number that becomes a runtime value: ``5`` int32, ``2**40`` int64, ``1e50`` fp64."""
    if isinstance(value, bool):
        return int1
    if isinstance(value, int):
        if -(2**31) <= value < 2**31:
            return int32
        if 2**31 <= value < 2**32:
            return uint32
        if -(2**63) <= value < 2**63:
            return int64
        if 2**63 <= value < 2**64:
            return uint64
        shown = value if abs(value) >> 128 == 0 else f"of {value.bit_length()} bits"
        raise ValueError(f"the integer {shown} does not fit in 64 bits: no tensor can hold it")
    if isinstance(value, float):
        fits = value == 0 or not isfinite(value) or FP32_MIN <= abs(value) <= FP32_MAX
        return float32 if fits else float64
    raise TypeError(f"cannot convert {value!r} of type {type(value).__name__} to a tensor; expected a number")


@cache
def promote(left: str, right: str, weak: int, operator: str) -> dtype:
    """The type in which `left operator right` is computed; operands are named by `dtype.name`.

    `weak` says which operand, if any, is a Python number (its name is then that of `number_dtype`).
    """
    a, b = DTYPES.get(left), DTYPES.get(right)
    if a is None or b is None:
        raise InvalidOperands(left, right, operator, "cast pointers to tl.int64 to compute with addresses")
    division = operator in DIVISIONS
    if weak:
        number, other = (a, b) if weak == LEFT_WEAK else (b, a)
        if number.kind() <= other.kind():
            return float32 if division and other.name in ("fp16", "bf16") else other
    if a.is_floating() or b.is_floating():
        return promote_floats(a, b, operator)
    if division and a.int_signedness != b.int_signedness:
        raise TypeError(
            f"Cannot use {operator} with {a} and {b} because they have different signedness; "
            f"cast one of them, for example to {wider(a, b)}"
        )
    return wider(a, b)


def promote_floats(a: dtype, b: dtype, operator: str) -> dtype:
    """At least one of `a` and `b` is a float."""
    names = (a.name, b.name)
    if "fp64" in names:
        return float64
    if "fp32" in names:
        return float32
    if "fp16" in names:
        return float32 if operator in DIVISIONS else float16
    if "bf16" in names:
        return bfloat16 if a == b and operator not in DIVISIONS else float32
    if not (a.is_fp8() and b.is_fp8()):
        raise TypeError(f"Cannot use {operator} with {a} and {b}: cast the fp8 operand to tl.float16 or wider first")
    if a == b:
        return a
    return float32 if operator in DIVISIONS else float16


def wider(a: dtype, b: dtype) -> dtype:
    """The common type of two integers: the wider one; of equal widths, or if it is wider, the unsigned one."""
    if a.int_signedness == b.int_signedness:
        return a if a.int_bitwidth > b.int_bitwidth else b
    unsigned, signed = (a, b) if a.is_int_unsigned() else (b, a)
    return unsigned if unsigned.int_bitwidth >= signed.int_bitwidth else signed


def check_weak_range(value: int | float, result: dtype) -> None:
    """Refuse a Python integer that `result`, the type it must take, cannot hold."""
    if not result.is_int():
        return
    if value < 0 and result.is_int_unsigned():
        raise ValueError(
            f"Cannot combine an unsigned tensor of type {result} with the negative scalar {value}: "
            f"cast the tensor to a signed type first"
        )
    if not result.get_int_min_value() <= value <= result.get_int_max_value():
        raise ValueError(f"Scalar {value} is out of range for type {result}; cast the tensor to a wider type first")


def converted_number(value: int | float, own: dtype, result: dtype) -> int | float:
    """`value`, a number of type `own`, as a number that `result` holds exactly (integers wrap, floats round).

    Constants are converted here, while compiling, as the cast from `own` to `result` would do when running.
    """
    if result.is_bool():
        return value != 0
    if result.is_int():
        bits = result.int_bitwidth
        if own.is_floating():  # a cast saturates at 16, 32 or 64 bits
            width, sign = max(bits, 16), result.is_int_signed()
            value = rounded(float(value), own.name)
            value = min(max(trunc(value), -(1 << (width - 1)) if sign else 0), (1 << (width - sign)) - 1)
        value = trunc(value) & ((1 << bits) - 1)
        return value - (1 << bits) if result.is_int_signed() and value >> (bits - 1) else value
    if own.is_floating():
        return rounded(rounded(float(value), own.name), result.name)
    return rounded(float(value) if result.name == "fp64" else nearest_odd(int(value)), result.name)


def nearest_odd(value: int) -> float:
    """`value` cut to 53 bits with any lost bits recorded in the last one, so that one later rounding is correct."""
    excess = abs(value).bit_length() - 53
    if excess <= 0:
        return float(value)
    head = abs(value) >> excess
    head |= head << excess != abs(value)
    return ldexp(float(head if value >= 0 else -head), excess)


def rounded(value: float, name: str) -> float:
    """The nearest value of the format `name` (ties to even); infinity beyond its range. Only IEEE-like formats.

    >>> rounded(0.1, "fp16")
    0.0999755859375
    """
    if name == "fp64" or value == 0 or not isfinite(value):
        return value
    _, mantissa, bias = FLOAT_LAYOUT[name]
    exponent = max(frexp(value)[1] - 1, 1 - bias)
    if exponent > bias:
        return copysign(inf, value)
    quantum = exponent - mantissa
    result = copysign(ldexp(float(round(ldexp(value, -quantum))), quantum), value)
    limit = ldexp(2 - ldexp(1.0, -mantissa), bias)
    return result if abs(result) <= limit else copysign(inf, value)
