"""The names of the kernel language, and the decorators that make them callable from kernels.

A *builtin* is a Python function with a hidden `_semantic` argument. The compiler supplies it; a call outside a kernel
raises an error instead:

    @builtin
    def double(x, _semantic=None):
        return _semantic.add(x, x, True)

The functions themselves are defined by family in the modules imported below: each that has `_semantic` becomes a
builtin here, and a method of `tensor` where the language has it as one (`METHODS`). The wrapper that runs at a call is
in this file, because a traceback through a builtin must show a file of this name.
"""

# ruff: noqa: F401, F403, F405
# pyright: reportUnusedImport=false

import builtins
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from tilework.language.aggregate import _aggregate, _aggregate_type, aggregate, aggregate_replace
from tilework.language.block_builtins import *
from tilework.language.block_builtins import _wrap_axis
from tilework.language.compile_time import (
    ACTIVE,
    RunTimeOnly,
    _unwrap_if_constexpr,
    _unwrap_iterable,
    _unwrap_shape,
    base_type,
    base_value,
    constexpr,
    constexpr_type,
    slice,
    slice_type,
    tuple,
    tuple_type,
)
from tilework.language.dtypes import (
    TRITON_MAX_TENSOR_NUMEL,
    bfloat16,
    block_type,
    const_pointer_type,
    dtype,
    float8e4b8,
    float8e4b15,
    float8e4nv,
    float8e5,
    float8e5b16,
    float16,
    float32,
    float64,
    get_int_dtype,
    int1,
    int8,
    int16,
    int32,
    int64,
    pi32_t,
    pointer_type,
    uint8,
    uint16,
    uint32,
    uint64,
    validate_block_shape,
    void,
)
from tilework.language.elementwise_builtins import *
from tilework.language.loops import condition, range, static_range
from tilework.language.memory_builtins import *
from tilework.language.memory_builtins import _experimental_descriptor_load, _experimental_descriptor_store
from tilework.language.parameters import LazySignature, const, function_type, str_to_ty
from tilework.language.program_builtins import *
from tilework.language.values import tensor, tensor_descriptor, tensor_descriptor_type
from tilework.process.triton_version import follows

TRITON_BUILTIN = "__triton_builtin__"
METHODS = (
    "abs advance associative_scan atomic_add atomic_and atomic_cas atomic_max atomic_min atomic_or atomic_xchg"
    " atomic_xor broadcast_to cast ceil cos erf exp exp2 expand_dims floor gather histogram log log2 permute reduce"
    " reshape rsqrt sin split sqrt sqrt_rn store"
    " trans view"
).split()
TYPES = (
    "PropagateNan TRITON_MAX_TENSOR_NUMEL block_type builtin condition const const_pointer_type constexpr"
    " constexpr_type dtype function_type pointer_type range slice static_range str_to_ty tensor tensor_descriptor"
    " tensor_descriptor_type tuple tuple_type"
).split()
FOR_LIBRARIES = ("extern_elementwise",)  # here, and not in `tl`
Function = TypeVar("Function", bound=Callable[..., Any])


def builtin(fn: Function) -> Function:
    """Mark `fn` as callable from kernels. It must accept `_semantic`, and may accept `_generator`.

    The function runs while the kernel is compiled (or interpreted), on the values of the kernel; it passes `_semantic`
    on to the functions of `tl` that it calls. If it need not inspect its arguments, a jit function is simpler.

    Example:
        @tl.core.builtin
        def doubled(x, _semantic=None):
            return tl.add(x, x, _semantic=_semantic)

        assert call(doubled, np.array([1, 2])).tolist() == [2, 4]
    """
    names = fn.__code__.co_varnames[: fn.__code__.co_argcount + fn.__code__.co_kwonlyargcount]
    assert "_semantic" in names, f"the builtin {fn.__name__} must accept _semantic"
    positional = names[: fn.__code__.co_argcount]
    most = positional.index("_semantic") if "_semantic" in positional else sys.maxsize
    named = getattr(fn, "_named_behind", sys.maxsize)

    @wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if len(args) > named and follows("keyword-only-memory"):
            raise TypeError(f"{fn.__name__}() takes {named} positional arguments in Triton 3.8: pass others by keyword")
        if kwargs.get("_semantic") is not None:
            return fn(*args, **kwargs)
        # a call from Python: it means something only while a kernel is interpreted
        if (active := ACTIVE.get()) is None:
            text = f"{fn.__name__} can only be called inside a kernel: did you forget the @jit decorator?"
            text += " (`_semantic` argument must be provided outside of JIT functions)"
            raise RunTimeOnly(text, fn.__name__, args[0] if args else None)
        kwargs["_semantic"] = active.semantic
        if takes_generator:
            kwargs["_generator"] = active
        if len(args) > most:
            raise TypeError(f"{fn.__name__}() takes at most {most} arguments, got {len(args)}")
        result = fn(*args, **kwargs)
        return tuple(result) if result.__class__ is builtins.tuple else result

    takes_generator = "_generator" in names
    vars(wrapper).update({TRITON_BUILTIN: True, "_takes_generator": takes_generator, "signature": LazySignature(fn)})
    return wrapper  # pyright: ignore[reportReturnType]


def is_builtin(fn: Any) -> bool:
    """True if the compiler must pass `_semantic` to `fn`.

    Example:
        assert tl.core.is_builtin(tl.exp) and not tl.core.is_builtin(tl.sum)  # `sum` is a jit function
    """
    return getattr(fn, TRITON_BUILTIN, False)


def extern(fn: Function) -> Function:
    """Like `builtin`, for the wrapper of a function from a device library.

    Example:
        @tl.core.extern
        def cube_root(x, _semantic=None):
            symbols = {(tl.float32,): ("__nv_cbrtf", tl.float32)}
            return tl.core.extern_elementwise("", "", [x], symbols, is_pure=True, _semantic=_semantic)

        assert_close(call(cube_root, np.array([8.0, 27.0], np.float32)), [2, 3], atol=1e-6)
    """
    return builtin(fn)


def must_use_result(x: Any, s: str | bool = True) -> Any:
    """Make it an error to call a function and ignore its result. If a text is given, the error includes it.

        @must_use_result("Nothing changes in place.")
        @jit
        def cube(x): ...

    Example:
        @tilework.must_use_result
        @tilework.jit
        def cube(x):
            return x * x * x

        @tilework.jit
        def kernel(x):
            cube(tl.load(x))  # forgotten: the kernel does nothing

        try:
            kernel.warmup(np.ones(1), grid=(1,))
        except Exception as error:
            assert "cube" in str(error)
        else:
            raise AssertionError("it compiled")
    """
    if isinstance(x, str):
        return lambda function: must_use_result(function, x)
    x._must_use_result = s
    return x


def tensor_method(fn: Any) -> Any:
    """Make a function also a method of `tensor`: ``x.sum(0)`` is ``sum(x, 0)``. Returns the function."""
    if (method := getattr(fn, "method", None)) is not None:  # it is not the function itself
        method = builtin(method)
    else:
        method = fn if is_builtin(fn) else _method_of_jit_function(fn)
    setattr(tensor, fn.__name__, method)
    return fn


def _method_of_jit_function(fn: Any) -> Any:
    def method(self: Any, *args: Any, _semantic: Any = None, _generator: Any = None, **kwargs: Any) -> Any:
        return _generator.call_JitFunction(fn, (self, *args), kwargs)

    method.__name__, method.__doc__, method.__qualname__ = fn.__name__, fn.__doc__, f"tensor.{fn.__name__}"
    method.__wrapped__ = fn  # pyright: ignore[reportFunctionMemberAccess]  # `inspect.signature` shows its parameters
    return builtin(method)


def _takes_semantic(value: Any) -> bool:
    return "_semantic" in getattr(getattr(value, "__code__", None), "co_varnames", ())


for _name, _member in list(globals().items()):
    if _takes_semantic(_member):
        globals()[_name] = builtin(_member)
for _name in METHODS:
    tensor_method(globals()[_name])
must_use_result(
    advance,
    "Note that tl.advance does not have any side effects. To move the block pointer, you need to assign the result of"
    " tl.advance to a variable.",
)

# The operators and methods that the classes define themselves: each is a builtin under the name it has in its class.
for _class in (tensor, tensor_descriptor):
    for _name, _member in list(vars(_class).items()):
        if _takes_semantic(_member) and not is_builtin(_member):
            _member.__name__ = _name
            setattr(_class, _name, builtin(_member))

_builtins = [name for name, value in globals().items() if is_builtin(value) or isinstance(value, dtype)]
__all__ = [*TYPES, *(name for name in _builtins if name not in (*FOR_LIBRARIES, "_member"))]
