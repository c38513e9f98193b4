"""Names and values in a kernel.

A name is looked up in the locals, then in globals and closure variables, then in a few builtins.

A global is fixed at compile time, so only values that cannot silently change may be read: modules, functions of the
tile language, types, and `tl.constexpr` instances. Everything else is refused with an explanation.

A value is one of

    constexpr            known now: an int, a float, a string, a dtype, None, a function wrapped by the user
    tensor, descriptor   known at run time, with IR handles
    tuple, aggregate     contains other values
    any Python object    a module, a jit function, a class: used, never stored in IR
"""

import ast
import builtins as python
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any

import tilework.language as language
from tilework.errors import SourceMap
from tilework.language import core as tl
from tilework.language.advice import IDIOMS, counterpart
from tilework.language.dependencies import COMPILE_TIME_MODULES
from tilework.language.function import JITCallable, JITFunction
from tilework.language.origins import is_of_language
from tilework.language.typing.promotion import NUMBERS
from tilework.language.typing.promotion import plain as unwrap
from tilework.language.typing.python_names import assigned_name, describe_type, is_storable, make_tuple
from tilework.light_dataclass import light_dataclass

NOT_CONSTEXPR = (
    "Cannot access global variable {name} from within @jit'ed function. Kernels can only access global variables that"
    " are instances of tl.constexpr: an annotation (`x: tl.constexpr = 42`) does not make one."
    "\nhelp: {advice}"
)
NOT_JIT = (
    "Cannot access global variable {name} from within @jit'ed function: it is a plain Python function."
    "\nhelp: decorate it with @jit (to run in the kernel) or @constexpr_function (to run at compile time)"
)


@light_dataclass
class Ambiguous:
    """A variable that an `if` leaves None on one path only: it may be assigned, but not be read."""

    text: str


class Scope:
    """The names one function can see."""

    def __init__(self, locals: dict[str, Any], captured: dict[str, Any], tree: ast.AST, where: SourceMap) -> None:
        self.locals = locals
        self.captured = captured
        self.tree = tree
        self.where = where

    def lookup(self, name: str, builtins: dict[str, Any], allow_any: bool) -> Any:
        """The value of `name`, or NameError."""
        try:
            value = self.locals[name]
        except KeyError:
            pass
        else:
            if type(value) is Ambiguous:
                raise TypeError(value.text)
            return value
        if name in self.captured:
            value = self.captured[name]
            if allow_any or is_allowed_global(value):
                return value
            if inspect.isfunction(value) or inspect.isbuiltin(value):
                raise NameError(NOT_JIT.format(name=name))
            raise NameError(NOT_CONSTEXPR.format(name=name, advice=about_global(name, value)))
        try:
            return builtins[name]
        except KeyError:
            raise NameError(f"{name} is not defined{self.suggestion(name, builtins)}") from None

    def suggestion(self, name: str, builtins: dict[str, Any]) -> str:
        """Return advice for an undefined name: the line of an assignment, or the most similar name."""
        lines = assigned_lines(self.tree, name, self.where, updates=False)
        if lines:
            return (
                f"\nit is assigned in line {lines[0]}, but not on every path to here\nhelp: give it a value before that"
            )
        if hasattr(python, name) and isinstance(getattr(language, name, None), JITFunction):
            return f"\nhelp: `tl.{name}` takes a tile and an axis; for a few numbers write a loop (tl.static_range)"
        if hasattr(language, name):
            return f"\nhelp: did you mean `tl.{name}`?"
        if hasattr(python, name):
            if (found := counterpart(name)) is not None:
                return f"\nhelp: use {found}"
            if name in IDIOMS:
                return f"\nhelp: {IDIOMS[name]}"
            return "\nhelp: it is one of Python's functions that kernels do not have"
        import difflib  # lazily: only mistakes need it

        known = [*self.locals, *(key for key in self.captured if not key.startswith("_")), *builtins]
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
        return f"\nhelp: did you mean `{close[0]}`?" if close else ""


def about_global(name: str, value: Any) -> str:
    """Return advice on passing the value of a global that a kernel may not read."""
    if hasattr(value, "__array__") and getattr(value, "shape", ()) and not isinstance(value, type):
        return "pass the array as an argument of the kernel"
    text = repr(value)
    if isinstance(value, type) or text.startswith("<"):  # no text of a program
        return "pass its values as tl.constexpr parameters, or give each a global of its own, `X = tl.constexpr(...)`"
    text = text if len(text) < 40 else "..."
    return f"write `{name} = tl.constexpr({text})`, or pass it as a tl.constexpr parameter"


def assigned_lines(tree: ast.AST, name: str, where: SourceMap, updates: bool = True) -> list[int]:
    """The lines of the file where `name` is assigned inside `tree`; ``name += 1`` only counts as one of the
    `updates`."""
    nodes = list(ast.walk(tree))
    others = set() if updates else {id(node.target) for node in nodes if isinstance(node, ast.AugAssign)}
    targets = [node for node in nodes if isinstance(node, ast.Name | ast.Subscript) and id(node) not in others]
    return [where.first_line + node.lineno - 1 for node in targets if assigned_name(node) == name]


def is_allowed_global(value: Any) -> bool:
    """A global that a kernel may read; see the module docstring."""
    if value is None or isinstance(value, ModuleType | JITCallable | tl.constexpr | tl.dtype | tl.base_type):
        return True
    if tl.is_builtin(value) or is_named_tuple_class(value):
        return True
    if getattr(value, "__triton_aggregate__", False):
        return True
    return is_of_language(value) or getattr(value, "__module__", None) in COMPILE_TIME_MODULES


def is_named_tuple_class(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields")


def compile_time_function(value: Any) -> Callable[..., Any] | None:
    """`value` if it is a function of the math or copy module, which run at compile time; else None."""
    module = getattr(value, "__module__", None)
    return value if module in COMPILE_TIME_MODULES and callable(value) else None


__all__ = ["NUMBERS", "describe_type", "is_storable", "make_tuple", "unwrap"]


def is_aggregate(value: Any) -> bool:
    """An instance of a class made with `tl.core._aggregate`."""
    return getattr(value, "__triton_aggregate__", False) and not isinstance(value, type)


def as_constexpr(value: Any) -> Any:
    """Wrap Python's scalars, strings, None and containers in constexprs; language values are returned as they are."""
    if value is None or isinstance(value, (*NUMBERS, str, bytes, list, dict, set)):
        return tl.constexpr(value)
    if type(value) is tuple:
        return tl.tuple([as_constexpr(item) for item in value])
    return value


def flatten(value: Any) -> list[Any]:
    """The IR handles of a value, in order."""
    handles: list[Any] = []
    value._flatten_ir(handles)
    return handles


def unflatten(type: Any, handles: Sequence[Any]) -> Any:
    """The value of `type` that holds `handles`: the inverse of `flatten`."""
    value, used = type._unflatten_ir(list(handles), 0)
    assert used == len(handles), f"{type} takes {used} handles, not {len(handles)}"
    return value


def unflatten_all(types: Iterable[Any], handles: Sequence[Any]) -> list[Any]:
    """A value of each type, which hold `handles` one after the other."""
    values, cursor = [], 0
    for type in types:
        value, cursor = type._unflatten_ir(handles, cursor)
        values.append(value)
    return values


def aggregates_in(value: Any) -> Iterator[Any]:
    """The aggregates that a value is or contains, outermost first."""
    if is_aggregate(value):
        yield value
        for member in vars(value).values():
            yield from aggregates_in(member)
    elif isinstance(value, tl.tuple):
        for item in value.values:
            yield from aggregates_in(item)


def contains_aggregate(value: Any) -> bool:
    """Return True if methods may mutate this value."""
    return next(aggregates_in(value), None) is not None


def is_same(left: Any, right: Any) -> bool:
    """The same object, or the same compile-time constant (1, 1.0 and True are three)."""
    if left is right:
        return True
    return not is_storable(left) and not is_storable(right) and tl.constexpr_type(left) == tl.constexpr_type(right)


def describe(value: Any) -> str | None:
    """The type of a value in a user's words: ``fp32[64, 16]``, ``int32``, ``the constexpr 4``; None: not worth
    saying."""
    if isinstance(value, tl.constexpr):
        if isinstance(value.value, int) and abs(value.value) >> 128:
            return f"a constexpr of {value.value.bit_length()} bits"
        text = repr(value.value)
        if value.value is None:
            return text
        return f"the constexpr {text}" if len(text) <= 40 else None
    if isinstance(value, tl.tensor):
        return describe_type(value.type)
    if isinstance(value, tl.tuple):
        inner = [describe(item) or "?" for item in value.values]
        return f"a tuple ({', '.join(inner)})" if len(inner) <= 4 else f"a tuple of {len(inner)}"
    if isinstance(value, tl.base_value):
        return describe_type(value.type)
    if isinstance(value, tl.dtype):
        return f"the type {value}"
    if isinstance(value, ModuleType):
        return f"the module {value.__name__}"
    return None
