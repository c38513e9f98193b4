"""Tensors over NumPy arrays: making them, repeating them, converting them.

The handle of a tensor is an array of exactly its shape (rank 0 for a scalar) in the storage type of its dtype. What is
a compile-time number in the compiler is a plain Python number here:

    semantic.operands(x, 2, "*")      # x and 2, both as arrays of the type that `x * 2` has

Types, shapes and errors are decided by the rules of `tilework.language.typing`; here is only what happens to the elements.
"""

from typing import Any

import numpy as np

from tilework.language import core as tl
from tilework.language.dtypes import dtype, int1
from tilework.language.semantic import Semantic as Meaning
from tilework.language.typing.carrier import Pair, Shape
from tilework.language.typing.promotion import NUMBERS, check_constant, number_beside, plain
from tilework.language.typing.shapes import block
from tilework.numerics.nans import canonical
from tilework.numerics.rounding import Array
from tilework.oracles.interpreter.formats import convert, is_nonzero, number_as, storage

__all__ = ["NUMBERS", "Values", "as_array", "plain", "tensor"]


def tensor(values: Any, element: dtype) -> tl.tensor:
    """The tensor that holds `values`, an array already in the storage type of `element`."""
    handle = np.asanyarray(values)
    return tl.tensor(handle, block(element, handle.shape))


class Values(Meaning):
    """What every family of operations builds on."""

    def __init__(self, options: Any) -> None:
        self.options = options

    def beyond_triton(self, refusal: Exception) -> None:
        if self.options.beyond_triton == "error":
            raise refusal

    def constant(self, value: Any, type: dtype) -> tl.tensor:
        element = type.scalar
        check_constant(value, element.name)
        scalar = tl.tensor(number_as(value, element), element)
        return scalar if type is element else self.stretch(scalar, type.sizes)

    def number_operand(self, x: tl.tensor, value: Any, side: int, operator: str, weak: bool) -> Pair:
        """The number stays a scalar, which NumPy repeats."""
        result, own = number_beside(value, x.dtype.name, side, operator, weak)
        return self.cast(x, result), self.cast(tl.tensor(number_as(value, own), own), result)

    def as_element(self, value: Any, element: dtype, shape: Shape) -> tl.tensor:
        """A value that goes to memory as `element`: a number has its own type first, unless it becomes an fp8."""
        if element.is_fp8() and isinstance(plain(value), NUMBERS):
            converted = self.constant(plain(value), element)
        else:
            converted = self.cast(value, element)
        return self.stretch(converted, shape)

    def index(self, value: int | tl.tensor, type: dtype) -> int:
        return value if isinstance(value, int) else int(self.cast(value, type).handle)

    def stretch(self, x: tl.tensor, shape: Shape) -> tl.tensor:
        """`x` repeated to `shape`, which it must broadcast to."""
        if x.handle.shape == shape:
            return x
        return tensor(np.broadcast_to(x.handle, shape, subok=True), x.dtype)

    def fitting(self, a: tl.tensor, b: tl.tensor) -> Pair:
        """A scalar beside a block stays one: NumPy repeats it."""
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
    """The values of a tensor, for printing and for Python code."""
    return np.asarray(x.handle)
