"""AsyncCompileMode: kernels that are being compiled, the thread that finishes them, errors and exceptions."""

import threading
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.launch_kernels import fill
from tests.runtime.modules import load_module
from tilework import knobs
from tilework.errors import CompilationError
from tilework.inspect.explain.kernels import compiled_kernels
from tilework.inspect.explorer.document import NotExplored
from tilework.runtime.compile.compiled import CompiledKernel
from tilework.runtime.workers import async_compile

pytestmark = pytest.mark.usefixtures("fresh_cache")

OUT = np.zeros(4, np.int32)


def kernel_of() -> Any:
    @tilework.jit
    def fill(out, X: tl.constexpr):
        tl.store(out + tl.arange(0, 4), X)

    return fill


def wrong_of() -> Any:
    @tilework.jit
    def wrong(out, X: tl.constexpr):
        tl.store(out, tl.arange(X, 3))

    return wrong


def kernels(fn: Any) -> list[Any]:
    return [kernel for entry in fn.device_caches.values() for kernel in entry[0].values()]


class Held(Executor):
    """An executor that runs the submitted calls when the test says so, in the order it says."""

    def __init__(self) -> None:
        self.work: list[tuple[Future[Any], Any]] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.work.append((future, lambda: fn(*args, **kwargs)))
        return future

    def run(self, *order: int) -> None:
        for index in order:
            future, call = self.work[index]
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(call())
                except Exception as error:
                    future.set_exception(error)

    def run_all(self) -> None:
        self.run(*range(len(self.work)))


def test_the_future_is_in_the_cache_at_once() -> None:
    fill, pool = kernel_of(), Held()
    with tilework.AsyncCompileMode(pool) as mode:
        first, second = fill.warmup(OUT, 1, grid=(1,)), fill.warmup(OUT, 1, grid=(1,))
        other = fill.warmup(OUT, 2, grid=(1,))
        assert type(first) is tilework.FutureKernel and first is second and other is not first
        assert first.kernel is None and kernels(fill) == [first, other] and len(pool.work) == 2
        assert mode.raw_futures == [first.future, other.future]
        assert list(mode.future_kernels.values()) == [first, other] and mode.executor is pool
        pool.run_all()
        assert kernels(fill) == [first, other]  # done, but not requested
        made = first.result()
        assert (
            type(made) is CompiledKernel and kernels(fill) == [made, other] and first.result() is made is first.kernel
        )
        assert fill.warmup(OUT, 1, grid=(1,)) is made
    assert kernels(fill) == [made, other.kernel]
    assert first.name == made.name  # an attribute of the kernel


def test_attributes_of_a_future_are_those_of_the_kernel() -> None:
    fill = kernel_of()
    with ThreadPoolExecutor(1) as pool, tilework.AsyncCompileMode(pool):
        future = fill.warmup(OUT, 1, grid=(1,))
        assert future.metadata.num_warps == future.result().metadata.num_warps
        for name in ("name", "hash", "asm", "_loaded", "packed_metadata"):
            assert getattr(future, name) is getattr(future.result(), name), name
        with pytest.raises(AttributeError, match="no_such"):
            _ = future.no_such


def test_functions_of_the_same_source_share_a_compilation() -> None:
    first, second, pool = kernel_of(), kernel_of(), Held()
    with tilework.AsyncCompileMode(pool):
        future = first.warmup(OUT, 1, grid=(1,))
        assert second.warmup(OUT, 1, grid=(1,)) is future and len(pool.work) == 1
        pool.run_all()
    assert kernels(first) == kernels(second) == [future.result()]
    assert second[(1,)](OUT, 1) is future.result() and second[(1,)](OUT, 1) is future.result()


def test_an_exception_leaves_the_block_at_once() -> None:
    fill, pool = kernel_of(), Held()
    with pytest.raises(ZeroDivisionError), tilework.AsyncCompileMode(pool):
        future = fill.warmup(OUT, 1, grid=(1,))
        raise ZeroDivisionError
    assert async_compile.active_mode.get() is None and kernels(fill) == []
    with pytest.raises(CancelledError):
        future.result()
    fill[(1,)](OUT, 1)
    assert OUT.tolist() == [1] * 4 and all(type(kernel) is CompiledKernel for kernel in kernels(fill))


def test_an_exception_waits_for_no_other_thread() -> None:
    fill, gate = kernel_of(), threading.Event()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(gate.wait)
        with pytest.raises(ZeroDivisionError), tilework.AsyncCompileMode(pool):
            fill.warmup(OUT, 1, grid=(1,))
            raise ZeroDivisionError
        gate.set()


def test_a_launch_waits_for_its_own() -> None:
    fill = kernel_of()
    with ThreadPoolExecutor(2) as pool, tilework.AsyncCompileMode(pool):
        pending = fill.warmup(OUT, 6, grid=(1,))
        made = fill[(1,)](OUT, 5)
        assert type(made) is CompiledKernel and OUT.tolist() == [5] * 4 and made in kernels(fill)
        assert fill[(1,)](OUT, 6) is pending.result() and OUT.tolist() == [6] * 4


def test_hooks() -> None:
    """The cache hook is called when a kernel is submitted; the other hook when it is finished, by the thread that
    waits for it."""
    fill, pool, calls = kernel_of(), Held(), []
    knobs.runtime.jit_cache_hook = lambda **event: calls.append("submit")
    knobs.runtime.jit_post_compile_hook = lambda **event: calls.append(threading.current_thread())
    with tilework.AsyncCompileMode(pool):
        future = fill.warmup(OUT, 1, grid=(1,))
        pool.run_all()
        assert calls == ["submit"]
        future.result()
        future.result()
        assert calls == ["submit", threading.current_thread()]
    assert len(calls) == 2
    knobs.runtime.jit_cache_hook = lambda **event: True
    with tilework.AsyncCompileMode(pool):
        assert fill.warmup(OUT, 3, grid=(1,)) is None
    assert len(pool.work) == 1


def test_the_first_that_fails_raises() -> None:
    fill, wrong, pool = kernel_of(), wrong_of(), Held()
    finished: list[Any] = []
    knobs.runtime.jit_post_compile_hook = lambda **event: finished.append(event["compile"]["constants"][1,])
    with pytest.raises(CompilationError, match="must be greater than the start"), tilework.AsyncCompileMode(pool):
        last, bad, good = (
            fill.warmup(OUT, 1, grid=(1,)),
            wrong.warmup(OUT, 3, grid=(1,)),
            fill.warmup(OUT, 2, grid=(1,)),
        )
        pool.run(2, 1)
    assert async_compile.active_mode.get() is None  # and it did not wait for the one that has not begun
    for _ in range(2):
        with pytest.raises(CompilationError, match="must be greater than the start"):
            bad.result()
        assert bad.result(ignore_errors=True) is None
    pool.run(0)
    assert type(last.result()) is type(good.result()) is CompiledKernel and sorted(finished) == [1, 2]
    assert kernels(wrong) == []


def test_after_a_failed_block_there_are_only_kernels() -> None:
    wrong, pool = wrong_of(), Held()
    fills = [kernel_of() for _ in range(3)]
    with pytest.raises(CompilationError), tilework.AsyncCompileMode(pool):
        for index, fill in enumerate(fills):
            fill.warmup(OUT, index, grid=(1,))
        wrong.warmup(OUT, 3, grid=(1,))
        wrong.warmup(OUT, 4, grid=(1,))
        pool.run(3, 4, 0, 1)
    assert [type(kernel) for fill in fills for kernel in kernels(fill)] == [CompiledKernel] * 2 + [
        tilework.FutureKernel
    ]
    assert kernels(wrong) == []
    last = fills[2]  # which has not begun, so nothing may wait for it
    (future,) = kernels(last)
    assert compiled_kernels(last) == [] and "0 specialisations" in str(last.explain()) and last._repr_html_()
    with pytest.raises(NotExplored):
        last.explore(open=False)
    assert not future.future.done()
    pool.run(2)
    made = last.warmup(OUT, 2, grid=(1,))
    assert type(made) is CompiledKernel and kernels(last) == [made] == compiled_kernels(last)
    made[(1, 1, 1)](OUT, 2)
    assert OUT.tolist() == [2] * 4


def test_preload_after_a_failed_block_returns_a_kernel() -> None:
    fill, wrong, pool, data = kernel_of(), wrong_of(), Held(), []
    knobs.runtime.jit_cache_hook = lambda **event: data.append(event["compile"]["specialization_data"])
    with pytest.raises(CompilationError), tilework.AsyncCompileMode(pool):
        fill.warmup(OUT, 1, grid=(1,))
        wrong.warmup(OUT, 3, grid=(1,))
        pool.run(1)
    pool.run(0)
    assert type(fill.preload(data[0])) is CompiledKernel


def test_errors_can_be_ignored() -> None:
    fill, wrong = kernel_of(), wrong_of()
    with ThreadPoolExecutor(2) as pool, tilework.AsyncCompileMode(pool, ignore_errors=True) as mode:
        assert mode.ignore_errors
        bad, good = wrong.warmup(OUT, 3, grid=(1,)), fill.warmup(OUT, 2, grid=(1,))
    assert bad.kernel is None and type(good.kernel) is CompiledKernel


def test_one_mode_at_a_time() -> None:
    with ThreadPoolExecutor(1) as pool, tilework.AsyncCompileMode(pool) as mode:
        assert async_compile.active_mode.get() is mode
        with (
            pytest.raises(RuntimeError, match="Another AsyncCompileMode is already active"),
            tilework.AsyncCompileMode(pool),
        ):
            pass
        assert async_compile.active_mode.get() is mode
    assert async_compile.active_mode.get() is None


def test_equal_kernels_in_other_lines_name_their_own(tmp_path: Path) -> None:
    text = "@tilework.jit\ndef k(p):\n    tl.device_assert(tl.load(p) == 0, 'not zero')\n"
    pool, kernels = Held(), [load_module(tmp_path, "\n" * lines + text, f"lines{lines}").k for lines in (0, 3)]
    with tilework.AsyncCompileMode(pool) as mode:
        for kernel in kernels:
            kernel.warmup(OUT, grid=(1,), debug=True)
        assert len(mode.future_kernels) == 2
        pool.run_all()
    for kernel, lines in zip(kernels, (0, 3), strict=True):
        with pytest.raises(RuntimeError, match=f"lines{lines}.py:{5 + lines}:4"):
            kernel[(1,)](np.ones_like(OUT), debug=True)


def test_settings_are_those_of_the_submission(monkeypatch: pytest.MonkeyPatch) -> None:
    fill, pool = kernel_of(), Held()
    variable = "DISABLE_LLVM_OPT"
    with tilework.AsyncCompileMode(pool) as mode:
        future = fill.warmup(OUT, 1, grid=(1,))
        (key,) = mode.future_kernels
        monkeypatch.setenv(variable, "1")
        knobs.refresh_knobs()
        assert fill.warmup(OUT, 1, grid=(1,)) is future, "it is in the cache of the kernel"
        other = kernel_of().warmup(OUT, 1, grid=(1,))
        assert other is not future and len(mode.future_kernels) == 2
        monkeypatch.delenv(variable)
        knobs.refresh_knobs()
        pool.run_all()
        assert future.result().hash == key


def test_submit_and_future_kernel() -> None:
    pool, done = Held(), []
    mode = tilework.AsyncCompileMode(pool)
    made = mode.submit(key="a", compile_fn=lambda: 5, finalize_fn=done.append)
    assert mode.submit("a", lambda: 6, done.append) is made and list(mode.future_kernels) == ["a"]
    pool.run_all()
    assert made.result() == 5 == made.kernel and done == [5]
    future: Future[int] = Future()
    future.set_result(7)
    assert tilework.FutureKernel(finalize_compile=done.append, future=future).result() == 7 and done == [5, 7]


def test_threads_that_ask_for_the_same_kernel() -> None:
    fill, calls = kernel_of(), []
    knobs.runtime.jit_post_compile_hook = lambda **event: calls.append(1)
    with ThreadPoolExecutor(2) as pool, ThreadPoolExecutor(4) as askers, tilework.AsyncCompileMode(pool):
        future = fill.warmup(OUT, 1, grid=(1,))
        assert len({id(made) for made in askers.map(lambda _: future.result(), range(8))}) == 1 and calls == [1]


def test_async_mode_submits_each_kernel_once_and_fills_the_cache() -> None:
    out = np.zeros(64, "f4")
    submitted: list[Any] = []

    class Counting(ThreadPoolExecutor):
        def submit(self, *args: Any, **kwargs: Any) -> Any:
            submitted.append(args)
            return super().submit(*args, **kwargs)

    with Counting(2) as pool, tilework.AsyncCompileMode(pool):
        futures = [fill.warmup(out, 1.0, 16, grid=(1,)) for _ in range(3)]
        assert futures[0] is futures[1] is futures[2]
        assert futures[0].result().metadata.name == "fill"
    assert len(submitted) == 1
    assert list(fill.device_caches[0][0].values()) == [futures[0].result()]


@pytest.mark.parametrize("ignore", [False, True])
def test_async_errors(ignore: bool) -> None:
    @tilework.jit
    def bad(p):
        tl.static_assert(False, "never")

    def compile_it() -> None:
        with ThreadPoolExecutor(1) as pool, tilework.AsyncCompileMode(pool, ignore_errors=ignore):
            bad.warmup(np.zeros(1, "f4"), grid=(1,))

    if ignore:
        compile_it()
    else:
        with pytest.raises(tilework.CompilationError, match="never"):
            compile_it()
    with pytest.raises(tilework.CompilationError, match="never"):
        bad[(1,)](np.zeros(1, "f4"))


def test_async_launches_wait_for_their_kernel() -> None:
    out = np.zeros(4, "f4")
    with ThreadPoolExecutor(1) as pool, tilework.AsyncCompileMode(pool) as mode:
        future = fill.warmup(out, 1.0, 4, grid=(1,))
        assert isinstance(future, tilework.FutureKernel) and mode is not None
        assert fill[(1,)](out, 4.0, 4) is future.result() and (out == 4).all()
        with pytest.raises(RuntimeError, match=r"(?i)async|nest"), tilework.AsyncCompileMode(pool):
            raise AssertionError("not reached")
    fill.device_caches.clear()
    assert not isinstance(fill.warmup(out, 1.0, 4, grid=(1,)), tilework.FutureKernel), "the mode has ended"
