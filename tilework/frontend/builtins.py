"""The Python builtins that kernels may use, the calls that the compiler evaluates itself, and attributes of values.

`tl.extra.libdevice` is a neutral module of stubs; `resolve_stub` replaces one by the function of the target. Every
target implements the symbols of NVIDIA's library (`__nv_tanhf` ...); AMD's library has its own names for some.
"""

import ast
import functools
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from tilework.errors import CompilationError, CompileTimeAssertionFailure
from tilework.frontend import FunctionGenerator
from tilework.frontend.kernel import FrontendOptions
from tilework.frontend.scopes import as_constexpr, compile_time_function, describe, is_aggregate, is_storable, unwrap
from tilework.language import core as tl
from tilework.language.function import BoundJITMethod, JITFunction
from tilework.language.typing.python_names import attribute_name, converted, extremum, length


def resolve_stub(value: Any, options: FrontendOptions) -> Any:
    """The real function behind a stub; anything else unchanged."""
    name = getattr(value, "_libdevice_name", None) if callable(value) else None
    if name is None:
        return value
    from tilework.language.extra.libdevice import of_target  # few kernels call it

    function = of_target(name, options.backend_name)
    if function is None:
        raise AttributeError(
            f"libdevice function {name} is not available on target {options.backend_name}:{options.arch}"
        )
    return function


def get_attribute(gen: FunctionGenerator, owner: Any, name: str) -> Any:
    """An attribute of a module, a tensor, a type, an aggregate, a named tuple or a compile-time value."""
    if isinstance(owner, tl.tensor) and name == "T":
        return gen.semantic.transposed(owner)
    if isinstance(owner, tl.constexpr) and name not in ("value", "type"):
        if not hasattr(owner.value, name) and (hasattr(tl.tensor, name) or name == "dtype"):
            text = f"{describe(owner) or 'this value'} is not a tensor: it has no `{name}`"
            raise AttributeError(f"{text}\nhelp: pass a tensor; tl.full((), x, dtype) makes one of a number")
        return as_constexpr(getattr(owner.value, name))
    if is_aggregate(owner):
        static = next((vars(cls)[name] for cls in type(owner).__mro__ if name in vars(cls)), None)
        if isinstance(static, JITFunction):
            return BoundJITMethod(owner, static)
    value = getattr(owner, name)
    if isinstance(owner, ModuleType):
        value = resolve_stub(value, gen.options)
        if compile_time_function(value) is not None:
            return value
    return as_constexpr(value)


def python_range(*args: Any) -> Any:
    """Python's own `range`: one to three bounds by position. `tl.range` has more parameters."""
    return tl.range(*args)


python_range.__name__ = "range"

SAME = (len, list, float, int, isinstance, getattr, hasattr, min, max)
BUILTINS: dict[str, Any] = {
    **{function.__name__: function for function in SAME},
    "range": python_range,
    "print": tl.device_print,
}

COMPILE_TIME = frozenset({list})

Special = Callable[[FunctionGenerator, ast.Call, list[Any], dict[str, Any]], Any]


def call_unwrapped(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call a Python function with the values inside of constexprs."""
    return function(*[unwrap(arg) for arg in args], **{key: unwrap(value) for key, value in kwargs.items()})


def call_isinstance(gen: FunctionGenerator, node: ast.Call, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """``isinstance`` on unwrapped values; run-time ones are `tl.tensor`."""
    value, classes = args
    classes = unwrap(classes)
    wanted = tuple(unwrap(item) for item in classes.values) if isinstance(classes, tl.tuple) else classes
    if isinstance(value, tl.constexpr) and wanted is tl.constexpr:
        return tl.constexpr(True)
    return tl.constexpr(isinstance(unwrap(value), wanted))


def call_getattr(gen: FunctionGenerator, node: ast.Call, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """``getattr`` with a compile-time name; may return a function."""
    owner, name = args[0], attribute_name("getattr", args[1])
    if len(args) == 3 and not hasattr(unwrap(owner), name):
        return args[2]
    return get_attribute(gen, owner, name)


def call_extremum(name: str, gen: FunctionGenerator, node: ast.Call, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Python's min and max on compile-time values, `tl.minimum` and `tl.maximum` on run-time ones."""
    result = extremum(gen.semantic, name, args, kwargs)
    return result if isinstance(result, tl.tensor) else tl.constexpr(result)


def call_static_assert(gen: FunctionGenerator, node: ast.Call, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Stop compiling unless the condition holds."""
    if not 1 <= len(args) <= 2 or kwargs:
        raise TypeError("`static_assert` requires one or two positional arguments only")
    passed, message = unwrap(args[0]), unwrap(args[1]) if len(args) > 1 else ""
    if is_storable(message):
        raise TypeError(
            "the message of static_assert is a compile-time string\nhelp: print values with tl.static_print"
        )
    if not isinstance(passed, bool):
        is_known = not isinstance(passed, tl.tensor)
        why = f"must be a bool, not {describe(args[0]) or repr(passed)}" if is_known else "is known at run time only"
        help = "compare it: `x == y`" if is_known else "use tl.device_assert"
        raise CompilationError(
            gen.src,
            node,
            "Assertion condition could not be determined at compile-time. Make sure that it depends only on `constexpr`"
            " values",
            where=gen.where,
            label=gen.describe_names(node),
            title=f"the condition of static_assert {why}\nhelp: {help}",
        )
    if not passed:
        error = CompileTimeAssertionFailure(gen.src, node, str(message) if message else None, where=gen.where)
        error.title = f"static assertion failed: {message}" if message else "static assertion failed"
        error.label = gen.describe_names(node)
        raise error
    return None


STATEMENT_BUILTINS: dict[Any, Special] = {
    python_range: lambda gen, node, args, kwargs: python_range(*args),
    len: lambda gen, node, args, kwargs: tl.constexpr(length(args[0])),
    int: lambda gen, node, args, kwargs: tl.constexpr(converted(int, args)),
    float: lambda gen, node, args, kwargs: tl.constexpr(converted(float, args)),
    isinstance: call_isinstance,
    hasattr: lambda gen, node, args, kwargs: tl.constexpr(hasattr(unwrap(args[0]), attribute_name("hasattr", args[1]))),
    getattr: call_getattr,
    min: functools.partial(call_extremum, "min"),
    max: functools.partial(call_extremum, "max"),
    tl.static_print: lambda gen, node, args, kwargs: call_unwrapped(print, args, kwargs),
    tl.static_assert: call_static_assert,
}
