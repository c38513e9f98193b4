"""Scopes inside of kernels, for ``backend="instrumentation"``; kernels that have them run everywhere.

    import triton.profiler.language as pl

    @triton.jit
    def kernel(x):
        with pl.scope("load"):
            ...

They put clocks into the code where `flags.instrumentation_on` is set, and nothing otherwise. tilework compiles no
clocks, so that it never is; setting it by hand is an error at the line.
"""

from types import TracebackType
from typing import Any

from tilework.frontend.semantic import Semantic
from tilework.inspect.profiler.hooks import WHY_NOT
from tilework.inspect.profiler.stacks import flags
from tilework.language.core import _unwrap_if_constexpr, builtin

_ALL_SEMANTICS: dict[str, type] = {"triton": Semantic}
_SEMANTICS: set[type] = set()


def enable_semantic(semantic_name: str) -> None:
    """Let kernels of a language have scopes: ``enable_semantic("triton")``."""
    _SEMANTICS.add(_ALL_SEMANTICS[semantic_name])


def disable_semantic(semantic_name: str) -> None:
    """Undo `enable_semantic`."""
    _SEMANTICS.remove(_ALL_SEMANTICS[semantic_name])


def _check_supported_semantic(semantic: Any) -> None:
    if not isinstance(semantic, tuple(_SEMANTICS)):
        raise TypeError(f"Unsupported semantic type: {type(semantic)}. Supported semantics are: {_SEMANTICS}")


def record(is_start: Any, scope_name: Any, semantic: Any) -> None:
    """A clock at the beginning or the end of a scope."""
    if not flags.instrumentation_on:
        return
    _check_supported_semantic(semantic)
    raise NotImplementedError(f"pl.scope({_unwrap_if_constexpr(scope_name)!r}): {WHY_NOT}")


@builtin
def enter_scope(name: Any, _semantic: Any = None) -> None:
    """Mark the start of a scope."""
    record(True, name, _semantic)


@builtin
def exit_scope(name: Any, _semantic: Any = None) -> None:
    """Mark the end of a scope."""
    record(False, name, _semantic)


class Scope:
    """The context manager of ``with pl.scope("name"):``."""

    def __init__(self, name: Any, semantic: Any) -> None:
        self.name, self.semantic = name, semantic

    def __enter__(self) -> None:
        record(True, self.name, self.semantic)

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        record(False, self.name, self.semantic)


@builtin
def scope(name: Any, _semantic: Any = None) -> Scope:
    """A part of a kernel."""
    return Scope(name, _semantic)
