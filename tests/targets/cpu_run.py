"""Compile `ttcir` text and run it on NumPy arrays, without the runtime.

kernel = compile_text('tt.func public @k(%p: !tt.ptr<f32>, %n: i32) { ... }')
kernel(array, 5, grid=(4,))
"""

import ctypes
import struct
from collections.abc import Iterable
from typing import Any

import ml_dtypes
import numpy as np

from tests.targets.llvm_run import to_assembly
from tilework.ir import tt
from tilework.ir.parser import parse_module
from tilework.targets.cpu.lower.codegen import arena_size, emit_module
from tilework.targets.cpu.target import HostTarget
from tilework.targets.llvm.compile import to_object
from tilework.targets.llvm.object_loader import load_object

NUMPY = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
}
RANGE = ctypes.CFUNCTYPE(
    ctypes.c_int32,
    ctypes.c_void_p,
    ctypes.c_int64,
    ctypes.c_int64,
    ctypes.c_int32,
    ctypes.c_int32,
    ctypes.c_int32,
    ctypes.c_void_p,
)


class Kernel:
    """A kernel of a module, callable on arrays and numbers."""

    def __init__(self, kernel: tt.FuncOp, text: str, arena_bytes: int, library: Any) -> None:
        self.types = [str(type) for type in kernel.function_type.inputs]
        self.text, self.arena_bytes, self.library = text, arena_bytes, library
        self.function = RANGE(library[f"{kernel.sym_name.data}_range"])

    def assembly(self) -> str:
        return to_assembly(self.text)

    def slots(self, args: tuple[Any, ...]) -> bytes:
        packed = b""
        for type, arg in zip(self.types, args, strict=True):
            if isinstance(arg, np.ndarray):
                packed += struct.pack("<q", arg.ctypes.data)
            else:
                packed += np.asarray(arg).astype(NUMPY[type]).tobytes().ljust(8, b"\0")
        return packed

    def __call__(self, *args: Any, grid: tuple[int, ...] = (1,)) -> int:
        sizes = (*grid, 1, 1)[:3]
        slots = self.slots(args)
        arena = np.zeros(self.arena_bytes + 64, np.uint8)
        start = -(-arena.ctypes.data // 64) * 64
        return self.function(slots, 0, int(np.prod(sizes)), *sizes, start)


def compile_text(text: str, **options: Any) -> Kernel:
    """The one kernel of a module."""
    (kernel,) = compiled(text, **options)
    return kernel


def compile_texts(texts: Iterable[str]) -> list[Kernel]:
    """Several kernels called `@k` as one module, which takes less time."""
    return compiled("\n".join(text.replace("@k(", f"@k{number}(") for number, text in enumerate(texts)))


def compiled(text: str, **options: Any) -> list[Kernel]:
    module = parse_module(text)
    kernels = [
        op
        for op in module.body.block.ops
        if isinstance(op, tt.FuncOp) and (op.sym_visibility is None or op.sym_visibility.data != "private")
    ]
    made = emit_module(module, HostTarget.detect(), **options)
    library = load_object(to_object(made, verify=True), [f"{kernel.sym_name.data}_range" for kernel in kernels])
    return [Kernel(kernel, made, arena_size(module), library) for kernel in kernels]
