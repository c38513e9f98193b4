"""Runtime values: `tensor`, a scalar or a block of data, and `tensor_descriptor`, a window on an array in memory.

    x = tl.load(ptr + tl.arange(0, 64))     # tensor of type <['64'], fp32>
    y = x * 2 + 1                            # each operator asks the semantic object to build the operation
    y.shape, y.dtype                         # (constexpr[64],), fp32

A tensor is a `handle` with a `type`. The handle is opaque: an SSA value in the compiler, data in the interpreter. An
operator is a method with a hidden `_semantic` argument, the object that knows how to carry it out (`semantic.py`).
The methods here become builtins in `core.py`; there the library functions are attached as methods too.
"""

import builtins
from collections.abc import Callable
from typing import Any

from tilework.language.active import ACTIVE, RunTimeOnly
from tilework.language.compile_time import (
    _unwrap_if_constexpr,
    base_value,
    constexpr,
    slice,
    tuple,
)
from tilework.language.dtypes import block_type, dtype, tensor_descriptor_type


def _operator(name: str) -> Callable[..., Any]:
    """``self op other``: the semantic method `name`."""

    def method(self: "tensor", other: Any, _semantic: Any = None) -> Any:
        return getattr(_semantic, name)(self, other)

    return method


def _swapped(name: str) -> Callable[..., Any]:
    """``other op self``, for an `other` that is not a tensor."""

    def method(self: "tensor", other: Any, _semantic: Any = None) -> Any:
        return getattr(_semantic, name)(other, self)

    return method


def _unary_operator(name: str) -> Callable[..., Any]:
    def method(self: "tensor", _semantic: Any = None) -> Any:
        return getattr(_semantic, name)(self)

    return method


class tensor(base_value):
    """A runtime value: one element (its type is a dtype or a pointer), or a block of them (a `block_type`)."""

    def __init__(self, handle: Any, type: dtype) -> None:
        self.handle = handle
        self.type = type
        self.dtype = type.scalar

    @property
    def shape(self) -> tuple:
        """Sizes as constants; empty for a scalar. Equal to a list or tuple of ints: ``x.shape == [4, 8]``."""
        return self.type.constexpr_shape if isinstance(self.type, block_type) else tuple()

    @property
    def numel(self) -> constexpr:
        """The number of elements; 1 for a scalar."""
        return constexpr(self.type.numel if isinstance(self.type, block_type) else 1)

    @property
    def T(self) -> Any:
        """``x.T`` in a kernel is `trans(x)` of a 2-D block; the frontend builds it."""
        if (active := ACTIVE.get()) is not None:
            return active.semantic.transposed(self)
        raise ValueError("x.T exists only inside a function decorated with @jit")

    def _flatten_ir(self, handles: list[Any]) -> None:
        handles.append(self.handle)

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(str(size) for size in self.shape)}]"

    __repr__ = __str__

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        if (active := ACTIVE.get()) is not None:
            return active.truth(self)
        text = f"{self} has no truth value while compiling: compare it with None, or branch on it in a kernel"
        raise RunTimeOnly(text, "__bool__", self)

    def __index__(self) -> int:
        if (active := ACTIVE.get()) is not None and self.dtype.is_int():
            return int(active.number(self))
        raise RunTimeOnly(f"{self} is not an integer known at compile time", "__index__", self)

    def __int__(self) -> int:
        return int(_number_in(self))

    def __float__(self) -> float:
        return float(_number_in(self))

    __add__, __radd__ = _operator("add"), _swapped("add")
    __sub__, __rsub__ = _operator("sub"), _swapped("sub")
    __mul__, __rmul__ = _operator("mul"), _swapped("mul")
    __truediv__, __rtruediv__ = _operator("truediv"), _swapped("truediv")
    __floordiv__, __rfloordiv__ = _operator("floordiv"), _swapped("floordiv")
    __mod__, __rmod__ = _operator("mod"), _swapped("mod")
    __and__, __rand__ = _operator("and_"), _swapped("and_")
    __or__, __ror__ = _operator("or_"), _swapped("or_")
    __xor__, __rxor__ = _operator("xor_"), _swapped("xor_")
    __lshift__, __rlshift__ = _operator("shl"), _swapped("shl")
    __rshift__, __rrshift__ = _operator("shr"), _swapped("shr")
    __lt__, __rlt__ = _operator("less_than"), _swapped("less_than")
    __le__, __rle__ = _operator("less_equal"), _swapped("less_equal")
    __gt__, __rgt__ = _operator("greater_than"), _swapped("greater_than")
    __ge__, __rge__ = _operator("greater_equal"), _swapped("greater_equal")
    __eq__, __req__ = _operator("equal"), _swapped("equal")
    __ne__, __rne__ = _operator("not_equal"), _swapped("not_equal")
    __neg__, __pos__ = _unary_operator("minus"), _unary_operator("plus")
    __invert__, __not__ = _unary_operator("invert"), _unary_operator("not_")
    logical_and, logical_or = _operator("logical_and"), _operator("logical_or")

    def __getitem__(self, slices: Any, _semantic: Any = None) -> Any:
        """``x[:, None]``: each None inserts an axis of size 1, each ``:`` keeps one. Nothing else is an index.

        A scalar has no axis to keep: ``s[:, None]`` and ``s[None, :]`` are blocks of one element, as ``s[None]`` is.
        """
        result, is_scalar = self, not self.type.is_block()
        for axis, index in enumerate(_index_list(slices)):
            if _unwrap_if_constexpr(index) is None:
                result = _semantic.expand_dims(result, 0 if is_scalar else axis)
            elif not _is_full_slice(index):
                raise ValueError(f"unsupported tensor index: {index}; a tensor takes only `:` and None")
        return result

    def to(self, dtype: Any, fp_downcast_rounding: Any = None, bitcast: Any = False, _semantic: Any = None) -> Any:
        """Convert the elements, or with `bitcast` reinterpret their bits: ``x.to(tl.float16)``. See `cast`."""
        dtype, bitcast = _unwrap_if_constexpr(dtype), _unwrap_if_constexpr(bitcast)
        if bitcast:
            return _semantic.bitcast(_semantic.to_tensor(self), dtype)
        return _semantic.cast(_semantic.to_tensor(self), dtype, _unwrap_if_constexpr(fp_downcast_rounding))

    def item(self, _semantic: Any = None) -> Any:
        """The element of a block that has exactly one; a scalar is returned as it is."""
        assert self.numel.value == 1, f"item() needs exactly one element, {self} has {self.numel.value}"
        return _semantic.unsplat(self) if self.type.is_block() else self


def _number_in(value: tensor) -> Any:
    """The data of a scalar, which exists only while a kernel is interpreted."""
    if (active := ACTIVE.get()) is None:
        raise TypeError(f"{value} is not a number known at compile time: convert it with .to() in the kernel")
    return active.number(value)


def _index_list(slices: Any) -> Any:
    slices = _unwrap_if_constexpr(slices)
    return slices if isinstance(slices, (list, tuple, builtins.tuple)) else [slices]


def _is_full_slice(index: Any) -> bool:
    index = _unwrap_if_constexpr(index)
    if isinstance(index, slice):
        return index.is_full()
    return isinstance(index, builtins.slice) and index == builtins.slice(None)


def _descriptor_atomic(kind: str, doc: str) -> Callable[..., Any]:
    def method(self: "tensor_descriptor", offsets: Any, value: Any, _semantic: Any = None) -> Any:
        return _semantic.descriptor_atomic(kind, self, _unwrap_if_constexpr(offsets), value)

    method.__doc__ = doc
    return method


class tensor_descriptor(base_value):
    """A block-shaped window on an array in memory, made by `make_tensor_descriptor` or passed in by the host.

    desc = tl.make_tensor_descriptor(ptr, shape=[M, N], strides=[N, 1], block_shape=[64, 32])
    block = desc.load([row, col])       # elements outside the array read as the padding value
    desc.store([row, col], block * 2)   # elements outside the array are dropped
    """

    def __init__(self, handle: Any, shape: Any, strides: Any, block_type: block_type) -> None:
        self.handle = handle
        self.shape = shape if isinstance(shape, tuple) else tuple(shape)
        self.strides = strides if isinstance(strides, tuple) else tuple(strides)
        self.type = tensor_descriptor_type(block_type, self.shape.type, self.strides.type)

    @property
    def block_type(self) -> block_type:
        return self.type.block_type

    @property
    def block_shape(self) -> tuple:
        """Sizes of the blocks it moves."""
        return self.type.block_type.shape

    @property
    def dtype(self) -> dtype:
        return self.type.block_type.element_ty

    def _flatten_ir(self, handles: list[Any]) -> None:
        handles.append(self.handle)
        self.shape._flatten_ir(handles)
        self.strides._flatten_ir(handles)

    def __str__(self) -> str:
        return str(self.type)

    __repr__ = __str__

    def load(self, offsets: Any, _semantic: Any = None) -> Any:
        """The block whose first element is at `offsets`: ``desc.load([row, col])``."""
        return _semantic.descriptor_load(self, _unwrap_if_constexpr(offsets), "", "")

    def store(self, offsets: Any, value: Any, _semantic: Any = None) -> Any:
        """Write a block of `block_shape`, converted to the descriptor's dtype; what lies outside is dropped."""
        return _semantic.descriptor_store(self, value, _unwrap_if_constexpr(offsets))

    def gather(self, *args: Any, _semantic: Any = None) -> Any:
        """Rows `x_offsets` and columns from `y_offset` on: ``desc.gather(rows, col)``, for a block shape of (1, C)."""
        assert len(args) == 2, f"descriptor gather takes x_offsets and y_offset, got {len(args)} arguments"
        return _semantic.descriptor_gather(self, *args)

    def scatter(self, value: Any, *args: Any, _semantic: Any = None) -> Any:
        """The inverse of `gather`: row i of `value` goes to row ``x_offsets[i]``."""
        assert len(args) == 2, f"descriptor scatter takes x_offsets and y_offset, got {len(args)} arguments"
        return _semantic.descriptor_scatter(self, value, *args)

    atomic_add = _descriptor_atomic(
        "add", "Add a block to memory, element by element and atomically; nothing is returned."
    )
    atomic_min = _descriptor_atomic("min", "Keep the smaller of memory and `value`, element by element.")
    atomic_max = _descriptor_atomic("max", "Keep the larger of memory and `value`, element by element.")
    atomic_and = _descriptor_atomic("and", "Clear the bits that are 0 in `value`, element by element.")
    atomic_or = _descriptor_atomic("or", "Set the bits that are 1 in `value`, element by element.")
    atomic_xor = _descriptor_atomic("xor", "Flip the bits that are 1 in `value`, element by element.")


dtype.value_class = tensor
tensor_descriptor_type.value_class = tensor_descriptor
