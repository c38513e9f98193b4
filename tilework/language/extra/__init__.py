"""Functions that exist only on some devices: ``tl.extra.cuda``, ``tl.extra.hip``, and the neutral
``tl.extra.libdevice``."""

from importlib import import_module
from typing import Any

from tilework.language.extra import cuda, libdevice

__all__ = ["cuda", "hip", "libdevice"]


def __getattr__(name: str) -> Any:
    """Load `hip` on first use."""
    if name != "hip":
        raise AttributeError(f"tl.extra has no {name!r}")
    return import_module("tilework.language.extra.hip")


def __dir__() -> list[str]:
    """Return all names, also those that are loaded when they are first used."""
    return sorted({*globals(), *__all__})
