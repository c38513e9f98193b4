"""Calls: each kind of callee has its own rule for arguments.

| callee                      | arguments                                             |
|---|---|
| jit function, jit method    | as they are; literals are compile-time in the callee  |
| builtin (`tl.load`, `x.to`) | as they are, plus `_semantic` and `_generator`        |
| constexpr_function          | unwrapped; of tensors it sees the type                |
| `math.*`                    | unwrapped; everything must be known at compile time   |
| aggregate, NamedTuple class | as they are; the instance is made now                 |
| constexpr of a Python function | as they are; it runs now                           |
"""

import ast
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import tilework.language as language
from tilework.errors import CompilationError
from tilework.frontend import FunctionGenerator, visits
from tilework.frontend.expressions import (
    COMPILE_TIME,
    STATEMENT_BUILTINS,
    call_unwrapped,
    resolve_stub,
    static_assert,
    visit_elements,
)
from tilework.frontend.messages import wrong_argument
from tilework.frontend.scopes import (
    as_constexpr,
    compile_time_function,
    describe,
    describe_type,
    is_named_tuple_class,
    is_storable,
    make_tuple,
    unwrap,
)
from tilework.language import core as tl
from tilework.language.advice import about_form, calling_form, foreign_call
from tilework.language.dependencies import array_library
from tilework.language.function import (
    BoundConstexprFunction,
    BoundJITMethod,
    ConstexprFunction,
    JITCallable,
    JITFunction,
    unwrap_nested,
)
from tilework.language.origins import is_of_language
from tilework.language.parameters import signature_of
from tilework.language.typing.python_names import check_arity, check_compile_time
from tilework.process.triton_version import follows


class NotInlinable(TypeError):
    """An argument that a real function cannot take."""


def visit_arguments(gen: FunctionGenerator, node: ast.Call) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call, in Python's order; as in Triton those with names come first where the order has no
    effect."""
    if not node.keywords:
        return visit_elements(gen, node.args), {}
    named = [keyword for keyword in node.keywords if keyword.arg is not None]
    if has_calls(node):
        args = visit_elements(gen, node.args)
        kwargs = {str(keyword.arg): gen.visit(keyword.value) for keyword in named}
    else:
        kwargs = {str(keyword.arg): gen.visit(keyword.value) for keyword in named}
        args = visit_elements(gen, node.args)
    gen.builder.loc = gen.location((node.args or node.keywords)[-1])
    return args, kwargs


def has_calls(node: ast.Call) -> bool:
    """An argument of the call `node` contains a call; remembered on the node."""
    known = getattr(node, "_has_calls", None)
    if known is None:
        parts = [*node.args, *(keyword.value for keyword in node.keywords)]
        known = any(isinstance(inner, ast.Call) for part in parts for inner in ast.walk(part))
        node._has_calls = known  # pyright: ignore[reportAttributeAccessIssue]
    return known


@visits(ast.Call)
def visit_call(gen: FunctionGenerator, node: ast.Call) -> Any:
    """``f(a, *b, key=c)``."""
    visited = gen.visit(node.func)
    callee = resolve_stub(unwrap(visited), gen.options)
    if node is gen.statement:
        check_result_is_used(gen, node, callee)
    for keyword in node.keywords:
        if keyword.arg is None:
            raise gen.unsupported(node, "`**kwargs` in a call is not supported")
    if callee is tl.static_assert:
        return static_assert(gen, node)
    args, kwargs = visit_arguments(gen, node)
    if (special := STATEMENT_BUILTINS.get(callee) if is_hashable(callee) else None) is not None:
        check_arity(callee.__name__, args, kwargs)
        return special(gen, node, args, kwargs)
    try:
        value = call_value(gen, callee, args, kwargs, is_known=isinstance(visited, tl.constexpr))
        return tl.constexpr(None) if is_nothing(value) else value
    except CompilationError as error:  # inside the callee, where it is shown; here is the call site
        raise CompilationError(gen.src, node, None, where=gen.where, label=gen.describe_names(node)) from error
    except NotInlinable as error:
        raise gen.unsupported(node, str(error)) from None
    except Exception as error:
        if gen.options.front_end_debugging or isinstance(error, RecursionError) or is_jit(callee):
            raise
        is_plain = isinstance(visited, tl.constexpr) and inspect.isfunction(callee) and not tl.is_builtin(callee)
        is_users = isinstance(callee, ConstexprFunction) or (is_plain and not is_of_language(callee))
        title = user_error(callee, error) if is_users else wrong_argument(callee, args, kwargs, error)
        raise gen.error(node, error, from_builtin=True, title=title) from error


def user_error(callee: Any, error: Exception) -> str:
    """The error of a function that the user wrote to run at compile time."""
    if "\nhelp: " in str(error):
        return str(error)
    text = f"`{getattr(callee, 'fn', callee).__name__}` raised {type(error).__name__}: {error}"
    return f"{text}\nhelp: it runs while compiling; call it from Python with these values to see where"


def check_result_is_used(gen: FunctionGenerator, node: ast.Call, callee: Any) -> None:
    """Refuse a call whose value is dropped if the callee is marked `must_use_result`."""
    for candidate in (callee, getattr(callee, "__func__", None), getattr(callee, "fn", None)):
        mark = getattr(candidate, "_must_use_result", None)
        if mark:
            text = f"The result of {ast.unparse(node.func)} is not being used."
            text += f" {mark}" if isinstance(mark, str) else ""
            title = f"{text}\nhelp: assign it to a name, or drop the call"
            raise CompilationError(gen.src, node, text, where=gen.where, title=title)


def is_hashable(value: Any) -> bool:
    """Return True if `value` can be the key of a dict."""
    return getattr(type(value), "__hash__", None) is not None


def is_nothing(value: Any) -> bool:
    """The value of a call that has none; in Python that is None."""
    return value is None or (isinstance(value, tl.tensor) and value.handle is None)


def is_jit(callee: Any) -> bool:
    return isinstance(callee, JITFunction | BoundJITMethod)


def call_value(
    gen: FunctionGenerator, callee: Any, args: list[Any], kwargs: dict[str, Any], *, is_known: bool = False
) -> Any:
    """Call anything, by the rule of its kind; `is_known`: a compile-time value, which may be any function of Python."""
    if is_jit(callee):
        return gen.call_JitFunction(callee, args, kwargs)
    if isinstance(callee, ConstexprFunction | BoundConstexprFunction):
        return as_constexpr(callee(*args, **kwargs, _semantic=gen.semantic))
    function = getattr(callee, "__func__", callee)
    if tl.is_builtin(function):
        return call_builtin(gen, callee, args, kwargs)
    if (library := array_library(callee)) is not None:
        raise TypeError(foreign_call(library, callee))
    if callee in COMPILE_TIME if is_hashable(callee) else False:
        return as_constexpr(call_unwrapped(callee, args, kwargs))
    if compile_time_function(callee) is not None:
        return call_compile_time(callee, args, kwargs)
    if is_named_tuple_class(callee):
        instance = callee(*args, **kwargs)
        return make_tuple([as_constexpr(item) for item in instance], callee._fields)
    if isinstance(callee, type) and getattr(callee, "__triton_aggregate__", False):
        return callee(*args, **kwargs, _semantic=gen.semantic, _generator=gen)
    if is_language_object(callee):
        return call_language_class(gen, callee, args, kwargs)
    if is_language_function(callee):
        return as_constexpr(call_unwrapped(callee, args, kwargs))
    if inspect.ismethod(callee) and is_storable(callee.__self__):
        return call_python_method(gen, callee, args, kwargs)
    if inspect.isfunction(callee) and (takes_hidden(callee) or getattr(callee, "_aggregate_method", False)):
        return call_builtin(gen, callee, args, kwargs)
    if is_python_function_of_value(callee):
        return as_constexpr(call_unwrapped(callee, args, kwargs))
    if is_known and callable(callee):
        return as_constexpr(callee(*args, **kwargs))
    if isinstance(callee, type) and not any(isinstance(value, tl.tensor) for value in (*args, *kwargs.values())):
        return call_compile_time(callee, args, kwargs)  # as `torch.finfo(torch.float32)`
    name = getattr(callee, "__name__", None) or describe(callee) or repr(callee)
    raise TypeError(f"{name} is not something a kernel can call\nhelp: {call_advice(callee, name)}")


def call_advice(callee: Any, name: str) -> str:
    """Return advice for a call of a value that is not callable."""
    if isinstance(callee, tl.dtype):
        dtype = repr(callee).rpartition(".")[2]
        return f"convert with x.to(tl.{dtype}), or make a value with tl.full((), x, tl.{dtype})"
    if not callable(callee):
        return "it is a value, not a function"
    if hasattr(language, name):
        return f"use tl.{name}"
    return "decorate it with @jit, or with @constexpr_function to run it at compile time"


def call_builtin(gen: FunctionGenerator, callee: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """A builtin gets the semantic object, and the generator if it has such a parameter."""
    function = getattr(callee, "__func__", callee)
    hidden: dict[str, Any] = {}
    if tl.is_builtin(function) or takes_hidden(function):
        hidden["_semantic"] = gen.semantic
    takes_generator = getattr(function, "_takes_generator", None)
    if takes_generator is None:
        takes_generator = "_generator" in signature_of(function).parameters
    if takes_generator:
        hidden["_generator"] = gen
    check_positional(callee, function, len(args))
    result = callee(*args, **kwargs, **hidden)
    return make_tuple([as_constexpr(item) for item in result], None) if type(result) is tuple else result


def check_positional(callee: Any, function: Any, given: int) -> None:
    """Refuse positional arguments that would bind to the hidden parameter `_semantic`."""
    code = getattr(function, "__wrapped__", function).__code__
    names = code.co_varnames[: code.co_argcount]
    if "_semantic" in names:
        most = names.index("_semantic") - (callee is not function)
        if given > most:
            raise TypeError(f"{function.__name__}() takes at most {most} arguments, got {given}")


def takes_hidden(callee: Any) -> bool:
    """A plain function written for the compiler: it has a `_semantic` parameter."""
    return "_semantic" in parameter_names(callee)


def parameter_names(function: Any) -> Sequence[str]:
    """The parameters of a Python function; none of anything else."""
    code = getattr(function, "__code__", None)
    return () if code is None else code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def call_python_method(gen: FunctionGenerator, callee: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """A plain method of an aggregate runs now, on the values of the kernel."""
    names = parameter_names(callee.__func__)
    hidden = {"_semantic": gen.semantic, "_generator": gen}
    extra = {key: value for key, value in hidden.items() if key in names}
    return as_constexpr(callee(*args, **kwargs, **extra))


def call_compile_time(callee: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """A function of the math or copy module, or a class, on compile-time values."""
    values = (*args, *kwargs.values())
    if getattr(callee, "__module__", None) == "math" and any(isinstance(value, tl.tensor) for value in values):
        raise TypeError(foreign_call("math", callee))
    check_compile_time(callee, values)
    return as_constexpr(call_nested(callee, args, kwargs))


def call_nested(callee: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Call a Python function with the values inside of constexprs, also those in lists and tuples."""
    named = {key: unwrap_nested(value, unwrap) for key, value in kwargs.items()}
    return callee(*[unwrap_nested(arg, unwrap) for arg in args], **named)


def is_language_object(callee: Any) -> bool:
    """A class of the language package: `tl.tuple`, `tl.dtype`, `tl.pointer_type`, `tl.range`."""
    return isinstance(callee, type) and is_of_language(callee)


def is_language_function(callee: Any) -> bool:
    """A plain function of the language package, which runs now: `tl.core.get_int_dtype`."""
    return inspect.isfunction(callee) and not takes_hidden(callee) and is_of_language(callee)


def call_language_class(gen: FunctionGenerator, callee: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Make a value of a language class; loop iterators keep their arguments as they are."""
    if callee in (tl.range, tl.static_range, tl.condition):
        return callee(*args, **kwargs)
    if callee is tl.tuple:
        items = unwrap(args[0]) if args else []
        return tl.tuple([as_constexpr(item) for item in items])
    if callee is tl.constexpr:
        if isinstance(args[0], tl.tensor):
            return args[0]  # as for an annotation, a run-time value remains one
        return as_constexpr(unwrap(args[0]))
    if issubclass(callee, tl.base_value):
        raise TypeError(f"{callee.__name__} cannot be made in a kernel\nhelp: use tl.full or tl.arange")
    return call_nested(callee, args, kwargs)


def is_python_function_of_value(callee: Any) -> bool:
    """A method of a compile-time value or of a dtype: ``x.dtype.is_fp16()``, ``"abc".upper()``."""
    owner = getattr(callee, "__self__", None)
    return owner is not None and not inspect.ismodule(owner) and not isinstance(owner, tl.base_value)


def bind_arguments(fn: JITCallable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """The value of each parameter in order, defaults included, by Python's rules."""
    parameters = fn.signature.parameters
    if not kwargs and len(args) == len(parameters) and fn.is_positional:
        return [as_argument(value) for value in args]
    if any(param.kind is param.VAR_KEYWORD for param in parameters.values()):
        raise TypeError(f"{fn.__name__} takes **keywords, which a @jit function cannot\nhelp: name its parameters")
    try:
        bound = fn.signature.bind(*args, **kwargs)
    except TypeError as error:
        error = error if follows("call-errors") else wrong_call(fn, args, kwargs)
        form = calling_form(fn.fn, fn.__name__)
        raise TypeError(f"{error}\nhelp: {about_form(form, str(error))}") from None
    bound.apply_defaults()
    return [as_argument(bound.arguments[name]) for name in parameters]


def wrong_call(fn: JITCallable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> TypeError:
    """Return Python's message for a wrong call: ``two() missing 1 required positional argument: 'y'``."""
    try:
        inspect.getcallargs(fn.fn, *args, **kwargs)
    except TypeError as error:
        return error
    raise AssertionError(f"{fn.__name__} takes these arguments after all")


def as_argument(value: Any) -> Any:
    """Wrap compile-time objects (ints, floats, dtypes, functions) in constexprs."""
    value = as_constexpr(value)
    return value if isinstance(value, tl.base_value) else tl.constexpr(value)


def check_noinline_arguments(gen: FunctionGenerator, fn: JITFunction, values: Sequence[Any]) -> None:
    """A real function takes scalars: a block of more than one element cannot be passed."""
    for name, value in zip(fn.arg_names, values, strict=True):
        if isinstance(value, tl.tensor) and value.type.is_block() and value.numel.value != 1:
            raise NotInlinable(
                f"Function {fn.__name__} is marked noinline, but was called with non-scalar argument {name}:"
                f" {describe_type(value.type)}\nhelp: drop noinline=True, or pass pointers and scalars"
            )
