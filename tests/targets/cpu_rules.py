"""Run single ops of the stage `ttcir` on NumPy arrays: a function whose parameters are buffers and scalars, its ops
lowered by their rules and compiled, without the rest of the backend.

    run("ttc.gather %a, %b into %c {axis = 0 : i32} : ...", {"a": x, "b": index, "c": out})
"""

import ctypes
from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np

from tilework.ir import tt, ttc
from tilework.ir.parser import parse_module
from tilework.targets.cpu.lower.codegen import MORE_RULES, with_conversions
from tilework.targets.cpu.lower.lowering import Lowering
from tilework.targets.cpu.run.interface import CONTROL, PRINT_SYMBOL
from tilework.targets.cpu.run.printing import print_address
from tilework.targets.cpu.target import HostTarget
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.compile import data_layout, host_target_machine, to_object
from tilework.targets.llvm.module import Module
from tilework.targets.llvm.object_loader import load_object
from tilework.targets.llvm.rules import load_rules
from tilework.targets.llvm.types import i32, ptr, void

ELEMENTS: dict[Any, str] = {
    np.dtype(np.bool_): "i1",
    np.dtype(np.int8): "i8",
    np.dtype(np.int16): "i16",
    np.dtype(np.int32): "i32",
    np.dtype(np.int64): "i64",
    np.dtype(np.float16): "f16",
    np.dtype(np.float32): "f32",
    np.dtype(np.float64): "f64",
    np.dtype(ml_dtypes.bfloat16): "bf16",
    np.dtype(ml_dtypes.float8_e4m3fn): "f8E4M3FN",
    np.dtype(ml_dtypes.float8_e4m3fnuz): "f8E4M3FNUZ",
    np.dtype(ml_dtypes.float8_e5m2): "f8E5M2",
    np.dtype(ml_dtypes.float8_e5m2fnuz): "f8E5M2FNUZ",
}
ARENA = 4 << 20


def buffer(array: np.ndarray) -> str:
    """``!ttc.buf<4x8xf32>``."""
    return f"!ttc.buf<{''.join(f'{size}x' for size in array.shape)}{ELEMENTS[array.dtype]}>"


def module_text(body: str, arrays: Mapping[str, np.ndarray], scalars: Mapping[str, np.ndarray] | None = None) -> str:
    declared = [f"%{name}: {buffer(array)}" for name, array in arrays.items()]
    declared += [f"%{name}: {ELEMENTS[array.dtype]}" for name, array in (scalars or {}).items()]
    parameters = ", ".join(declared)
    return f"module {{\n  tt.func private @f({parameters}) {{\n{body}\n    tt.return\n  }}\n}}"


def lowered(text: str, target: HostTarget) -> tuple[Module, Lowering]:
    """``void f(ptr args, i32 x, i32 y, i32 z, ptr arena)``, args being one address per parameter."""
    source = parse_module(text)
    source.verify()
    (function,) = (op for op in source.ops if isinstance(op, tt.FuncOp))
    module = Module("test", data_layout=data_layout(host_target_machine()) if target == HostTarget.detect() else "")
    made = module.function("f", void, [(ptr, "args"), (i32, "x"), (i32, "y"), (i32, "z"), (ptr, "arena")])
    b = Builder(made)
    load_rules(MORE_RULES, source)
    low = Lowering(module, b, target)
    low.program, low.arena, low.scratch_offset = made.args[1:4], made.args[4], 64  # type: ignore[assignment]
    entry = function.regions[0].blocks[0]
    for position, argument in enumerate(entry.args):
        address = b.load(ptr, b.gep(made.args[0], position * 8), align=8)
        is_buffer = isinstance(argument.type, ttc.BufferType)
        low[argument] = address if is_buffer else low.read(argument.type, address)
    for op in entry.ops:
        if not isinstance(op, tt.ReturnOp):
            low.lower(op)
    b.ret()
    return module, low


def run(
    body: str,
    arrays: Mapping[str, np.ndarray],
    scalars: Mapping[str, np.ndarray] | None = None,
    program: tuple[int, int, int] = (0, 0, 0),
    target: HostTarget | None = None,
) -> int:
    """Execute ops on arrays (by name) and scalars (arrays of one element); the fault code.

    `target` is this machine, or one like it with other registers.
    """
    target = target or HostTarget.detect()
    module, low = lowered(module_text(body, arrays, scalars), target)
    machine = host_target_machine(features=",".join(f"+{name}" for name in sorted(target.features)))
    data = to_object(with_conversions(module.text(), target), 1, machine, verify=True)
    library = load_object(data, ["f"], {PRINT_SYMBOL: print_address()})
    assert low.scratch_bytes + 64 <= ARENA
    given = [*arrays.values(), *(scalars or {}).values()]
    assert all(array.flags.c_contiguous for array in given)
    addresses = np.array([array.ctypes.data for array in given], np.int64)
    arena = np.full(64 + low.scratch_bytes + 64, 0xCD, np.uint8)
    start = -(-arena.ctypes.data // 64) * 64
    ctypes.memset(start, 0, CONTROL)  # no fault, and no worker threads
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *[ctypes.c_int32] * 3, ctypes.c_void_p)(library["f"])
    function(addresses.ctypes.data, *program, start)
    return ctypes.c_int32.from_address(start).value
