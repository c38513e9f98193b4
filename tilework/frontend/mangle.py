"""The symbol of a specialised function: name, argument types, constants.

    sum of a tensor<4096xf32> with axis 0   ->   tilework.language.standard.sum__fp32S4096S__(1,)cconstexpr_0_...
"""

from collections.abc import Iterator, Sequence
from typing import Any

from tilework.language import core as tl
from tilework.language.function import JITCallable

REPLACEMENTS = ((".", "_d_"), ("'", "_sq_"), ("[", "_"), ("]", "_"))


class Mangler:
    """Makes the symbols of one module; two different functions of the same name get different symbols."""

    def __init__(self) -> None:
        self.namesakes: dict[str, list[JITCallable]] = {}

    def symbol(self, fn: JITCallable, types: Sequence[Any]) -> str:
        """The symbol of `fn` for arguments of `types`; equal symbols mean equal code."""
        runtime = "_".join(type.mangle() for type in types if not isinstance(type, tl.constexpr_type))
        constants = "_".join(
            f"{path}c{self.constant_text(value)}"
            for index, type in enumerate(types)
            for path, value in constants_in(type, (index,))
        )
        for old, new in REPLACEMENTS:
            constants = constants.replace(old, new)
        name = f"{fn.fn.__module__}.{fn.fn.__qualname__}".replace(".<locals>.", ".")
        return f"{name}{self.ordinal(name, fn)}__{runtime}__{constants}"

    def ordinal(self, name: str, fn: JITCallable) -> str:
        """Nothing for the first function called `name` in this module, .1, .2 ... for further ones."""
        known = self.namesakes.setdefault(name, [])
        index = next((index for index, other in enumerate(known) if other is fn), len(known))
        if index == len(known):
            known.append(fn)
        return f".{index}" if index else ""

    def constant_text(self, value: Any) -> str:
        """A constant as it stands in a symbol."""
        if value is None:
            return "None"
        if isinstance(value, JITCallable):
            return repr(value) + self.ordinal(repr(value), value)
        return repr(tl.constexpr(value))


def constants_in(type: Any, path: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Any]]:
    """The compile-time leaves of an argument type with their index paths."""
    if isinstance(type, tl.constexpr_type):
        yield path, type.value
    elif isinstance(type, tl.tuple_type):
        for index, item in enumerate(type.types):
            yield from constants_in(item, (*path, index))
