"""Messages about wrong arguments and about syntax.

A builtin reads its arguments as if they were right: ``tl.zeros((4,), "fp32")`` reads the attribute `is_fp8` of a str.
The AttributeError is true and useless; the user wrote an argument, so `wrong_argument` writes a message about the
argument:

    tl.zeros((4,), "fp32")      full: `dtype` cannot be 'fp32' (a str)
    tl.program_id(n)            program_id: `axis` must be known at compile time, but is int32
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tilework.frontend.scopes import describe, unwrap
from tilework.language import core as tl
from tilework.language.advice import calling_form, dtype_meant
from tilework.language.compile_time import RunTimeOnly
from tilework.language.parameters import signature_of

PYTHON_WORDS = {
    "Lambda": "lambda expressions",
    "FunctionDef": "functions inside functions",
    "AsyncFunctionDef": "functions inside functions",
    "ClassDef": "classes inside functions",
    "ImportFrom": "`import`",
    "Dict": "dictionaries",
    "DictComp": "dictionaries",
    "Set": "sets",
    "SetComp": "sets",
    "GeneratorExp": "generator expressions",
    "NamedExpr": "`:=`",
    "TryStar": "`try`",
    "YieldFrom": "`yield`",
    "Delete": "`del`",
    "AsyncFor": "`async for`",
    "AsyncWith": "`async with`",
    "TypeAlias": "`type` statements",
}


def syntax_name(kind: str) -> str:
    """Return the usual name of a syntax-tree node: ``Break`` is `` `break` ``."""
    return PYTHON_WORDS.get(kind, f"`{kind.lower()}`")


AT_COMPILE_TIME = "declare the parameter `NAME: tl.constexpr`, or compute it from constexprs"


def wrong_argument(callee: Any, args: Sequence[Any], kwargs: Mapping[str, Any], error: Exception) -> str | None:
    """Return a message about the argument that `error` is about; None if it is about something else."""
    if isinstance(error, RunTimeOnly):
        culprit = error.value
    elif isinstance(error, AttributeError):
        culprit = error.obj
    else:
        return None
    parameter = next((name for name, value in named(callee, args, kwargs) if holds(value, culprit)), None)
    if parameter is None:
        return None
    name = getattr(callee, "__name__", "the call")
    if isinstance(error, AttributeError):
        dtype = dtype_meant(culprit)
        advice = f"kernels name types as the language does: tl.{dtype}" if dtype else calling_form(callee, name)
        return f"{name}: {parameter} cannot be {kind_of(culprit)}\nhelp: {advice}"
    if error.operation in ("__getitem__", "__iter__"):
        return f"{name}: {parameter} must be a list or a tuple, but is {describe(culprit)}\nhelp: put it in brackets"
    return f"{name}: {parameter} must be known at compile time, but is {describe(culprit)}\nhelp: {AT_COMPILE_TIME}"


def named(callee: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The arguments with the names of their parameters, as messages show them."""
    try:
        names = list(signature_of(callee).parameters)
    except (TypeError, ValueError):
        names = []
    for position, value in enumerate(args):
        yield (f"`{names[position]}`" if position < len(names) else f"argument {position + 1}"), value
    for name, value in kwargs.items():
        yield f"`{name}`", value


def holds(value: Any, culprit: Any) -> bool:
    """`culprit` is `value`, the constant inside it, or an element of it."""
    plain = unwrap(value)
    if value is culprit or plain is culprit:
        return True
    if isinstance(culprit, str | int | float) and type(plain) is type(culprit) and plain == culprit:
        return True  # an equal constant, from a cache
    elements = plain.values if isinstance(plain, tl.tuple) else plain if isinstance(plain, (list, tuple)) else ()
    return any(holds(element, culprit) for element in elements)


def kind_of(value: Any) -> str:
    """``'fp32' (a str)``, ``3 (an int)``, ``int32`` for a tensor."""
    if isinstance(value, tl.base_value):
        return describe(value) or str(value)
    if value is None:
        return "None"
    kind = type(value).__name__
    return f"{shortened(value)} ({'an' if kind[0] in 'aeiou' else 'a'} {kind})"


def shortened(value: Any) -> str:
    """The text of a value, if it is short enough to read."""
    name = getattr(value, "__name__", None)
    if isinstance(name, str):
        return name
    text = f"an integer of {value.bit_length()} bits" if isinstance(value, int) and abs(value) >> 128 else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
