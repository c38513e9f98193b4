"""In which type an operation is done, from the types of its operands.

A Python number beside a tensor is *weak*: it takes the tensor's type unless its own kind is higher.

    fp16 * 1.5  -> fp16        int32 * 1.5 -> fp32        uint8 + 300 -> error        fp16 tensor * fp32 tensor -> fp32
"""

from enum import Enum
from math import isfinite

from tilework.language.dtypes import (
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

DIVISIONS = ("/", "//", "%")
NORMAL_FP32 = (2.0**-126, (2 - 2.0**-23) * 2.0**127)
INTEGER_RANGES = ((int32, -(2**31), 2**31), (uint32, 2**31, 2**32), (int64, -(2**63), 2**63), (uint64, 2**63, 2**64))


class Weak(Enum):
    """Which operand is a Python number."""

    NONE = 0
    LEFT = 1
    RIGHT = 2


class InvalidOperands(TypeError):
    """``invalid operands of type pointer<fp32> and fp32``."""

    def __init__(self, left: object, right: object, operator: str, advice: str) -> None:
        super().__init__(f"invalid operands of type {left} and {right} for `{operator}`: {advice}")


def number_type(value: object) -> dtype:
    """The type of a Python number on its own: the first of int32, uint32, int64, uint64 that holds it; fp32 or fp64."""
    if isinstance(value, bool):
        return int1
    if isinstance(value, int):
        for element, first, end in INTEGER_RANGES:
            if first <= value < end:
                return element
        raise ValueError(f"the integer {value} does not fit in 64 bits: no tensor can hold it")
    if isinstance(value, float):
        smallest, largest = NORMAL_FP32
        return float32 if value == 0 or not isfinite(value) or smallest <= abs(value) <= largest else float64
    raise TypeError(f"cannot convert {value!r} of type {type(value).__name__} to a tensor; expected a number")


def common_type(a: dtype, b: dtype, operator: str, weak: Weak = Weak.NONE) -> dtype:
    """The type in which ``a operator b`` is computed."""
    if a.is_ptr() or b.is_ptr():
        raise InvalidOperands(a, b, operator, "cast pointers to tl.int64 to compute with addresses")
    division = operator in DIVISIONS
    if weak is not Weak.NONE:
        number, other = (a, b) if weak is Weak.LEFT else (b, a)
        if number.kind() <= other.kind():
            return float32 if division and other in (float16, bfloat16) else other
    if a.is_floating() or b.is_floating():
        return common_float(a, b, operator)
    if division and a.is_int_signed() != b.is_int_signed():
        raise TypeError(
            f"Cannot use {operator} with {a} and {b} because they have different signedness; cast one of them"
        )
    return common_integer(a, b)


def common_float(a: dtype, b: dtype, operator: str) -> dtype:
    """At least one is a float."""
    narrow = float32 if operator in DIVISIONS else None
    for wide in (float64, float32):
        if wide in (a, b):
            return wide
    if float16 in (a, b):
        return narrow or float16
    if bfloat16 in (a, b):
        return bfloat16 if a == b and narrow is None else float32
    if a.is_int() or b.is_int():
        raise TypeError(f"Cannot use {operator} with {a} and {b}: cast the fp8 operand to tl.float16 or wider first")
    return a if a == b else narrow or float16


def common_integer(a: dtype, b: dtype) -> dtype:
    """The wider of two; of equal width the unsigned one."""
    if a.int_bitwidth != b.int_bitwidth:
        return max(a, b, key=lambda element: element.int_bitwidth)
    return a if a.is_int_unsigned() else b


def check_range(value: int | float, element: dtype) -> None:
    """A weak integer must fit the type it takes."""
    if not element.is_int():
        return
    if value < 0 and element.is_int_unsigned():
        raise ValueError(
            f"Cannot combine an unsigned tensor of type {element} with the negative scalar {value}: "
            "cast the tensor to a signed type first"
        )
    if not element.get_int_min_value() <= value <= element.get_int_max_value():
        raise ValueError(f"Scalar {value} is out of range for type {element}; cast the tensor to a wider type first")
