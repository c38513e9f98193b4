"""`InterpretedFunction`: the result of `@jit` for kernels that are interpreted.

    @jit(interpret=True)
    def add(x, y, out, n, BLOCK: tl.constexpr): ...

    add[(4,)](x, y, out, n, BLOCK=64)       # runs the Python of `add` four times, on NumPy values

Programs run one after another, the first grid axis outermost; if the order of programs is guaranteed (`reproducible`,
ordered atomics) it is the innermost. An exception in the kernel is raised as an `InterpreterError` (`failures.py`)
whose `__cause__` is that exception, with the traceback through the lines of the kernel.
"""

import ast
import bdb
import inspect
import itertools
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from tilework import knobs
from tilework.errors import ArgumentError, OptionError, did_you_mean, warn_returned
from tilework.language.advice import not_jit
from tilework.language.compile_time import ACTIVE
from tilework.language.function import BoundJITMethod, JITCallable, JITFunction
from tilework.language.grid import BoundLaunch, GridArguments, grid_extent
from tilework.language.target_info import IS_INTERPRETED
from tilework.numerics.formats import DOT_PRECISIONS, FP8_TYPES
from tilework.oracles.interpreter.allowed_memory import MARK, Memory
from tilework.oracles.interpreter.arguments import Arguments
from tilework.oracles.interpreter.calls import KernelRuntime, scalar_of
from tilework.oracles.interpreter.failures import failure
from tilework.oracles.interpreter.operators import SUM_ORDER
from tilework.oracles.interpreter.rewriter import RUNTIME, FunctionRewriter, wrapper_of
from tilework.oracles.interpreter.semantic import Semantic
from tilework.oracles.interpreter.tensors import plain
from tilework.target import LAUNCH_SIZES, launch_size

REFUSED = ("device", "device_type", "stream")
COMPILER_OPTIONS = frozenset(
    "num_warps num_ctas num_stages maxnreg arch ptx_version ptx_options ir_override enable_fp_fusion enable_reflect_ftz"
    " launch_cooperative_grid launch_pdl auto_tma debug sanitize sanitize_overflow reproducible extern_libs"
    " supported_fp8_dtypes deprecated_fp8_dot_operand_dtypes default_dot_input_precision allowed_dot_input_precisions"
    " max_num_imprecise_acc_default backend_name warp_size instrumentation_mode cluster_dims waves_per_eu"
    " matrix_instr_nonkdim kpack allow_flush_denorm schedule_hint llvm_fn_attrs min_shared_mem may_alias"
    " clc fpsan_homomorphic_casts".split()
)


@dataclass(frozen=True)
class Options:
    """The launch options that kernels and builtins can query."""

    num_warps: int = 4
    num_ctas: int = 1
    num_stages: int = 3
    debug: bool = False
    sanitize: bool = False
    sanitize_overflow: bool = True
    reproducible: bool = False
    arch: int | str | None = None
    backend_name: str = "interpreter"
    supported_fp8_dtypes: tuple[str, ...] = FP8_TYPES
    deprecated_fp8_dot_operand_dtypes: tuple[str, ...] = ()
    default_dot_input_precision: str = "tf32"
    allowed_dot_input_precisions: tuple[str, ...] = DOT_PRECISIONS
    max_num_imprecise_acc_default: int = 0
    beyond_triton: str = "allow"  # or "error"
    f32_default: ClassVar[str | None] = None

    @staticmethod
    def min_dot_size(lhs: Any, rhs: Any) -> tuple[int, int, int]:
        """NumPy multiplies blocks of any size."""
        return 1, 1, 1


class Interpreter:
    """One launch: the functions it has called, each with its current globals, and the object for builtins.

    It is also the `_generator` of builtins, which use `call_JitFunction` and `call`.
    """

    semantic_class: Callable[..., Semantic] = Semantic  # tools for Triton replace it

    def __init__(self, options: Options, grid: tuple[int, int, int]) -> None:
        self.memory = Memory()
        self.semantic = self.semantic_class(options, self.memory, grid)
        self.options = options
        self.runtime = KernelRuntime(self.semantic, self)
        self.functions: dict[int, Callable[..., Any]] = {}
        # implement ``bool(tensor)``, ``for i in tl.range(n)`` and ``int(tensor)`` in Python code inside a kernel
        self.truth, self.iterate, self.number = self.runtime.truth, self.runtime.iterate, scalar_of

    def python_function(self, fn: JITCallable) -> Callable[..., Any]:
        """Return the rewritten form of a jit function."""
        made = self.functions.get(id(fn))
        if made is None:
            make = rewritten(fn)
            scope = fn.get_capture_scope()
            namespace = {name: plain(value) for name, value in scope.items()}
            namespace |= {RUNTIME: self.runtime, MARK: fn}
            made = self.functions[id(fn)] = make(namespace)
        return made

    def call_JitFunction(  # noqa: N802  # the name that builtins call
        self, fn: Any, args: Sequence[Any], kwargs: Mapping[str, Any], caller_context: Any = None
    ) -> Any:
        """Call a jit function; numbers remain compile-time values in it."""
        if isinstance(fn, BoundJITMethod):
            args, fn = [fn.__self__, *args], fn.__func__
        if not hasattr(fn, "get_capture_scope"):
            raise TypeError(not_jit(fn))
        named = {name: passed(value) for name, value in kwargs.items()}
        return self.python_function(fn)(*map(passed, args), **named)

    def call(self, fn: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call any callable of a kernel."""
        return self.runtime.call(fn, *args, **kwargs)


def rewritten(fn: JITCallable) -> Callable[[dict[str, Any]], Callable[..., Any]]:
    """Return the factory of a function's Python form, cached until its source or its line changes."""
    cached, text = fn.__dict__.get("_interpreted"), (fn.src, fn.def_line) if fn.has_source else None
    if cached is None or cached[0] != text:
        cached = fn.__dict__["_interpreted"] = (text, FunctionRewriter(fn).rewrite())
    return cached[1]


def call_of(kernel: Callable[..., None], values: Mapping[str, Any]) -> Callable[[], None]:
    """Return a function that runs a kernel with values for all of its parameters, of which some have no name for the
    caller and some no position."""
    parameters = inspect.signature(kernel).parameters
    named = [name for name in values if parameters[name].kind is inspect.Parameter.KEYWORD_ONLY]
    placed = [name for name in values if name not in named]
    return lambda: kernel(*(passed(values[name]) for name in placed), **{name: passed(values[name]) for name in named})


def passed(value: Any) -> Any:
    """Return an argument of a jit function; an aggregate is passed by value, as its fields."""
    value = plain(value)
    if not isinstance(value, type) and getattr(value, "__triton_aggregate__", False):
        handles: list[Any] = []
        value._flatten_ir(handles)
        value, _ = value.type._unflatten_ir(handles, 0)
    return value


def has_ordered_atomics(fn: Callable[..., Any], seen: frozenset[Any] = frozenset()) -> bool:
    """Return True if a function, or one that it calls, may have ordered atomics: it passes the argument `ordered`."""
    code = getattr(fn, "__code__", None)
    if code is None or code in seen:
        return False
    if any("ordered" in constant for constant in code.co_consts if isinstance(constant, tuple)):
        return True
    called = (getattr(fn, "__globals__", {}).get(name) for name in code.co_names)
    return any(has_ordered_atomics(callee.fn, seen | {code}) for callee in called if isinstance(callee, JITCallable))


def returning_line(fn: JITCallable) -> int:
    """Return the first line of a function that returns a value."""
    nodes = ast.walk(fn.parse()) if fn.has_source else ()
    lines = [node.lineno for node in nodes if isinstance(node, ast.Return) and node.value is not None]
    return fn.def_line + min(lines, default=1) - 1


def is_ordered(interpreter: Interpreter, fn: Callable[..., Any]) -> bool:
    """Return True if the order of programs is guaranteed."""
    return interpreter.options.reproducible or has_ordered_atomics(fn)


def programs_of(grid: tuple[int, int, int], is_ordered: bool) -> Sequence[tuple[int, int, int]]:
    """Return the programs, the first axis outermost as in Triton's interpreter; innermost if the order is
    guaranteed."""
    x, y, z = map(range, grid)
    programs = list(itertools.product(x, y, z))
    if SUM_ORDER.get() == "backward" and not is_ordered:  # atomics add in the order of programs
        return programs[::-1]
    return sorted(programs, key=lambda program: program[::-1]) if is_ordered else programs


class InterpretedLaunch:
    """The result of a launch of an interpreted kernel.

    An attribute of a compiled kernel (`asm`, `name`, `metadata` ...) compiles the kernel for such a launch.
    """

    def __init__(self, compiled_form: Callable[[], Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self._launch = compiled_form, args, kwargs
        self._kernel: Any = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # Python and its tools look for these in any object
            raise AttributeError(f"the result of an interpreted launch has no {name}")
        if self._kernel is None:
            compiled_form, args, kwargs = self._launch
            self._kernel = compiled_form().warmup(*args, grid=(1,), **kwargs)
        return getattr(self._kernel, name)


class InterpretedFunction(JITFunction):
    """A kernel, or a function for kernels, that runs as Python. See the module docstring."""

    needs_source = False
    compiled_form: Callable[[], Any] | None = None  # returns the compiled kernel of the same function
    rewritten_fn: ClassVar[MutableMapping[Any, Callable[..., Any]]] = WeakKeyDictionary()
    sanitize: bool | None = None
    reproducible: bool | None = None

    def __init__(self, fn: Callable[..., Any], **jit_kwargs: Any) -> None:
        super().__init__(fn, **jit_kwargs)
        self.kwargs = jit_kwargs
        self.rewriter = FunctionRewriter(self)

    def rewrite(self) -> Callable[..., Any]:
        """Return the Python function that a launch would run; its operations need a launch around it."""
        namespace = {name: plain(value) for name, value in self.get_capture_scope().items()}
        made = self.rewritten_fn[self.fn] = rewritten(self)(namespace | {MARK: self})
        return made

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return partial(self.run, grid=grid, warmup=False)

    def bind(self, *args: Any, grid: Any, **kwargs: Any) -> Callable[..., Any]:
        """Return a launch that is called with only the arguments that change."""
        return BoundLaunch(self, self.arg_names, args, grid, kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Inside a kernel, an ordinary call."""
        active = ACTIVE.get()
        return super().__call__(*args, **kwargs) if active is None else active.call_JitFunction(self, args, kwargs)

    def explain(self, *args: Any, **kwargs: Any) -> Any:
        """Raise an error, because nothing is compiled."""
        raise RuntimeError(
            f"{self.__name__} is interpreted (interpret=True, or TRITON_INTERPRET=1): nothing of it is compiled"
        )

    def warmup(self, *args: Any, grid: Any = None, **kwargs: Any) -> None:
        """Check the arguments; there is nothing to compile."""
        self.run(*args, grid=grid, warmup=True, **kwargs)

    def run(self, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> "InterpretedLaunch | None":
        """Run the kernel for every program of `grid`."""
        for hook in self.pre_run_hooks:
            hook(*args, **kwargs)
        bound, options = self.bound_values(args, kwargs)
        if warmup:
            return None
        shape = grid_extent(grid(GridArguments(bound, self.__name__)) if callable(grid) else grid)
        interpreter = Interpreter(options, shape)
        token, outside = ACTIVE.set(interpreter), IS_INTERPRETED.set(True)
        try:
            with np.errstate(all="ignore"):
                self.run_programs(interpreter, bound, shape)
        finally:
            ACTIVE.reset(token)
            IS_INTERPRETED.reset(outside)
        return None if self.compiled_form is None else InterpretedLaunch(self.compiled_form, args, kwargs)

    def run_programs(self, interpreter: Interpreter, bound: Mapping[str, Any], grid: tuple[int, int, int]) -> None:
        convert = Arguments(interpreter.semantic, interpreter.memory).convert
        values = {param.name: convert(param, bound[param.name]) for param in self.params}
        try:
            self.execute(interpreter, values, grid)
        except bdb.BdbQuit:
            raise
        except Exception as error:
            raise failure(error) from error

    def execute(self, interpreter: Interpreter, values: Mapping[str, Any], grid: tuple[int, int, int]) -> None:
        """Call the kernel for each program; tools for Triton replace this loop."""
        call = call_of(self.program(interpreter), values)
        for program in programs_of(grid, is_ordered(interpreter, self.fn)):
            interpreter.semantic.enter_program(program)
            call()

    def program(self, interpreter: Interpreter) -> Callable[..., None]:
        """Return the function that runs one program; it warns if the kernel returns a value."""
        kernel = interpreter.python_function(self)

        def run(*args: Any, **kwargs: Any) -> None:
            if kernel(*args, **kwargs) is not None:
                warn_returned(self.__name__, self.where.file, returning_line(self))

        return wrapper_of(kernel, run)

    def bound_values(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], Options]:
        """Return the value of every parameter, and the options among the keywords, some of which may also be
        parameters."""
        for name in REFUSED:
            assert name not in kwargs, f"{name} option is deprecated; current {name} will be used"
        own = {name: value for name, value in kwargs.items() if name in self.signature.parameters}
        rest = {name: value for name, value in kwargs.items() if name not in own}
        if unknown := [name for name in rest if name not in COMPILER_OPTIONS]:
            near = did_you_mean(unknown[0], [*self.signature.parameters, *COMPILER_OPTIONS])
            raise OptionError(f"Keyword argument {unknown[0]} was specified but unrecognised{near}")
        try:
            bound = self.signature.bind(*args, **own)
        except TypeError as error:
            raise ArgumentError(f"{self.__name__}: {error}") from None
        bound.apply_defaults()
        shared = {name: plain(value) for name, value in own.items() if name in COMPILER_OPTIONS}
        given = {**{name: value for name, value in shared.items() if isinstance(value, int | str)}, **rest}
        known = {name: given[name] for name in Options.__dataclass_fields__ if given.get(name) is not None}
        known |= {name: launch_size(name, known[name]) for name in LAUNCH_SIZES if name in known}
        if self.debug is not None:
            known.setdefault("debug", self.debug)
        known.setdefault("sanitize", bool(self.sanitize))
        known.setdefault("reproducible", bool(self.reproducible))
        known.setdefault("beyond_triton", "error" if knobs.language.strict_triton else "allow")
        return dict(bound.arguments), Options(**known)
