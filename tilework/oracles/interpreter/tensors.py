"""Tensors over NumPy arrays: creation, broadcasting, and conversions between element types.

A value of the tile language is held in the NumPy type of its dtype: `bool` for int1, `ml_dtypes` for bfloat16 and the
8-bit floats, int64 addresses for pointers. Only fp8e4b15, which no library supports, is held as its bytes.

    >>> convert(np.float32(300.7), float32, uint8)        # saturates at 16 bits, then keeps the low 8
    array(44, dtype=uint8)
    >>> convert(np.float32(1e6), float32, float8e5)       # fp8 saturates at the largest finite value
    array(57344, dtype=float8_e5m2)

The handle of a tensor is an array of exactly its shape (rank 0 for a scalar). A compile-time number of the compiler is
a plain Python number here:

    semantic.operands(x, 2, "*")      # x and 2, both as arrays of the type of `x * 2`

The rules of `tilework.language.typing` determine types, shapes and errors; this module computes the elements.

"""

import os
import sys
import warnings
from functools import cache
from typing import Any

import numpy as np

from tilework.errors import LIBRARY
from tilework.language import core as tl
from tilework.language.dtypes import dtype, float16, float32, int1, pointer_type
from tilework.language.semantic import Semantic as Meaning
from tilework.language.typing.carrier import Pair, Shape
from tilework.language.typing.promotion import NUMBERS, check_constant, plain, promote_constant
from tilework.language.typing.shapes import block
from tilework.numerics.rounding import (
    F16,
    F32,
    FLOATS,
    SIGNED,
    UNSIGNED,
    Array,
    canonical,
    from_e4b15,
    from_integer,
    is_float8,
    narrow,
    narrow_to_zero,
    saturate,
    to_e4b15,
    to_integer,
)

PACKAGE = os.path.dirname(LIBRARY) + os.sep
STORAGE: dict[str, np.dtype[Any]] = {
    **{name: np.dtype(name) for name in (*dtype.SINT_TYPES, *dtype.UINT_TYPES) if name != "int1"},
    **FLOATS,
    "int1": np.dtype(np.bool_),
    "fp8e4b15": np.dtype(np.uint8),
}


@cache
def storage(element: dtype) -> np.dtype[Any]:
    """Return the NumPy type that holds one element."""
    return np.dtype(np.int64) if isinstance(element, pointer_type) else STORAGE[element.name]


@cache
def bytes_in_memory(element: dtype) -> int:
    """Return the distance of two neighbours in memory: a bool takes a byte, a pointer eight."""
    return max(1, element.primitive_bitwidth // 8)


def convert(values: Array, source: dtype, target: dtype, rounding: str | None = None) -> Array:
    """Return the elements of `values` as `target`: a valid cast between two number types (`casts.py` checks that)."""
    values = np.asarray(values)
    if source == target:
        return values
    if target.is_bool():
        return is_nonzero(values, source)
    if target.is_int():
        return float_to_int(values, target) if source.is_floating() else values.astype(storage(target))
    if source.is_int():
        return from_integer(values, storage(target))
    if source.is_fp8e4b15():
        return convert(from_e4b15(values), float16, target)
    if target.is_fp8e4b15():
        return to_e4b15(values if source.is_fp16() else narrow_to_zero(values.astype(F32), F16))
    if rounding == "rtz":
        return narrow_to_zero(values, storage(target))
    return round_float(values, target)


def is_nonzero(values: Array, source: dtype) -> Array:
    """``x != 0``: true for NaN, false for both zeros."""
    if source.is_fp8e4b15():
        return np.asarray(values & np.uint8(0x7F) != 0)
    return np.asarray(values.astype(np.float64) != 0 if source.is_floating() else values != 0)


def float_to_int(values: Array, target: dtype) -> Array:
    """Truncate the fraction; saturate at 16, 32 or 64 bits, NaN gives 0; an 8-bit type keeps the low bits of 16."""
    kinds = SIGNED if target.is_int_signed() else UNSIGNED
    return to_integer(values, kinds[max(2, target.int_bitwidth // 8)]).astype(storage(target))


def round_float(values: Array, target: dtype) -> Array:
    """Convert a float to another float format: exact, or to the nearest, ties to even. To fp8, saturating."""
    kind = storage(target)
    return narrow(saturate(values, kind) if is_float8(kind) else values, kind)


def scalar_as(value: bool | int | float, element: dtype) -> Array:
    """Return a Python number as one element: integers wrap, floats are rounded once."""
    if element.is_bool():
        return np.asarray(bool(value))
    if element.is_int():
        if isinstance(value, float) and not value.is_integer():
            raise TypeError(f"{value} is not an integer: it cannot fill a value of type {element.name}")
        wrapped = int(value) & ((1 << element.int_bitwidth) - 1)
        return np.asarray(wrapped, dtype=UNSIGNED[storage(element).itemsize]).view(storage(element))
    if element.is_fp8():
        return convert(np.asarray(value, dtype=np.float64).astype(np.float32), float32, element)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**53:
        signed = np.dtype(np.int64) if -(2**63) <= value < 2**63 else np.dtype(np.uint64)
        return from_integer(np.asarray(value, dtype=signed), storage(element))
    return round_float(np.asarray(value, dtype=np.float64), element)


__all__ = ["NUMBERS", "Values", "as_array", "plain", "tensor"]


def tensor(values: Any, element: dtype) -> tl.tensor:
    """Return the tensor that holds `values`, an array already in the storage type of `element`."""
    handle = np.asanyarray(values)
    return tl.tensor(handle, block(element, handle.shape))


class Values(Meaning):
    """The base of every class of operations."""

    def __init__(self, options: Any) -> None:
        self.options = options

    def beyond_triton(self, refusal: Exception) -> None:
        if self.options.beyond_triton == "error":
            raise refusal

    def warn(self, text: str, category: type[Warning]) -> None:
        """Warn at the user's line: the innermost one outside of tilework."""
        frame: Any = sys._getframe(1)
        while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
            frame = frame.f_back
        registry = frame.f_globals.setdefault("__warningregistry__", {})
        warnings.warn_explicit(text, category, frame.f_code.co_filename, frame.f_lineno, registry=registry)

    def constant(self, value: Any, type: dtype) -> tl.tensor:
        element = type.scalar
        check_constant(value, element.name)
        scalar = tl.tensor(scalar_as(value, element), element)
        return scalar if type is element else self.stretch(scalar, type.sizes)

    def constant_operand(self, x: tl.tensor, value: Any, side: int, operator: str, weak: bool) -> Pair:
        """The number remains a scalar, which NumPy broadcasts."""
        result, own = promote_constant(value, x.dtype.name, side, operator, weak)
        return self.cast(x, result), self.cast(tl.tensor(scalar_as(value, own), own), result)

    def as_element(self, value: Any, element: dtype, shape: Shape) -> tl.tensor:
        """Return a value that is stored as `element`: a number has its own type first, unless it becomes an fp8."""
        if element.is_fp8() and isinstance(plain(value), NUMBERS):
            converted = self.constant(plain(value), element)
        else:
            converted = self.cast(value, element)
        return self.stretch(converted, shape)

    def index(self, value: int | tl.tensor, type: dtype) -> int:
        return value if isinstance(value, int) else int(self.cast(value, type).handle)

    def stretch(self, x: tl.tensor, shape: Shape) -> tl.tensor:
        """Broadcast `x` to `shape`."""
        if x.handle.shape == shape:
            return x
        return tensor(np.broadcast_to(x.handle, shape, subok=True), x.dtype)

    def fitting(self, a: tl.tensor, b: tl.tensor) -> Pair:
        """A scalar beside a block remains one: NumPy broadcasts it."""
        return self.broadcast(a, b) if a.handle.shape and b.handle.shape else (a, b)

    def only_element(self, x: tl.tensor) -> tl.tensor:
        return tensor(x.handle.reshape(()), x.dtype)

    def convert(self, x: tl.tensor, target: dtype, rounding: str | None) -> tl.tensor:
        return tensor(convert(x.handle, x.dtype, target, rounding), target)

    def reinterpret(self, x: tl.tensor, target: dtype) -> tl.tensor:
        bits = canonical(x.handle) if self.options.reproducible else x.handle
        return tensor(np.ascontiguousarray(bits).view(storage(target)).reshape(x.handle.shape), target)

    def convert_pointer(self, x: tl.tensor, target: dtype) -> tl.tensor:
        """An address is an int64."""
        handle = x.handle
        if not x.dtype.is_ptr():
            return tensor(handle.astype(np.int64), target)
        if target.is_ptr():
            return tl.tensor(handle, block(target, handle.shape) if isinstance(handle, np.ndarray) else target)
        if target.is_bool():
            return tensor(np.asarray(is_nonzero(np.asarray(handle), tl.int64)), int1)
        return tensor(np.array(handle, dtype=np.int64).astype(storage(target)), target)


def as_array(x: tl.tensor) -> Array:
    """Return the values of a tensor, for printing and for Python code."""
    return np.asarray(x.handle)
