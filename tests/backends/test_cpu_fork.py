"""Nests shared by threads where the grid has fewer programs than threads: the same results as with one thread."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tilework import knobs
from tilework.backends.base import GPUTarget
from tilework.backends.cpu import driver, pool
from tilework.backends.cpu.interface import Interface
from tilework.backends.cpu.library import NativeKernel, load
from tilework.compiler import ASTSource, lower

CPU = GPUTarget("cpu", "host", 1)
SIZE = 1 << 17


@tilework.jit
def masked(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    value = tl.load(x + i, mask=i < n)
    tl.store(out + i, tl.exp(value) * tl.sin(value), mask=i < n)


@tilework.jit
def rows(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B // 512)[:, None] * 512 + tl.arange(0, 512)[None, :]
    value = tl.load(x + i)
    large = tl.exp(value - tl.max(value, axis=1)[:, None])
    tl.store(out + i, large / tl.sum(large, axis=1)[:, None])


@tilework.jit
def columns(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B // 512)[:, None] * 512 + tl.arange(0, 512)[None, :]
    value = tl.exp(tl.load(x + i))
    tl.store(out + i, value / tl.sum(value, axis=0)[None, :])


@tilework.jit
def repeated(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    for k in range(4):
        total = tl.cos(total + tl.load(x + i) * k)
    tl.store(out + i, total)


@tilework.jit
def turned(x, out, n, B: tl.constexpr):
    a, b = tl.arange(0, B // 256)[:, None], tl.arange(0, 256)[None, :]
    value = tl.exp(tl.load(x + tl.program_id(0) * B + a * 256 + b))
    tl.store(out + tl.program_id(0) * B + b * (B // 256) + a, value)


@tilework.jit
def overlapping(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i // 64, tl.exp(tl.load(x + i // 64)) + tl.sin(tl.load(x + i // 64)))


KERNELS = [masked, rows, columns, repeated, turned]


def native(kernel: Any, size: int = SIZE) -> tuple[NativeKernel, Interface]:
    """The kernel in memory, as if a program had been found to take a second."""
    source = ASTSource(kernel, {"x": "*fp32", "out": "*fp32", "n": "i32"}, {"B": size})
    made = lower(source, CPU, ["llir", "obj"])
    interface = Interface.read(made["llir"])
    loaded = load(made["obj"], interface.name)
    loaded.program_ns = 1e9
    return loaded, interface


def run(kernel: NativeKernel, interface: Interface, x: Any, n: int, programs: int, threads: int) -> Any:
    out = np.zeros_like(x)
    slots = b"".join(int(value).to_bytes(8, "little") for value in (x.ctypes.data, out.ctypes.data, n))
    with knobs.runtime.scope():
        knobs.runtime.num_threads = threads
        driver.run(kernel, interface, slots, (programs, 1, 1))
    return out


def numbers(count: int) -> Any:
    return np.random.default_rng(5).standard_normal(count).astype("f4")


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.fn.__name__)
@pytest.mark.parametrize("programs", [1, 3])
def test_the_number_of_threads_changes_nothing(kernel: Any, programs: int) -> None:
    loaded, interface = native(kernel)
    assert loaded.has_forks
    x = numbers(programs * SIZE)
    n = x.size - 77
    expected = run(loaded, interface, x, n, programs, 1)
    assert expected.any()
    for threads in (2, 4, 7):
        np.testing.assert_array_equal(run(loaded, interface, x, n, programs, threads), expected)


def test_threads_do_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """A nest is offered to the others once per launch, and each index is run once whoever takes it."""
    monkeypatch.setattr(pool, "BEGIN_S", 60.0)
    offered: list[int] = []
    ask = pool.Pool.ask
    monkeypatch.setattr(pool.Pool, "ask", lambda self, job, helpers: (offered.append(helpers), ask(self, job, helpers)))
    loaded, interface = native(masked)
    run(loaded, interface, numbers(SIZE), SIZE, 1, 4)
    assert offered == [1, 3]  # the program, then its nest


def test_small_and_overlapping_nests_are_not_shared() -> None:
    assert not native(masked, 1024)[0].has_forks
    assert not native(overlapping)[0].has_forks


def test_busy_helpers() -> None:
    """A launch that finds no helper does its work alone."""
    loaded, interface = native(masked)
    x = numbers(SIZE)
    expected = run(loaded, interface, x, SIZE, 1, 1)
    gate = threading.Event()

    class Waiting(pool.Shared):
        def assist(self) -> None:
            gate.wait()

    blocked = Waiting()
    pool.POOL.start(2)
    pool.POOL.ask(blocked, pool.POOL.count)
    try:
        np.testing.assert_array_equal(run(loaded, interface, x, SIZE, 1, 2), expected)
    finally:
        gate.set()
        blocked.finish()


def test_from_several_python_threads() -> None:
    loaded, interface = native(rows)
    x = numbers(SIZE)
    expected = run(loaded, interface, x, SIZE, 1, 1)
    with ThreadPoolExecutor(6) as executor:
        for found in executor.map(lambda _: run(loaded, interface, x, SIZE, 1, 3), range(24)):
            np.testing.assert_array_equal(found, expected)
