"""Operators: arithmetic, bits, shifts, comparisons, selection, and pointer arithmetic.

Both operands have been given one type before (`Values.operands`), so an operator is one NumPy function on equal types:

    int32 + int32      wraps around                    int32 // int32     rounds toward zero, as in C
    bf16 * bf16        one rounding                    int1 + int1        exclusive or: one bit wraps around
    fp8 + fp8          in fp16, rounded back to fp8    ptr + int          moves by elements
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from tilework.language import core as tl
from tilework.language.dtypes import float16, float32, int1, int64
from tilework.oracles.interpreter.allowed_memory import pointing
from tilework.oracles.interpreter.failures import at_run_time
from tilework.oracles.interpreter.formats import UNSIGNED, Array, bits_of, bytes_in_memory, storage
from tilework.oracles.interpreter.promotion import DIVISIONS, InvalidOperands
from tilework.oracles.interpreter.tensors import Values, plain, shaped, tensor

Function = Callable[[Array, Array], Any]


def divide_toward_zero(a: Array, b: Array) -> Array:
    """C's integer division; by zero, which is undefined, it gives 0."""
    if a.dtype.kind == "u":
        return np.floor_divide(a, b)
    quotient = np.floor_divide(a, b)
    inexact = (np.subtract(a, np.multiply(quotient, b)) != 0) & (b != 0)
    return np.add(quotient, (inexact & ((a < 0) != (b < 0))).astype(a.dtype))


def is_pointer(x: object) -> bool:
    """A tensor of pointers."""
    return isinstance(x, tl.tensor) and x.dtype.is_ptr()


class Operators(Values):
    """The operators of Python on tensors."""

    def apply(self, compute: Function, a: tl.tensor, b: tl.tensor, operator: str) -> tl.tensor:
        """`compute` on two operands of one type; the result has that type."""
        element = a.dtype
        if element.is_fp8():
            wide = float32 if operator in DIVISIONS else float16
            return self.cast(self.apply(compute, self.cast(a, wide), self.cast(b, wide), operator), element)
        if element.is_bool():
            bits = np.asarray(compute(a.handle.astype(np.uint8), b.handle.astype(np.uint8)))
            return tensor((bits & np.uint8(1)).astype(np.bool_), element)
        return tensor(np.asarray(compute(a.handle, b.handle)).astype(storage(element), copy=False), element)

    def checked(self, compute: Function, a: Any, b: Any, operator: str, name: str, sanitize: bool) -> tl.tensor:
        """``+ - *``; in debug mode narrow integers must not overflow."""
        a, b = self.operands(a, b, operator)
        element = a.dtype
        if sanitize and self.options.debug and self.options.sanitize_overflow and element.is_int():
            if element.int_bitwidth < 64:
                exact = compute(a.handle.astype(np.int64), b.handle.astype(np.int64))
                fits = (exact >= element.get_int_min_value()) & (exact <= element.get_int_max_value())
                if not np.all(fits):
                    text = f"int{element.int_bitwidth} overflow detected for operation {name}"
                    raise at_run_time(AssertionError(text))
        return self.apply(compute, a, b, operator)

    def add(self, a: Any, b: Any, sanitize_overflow: bool = True) -> tl.tensor:
        if is_pointer(a) and is_pointer(b):
            raise TypeError(
                f"cannot add pointers together: {a} and {b}; add an integer offset, or cast one to tl.int64"
            )
        if is_pointer(a):
            return self.moved(a, b, "+")
        if is_pointer(b):
            return self.moved(b, a, "+")
        return self.checked(np.add, a, b, "+", "add", sanitize_overflow)

    def sub(self, a: Any, b: Any, sanitize_overflow: bool = True) -> tl.tensor:
        if is_pointer(a):
            return self.moved(a, b, "-")
        return self.checked(np.subtract, a, b, "-", "sub", sanitize_overflow)

    def mul(self, a: Any, b: Any, sanitize_overflow: bool = True) -> tl.tensor:
        return self.checked(np.multiply, a, b, "*", "mul", sanitize_overflow)

    def moved(self, pointer: Any, offset: Any, operator: str) -> tl.tensor:
        """A pointer moved by a number of elements; unsigned offsets are extended with zeros."""
        target = pointer.dtype.element_ty
        if target.is_block():
            raise InvalidOperands(pointer.dtype, offset, operator, "move a block pointer with tl.advance")
        if not isinstance(offset, tl.tensor):
            value = plain(offset)
            if not isinstance(value, int):
                raise InvalidOperands(pointer.dtype, value, operator, "an offset is an integer")
            offset = self.scalar_constant(int(value), int64)
        elif not offset.dtype.is_int():
            raise InvalidOperands(pointer.dtype, offset.dtype, operator, "an offset is an integer; cast it with .to()")
        elif operator == "-" and not (offset.dtype.is_int_unsigned() and offset.dtype.int_bitwidth < 64):
            # as the compiler negates it: in its own type, where the most negative number has no opposite
            offset, operator = self.minus(offset), "+"
        pointer, offset = self.fitting(pointer, offset)
        distance = offset.handle.astype(np.int64) * np.int64(bytes_in_memory(target))
        move = np.add if operator == "+" else np.subtract
        return tensor(pointing(move(np.asarray(pointer.handle), distance), pointer.handle), pointer.dtype)

    def truediv(self, a: Any, b: Any) -> tl.tensor:
        """``a / b``; integers are divided as fp32."""
        a, b = self.operands(a, b, "/")
        if a.dtype.is_int():
            a, b = self.cast(a, float32), self.cast(b, float32)
        return self.apply(np.divide, a, b, "/")

    def floordiv(self, a: Any, b: Any) -> tl.tensor:
        """``a // b`` of integers, rounded toward zero."""
        a, b = self.operands(a, b, "//")
        if not a.dtype.is_int():
            raise TypeError(f"unexpected type {a.dtype}: `//` divides integers; use tl.floor(a / b) for floats")
        return self.apply(divide_toward_zero, a, b, "//")

    def mod(self, a: Any, b: Any) -> tl.tensor:
        """``a % b`` with the sign of `a`."""
        return self.apply(np.fmod, *self.operands(a, b, "%"), "%")

    def fdiv(self, a: Any, b: Any, ieee_rounding: bool = False) -> tl.tensor:
        """The quotient of two floats of one type."""
        kinds = [value.dtype for value in (a, b) if isinstance(value, tl.tensor)]
        if len(kinds) == 2 and kinds[0] != kinds[1]:
            raise TypeError(f"both operands of fdiv must have the same type, got {kinds[0]} and {kinds[1]}; cast one")
        left, right = self.operands(a, b, "fdiv")
        if not left.dtype.is_floating():
            raise TypeError(f"both operands of fdiv must have floating scalar type, got {left.dtype}; use `/`")
        element = left.dtype
        if element.primitive_bitwidth == 16:
            quotient = self.apply(np.divide, self.cast(left, float32), self.cast(right, float32), "/")
            return self.cast(quotient, element)
        return self.apply(np.divide, left, right, "/")

    # -- bits --------------------------------------------------------------------------------------------------

    def integers(self, a: Any, b: Any, operator: str) -> tuple[tl.tensor, tl.tensor]:
        """Both operands as integers of one type."""
        for value in (a, b):
            element = value.dtype if isinstance(value, tl.tensor) else None
            if (element is not None and not element.is_int()) or isinstance(plain(value), float):
                shown = [x.dtype if isinstance(x, tl.tensor) else type(plain(x)).__name__ for x in (a, b)]
                raise InvalidOperands(shown[0], shown[1], operator, "it takes integers; cast the operands with .to()")
        return self.operands(a, b, operator)

    def and_(self, a: Any, b: Any) -> tl.tensor:
        return self.apply(np.bitwise_and, *self.integers(a, b, "&"), "&")

    def or_(self, a: Any, b: Any) -> tl.tensor:
        return self.apply(np.bitwise_or, *self.integers(a, b, "|"), "|")

    def xor_(self, a: Any, b: Any) -> tl.tensor:
        return self.apply(np.bitwise_xor, *self.integers(a, b, "^"), "^")

    def shl(self, a: Any, b: Any) -> tl.tensor:
        warn_about_count(a, b)
        return self.apply(np.left_shift, *self.integers(a, b, "<<"), "<<")

    def shr(self, a: Any, b: Any) -> tl.tensor:
        """Arithmetic if the left operand (of a number, the right one) is signed before promotion."""
        warn_about_count(a, b)
        decides = a if isinstance(a, tl.tensor) else b
        signed = isinstance(decides, tl.tensor) and decides.dtype.is_int_signed()
        left, right = self.integers(a, b, ">>")
        return self.apply(shift_right_signed if signed else shift_right_unsigned, left, right, ">>")

    # -- one operand -------------------------------------------------------------------------------------------

    def minus(self, x: Any) -> tl.tensor:
        """``0 - x``."""
        value = self.to_tensor(x)
        if value.dtype.is_ptr():
            raise ValueError(f"wrong type argument to unary minus ({value.dtype}): a pointer cannot be negated")
        return self.sub(self.scalar_constant(0, value.dtype), value, True)

    def plus(self, x: Any) -> tl.tensor:
        raise TypeError(f"unary plus does not exist for {self.to_tensor(x)}: write the value without `+`")

    def invert(self, x: Any) -> tl.tensor:
        value = self.to_tensor(x)
        if not value.dtype.is_int():
            raise ValueError(f"wrong type argument to unary invert ({value.dtype}): `~` takes integers and bools")
        return tensor(np.invert(value.handle), value.dtype)

    def not_(self, x: Any) -> tl.tensor:
        return self.invert(self.truth_operand(x, "not"))

    def logical_and(self, a: Any, b: Any) -> tl.tensor:
        return self.and_(self.truth_operand(a, "and"), self.truth_operand(b, "and"))

    def logical_or(self, a: Any, b: Any) -> tl.tensor:
        return self.or_(self.truth_operand(a, "or"), self.truth_operand(b, "or"))

    def truth_operand(self, x: Any, operator: str) -> tl.tensor:
        value = self.to_tensor(x)
        if not value.dtype.is_bool():
            raise ValueError(
                f"Cannot bitcast data-type of size {value.dtype.primitive_bitwidth} to data-type of size 1: "
                f"`{operator}` takes bools, got {value.dtype}; write `x != 0`"
            )
        return value

    # -- comparisons and selection -----------------------------------------------------------------------------

    def compare(self, compute: Function, a: Any, b: Any, operator: str) -> tl.tensor:
        """Numbers have their own type here; NaN differs from everything."""
        a, b = self.operands(a, b, operator, weak=False)
        if a.dtype.is_fp8():
            a, b = self.cast(a, float16), self.cast(b, float16)
        return tensor(np.asarray(compute(a.handle, b.handle)), int1)

    def equal(self, a: Any, b: Any) -> tl.tensor:
        return self.compare(np.equal, a, b, "==")

    def not_equal(self, a: Any, b: Any) -> tl.tensor:
        return self.compare(np.not_equal, a, b, "!=")

    def less_than(self, a: Any, b: Any) -> tl.tensor:
        return self.compare(np.less, a, b, "<")

    def less_equal(self, a: Any, b: Any) -> tl.tensor:
        return self.compare(np.less_equal, a, b, "<=")

    def greater_than(self, a: Any, b: Any) -> tl.tensor:
        return self.compare(np.greater, a, b, ">")

    def greater_equal(self, a: Any, b: Any) -> tl.tensor:
        return self.compare(np.greater_equal, a, b, ">=")

    def where(self, condition: Any, x: Any, y: Any) -> tl.tensor:
        """`x` where the condition is true, else `y`."""
        mask = self.to_tensor(condition)
        if not mask.dtype.is_bool():
            warnings.warn(
                f"tl.where with a non-boolean condition is deprecated and will error out: got {mask.dtype}, "
                "write `condition != 0`",
                stacklevel=2,
            )
            mask = self.cast(mask, int1)
        x, y = self.choices(x, y)
        mask, x, y = self.broadcast_all((mask, x, y))
        if not mask.handle.shape:
            return x if mask.handle else y
        picked = np.where(mask.handle, np.asarray(x.handle), np.asarray(y.handle))
        if getattr(x.handle, "origin", None) is getattr(y.handle, "origin", None):
            picked = pointing(picked, x.handle)
        return tl.tensor(picked, shaped(x.dtype, picked.shape))

    def choices(self, x: Any, y: Any) -> tuple[tl.tensor, tl.tensor]:
        if not (is_pointer(x) or is_pointer(y)):
            return self.operands(x, y, "where")
        if isinstance(x, tl.tensor) and isinstance(y, tl.tensor) and x.dtype == y.dtype:
            return self.broadcast(x, y)
        shown = [value.dtype if isinstance(value, tl.tensor) else plain(value) for value in (x, y)]
        raise TypeError(f"tl.where of a pointer needs two pointers of one type, got {shown[0]} and {shown[1]}")


def shift_right_signed(a: Array, b: Array) -> Array:
    """Copies of the sign come in, also if the type is unsigned."""
    signed = np.dtype(f"int{8 * a.dtype.itemsize}")
    return np.right_shift(bits_of(a).view(signed), b.astype(signed)).view(a.dtype)


def shift_right_unsigned(a: Array, b: Array) -> Array:
    """Zeros come in."""
    unsigned = UNSIGNED[a.dtype.itemsize]
    return np.right_shift(bits_of(a), b.astype(unsigned)).view(a.dtype)


def warn_about_count(a: object, b: object) -> None:
    """A constant count that shifts every bit out is a mistake."""
    count = plain(b)
    if isinstance(a, tl.tensor) and isinstance(count, int) and a.dtype.is_int():
        width = a.dtype.int_bitwidth
        if count >= width > 1:
            warnings.warn(f"shifting {a.dtype} by {count} gives an undefined value: it has {width} bits", stacklevel=3)
