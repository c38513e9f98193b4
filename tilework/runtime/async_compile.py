"""Compile on an executor while the host goes on.

    with AsyncCompileMode(ThreadPoolExecutor()):
        for kernel, args in work:
            kernel.warmup(*args, grid=(1,))      # returns at once
    # here everything is compiled

Each distinct kernel is submitted once; a launch inside the block waits for its own.
"""

from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

active_mode: ContextVar["AsyncCompileMode | None"] = ContextVar("active_mode", default=None)


class FutureKernel:
    """A kernel that is being compiled."""

    def __init__(self, finalize: Callable[[Any], None], future: "Future[Any]") -> None:
        self._finalize = finalize
        self.future = future
        self.kernel: Any = None

    def result(self, ignore_errors: bool = False) -> Any:
        """Wait for the kernel and put it into the memory cache."""
        if self.kernel is None:
            try:
                self.kernel = self.future.result()
            except Exception:
                if ignore_errors:
                    return None
                raise
            self._finalize(self.kernel)
        return self.kernel

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.result(), name)


class AsyncCompileMode:
    """See the module docstring."""

    def __init__(self, executor: "Executor", *, ignore_errors: bool = False) -> None:
        self.executor = executor
        self.ignore_errors = ignore_errors
        self.pending: dict[str, FutureKernel] = {}
        self._token: Any = None

    def submit(self, key: str, compile: Callable[[], Any], finalize: Callable[[Any], None]) -> FutureKernel:
        """Start one compilation, unless the same one is under way."""
        if key not in self.pending:
            self.pending[key] = FutureKernel(finalize, self.executor.submit(compile))
        return self.pending[key]

    def __enter__(self) -> "AsyncCompileMode":
        if active_mode.get() is not None:
            raise RuntimeError("Another AsyncCompileMode is already active")
        self._token = active_mode.set(self)
        return self

    def __exit__(self, *exception: Any) -> None:
        from concurrent.futures import as_completed

        futures = {pending.future: pending for pending in self.pending.values()}
        try:
            for future in as_completed(futures):
                futures[future].result(self.ignore_errors)
        finally:
            active_mode.reset(self._token)
