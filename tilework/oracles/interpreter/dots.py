"""Matrix products.

Floats are multiplied and added in float64 and rounded once to the type of the accumulator, whatever precision was
asked for: this is the exact product that tf32, bf16x3 and the others approach. In reproducible kernels, and where `SUM_ORDER` is set, they are
added along K, one fused multiply-add after the other. int8 accumulates in int32, wrapping.
"""

import numpy as np

from tilework.language import core as tl
from tilework.language.dtypes import bfloat16, dtype, float16
from tilework.language.typing.carrier import Scaled
from tilework.language.typing.matrix_products import FP4, scale_group
from tilework.numerics.arithmetic import Arithmetic
from tilework.numerics.microscaling import E8M0_BIAS, E8M0_NAN, unpack_e2m1
from tilework.numerics.rounding import Array
from tilework.oracles.interpreter.formats import round_float
from tilework.oracles.interpreter.load_store import Access
from tilework.oracles.interpreter.reductions import SUM_ORDER
from tilework.oracles.interpreter.tensors import tensor


class Dots(Access):
    """What `dot` and `dot_scaled` compute."""

    def product(
        self,
        lhs: tl.tensor,
        rhs: tl.tensor,
        acc: tl.tensor | None,
        type: dtype,
        precision: str,
        imprecise_limit: int,
    ) -> tl.tensor:
        left, right = lhs.handle.astype(np.float64), rhs.handle.astype(np.float64)
        if lhs.dtype.is_int():  # exact in float64: K * 2**14 stays below 2**53
            total = np.matmul(left, right).astype(np.int64) + (0 if acc is None else acc.handle.astype(np.int64))
            return tensor(np.asarray(total).astype(np.int32), type.scalar)
        if self.options.reproducible or SUM_ORDER.get() is not None:
            return added_in_order(left, right, acc, type)
        return rounded_sum(np.matmul(left, right), acc, type.scalar)

    def scaled_product(
        self, lhs: Scaled, rhs: Scaled, acc: tl.tensor | None, type: dtype, fast_math: bool
    ) -> tl.tensor:
        """Both operands as rows along K, which is how their scales are laid out."""
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
    """The accumulator, to which the products along K are added one by one, each sum rounded once: in f64, or in f32."""
    numbers = np.float64 if type.scalar.is_fp64() else np.float32
    total = np.zeros(type.sizes, numbers) if acc is None else acc.handle.astype(numbers)
    arithmetic = Arithmetic.of(np.dtype(numbers))
    depth = range(left.shape[-1])
    for k in depth if SUM_ORDER.get() != "backward" else reversed(depth):
        column, row = left[..., k : k + 1].astype(numbers), right[..., k : k + 1, :].astype(numbers)
        x, y = np.broadcast_arrays(column, row)
        total = arithmetic.fma(x, y, total)
    return tensor(round_float(total.astype(np.float64), type.scalar), type.scalar)


def scaled(rows: Array, scale: tl.tensor | None, fast_math: bool) -> Array:
    """Each group of neighbours times its scale."""
    if scale is None:
        return rows
    if scale.dtype.is_uint8():
        powers = np.ldexp(1.0, scale.handle.astype(np.int32) - E8M0_BIAS)
        if not fast_math:
            powers = np.where(scale.handle == E8M0_NAN, np.nan, powers)
    else:
        powers = scale.handle.astype(np.float64)
    return rows * np.repeat(powers, scale_group(scale.dtype), axis=-1)


def rounded_sum(product: Array, acc: tl.tensor | None, element: dtype) -> tl.tensor:
    total = product if acc is None else product + acc.handle.astype(np.float64)
    return tensor(round_float(np.asarray(total), element), element)


def unpacked(values: Array, format: str, axis: int) -> Array:
    """The elements as float64; a byte of e2m1 holds two along `axis`, the low nibble first."""
    return (unpack_e2m1(values, axis) if format == FP4 else values).astype(np.float64)
