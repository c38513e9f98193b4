"""A function under construction, for tests that call `Semantic` directly.

    k = kernel(p=tl.pointer_type(tl.float32), n=tl.int32)      # k.p and k.n are its arguments
    k.sem.store(k.p, k.n, None, (), "", "")
    assert "tt.store %, % : !tt.ptr<f32>" in k.lines()

`lines` ends the function, verifies the module and prints it, one op per line, with every value name cut down to `%`
and the names of results left out.
"""

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region

from tests.pipeline.stages import check_stage
from tilework.frontend.semantic import Semantic
from tilework.frontend.semantic.building import Builder, ir_type
from tilework.ir import tt
from tilework.ir.locations import file_loc
from tilework.ir.printer import print_module
from tilework.ir.verify import verify
from tilework.language import core as tl
from tilework.oracles.evaluator import evaluate

OPTIONS: dict[str, Any] = {
    "beyond_triton": "error",
    "reproducible": False,
    "num_warps": 4,
    "num_stages": 3,
    "debug": False,
    "sanitize": False,
    "sanitize_overflow": True,
    "arch": 90,
    "features": {"tma"},
    "backend_name": "cuda",
    "supported_fp8_dtypes": ("fp8e4b15", "fp8e4nv", "fp8e5"),
    "deprecated_fp8_dot_operand_dtypes": ("fp8e4b15",),
    "default_dot_input_precision": "tf32",
    "allowed_dot_input_precisions": ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6"),
    "f32_default": None,
    "max_num_imprecise_acc_default": 2**30,
    "min_dot_size": lambda lhs, rhs: (1, 1, 32 if lhs.scalar.primitive_bitwidth == 8 else 16),
}


class Kernel:
    """One function `k` with the given arguments; ops are built at its end."""

    def __init__(self, options: dict[str, Any], arguments: dict[str, tl.dtype]) -> None:
        self.location = file_loc("kernel.py", 1, 1)
        types = [ir_type(type) for type in arguments.values()]
        entry = Block(arg_types=types)
        self.module = ModuleOp([tt.FuncOp.make("k", types, (), Region(entry), self.location)])
        self.builder = Builder()
        self.scope = self.builder.enter_function(entry)
        self.scope.__enter__()
        self.builder.loc = self.location
        self.builder.set_to_end(entry)
        self.sem = Semantic(self.builder, SimpleNamespace(**(OPTIONS | options)))
        self.arguments = {name: tl.tensor(value, type) for (name, type), value in zip(arguments.items(), entry.args)}

    def __getattr__(self, name: str) -> tl.tensor:
        return self.arguments[name]

    def block(self, dtype: tl.dtype, *shape: int) -> tl.tensor:
        """A block of values that the compiler does not know."""
        pointer = self.sem.cast(self.pointer, tl.pointer_type(dtype))
        scalar = self.sem.load(pointer, None, None, (), "", "", "", False)
        return self.sem.splat(scalar, shape)

    def finish(self) -> None:
        self.builder.insert(tt.ReturnOp.make((), self.location))
        self.scope.__exit__(None, None, None)
        check_stage(self.module, "ttir")
        verify(self.module)

    def run(self, **values: Any) -> None:
        """Execute the function on NumPy arrays (for pointers) and numbers."""
        self.finish()
        evaluate(self.module, "k", [values.get(name, 0) for name in self.arguments])

    def lines(self) -> list[str]:
        self.finish()
        text = re.sub(r"%[\w-]+(:\d+)?(#\d+)?", "%", print_module(self.module))
        return [re.sub(r"^%(, %)* = ", "", line.strip()) for line in text.splitlines()]


@pytest.fixture
def kernel() -> Callable[..., Kernel]:
    def make(options: dict[str, Any] | None = None, **arguments: tl.dtype) -> Kernel:
        return Kernel(options or {}, arguments | {"pointer": tl.pointer_type(tl.int64)})

    return make
