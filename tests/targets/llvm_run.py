"""Compile small functions made with the builder and run them on NumPy arrays."""

import ctypes
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cache
from typing import Any

import numpy as np

from tilework.targets.llvm.apart import apart
from tilework.targets.llvm.builder import Builder
from tilework.targets.llvm.compile import data_layout, host_target_machine, opened, optimize, to_object
from tilework.targets.llvm.math.table import FUNCTIONS
from tilework.targets.llvm.module import Module
from tilework.targets.llvm.object_loader import load_object
from tilework.targets.llvm.types import Type, f16, f32, f64, i1, i8, i16, i32, i64, ptr, vector, void
from tilework.targets.llvm.values import Value

NUMPY: dict[Type, Any] = {f16: np.float16, f32: np.float32, f64: np.float64}
NUMPY |= {i1: np.uint8, i8: np.int8, i16: np.int16, i32: np.int32, i64: np.int64}


def new_module(name: str = "test") -> Module:
    return Module(name, data_layout=data_layout(host_target_machine()))


@apart
def to_assembly(text: str, level: int = 0, machine: Any = None, *, verify: bool = False) -> str:
    """Assembly language; for the machine of an NVIDIA GPU that is PTX."""
    machine = host_target_machine() if machine is None else machine
    with ExitStack() as owner:
        module = opened(text, owner, verify)
        optimize(module, level, machine)
        return machine.emit_assembly(module)


def load(module: Module, name: str, count: int) -> Callable[..., None]:
    """The function `name` of a module, taking `count` addresses or 64-bit integers."""
    library = load_object(to_object(module.text(), verify=True), [name])
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * count)(library[name])
    function.library = library  # type: ignore[attr-defined]
    return function


def run(arrays: Sequence[np.ndarray], body: Callable[..., None]) -> None:
    """Write a function of pointers with ``body(builder, *pointers)``, and call it on the arrays."""
    module = new_module()
    function = module.function("kernel", void, [(ptr, f"p{i}") for i in range(len(arrays))])
    b = Builder(function)
    body(b, *function.args)
    if not b.block.terminated:
        b.ret()
    load(module, "kernel", len(arrays))(*[array.ctypes.data for array in arrays])


def evaluate(result: Type, body: Callable[[Builder], Value]) -> Any:
    """The value that a body computes, as a NumPy array of its lanes."""
    out = np.zeros(result.count, NUMPY[result.scalar])

    def store(b: Builder, target: Value) -> None:
        value = body(b)
        b.store(b.zext(value, value.type.with_scalar(i8)) if result.scalar is i1 else value, target, align=1)

    run([out], store)
    return out


def opaque(b: Builder, value: Value) -> Value:
    """The same number, but the builder does not know it: read back from memory."""
    slot = b.alloca(value.type)
    b.store(value, slot, align=1)
    return b.load(value.type, slot, align=1, volatile=True)


def elementwise(name: str, types: Sequence[Type], width: int = 4) -> Callable[..., np.ndarray]:
    """FUNCTIONS[name] over arrays, in vectors of `width` lanes (1: scalars)."""
    return compiled_elementwise(name, tuple(types), width)


@cache
def compiled_elementwise(name: str, types: tuple[Type, ...], width: int) -> Callable[..., np.ndarray]:
    module = new_module(name)
    function = module.function("kernel", void, [(ptr, f"p{i}") for i in range(len(types) + 1)] + [(i64, "n")])
    b = Builder(function)
    *pointers, out, count = function.args
    with b.loop(0, count, width) as index:
        args = [
            b.load(vector(type, width) if width > 1 else type, b.gep(pointer, index, type), align=1)
            for pointer, type in zip(pointers, types)
        ]
        value = FUNCTIONS[name](b, args)
        if value.type.scalar is i1:
            value = b.zext(value, value.type.with_scalar(i8))
        b.store(value, b.gep(out, index, value.type.scalar), align=1)
    b.ret()
    result = NUMPY[value.type.scalar]
    compiled = load(module, "kernel", len(types) + 2)

    def call(*arrays: Any) -> np.ndarray:
        given = [np.ascontiguousarray(array, NUMPY[type]) for array, type in zip(np.broadcast_arrays(*arrays), types)]
        size = len(given[0])
        padded = [np.concatenate([array, np.ones(-size % width, array.dtype)]) for array in given]
        answer = np.zeros(len(padded[0]), result)
        compiled(*[array.ctypes.data for array in padded], answer.ctypes.data, len(answer))
        return answer[:size]

    return call


def ulps(got: np.ndarray, high: np.ndarray, low: np.ndarray | float = 0.0) -> np.ndarray:
    """Distance of `got` from the exact high + low, in units of the last place of `got`'s type."""
    with np.errstate(all="ignore"):
        rounded = high.astype(got.dtype)
        finite = np.isfinite(rounded)
        unit = np.spacing(np.abs(np.where(finite, rounded, 1)).astype(got.dtype)).astype(np.float64)
        error = np.abs((got.astype(np.float64) - high) - low) / unit
        same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
        return np.where(finite, np.where(np.isfinite(error), error, np.inf), np.where(same, 0.0, np.inf))
