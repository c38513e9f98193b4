"""Kernels compiled, executed on NumPy and compared: the frontend before passes, and after them.

    out = np.zeros(4, np.int32)
    run(kernel, out, 3, BLOCK=4)      # types come from the arguments; a `tl.constexpr` parameter takes its value

`run` executes the module as the frontend made it and again after the TTIR passes, on copies of the arrays, checks that
both give the same, and leaves the result in the arrays. `error` gives the CompilationError of a kernel that must fail.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from tests.frontend.semantic.conftest import verify
from tilework.errors import CompilationError
from tilework.frontend.generator import compile_to_ttir
from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module
from tilework.language.core import constexpr
from tilework.language.function import JITCallable, JITFunction
from tilework.oracles.evaluator import evaluate
from tilework.runtime.compile.sources import frontend_options
from tilework.target import Target
from tilework.targets.base import GPUTarget
from tilework.transforms.registry import get_pass, ttir_pipeline

OPTIONS = frontend_options(GPUTarget("cuda", 90, 32), {})


def code(value: Any) -> Any:
    """The signature entry of an argument."""
    if value is None or isinstance(value, constexpr | JITCallable | str | list):
        return "constexpr"
    if isinstance(value, tuple):
        codes = [code(item) for item in value]
        return type(value)(*codes) if hasattr(value, "_fields") else tuple(codes)
    if isinstance(value, np.ndarray):
        name: str = value.dtype.name
        return "*" + {"bool": "i1"}.get(name, name.replace("uint", "u").replace("int", "i").replace("float", "fp"))
    if isinstance(value, bool):
        return "u1"
    if isinstance(value, int):
        return "i32" if -(2**31) <= value < 2**31 else "i64"
    return "fp32"


def constants(value: Any, path: tuple[int, ...]) -> dict[tuple[int, ...], Any]:
    """The compile-time leaves of an argument."""
    if isinstance(value, tuple):
        return {key: item for i, part in enumerate(value) for key, item in constants(part, (*path, i)).items()}
    return {path: value} if code(value) == "constexpr" else {}


def leaves(value: Any) -> list[Any]:
    """The run-time leaves of an argument."""
    if isinstance(value, tuple):
        return [leaf for item in value for leaf in leaves(item)]
    return [] if code(value) == "constexpr" else [value]


def specialize(fn: JITFunction, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[dict, dict, list[Any]]:
    """Signature, constants and run-time arguments of a call."""
    bound = fn.signature.bind(*args, **kwargs)
    bound.apply_defaults()
    signature: dict[str, Any] = {}
    known: dict[Any, Any] = {}
    runtime: list[Any] = []
    for param in fn.params:
        value = bound.arguments[param.name]
        if param.is_constexpr:
            signature[param.name] = "constexpr"
            known[(param.num,)] = value
        else:
            signature[param.name] = code(value)
            known |= constants(value, (param.num,))
            runtime += leaves(value)
    return signature, known, runtime


def ttir(fn: JITFunction, *args: Any, options: Mapping[str, Any] | None = None, **kwargs: Any) -> ModuleOp:
    """The module of a call, before any pass; verified, and read back from its own text."""
    signature, known, _ = specialize(fn, args, kwargs)
    module = compile_to_ttir(fn, signature, known, None, replace(OPTIONS, **(options or {})))
    verify(module)
    text = print_module(module)
    assert print_module(parse_module(text)) == text
    return module


def text(fn: JITFunction, *args: Any, debuginfo: bool = False, **kwargs: Any) -> str:
    """The text of a call's module, before any pass."""
    return print_module(ttir(fn, *args, **kwargs), debuginfo=debuginfo)


def after_passes(module: ModuleOp) -> ModuleOp:
    """`module` through the TTIR passes of an sm_90."""
    for name in ttir_pipeline(Target.parse("cuda:90")):
        get_pass(name)().run(module)
    verify(module)
    return module


def run(fn: JITFunction, *args: Any, grid: tuple[int, ...] = (1,), **kwargs: Any) -> None:
    """Execute a call before and after the passes; the arrays among `args` hold the result."""
    run_all(fn, [args], grid, **kwargs)


def run_all(fn: JITFunction, calls: Sequence[tuple[Any, ...]], grid: tuple[int, ...] = (1,), **kwargs: Any) -> None:
    """`run` for several calls whose arguments differ in nothing but their values: the kernel is compiled once."""
    signature, known, _ = specialize(fn, calls[0], kwargs)
    runtimes = []
    for args in calls:
        *specialized, runtime = specialize(fn, args, kwargs)
        assert specialized == [signature, known], f"{args} has another signature than {calls[0]}"
        runtimes.append(runtime)
    module = ttir(fn, *calls[0], **kwargs)
    copies = [[value.copy() if isinstance(value, np.ndarray) else value for value in own] for own in runtimes]
    for values in copies:
        evaluate(module, fn.__name__, values, grid)
    after_passes(module)
    for runtime, values in zip(runtimes, copies, strict=True):
        evaluate(module, fn.__name__, runtime, grid)
        for before, after in zip(values, runtime, strict=True):
            if isinstance(after, np.ndarray):
                np.testing.assert_array_equal(before, after)


def result(fn: JITFunction, *args: Any, size: int = 1, dtype: Any = np.int32, **kwargs: Any) -> list[Any]:
    """Return what a kernel writes through its first parameter, into an array that starts as -1."""
    out = np.full(size, -1, dtype)
    run(fn, out, *args, **kwargs)
    return out.tolist()


def error(fn: JITFunction, *args: Any, **kwargs: Any) -> CompilationError:
    """The error of a kernel that must not compile where Triton's language ends."""
    options = {"beyond_triton": "error", **kwargs.pop("options", {})}
    with pytest.raises(CompilationError) as caught:
        ttir(fn, *args, options=options, **kwargs)
    return caught.value


def message_of(problem: CompilationError) -> str:
    """The text of the innermost error, without the source."""
    last: Any = problem
    while isinstance(last.__cause__, CompilationError):
        last = last.__cause__
    return last.error_message or ""


def innermost(problem: BaseException) -> BaseException:
    """The last of the chain of causes."""
    while problem.__cause__ is not None:
        problem = problem.__cause__
    return problem
