"""`llvmlite.binding`, imported without the classes of llvmlite's own IR: a quarter of the time, for one method that
this package never calls.

    from tilework.targets.llvm.binding import llvm

The module that has that method, `TypeRef.as_ir`, gets a proxy for ``llvmlite.ir`` that imports it when it is
used. Other users of ``llvmlite.ir`` get the real module.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import llvmlite


class Later:
    """A module, or a class in it, that is imported when it is used."""

    def __init__(self, module: str, name: str = "") -> None:
        self._module, self._name = module, name

    def __getattr__(self, name: str) -> Any:
        return (
            getattr(getattr(import_module(self._module), self._name), name) if self._name else Later(self._module, name)
        )


@contextmanager
def without_ir() -> Iterator[None]:
    """``from llvmlite import ir`` gives a stand-in, unless the program has imported it already."""
    package: Any = llvmlite
    if hasattr(package, "ir"):
        yield
        return
    lazy = package.ir = Later("llvmlite.ir")
    try:
        yield
    finally:
        if package.__dict__.get("ir") is lazy:  # no other thread has imported it in the meantime
            del package.ir


with without_ir():
    import llvmlite.binding as llvm

__all__ = ["llvm"]
