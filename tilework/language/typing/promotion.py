"""In which type an operation is done, from the types of its operands.

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
from math import isfinite
from typing import Any, TypeGuard

from tilework.language.compile_time import constexpr
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
from tilework.language.values import tensor

NUMBERS = (bool, int, float)
NOT_WEAK, LEFT_WEAK, RIGHT_WEAK = range(3)
DIVISIONS = frozenset({"/", "//", "%"})
DTYPES = {name: dtype(name) for name in (*dtype.SINT_TYPES, *dtype.UINT_TYPES, *dtype.FP_TYPES)}
INTEGER_RANGES = ((int32, -(2**31), 2**31), (uint32, 2**31, 2**32), (int64, -(2**63), 2**63), (uint64, 2**63, 2**64))
FP32_MIN, FP32_MAX = 2.0**-126, (2 - 2.0**-23) * 2.0**127


class IncompatibleTypeErrorImpl(Exception):
    """Two types that do not go together; programs written for Triton catch it by this name."""

    def __init__(self, type_a: object, type_b: object) -> None:
        self.type_a, self.type_b = type_a, type_b
        self.message = f"invalid operands of type {type_a!r} and {type_b!r}"
        super().__init__(self.message)


class InvalidOperands(IncompatibleTypeErrorImpl, TypeError):
    """An operator that does not exist for these types: ``invalid operands of type pointer<fp32> and fp32``."""

    def __init__(self, left: object, right: object, operator: str, help: str) -> None:
        super().__init__(left, right)
        self.message = f"invalid operands of type {left} and {right} for `{operator}`: {help}"
        self.args = (self.message,)


def plain(value: Any) -> Any:
    """The Python value inside a constexpr; anything else as it is."""
    return value.value if isinstance(value, constexpr) else value


def is_pointer(x: object) -> TypeGuard[tensor]:
    return isinstance(x, tensor) and x.dtype.is_ptr()


def shown_type(x: object) -> object:
    """The type of an operand in an error: the element type, or the Python type of a number."""
    return x.dtype if isinstance(x, tensor) else type(plain(x)).__name__


def constant_dtype(value: object) -> dtype:
    """The type of a Python number that becomes a runtime value: ``5`` int32, ``2**40`` int64, ``1e50`` fp64."""
    if isinstance(value, bool):
        return int1
    if isinstance(value, int):
        for element, first, end in INTEGER_RANGES:
            if first <= value < end:
                return element
        shown = value if abs(value) >> 128 == 0 else f"of {value.bit_length()} bits"
        raise ValueError(f"Nonrepresentable integer {shown}. It does not fit in 64 bits")
    if isinstance(value, float):
        fits = value == 0 or not isfinite(value) or FP32_MIN <= abs(value) <= FP32_MAX
        return float32 if fits else float64
    raise not_a_number(value)


def not_a_number(value: object) -> TypeError:
    """The error about a value that cannot become a run-time value."""
    text = " ".join(str(value).split())
    text = text if len(text) <= 60 else f"{text[:57]}..."
    return TypeError(f"cannot convert {text} of type {type(value)} to tensor: expected a number")


def check_constant(value: object, name: str) -> None:
    """Refuse what cannot be a constant of the type `name`: floats are rounded to it, integers wrap."""
    if not isinstance(value, NUMBERS):
        raise TypeError(f"expected a number for a constant of type {name}, got {value!r}")
    if (element := DTYPES.get(name)) is None:
        raise TypeError(f"a number cannot become a value of type {name}: cast an int64 tensor to the pointer type")
    if isinstance(value, int):
        if not -(2**63) <= value < 2**64:
            constant_dtype(value)
    elif element.is_int() and not element.is_bool() and not value.is_integer():
        raise TypeError(f"{value} is not an integer: it cannot fill a value of type {name}")


@cache
def promote(left: str, right: str, weak: int, operator: str) -> dtype:
    """The type in which `left operator right` is computed; operands are named by `dtype.name`.

    `weak` says which operand, if any, is a Python number (its name is then that of `constant_dtype`).
    """
    a, b = DTYPES.get(left), DTYPES.get(right)
    if a is None or b is None:
        is_pointer = "pointer" in (left if a is None else right)
        help = "a pointer is an address, not the value there" if is_pointer else "one of them is not a value"
        raise InvalidOperands(left, right, operator, help)
    division = operator in DIVISIONS
    if weak:
        constant, other = (a, b) if weak == LEFT_WEAK else (b, a)
        if constant.kind() <= other.kind():
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
    """Return the type of an operator of two types, at least one of which is a float."""
    names, division = (a.name, b.name), operator in DIVISIONS
    if "fp64" in names:
        return float64
    if "fp32" in names:
        return float32
    if "fp16" in names:
        return float32 if division else float16
    if "bf16" in names:
        return bfloat16 if a == b and not division else float32
    if not (a.is_fp8() and b.is_fp8()):
        raise TypeError(f"Cannot use {operator} with {a} and {b}: cast the fp8 operand to tl.float16 or wider first")
    if a == b:
        return a
    return float32 if division else float16


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


def promote_constant(value: int | float, element: str, side: int, operator: str, weak: bool) -> tuple[dtype, dtype]:
    """The type of an operation between a constant and a tensor of type `element`, and the type the constant has first.

    A weak constant has the type of the operation; elsewhere, as in comparisons, it has its own.
    """
    own = constant_dtype(value)
    names = (element, own.name) if side == RIGHT_WEAK else (own.name, element)
    result = promote(*names, side if weak else NOT_WEAK, operator)
    if not weak:
        return result, own
    check_weak_range(value, result)
    return result, result


def wider_for(operator: str, element: dtype) -> dtype:
    """The float type in which `element` is computed where no target has it: fp8 nowhere, 16 bits in no division."""
    assert element.is_floating(), f"`{operator}` does not exist for {element}"
    return float32 if operator in DIVISIONS or operator == "fdiv" else float16
