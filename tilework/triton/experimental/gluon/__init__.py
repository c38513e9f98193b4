"""Gluon as far as programs need it that have Gluon kernels beside others: they can be defined, and refuse to be launched.

    from triton.experimental import gluon
    import triton.experimental.gluon.language as gl

    @gluon.jit
    def kernel(x, layout: gl.constexpr): ...      # fine

    kernel[grid](x, layout)                       # StageError: kernel (train.py:8) is a Gluon kernel, which tilework ...

Every other name of Gluon's modules stands for itself and raises the same error when it is used.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

from tilework.errors import StageError
from tilework.language.core import must_use_result
from tilework.language.function import constexpr_function
from tilework.runtime.launch.python.jit import JITFunction

__all__ = ["constexpr_function", "jit", "must_use_result"]

WHY = "tilework compiles the tile language (triton.language) and has no compiler for Gluon, on any target"
MODULES = frozenset(
    f"triton.experimental.gluon.{name}"
    for name in (
        "amd", "amd.gfx1250", "nvidia.blackwell", "language.amd", "language.amd.cdna3", "language.amd.cdna4", "language.amd.cdna4.async_copy",
        "language.amd.gfx1250", "language.amd.gfx1250.async_copy", "language.amd.gfx1250.mbarrier", "language.amd.gfx1250.tdm",
        "language.amd.rdna3", "language.amd.rdna4", "language.nvidia", "language.nvidia.ampere", "language.nvidia.ampere.async_copy",
        "language.nvidia.ampere.mbarrier", "language.nvidia.blackwell", "language.nvidia.blackwell.float2", "language.nvidia.blackwell.tma",
        "language.nvidia.hopper", "language.nvidia.hopper.mbarrier", "language.nvidia.hopper.tma",
    )
)  # fmt: skip


class GluonJITFunction(JITFunction):
    """A kernel or function in Gluon."""

    def is_gluon(self) -> bool:
        return True

    def run(self, *args: Any, **kwargs: Any) -> Any:
        code = self.fn.__code__
        raise StageError(f"{self.__name__} ({code.co_filename}:{code.co_firstlineno}) is a Gluon kernel: {WHY}")

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return self.run

    warmup = preload = run


def jit(fn: Any = None, **options: Any) -> Any:
    """A decorator like `triton.jit`, for Gluon."""
    return GluonJITFunction(fn, **options) if fn is not None else lambda fn: GluonJITFunction(fn, **options)


class NotCompiled:
    """What a name of Gluon's is until somebody uses it."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise StageError(f"{self.__name__} is Gluon: {WHY}")

    def __getattr__(self, name: str) -> "NotCompiled":
        return (
            NotCompiled(f"{self.__name__}.{name}") if not name.startswith("_") else object.__getattribute__(self, name)
        )

    def __repr__(self) -> str:
        return f"<{self.__name__}, which tilework cannot compile>"


class GluonModule(ModuleType):
    """A module of Gluon's of which nothing is here but the names."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return NotCompiled(f"{self.__name__}.{name}")
