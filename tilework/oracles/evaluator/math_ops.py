"""Rules of the `math` dialect and of the precise elementwise ops of `tt`.

Functions of f32 and narrower formats are computed in f64 and rounded once, so a value does not depend on its position
in an array (NumPy's vector and scalar loops may differ in the last bit) and a pass that moves an op changes nothing.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects import math as math_dialect
from xdsl.ir import Operation

from tilework.ir import tt
from tilework.ir.enums import PropagateNan
from tilework.ir.types import bit_width
from tilework.numerics import libdevice_in_numpy as libdevice
from tilework.numerics.arithmetic import Arithmetic
from tilework.numerics.integers import high_product, leading_zeros, one_bits, trailing_zeros
from tilework.numerics.rounding import F64, Array, narrow
from tilework.oracles.evaluator.floats import fit, unsigned, wide
from tilework.oracles.evaluator.table import evaluates, rules

if TYPE_CHECKING:
    from tilework.oracles.evaluator.machine import Machine

FUNCTIONS: dict[type[Operation], Callable[..., Any]] = {
    math_dialect.CopySignOp: np.copysign,
    math_dialect.PowFOp: np.power,
    math_dialect.RoundEvenOp: np.rint,
    **{
        getattr(math_dialect, f"{name}Op"): libdevice.DOUBLE[name.lower()]
        for name in "Exp Exp2 ExpM1 Log Log2 Log10 Log1p Sin Cos Tan Asin Acos Atan Atan2 Sinh Cosh Tanh Asinh Acosh Atanh"
        " Cbrt Sqrt Rsqrt Floor Ceil Trunc Round Erf".split()
    },
}


def in_double(function: Callable[..., Any], *args: Array) -> Array:
    """`function` in f64, rounded to the format of the first argument."""
    return narrow(np.asarray(function(*(arg.astype(F64) for arg in args))), args[0].dtype)


rules(
    {
        **{op: lambda machine, op, *args: in_double(FUNCTIONS[type(op)], *args) for op in FUNCTIONS},
        math_dialect.AbsFOp: lambda machine, op, src: narrow(np.asarray(np.abs(wide(src))), src.dtype),
        math_dialect.AbsIOp: lambda machine, op, src: fit(np.asarray(np.abs(src)), op.results[0].type),
        math_dialect.FmaOp: lambda machine, op, x, y, z: Arithmetic.of(x.dtype).fma(x, y, z),
        tt.PreciseSqrtOp: lambda machine, op, src: narrow(np.asarray(np.sqrt(wide(src))), src.dtype),
        tt.PreciseDivFOp: lambda machine, op, lhs, rhs: narrow(np.asarray(wide(lhs) / wide(rhs)), lhs.dtype),
        # the upper half of the double-width product
        tt.MulhiUIOp: lambda machine, op, lhs, rhs: fit(high_product(unsigned(lhs), unsigned(rhs)), op.results[0].type),
    },
    elementwise=True,
)


@evaluates(tt.ClampFOp, elementwise=True)
def eval_clampf(machine: "Machine", op: Operation, x: Array, low: Array, high: Array) -> Array:
    """`min(max(x, low), high)`; a NaN in `x` stays with propagateNan = all, and becomes `low` otherwise."""
    keep_nan = machine.integer(op, "propagateNan") == PropagateNan.ALL
    larger, smaller = (np.maximum, np.minimum) if keep_nan else (np.fmax, np.fmin)
    return narrow(np.asarray(smaller(larger(wide(x), wide(low)), wide(high))), x.dtype)


COUNTS = {
    math_dialect.CountLeadingZerosOp: leading_zeros,
    math_dialect.CountTrailingZerosOp: trailing_zeros,
    math_dialect.CtPopOp: one_bits,
}


@evaluates(*COUNTS, elementwise=True)
def eval_bit_count(machine: "Machine", op: Operation, src: Array) -> Array:
    assert bit_width(op.operands[0].type) in (8, 16, 32, 64), "bits are counted in whole bytes"
    return fit(COUNTS[type(op)](src), op.results[0].type)
