"""`triton.runtime.interpreter`: its classes and functions under Triton's names, for tools that look into kernels.

A tool replaces a method or a name here, and every later launch in this process goes through it:

    GridExecutor.__call__ = traced                              # the loop over the programs of a grid
    interpreter_builder.create_masked_load = traced             # an operation, on `TensorHandle`s (`interpreter_builder.py`)
    interpreter._patch_lang = traced                            # called before the programs of a launch run

What is not replaced runs as it always does, without a detour.
"""

# pyright: reportUnusedImport=false

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilework.errors import InterpreterError
from tilework.language import core as tl
from tilework.language.active import ACTIVE
from tilework.language.parameters import KernelParam
from tilework.language.semantic import Semantic as TritonSemantic
from tilework.oracles.interpreter import AccessError, InterpretedFunction, register_memory
from tilework.oracles.interpreter.arguments import Arguments
from tilework.oracles.interpreter.formats import storage
from tilework.oracles.interpreter.function import (
    COMPILER_OPTIONS,
    FP8_TYPES,
    Interpreter,
    is_ordered,
    passed,
    programs_of,
)
from tilework.oracles.interpreter.function import Options as LaunchOptions
from tilework.oracles.interpreter.rewriter import FunctionRewriter
from tilework.oracles.interpreter.rewriter import Rewriter as ASTTransformer
from tilework.runtime.launch.python.jit import KernelInterface
from tilework.tools.tensor_descriptor import TensorDescriptor
from tilework.triton.runtime.interpreter_builder import (
    BlockPointerHandle,
    InterpreterBuilder,
    TensorDescHandle,
    TensorHandle,
    interpreter_builder,
    make_semantic,
    unwrapped,
)

RESERVED_KWS = [*sorted(COMPILER_OPTIONS), "grid", "warmup"]


@dataclass(frozen=True)
class InterpreterOptions:
    """What kernels may ask about the compiler while they are interpreted."""

    extern_libs: dict[str, str] | None = None
    debug: bool = False
    sanitize_overflow: bool = True
    arch: str | None = None
    supported_fp8_dtypes: tuple[str, ...] = FP8_TYPES
    deprecated_fp8_dot_operand_dtypes: tuple[str, ...] = ()
    default_dot_input_precision: str = "tf32"
    allowed_dot_input_precisions: tuple[str, ...] = ("tf32", "tf32x3", "ieee")
    max_num_imprecise_acc_default: int = 0
    backend_name: str = "interpreter"


class _LangPatchScope:
    """Attributes that were replaced for the time of a launch."""

    def __init__(self) -> None:
        self._changes: list[tuple[Any, str, Any]] = []

    def set_attr(self, obj: object, name: str, value: object) -> None:
        self._changes.append((obj, name, getattr(obj, name, _MISSING)))
        setattr(obj, name, value)

    def restore(self) -> None:
        """Put everything back, the last change first."""
        while self._changes:
            obj, name, value = self._changes.pop()
            delattr(obj, name) if value is _MISSING else setattr(obj, name, value)


_MISSING = object()


def _patch_lang(fn: Any) -> _LangPatchScope:
    """Called before the programs of a launch; builtins find the interpreter by themselves, so nothing has to be patched."""
    return _LangPatchScope()


class GridExecutor:
    """One launch: `fn` for every program of `grid`. The arrays are those of the host, so nothing is copied."""

    def __init__(
        self, fn: Callable[..., Any], arg_names: Sequence[str], grid: Any, pre_run_hooks: Sequence[Any] = ()
    ) -> None:
        self.fn = fn
        self.arg_names = list(arg_names)
        self.grid = grid
        self.pre_run_hooks = list(pre_run_hooks)
        notes = getattr(fn, "__annotations__", {})
        self.constexprs = [name for name in self.arg_names if "constexpr" in str(notes.get(name, ""))]
        self.is_ordered = False

    def _init_args_hst(self, args_dev: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        return list(args_dev), dict(kwargs)

    def _restore_args_dev(self, args_dev: Any, args_hst: Any, kwargs: Any, kwargs_hst: Any) -> None:
        """Nothing was copied."""

    def __call__(self, *args_dev: Any, **kwargs: Any) -> None:
        for hook in self.pre_run_hooks:
            hook(*args_dev, **kwargs)
        args_hst, kwargs_hst = self._init_args_hst(args_dev, kwargs)
        named = inspect.getcallargs(self.fn, *args_hst, **kwargs_hst)
        values = {name: value if name in self.constexprs else _implicit_cvt(value) for name, value in named.items()}
        grid = self.grid(named) if callable(self.grid) else self.grid
        x, y, z = (*((grid,) if isinstance(grid, int) else grid), 1, 1)[:3]
        interpreter_builder.set_grid_dim(x, y, z)
        for program in programs_of((x, y, z), self.is_ordered):
            interpreter_builder.set_grid_idx(*program)
            self.fn(**{name: passed(value) for name, value in values.items()})
        self._restore_args_dev(args_dev, args_hst, kwargs, kwargs_hst)


def _implicit_cvt(arg: Any) -> Any:
    """An argument of a launch as a value of the kernel; what is one already stays."""
    if arg is None or isinstance(arg, tl.base_value) or callable(arg):
        return arg
    active = ACTIVE.get()
    interpreter = active if isinstance(active, Interpreter) else STANDALONE
    parameter = KernelParam(0, inspect.Parameter("arg", inspect.Parameter.POSITIONAL_ONLY), True, True)
    return Arguments(interpreter.semantic, interpreter.memory).convert(parameter, arg)


def _unwrap_tensor(t: Any) -> Any:
    """The plain tensor under a view with another element type."""
    return t.base if hasattr(t, "base") and hasattr(t, "data_ptr") and hasattr(t.base, "data_ptr") else t


def _get_np_dtype(tt_dtype: tl.dtype) -> np.dtype[Any]:
    """The NumPy type that holds elements of a type."""
    return storage(tt_dtype.scalar)


class ReduceScanOpInterface:
    """A reduction or a scan along `axis`; `apply` takes one block or a tuple of them."""

    def __init__(self, axis: Any, combine_fn: Any) -> None:
        self.axis, self.combine_fn = axis, combine_fn

    def check_axis(self, shape: Sequence[int], axis: int | None) -> None:
        if axis is not None and not -len(shape) <= axis < len(shape):
            raise ValueError(f"axis {axis} out of bounds for shape {list(shape)}")

    def check_tensor(self, input: Any) -> None:
        for value in input if isinstance(input, tuple) else (input,):
            if not isinstance(value, tl.tensor):
                raise ValueError(f"input must be a tensor, got {type(value).__name__}")
            self.check_axis(value.handle.shape, self.axis)

    def to_tensor(self, ret: Any, dtype: tl.dtype) -> tl.tensor:
        return unwrapped(TensorHandle(np.asarray(ret, dtype=_get_np_dtype(dtype)), dtype.scalar))

    def apply(self, input: Any) -> Any:
        self.check_tensor(input)
        return self.apply_impl(input)

    def apply_impl(self, input: Any) -> Any:
        raise NotImplementedError("a reduction or a scan says what it does")


class ReduceOps(ReduceScanOpInterface):
    """`tl.reduce`."""

    def __init__(self, axis: Any, combine_fn: Any, keep_dims: bool) -> None:
        super().__init__(axis, combine_fn)
        self.keep_dims = keep_dims

    def apply_impl(self, input: Any) -> Any:
        return tl.reduce(input, self.axis, self.combine_fn, keep_dims=self.keep_dims)

    generic_reduce = apply_impl


class ScanOps(ReduceScanOpInterface):
    """`tl.associative_scan`."""

    def __init__(self, axis: Any, combine_fn: Any, reverse: bool) -> None:
        super().__init__(axis, combine_fn)
        self.reverse = reverse

    def apply_impl(self, input: Any) -> Any:
        return tl.associative_scan(input, self.axis, self.combine_fn, self.reverse)

    generic_scan = apply_impl


class ExtraFunctions:
    """What a backend replaces in the language while kernels are interpreted."""

    @staticmethod
    def _convert_custom_types(input: Any, dst_ty: Any, fp_downcast_rounding: Any, _semantic: Any) -> Any:
        return _semantic.cast(input, dst_ty, fp_downcast_rounding)


def execute_with_tools(
    self: Any, interpreter: Interpreter, values: Mapping[str, Any], grid: tuple[int, int, int]
) -> None:
    """A launch through what tools may have replaced; it is `InterpretedFunction.execute` once this module is imported."""
    names = globals()
    scope = names["_patch_lang"](self.fn)
    try:
        executor = names["GridExecutor"](self.program(interpreter), self.arg_names, grid)
        executor.constexprs = [name for name, value in values.items() if not isinstance(value, tl.base_value)]
        executor.is_ordered = is_ordered(interpreter, self.fn)
        executor(**values)
    finally:
        if hasattr(scope, "restore"):
            scope.restore()


STANDALONE = Interpreter(LaunchOptions(), (1, 1, 1))
interpreter_semantic = STANDALONE.semantic
Interpreter.semantic_class = staticmethod(make_semantic)
InterpretedFunction.execute = execute_with_tools
