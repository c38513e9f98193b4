"""Block pointers and tensor descriptors: windows of a fixed block shape on an array in memory.

Element (i, j) of a block lies at ``base + (offset0 + i) * stride0 + (offset1 + j) * stride1``. A block pointer carries
its offsets and is checked only along the axes of `boundary_check`; a descriptor is given offsets at each access, and
what lies outside its shape reads as padding and is not written.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilework.language import core as tl
from tilework.language.dtypes import (
    block_type,
    dtype,
    float32,
    int8,
    int32,
    int64,
    pointer_type,
    validate_block_shape,
)
from tilework.oracles.interpreter.allowed_memory import Memory
from tilework.oracles.interpreter.failures import at_run_time
from tilework.oracles.interpreter.formats import Array, bits_of, bytes_in_memory, convert, storage
from tilework.oracles.interpreter.reductions import Reductions
from tilework.oracles.interpreter.tensors import plain, shaped, sizes_of, tensor

INTEGERS = ("uint32", "int32", "uint64", "int64")
ATOMIC_TYPES = {
    "add": ("uint32", "int32", "uint64", "fp32", "fp16", "bf16"),
    "min": (*INTEGERS, "fp16", "bf16"),
    "max": (*INTEGERS, "fp16", "bf16"),
    "and": INTEGERS,
    "or": INTEGERS,
    "xor": INTEGERS,
}
ATOMICS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "min": np.fmin,
    "max": np.fmax,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
TMA_BYTES = 16  # alignment of everything a descriptor moves


@dataclass(frozen=True)
class Window:
    """An array in memory and the block that is moved: the handle of a block pointer or a descriptor."""

    base: Array
    element: dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    block: tuple[int, ...]
    offsets: tuple[int, ...] = ()
    padding: str = ""

    def places(self, offsets: Sequence[Any], checked: Sequence[int]) -> tuple[Array, Array]:
        """The addresses of a block, and where they are inside the array along the `checked` axes.

        An offset is a number, or an array that gives an index for each place along its axis.
        """
        rank = len(self.block)
        total: Any = np.zeros((1,) * rank, np.int64)
        inside: Any = np.ones((1,) * rank, np.bool_)
        for axis, offset in enumerate(offsets):
            along = offset if isinstance(offset, np.ndarray) else offset + np.arange(self.block[axis], dtype=np.int64)
            along = along.astype(np.int64).reshape([-1 if other == axis else 1 for other in range(rank)])
            total = total + along * np.int64(self.strides[axis])
            if axis in checked:
                inside = inside & (along >= 0) & (along < self.shape[axis])
        return self.base + total * np.int64(bytes_in_memory(self.element)), np.broadcast_to(inside, total.shape)

    def filler(self) -> Array:
        """What reads outside the array give."""
        if self.padding != "nan":
            return np.zeros((), storage(self.element))
        return convert(np.asarray(np.nan, np.float32), float32, self.element)


class Descriptors(Reductions):
    """`make_block_ptr`, `advance`, `make_tensor_descriptor` and the methods of descriptors."""

    memory: Memory

    def make_block_ptr(
        self,
        base: tl.tensor,
        shape: Sequence[Any],
        strides: Sequence[Any],
        offsets: Sequence[Any],
        block_shape: Sequence[int],
        order: Sequence[int],
    ) -> tl.tensor:
        pointer = base.type if isinstance(base, tl.tensor) else None
        if not isinstance(pointer, pointer_type) or pointer.element_ty.is_block():
            raise ValueError(
                f"Expected `base` to be a pointer type (but not a block pointer type or others), got {pointer or base}"
            )
        element = int8 if pointer.element_ty.is_bool() else pointer.element_ty
        sizes, axes = sizes_of(block_shape), sizes_of(order)
        validate_block_shape(sizes)
        for name, values in (("shape", shape), ("strides", strides), ("offsets", offsets), ("order", axes)):
            if len(values) != len(sizes):
                raise ValueError(
                    f"Expected shape/strides/offsets/block_shape/order to have the same length: {name} has "
                    f"{len(values)} elements, block_shape {len(sizes)}"
                )
        assert sorted(axes) == list(range(len(axes))), (
            f"Expected a permutation of (0, 1, ..., len(order)-1) in order, got {list(axes)}"
        )
        window = Window(
            base.handle,
            element,
            self.integers_of(shape, int64, "shape"),
            self.integers_of(strides, int64, "strides"),
            sizes,
            self.integers_of(offsets, int32, "offsets"),
        )
        return tl.tensor(window, pointer_type(shaped(element, sizes), pointer.address_space, pointer.const))

    def advance(self, base: tl.tensor, offsets: Sequence[Any]) -> tl.tensor:
        window = base.handle if isinstance(base, tl.tensor) else None
        if not isinstance(window, Window):
            raise ValueError(f"advance takes a block pointer made by make_block_ptr, got {getattr(base, 'type', base)}")
        if len(offsets) != len(window.block):
            raise ValueError(
                f"advance takes one offset per dimension: the block has {len(window.block)}, got {len(offsets)}"
            )
        steps = self.integers_of(offsets, int32, "offsets")
        moved = tuple(offset + step for offset, step in zip(window.offsets, steps, strict=True))
        return tl.tensor(replace(window, offsets=moved), base.type)

    def load_block(self, ptr: tl.tensor, boundary_check: Sequence[int], padding: str) -> tl.tensor:
        """The block a block pointer points to."""
        window = replace(ptr.handle, padding=padding or "")
        if padding == "nan" and window.element.is_int():
            raise ValueError(
                f"Padding option `nan` is not supported for integer block pointers, here of {window.element}"
            )
        return self.read(window, window.offsets, checked_axes(boundary_check, window.block))

    def store_block(self, ptr: tl.tensor, value: Any, boundary_check: Sequence[int]) -> tl.tensor:
        """Write a block where a block pointer points to."""
        window: Window = ptr.handle
        if not isinstance(value, tl.tensor):
            value = self.as_element(value, window.element)
        if not value.type.is_block():
            value = self.stretch(value, window.block)
        assert value.handle.shape == window.block, (
            f"Block shape ({list(window.block)}) and value shape ({list(value.handle.shape)}) mismatch"
        )
        assert value.dtype == window.element, (
            f"Block element type ({window.element}) and value element type ({value.dtype}) mismatch: cast the value "
            f"with .to({window.element})"
        )
        addresses, inside = window.places(window.offsets, checked_axes(boundary_check, window.block))
        self.memory.store(addresses, value.handle, inside)
        return self.nothing()

    def read(self, window: Window, offsets: Sequence[Any], checked: Sequence[int]) -> tl.tensor:
        addresses, inside = window.places(offsets, checked)
        loaded = self.memory.load(addresses, inside, storage(window.element))
        return tensor(np.where(inside, loaded, window.filler()).astype(loaded.dtype, copy=False), window.element)

    # -- descriptors -------------------------------------------------------------------------------------------

    def make_tensor_descriptor(
        self,
        base: tl.tensor,
        shape: Sequence[Any],
        strides: Sequence[Any],
        block_shape: Sequence[int],
        padding_option: str = "zero",
    ) -> tl.tensor_descriptor:
        pointer = base.type if isinstance(base, tl.tensor) else None
        if not isinstance(pointer, pointer_type) or pointer.element_ty.is_block():
            raise ValueError(f"Expected `base` to be a pointer, got {pointer or base}")
        sizes, rank = sizes_of(block_shape), len(shape)
        if not 1 <= rank <= 5:
            raise ValueError(f"Expected 1 <= ndim <= 5 but got {rank} dimensions")
        if len(strides) != rank or len(sizes) != rank:
            raise ValueError(
                f"Expected one stride and one block size per dimension: {rank} dimensions, {len(strides)} strides, "
                f"{len(sizes)} block sizes"
            )
        element = int8 if pointer.element_ty.is_bool() else pointer.element_ty
        check_block(sizes, element)
        last = plain(strides[-1])
        if not isinstance(last, int) or last != 1:
            raise ValueError(
                f"Tensor descriptor last dim must be contiguous: its stride must be the compile-time 1, got {last}"
            )
        extents = self.integers_of(shape, int32, "shape", narrow=True)
        distances = self.integers_of(strides, int64, "strides")
        return self.descriptor(base.handle, element, extents, distances, sizes, padding_option or "zero")

    def descriptor(
        self,
        base: Array,
        element: dtype,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        block: tuple[int, ...],
        padding: str,
    ) -> tl.tensor_descriptor:
        """The descriptor of an array, made by the kernel or by the host."""
        if padding not in ("zero", "nan"):
            raise ValueError(f"Padding option {padding} not supported: use one of 'zero', 'nan'")
        if padding == "nan" and element.is_int():
            raise ValueError(f"Padding option `nan` is not supported for integer blocks, here of {element}")
        address = int(base)
        check_aligned(address, f"a descriptor's base must be aligned to {TMA_BYTES} bytes, is {address:#x}")
        for axis, stride in enumerate(strides[:-1]):
            step = stride * element.itemsize
            check_aligned(step, f"stride {stride} of axis {axis} is {step} bytes, not a multiple of {TMA_BYTES}")
        window = Window(base, element, shape, strides, block, (), padding)
        sizes = tl.tuple([self.scalar_constant(size, int32) for size in shape])
        steps = tl.tuple([self.scalar_constant(stride, int64) for stride in strides])
        return tl.tensor_descriptor(window, sizes, steps, block_type(element, block))

    def descriptor_load(
        self, desc: tl.tensor_descriptor, offsets: Any, cache_modifier: str = "", evict: str = ""
    ) -> tl.tensor:
        window = desc.handle
        return self.read(window, self.offsets_of(window, offsets), range(len(window.block)))

    def descriptor_store(self, desc: tl.tensor_descriptor, value: Any, offsets: Any) -> tl.tensor:
        window, value = desc.handle, self.block_for(desc, value, "store")
        addresses, inside = window.places(self.offsets_of(window, offsets), range(len(window.block)))
        self.memory.store(addresses, value.handle, inside)
        return self.nothing()

    def descriptor_atomic(self, kind: str, desc: tl.tensor_descriptor, offsets: Any, value: Any) -> tl.tensor:
        window: Window = desc.handle
        assert window.element.name in ATOMIC_TYPES[kind], (
            f"atomic_{kind} through a descriptor does not support {window.element}: use one of "
            f"{sorted(ATOMIC_TYPES[kind])}"
        )
        value = self.block_for(desc, value, f"atomic_{kind}")
        addresses, inside = window.places(self.offsets_of(window, offsets), range(len(window.block)))
        bitwise = kind in ("and", "or", "xor")
        operand = bits_of(value.handle) if bitwise else np.asarray(value.handle)
        old = self.memory.load(addresses, inside, operand.dtype)
        self.memory.store(addresses, np.asarray(ATOMICS[kind](old, operand)).astype(old.dtype, copy=False), inside)
        return self.nothing()

    def descriptor_gather(self, desc: tl.tensor_descriptor, x_offsets: tl.tensor, y_offset: Any) -> tl.tensor:
        window = self.rows_of(desc, x_offsets, "gather")
        (column,) = self.integers_of([y_offset], int32, "y_offset")
        return self.read(window, (x_offsets.handle, column), (0, 1))

    def descriptor_scatter(
        self, desc: tl.tensor_descriptor, value: tl.tensor, x_offsets: tl.tensor, y_offset: Any
    ) -> tl.tensor:
        window = self.rows_of(desc, x_offsets, "scatter")
        shape = (x_offsets.handle.shape[0], window.block[1])
        assert value.handle.shape == shape, (
            f"descriptor scatter of {shape[0]} rows takes a value of shape {list(shape)}, got "
            f"{list(value.handle.shape)}"
        )
        (column,) = self.integers_of([y_offset], int32, "y_offset")
        addresses, inside = window.places((x_offsets.handle, column), (0, 1))
        self.memory.store(addresses, self.cast(value, window.element).handle, inside)
        return self.nothing()

    def rows_of(self, desc: tl.tensor_descriptor, x_offsets: tl.tensor, what: str) -> Window:
        """The window of a descriptor that can gather and scatter rows."""
        window: Window = desc.handle
        assert len(window.block) == 2 and window.block[0] == 1, (
            f"descriptor {what} needs a 2-D descriptor with one row per block, got block shape {list(window.block)}"
        )
        assert x_offsets.handle.ndim == 1 and x_offsets.dtype.is_int32(), (
            f"descriptor {what} takes its x offsets as a 1-D block of int32, got {x_offsets.type}"
        )
        rows, least = x_offsets.handle.shape[0], 256 // window.element.primitive_bitwidth
        assert rows >= 8, f"descriptor {what} must have at least 8 rows, but got {rows}"
        assert window.block[1] >= least, (
            f"descriptor {what} of {window.element} must have at least {least} columns, but got {window.block[1]}"
        )
        return window

    def block_for(self, desc: tl.tensor_descriptor, value: Any, what: str) -> tl.tensor:
        """A value in the block shape and dtype of a descriptor."""
        window, value = desc.handle, self.to_tensor(value)
        assert value.handle.shape == window.block, (
            f"descriptor {what} takes a value of the block shape {list(window.block)}, got {list(value.handle.shape)}"
        )
        return self.cast(value, window.element)

    def offsets_of(self, window: Window, offsets: Any) -> tuple[int, ...]:
        """The offsets of one access; the block must begin at a multiple of 16 bytes."""
        items = list(offsets) if isinstance(offsets, (list, tuple, tl.tuple)) else [offsets]
        assert len(items) == len(window.block), (
            f"expected one offset per dimension: {len(window.block)}, but got {len(items)}"
        )
        places = self.integers_of(items, int32, "descriptor offsets")
        start = places[-1] * window.element.itemsize
        check_aligned(start, f"offset {places[-1]} along the last axis is {start} bytes, not a multiple of {TMA_BYTES}")
        return places

    def integers_of(self, values: Sequence[Any], type: dtype, what: str, narrow: bool = False) -> tuple[int, ...]:
        """Numbers and scalar tensors as Python ints that fit `type`."""
        return tuple(self.integer_of(plain(value), type, what, narrow) for value in values)

    def integer_of(self, value: Any, type: dtype, what: str, narrow: bool) -> int:
        if isinstance(value, int):
            if not type.get_int_min_value() <= value <= type.get_int_max_value():
                raise ValueError(f"{what} element {value} does not fit in {type}")
            return int(value)
        if not isinstance(value, tl.tensor) or value.type.is_block() or not value.type.is_int():
            got = value.type if isinstance(value, tl.tensor) else repr(value)
            raise ValueError(f"{what} must be compile-time ints or scalar integers, got {got}")
        if value.type.int_bitwidth > type.int_bitwidth and not narrow:
            raise ValueError(
                f"{what} must be {type}, got {value.type}; cast it with .to(tl.{type}) if it is known to fit"
            )
        return int(self.cast(value, type).handle)


def check_block(sizes: tuple[int, ...], element: dtype) -> None:
    """A row of a descriptor's block has at least 16 bytes."""
    validate_block_shape(sizes)
    if (size := sizes[-1] * element.itemsize) < TMA_BYTES:
        raise ValueError(
            f"Descriptor block shape must have at least 16 bytes in the last dimension, but got {sizes[-1]} * "
            f"{element.itemsize} = {size} bytes"
        )


def checked_axes(boundary_check: Any, block: tuple[int, ...]) -> tuple[int, ...]:
    """The axes of a `boundary_check`: each an axis of the block, none twice."""
    axes = sizes_of(list(boundary_check) if hasattr(boundary_check, "__iter__") else [boundary_check])
    for axis in axes:
        assert 0 <= axis < len(block), f"boundary_check {axis} is not a dimension of a block of shape {list(block)}"
    assert len(set(axes)) == len(axes), f"Duplicate dimension in `boundary_check`: {list(axes)}"
    return axes


def check_aligned(number_of_bytes: int, text: str) -> None:
    if number_of_bytes % TMA_BYTES:
        raise at_run_time(AssertionError(text))
