"""Where Triton keeps its native code."""

from importlib import import_module
from typing import Any

__all__ = ["libtriton"]


def __getattr__(name: str) -> Any:
    if name != "libtriton":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.libtriton")
