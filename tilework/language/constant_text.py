"""Constants as text: two constants have the same text only if a kernel compiled for one is right for the other.

    >>> constant_text((1, True, 1.0, -0.0, "1"))
    "(1, True, 1.0, -0.0, '1')"

Python finds 1, True and 1.0 equal, and 0.0 and -0.0; a `repr` gives 1 and "1" inside a `constexpr` the same text, and a
function only its name. Here a function is all that its code depends on, and an object of which nothing better is known
is itself alone. Except for those the text is the same in every process, so that it can name files.
"""

import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from itertools import count
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from tilework.language.aggregate import _aggregate_type
from tilework.language.compile_time import base_type, constexpr, constexpr_type, tuple_type
from tilework.language.compile_time import tuple as kernel_tuple

PLAIN = frozenset({int, bool, str, bytes, type(None), type(Ellipsis), range})
LANGUAGE = __name__.rpartition(".")[0]
STANDARD = os.path.dirname(os.__file__) + os.sep
OWN_MODULES: dict[int, str] = {}  # by the id of an object whose `__module__` shows another one
EMPTY_CELL = CellType()  # a closure variable that is assigned later, or deleted


def constant_text(value: Any) -> str:
    """See the module docstring."""
    return Writer().text(value)


def float_text(value: float) -> str:
    """``repr``, and for a NaN its bits."""
    return repr(value) if value == value else f"nan:{struct.pack('<d', value).hex()}"


class Writer:
    """Writes one constant; what contains itself is named by its depth."""

    def __init__(self) -> None:
        self.open: list[int] = []
        self.functions: dict[FunctionType, int] = {}

    def name_of(self, value: Any) -> str:
        """Return the qualified name of a class or a function."""
        return name_of(value)

    def text(self, value: Any) -> str:
        kind = type(value)
        if kind in PLAIN:
            return repr(value)
        if kind is float:
            return float_text(value)
        if id(value) in self.open:
            return f"<level {self.open.index(id(value))}>"
        self.open.append(id(value))
        try:
            return self.compound(value, kind)
        finally:
            self.open.pop()

    def compound(self, value: Any, kind: type) -> str:
        for cls in kind.__mro__:
            if (rule := RULES.get(cls)) is not None:
                return rule(self, value)
        if isinstance(key := getattr(value, "cache_key", None), str):
            return f"{self.name_of(value)}#{key}"
        if hasattr(value, "__func__"):  # a method of an aggregate
            return self.bound(value)
        if is_dataclass(kind):
            return self.members(kind, {field.name: getattr(value, field.name) for field in fields(kind)})
        if getattr(value, "__triton_aggregate__", False):
            return self.members(kind, vars(value))
        if hasattr(kind, "tobytes") and hasattr(kind, "dtype"):  # NumPy's; its text leaves the middle of an array out
            return f"{self.name_of(kind)}({value.dtype}, {value.shape}, {digest(value.tobytes())})"
        return f"{self.name_of(kind)}({text})" if (text := own_text(value)) is not None else alone(value)

    def items(self, values: Any) -> str:
        return ", ".join(map(self.text, values))

    def members(self, kind: type, values: dict[str, Any]) -> str:
        """An object that is what its members are."""
        return f"{self.text(kind)}({', '.join(f'{name}={self.text(member)}' for name, member in values.items())})"

    def sequence(self, value: Any) -> str:
        kind = type(value)
        if kind is tuple:
            return f"({self.items(value)}{',' if len(value) == 1 else ''})"
        if kind is list:
            return f"[{self.items(value)}]"
        names = getattr(kind, "_fields", None)
        return f"{self.text(kind)}({self.items(value)}){'' if names is None else names}"

    def mapping(self, value: dict[Any, Any]) -> str:
        shown = ", ".join(f"{self.text(key)}: {self.text(item)}" for key, item in value.items())
        return f"{'' if type(value) is dict else self.text(type(value))}{{{shown}}}"

    def collection(self, value: Any) -> str:
        return f"{self.text(type(value))}({', '.join(sorted(map(self.text, value)))})"

    def bound(self, value: Any) -> str:
        """A method with its object, a function with some of its arguments."""
        if isinstance(value, partial):
            return f"partial({self.items((value.func, value.args, value.keywords))})"
        return f"{self.text(value.__func__)} of {self.text(value.__self__)}"

    def kernel_type(self, value: base_type) -> str:
        """A type; those of constants and tuples contain their constants."""
        if isinstance(value, constexpr_type):
            return f"constexpr_type({self.text(value.value)})"
        if isinstance(value, tuple_type):
            return f"tuple_type({self.items(value.types)}, {value.fields})"
        if isinstance(value, _aggregate_type):
            return f"aggregate({self.text(value.base_cls)}, {self.text(value.fields)})"
        return repr(value)

    def python_class(self, value: type) -> str:
        """A class by its name and what it defines, which kernels and plain functions may use: methods and constants."""
        members = methods_of(value) if getattr(value, "__triton_aggregate__", False) else own_members(value)
        shown = ", ".join(f"{name}: {self.text(member)}" for name, member in members)
        return f"{self.name_of(value)}{{{shown}}}" if shown else self.name_of(value)

    def function(self, value: FunctionType) -> str:
        """A plain function, which runs while compiling: its code, and what that refers to."""
        if is_of_language(value):
            return self.name_of(value)
        wrapped = getattr(value, "__wrapped__", None)
        if wrapped is not None and value.__globals__.get("__name__", "").startswith(LANGUAGE):
            return f"wrapped {self.text(wrapped)}"  # by `builtin`, whose own code is part of every key
        if value in self.functions:
            return f"{self.name_of(value)}#{self.functions[value]}"
        self.functions[value] = len(self.functions)
        code, scope = value.__code__, {} if is_installed(value) else value.__globals__
        seen = {name: scope[name] for name in names_in(code) if name in scope}
        cells = [cell.cell_contents if cell != EMPTY_CELL else None for cell in value.__closure__ or ()]
        parts = (value.__defaults__, value.__kwdefaults__, cells, seen)
        return f"{self.name_of(value)}#{digest(f'{self.code(code)} {self.items(parts)}'.encode())}"

    def code(self, code: CodeType) -> str:
        constants = [self.code(item) if isinstance(item, CodeType) else self.text(item) for item in code.co_consts]
        return f"{code.co_code.hex()} {constants} {code.co_names} {code.co_varnames} {code.co_freevars}"


RULES: dict[type, Callable[[Writer, Any], str]] = {
    constexpr: lambda self, value: f"constexpr[{self.text(value.value)}]",
    kernel_tuple: lambda self, value: f"tuple({self.items(value.values)}){value.fields or ''}",
    base_type: Writer.kernel_type,
    Enum: lambda self, value: f"{self.text(type(value))}.{value.name}={self.text(value.value)}",
    tuple: Writer.sequence,
    list: Writer.sequence,
    dict: Writer.mapping,
    set: Writer.collection,
    frozenset: Writer.collection,
    FunctionType: Writer.function,
    BuiltinFunctionType: lambda self, value: self.name_of(value),
    MethodType: Writer.bound,
    partial: Writer.bound,
    type: Writer.python_class,
    ModuleType: lambda self, value: f"module {value.__name__}",
}


def digest(data: bytes) -> str:
    import hashlib  # lazily: few programs need it, and it is slow to load

    return hashlib.sha256(data).hexdigest()


def name_of(value: Any) -> str:
    """``module:qualname`` of a class, a function, or the class of something else."""
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{module_of(named)}:{named.__qualname__}"


def members_of(cls: type) -> list[tuple[str, Any]]:
    """Return the members of a class and its bases, by name."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        found |= vars(base)
    return sorted(found.items())


def methods_of(cls: type) -> Iterator[tuple[str, Any]]:
    """The functions that an aggregate class and its bases define."""
    for name, member in members_of(cls):
        function = getattr(member, "__func__", member)
        if hasattr(function, "cache_key") or (isinstance(function, FunctionType) and not is_of_language(function)):
            yield name, function


def own_members(cls: type) -> Iterator[tuple[str, Any]]:
    """Return the members that a class and its bases outside of libraries define: functions, and constants of plain
    types."""
    for name, member in members_of(cls):
        for function in (member.fget, member.fset) if isinstance(member, property) else (member,):
            function = getattr(function, "__func__", function)
            if isinstance(function, FunctionType):
                if not (is_of_language(function) or is_installed(function) or is_generated(function)):
                    yield name, function
            elif (type(function) in PLAIN or type(function) is float) and not name.startswith("__"):
                yield name, function


def is_generated(function: FunctionType) -> bool:
    """Return True if it was made of a text, as those of dataclasses and named tuples are: their fields say it."""
    return function.__code__.co_filename.startswith("<")


def is_of_language(value: Any) -> bool:
    """Return True if a function or a class belongs to this package, whose version is part of every key."""
    return f"{module_of(value)}.".startswith(f"{LANGUAGE}.")


def module_of(value: Any) -> str:
    """The module that defines a function or a class, or the class of something else; see `set_shown_module`."""
    for named in (value, type(value)):
        if (module := OWN_MODULES.get(id(named))) is not None:
            return module
    return getattr(value, "__module__", None) or ""


def set_shown_module(value: Any, module: str) -> None:
    """Set the `__module__` of a function or a class, by which other programs import it; `module_of` still gives the
    real one."""
    OWN_MODULES.setdefault(id(value), value.__module__)
    value.__module__ = module


def is_installed(function: FunctionType) -> bool:
    """Return True if it is of a library: its own code counts then, but not all that it refers to."""
    folders = function.__code__.co_filename.replace(os.sep, "/").split("/")
    return (
        "site-packages" in folders or "dist-packages" in folders or function.__code__.co_filename.startswith(STANDARD)
    )


def names_in(code: CodeType) -> list[str]:
    """The names of variables outside and of attributes in code and in what it defines, in order."""
    inner = (name for item in code.co_consts if isinstance(item, CodeType) for name in names_in(item))
    return list(dict.fromkeys((*code.co_names, *code.co_freevars, *inner)))


def own_text(value: Any) -> str | None:
    """The `repr`, unless it names an address: a lock, a `ContextVar`."""
    text = repr(value) if type(value).__repr__ is not object.__repr__ else None
    return None if text is None or " at 0x" in text else text


ALONE: dict[int, tuple[Any, int]] = {}  # the objects are kept: an address is used again
IDS = count()
PROCESS = os.urandom(8).hex()


def alone(value: Any) -> str:
    """An object of which only the identity is known."""
    _, id_ = ALONE.setdefault(id(value), (value, next(IDS)))
    return f"{name_of(type(value))}@{PROCESS}.{os.getpid()}.{id_}"
