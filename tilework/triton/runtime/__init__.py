"""Triton's runtime: its names, and its modules by the places that they have here."""

from importlib import import_module
from typing import Any

from tilework import runtime
from tilework.runtime import driver
from tilework.triton.serving.finder import exists, place_of

__all__ = ["driver"]


def __getattr__(name: str) -> Any:
    if name in runtime.NAMES or name == "driver":  # an import of its module may have replaced it
        return getattr(runtime, name)
    if not name.startswith("__") and exists(place := place_of(f"triton.runtime.{name}")):
        return import_module(place)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *runtime.NAMES})
