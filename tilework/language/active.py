"""The interpreter that is running a kernel in this context, if one is.

A compiled kernel is never *called*: the compiler passes `_semantic` to each builtin itself. An interpreted kernel is
plain Python, so its builtins and operators find the object that carries them out here.
"""

from contextvars import ContextVar
from typing import Any, Protocol

__all__ = ["ACTIVE", "Active", "RunTimeOnly"]


class RunTimeOnly(TypeError, ValueError):
    """Python was asked to compute with `value`, which only exists when the kernel runs; `operation` is what it tried."""

    def __init__(self, text: str, operation: str, value: Any) -> None:
        super().__init__(text)
        self.operation, self.value = operation, value


class Active(Protocol):
    """What the language asks of an interpreter; it is also the `_generator` of builtins."""

    semantic: Any

    def call_JitFunction(self, fn: Any, args: Any, kwargs: Any, caller_context: Any = None) -> Any: ...  # noqa: N802
    def truth(self, value: Any) -> bool: ...
    def number(self, value: Any) -> Any: ...
    def iterate(self, loop: Any) -> Any: ...


ACTIVE: ContextVar[Active | None] = ContextVar("ACTIVE", default=None)
