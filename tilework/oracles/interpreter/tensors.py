"""Tensors over NumPy arrays: making them, giving two of them one type and shape, casting.

The handle of a tensor is an array of exactly its shape (rank 0 for a scalar) in the storage type of its dtype. What is
a compile-time number in the compiler is a plain Python number here:

    semantic.operands(x, 2, "*")      # x and 2, both as arrays of the type that `x * 2` has
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from tilework.language import core as tl
from tilework.language.dtypes import block_type, dtype, int1, pointer_type, validate_block_shape, void
from tilework.oracles.interpreter.formats import Array, convert, is_nonzero, number_as, storage
from tilework.oracles.interpreter.promotion import InvalidOperands, Weak, check_range, common_type, number_type

NUMBERS = (bool, int, float)
TRUNCATING = {("fp32", "fp16"), ("fp32", "bf16"), ("fp32", "fp8e5"), ("fp32", "fp8e4b15"), ("fp16", "fp8e4b15")}


def plain(value: Any) -> Any:
    """The Python value inside a constexpr; anything else as it is."""
    return value.value if isinstance(value, tl.constexpr) else value


def shaped(element: dtype, shape: tuple[int, ...]) -> dtype:
    """The type of values of that shape: a block, or the element itself."""
    return block_of(element, shape) if shape else element


block_of = cache(block_type)


def tensor(values: Any, element: dtype) -> tl.tensor:
    """The tensor that holds `values`, an array already in the storage type of `element`."""
    handle = np.asanyarray(values)
    return tl.tensor(handle, shaped(element, handle.shape))


def sizes_of(shape: Sequence[Any]) -> tuple[int, ...]:
    """A shape argument as plain ints."""
    sizes = tuple(map(plain, shape))
    for index, size in enumerate(sizes):
        if not isinstance(size, int):
            raise TypeError(f"Shape element {index} must have type `constexpr[int]`, got {size!r}")
    return sizes


def common_shape(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    """The shape two blocks broadcast to; a scalar takes the other's."""
    rank = max(len(left), len(right))
    left, right = (1,) * (rank - len(left)) + left, (1,) * (rank - len(right)) + right
    for axis, (a, b) in enumerate(zip(left, right, strict=True)):
        if a != b and 1 not in (a, b):
            raise ValueError(
                f"Cannot make_shape_compatible: incompatible dimensions at index {axis}: {a} and {b}; the shapes are "
                f"{list(left)} and {list(right)}"
            )
    return tuple(max(pair) for pair in zip(left, right, strict=True))


class Values:
    """What every family of operations builds on."""

    def __init__(self, options: Any) -> None:
        self.options = options

    # -- numbers and shapes ------------------------------------------------------------------------------------

    def to_tensor(self, x: Any, check_type: bool = True) -> tl.tensor:
        """A number as a scalar of its own type; a tensor as it is."""
        if isinstance(x, tl.tensor):
            return x
        value = plain(x)
        if isinstance(value, NUMBERS):
            return self.scalar_constant(value, number_type(value))
        if not check_type:
            return x
        raise TypeError(f"cannot convert {value!r} of type {type(value).__name__} to a tensor; expected a number")

    def optional(self, x: Any) -> tl.tensor | None:
        """As `to_tensor`, with None for None."""
        return None if plain(x) is None else self.to_tensor(x)

    def scalar_constant(self, value: Any, dtype: dtype) -> tl.tensor:
        """A number as a scalar of `dtype`: floats are rounded, integers wrap."""
        if not isinstance(value, NUMBERS):
            raise TypeError(f"expected a number for a constant of type {dtype}, got {value!r}")
        if dtype.is_ptr():
            raise TypeError(f"a number cannot become a value of type {dtype}: cast an int64 tensor to it")
        return tl.tensor(number_as(value, dtype), dtype)

    def filled(self, shape: tuple[int, ...], value: Any, element: dtype) -> tl.tensor:
        """A block of one number."""
        return self.stretch(self.scalar_constant(value, element), shape)

    def full(self, shape: Sequence[int], value: Any, dtype: dtype | None) -> tl.tensor:
        """A block of one number or scalar; a scalar if `shape` is empty."""
        sizes = sizes_of(shape)
        validate_block_shape(sizes)
        if isinstance(value, tl.tensor):
            assert value.handle.size == 1, f"only a scalar can fill a block, got a block of type {value.type}"
            scalar = self.unsplat(value)
            scalar = scalar if dtype is None else self.cast(scalar, dtype)
            return tensor(np.broadcast_to(scalar.handle, sizes), scalar.dtype)
        if dtype is None:
            raise ValueError("dtype must be specified when value is not a tensor")
        number = plain(value)
        if isinstance(number, float) and number != 0 and dtype.is_int() and not dtype.is_bool():
            raise TypeError(
                f"{number} is a float: it cannot fill a block of type {dtype}; pass an int, or cast the block"
            )
        return self.filled(sizes, number, dtype)

    def unsplat(self, x: tl.tensor) -> tl.tensor:
        """The element of a block that has one."""
        assert x.handle.size == 1, f"only a block with one element has an item, got shape {list(x.handle.shape)}"
        return tensor(x.handle.reshape(()), x.dtype)

    def broadcast(self, a: tl.tensor, b: tl.tensor) -> tuple[tl.tensor, tl.tensor]:
        """Both values in their common shape."""
        if a.handle.shape == b.handle.shape:
            return a, b
        left, right = self.broadcast_all((a, b))
        return left, right

    def broadcast_all(self, values: Sequence[tl.tensor]) -> list[tl.tensor]:
        """All values in their common shape."""
        shape: tuple[int, ...] = ()
        for value in values:
            shape = common_shape(shape, value.handle.shape)
        return [self.stretch(value, shape) for value in values]

    def stretch(self, x: tl.tensor, shape: tuple[int, ...]) -> tl.tensor:
        """`x` repeated to `shape`, which it must broadcast to."""
        if x.handle.shape == shape:
            return x
        return tensor(np.broadcast_to(x.handle, shape, subok=True), x.dtype)

    def fitting(self, a: tl.tensor, b: tl.tensor) -> tuple[tl.tensor, tl.tensor]:
        """Both values, which NumPy brings to their common shape: a scalar stays one."""
        if a.handle.shape and b.handle.shape:
            return self.broadcast(a, b)
        return a, b

    def nothing(self) -> tl.tensor:
        """The result of an operation done for its effect."""
        return tl.tensor(None, void)

    def operands(self, a: Any, b: Any, operator: str, weak: bool = True) -> tuple[tl.tensor, tl.tensor]:
        """Both operands in the type in which ``a operator b`` is computed, and in its shape unless one is a scalar."""
        is_left, is_right = isinstance(a, tl.tensor), isinstance(b, tl.tensor)
        if is_left == is_right:
            a, b = self.to_tensor(a), self.to_tensor(b)
            element = common_type(a.dtype, b.dtype, operator)
            return self.fitting(self.cast(a, element), self.cast(b, element))
        if is_left:
            element, number = self.number_beside(a, plain(b), operator, Weak.RIGHT, weak)
            return self.fitting(self.cast(a, element), number)
        element, number = self.number_beside(b, plain(a), operator, Weak.LEFT, weak)
        return self.fitting(number, self.cast(b, element))

    def number_beside(self, x: tl.tensor, value: Any, operator: str, side: Weak, weak: bool) -> tuple[dtype, tl.tensor]:
        """The type of an operation between a tensor and a number, and the number in it."""
        if not isinstance(value, NUMBERS):
            left, right = x.dtype, type(value).__name__
            if side is Weak.LEFT:
                left, right = right, left
            raise InvalidOperands(left, right, operator, f"{value!r} is not a number")
        own = number_type(value)
        pair = (x.dtype, own) if side is Weak.RIGHT else (own, x.dtype)
        element = common_type(*pair, operator, side if weak else Weak.NONE)
        if not weak:
            return element, self.cast(self.scalar_constant(value, own), element)
        check_range(value, element)
        return element, self.scalar_constant(value, element)

    def as_element(self, value: Any, element: dtype) -> tl.tensor:
        """A value that goes to memory as `element`: a number has its own type first, unless it becomes an fp8."""
        if element.is_fp8() and isinstance(plain(value), NUMBERS):
            return self.scalar_constant(plain(value), element)
        return self.cast(self.to_tensor(value), element)

    # -- casts -------------------------------------------------------------------------------------------------

    def cast(self, x: Any, dtype: dtype, fp_downcast_rounding: str | None = None) -> tl.tensor:
        """The elements converted to another type."""
        value = self.to_tensor(x)
        source, target = value.dtype, dtype.scalar
        if source is target:
            return value
        if fp_downcast_rounding is not None:
            check_rounding(source, target, fp_downcast_rounding)
        if source.is_ptr() or target.is_ptr():
            return self.cast_pointer(value, target)
        if not is_castable(source, target):
            raise AssertionError(f"cannot cast {value} to {target}{advice(source, target)}")
        return tensor(convert(value.handle, source, target, fp_downcast_rounding), target)

    def bitcast(self, x: Any, dtype: dtype) -> tl.tensor:
        """The same bits as another type of the same width."""
        value = self.to_tensor(x)
        source, target = value.dtype, dtype.scalar
        if source == target:
            return value
        if source.is_ptr() or target.is_ptr():
            return self.cast_pointer(value, target)
        if source.primitive_bitwidth != target.primitive_bitwidth:
            raise ValueError(
                f"Cannot bitcast data-type of size {source.primitive_bitwidth} to data-type of size "
                f"{target.primitive_bitwidth}: {source} and {target} differ in width"
            )
        handle = value.handle
        return tensor(np.ascontiguousarray(handle).view(storage(target)).reshape(handle.shape), target)

    def cast_pointer(self, x: tl.tensor, target: dtype) -> tl.tensor:
        """An address is an int64 or uint64; nothing else can hold one."""
        source, handle = x.dtype, x.handle
        if source.is_ptr() and target.is_ptr():
            return tl.tensor(handle, shaped(target, handle.shape) if isinstance(handle, np.ndarray) else target)
        if source.is_ptr() and target.is_bool():
            return tensor(np.asarray(is_nonzero(np.asarray(handle), tl.int64)), int1)
        if isinstance(source, pointer_type) and target.name in ("int64", "uint64"):
            return tensor(np.array(handle, dtype=np.int64).astype(storage(target)), target)
        if target.is_ptr() and source.name in ("int64", "uint64"):
            return tensor(handle.astype(np.int64), target)
        raise AssertionError(f"cannot cast {x} to {target}: only 64-bit integers hold an address; use tl.int64")


def is_castable(source: dtype, target: dtype) -> bool:
    """Whether a cast between two number types exists."""
    if source.is_int() and target.is_int():
        return True
    if source.is_int() or target.is_int():
        return not (source.is_fp8() or target.is_fp8())
    if target.is_fp8() and source.is_fp64():
        return False
    return not (target.is_fp8e4b15() and source.is_bf16())


def check_rounding(source: dtype, target: dtype, rounding: str) -> None:
    """A rounding mode belongs to a cast that loses bits of a float."""
    if rounding not in ("rtne", "rtz"):
        raise ValueError(f"Invalid rounding mode: {rounding}. Supported rounding modes are 'rtne' and 'rtz'.")
    floats = source.is_floating() and target.is_floating()
    if not floats or source.primitive_bitwidth <= target.primitive_bitwidth:
        raise ValueError(
            "fp_downcast_rounding should be set only for truncating fp conversions. "
            f"Source scalar type is {source} and destination type is {target}"
        )
    if rounding == "rtz" and (source.name, target.name) not in TRUNCATING:
        raise ValueError(
            f"a cast from {source} to {target} cannot round toward zero: only from fp32 to fp16, bf16 and fp8e5"
        )


def advice(source: dtype, target: dtype) -> str:
    """What to write instead of a cast that does not exist."""
    if not (source.is_fp8() or target.is_fp8()):
        return ""
    return f": convert through {'tl.float16' if 'fp8e4b15' in (source.name, target.name) else 'tl.float32'}"


def as_array(x: tl.tensor) -> Array:
    """The values of a tensor, for printing and for Python code."""
    return np.asarray(x.handle)
