"""Several threads launch a kernel that is new: one of them compiles it."""

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tilework import knobs
from tilework.errors import CompilationError
from tilework.process import forks as key_locks
from tilework.process.forks import KeyLocks
from tilework.runtime.launch.python.jit import DeviceCaches


@tilework.jit
def store_sum(out, a, b, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, i + a + b)


@tilework.jit
def wrong(out):
    tl.store(out, undefined_name)  # pyright: ignore[reportUndefinedVariable]  # noqa: F821


def in_threads(count: int, call: Any) -> list[BaseException | None]:
    """Call a function from several threads at the same time, and return their exceptions."""
    start = threading.Barrier(count)
    found: list[BaseException | None] = [None] * count

    def work(number: int) -> None:
        start.wait()
        try:
            call(number)
        except BaseException as error:
            found[number] = error

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_one_thread_compiles(tmp_path: Path) -> None:
    outs, requested = [np.zeros(64, "i4") for _ in range(8)], []
    with knobs.cache.scope(), knobs.runtime.scope():
        knobs.cache.dir = str(tmp_path)
        knobs.runtime.jit_cache_hook = lambda **facts: requested.append(facts["key"]) and None
        store_sum.device_caches.clear()
        assert in_threads(8, lambda number: store_sum[(1,)](outs[number], 3, 5, N=64)) == [None] * 8
    assert len(requested) == 1
    for out in outs:
        np.testing.assert_array_equal(out, np.arange(64) + 8)


def test_threads_share_what_a_kernel_knows_of_a_device() -> None:
    def slow_binder() -> Any:
        time.sleep(0.05)  # the other threads ask during this time
        return object()

    caches, found = DeviceCaches(slow_binder), []
    assert in_threads(4, lambda number: found.append(caches[0])) == [None] * 4
    assert len(set(found)) == 1


def test_a_mistake_is_reported_to_all() -> None:
    wrong.device_caches.clear()
    found = in_threads(4, lambda number: wrong[(1,)](np.zeros(1, "i4")))
    assert all(isinstance(error, CompilationError) for error in found)


def test_a_hook_may_launch_the_kernel(tmp_path: Path) -> None:
    out, inner = np.zeros(64, "i4"), []

    def hook(**facts: Any) -> None:
        if not inner:
            inner.append(True)
            store_sum[(1,)](out, 1, 2, N=64)

    with knobs.cache.scope(), knobs.runtime.scope():
        knobs.cache.dir = str(tmp_path)
        knobs.runtime.jit_cache_hook = hook
        store_sum.device_caches.clear()
        store_sum[(1,)](out, 1, 2, N=64)
    assert inner and out[0] == 3


def test_no_process_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_locks, "PATIENCE", 0.05)
    locks, both, done = KeyLocks(), threading.Barrier(2), []

    def work(number: int) -> None:
        with locks.held(number):
            both.wait()
            with locks.held(1 - number):
                done.append(number)

    assert in_threads(2, work) == [None, None]
    assert sorted(done) == [0, 1] and not locks.entries
