"""Block pointers and tensor descriptors: windows of a fixed block shape on an array in memory.

Element (i, j) of a block lies at ``base + (offset0 + i) * stride0 + (offset1 + j) * stride1``. A block pointer carries
its offsets and is checked only along the axes of `boundary_check`; a descriptor is given offsets at each access, and
what lies outside its shape reads as padding and is not written.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilework.described_arrays import ALIGNMENT, refused_stride
from tilework.language import core as tl
from tilework.language.dtypes import block_type, dtype, float32, int32, int64
from tilework.language.typing.access import block_pointed_to
from tilework.language.typing.carrier import AccessOptions, Shape
from tilework.numerics.rounding import Array, bits_of
from tilework.oracles.interpreter.allowed_memory import Memory
from tilework.oracles.interpreter.failures import at_run_time
from tilework.oracles.interpreter.formats import bytes_in_memory, convert, storage
from tilework.oracles.interpreter.reductions import Reductions
from tilework.oracles.interpreter.tensors import tensor

ATOMICS: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "min": np.fmin,
    "max": np.fmax,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


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
    """What `make_block_ptr`, `make_tensor_descriptor` and the methods of descriptors do."""

    memory: Memory

    def block_pointer(
        self,
        base: tl.tensor,
        shape: list[int],
        strides: list[int],
        offsets: list[int],
        order: Shape,
        type: dtype,
    ) -> tl.tensor:
        pointer = tl.tensor(None, type)
        element, sizes = block_pointed_to(pointer)
        pointer.handle = Window(base.handle, element, tuple(shape), tuple(strides), sizes, tuple(offsets))
        return pointer

    def advanced(self, base: tl.tensor, offsets: list[int]) -> tl.tensor:
        window: Window = base.handle
        moved = tuple(offset + step for offset, step in zip(window.offsets, offsets, strict=True))
        return tl.tensor(replace(window, offsets=moved), base.type)

    def read_block(self, ptr: tl.tensor, checked: Shape, padding: str, options: AccessOptions) -> tl.tensor:
        window = replace(ptr.handle, padding=padding)
        return self.block_at(window, window.offsets, checked)

    def write_block(self, ptr: tl.tensor, value: tl.tensor, checked: Shape, options: AccessOptions) -> None:
        window: Window = ptr.handle
        addresses, inside = window.places(window.offsets, checked)
        self.memory.store(addresses, value.handle, inside)

    def block_at(self, window: Window, offsets: Sequence[Any], checked: Sequence[int]) -> tl.tensor:
        """The block of an array at `offsets`."""
        addresses, inside = window.places(offsets, checked)
        loaded = self.memory.load(addresses, inside, storage(window.element))
        return tensor(np.where(inside, loaded, window.filler()).astype(loaded.dtype, copy=False), window.element)

    # -- descriptors -------------------------------------------------------------------------------------------

    def descriptor(
        self, base: tl.tensor, shape: Sequence[int], strides: Sequence[int], type: dtype, padding: str
    ) -> tl.tensor_descriptor:
        """The descriptor of an array, made by the kernel or by the host."""
        address, element = int(base.handle), type.scalar
        check_aligned(address, f"a descriptor's base must be aligned to {ALIGNMENT} bytes, is {address:#x}")
        for axis, stride in enumerate(strides[:-1]):
            if refusal := refused_stride(axis, stride, element.itemsize):
                raise at_run_time(AssertionError(refusal))
        assert isinstance(type, block_type), f"a descriptor moves blocks, not {type}"
        window = Window(base.handle, element, tuple(shape), tuple(strides), type.sizes, (), padding)
        sizes = tl.tuple([self.constant(size, int32) for size in shape])
        steps = tl.tuple([self.constant(stride, int64) for stride in strides])
        return tl.tensor_descriptor(window, sizes, steps, type)

    def check_native_reduction(self, kind: str, name: str) -> None:
        """Every reduction can be computed here."""

    def read_window(self, desc: tl.tensor_descriptor, offsets: list[int], cache: str, evict: str) -> tl.tensor:
        window = desc.handle
        return self.block_at(window, aligned(window, offsets), range(len(window.block)))

    def write_window(self, desc: tl.tensor_descriptor, value: tl.tensor, offsets: list[int]) -> None:
        window = desc.handle
        addresses, inside = window.places(aligned(window, offsets), range(len(window.block)))
        self.memory.store(addresses, value.handle, inside)

    def update_window(self, kind: str, desc: tl.tensor_descriptor, value: tl.tensor, offsets: list[int]) -> None:
        window: Window = desc.handle
        addresses, inside = window.places(aligned(window, offsets), range(len(window.block)))
        operand = bits_of(value.handle) if kind in ("and", "or", "xor") else np.asarray(value.handle)
        old = self.memory.load(addresses, inside, operand.dtype)
        self.memory.store(addresses, np.asarray(ATOMICS[kind](old, operand)).astype(old.dtype, copy=False), inside)

    def gather_rows(self, desc: tl.tensor_descriptor, rows: tl.tensor, column: int, type: dtype) -> tl.tensor:
        return self.block_at(desc.handle, (rows.handle, column), (0, 1))

    def scatter_rows(self, desc: tl.tensor_descriptor, value: tl.tensor, rows: tl.tensor, column: int) -> None:
        addresses, inside = desc.handle.places((rows.handle, column), (0, 1))
        self.memory.store(addresses, value.handle, inside)


def aligned(window: Window, offsets: list[int]) -> list[int]:
    """The offsets of one access; a block whose rows are multiples of 16 bytes must begin at one."""
    size = window.element.itemsize
    if window.block[-1] * size % ALIGNMENT:
        return offsets
    start = offsets[-1] * size
    check_aligned(start, f"offset {offsets[-1]} along the last axis is {start} bytes, not a multiple of {ALIGNMENT}")
    return offsets


def check_aligned(number_of_bytes: int, text: str) -> None:
    if number_of_bytes % ALIGNMENT:
        raise at_run_time(AssertionError(text))
