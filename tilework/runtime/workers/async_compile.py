"""Compile on an executor while the host goes on.

    with AsyncCompileMode(ThreadPoolExecutor()):
        for kernel, args in work:
            kernel.warmup(*args, grid=(1,))      # a `FutureKernel`, at once
    # here everything is compiled

Each distinct kernel is submitted once; a launch inside the block waits for its own. Nothing unfinished enters a kernel's
cache: the one who waits for a kernel, with `result` or at the end of the block, puts it there, and calls the hooks. An
exception that leaves the block waits for nothing; what has not begun is not compiled then.
"""

import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

active_mode: ContextVar["AsyncCompileMode | None"] = ContextVar("active_mode", default=None)


class FutureKernel:
    """A kernel that is being compiled; reading an attribute of the kernel waits for it.

    Example:
        from concurrent.futures import ThreadPoolExecutor

        @tilework.jit
        def kernel(out, N: tl.constexpr):
            tl.store(out, N)

        with ThreadPoolExecutor() as threads, tilework.AsyncCompileMode(threads):
            future = kernel.warmup(np.zeros(1), N=1, grid=(1,))
            assert isinstance(future, tilework.FutureKernel)
            assert future.result().name == "kernel"
    """

    def __init__(self, finalize_compile: Callable[[Any], None], future: "Future[Any]") -> None:
        self.finalize_compile = finalize_compile
        self.kernel: Any = None
        self.future = future
        self._lock = threading.RLock()

    def result(self, ignore_errors: bool = False) -> Any:
        """Wait for the kernel and put it into the memory cache, once; None if it failed and errors are ignored."""
        try:
            kernel = self.future.result()
        except Exception:
            if ignore_errors:
                return None
            raise
        with self._lock:
            if self.kernel is None:
                self.finalize_compile(kernel)
                self.kernel = kernel
        return self.kernel

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.result(), name)


class AsyncCompileMode:
    """Compile on an executor while the host goes on: `warmup` in the block returns at once, the end of the block waits for all.

    A launch inside the block waits for its own kernel. With `ignore_errors` kernels that do not compile are left out.

    Example:
        from concurrent.futures import ThreadPoolExecutor

        @tilework.jit
        def kernel(out, N: tl.constexpr):
            tl.store(out, N)

        out = np.zeros(1)
        with ThreadPoolExecutor() as threads, tilework.AsyncCompileMode(threads):
            for n in (1, 2, 3):
                kernel.warmup(out, N=n, grid=(1,))
        kernel[(1,)](out, N=3)  # compiled already
        assert out[0] == 3
    """

    def __init__(self, executor: "Executor", *, ignore_errors: bool = False) -> None:
        self.executor = executor
        self.ignore_errors = ignore_errors
        self.raw_futures: list[Future[Any]] = []
        self.future_kernels: dict[str, FutureKernel] = {}
        self._token: Any = None

    def submit(self, key: str, compile_fn: Callable[[], Any], finalize_fn: Callable[[Any], None]) -> FutureKernel:
        """Start one compilation, unless the same one is under way."""
        found = self.future_kernels.get(key)
        if found is None:
            future = self.executor.submit(compile_fn)
            self.raw_futures.append(future)
            found = self.future_kernels[key] = FutureKernel(finalize_fn, future)
        return found

    def __enter__(self) -> "AsyncCompileMode":
        if active_mode.get() is not None:
            raise RuntimeError("Another AsyncCompileMode is already active")
        self._token = active_mode.set(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: Any) -> None:
        try:
            if kind is None:
                self._finish()
            else:
                self._give_up()
        finally:
            active_mode.reset(self._token)

    def _finish(self) -> None:
        """Wait for all in the order in which they are done; the first that failed raises its exception."""
        from concurrent.futures import as_completed  # lazily: few programs need it, and it is slow to load

        kernels = {kernel.future: kernel for kernel in self.future_kernels.values()}
        try:
            for future in as_completed(self.raw_futures):
                kernels[future].result(self.ignore_errors)
        except Exception:
            raise
        except BaseException:  # Ctrl-C, while waiting
            self._give_up()
            raise

    def _give_up(self) -> None:
        """What has not begun is not compiled."""
        for future in self.raw_futures:
            future.cancel()
