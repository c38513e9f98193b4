"""Python numbers as runtime values, and the common ground of two operands.

`operands` is the way into every binary operation: it finds the result type (`promotion.py`), converts both sides to
it and gives them one shape. Numbers become constants of the final type and shape at once:

    offsets < 8     %cst = arith.constant dense<8> : tensor<64xi32>        no i32 constant, no cast, no tt.splat
"""

# pyright: reportGeneralTypeIssues=false

from collections.abc import Sequence
from functools import cache
from math import copysign
from typing import TYPE_CHECKING, Any, TypeAlias

from tilework.frontend.semantic.promotion import (
    DTYPES,
    LEFT_WEAK,
    NOT_WEAK,
    RIGHT_WEAK,
    InvalidOperands,
    check_weak_range,
    converted_number,
    number_dtype,
    promote,
    rounded,
)
from tilework.frontend.semantic.shape import block, plain_shape
from tilework.frontend.semantic.type_mapping import ir_type, ir_types
from tilework.ir import types as ir
from tilework.language import core as tl
from tilework.language.dtypes import block_type, dtype, float32, int64

if TYPE_CHECKING:
    from tilework.frontend.semantic import Semantic

Operand: TypeAlias = tl.tensor | tl.constexpr | bool | int | float
Pair: TypeAlias = tuple[tl.tensor, tl.tensor]


def plain(value: Any) -> Any:
    """The Python value inside a constexpr; anything else as it is."""
    return value.value if isinstance(value, tl.constexpr) else value


def retype(type: dtype, element: dtype) -> dtype:
    """`type` with another element: a block of the same shape, or `element` itself."""
    return block(element, tuple(type.shape.values)) if isinstance(type, block_type) else element


class ValuesMixin:
    """Constants and operands."""

    ir_type = staticmethod(ir_type)
    ir_types = staticmethod(ir_types)

    def check_dtype(self: "Semantic", element: dtype) -> None:
        """Refuse the fp8 formats that the target does not know."""
        if element.is_fp8() and element.name not in self.options.supported_fp8_dtypes:
            supported = tuple(self.options.supported_fp8_dtypes)
            raise ValueError(
                f"type {element} not supported in this architecture. The supported fp8 dtypes are {supported}"
            )

    def to_tensor(self: "Semantic", x: Any, check_type: bool = True) -> tl.tensor:
        """`x` as a runtime value: a tensor is returned as it is, a number becomes a scalar of its own type.

        Anything else is a TypeError, or with ``check_type=False`` is returned unchanged.
        """
        if isinstance(x, tl.tensor):
            return x
        value = plain(x)
        if isinstance(value, (bool, int, float)):
            return self.scalar_constant(value, number_dtype(value))
        if not check_type:
            return x
        raise TypeError(f"cannot convert {value!r} of type {type(value).__name__} to a tensor; expected a number")

    def scalar_constant(self: "Semantic", value: int | float, dtype: dtype) -> tl.tensor:
        """The number `value` as a scalar of type `dtype`: floats are rounded, integers wrap."""
        return self.constant(value, dtype)

    def full(self: "Semantic", shape: Sequence[int], value: Any, dtype: dtype | None) -> tl.tensor:
        """A block filled with one number or scalar; with an empty `shape`, that scalar."""
        sizes = plain_shape(shape)
        if isinstance(value, tl.tensor):
            if value.type.is_block():
                is_one = value.type.numel == 1  # pyright: ignore[reportAttributeAccessIssue]
                assert is_one, f"only a scalar can fill a block, got a block of type {value.type}"
                value = self.unsplat(value)
            return self.splat(value if dtype is None else self.cast(value, dtype), sizes)
        if dtype is None:
            raise ValueError("dtype must be specified when value is not a tensor")
        number = plain(value)
        if isinstance(number, float) and number != 0 and dtype.is_int() and not dtype.is_bool():
            raise TypeError(
                f"{number} is a float: it cannot fill a block of type {dtype}; pass an int, or cast the block"
            )
        return self.constant(number, block(dtype, sizes))

    def constant(self: "Semantic", value: Any, type: dtype) -> tl.tensor:
        """A constant of a scalar or block type; `value` is converted as Python would."""
        element = type.scalar
        if not isinstance(value, (bool, int, float)):
            raise TypeError(f"expected a number for a constant of type {element}, got {value!r}")
        if isinstance(value, int) and not -(2**63) <= value < 2**64:
            number_dtype(value)  # refuses it
        if element.is_fp8():
            return self.fp8_constant(value, type)
        number = cached_number(stored_number, value, element.name)
        return tl.tensor(self.builder.constant(number, ir_type(type)), type)

    def fp8_constant(self: "Semantic", value: int | float, type: dtype) -> tl.tensor:
        """An fp8 constant. +0 is direct; other numbers are rounded by the cast that runs, as for variables."""
        self.check_dtype(type.scalar)
        if value == 0 and copysign(1.0, value) > 0:
            return tl.tensor(self.builder.constant(0 if ir_type(type.scalar) is ir.i8 else 0.0, ir_type(type)), type)
        wide = tl.tensor(self.builder.constant(rounded(float(value), "fp32"), ir.f32), float32)
        return self.splat(self.cast(wide, type.scalar), shape_of_type(type))

    def operands(self: "Semantic", a: Any, b: Any, operator: str, weak: bool = True) -> Pair:
        """Both operands with the type and shape in which `a operator b` is computed.

        With ``weak=False`` a number has its own type (`number_dtype`), as in comparisons.
        """
        if isinstance(a, tl.tensor):
            if isinstance(b, tl.tensor):
                left, right = a.dtype, b.dtype
                result = promote(left.name, right.name, NOT_WEAK, operator)
                if left.name != result.name:
                    a = self.cast(a, result)
                if right.name != result.name:
                    b = self.cast(b, result)
                return (a, b) if a.type is b.type else self.broadcast(a, b)
            a, b = self._with_number(a, b, RIGHT_WEAK, operator, weak)
            return a, b
        if isinstance(b, tl.tensor):
            b, a = self._with_number(b, a, LEFT_WEAK, operator, weak)
            return a, b
        return self.operands(self.to_tensor(a), self.to_tensor(b), operator)

    def _with_number(self: "Semantic", x: tl.tensor, number: Any, side: int, operator: str, weak: bool) -> Pair:
        """`x` and the constant `number`, in the type of the operation and the shape of `x`."""
        value, element = plain(number), x.dtype
        if not isinstance(value, (bool, int, float)):
            kind = type(value).__name__
            left, right = (element, kind) if side == RIGHT_WEAK else (kind, element)
            raise InvalidOperands(left, right, operator, f"{value!r} is not a number")
        result, value = cached_number(number_beside, value, element.name, side, operator, weak)
        if element.name != result.name:
            x = self.cast(x, result)
        if result.is_fp8():
            return x, self.fp8_constant(value, x.type)
        return x, tl.tensor(self.builder.constant(value, x.handle.type), x.type)


def cached_number(function: Any, value: Any, *arguments: Any) -> Any:
    """``function(value, kind, *arguments)``, with `kind` in the key: 1, 1.0 and True are equal, and so are 0.0 and -0.0."""
    if value.__class__ is float and (value == 0 or value != value):
        return function.__wrapped__(value, float, *arguments)
    return function(value, value.__class__, *arguments)


@cache
def stored_number(value: Any, kind: type, name: str) -> int | float:
    """`value` as a number that the type `name` holds; integers wrap, floats round."""
    element = DTYPES.get(name)
    if element is None:
        raise TypeError(f"a number cannot become a value of type {name}: cast an int64 tensor to the pointer type")
    if element.is_bool():
        return bool(value)
    if element.is_int():
        if kind is float and not value.is_integer():
            raise TypeError(f"{value} is not an integer: it cannot fill a value of type {name}")
        return converted_number(int(value), element, element)
    return converted_number(value, element if kind is float else int64, element)


@cache
def number_beside(
    value: Any, kind: type, element: str, side: int, operator: str, weak: bool
) -> tuple[dtype, int | float]:
    """The type of an operation between a number and a tensor of type `element`, and the number in that type."""
    own = number_dtype(value)
    names = (element, own.name) if side == RIGHT_WEAK else (own.name, element)
    result = promote(*names, side if weak else NOT_WEAK, operator)
    if not weak:
        return result, converted_number(value, own, result)
    check_weak_range(value, result)
    return result, value if result.is_fp8() else cached_number(stored_number, value, result.name)


def shape_of_type(type: dtype) -> tuple[int, ...]:
    """The sizes of a block type; () for a scalar type."""
    return tuple(type.shape.values) if isinstance(type, block_type) else ()
