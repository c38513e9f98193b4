"""Functions of f32 that are one instruction, or nearly; the rest is our own (`targets/llvm/math`), which needs no device library.

math.exp2 : f32         v_exp_f32                        1 ulp, denormals are 0
math.exp : f32          exp2 of x * log2(e), LLVM's       keeps denormals
math.rsqrt : f32        v_rsq_f32                        1 ulp
"""

import math

from tilework.targets.gpu.device import Function
from tilework.targets.gpu.lowering import Lowering
from tilework.targets.llvm.types import f32
from tilework.targets.llvm.values import Value


def instruction(low: Lowering, name: str, *args: Value) -> Value:
    return low.builder.call(f"llvm.amdgcn.{name}.f32", f32, args, is_pure=True)


def fast_exp(low: Lowering, x: Value) -> Value:
    return low.builder.unary("exp2", low.builder.fmul(x, math.log2(math.e)))


def fast_quotient(low: Lowering, x: Value, y: Value) -> Value:
    return low.builder.fmul(x, instruction(low, "rcp", y))


FAST: dict[str, Function] = {
    "exp": fast_exp,
    "exp2": lambda low, x: instruction(low, "exp2", x),
    "sqrt": lambda low, x: instruction(low, "sqrt", x),
    "rsqrt": lambda low, x: instruction(low, "rsq", x),
}
LIBRARY: dict[str, Function] = {
    "__nv_fast_fdividef": fast_quotient,
    "__nv_fast_expf": lambda low, x: instruction(low, "exp2", low.builder.fmul(x, math.log2(math.e))),
}
