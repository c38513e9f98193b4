"""Functions of f32 that are one instruction, or nearly, and those of libdevice that are.

math.exp : f32          ex2.approx.f32 of x * log2(e)
arith.divf : f32        div.full.f32                     2 ulp; tt.precise_divf is div.rn.f32
__nv_fadd_ru            add.rp.f32
"""

import math
from functools import partial
from itertools import product

from tilework.targets.gpu.device import Function
from tilework.targets.gpu.lowering import Lowering
from tilework.targets.llvm.types import f32
from tilework.targets.llvm.values import Value
from tilework.targets.nvidia.lower.inline_ptx import nvvm, ptx


def approximate(low: Lowering, name: str, *args: Value) -> Value:
    return nvvm(low.builder, f"{name}.approx.ftz.f" if low.gpu.flushes else f"{name}.approx.f", f32, *args)


def fast_exp2(low: Lowering, x: Value) -> Value:
    return nvvm(low.builder, "ex2.approx.ftz.f32", f32, x) if low.gpu.flushes else low.builder.unary("exp2", x)


def power_of_2(low: Lowering, x: Value, y: Value | float) -> Value:
    """2 to the power of a product."""
    return low.builder.unary("exp2", low.builder.fmul(x, y))


def fast_exp(low: Lowering, x: Value) -> Value:
    return power_of_2(low, x, math.log2(math.e))


def fast_log2(low: Lowering, x: Value, factor: float = 1.0) -> Value:
    found = nvvm(low.builder, "lg2.approx.ftz.f", f32, x)
    return found if factor == 1.0 else low.builder.fmul(found, factor)


def fast_sine(low: Lowering, x: Value, name: str = "sin") -> Value:
    return nvvm(low.builder, f"{name}.approx.ftz.f", f32, x)


def fast_quotient(low: Lowering, x: Value, y: Value) -> Value:
    return nvvm(low.builder, "div.approx.f", f32, x, y)


def instruction(low: Lowering, *args: Value, name: str) -> Value:
    """A function that is one instruction: ``add.rp.f32``."""
    listed = ", ".join(f"${place}" for place in range(len(args) + 1))
    return ptx(low.builder, f"{name} {listed};", [args[0].type], args)[0]


FAST: dict[str, Function] = {
    "exp": fast_exp,
    "exp2": fast_exp2,
    "sqrt": lambda low, x: approximate(low, "sqrt", x),
    "rsqrt": lambda low, x: approximate(low, "rsqrt", x),
    "divide": lambda low, x, y: nvvm(low.builder, "div.full", f32, x, y),
}
LIBRARY: dict[str, Function] = {  # also two whose accurate forms are an instruction
    "__nv_exp2f": fast_exp2,
    "__nv_rsqrtf": FAST["rsqrt"],
    "__nv_fast_expf": fast_exp,
    "__nv_fast_exp10f": lambda low, x: power_of_2(low, x, math.log2(10)),
    "__nv_fast_log2f": fast_log2,
    "__nv_fast_logf": lambda low, x: fast_log2(low, x, math.log(2)),
    "__nv_fast_log10f": lambda low, x: fast_log2(low, x, math.log10(2)),
    "__nv_fast_powf": lambda low, x, y: power_of_2(low, fast_log2(low, x), y),
    "__nv_fast_sinf": fast_sine,
    "__nv_fast_cosf": lambda low, x: fast_sine(low, x, "cos"),
    "__nv_fast_tanf": lambda low, x: fast_quotient(low, fast_sine(low, x), fast_sine(low, x, "cos")),
    "__nv_fast_tanhf": partial(instruction, name="tanh.approx.f32"),
    "__nv_fast_fdividef": fast_quotient,
}
MODES = {"rn": "rn", "rz": "rz", "ru": "rp", "rd": "rm"}  # libdevice's up and down are towards plus and minus infinity
for wanted, mode in MODES.items():
    for (letter, type), name in product({"f": "f32", "d": "f64"}.items(), ("add", "sub", "mul", "div", "rcp", "sqrt")):
        LIBRARY[f"__nv_{letter}{name}_{wanted}"] = partial(instruction, name=f"{name}.{mode}.{type}")
    LIBRARY[f"__nv_fmaf_{wanted}"] = partial(instruction, name=f"fma.{mode}.f32")
    LIBRARY[f"__nv_fma_{wanted}"] = partial(instruction, name=f"fma.{mode}.f64")
