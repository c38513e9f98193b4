"""A function that computes: built with `Semantic` directly, then evaluated on NumPy arrays.

k = Kernel(float32, block_type(float32, [16]))
k.returns(k.semantic.add(*k.args))
k.ops                      # ["tt.splat", "arith.addf"]
k.run(2.0, np.ones(16))    # an array of 3.0
"""

from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region

from tilework.frontend.semantic import Semantic
from tilework.frontend.semantic.building import Builder, ir_type
from tilework.ir import tt
from tilework.ir.locations import unknown
from tilework.ir.verify import verify
from tilework.language import core as tl
from tilework.oracles.evaluator import evaluate

NUMPY = {
    "int1": np.dtype(np.bool_),
    **{f"{sign}int{bits}": np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "fp16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
    "fp32": np.dtype(np.float32),
    "fp64": np.dtype(np.float64),
    "fp8e5": np.dtype(ml_dtypes.float8_e5m2),
    "fp8e4nv": np.dtype(ml_dtypes.float8_e4m3fn),
}


class Kernel:
    """One function: its arguments, the `Semantic` that appends to it, and what it built."""

    def __init__(self, *types: Any, **options: Any) -> None:
        settings = {
            "beyond_triton": "error",
            "reproducible": False,
            "debug": False,
            "sanitize": False,
            "sanitize_overflow": True,
            "arch": 90,
            "backend_name": "cuda",
            "supported_fp8_dtypes": ("fp8e4b15", "fp8e4nv", "fp8e5"),
        }
        self.block = Block(arg_types=[ir_type(type) for type in types])
        self.builder = Builder()
        self.builder.loc = unknown
        self.scope = self.builder.enter_function(self.block)
        self.scope.__enter__()
        self.builder.set_to_end(self.block)
        self.semantic = Semantic(self.builder, SimpleNamespace(**{**settings, **options}))
        self.args = [tl.tensor(arg, type) for arg, type in zip(self.block.args, types, strict=True)]

    def returns(self, *values: tl.tensor) -> "Kernel":
        """End the function with these results and verify the module."""
        self.results = values
        handles = [value.handle for value in values]
        self.block.add_op(tt.ReturnOp.make(handles, unknown))
        self.scope.__exit__(None, None, None)
        inputs = [arg.type for arg in self.block.args]
        outputs = [handle.type for handle in handles]
        self.module = ModuleOp([tt.FuncOp.make("f", inputs, outputs, Region(self.block), unknown)])
        verify(self.module)
        return self

    @property
    def all_ops(self) -> list[Operation]:
        """Every op but constants and the return, in order."""
        return [op for op in self.block.ops if op.name not in ("arith.constant", "tt.return")]

    @property
    def ops(self) -> list[str]:
        """The names of `all_ops`."""
        return [op.name for op in self.all_ops]

    def run(self, *args: Any) -> Any:
        """The result on NumPy arguments, as the NumPy type of its language type."""
        result = np.asarray(evaluate(self.module, "f", args)[0])
        wanted = NUMPY.get(self.results[0].dtype.name, result.dtype)
        return result if result.dtype == wanted else result.view(wanted)
