"""Arguments on which GPU code shows what it does: loops run often enough to fill and empty a pipeline, tiles overhang.

given, grid = inputs("matmul", module)           names of the kernel's parameters to values
"""

from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from tilework.inspect.check_each import public_functions
from tilework.ir.types import PointerType, TensorDescType, element_type
from tilework.oracles.evaluator.values import storage

Given = dict[str, Any]
Grid = tuple[int, int, int]


def parameter_types(module: ModuleOp) -> dict[str, Any]:
    """The types of the kernel's parameters by name; of a descriptor and its sizes, which share one, the first
    counts."""
    (function,) = public_functions(module)
    types: dict[str, Any] = {}
    for argument in function.regions[0].blocks[0].args:
        types.setdefault(argument.name_hint or str(argument.index), argument.type)
    return types


def dtype_of(type: Any) -> np.dtype[Any]:
    if isinstance(type, TensorDescType):
        return storage(element_type(type.block))
    assert isinstance(type, PointerType)
    return storage(type.pointee)


def generated(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    if dtype.kind == "i":
        return rng.integers(-100, 100, size=shape).astype(dtype)
    return (rng.normal(size=shape) * 0.5).astype(dtype)


def matmul_inputs(types: dict[str, Any], rows: int, columns: int, depth: int) -> tuple[Given, Grid]:
    rng = np.random.default_rng(7)
    shapes = {"a": (rows, depth), "b": (depth, columns), "c": (rows, columns)}
    given: Given = {"M": rows, "N": columns, "K": depth, "stride_am": depth, "stride_bk": columns, "stride_cm": columns}
    for name, shape in shapes.items():
        array = generated(rng, shape, dtype_of(types[name]))
        given[name] = (array, shape, (shape[1], 1)) if isinstance(types[name], TensorDescType) else array
    return {name: value for name, value in given.items() if name in types}, (1, 1, 1)


def attention_inputs(types: dict[str, Any], length: int, width: int) -> tuple[Given, Grid]:
    rng = np.random.default_rng(7)
    given: Given = {name: generated(rng, (length, width), dtype_of(types[name])) for name in ("Q", "K", "V", "O")}
    return {**given, "scale_log2e": 0.2, "stride_h": length * width, "stride_s": width, "N": length}, (1, 1, 1)


def row_inputs(types: dict[str, Any], width: int) -> tuple[Given, Grid]:
    rng = np.random.default_rng(7)
    given: Given = {}
    for name, type in types.items():
        if isinstance(type, PointerType):
            given[name] = generated(rng, (2 * width,), storage(type.pointee))
    numbers = {
        "n": width + 16,
        "n_cols": width - 16,
        "stride": width,
        "stride_in": width,
        "stride_out": width,
        "eps": 1e-3,
    }
    return {**given, **{name: value for name, value in numbers.items() if name in types}}, (2, 1, 1)


def inputs(name: str, module: ModuleOp) -> tuple[Given, Grid]:
    """Arguments and grid for a kernel of the reference, or one like it, by the beginning of its name."""
    types = parameter_types(module)
    if name.startswith("matmul"):
        return matmul_inputs(types, 48, 48, 64 * 7 + 16)
    if name.startswith("attention"):
        return attention_inputs(types, 384, 128 if "causal" in name else 64)
    if name.startswith("transpose"):
        arrays: Given = {
            key: generated(np.random.default_rng(7), (80 * 96,), dtype_of(types[key])) for key in ("x", "y")
        }
        return {**arrays, "M": 80, "N": 96}, (2, 2, 1)
    return row_inputs(types, {"softmax": 4096, "layernorm": 8192, "cumsum": 2048, "sort": 64}.get(name, 1024))
