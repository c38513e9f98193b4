"""The Python builtins that kernels may use, and the calls that the compiler carries out itself."""

import ast
import functools
import math
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tilework.errors import CompilationError, CompileTimeAssertionFailure
from tilework.frontend.known_values import describe, is_storable, unwrap
from tilework.language import core as tl

if TYPE_CHECKING:
    from tilework.frontend.generator import FunctionGenerator


def python_range(*args: Any) -> Any:
    """Python's own `range`: one to three bounds by position. `tl.range` has more parameters."""
    return tl.range(*args)


python_range.__name__ = "range"

BUILTINS: dict[str, Any] = {
    "range": python_range,
    "len": len,
    "list": list,
    "float": float,
    "int": int,
    "isinstance": isinstance,
    "getattr": getattr,
    "hasattr": hasattr,
    "print": tl.device_print,
    "min": min,
    "max": max,
}

COMPILE_TIME = frozenset({list})

Special = Callable[["FunctionGenerator", ast.Call, list[Any], dict[str, Any]], Any]


ARITY: dict[Any, tuple[int, int]] = {
    python_range: (1, 3),
    len: (1, 1),
    int: (0, 2),
    float: (0, 1),
    isinstance: (2, 2),
    hasattr: (2, 2),
    getattr: (2, 3),
}


def check_arity(callee: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
    """Python's own builtins take so many arguments, by position."""
    least, most = ARITY.get(callee, (0, len(args)))
    if kwargs and callee in ARITY:
        raise TypeError(f"{callee.__name__}() takes no keyword arguments, got {next(iter(kwargs))!r}")
    if not least <= len(args) <= most:
        wanted = f"{least}" if least == most else f"{least} to {most}"
        raise TypeError(f"{callee.__name__}() takes {wanted} arguments by position, got {len(args)}")


def call_range(gen: "FunctionGenerator", node: ast.Call, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """``range`` in a kernel is a loop of `tl.range`."""
    return python_range(*args)


def call_len(gen: "FunctionGenerator", node: ast.Call, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """``len`` of a tuple, a shape or a compile-time sequence."""
    (value,) = args
    if isinstance(value, tl.tensor):
        raise TypeError("a tensor has no len()\nhelp: use x.shape[0], or x.numel")
    return tl.constexpr(len(unwrap(value)))


def call_number(
    convert: type, gen: "FunctionGenerator", node: ast.Call, args: list[Any], kwargs: dict[str, Any]
) -> Any:
    """``int`` and ``float`` of compile-time values."""
    if any(is_storable(arg) for arg in args):
        name = convert.__name__
        raise TypeError(f"{name}() needs a compile-time value\nhelp: convert at run time with x.to(tl.{name}32)")
    return tl.constexpr(convert(*[unwrap(arg) for arg in args]))


def call_isinstance(gen: "FunctionGenerator", node: ast.Call, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """``isinstance`` on unwrapped values; run-time ones are `tl.tensor`."""
    value, classes = args
    classes = unwrap(classes)
    wanted = tuple(unwrap(item) for item in classes.values) if isinstance(classes, tl.tuple) else classes
    if isinstance(value, tl.constexpr) and wanted is tl.constexpr:
        return tl.constexpr(True)
    return tl.constexpr(isinstance(unwrap(value), wanted))


def call_hasattr(gen: "FunctionGenerator", node: ast.Call, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """``hasattr`` at compile time."""
    owner, name = args[0], unwrap(args[1])
    if not isinstance(name, str):
        raise TypeError(
            f"the attribute name for hasattr must be a compile-time string, not {describe(args[1]) or repr(name)}"
        )
    return tl.constexpr(hasattr(unwrap(owner), name))


def call_getattr(gen: "FunctionGenerator", node: ast.Call, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """``getattr`` with a compile-time name; may return a function."""
    from tilework.frontend.expressions import get_attribute

    owner, name = args[0], unwrap(args[1])
    if not isinstance(name, str):
        raise TypeError(
            f"the attribute name for getattr must be a compile-time string, not {describe(args[1]) or repr(name)}"
        )
    if len(args) == 3 and not hasattr(unwrap(owner), name):
        return args[2]
    return get_attribute(gen, owner, name)


def call_extremum(name: str, gen: "FunctionGenerator", node: ast.Call, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Python's min and max on compile-time values, `tl.minimum` and `tl.maximum` on run-time ones."""
    values = args[0].values if len(args) == 1 and isinstance(args[0], tl.tuple) else args
    propagate = kwargs.pop("propagate_nan", None)
    if kwargs:
        raise TypeError(f"{name}() takes no keyword {next(iter(kwargs))!r} in a kernel")
    if propagate is not None:
        warnings.warn(f"propagate_nan of {name}() is deprecated, use tl.{name}imum", DeprecationWarning, stacklevel=2)
    if not any(isinstance(value, tl.tensor) for value in values):
        plain = [unwrap(value) for value in values]
        for value in plain:
            if isinstance(value, float) and (math.isnan(value) or (value == 0 and math.copysign(1, value) < 0)):
                raise ValueError(f"{name}() of nan or -0.0 is ambiguous at compile time")
        return tl.constexpr(min(plain) if name == "min" else max(plain))
    if len(values) < 2:
        raise TypeError(f"{name}() needs at least two values\nhelp: tl.{name}(x, axis) reduces a block")
    combine = gen.semantic.minimum if name == "min" else gen.semantic.maximum
    mode = unwrap(propagate) if propagate is not None else tl.PropagateNan.NONE
    tensors = [gen.semantic.to_tensor(value) for value in values]
    result = functools.reduce(lambda left, right: combine(left, right, mode), tensors)
    if result.type.is_block():
        warnings.warn(f"builtin {name}() on blocks is deprecated, use tl.{name}imum", DeprecationWarning, stacklevel=2)
    return result


def call_static_print(gen: "FunctionGenerator", node: ast.Call, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Print at compile time."""
    print(*[unwrap(arg) for arg in args], **{key: unwrap(value) for key, value in kwargs.items()})


def call_static_assert(gen: "FunctionGenerator", node: ast.Call, args: list[Any], kwargs: dict[str, Any]) -> Any:
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
    python_range: call_range,
    len: call_len,
    int: functools.partial(call_number, int),
    float: functools.partial(call_number, float),
    isinstance: call_isinstance,
    hasattr: call_hasattr,
    getattr: call_getattr,
    min: functools.partial(call_extremum, "min"),
    max: functools.partial(call_extremum, "max"),
    tl.static_print: call_static_print,
    tl.static_assert: call_static_assert,
}
