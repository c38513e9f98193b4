"""Every environment variable that tilework reads, under the names Triton users know.

    >>> with compilation.scope():
    ...     compilation.front_end_debugging = True      # as TRITON_FRONT_END_DEBUGGING=1

A knob has the value set in Python, else the one in the environment, else its default. `del group.knob` forgets the
first. Nothing else in the package looks at `os.environ`.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

T = TypeVar("T")
TRUE = frozenset({"1", "y", "yes", "on", "true"})


class Knob(Generic[T]):
    """One setting, bound to an environment variable."""

    def __init__(self, key: str, default: T, read: Callable[[str], T]) -> None:
        self.key, self.default, self.read = key, default, read

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, group: Any, owner: type | None = None) -> T:
        if group is None:
            return self  # pyright: ignore[reportReturnType]
        if self.name in group.__dict__:
            return group.__dict__[self.name]
        text = os.environ.get(self.key)
        return self.default if text is None else self.read(text)

    def __set__(self, group: Any, value: T) -> None:
        group.__dict__[self.name] = value

    def __delete__(self, group: Any) -> None:
        group.__dict__.pop(self.name, None)


def env_bool(key: str, default: bool = False) -> Knob[bool]:
    """True for 1, y, yes, on and true in any case; false for anything else."""
    return Knob(key, default, lambda text: text.lower() in TRUE)


def env_opt_str(key: str) -> Knob[str | None]:
    """A text, None when unset or empty."""
    return Knob(key, None, lambda text: text or None)


class KnobGroup:
    """Knobs that belong together."""

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Forget on exit whatever was set in Python inside."""
        saved = dict(self.__dict__)
        try:
            yield
        finally:
            self.__dict__.clear()
            self.__dict__.update(saved)

    def reset(self) -> None:
        """Return every knob to the environment or its default."""
        self.__dict__.clear()


class CompilationKnobs(KnobGroup):
    front_end_debugging = env_bool("TRITON_FRONT_END_DEBUGGING")
    allow_non_constexpr_globals = env_bool("TRITON_ALLOW_NON_CONSTEXPR_GLOBALS")
    disable_line_info = env_bool("TRITON_DISABLE_LINE_INFO")


class LanguageKnobs(KnobGroup):
    fp32_default = env_opt_str("TRITON_F32_DEFAULT")


class RuntimeKnobs(KnobGroup):
    debug = env_bool("TRITON_DEBUG")


compilation = CompilationKnobs()
language = LanguageKnobs()
runtime = RuntimeKnobs()
