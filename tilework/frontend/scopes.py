"""Names in a kernel: locals, then globals and closure variables, then a few builtins.

A global is fixed at compile time, so only values that cannot silently change may be read: modules, functions of the
tile language, types, and `tl.constexpr` instances. Everything else is refused with an explanation.
"""

import ast
import builtins as python
import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any

import tilework.language as language
from tilework.errors import SourceMap
from tilework.language import core as tl
from tilework.language.constant_text import is_of_language
from tilework.language.dependencies import COMPILE_TIME_MODULES
from tilework.language.function import JITCallable
from tilework.light_dataclass import light_dataclass

NOT_CONSTEXPR = (
    "Cannot access global variable {name} from within @jit'ed function. Kernels can only access global variables that"
    " are instances of tl.constexpr: an annotation (`x: tl.constexpr = 42`) does not make one."
    "\nhelp: write `{name} = tl.constexpr({value})`, or pass it as a tl.constexpr parameter"
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
        if (index := self.locals.get(finished_index(name))) is not None:
            return index
        if name in self.captured:
            value = self.captured[name]
            if allow_any or is_allowed_global(value):
                return value
            if inspect.isfunction(value) or inspect.isbuiltin(value):
                raise NameError(NOT_JIT.format(name=name))
            text = repr(value)
            raise NameError(NOT_CONSTEXPR.format(name=name, value=text if len(text) < 40 else "..."))
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
        if hasattr(language, name):
            return f"\nhelp: did you mean `tl.{name}`?"
        if hasattr(python, name):
            return "\nhelp: it is one of Python's functions that kernels do not have"
        import difflib  # lazily: only mistakes need it

        known = [*self.locals, *(key for key in self.captured if not key.startswith("_")), *builtins]
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.75)
        return f"\nhelp: did you mean `{close[0]}`?" if close else ""


def finished_index(name: str) -> str:
    """Return the key under which the locals keep the variable of a finished loop; never an identifier, so that branches
    and loops ignore it.

    Its value is unspecified (there may have been no iteration), but reading it is allowed.
    """
    return f"{name} after its loop"


def assigned_lines(tree: ast.AST, name: str, where: SourceMap, updates: bool = True) -> list[int]:
    """The lines of the file where `name` is assigned inside `tree`; ``name += 1`` only counts as one of the
    `updates`."""
    nodes = list(ast.walk(tree))
    others = set() if updates else {id(node.target) for node in nodes if isinstance(node, ast.AugAssign)}
    return [
        where.first_line + node.lineno - 1
        for node in nodes
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name and id(node) not in others
    ]


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
    """A class made by NamedTuple or namedtuple."""
    return isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields")


def compile_time_function(value: Any) -> Callable[..., Any] | None:
    """`value` if it is a function of the math or copy module, which run at compile time; else None."""
    module = getattr(value, "__module__", None)
    return value if module in COMPILE_TIME_MODULES and callable(value) else None
