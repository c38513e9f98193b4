"""Rules of `tt.dot` and `tt.dot_scaled`.

Floats accumulate in f32 (f64 in f64) and are rounded once to the result; int8 accumulates in int32, wrapping. tf32
operands are exact unless the caller of `evaluate` requests truncation.

A scaled dot multiplies each group of 32 elements along K by a power of two first, in f16 or bf16, as hardware without
scaled instructions does.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.ir import Operation

from tilework.ir import tt
from tilework.ir.enums import InputPrecision, ScaleDotElemType
from tilework.ir.module_facts import is_reproducible
from tilework.numerics.arithmetic import Arithmetic
from tilework.numerics.rounding import (
    BF16,
    E4M3FN,
    E5M2,
    E8M0_BIAS,
    E8M0_NAN,
    F16,
    F32,
    F64,
    Array,
    narrow,
    to_tf32,
    unpack_e2m1,
)
from tilework.oracles.evaluator.rules import Fault, evaluates

if TYPE_CHECKING:
    from tilework.oracles.evaluator.machine import Machine

FORMATS: dict[int, np.dtype[Any]] = {
    ScaleDotElemType.E4M3: E4M3FN,
    ScaleDotElemType.E5M2: E5M2,
    ScaleDotElemType.BF16: BF16,
    ScaleDotElemType.FP16: F16,
}


@evaluates(tt.DotOp)
def eval_dot(machine: "Machine", op: Operation, a: Array, b: Array, c: Array) -> Array:
    """Return ``a @ b + c``."""
    if a.dtype.kind == "i":  # exact in f64: K * 2**14 is below 2**53
        result = np.matmul(a.astype(F64), b.astype(F64)).astype(np.int64)
        return (result + c).astype(c.dtype)
    accumulator = F64 if c.dtype == F64 else F32
    a, b = a.astype(accumulator), b.astype(accumulator)
    if machine.truncate_tf32 and machine.integer(op, "inputPrecision", InputPrecision.IEEE) == InputPrecision.TF32:
        a, b = (to_tf32(x.view(np.uint32), "rz").view(F32) for x in (a, b))
    if is_reproducible(op):
        return narrow(fma_chain(a, b, c.astype(accumulator)), c.dtype)
    return narrow(np.matmul(a, b) + c.astype(accumulator), c.dtype)


@evaluates(tt.DotScaledOp)
def eval_dot_scaled(machine: "Machine", op: Operation, *operands: Array) -> Array:
    sizes = iter(machine.integers(op, "operandSegmentSizes"))
    values = iter(operands)
    a, b, c, a_scale, b_scale = (next(values) if next(sizes) else None for _ in range(5))
    assert a is not None and b is not None and c is not None
    a_format, b_format = machine.integer(op, "a_elem_type"), machine.integer(op, "b_elem_type")
    compute = F16 if ScaleDotElemType.FP16 in (a_format, b_format) else BF16
    fast = bool(machine.integer(op, "fastMath"))
    lhs = scaled(unpacked(a, a_format, -1 if machine.integer(op, "lhs_k_pack", -1) else -2), a_scale, compute, fast)
    rhs = unpacked(b, b_format, -2 if machine.integer(op, "rhs_k_pack", -1) else -1)
    rhs = scaled(rhs.swapaxes(-1, -2), b_scale, compute, fast).swapaxes(-1, -2)
    if is_reproducible(op):
        return narrow(fma_chain(lhs.astype(F32), rhs.astype(F32), c.astype(F32)), c.dtype)
    return narrow(np.matmul(lhs.astype(F32), rhs.astype(F32)) + c.astype(F32), c.dtype)


def fma_chain(a: Array, b: Array, total: Array) -> Array:
    """Return ``total + a @ b`` by fused multiply-adds in the order of K."""
    arithmetic = Arithmetic.of(total.dtype)
    for k in range(a.shape[-1]):
        row, column = np.broadcast_arrays(a[..., :, k, None], b[..., None, k, :])
        total = arithmetic.fma(row, column, total)
    return total


def unpacked(value: Array, format: int, axis: int) -> Array:
    """Return the elements as f32; e2m1 bytes hold two along `axis`, the low nibble first."""
    if format == ScaleDotElemType.E2M1:
        return unpack_e2m1(value, axis)
    if format not in FORMATS:
        raise Fault(f"has operands of format {ScaleDotElemType(format).keyword}, which the evaluator does not read")
    dtype = FORMATS[format]
    return (value if value.dtype == dtype else np.ascontiguousarray(value).view(dtype)).astype(F32)


def scaled(value: Array, scale: Array | None, compute: np.dtype[Any], fast: bool) -> Array:
    """Multiply rows of `value` by their scales, one for each group of neighbours along the last axis."""
    if scale is None:
        return narrow(value, compute)
    group = value.shape[-1] // scale.shape[-1]
    if scale.dtype.kind == "i":
        bits = np.ascontiguousarray(scale).view(np.uint8)
        factor, is_nan = np.ldexp(np.float32(1), bits.astype(np.int32) - E8M0_BIAS), bits == E8M0_NAN
    else:
        factor, is_nan = scale.astype(F32), np.zeros(scale.shape, bool)
    result = narrow(value * np.repeat(factor, group, axis=-1), compute)
    if fast:
        return result
    return np.where(np.repeat(is_nan, group, axis=-1), np.asarray(np.nan, dtype=compute), result)
