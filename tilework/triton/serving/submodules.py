"""Modules of a package that are loaded when somebody asks for them.

__getattr__, __dir__ = on_demand(__name__, "compiler", "driver")
"""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def on_demand(package: str, *names: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package that has these modules."""

    def get(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return import_module(f"{package}.{name}")

    return get, lambda: sorted({*vars(sys.modules[package]), *names})
