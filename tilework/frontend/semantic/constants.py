"""Python numbers as constants: each is converted while compiling, as the cast would do when running.

offsets < 8     %cst = arith.constant dense<8> : tensor<64xi32>        no i32 constant, no cast, no tt.splat
"""

from functools import cache
from math import copysign, isfinite, trunc
from typing import Any

from tilework.frontend.semantic.building import Building
from tilework.frontend.semantic.type_mapping import ir_type, ir_types
from tilework.ir import types as ir
from tilework.language import core as tl
from tilework.language.dtypes import dtype, float32, int64
from tilework.language.typing.carrier import Pair, Shape
from tilework.language.typing.promotion import (
    DTYPES,
    NUMBERS,
    check_constant,
    number_beside,
    number_dtype,
    plain,
)
from tilework.language.typing.shapes import block
from tilework.numerics.formats import FORMATS, nearest_odd, rounded


class Constants(Building):
    """Constants of every type, beside tensors and alone."""

    ir_type = staticmethod(ir_type)
    ir_types = staticmethod(ir_types)

    def constant(self, value: Any, type: dtype, folds_later: bool = False) -> tl.tensor:
        """A constant of a scalar or block type; floats are rounded, integers wrap."""
        element = type.scalar
        if not isinstance(value, NUMBERS):
            check_constant(value, element.name)
        if element.is_fp8():
            return self._fp8_constant(value, type)
        number = cached_number(stored_number, value, element.name)
        return tl.tensor(self.builder.constant(number, ir_type(type), folds_later), type)

    def _fp8_constant(self, value: int | float, type: dtype) -> tl.tensor:
        """An fp8 constant. +0 is direct; other numbers are rounded by the cast that runs, as for variables."""
        self.check_dtype(type.scalar)
        check_constant(value, type.scalar.name)
        if value == 0 and copysign(1.0, value) > 0:
            return tl.tensor(self.builder.constant(0 if ir_type(type.scalar) is ir.i8 else 0.0, ir_type(type)), type)
        wide = tl.tensor(self.builder.constant(rounded(float(value), FORMATS["fp32"]), ir.f32), float32)
        return self.stretch(self.cast(wide, type.scalar), type.sizes)

    def number_operand(self, x: tl.tensor, value: Any, side: int, operator: str, weak: bool) -> Pair:
        """`x` and the constant `value`, in the type of the operation and the shape of `x`."""
        element, number, own = x.dtype, value, number_dtype(value)
        result, value = cached_number(operand_beside, value, element.name, side, operator, weak)
        if element is not result:
            x = self.cast(x, result)
        if result.is_fp8():
            return x, self._fp8_constant(value, x.type)
        builder, is_block = self.builder, x.type.is_block()
        if weak or is_block or own is not result:
            builder.mention(number, ir_type(own))
        if weak and is_block:
            builder.mention(value, ir_type(result))
        folds_later = not weak and own is not result
        return x, tl.tensor(builder.constant(value, x.handle.type, folds_later), x.type)

    def as_element(self, value: Any, element: dtype, shape: Shape) -> tl.tensor:
        """`value` cast to `element`. A number becomes a constant of the final type and shape at once."""
        number = plain(value)
        if not isinstance(number, NUMBERS):
            return self.cast(number, element)
        if element.is_ptr() or (element.is_int() and not isfinite(number)):
            return self.stretch(self.cast(number, element), shape)
        own = number_dtype(number)
        if shape or own is not element:
            self.builder.mention(number, ir_type(own))
        if not element.is_fp8():
            number = converted_number(number, own, element)
        return self.constant(number, block(element, shape), own is not element)

    def index(self, value: int | tl.tensor, type: dtype) -> Any:
        """A number or a scalar integer as an SSA value of the integer type `type`."""
        return (self.constant(value, type) if isinstance(value, int) else self.cast(value, type)).handle


def cached_number(function: Any, value: Any, *arguments: Any) -> Any:
    """``function(value, kind, *arguments)``, with `kind` in the key: 1, 1.0 and True are equal, and so are 0.0 and -0.0."""
    if value.__class__ is float and (value == 0 or value != value):
        return function.__wrapped__(value, float, *arguments)
    return function(value, value.__class__, *arguments)


@cache
def stored_number(value: Any, kind: type, name: str) -> int | float:
    """`value` as a number that the type `name` holds; integers wrap, floats round."""
    check_constant(value, name)
    element = DTYPES[name]
    if element.is_bool():
        return bool(value)
    if element.is_int():
        return converted_number(int(value), element, element)
    return converted_number(value, element if kind is float else int64, element)


@cache
def operand_beside(
    value: Any, kind: type, element: str, side: int, operator: str, weak: bool
) -> tuple[dtype, int | float]:
    """The type of an operation between a number and a tensor of type `element`, and the number in that type."""
    result, own = number_beside(value, element, side, operator, weak)
    if not weak:
        return result, converted_number(value, own, result)
    return result, value if result.is_fp8() else cached_number(stored_number, value, result.name)


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
            value = rounded(float(value), FORMATS[own.name])
            value = min(max(trunc(value), -(1 << (width - 1)) if sign else 0), (1 << (width - sign)) - 1)
        value = trunc(value) & ((1 << bits) - 1)
        return value - (1 << bits) if result.is_int_signed() and value >> (bits - 1) else value
    if own.is_floating():
        return rounded(rounded(float(value), FORMATS[own.name]), FORMATS[result.name])
    return rounded(float(value) if result.name == "fp64" else nearest_odd(int(value)), FORMATS[result.name])
