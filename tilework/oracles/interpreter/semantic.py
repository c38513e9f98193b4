"""The semantic object of the interpreter: implements `tilework.language.semantic.Semantic` over NumPy arrays.

The classes inherit from each other in the order in which they use each other:

    Values, Operators, Shapes, Reductions, Descriptors, Access, Dots, Program

Dots of floats are computed in float64 and rounded once to the type of the accumulator, whatever precision was
requested: the exact result that tf32, bf16x3 and the others approximate. In reproducible kernels, and if `SUM_ORDER` is
set, they are accumulated along K by fused multiply-adds. int8 accumulates in int32, wrapping.

`assume` and `device_assert` raise if their condition is false. Of the other hints only the arguments are checked,
because they may promise something about elements that a kernel never reads.

"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilework.language import core as tl
from tilework.language.dtypes import bfloat16, dtype, float16, int32
from tilework.language.typing.carrier import Scaled, Shape
from tilework.language.typing.dots import FP4, scale_group
from tilework.numerics.arithmetic import Arithmetic
from tilework.numerics.rounding import E8M0_BIAS, E8M0_NAN, Array, bits_of, unpack_e2m1
from tilework.oracles.interpreter.allowed_memory import Memory
from tilework.oracles.interpreter.failures import at_run_time
from tilework.oracles.interpreter.load_store import Access
from tilework.oracles.interpreter.reductions import SUM_ORDER
from tilework.oracles.interpreter.tensors import as_array, plain, round_float, tensor


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
        """Nothing to do."""

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
