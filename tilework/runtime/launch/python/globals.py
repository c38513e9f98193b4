"""Globals that a kernel reads are fixed when it is compiled; a launch after one of them changed is an error."""

from collections.abc import Iterable
from typing import Any

from tilework.language.compile_time import same_constant
from tilework.language.constant_text import is_of_language, methods_of
from tilework.language.dependencies import functions_in

Captured = dict[tuple[str, int], tuple[Any, Any]]


def collect_globals(fn: Any, found: Captured | None = None, seen: set[int] | None = None) -> Captured:
    """The globals that `fn` and all functions it calls read, with the values they were compiled with."""
    found = {} if found is None else found
    seen = set() if seen is None else seen
    if id(fn) in seen:
        return found
    seen.add(id(fn))
    for key, (value, scope) in fn.used_global_vals.items():
        if key in found and not same(found[key][0], value):
            name = key[0]
            raise RuntimeError(
                f"Global variable {name} has value {value} when compiling {fn.__name__}, but inner kernel"
                f" {fn.__name__} has conflicting value {found[key][0]} from when it was first compiled."
                "  This is not allowed."
            )
        found[key] = (value, scope)
    methods = (method for cls in fn.dependencies.classes for _, method in methods_of(cls))
    for function in (*fn.dependencies.functions, *methods):
        if hasattr(type(function), "used_global_vals") and not is_library(function):
            collect_globals(function, found, seen)
    return found


def is_library(function: Any) -> bool:
    """Return True for functions of this package, whose globals are a part of the version."""
    return function.fn is not None and is_of_language(function.fn)


def unless_same(old: Captured | None, new: Captured) -> Captured:
    """`old` if `new` says the same, so that watchers of its identity see no change."""
    if old is None or old.keys() != new.keys():
        return new
    return old if all(old[key][0] is value for key, (value, _) in new.items()) else new


def globals_of_constants(constants: Iterable[object]) -> Captured:
    """The globals that functions among the constants of a kernel read."""
    found: Captured = {}
    for function in functions_in(list(constants)):
        if hasattr(function, "used_global_vals"):
            collect_globals(function, found)
    return found


def same(old: object, new: object) -> bool:
    """Equal as constants of a kernel; constexprs compare by what they hold."""
    try:
        return same_constant(getattr(old, "value", old), getattr(new, "value", new))
    except Exception:  # a user's __eq__ may do anything; unequal is the safe answer
        return False


def check_globals(captured: Captured) -> None:
    """Compare every captured global with its value now."""
    for (name, _), (old, scope) in captured.items():
        new = scope.get(name)
        if new is not old and not same(old, new):
            raise RuntimeError(f"Global variable {name} has changed since we compiled this kernel, from {old} to {new}")
