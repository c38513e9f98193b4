"""Gluon's language: what it shares with the tile language, and names for the rest (`NotCompiled`)."""

from typing import Any

import tilework.language as tile_language
from tilework.triton.experimental.gluon import NotCompiled
from tilework.triton.experimental.gluon.language._layouts import NVMMASharedLayout

__all__ = ["NVMMASharedLayout"]


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(tile_language, name, None)
    return found if found is not None else NotCompiled(f"triton.experimental.gluon.language.{name}")
