"""Knobs: a setting bound to an environment variable, and groups of them.

Example:
    class my_knobs(base_knobs):
        depth = env_int("MY_DEPTH", 3)

    assert my_knobs().depth == 3
"""

import os
import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from tilework.knobs.hooks import HookChain

if TYPE_CHECKING:
    from tilework.knobs.cuda_tools import NvidiaTool

T = TypeVar("T")
TRUE = frozenset({"1", "y", "yes", "on", "true"})
FALSE = frozenset({"", "0", "n", "no", "off", "false"})
SANITIZE_MODES = ("strict", "race")
SIZES = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


class Env:
    """The type of `env`: assign that to a knob to let the environment decide again."""


env = Env()


def getenv(key: str, default: str | None = None) -> str | None:
    """A variable without a knob; None or `default` when it is not set."""
    return os.environ.get(key, default)


def is_on(key: str) -> bool:
    """Return True if a variable without a knob is set to something that is not "off"."""
    return os.environ.get(key, "").lower() not in FALSE


def environment_without(keys: Iterable[str]) -> dict[str, str]:
    """The environment for another process that shall not see some variables."""
    return {key: text for key, text in os.environ.items() if key not in keys}


def package() -> Any:
    """This package, with the switch that programs set and the groups that are made of what is here."""
    return sys.modules["tilework.knobs"]


def places(group: "base_knobs", name: str) -> "list[tuple[dict[Any, Any], Any]]":
    """The dictionaries, with their keys, that a knob is read from: its value cannot change unless what is there
    does."""
    key = group.knob_descriptors[name].key
    environment: Any = os.environ
    return [(group.__dict__, name), (environment._data, environment.encodekey(key))]


def setenv(key: str, value: str | None) -> None:
    """Write a variable if `propagate_env` allows it; None removes it."""
    if package().propagate_env:
        os.environ.pop(key, None) if value is None else os.environ.update({key: value})


def toenv(val: Any) -> str | None:
    """The text for the environment: True is "1", a tool its path; None and classes have none."""
    if isinstance(val, bool):
        return "1" if val else "0"
    return None if val is None or isinstance(val, type) else str(getattr(val, "path", val))


class env_base(Generic[T]):
    """One setting bound to a variable; subclasses say what its text means and what holds without it."""

    default: Any = None

    def __init__(self, key: str, default: Any = None) -> None:
        self.key, self.name = key, ""
        if default is not None:
            self.default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def get(self, group: Any = None) -> T:
        """The value that the environment gives."""
        text = os.environ.get(self.key)
        return self.fallback(group) if text is None else self.transform(text)

    def transform(self, text: str) -> T:
        """The value that a text means."""
        return text  # pyright: ignore[reportReturnType]

    def fallback(self, group: Any) -> T:
        """The value without the variable."""
        return self.default

    def __get__(self, group: Any, owner: type | None = None) -> T:
        return self if group is None else self.current(group)  # pyright: ignore[reportReturnType]

    def current(self, group: Any) -> T:
        """The value that holds in a group."""
        if self.name not in group.__dict__:
            return self.get(group)
        value = group.__dict__[self.name]
        return self.transform(value) if isinstance(value, str) else value

    def __set__(self, group: Any, value: Any) -> None:
        if value is env:
            return self.__delete__(group)
        group.__dict__[self.name] = value
        setenv(self.key, toenv(value))

    def __delete__(self, group: Any) -> None:
        group.__dict__.pop(self.name, None)


class env_str(env_base[str]):
    """A text."""


class env_str_callable_default(env_base[str]):
    """A text whose default is computed when it is asked for."""

    def __init__(self, key: str, default_factory: Callable[[], str]) -> None:
        super().__init__(key)
        self.default_factory = default_factory

    def fallback(self, group: Any) -> str:
        return self.default_factory()


class env_home_dir(env_base[str]):
    """A folder below the group's `home_dir`, unless named: ``~/.triton/cache``."""

    def fallback(self, group: Any) -> str:
        return (group or package().cache).get_triton_dir(self.default)


class env_bool(env_base[bool]):
    """True for 1, y, yes, on and true in any case; false for any other text."""

    default = False

    def transform(self, text: str) -> bool:
        return text.lower() in TRUE


class env_opt_bool(env_base[bool | None]):
    """A bool, None when unset: three states."""

    transform = env_bool.transform


class env_sanitize(env_base[bool | str]):
    """Off, on, or the name of a mode: see docs/sanitizer.md."""

    default = False

    def transform(self, text: str) -> bool | str:
        name = text.strip().lower()
        if name not in (*SANITIZE_MODES, *TRUE, *FALSE):
            raise ValueError(f"{self.key} is 0, 1, {' or '.join(SANITIZE_MODES)}, not {text!r}")
        return name if name in SANITIZE_MODES else name in TRUE


def sanitize_mode(given: object) -> bool | str:
    """The value of the option `sanitize`: False, True, "strict" or "race"."""
    if isinstance(given, str) and given not in SANITIZE_MODES:
        raise ValueError(f"sanitize is True, False, {' or '.join(map(repr, SANITIZE_MODES))}, not {given!r}")
    return given if isinstance(given, str) else bool(given)


class env_int(env_base[int]):
    """A whole number; any other text is an error."""

    default = 0

    def transform(self, text: str) -> int:
        try:
            return int(text)
        except ValueError as error:
            raise RuntimeError(f"Unable to use {self.key}={text}: expected int") from error


class env_opt_int(env_int):
    """A whole number, or None when unset."""

    default = None


class env_size(env_int):
    """A number of bytes: ``500000``, ``64k``, ``512M``, ``4G``."""

    def transform(self, text: str) -> int:
        word = text.strip().lower()
        digits, factor = (word[:-1], SIZES[word[-1]]) if word[-1:] in SIZES else (word, 1)
        if not digits.isdecimal():
            raise RuntimeError(f"Unable to use {self.key}={text}: expected bytes, for example 500000, 64k, 512M or 4G")
        return int(digits) * factor


class env_opt_str(env_base[str | None]):
    """A text, None when unset or empty."""

    def transform(self, text: str) -> str | None:
        return text or None


class env_device(env_opt_str):
    """A device: that of the host has two names."""

    def transform(self, text: str) -> str | None:
        return "native" if text == "cpu" else super().transform(text)


class env_class(env_base[type | None]):
    """A class as ``module:Class``, which must have a class called `type` among its bases; None when unset."""

    def __init__(self, key: str, type: str) -> None:
        super().__init__(key)
        self.type = type

    def transform(self, text: str) -> type | None:
        module, colon, name = text.partition(":")
        if not (module and colon and name):
            raise RuntimeError(f"Unable to read {self.key}: {text!r} isn't of the form MODULE:CLASS")
        try:
            found: Any = attrgetter(name)(import_module(module))
        except (ImportError, AttributeError) as error:
            raise RuntimeError(f"Unable to read {self.key}: {text!r}: {error}") from error
        if not isinstance(found, type) or self.type not in {base.__name__ for base in found.__mro__}:
            raise RuntimeError(f"Unable to use {text!r} from {self.key}: not of type {self.type!r}")
        return found


class env_nvidia_tool(env_base["NvidiaTool | None"]):
    """A program of the CUDA toolkit: the one that the variable names if it runs, else the newest one found."""

    def __init__(self, binary: str) -> None:
        super().__init__(f"TRITON_{binary.upper().replace('-', '_')}_PATH")
        self.binary = binary

    def transform(self, text: str | None) -> "NvidiaTool | None":
        from tilework.knobs.cuda_tools import find_tool  # loads subprocess, which few programs need

        return find_tool(self.binary, text, os.environ.get("CUDA_HOME"))

    def fallback(self, group: Any) -> "NvidiaTool | None":
        return self.transform(None)

    def __get__(self, group: Any, owner: type | None = None) -> "NvidiaTool":
        tool = super().__get__(group, owner)
        if tool is None:
            source = "nvidia-cuda-nvcc (pip)" if self.binary.startswith("ptxas") else "a CUDA toolkit"
            raise RuntimeError(f"Cannot find {self.binary}: install {source}, or set {self.key} to its path")
        return tool


@cache
def knobs_of(group: type) -> dict[str, env_base[Any]]:
    """The knobs that a class defines."""
    return {name: knob for name, knob in vars(group).items() if isinstance(knob, env_base)}


class base_knobs:
    """Knobs that belong together. `READ_ONCE` are those that are plain attributes, read at import."""

    READ_ONCE: ClassVar[dict[str, env_base[Any]]] = {}

    def __init__(self) -> None:
        self.refresh()

    def refresh(self) -> None:
        """Read those again that are read once."""
        for name, knob in self.READ_ONCE.items():
            setattr(self, name, knob.get())

    @property
    def knob_descriptors(self) -> dict[str, env_base[Any]]:
        """The knobs that have a variable, by name."""
        return knobs_of(type(self))

    @property
    def variables(self) -> list[str]:
        """The names of all variables of the group."""
        return [knob.key for knob in (*self.knob_descriptors.values(), *self.READ_ONCE.values())]

    @property
    def knobs(self) -> dict[str, Any]:
        """The values now; None for a tool that this machine does not have."""
        return {name: knob.current(self) for name, knob in self.knob_descriptors.items()}

    def copy(self) -> Self:
        """A group with the same values that can be changed alone."""
        other = type(self)()
        for name, value in vars(self).items():
            other.__dict__[name] = value.copy() if isinstance(value, HookChain) else value
        return other

    def reset(self) -> Self:
        """Return every knob to the environment or its default; hooks stay."""
        for name in self.knob_descriptors:
            delattr(self, name)
        self.refresh()
        return self

    @contextmanager
    def scope(self) -> Generator[Self, None, None]:
        """On exit the group, its hooks and its variables are what they were."""
        values = dict(vars(self))
        calls = {name: list(value.calls) for name, value in values.items() if isinstance(value, HookChain)}
        texts = {key: os.environ.get(key) for key in self.variables}
        try:
            yield self
        finally:
            self.__dict__.clear()
            self.__dict__.update(values)
            for name, before in calls.items():
                values[name].calls = before
            for key, text in texts.items():
                os.environ.pop(key, None) if text is None else os.environ.update({key: text})
