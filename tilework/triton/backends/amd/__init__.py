"""AMD GPUs: their name and what it says about arguments. There is no compiler for them here."""

from importlib import import_module
from typing import Any

__all__ = ["compiler"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
