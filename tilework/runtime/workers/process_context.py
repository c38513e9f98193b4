"""What a process must look like to compile for another one: its folder, import path, environment and names.

context = context_of_process()          # JSON, by `vars`
"""

import os
import sys
from collections.abc import Mapping
from types import FunctionType
from typing import Any

from tilework import knobs, plugins
from tilework.runtime.kernel_cache.environment import CACHE_INVALIDATING
from tilework.runtime.kernel_cache.key import triton_key

OURS = "tilework."
GROUPS = ("amd", "cache", "compilation", "language", "nvidia", "redis", "runtime")  # by name: tests replace the objects


class Context:
    """What a process must look like to compile for the one that asks. All fields are JSON."""

    def __init__(
        self, package: str, folder: str, path: list[str], environment: dict[str, str], as_triton: bool
    ) -> None:
        self.package, self.folder, self.path = package, folder, path
        self.environment, self.as_triton = environment, as_triton


def is_context(data: Any) -> bool:
    """Return True if a message has what `Context` takes."""
    kinds = {"package": str, "folder": str, "path": list, "environment": dict, "as_triton": bool}
    if not isinstance(data, dict) or data.keys() != kinds.keys():
        return False
    if not all(isinstance(data[name], kind) for name, kind in kinds.items()):
        return False
    texts = (*data["path"], *data["environment"], *data["environment"].values())
    return all(isinstance(text, str) for text in texts)


def context_of_process() -> Context | None:
    """The context of this process; None if it has no folder any more."""
    try:
        folder = os.getcwd()
    except FileNotFoundError:
        return None
    set_here = knobs.environment_without(())
    environment = {key: text for key, text in {**set_here, **settings(set_here)}.items() if text is not None}
    path = [place for place in sys.path if isinstance(place, str)]  # anything may stand there
    return Context(triton_key(), folder, path, environment, knobs.language.is_triton)


def settings(set_here: Mapping[str, str]) -> dict[str, str | None]:
    """The environment variables that say the same as this process's knobs, where these are set; None for those that are not."""
    found = {key: set_here.get(key) for key in CACHE_INVALIDATING}
    for group in (getattr(knobs, name) for name in GROUPS):
        for name, knob in {**group.knob_descriptors, **group.READ_ONCE}.items():
            here = vars(group)
            found[knob.key] = knobs.toenv(here[name]) if name in here else set_here.get(knob.key)
    return found | {"TRITON_INTERPRET": None}


def is_as_written(backend: type) -> bool:
    """Whether another process has this class of a backend for its target, and the same functions in it: nobody has put others there."""
    if not all(plugin.value.startswith(OURS) for plugin in plugins.PREFERRED.values()):  # those of `as_triton`
        return False
    return all(
        package_of(function.__globals__.get("__name__", "")) == package_of(cls.__module__)
        for cls in backend.__mro__
        for member in vars(cls).values()
        for function in functions_of(member)
    )


def package_of(module: str) -> str:
    return module.partition(".")[0]


def functions_of(member: Any) -> list[FunctionType]:
    """The Python functions of a member of a class, whatever they are wrapped in or pretend to be (`functools.wraps`)."""
    if isinstance(member, property):
        return [function for part in (member.fget, member.fset, member.fdel) for function in functions_of(part)]
    found = getattr(member, "__func__", member)
    return [found] if isinstance(found, FunctionType) else []
