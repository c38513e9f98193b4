"""The semantic object of the interpreter: implements `tilework.language.semantic.Semantic` over NumPy arrays.

The classes inherit from each other in the order in which they use each other:

    Values, Operators, Shapes, Reductions, Descriptors, Access, Dots, Program

Dots of floats are computed in float64 and rounded once to the type of the accumulator, whatever precision was
requested: the exact result that tf32, bf16x3 and the others approximate. In reproducible kernels, and if `SUM_ORDER` is
set, they are accumulated along K by fused multiply-adds. int8 accumulates in int32, wrapping.

`assume` and `device_assert` raise if their condition is false. Of the other hints only the arguments are checked,
because they may promise something about elements that a kernel never reads.

Loads, stores and atomics access memory through pointers, blocks of pointers, block pointers and tensor descriptors.

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
from tilework.language.dtypes import bfloat16, block_type, dtype, float16, float32, int32, int64
from tilework.language.typing.access import block_pointed_to, pointee
from tilework.language.typing.carrier import AccessOptions, Scaled, Shape
from tilework.language.typing.dots import FP4, scale_group
from tilework.numerics.arithmetic import Arithmetic
from tilework.numerics.rounding import E8M0_BIAS, E8M0_NAN, Array, bits_of, canonical, to_tf32, unpack_e2m1
from tilework.oracles.interpreter.allowed_memory import Memory
from tilework.oracles.interpreter.failures import at_run_time
from tilework.oracles.interpreter.operators import SUM_ORDER, Reductions
from tilework.oracles.interpreter.tensors import as_array, bytes_in_memory, convert, plain, round_float, storage, tensor
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
    rounds_to_tf32: bool = False  # what is loaded

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
        block = np.where(inside, loaded, window.filler()).astype(loaded.dtype, copy=False)
        if window.rounds_to_tf32 and window.element == float32:
            block = to_tf32(block.view(np.uint32), "rn").view(np.float32)
        return tensor(block, window.element)

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
        """Accept every reduction."""

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


class Dots(Access):
    """Implements `dot` and `dot_scaled`."""

    def matmul(
        self,
        lhs: tl.tensor,
        rhs: tl.tensor,
        acc: tl.tensor | None,
        type: dtype,
        precision: str,
        imprecise_limit: int,
    ) -> tl.tensor:
        left, right = lhs.handle.astype(np.float64), rhs.handle.astype(np.float64)
        if lhs.dtype.is_int():  # exact in float64: K * 2**14 is below 2**53
            total = np.matmul(left, right).astype(np.int64) + (0 if acc is None else acc.handle.astype(np.int64))
            return tensor(np.asarray(total).astype(np.int32), type.scalar)
        if self.options.reproducible or SUM_ORDER.get() is not None:
            return added_in_order(left, right, acc, type)
        return rounded_sum(np.matmul(left, right), acc, type.scalar)

    def scaled_matmul(self, lhs: Scaled, rhs: Scaled, acc: tl.tensor | None, type: dtype, fast_math: bool) -> tl.tensor:
        """Treat both operands as rows along K, the layout of their scales."""
        left, left_scale, left_format, left_packed = lhs
        right, right_scale, right_format, right_packed = rhs
        rows = unpacked(left.handle, left_format, -1 if left_packed else -2)
        columns = unpacked(right.handle, right_format, -2 if right_packed else -1).swapaxes(-1, -2)
        rows, columns = scaled(rows, left_scale, fast_math), scaled(columns, right_scale, fast_math)
        if self.options.reproducible:
            element = float16 if "fp16" in (left_format, right_format) else bfloat16
            rows, columns = (round_float(side, element).astype(np.float64) for side in (rows, columns))
        if self.options.reproducible or SUM_ORDER.get() is not None:
            return added_in_order(rows, columns.swapaxes(-1, -2), acc, type)
        return rounded_sum(np.matmul(rows, columns.swapaxes(-1, -2)), acc, type.scalar)


def added_in_order(left: Array, right: Array, acc: tl.tensor | None, type: dtype) -> tl.tensor:
    """Accumulate the products along K one by one, each sum rounded once, in f64 or in f32."""
    compute = np.float64 if type.scalar.is_fp64() else np.float32
    total = np.zeros(type.sizes, compute) if acc is None else acc.handle.astype(compute)
    arithmetic = Arithmetic.of(np.dtype(compute))
    depth = range(left.shape[-1])
    for k in depth if SUM_ORDER.get() != "backward" else reversed(depth):
        column, row = left[..., k : k + 1].astype(compute), right[..., k : k + 1, :].astype(compute)
        x, y = np.broadcast_arrays(column, row)
        total = arithmetic.fma(x, y, total)
    return tensor(round_float(total.astype(np.float64), type.scalar), type.scalar)


def scaled(rows: Array, scale: tl.tensor | None, fast_math: bool) -> Array:
    """Multiply each group of neighbours by its scale."""
    if scale is None:
        return rows
    if scale.dtype.is_uint8():
        powers = np.ldexp(1.0, scale.handle.astype(np.int32) - E8M0_BIAS)
        if not fast_math:
            powers = np.where(scale.handle == E8M0_NAN, np.nan, powers)
    else:
        powers = scale.handle.astype(np.float64)
    return rows * np.repeat(powers, scale_group(scale.dtype), axis=-1)


def rounded_sum(result: Array, acc: tl.tensor | None, element: dtype) -> tl.tensor:
    total = result if acc is None else result + acc.handle.astype(np.float64)
    return tensor(round_float(np.asarray(total), element), element)


def unpacked(values: Array, format: str, axis: int) -> Array:
    """Return the elements as float64; a byte of e2m1 holds two along `axis`, the low nibble first."""
    return (unpack_e2m1(values, axis) if format == FP4 else values).astype(np.float64)


class Program(Dots):
    """Implements `program_id`, hints, `device_print` and `device_assert`."""

    program: tuple[int, int, int] = (0, 0, 0)
    grid: tuple[int, int, int] = (1, 1, 1)

    def own_index(self, axis: int) -> tl.tensor:
        return self.constant(self.program[axis], int32)

    def grid_size(self, axis: int) -> tl.tensor:
        return self.constant(self.grid[axis], int32)

    def debug_barrier(self) -> tl.tensor:
        return self.nothing()

    def assumed(self, condition: tl.tensor) -> None:
        if not condition.handle:
            raise at_run_time(AssertionError("tl.assume: the condition is false"))

    def note(self, x: tl.tensor, fact: str, values: Shape) -> None:
        """Ignore the hint."""

    def printed(self, prefix: str, values: Sequence[tl.tensor], hex: bool) -> None:
        """One line per argument: ``pid (0, 0, 0) x: [1 2 3]``."""
        label = prefix.strip().removesuffix(":")
        if not values:
            print(f"pid {self.program} {label}".rstrip())
        for value in values:
            print(f"pid {self.program} {label}: {shown(value, hex)}")

    def asserts(self) -> bool:
        return True

    def asserted(self, condition: tl.tensor, message: str) -> None:
        if np.all(condition.handle):
            return
        failing = np.argwhere(~np.atleast_1d(condition.handle))[0].tolist()
        where = f" at index {failing}" if condition.type.is_block() else ""
        raise at_run_time(AssertionError(f"device-side assert in program {self.program}{where}: {plain(message)}"))


def shown(value: tl.tensor, hex: bool) -> str:
    """Return the elements of a tensor as text."""
    if not hex:
        return str(as_array(value))
    bits = bits_of(as_array(value))
    digits = 2 * bits.dtype.itemsize

    def hexadecimal(element: Any) -> str:
        return f"0x{int(element):0{digits}x}"

    return np.array2string(bits, formatter={"all": hexadecimal})


class Semantic(Program):
    """Executes the operations of one launch."""

    def __init__(self, options: Any, memory: Memory, grid: tuple[int, int, int]) -> None:
        super().__init__(options)
        self.memory = memory
        memory.is_reproducible = options.reproducible
        self.grid = grid

    def enter_program(self, program: tuple[int, int, int]) -> None:
        """Become another program of the grid."""
        self.program = self.memory.program = program
