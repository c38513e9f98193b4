"""What a process must look like to compile for another one: its folder, import path, environment and names.

context = context_of_process()          # JSON, by `vars`
"""

import os
import sys
from dataclasses import dataclass

from tilework import knobs
from tilework.runtime.kernel_cache.environment import CACHE_INVALIDATING
from tilework.runtime.kernel_cache.key import triton_key

GROUPS = ("amd", "cache", "compilation", "language", "nvidia", "redis", "runtime")  # by name: tests replace the objects


@dataclass(frozen=True)
class Context:
    """What a process must look like to compile for the one that asks. All fields are JSON."""

    package: str
    folder: str
    path: list[str]
    environment: dict[str, str]
    as_triton: bool


def context_of_process() -> Context | None:
    """The context of this process; None if it has no folder any more."""
    try:
        folder = os.getcwd()
    except FileNotFoundError:
        return None
    environment = {
        key: text for key, text in {**knobs.environment_without(()), **settings()}.items() if text is not None
    }
    path = [place for place in sys.path if isinstance(place, str)]  # anything may stand there
    return Context(triton_key(), folder, path, environment, is_called_triton())


def is_called_triton() -> bool:
    """Whether `import triton` means tilework in this process."""
    return any(type(finder).__name__ == "TritonFinder" for finder in sys.meta_path)


def settings() -> dict[str, str | None]:
    """The environment variables that say the same as this process's knobs; None for those that are not set."""
    found = {key: knobs.getenv(key) for key in CACHE_INVALIDATING}
    for group in (getattr(knobs, name) for name in GROUPS):
        for name, knob in {**group.knob_descriptors, **group.READ_ONCE}.items():
            here = vars(group)
            found[knob.key] = knobs.toenv(here[name]) if name in here else knobs.getenv(knob.key)
    return found | {"TRITON_INTERPRET": None}
