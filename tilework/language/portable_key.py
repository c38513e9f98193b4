"""A key of a kernel and its constants that is the same on every machine: without paths, line numbers and module names.

    portable_key(kernel)        a hash of its text, of the functions that it calls and of the globals that it reads
    portable_text((1, helper))  a constant; functions of kernels by their `portable_key`

`cache_key` and `constant_text` also contain line numbers, which are a part of compiled code: two kernels that differ in
nothing else compute the same, and report different lines in their messages. A script is called `__main__` when it
runs and something else when it is imported, so modules have no names here. What this package itself defines is a part
of its version.
"""

from collections.abc import Mapping
from typing import Any

from tilework.language.compile_time import constexpr
from tilework.language.constant_text import PROCESS, Writer, digest, is_of_language
from tilework.language.function import SOURCES, JITCallable


class PortableWriter(Writer):
    """Constants without locations; `seen` are the functions that are being hashed, or have been."""

    def __init__(self, seen: dict[int, str]) -> None:
        super().__init__()
        self.seen = seen

    def name_of(self, value: Any) -> str:
        named = value if hasattr(value, "__qualname__") else type(value)
        return named.__qualname__

    def compound(self, value: Any, kind: type) -> str:
        if isinstance(value, JITCallable):
            return f"{self.name_of(value)}#{key_of(value, self.seen)}"
        return super().compound(value, kind)


def portable_text(value: Any) -> str:
    """A constant; see the module docstring."""
    return PortableWriter({}).text(value)


def is_portable(text: str) -> bool:
    """Return True if another process can have the same text: not if an object in it is known by its identity alone."""
    return f"@{PROCESS}." not in text


def portable_key(fn: JITCallable) -> str:
    """The hash of a kernel; see the module docstring."""
    kept: tuple[int, str] | None = fn.__dict__.get("_portable_key")
    if kept is None or kept[0] != SOURCES["revision"]:
        kept = fn.__dict__["_portable_key"] = SOURCES["revision"], key_of(fn, {})
    return kept[1]


def key_of(fn: JITCallable, seen: dict[int, str]) -> str:
    if fn.fn is None:  # it was pickled without its text
        return fn.cache_key
    if is_of_language(fn.fn):
        return fn.__qualname__
    if id(fn) not in seen:
        seen[id(fn)] = fn.__qualname__  # for functions that call each other
        seen[id(fn)] = digest("\n".join([fn.src, str(getattr(fn, "noinline", False)), *parts_of(fn, seen)]).encode())
    return seen[id(fn)]


def parts_of(fn: JITCallable, seen: dict[int, str]) -> list[str]:
    """Return the values that the text of a kernel refers to, in order."""
    found = fn.dependencies
    used = [PortableWriter(seen).text(item) for item in (*found.functions, *found.plain_functions, *found.classes)]
    values = [f"{name}={PortableWriter(seen).text(value)}" for (name, _), (value, _) in found.global_values.items()]
    defaults = [f"{name}:{PortableWriter(seen).text(value)}" for name, value in found.defaults.items()]
    return used + values + defaults


def globals_of(fn: JITCallable) -> Mapping[str, str]:
    """The globals that the text of a function names, with their values; one that is a `constexpr` as what it holds.
    Default arguments are called ``helper.n``."""
    found = fn.dependencies
    values = {name: value for (name, _), (value, _) in found.global_values.items()}
    values |= {f"{fn.__qualname__}.{name}": value for name, value in found.defaults.items()}
    writer = PortableWriter({})
    return {name: writer.text(value.value if isinstance(value, constexpr) else value) for name, value in values.items()}
