"""Constants as text: two constants have the same text only if a kernel compiled for one is right for the other.

    >>> constant_text((1, True, 1.0, -0.0, "1"))
    "(1, True, 1.0, -0.0, '1')"

In Python, 1, True and 1.0 are equal, and so are 0.0 and -0.0; a `repr` gives 1 and "1" inside a `constexpr` the same
text, and of a function only the name. Here functions, classes and objects are written as their content: all that their
code depends on, and their state. An object that has neither (a lock) is only equal to itself, and its text is different
in every process.

The text describes what a constant is and not where it was defined, so it can name cache entries that machines share.
Modules of the user have no names in it, because a script is called `__main__` when it runs and something else when it
is imported. Modules of libraries have their name and the library's version. Of what this package itself defines the
name is enough: its version is a part of every key.
"""

import builtins
import os
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from functools import cache, partial
from functools import cached_property as python_cached_property
from itertools import count
from opcode import opmap
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MethodType,
    ModuleType,
)
from typing import Any

from tilework.language.aggregate import _aggregate_type
from tilework.language.compile_time import base_type, constexpr, constexpr_type, tuple_type
from tilework.language.compile_time import tuple as kernel_tuple
from tilework.language.object_state import attributes_of, is_python_made, own_members
from tilework.language.origins import (
    LANGUAGE,
    digest,
    is_of_language,
    is_of_library,
    is_versioned,
    module_of,
    name_of,
    origin_of,
)
from tilework.language.parameters import annotations_of, normalize_annotation
from tilework.process.forks import cached_property

PLAIN = frozenset({int, bool, str, bytes, type(None), type(Ellipsis), range})
EMPTY_CELL = CellType()  # a closure variable that is assigned later, or deleted
IMPORT_NAME = opmap["IMPORT_NAME"]
ARRAYS = ("numpy", "ml_dtypes")
OF_ENUM = frozenset({"_value_", "_name_", "__objclass__", "_sort_order_", "_inverted_"})  # what Python adds
OF_MODULE = frozenset(
    "__name__ __doc__ __package__ __loader__ __spec__ __path__ __file__ __cached__ __builtins__".split()
)
DEEPEST = 100  # levels
# what these read is not visible in the code that names them: such code is not portable
UNSEEN = frozenset(
    (
        "eval exec open __import__ import_module reload _getframe currentframe __globals__ __builtins__ modules "
        "read_text read_bytes __subclasses__"
    ).split()
)
ENVIRONMENT = frozenset({"environ", "environb", "getenv", "getenvb"})
DYNAMIC = frozenset({"getattr", "vars", "globals", "__dict__", "eval", "exec"})  # read members without naming them


def has_twins(seen: Mapping[int, tuple[str, Any]]) -> bool:
    """Return True if two of these objects have the same text, so that their identities may matter."""
    return len({text for text, _ in seen.values()}) < len(seen)


def constant_text(value: Any) -> str:
    """The text of a constant for this process. Functions of kernels that are defined in different lines have different
    texts, because messages name these lines."""
    return Writer(is_located=True).text(value)


def portable_text(value: Any) -> str:
    """The text of a constant for every process and machine; see the module docstring."""
    return Writer().text(value)


def is_portable(text: str) -> bool:
    """Return True if another process can produce the same text: no object in it is known by its identity alone."""
    return f"@{PROCESS}." not in text


def float_text(value: float) -> str:
    """``repr``, and for a NaN its bits."""
    return repr(value) if value == value else f"nan:{struct.pack('<d', value).hex()}"


class Writer:
    """Writes one constant, or several that belong together.

    `seen` has the functions of kernels that were written, each with its key, and the classes and objects, each with
    its name. A class, a function or a module that occurs again is written as its number; an object that contains
    itself, as its depth. With `is_whole`, functions of kernels are written in full too, so that the text shows which of
    equal functions are the same object.
    """

    def __init__(self, is_located: bool = False, is_whole: bool = False) -> None:
        self.is_located, self.is_whole = is_located, is_whole
        self.open: list[int] = []
        self.numbers: dict[int, int] = {}
        self.seen: dict[int, tuple[str, Any]] = {}

    def text(self, value: Any) -> str:
        kind = type(value)
        if kind in PLAIN:
            return repr(value)
        if kind is float:
            return float_text(value)
        if id(value) in self.open:
            return f"<level {self.open.index(id(value))}>"
        if len(self.open) >= DEEPEST:
            return alone(value)
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
            return f"{name_of(value)}#{key}"
        if hasattr(kind, "tobytes") and hasattr(kind, "dtype") and kind.__module__ in ARRAYS:
            return self.array(value, kind)
        return self.instance(value, kind)

    def items(self, values: Iterable[Any]) -> str:
        return ", ".join(map(self.text, values))

    def again(self, value: Any) -> str | None:
        """Return the name and number of a class, a function or a module that was written before; the first time, assign
        a number and return None."""
        if (number := self.numbers.get(id(value))) is not None:
            return f"{value.__name__}#{number}"
        self.numbers[id(value)] = len(self.numbers)
        return None

    def members(self, kind: type, values: Mapping[str, Any]) -> str:
        """The text of an object that its members determine."""
        return f"{self.text(kind)}({', '.join(f'{name}={self.text(member)}' for name, member in values.items())})"

    def array(self, value: Any, kind: type) -> str:
        """The text of a NumPy array or scalar, with a hash of all elements: a `repr` leaves out the middle."""
        if value.dtype.hasobject:
            return f"{name_of(kind)}({value.shape}, {self.text(value.tolist())})"
        return f"{name_of(kind)}({value.dtype}, {value.shape}, {value.strides}, {digest(value.tobytes())})"

    def instance(self, value: Any, kind: type) -> str:
        """The text of an object of any class: its class and its state, or its identity if it cannot be copied or has
        data on a device."""
        if hasattr(value, "data_ptr"):
            return alone(value)
        if is_python_made(kind):
            return self.python_object(value, kind, attributes_of(value, kind))
        try:
            reduce = sys.modules["copyreg"].dispatch_table.get(kind)
            parts = reduce(value) if reduce is not None else value.__reduce_ex__(2)
        except Exception:  # raised by code of the user's class
            return alone(value)
        if isinstance(parts, str):  # a name in its module
            return f"{name_of(kind)}.{parts}" if origin_of(module_of(value)) else alone(value)
        parts = tuple(tuple(part) if isinstance(part, Iterator) else part for part in parts)
        return f"{self.state(value, kind)}({self.items(parts)})"

    def python_object(self, value: Any, kind: type, state: Mapping[str, Any]) -> str:
        """The text of an object of a Python class. Without state and without an `__eq__`, this is its identity."""
        if kind.__eq__ is not object.__eq__:
            return self.members(kind, state)
        if not state and (kind is object or not is_of_library(kind)):
            return alone(value)
        if self.is_whole and id(value) in self.seen:
            return f"{kind.__name__}#{[*self.seen].index(id(value))}"
        self.seen[id(value)] = f"a {name_of(kind)}", value
        return self.members(kind, state)

    def state(self, value: Any, kind: type) -> str:
        """Return the class of an object and its attributes, without its items."""
        more = attributes_of(value, kind)
        return f"{self.text(kind)}{self.text(more) if more else ''}"

    def constant(self, value: constexpr) -> str:
        """The text of a `constexpr`, with attributes that the user has added."""
        shown = f"constexpr[{self.text(value.value)}]"
        if type(value) is constexpr and len(vars(value)) == 1:
            return shown
        return f"{shown}{self.members(type(value), vars(value))}"

    def enum(self, value: Any) -> str:
        """The text of a member of an enum: its name, its value and its other attributes."""
        more = {name: item for name, item in vars(value).items() if name not in OF_ENUM}
        shown = f"{self.text(type(value))}.{value.name}={self.text(value.value)}"
        return f"{shown}{self.text(more)}" if more else shown

    def sequence(self, value: Any) -> str:
        kind = type(value)
        if kind is tuple:
            return f"({self.items(value)}{',' if len(value) == 1 else ''})"
        if kind is list:
            return f"[{self.items(value)}]"
        names = getattr(kind, "_fields", None)
        return f"{self.state(value, kind)}({self.items(value)}){'' if names is None else names}"

    def mapping(self, value: Mapping[Any, Any]) -> str:
        kind = type(value)
        shown = ", ".join(f"{self.text(key)}: {self.text(item)}" for key, item in value.items())
        if (factory := getattr(value, "default_factory", None)) is not None:
            shown = f"{shown}, else {self.text(factory)}"
        return f"{'' if kind is dict else self.state(value, kind)}{{{shown}}}"

    def collection(self, value: Any) -> str:
        return f"{self.state(value, type(value))}({', '.join(sorted(map(self.text, value)))})"

    def bound(self, value: Any) -> str:
        """The text of a bound method with its object, or of a `partial` with its arguments."""
        if isinstance(value, partial):
            return f"{self.state(value, type(value))}({self.items((value.func, value.args, value.keywords))})"
        return f"{self.text(value.__func__)} of {self.text(value.__self__)}"

    def builtin(self, value: Any) -> str:
        """The text of a builtin function; with its object, if it is a method."""
        if value.__name__ in UNSEEN or value is globals:
            return alone(object())  # what it reads is another thing each time
        owner = getattr(value, "__self__", None)
        return (
            name_of(value)
            if owner is None or isinstance(owner, ModuleType)
            else f"{name_of(value)} of {self.text(owner)}"
        )

    def kernel_type(self, value: base_type) -> str:
        """The text of a type of the language; those of constants and tuples contain their constants."""
        if isinstance(value, constexpr_type):
            return f"constexpr_type({self.text(value.value)})"
        if isinstance(value, tuple_type):
            return f"tuple_type({self.items(value.types)}, {value.fields})"
        if isinstance(value, _aggregate_type):
            return f"aggregate({self.text(value.base_cls)}, {self.text(value.fields)})"
        return repr(value)

    def python_class(self, value: type) -> str:
        """The text of a class: its name and, if the user defines it, its members and its bases."""
        if is_of_library(value):
            return name_of(value)
        if (known := self.again(value)) is not None:
            return known
        members = [f"{name}: {self.text(member)}" for name, member in own_members(value)]
        bases = [self.text(base) for base in (*value.__bases__, type(value)) if base not in (object, type)]
        notes = [annotations_text(annotations_of(value))]
        notes += [
            self.text(field.metadata)
            for field in vars(value).get("__dataclass_fields__", {}).values()
            if field.metadata
        ]
        self.seen[id(value)] = name_of(value), value
        return f"{name_of(value)}{{{', '.join((*members, *notes))}}}({', '.join(bases)})"

    def python_module(self, value: ModuleType) -> str:
        """The text of a module that is used as a value: the name for one of a library, all members for one of the
        user."""
        if origin := origin_of(value.__name__):
            return f"module {origin}"
        if (known := self.again(value)) is not None:
            return known
        shown = {name: member for name, member in vars(value).items() if name not in OF_MODULE}
        return f"module {self.text(shown)}"

    def function(self, value: FunctionType, is_setting: bool = False) -> str:
        """The text of a plain Python function, which runs at compile time: its code, and all that this refers to.

        The version of a library stands for what its functions refer to, except for one that kernels call: `is_setting`,
        it may return what the environment or the program has set.
        """
        if is_of_language(value):
            return name_of(value)
        wrapped = getattr(value, "__wrapped__", None)
        if wrapped is not None and value.__globals__.get("__name__", "").startswith(LANGUAGE):
            return f"wrapped {self.text(wrapped)}"  # by `builtin`, whose own code is part of every key
        if (known := self.again(value)) is not None:
            return known
        code, cells = value.__code__, value.__closure__ or ()
        held = {name: cell.cell_contents for name, cell in zip(code.co_freevars, cells) if cell != EMPTY_CELL}
        is_known = is_versioned(value) and not is_setting
        outside = {} if is_known else {**self.referred(code, value.__globals__), **imported(self, value)}
        inside = self.referred(code, held) if held else {}
        parts = (value.__defaults__, value.__kwdefaults__, vars(value), value.__doc__, value.__qualname__)
        notes = annotations_text(own_annotations(value))
        unseen = "" if is_known or UNSEEN.isdisjoint(names_in(code)) else alone(value)
        text = f"{self.code(code)} {self.items(parts)} {notes} {outside} {inside} {unseen}"
        return f"{value.__name__}#{digest(text.encode())}{mark_of(text)}"

    def referred(self, code: CodeType, scope: Mapping[str, Any]) -> dict[str, str]:
        """Return the text of each outer variable that code names. Of a module of the user, only the members that the
        code names are included, if the code shows which; of a library's modules and classes, the plain values among
        them."""
        names = names_in(code)
        found: dict[str, str] = {}
        for name in names:
            if name in scope:
                value = scope[name]
                if value is os.environ and name in ENVIRONMENT:
                    continue  # the variables that are read count
                if isinstance(value, ModuleType) and not origin_of(value.__name__):
                    found[name] = self.named_members(value, code, name, names)
                else:
                    owner = value if isinstance(value, ModuleType | type) else type(value)
                    found[name] = f"{self.text(value)}{settings_text(owner, names)}"
            elif name in vars(builtins) and is_added(name, vars(builtins)[name]):
                found[name] = self.text(vars(builtins)[name])
        if not ENVIRONMENT.isdisjoint(names):
            found["environ"] = environment_text(code)
        if "globals" in names and "__name__" in scope and (module := sys.modules.get(scope["__name__"])) is not None:
            found["globals()"] = self.text(module)
        return found

    def named_members(self, module: ModuleType, code: CodeType, name: str, names: list[str]) -> str:
        from tilework.language.bytecode import takes_members_only  # lazily: few functions name modules of the user's

        is_open = hasattr(module, "__getattr__") or not DYNAMIC.isdisjoint(names)
        if is_open or not takes_members_only(code, name):
            return self.text(module)
        members = {each: vars(module)[each] for each in names if each in vars(module)}
        inner = {
            each: self.named_members(value, code, each, names)
            for each, value in members.items()
            if isinstance(value, ModuleType) and not origin_of(value.__name__) and value is not module
        }
        rest = {each: value for each, value in members.items() if each not in inner and value is not module}
        return f"module {self.text(rest)}{inner or ''}"

    def code(self, code: CodeType) -> str:
        """Return the instructions, constants and names of code, without its file and lines."""
        constants = [self.code(item) if isinstance(item, CodeType) else self.text(item) for item in code.co_consts]
        counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
        names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
        return f"{code.co_code.hex()} {code.co_exceptiontable.hex()} {constants} {names} {counts}"


RULES: dict[type, Callable[[Writer, Any], str]] = {  # `function.py` adds the functions of kernels
    constexpr: Writer.constant,
    kernel_tuple: lambda self, value: f"tuple({self.items(value.values)}){value.fields or ''}",
    base_type: Writer.kernel_type,
    Enum: Writer.enum,
    tuple: Writer.sequence,
    list: Writer.sequence,
    dict: Writer.mapping,
    MappingProxyType: Writer.mapping,
    set: Writer.collection,
    frozenset: Writer.collection,
    FunctionType: Writer.function,
    BuiltinFunctionType: Writer.builtin,
    MethodType: Writer.bound,
    partial: Writer.bound,
    property: lambda self, value: f"property({self.items((value.fget, value.fset, value.fdel, value.__doc__))})",
    staticmethod: lambda self, value: f"staticmethod({self.text(value.__func__)})",
    classmethod: lambda self, value: f"classmethod({self.text(value.__func__)})",
    cached_property: lambda self, value: f"cached_property({self.text(value.func)})",
    python_cached_property: lambda self, value: f"cached_property({self.text(value.func)})",
    type(cache(print)): lambda self, value: f"cache({self.items((value.__wrapped__, value.cache_parameters()))})",
    type: Writer.python_class,
    ModuleType: Writer.python_module,
}


def environment_text(code: CodeType) -> str:
    """The environment variables that code reads by name, with their values; if it may read others, a text that no other
    process has."""
    from tilework.language.bytecode import environment_names  # lazily: few functions read any

    names = environment_names(code, ENVIRONMENT)
    return alone(code) if names is None else str({name: os.environ.get(name) for name in names})


def settings_text(owner: ModuleType | type, names: Iterable[str], depth: int = 4) -> str:
    """Return the text of the plain values with these names in a library's module or class, and in its modules and
    classes with these names: a program or the environment may have set them."""
    if not (is_of_library(owner) if isinstance(owner, type) else origin_of(owner.__name__)):
        return ""
    found: dict[str, str] = {}
    holders = [vars(one) for one in (owner.__mro__ if isinstance(owner, type) else (owner,))]
    for name in names:
        value = next((holder[name] for holder in holders if name in holder), owner)
        if type(value) in PLAIN or type(value) in (float, constexpr):
            found[name] = portable_text(value)
        elif isinstance(value, ModuleType | type) and value is not owner and depth:
            found[name] = settings_text(value, names, depth - 1)
    shown = {name: text for name, text in found.items() if text}
    return str(shown) if shown else ""


def is_added(name: str, value: Any) -> bool:
    """Return True for a builtin name that a program has added or replaced."""
    return value is not NotImplemented and name not in OF_MODULE and module_of(value) != "builtins"


def own_annotations(function: Any) -> Mapping[str, Any]:
    """The annotations of a Python function."""
    return function.__annotations__ if sys.version_info < (3, 14) else annotations_of(function)


def names_in(code: CodeType) -> list[str]:
    """The names of outer variables and of attributes in code, and in the functions that it defines, in order."""
    inner = (name for item in code.co_consts if isinstance(item, CodeType) for name in names_in(item))
    return list(dict.fromkeys((*code.co_names, *code.co_freevars, *inner)))


def imported(writer: Writer, function: FunctionType) -> dict[str, str]:
    """Return the texts of the modules and members that a function imports when it runs."""
    if not imports(function.__code__):
        return {}
    from tilework.language.bytecode import imports_of  # lazily: few functions import

    return {name: writer.text(value) for name, value in imports_of(function).items()}


def imports(code: CodeType) -> bool:
    """Return True if code, or a function that it defines, has an import statement."""
    return IMPORT_NAME in code.co_code[::2] or any(
        imports(item) for item in code.co_consts if isinstance(item, CodeType)
    )


def annotations_text(notes: Mapping[str, Any]) -> str:
    """Return the text of the annotations of a function or a class."""
    return ", ".join(f"{name}: {annotation_text(note)}" for name, note in notes.items())


def annotation_text(note: Any) -> str:
    """Return the text of an annotation as the compiler reads it."""
    text = normalize_annotation(note)
    return "" if " at 0x" in text else text


def mark_of(text: str) -> str:
    """Return the suffix for the hash of a text that no other process can produce; empty for portable texts."""
    return "" if is_portable(text) else f"@{PROCESS}."


ALONE: dict[int, tuple[Any, int]] = {}  # the objects are kept: an address is used again
IDS = count()
PROCESS = os.urandom(8).hex()


def alone(value: Any) -> str:
    """An object of which only the identity is known."""
    _, id_ = ALONE.setdefault(id(value), (value, next(IDS)))
    return f"{name_of(type(value))}@{PROCESS}.{os.getpid()}.{id_}"
