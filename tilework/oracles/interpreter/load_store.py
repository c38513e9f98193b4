"""Loads, stores and atomics through pointers, blocks of pointers, block pointers and tensor descriptors.

Programs run one after another, so an atomic is a load, an operation and a store; elements of a block with the same
address are applied one by one.

A block pointer or a descriptor is a window of a fixed block shape on an array in memory. Element (i, j) of a block is
at ``base + (offset0 + i) * stride0 + (offset1 + j) * stride1``. A block pointer carries its offsets and is checked only
along the axes of `boundary_check`; a descriptor is given offsets at each access, and elements outside of its shape read
as padding and are not written.

"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tilework.language import core as tl
from tilework.language.dtypes import block_type, dtype, float32, int32, int64
from tilework.language.typing.access import block_pointed_to, pointee
from tilework.language.typing.carrier import AccessOptions, Shape
from tilework.numerics.rounding import Array, bits_of, canonical
from tilework.oracles.interpreter.allowed_memory import Memory
from tilework.oracles.interpreter.failures import at_run_time
from tilework.oracles.interpreter.reductions import Reductions
from tilework.oracles.interpreter.tensors import bytes_in_memory, convert, storage, tensor
from tilework.target import MAP_ALIGNMENT, refused_stride

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
    """An array in memory and the block that an access moves: the handle of a block pointer or a descriptor."""

    base: Array
    element: dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    block: tuple[int, ...]
    offsets: tuple[int, ...] = ()
    padding: str = ""

    def addresses(self, offsets: Sequence[Any], checked: Sequence[int]) -> tuple[Array, Array]:
        """Return the addresses of a block, and which of them are in bounds along the `checked` axes.

        An offset is an integer, or an array with an index for each element along its axis.
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
        """Return the value of reads out of bounds."""
        if self.padding != "nan":
            return np.zeros((), storage(self.element))
        return convert(np.asarray(np.nan, np.float32), float32, self.element)


class Descriptors(Reductions):
    """Implements `make_block_ptr`, `make_tensor_descriptor` and the methods of descriptors."""

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
        addresses, inside = window.addresses(window.offsets, checked)
        self.memory.store(addresses, value.handle, inside)

    def block_at(self, window: Window, offsets: Sequence[Any], checked: Sequence[int]) -> tl.tensor:
        """Return the block of an array at `offsets`."""
        addresses, inside = window.addresses(offsets, checked)
        loaded = self.memory.load(addresses, inside, storage(window.element))
        return tensor(np.where(inside, loaded, window.filler()).astype(loaded.dtype, copy=False), window.element)

    # -- descriptors -------------------------------------------------------------------------------------------

    def descriptor(
        self, base: tl.tensor, shape: Sequence[int], strides: Sequence[int], type: dtype, padding: str
    ) -> tl.tensor_descriptor:
        """Return the descriptor of an array, built by the kernel or by the host."""
        address, element = int(base.handle), type.scalar
        check_aligned(address, f"a descriptor's base must be aligned to {MAP_ALIGNMENT} bytes, is {address:#x}")
        for axis, stride in enumerate(strides[:-1]):
            if refusal := refused_stride(axis, stride, element.itemsize):
                raise at_run_time(AssertionError(refusal))
        assert isinstance(type, block_type), f"a descriptor moves blocks, not {type}"
        window = Window(base.handle, element, tuple(shape), tuple(strides), type.sizes, (), padding)
        sizes = tl.tuple([self.constant(size, int32) for size in shape])
        steps = tl.tuple([self.constant(stride, int64) for stride in strides])
        return tl.tensor_descriptor(window, sizes, steps, type)

    def check_native_reduction(self, kind: str, name: str) -> None:
        """Every reduction is supported."""

    def read_window(self, desc: tl.tensor_descriptor, offsets: list[int], cache: str, evict: str) -> tl.tensor:
        window = desc.handle
        return self.block_at(window, aligned(window, offsets), range(len(window.block)))

    def write_window(self, desc: tl.tensor_descriptor, value: tl.tensor, offsets: list[int]) -> None:
        window = desc.handle
        addresses, inside = window.addresses(aligned(window, offsets), range(len(window.block)))
        self.memory.store(addresses, value.handle, inside)

    def update_window(self, kind: str, desc: tl.tensor_descriptor, value: tl.tensor, offsets: list[int]) -> None:
        window: Window = desc.handle
        addresses, inside = window.addresses(aligned(window, offsets), range(len(window.block)))
        operand = bits_of(value.handle) if kind in ("and", "or", "xor") else np.asarray(value.handle)
        old = self.memory.load(addresses, inside, operand.dtype)
        self.memory.store(addresses, np.asarray(ATOMICS[kind](old, operand)).astype(old.dtype, copy=False), inside)

    def gather_rows(self, desc: tl.tensor_descriptor, rows: tl.tensor, column: int, type: dtype) -> tl.tensor:
        return self.block_at(desc.handle, (rows.handle, column), (0, 1))

    def scatter_rows(self, desc: tl.tensor_descriptor, value: tl.tensor, rows: tl.tensor, column: int) -> None:
        addresses, inside = desc.handle.addresses((rows.handle, column), (0, 1))
        self.memory.store(addresses, value.handle, inside)


def aligned(window: Window, offsets: list[int]) -> list[int]:
    """Return the offsets of one access; a block whose rows are multiples of 16 bytes must begin at one."""
    size = window.element.itemsize
    if window.block[-1] * size % MAP_ALIGNMENT:
        return offsets
    start = offsets[-1] * size
    check_aligned(
        start, f"offset {offsets[-1]} along the last axis is {start} bytes, not a multiple of {MAP_ALIGNMENT}"
    )
    return offsets


def check_aligned(size: int, text: str) -> None:
    if size % MAP_ALIGNMENT:
        raise at_run_time(AssertionError(text))


Update = Callable[[Array, Array], Any]
UPDATES: dict[str, Update] = {
    "add": np.add,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "xchg": lambda old, new: new,
    "max": np.maximum,
    "min": np.minimum,
}
BITWISE = ("and", "or", "xor", "xchg")


class Access(Descriptors):
    """Implements `load`, `store` and the atomics."""

    def read(
        self, ptr: tl.tensor, mask: tl.tensor | None, other: tl.tensor | None, options: AccessOptions
    ) -> tl.tensor:
        element = pointee(ptr)
        loaded = self.memory.load(ptr.handle, None if mask is None else mask.handle, storage(element))
        if mask is None or other is None:
            return tensor(loaded, element)
        return tensor(np.where(mask.handle, loaded, other.handle).astype(storage(element), copy=False), element)

    def store_pointers(
        self, ptr: tl.tensor, value: tl.tensor, mask: tl.tensor | None, options: AccessOptions = AccessOptions()
    ) -> None:
        """Write elements that have the shape of the pointers, in the type of memory."""
        self.memory.store(ptr.handle, value.handle, None if mask is None else mask.handle)

    def update(
        self,
        kind: str,
        ptr: tl.tensor,
        value: tl.tensor,
        mask: tl.tensor | None,
        sem: str,
        scope: str,
        ordered: bool = False,
    ) -> tl.tensor:
        """Return the value before the operation, per element; where the mask is false, 0 and no effect."""
        element = value.dtype
        handle = canonical(value.handle) if self.options.reproducible else value.handle
        update, operand = update_of(kind, element, handle)
        old = self.updated(ptr.handle, operand, None if mask is None else mask.handle, update)
        return tensor(old.view(storage(element)), element)

    def updated(self, addresses: Array, values: Array, mask: Array | None, update: Update) -> Array:
        """Apply `update` element by element in order; return the old values."""
        flat = np.asanyarray(addresses).reshape(-1)
        values = np.broadcast_to(values, np.shape(addresses)).reshape(-1)
        active = np.ones(flat.shape, np.bool_) if mask is None else np.asarray(mask).reshape(-1)
        if np.unique(np.asarray(flat)[active]).size == np.count_nonzero(active):
            old = self.memory.load(flat, active, values.dtype)
            self.memory.store(flat, np.asarray(update(old, values)).astype(values.dtype, copy=False), active)
            return old.reshape(np.shape(addresses))
        old = np.zeros(flat.shape, values.dtype)
        for lane in np.flatnonzero(active):
            here = flat[lane : lane + 1]
            old[lane : lane + 1] = self.memory.load(here, None, values.dtype)
            changed = np.asarray(update(old[lane : lane + 1], values[lane : lane + 1]))
            self.memory.store(here, changed.astype(values.dtype, copy=False), None)
        return old.reshape(np.shape(addresses))

    def compare_and_swap(
        self, ptr: tl.tensor, expected: tl.tensor, desired: tl.tensor, sem: str, scope: str
    ) -> tl.tensor:
        """Write where memory holds exactly the bits of `expected`."""
        handles = [expected.handle, desired.handle]
        wanted, new = (
            bits_of(canonical(handle) if self.options.reproducible else handle).reshape(-1) for handle in handles
        )
        element, addresses = pointee(ptr), np.asanyarray(ptr.handle).reshape(-1)
        old = np.zeros(addresses.shape, wanted.dtype)
        for lane in range(addresses.size):
            here = addresses[lane : lane + 1]
            found = self.memory.load(here, None, old.dtype)
            old[lane : lane + 1] = found
            if found[0] == wanted[lane]:
                self.memory.store(here, new[lane : lane + 1], None)
        return tensor(old.reshape(ptr.handle.shape).view(storage(element)), element)


def update_of(kind: str, element: dtype, values: Array) -> tuple[Update, Array]:
    """Return the function of an atomic, and its operands in the type it works on."""
    if kind in ("max", "min") and element.is_floating():
        return float_extremum(kind), bits_of(values)
    if kind in BITWISE:
        return UPDATES[kind], bits_of(values)
    return UPDATES[kind], np.asarray(values)


def float_extremum(kind: str) -> Update:
    """Maximum or minimum by bit patterns: the sign bit of the operand picks a signed or the opposite unsigned one."""
    forward, backward = (np.maximum, np.minimum) if kind == "max" else (np.minimum, np.maximum)

    def update(old: Array, new: Array) -> Array:
        signed = np.dtype(f"int{8 * old.dtype.itemsize}")
        positive = forward(old.view(signed), new.view(signed)).view(old.dtype)
        return np.where(new.view(signed) < 0, backward(old, new), positive)

    return update
