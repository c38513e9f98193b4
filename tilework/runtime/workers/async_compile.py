"""Compile in worker processes, or on an executor of the caller's, while the program continues.

    with AsyncCompileMode():                     # or AsyncCompileMode(ThreadPoolExecutor())
        for kernel, args in work:
            kernel.warmup(*args, grid=(1,))      # returns a `FutureKernel` at once
    # here everything is compiled

Each distinct kernel is submitted once; a launch inside the block waits for its own. The `FutureKernel` enters the
kernel's cache at once. The thread that waits for a kernel, with `result` or at the end of the block, replaces it by the
compiled kernel, and calls the hooks; one that failed or was cancelled is removed. An exception that leaves the block
waits for nothing and cancels the compilations that have not begun.
"""

import sys
import threading
from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any

from tilework.errors import DoesNotFit, TritonError

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

    from tilework.runtime.compile.compiled import CompiledKernel
    from tilework.runtime.workers.sent_kernel import Message

active_mode: ContextVar["AsyncCompileMode | None"] = ContextVar("active_mode", default=None)


class CompilerDied(TritonError):
    """The error when the worker process that compiled a kernel crashed, or gave no answer in time."""

    def __init__(self, code: int | None = None, seconds: float | None = None) -> None:
        self.code, self.seconds = code, seconds
        super().__init__(code, seconds)

    def __str__(self) -> str:
        if self.seconds is not None:
            return (
                f"the process that compiled this configuration gave no answer for {self.seconds:g} s"
                " (TILEWORK_WORKER_TIMEOUT) and was killed"
            )
        is_signal = self.code is not None and self.code < 0
        how = f"was killed by signal {-self.code}" if is_signal and self.code else f"ended with {self.code}"
        return f"the process that compiled this configuration {how}"


class FutureKernel:
    """A kernel that is being compiled. Reading an attribute of the kernel waits until it is compiled.

    `future` yields the kernel. With `compile_here` it yields the answer of a worker process (`pool.py`);
    `compile_here` then finds the kernel in the disk cache, or compiles it if the worker could not.

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

    def __init__(
        self,
        finalize_compile: "Callable[[CompiledKernel], None]",
        future: "Future[Any]",
        compile_here: Callable[[], object] | None = None,
    ) -> None:
        self.finalize_compile = finalize_compile
        self.kernel: Any = None
        self.future = future
        self.compile_here = compile_here
        self.on_failure: list[Callable[[], None]] = []
        self.locations: Any = None  # of the functions that it is compiled from
        self._lock = threading.RLock()

    def result(self, ignore_errors: bool = False) -> Any:
        """Wait for the kernel and put it into the memory cache, once; None if it failed and errors are ignored."""
        with self._lock:
            if self.kernel is None:
                try:
                    kernel = self._compiled()
                except Exception:  # whatever a compilation raises: the caller may ignore it
                    self.failed()
                    if ignore_errors:
                        return None
                    raise
                self.finalize_compile(kernel)
                self.kernel = kernel
        return self.kernel

    def then(self, finalize_compile: "Callable[[CompiledKernel], None]") -> None:
        """Call one more function with the kernel."""
        with self._lock:
            if self.kernel is not None:
                finalize_compile(self.kernel)
                return
            first = self.finalize_compile

            def both(kernel: "CompiledKernel") -> None:
                first(kernel)
                finalize_compile(kernel)

            self.finalize_compile = both

    def if_failed(self, forget: Callable[[], None]) -> None:
        """Call a function when there will be no kernel."""
        self.on_failure.append(forget)

    def failed(self) -> None:
        """Run the failure callbacks."""
        while self.on_failure:
            self.on_failure.pop()()

    def _compiled(self) -> Any:
        found = self.future.result()
        if self.compile_here is None:
            return found
        check_answer(found)
        return self.compile_here()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("_lock", "kernel"):  # while it is being made or copied
            raise AttributeError(name)
        return getattr(self.result(), name)


def settled(kernel: Any) -> Any:
    """Return the kernel; outside of an `AsyncCompileMode`, wait for one that is still being compiled."""
    return kernel.result() if isinstance(kernel, FutureKernel) and active_mode.get() is None else kernel


def check_answer(answer: "Message") -> None:
    """Print the output of a worker while it compiled, and raise the errors that only the worker knows."""
    if answer["state"] == "died":
        raise CompilerDied(answer["code"], answer.get("seconds"))
    if answer["state"] == "pruned":
        raise DoesNotFit(*answer["needs"])
    for stream, name in ((sys.stdout, "output"), (sys.stderr, "errors")):
        if (text := answer.get(name)) and stream is not None:
            stream.write(text)


class AsyncCompileMode:
    """Compile while the program continues: `warmup` returns immediately in the block, and the end of the block waits
    for all kernels.

    Without an `executor`, the worker processes of the program (`TILEWORK_COMPILE_WORKERS` of them) compile; a kernel
    that cannot be sent to another process is compiled when the program waits for it. A launch inside the block waits
    for its own kernel. With `ignore_errors`, kernels that do not compile are ignored.

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

    def __init__(self, executor: "Executor | None" = None, *, ignore_errors: bool = False) -> None:
        self.executor = executor
        self.ignore_errors = ignore_errors
        self.most_workers: int | None = None  # processes, without an executor; None: as many as there may be
        self.raw_futures: list[Future[Any]] = []
        self.future_kernels: dict[str, FutureKernel] = {}
        self._token: Token[AsyncCompileMode | None] | None = None

    def submit(
        self, key: str, compile_fn: Callable[[], object], finalize_fn: "Callable[[CompiledKernel], None]"
    ) -> FutureKernel:
        """Start one compilation, unless the same one is in progress."""
        found = self.future_kernels.get(key)
        if found is None:
            if self.executor is not None:
                found = FutureKernel(finalize_fn, self.executor.submit(compile_fn))
            else:
                from tilework.runtime.workers.pool import compile_in_worker  # lazily: few programs need it

                future = compile_in_worker(key, compile_fn, self.most_workers)
                found = FutureKernel(finalize_fn, future, compile_fn)
            self.raw_futures.append(found.future)
            self.future_kernels[key] = found
        return found

    def __enter__(self) -> "AsyncCompileMode":
        if active_mode.get() is not None:
            raise RuntimeError("Another AsyncCompileMode is already active")
        self._token = active_mode.set(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._finish()
            else:
                self._give_up()
        finally:
            assert self._token is not None
            active_mode.reset(self._token)

    def _finish(self) -> None:
        """Wait for all kernels in the order in which they are done.

        The exception of the first that failed is raised, after the others that are done have been finished.
        """
        from concurrent.futures import as_completed  # lazily: few programs need it, and it is slow to load

        kernels = {kernel.future: kernel for kernel in self.future_kernels.values()}
        future = None
        try:
            for future in as_completed(self.raw_futures):
                kernels[future].result(self.ignore_errors)
        except (KeyboardInterrupt, SystemExit):  # while waiting
            self._give_up()
            raise
        except Exception:  # whatever a compilation raises
            for kernel in kernels.values():
                if kernel.future is not future and kernel.future.done():
                    kernel.result(ignore_errors=True)
            raise

    def _give_up(self) -> None:
        """Cancel the compilations that have not begun."""
        for kernel in self.future_kernels.values():
            if kernel.future.cancel():
                kernel.failed()
