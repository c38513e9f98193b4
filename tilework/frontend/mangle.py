"""The symbol of a specialised function: name, argument types, constants.

    sum of a tensor<4096xf32> with axis 0   ->   tilework.language.standard.sum__fp32S4096S__(1,)cconstexpr_0_...

The text is for people (and for tests that look for parts of it); it does not tell everything apart: the constants 1 and
"1" look the same, and so do two functions made by the same factory. What makes two calls the same function is
`specialization`; of two that would share a symbol, the later one gets a number.
"""

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from tilework.language import core as tl
from tilework.language.aggregate import _aggregate_type
from tilework.language.function import JITCallable

REPLACEMENTS = ((".", "_d_"), ("'", "_sq_"), ("[", "_"), ("]", "_"))


class Mangler:
    """Makes the symbols of one module, all different."""

    def __init__(self) -> None:
        self.used: dict[str, int] = {}

    def symbol(self, fn: JITCallable, types: Sequence[Any]) -> str:
        """A new symbol for `fn` on arguments of `types`."""
        runtime = "_".join(leaf.mangle() for type in types for leaf in runtime_types_in(type))
        constants = "_".join(
            f"{path}c{constant_text(value)}"
            for index, type in enumerate(types)
            for path, value in constants_in(type, (index,))
        )
        for old, new in REPLACEMENTS:
            constants = constants.replace(old, new)
        name = f"{fn.fn.__module__}.{fn.fn.__qualname__}".replace(".<locals>.", ".")
        text = f"{name}__{runtime}__{constants}"
        count = self.used[text] = self.used.get(text, -1) + 1
        return f"{text}.{count}" if count else text


def constant_text(value: Any) -> str:
    """A constant as it stands in a symbol."""
    return repr(value) if value is None or isinstance(value, JITCallable) else repr(tl.constexpr(value))


def runtime_types_in(type: Any) -> Iterator[Any]:
    """The run-time leaves of an argument type."""
    if isinstance(type, tl.tuple_type):
        for item in type.types:
            yield from runtime_types_in(item)
    elif not isinstance(type, tl.constexpr_type):
        yield type


def constants_in(type: Any, path: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Any]]:
    """The compile-time leaves of an argument type with their index paths."""
    if isinstance(type, tl.constexpr_type):
        yield path, type.value
    elif isinstance(type, tl.tuple_type):
        for index, item in enumerate(type.types):
            yield from constants_in(item, (*path, index))


def specialization(fn: JITCallable, types: Sequence[Any]) -> Hashable:
    """Equal for two calls that run the same code."""
    return fn, tuple(map(type_key, types))


def type_key(type: Any) -> Hashable:
    """An argument type as a dictionary key; constants by value and class, so that 1, 1.0 and True differ."""
    if isinstance(type, tl.constexpr_type):
        return constant_key(type.value)
    if isinstance(type, tl.tuple_type):
        return tuple(map(type_key, type.types)), tuple(type.fields or ())
    if isinstance(type, _aggregate_type):
        return type.base_cls, tuple(type_key(field) for _, field in type.fields)
    return type


class Only:
    """The key of an object that is equal to nothing else; it keeps the object, whose address would be used again."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Only) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def constant_key(value: Any) -> Hashable:
    """A constant as a dictionary key; what has no hash is itself alone."""
    kind = type(value)
    if kind in (int, bool, str, bytes, type(None)):
        return kind, value
    if kind is float:  # nan is nan, and 0.0 is not -0.0
        return kind, repr(value)
    if isinstance(value, tl.constexpr):
        return constant_key(value.value)
    if isinstance(value, tl.tuple):
        return kind, tuple(map(constant_key, value.values))
    if isinstance(value, list | tuple):
        return kind, tuple(map(constant_key, value))
    if isinstance(value, dict):
        return kind, tuple((constant_key(key), constant_key(item)) for key, item in value.items())
    if isinstance(value, tl.base_type):
        return kind, value
    return kind, Only(value)
