"""Matrix products.

Floats are multiplied and added in float64 and rounded once to the type of the accumulator, whatever precision was
asked for: this is the exact product that tf32, bf16x3 and the others approach. int8 accumulates in int32, wrapping.
"""

from typing import Any

import numpy as np

from tilework.language import core as tl
from tilework.language.dtypes import (
    bfloat16,
    dtype,
    float8e4nv,
    float8e5,
    float16,
    float32,
    float64,
    int32,
    uint8,
    uint16,
)
from tilework.oracles.interpreter.formats import Array, bits_of, round_float
from tilework.oracles.interpreter.load_store import Access
from tilework.oracles.interpreter.tensors import plain, tensor

PRECISIONS = ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")
SAME_TYPE = ("int8", "uint8", "fp16", "bf16", "fp32", "fp64")
RESULTS = {"int8": int32, "fp32": float32, "bf16": float32, "fp64": float64}  # others follow out_dtype
FORMATS = {  # format: (element type, the integer type that may carry it)
    "e2m1": (uint8, uint8),
    "e4m3": (float8e4nv, uint8),
    "e5m2": (float8e5, uint8),
    "bf16": (bfloat16, uint16),
    "fp16": (float16, uint16),
}
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
NAN_SCALE = 255


class Dots(Access):
    """`dot` and `dot_scaled`."""

    def dot(
        self,
        lhs: tl.tensor,
        rhs: tl.tensor,
        acc: Any,
        input_precision: str | None,
        allow_tf32: bool | None,
        max_num_imprecise_acc: int | None,
        out_dtype: dtype,
    ) -> tl.tensor:
        check_operands(lhs, rhs)
        assert input_precision is None or allow_tf32 is None, (
            "Only one of input_precision and allow_tf32 can be specified"
        )
        if input_precision is not None and input_precision.lower() not in PRECISIONS:
            raise AssertionError(f"input_precision must be one of {PRECISIONS}. Got {input_precision}")
        result = result_type(lhs.dtype, out_dtype)
        k = lhs.handle.shape[-1]
        if lhs.dtype.is_fp8() and rhs.dtype.is_fp8() and (max_num_imprecise_acc or 0) > k:
            raise ValueError(f"max_num_imprecise_acc ({max_num_imprecise_acc}) must be <= K ({k})")
        left, right = self.wide_operand(lhs), self.wide_operand(rhs)
        shape = (*left.shape[:-1], right.shape[-1])
        addend = self.accumulator(acc, shape, result, out_dtype)
        if lhs.dtype.is_int():  # exact in float64: K * 2**14 stays below 2**53
            total = np.matmul(left, right).astype(np.int64) + (0 if addend is None else addend.astype(np.int64))
            return tensor(np.asarray(total).astype(np.int32), result)
        return tensor(rounded_sum(np.matmul(left, right), addend, result), result)

    def wide_operand(self, x: tl.tensor) -> Array:
        if x.dtype.is_fp8e4b15():
            x = self.cast(x, float16)
        return x.handle.astype(np.float64)

    def accumulator(self, acc: Any, shape: tuple[int, ...], result: dtype, out_dtype: dtype) -> Array | None:
        """The values of `acc`, which must have the shape and type of the result."""
        if plain(acc) is None:
            return None
        value = self.to_tensor(acc)
        assert value.handle.shape == shape, (
            f"acc must have the shape of the result, {list(shape)}, but has {list(value.handle.shape)}"
        )
        assert value.dtype == out_dtype and value.dtype == result, (
            f"acc is {value.dtype}, but the product is {result} and out_dtype is {out_dtype}: pass out_dtype={result} "
            f"and an acc of {result}"
        )
        return value.handle

    def dot_scaled(
        self,
        lhs: tl.tensor,
        lhs_scale: Any,
        lhs_format: str,
        rhs: tl.tensor,
        rhs_scale: Any,
        rhs_format: str,
        acc: Any,
        fast_math: bool,
        lhs_k_pack: bool,
        rhs_k_pack: bool,
        out_dtype: dtype,
    ) -> tl.tensor:
        lhs, rhs = self.in_format(lhs, lhs_format, "lhs"), self.in_format(rhs, rhs_format, "rhs")
        left, right = lhs.handle.shape, rhs.handle.shape
        assert len(left) == len(right) and len(left) in (2, 3) and left[:-2] == right[:-2], (
            f"dot_scaled takes two blocks of rank 2, or 3 with equal batches, got {list(left)} and {list(right)}"
        )
        for packed, format, axis, name in ((lhs_k_pack, lhs_format, "M", "lhs"), (rhs_k_pack, rhs_format, "N", "rhs")):
            assert packed or format == "e2m1", f"only e2m1 operands can be packed along {axis}, {name} is {format}"
        # both as rows along K, which is how their scales are laid out
        rows = unpacked(lhs.handle, lhs_format, -1 if lhs_k_pack else -2)
        columns = unpacked(rhs.handle, rhs_format, -2 if rhs_k_pack else -1).swapaxes(-1, -2)
        assert rows.shape[-1] == columns.shape[-1], (
            f"Reduction dimension should pack the same number of elements; (lhs: {list(left)} {lhs_format} has "
            f"{rows.shape[-1]}, rhs: {list(right)} {rhs_format} has {columns.shape[-1]})"
        )
        rows = self.scaled(rows, lhs_scale, bool(fast_math), "lhs_scale")
        columns = self.scaled(columns, rhs_scale, bool(fast_math), "rhs_scale")
        assert out_dtype == float32, f"dot_scaled computes float32, so out_dtype must be float32, got {out_dtype}"
        shape = (*rows.shape[:-1], columns.shape[-2])
        addend = self.accumulator(acc, shape, float32, float32)
        return tensor(rounded_sum(np.matmul(rows, columns.swapaxes(-1, -2)), addend, float32), float32)

    def in_format(self, operand: tl.tensor, format: str, name: str) -> tl.tensor:
        if format not in FORMATS:
            raise ValueError(f"Invalid float format: {format} for {name}. Supported formats: {', '.join(FORMATS)}")
        element, carrier = FORMATS[format]
        have = operand.dtype
        assert have in (element, carrier), f"format {format} of {name} needs {element} or {carrier}, got {have}"
        return self.bitcast(operand, element)

    def scaled(self, rows: Array, scale: Any, fast_math: bool, name: str) -> Array:
        """Each group of 32 neighbours (16 for scales in fp8) times its scale."""
        if plain(scale) is None:
            return rows
        factors = self.to_tensor(scale)
        have = factors.dtype
        assert have in (uint8, float8e4nv), f"{name} must hold uint8 (e8m0) or fp8e4nv elements, got {have}"
        group = 16 if have.is_fp8e4nv() else 32
        wanted = [*rows.shape[:-1], rows.shape[-1] // group]
        assert list(factors.handle.shape) == wanted, (
            f"{name} must be a tensor of shape {wanted}. Got {[str(size) for size in factors.handle.shape]}"
        )
        if have.is_uint8():
            powers = np.ldexp(1.0, factors.handle.astype(np.int32) - 127)
            if not fast_math:
                powers = np.where(factors.handle == NAN_SCALE, np.nan, powers)
        else:
            powers = factors.handle.astype(np.float64)
        return rows * np.repeat(powers, group, axis=-1)


def rounded_sum(product: Array, addend: Array | None, element: dtype) -> Array:
    total = product if addend is None else product + addend.astype(np.float64)
    return round_float(np.asarray(total), element)


def unpacked(values: Array, format: str, axis: int) -> Array:
    """The elements as float64; a byte of e2m1 holds two along `axis`, the low nibble first."""
    if format != "e2m1":
        return values.astype(np.float64)
    bits = bits_of(values)
    pairs = np.stack((E2M1[bits & 15], E2M1[bits >> 4]), axis=-1)
    if axis == -1:
        return pairs.reshape(*values.shape[:-1], 2 * values.shape[-1])
    return pairs.swapaxes(-1, -2).reshape(*values.shape[:-2], 2 * values.shape[-2], values.shape[-1])


def check_operands(lhs: tl.tensor, rhs: tl.tensor) -> None:
    """Types and shapes of the operands of `dot`."""
    left, right = lhs.handle.shape, rhs.handle.shape
    if not (lhs.dtype.is_fp8() and rhs.dtype.is_fp8()):
        for element in (lhs.dtype, rhs.dtype):
            assert element.is_fp8() or element.name in SAME_TYPE, f"Unsupported operand dtype {element} of dot"
        assert lhs.dtype == rhs.dtype, f"Both operands must be same dtype. Got {lhs.dtype} and {rhs.dtype}"
        assert not lhs.dtype.is_uint8(), "only int8 supported: cast the uint8 operands of dot to int8"
    assert len(left) == len(right) and len(left) >= 2, (
        f"Both inputs must have the same rank, 2 or more; got {list(left)} and {list(right)}"
    )
    assert left[:-2] == right[:-2], f"the batch dimensions must be equal, got {list(left)} and {list(right)}"
    assert left[-1] == right[-2], (
        f"First input shape ({list(left)}) and second input shape {list(right)} are not compatible for matmul "
        f"(second index of first shape ({left[-1]}) must be equal to first index of second shape ({right[-2]})"
    )


def result_type(element: dtype, out_dtype: dtype) -> dtype:
    """The type of the product."""
    if out_dtype.is_bf16():
        raise ValueError(
            "out_dtype=bfloat16 is unsupported. Please use out_dtype=float32/float16 and cast with `.to(tl.bfloat16)`"
        )
    if (result := RESULTS.get(element.name)) is not None:
        return result
    assert out_dtype in (float16, float32), f"out_dtype of a dot of {element} must be fp16 or fp32, got {out_dtype}"
    return out_dtype
