"""The symbol of a specialised function: name, argument types, constants.

    sum of a tensor<4096xf32> with axis 0   ->   tilework.language.standard.sum__fp32S4096S__(1,)cconstexpr_0_...

The text is for people (and for tests that look for parts of it); it does not tell everything apart: the constants 1 and
"1" look the same, and so do two functions made by the same factory. What makes two calls the same function are
equal types of their arguments, constants among them; of two that would share a symbol, the later one gets a number.

Symbols are ASCII, as identifiers of PTX and of most assemblers are: a character beyond it is written as its code, ``größe`` is
``gr_u00f6__u00df_e``.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from tilework.language import core as tl
from tilework.language.function import JITCallable, ascii_symbol

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
        text = ascii_symbol(f"{name}__{runtime}__{constants}")
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
