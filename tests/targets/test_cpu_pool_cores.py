"""Workers leave the core of the thread that woke them; what the user allowed them stays as it was."""

import ctypes
import os
import sys
import threading
import time

import llvmlite.binding
import numpy as np
import pytest

import tilework
import tilework.language as tl
from tilework.targets.cpu.run.pool import CROWDED_WAKE_NS, JOIN_NS, WAKE_NS, Pool
from tilework.targets.cpu.run.pool_code import pool_text


@tilework.jit
def work(out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = i.to(tl.float32)
    for _ in range(n):
        x = tl.sin(x)
    tl.store(out + i, x)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="a system where threads cannot choose their cores")
def test_threads_may_run_where_they_could_before() -> None:
    allowed, out = os.sched_getaffinity(0), np.zeros(64 * 256, "f4")
    for _ in range(50):
        work[(64,)](out, 20, BLOCK=256, num_warps=1)
    others = list_of_threads()
    end = time.monotonic() + 20
    while others and time.monotonic() < end:  # a worker may still be on its way to a core that is busy
        others = [thread for thread in others if os.sched_getaffinity(thread) != allowed]
    assert not others


def list_of_threads() -> list[int]:
    return [thread.native_id for thread in threading.enumerate() if thread.native_id is not None]


@pytest.mark.parametrize("system, moves", [("linux", True), ("darwin", False), ("win32", False)])
def test_only_linux_is_requested_cores(system: str, moves: bool) -> None:
    text = pool_text("x86_64", system)
    assert ("sched_setaffinity" in text) == moves
    llvmlite.binding.parse_assembly(text).verify()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="threads of other systems have no list of cores")
def test_a_process_that_may_use_one_core_only() -> None:
    """Nowhere to go: the worker stays, and the launch ends."""
    allowed, out = os.sched_getaffinity(0), np.zeros(64 * 256, "f4")
    work[(64,)](out, 20, BLOCK=256)
    expected = out.copy()
    threads = list_of_threads()
    try:
        for thread in threads:
            os.sched_setaffinity(thread, {min(allowed)})
        out[:] = 0
        work[(64,)](out, 20, BLOCK=256)
        np.testing.assert_array_equal(out, expected)
    finally:
        for thread in threads:
            os.sched_setaffinity(thread, allowed)


def test_what_a_launch_must_take_to_be_shared() -> None:
    """Little if a launch waits for it, or if others before it would have been shared; much where other programs use the
    cores."""
    pool, ready, crowded = Pool(), ctypes.c_int64(0), ctypes.c_int64(0)
    assert pool.least_ns() == WAKE_NS
    pool.fields[4], pool.fields[7] = ctypes.addressof(ready), ctypes.addressof(crowded)
    pool.fields[5] = WAKE_NS
    assert pool.least_ns() == JOIN_NS
    crowded.value = time.perf_counter_ns() + 60 * 10**9
    assert pool.least_ns() == CROWDED_WAKE_NS
    ready.value = 1
    assert pool.least_ns() == JOIN_NS
