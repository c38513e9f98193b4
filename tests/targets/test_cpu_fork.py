"""Nests shared by threads where the grid has fewer programs than threads: the same results as with one thread."""

import ctypes
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tilework import knobs
from tilework.compiler import ASTSource, lower
from tilework.targets.base import GPUTarget
from tilework.targets.cpu.lower import scan
from tilework.targets.cpu.run import pool
from tilework.targets.cpu.run import pool as driver
from tilework.targets.cpu.run.interface import (
    LAUNCH,
    LAUNCH_OFFSETS,
    NO_MEMORY,
    PROGRAM,
    SHARERS,
    WORKER,
    Interface,
    NativeKernel,
    load,
)
from tilework.targets.cpu.run.pool_code import JOBS

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
def transposed(x, out, n, B: tl.constexpr):
    a, b = tl.arange(0, B // 256)[:, None], tl.arange(0, 256)[None, :]
    value = tl.exp(tl.load(x + tl.program_id(0) * B + a * 256 + b))
    tl.store(out + tl.program_id(0) * B + b * (B // 256) + a, value)


@tilework.jit
def overlapping(x, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(out + i // 64, tl.exp(tl.load(x + i // 64)) + tl.sin(tl.load(x + i // 64)))


@tilework.jit
def product(x, out, n, B: tl.constexpr):
    i = tl.arange(0, 256)[:, None] * 256 + tl.arange(0, 256)[None, :]
    start = tl.program_id(0) * B
    a, b = tl.load(x + start + i), tl.load(x + start + B // 2 + i)
    tl.store(out + start + i, tl.dot(a.to(tl.float16), b.to(tl.float16), a))


@tilework.jit
def running_rows(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B // 512)[:, None] * 512 + tl.arange(0, 512)[None, :]
    tl.store(out + i, tl.cumsum(tl.load(x + i), 1))


@tilework.jit
def running_columns(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B // 512)[:, None] * 512 + tl.arange(0, 512)[None, :]
    tl.store(out + i, tl.cumsum(tl.load(x + i), 0))


KERNELS = [masked, rows, columns, repeated, transposed, product]


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


@pytest.mark.parametrize("kernel", [running_rows, running_columns], ids=lambda kernel: kernel.fn.__name__)
def test_scans_are_shared(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "FORK_WORK", 1)
    monkeypatch.setattr(scan, "IN_FLIGHT", 1)  # so that a test of this size has several strips of columns
    test_the_number_of_threads_changes_nothing(kernel, 1)


NEST = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
WORK = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64), ctypes.c_int64, ctypes.c_int64,
    ctypes.c_int32, ctypes.c_int32, ctypes.c_int32, ctypes.c_void_p,
)  # fmt: skip


def launch(work: Any, workers: int, arena: int = 64) -> Any:
    """Call `work` in this thread and in up to `workers` others; the record of the launch."""
    code = ctypes.cast(work, ctypes.c_void_p).value
    record = ctypes.create_string_buffer(LAUNCH.pack(code, 0, 0, 8, 1, 8, 1, 1, 0, arena, 1, 0, 0))
    memory = pool.Arena()
    WORKER.pack_into(memory.worker, 0, memory.address, arena, 0)
    start = pool.POOL.start(workers)
    assert start is not None, "another thread starts workers"
    start(record, workers, memory.worker)
    return record


def field(record: Any, name: str, kind: Any = ctypes.c_int64) -> int:
    return kind.from_buffer(record, LAUNCH_OFFSETS[name]).value


def test_workers_join() -> None:
    """All of them, once each, beside the thread that launches."""
    everybody = threading.Barrier(4, timeout=60)
    seen: list[int] = []

    def work(*_: Any) -> int:
        seen.append(threading.get_ident())
        everybody.wait()
        return 0

    launch(WORK(work), 3)
    assert len(set(seen)) == len(seen) == 4 and threading.get_ident() in seen


def test_nests_are_shared() -> None:
    """In parts of whole steps, four for each thread."""
    pool.POOL.start(2)
    share = ctypes.CFUNCTYPE(None, NEST, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)(
        pool.POOL.library["pool_share"]
    )
    everybody = threading.Barrier(3, timeout=60)
    chunks: list[int] = []
    arena = pool.Arena()
    ctypes.c_int64.from_address(arena.address + SHARERS).value = 3

    def nest(slots: int, chunk: int, worker: int) -> None:
        chunks.append(chunk)
        everybody.wait()

    share(NEST(nest), None, 1000, 16, arena.address)
    assert chunks == [96] * 3


def test_the_first_fault_is_kept() -> None:
    turns = [1, 2]
    both = threading.Barrier(2, timeout=60)

    def work(slots: Any, next: Any, total: int, chunk: int, x: int, y: int, z: int, arena: int) -> int:
        both.wait()
        mine = turns.pop()
        ctypes.c_int64.from_address(arena + PROGRAM).value = 100 * mine
        return mine

    record = launch(WORK(work), 1)
    fault = field(record, "fault", ctypes.c_int32)
    assert fault in (1, 2) and field(record, "program") == 100 * fault


def test_without_memory_for_a_worker() -> None:
    """The launch ends early and says so."""
    joined = threading.Event()

    def work(slots: Any, next: Any, total: int, *_: Any) -> int:
        while not next[0]:  # what a worker sets when it gives up
            joined.wait(0.001)
        return 0

    record = launch(WORK(work), 1, arena=1 << 62)
    assert field(record, "fault", ctypes.c_int32) == NO_MEMORY and field(record, "next") == 8


def test_small_and_overlapping_nests_are_not_shared() -> None:
    assert not native(masked, 1024)[0].has_forks
    assert not native(overlapping)[0].has_forks


def test_busy_workers() -> None:
    """A launch that finds no worker does its work alone."""
    loaded, interface = native(masked)
    x = numbers(SIZE)
    expected = run(loaded, interface, x, SIZE, 1, 1)
    gate = threading.Event()
    pool.POOL.start(2)
    workers = pool.POOL.count
    begun = threading.Barrier(workers + 2, timeout=60)

    def wait(*_: Any) -> int:
        begun.wait()
        gate.wait()
        return 0

    occupied = threading.Thread(target=launch, args=(WORK(wait), workers))
    occupied.start()
    begun.wait()
    try:
        np.testing.assert_array_equal(run(loaded, interface, x, SIZE, 1, 2), expected)
    finally:
        gate.set()
        occupied.join()


def test_from_several_python_threads() -> None:
    loaded, interface = native(rows)
    x = numbers(SIZE)
    expected = run(loaded, interface, x, SIZE, 1, 1)
    with ThreadPoolExecutor(6) as executor:
        for found in executor.map(lambda _: run(loaded, interface, x, SIZE, 1, 3), range(24)):
            np.testing.assert_array_equal(found, expected)


def test_more_launches_than_places() -> None:
    """Those that find no place for their offer work alone."""
    loaded, interface = native(masked)
    x = numbers(3 * SIZE)
    expected = run(loaded, interface, x, x.size, 3, 1)
    with ThreadPoolExecutor(JOBS + 8) as executor:
        for found in executor.map(lambda _: run(loaded, interface, x, x.size, 3, 2), range(3 * JOBS)):
            np.testing.assert_array_equal(found, expected)
