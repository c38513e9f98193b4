"""Rules of the `math` dialect and of the precise elementwise ops of `tt`.

Functions of f32 and narrower formats are computed in f64 and rounded once, so a value does not depend on its position
in an array (NumPy's vector and scalar loops may differ in the last bit) and a pass that moves an op changes nothing.
"""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects import math as math_dialect
from xdsl.ir import Operation

from tilework.ir import tt
from tilework.ir.enums import PropagateNan
from tilework.ir.types import bit_width
from tilework.oracles.evaluator.floats import F64, Array, fit, fused_multiply_add, narrow, unsigned, wide
from tilework.oracles.evaluator.table import evaluates

if TYPE_CHECKING:
    from tilework.oracles.evaluator.machine import Machine

ERF = np.frompyfunc(math.erf, 1, 1)


def erf(x: Array) -> Array:
    return np.asarray(ERF(x), dtype=object).astype(F64)


def rsqrt(x: Array) -> Array:
    return 1.0 / np.sqrt(x)


def rounded(x: Array) -> Array:
    """To the nearest integer, halves away from zero."""
    return np.where(np.abs(x) >= 2.0**52, x, np.copysign(np.floor(np.abs(x) + 0.5), x))


FUNCTIONS: dict[type[Operation], Callable[..., Any]] = {
    math_dialect.ExpOp: np.exp,
    math_dialect.Exp2Op: np.exp2,
    math_dialect.ExpM1Op: np.expm1,
    math_dialect.LogOp: np.log,
    math_dialect.Log2Op: np.log2,
    math_dialect.Log10Op: np.log10,
    math_dialect.Log1pOp: np.log1p,
    math_dialect.SinOp: np.sin,
    math_dialect.CosOp: np.cos,
    math_dialect.TanOp: np.tan,
    math_dialect.AsinOp: np.arcsin,
    math_dialect.AcosOp: np.arccos,
    math_dialect.AtanOp: np.arctan,
    math_dialect.SinhOp: np.sinh,
    math_dialect.CoshOp: np.cosh,
    math_dialect.TanhOp: np.tanh,
    math_dialect.AsinhOp: np.arcsinh,
    math_dialect.AcoshOp: np.arccosh,
    math_dialect.AtanhOp: np.arctanh,
    math_dialect.CbrtOp: np.cbrt,
    math_dialect.SqrtOp: np.sqrt,
    math_dialect.RsqrtOp: rsqrt,
    math_dialect.FloorOp: np.floor,
    math_dialect.CeilOp: np.ceil,
    math_dialect.TruncOp: np.trunc,
    math_dialect.RoundOp: rounded,
    math_dialect.RoundEvenOp: np.rint,
    math_dialect.ErfOp: erf,
    math_dialect.Atan2Op: np.arctan2,
    math_dialect.PowFOp: np.power,
    math_dialect.CopySignOp: np.copysign,
}


@evaluates(*FUNCTIONS, elementwise=True)
def eval_function(machine: "Machine", op: Operation, *args: Array) -> Array:
    return in_double(FUNCTIONS[type(op)], *args)


def in_double(function: Callable[..., Any], *args: Array) -> Array:
    """`function` in f64, rounded to the format of the first argument."""
    return narrow(np.asarray(function(*(arg.astype(F64) for arg in args))), args[0].dtype)


@evaluates(math_dialect.AbsFOp, elementwise=True)
def eval_absf(machine: "Machine", op: Operation, src: Array) -> Array:
    return narrow(np.asarray(np.abs(wide(src))), src.dtype)


@evaluates(math_dialect.AbsIOp, elementwise=True)
def eval_absi(machine: "Machine", op: Operation, src: Array) -> Array:
    return fit(np.asarray(np.abs(src)), op.results[0].type)


@evaluates(math_dialect.FmaOp, elementwise=True)
def eval_fma(machine: "Machine", op: Operation, x: Array, y: Array, z: Array) -> Array:
    return fused_multiply_add(x, y, z)


@evaluates(tt.PreciseSqrtOp, elementwise=True)
def eval_precise_sqrt(machine: "Machine", op: Operation, src: Array) -> Array:
    return narrow(np.asarray(np.sqrt(wide(src))), src.dtype)


@evaluates(tt.PreciseDivFOp, elementwise=True)
def eval_precise_divf(machine: "Machine", op: Operation, lhs: Array, rhs: Array) -> Array:
    return narrow(np.asarray(np.divide(wide(lhs), wide(rhs))), lhs.dtype)


@evaluates(tt.ClampFOp, elementwise=True)
def eval_clampf(machine: "Machine", op: Operation, x: Array, low: Array, high: Array) -> Array:
    """`min(max(x, low), high)`; a NaN in `x` stays with propagateNan = all, and becomes `low` otherwise."""
    keep_nan = machine.integer(op, "propagateNan") == PropagateNan.ALL
    larger, smaller = (np.maximum, np.minimum) if keep_nan else (np.fmax, np.fmin)
    return narrow(np.asarray(smaller(larger(wide(x), wide(low)), wide(high))), x.dtype)


@evaluates(tt.MulhiUIOp, elementwise=True)
def eval_mulhiui(machine: "Machine", op: Operation, lhs: Array, rhs: Array) -> Array:
    """The upper half of the double-width product."""
    return fit(high_product(unsigned(lhs), unsigned(rhs)), op.results[0].type)


def high_product(lhs: Array, rhs: Array) -> Array:
    width = lhs.dtype.itemsize * 8
    if width < 64:
        return ((lhs.astype(np.uint64) * rhs.astype(np.uint64)) >> np.uint64(width)).astype(lhs.dtype)
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a, b, c, d = lhs >> half, lhs & mask, rhs >> half, rhs & mask
    low = b * d
    middle = a * d + (low >> half)
    middle_low = (middle & mask) + b * c
    return np.asarray(a * c + (middle >> half) + (middle_low >> half))


def leading_zeros(src: Array) -> Array:
    """Zero bits above the highest one."""
    bits = unsigned(src)
    width = bits.dtype.itemsize * 8
    count = np.full(bits.shape, width, dtype=np.int64)
    for position in range(width):
        count = np.where((bits >> bits.dtype.type(position)) & bits.dtype.type(1), width - 1 - position, count)
    return count


def trailing_zeros(src: Array) -> Array:
    bits = unsigned(src)
    width = bits.dtype.itemsize * 8
    count = np.full(bits.shape, width, dtype=np.int64)
    for position in reversed(range(width)):
        count = np.where((bits >> bits.dtype.type(position)) & bits.dtype.type(1), position, count)
    return count


def one_bits(src: Array) -> Array:
    bits = unsigned(src)
    width = bits.dtype.itemsize * 8
    return np.asarray(sum((bits >> bits.dtype.type(k)) & bits.dtype.type(1) for k in range(width))).astype(np.int64)


COUNTS = {
    math_dialect.CountLeadingZerosOp: leading_zeros,
    math_dialect.CountTrailingZerosOp: trailing_zeros,
    math_dialect.CtPopOp: one_bits,
}


@evaluates(*COUNTS, elementwise=True)
def eval_bit_count(machine: "Machine", op: Operation, src: Array) -> Array:
    assert bit_width(op.operands[0].type) in (8, 16, 32, 64), "bits are counted in whole bytes"
    return fit(COUNTS[type(op)](src), op.results[0].type)
