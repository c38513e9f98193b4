"""Stores past the caches where a launch stores more than they hold, beside NumPy."""

from dataclasses import replace

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.targets.test_cpu_x86 import MACHINES
from tilework.compiler import ASTSource, lower
from tilework.ir.parser import parse_module
from tilework.targets.base import GPUTarget
from tilework.targets.cpu.lower import codegen
from tilework.targets.cpu.target import HostTarget

CACHE = 1 << 16
CPU = "emeraldrapids"
LARGE = replace(HostTarget.of("x86_64", CPU, MACHINES[CPU][1], 16), cache_bytes=CACHE)


@pytest.fixture
def small_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HostTarget, "streams_from", property(lambda self: CACHE if self.arch == "x86_64" else 0))


@tilework.jit
def doubled(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)


@tilework.jit
def in_place(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, 2 * tl.load(out + i, mask=i < n), mask=i < n)


@tilework.jit
def kept(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, 2 * tl.load(x + i), eviction_policy="evict_last")


@tilework.jit
def counted(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, 2 * tl.load(x + i))
    tl.atomic_add(n, 1)


@tilework.jit
def again(x, out, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    for k in range(n):
        tl.store(out + i, k * tl.load(x + i + k))


@tilework.jit
def tiles_in_turn(x, out, n, B: tl.constexpr):
    for start in range(tl.program_id(0) * B, n, tl.num_programs(0) * B):
        i = start + tl.arange(0, B)
        tl.store(out + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)


@tilework.jit
def rows_doubled(x, out, rows, columns, R: tl.constexpr, C: tl.constexpr):
    row, column = tl.program_id(0) * R + tl.arange(0, R)[:, None], tl.arange(0, C)[None, :]
    mask = (row < rows) & (column < columns)
    value = tl.load(x + row * columns + column, mask=mask)
    tl.store(out + row * columns + column, value + tl.sum(value * 0, 1)[:, None] + value, mask=mask)


TYPES = {"x": "*fp32", "out": "*fp32", "n": "i32"}


def text_of(kernel: tilework.JITFunction, size: int = 4096, target: HostTarget = LARGE, **types: str) -> str:
    source = ASTSource(kernel, {**TYPES, **types}, {"B": size})
    module = parse_module(str(lower(source, GPUTarget("cpu", "host", 1), ["ttcir"])["ttcir"]))
    return codegen.emit_module(module, target)


def test_stores_of_tiles_that_are_not_read_may_go_past_the_caches() -> None:
    for kernel in (doubled, tiles_in_turn):
        text = text_of(kernel)
        assert text.count("!nontemporal") == 2  # whole lines, and addresses that are multiples of 16 bytes
        assert text.index("!nontemporal") < text.index("@llvm.x86.sse.sfence")
    assert "!nontemporal" not in text_of(doubled, 512)  # small
    for kernel in (in_place, kept, again):
        assert "!nontemporal" not in text_of(kernel)
    assert "!nontemporal" not in text_of(counted, n="*i32")


def test_processors_that_are_not_faster_with_them_have_no_such_stores() -> None:
    assert LARGE.streams_from == CACHE
    for target in (replace(LARGE, cpu="cascadelake"), replace(LARGE, cache_bytes=0)):
        assert target.streams_from == 0
        assert "!nontemporal" not in text_of(doubled, target=target)


@pytest.mark.usefixtures("small_cache")
@pytest.mark.parametrize("programs", (1, 9))  # 16 KB, and more than the cache
@pytest.mark.parametrize("shift", (0, 4, 1))  # elements: a line, a quarter of it, and less
def test_results_are_the_same_wherever_they_begin_and_end(shift: int, programs: int) -> None:
    x = np.random.default_rng(0).standard_normal(programs * 4096).astype(np.float32)
    for kernel, grid in ((doubled, programs), (tiles_in_turn, 2)):
        for n in (x.size, x.size - 100):
            memory = np.full(x.size + 64, -1, np.float32)
            start = -memory.ctypes.data % 64 // 4 + shift
            kernel[(grid,)](x, memory[start:], n, 4096)
            np.testing.assert_array_equal(memory[start : start + n], 2 * x[:n])
            assert (memory[:start] == -1).all() and (memory[start + n :] == -1).all()


@pytest.mark.usefixtures("small_cache")
def test_a_large_tile_that_threads_share_and_arrays_that_are_the_same() -> None:
    x = np.random.default_rng(0).standard_normal(1 << 20).astype(np.float32)
    out = np.empty_like(x)
    for _ in range(3):  # the first is not shared
        out[:] = 0
        doubled[(1,)](x, out, x.size, 1 << 20)
        np.testing.assert_array_equal(out, 2 * x)
    y = x.copy()
    doubled[(256,)](y, y, y.size, 4096)
    np.testing.assert_array_equal(y, 2 * x)


@pytest.mark.usefixtures("small_cache")
@pytest.mark.parametrize("columns", (1024, 1000, 333))
def test_rows_of_a_tile(columns: int) -> None:
    x = np.random.default_rng(0).standard_normal((50, columns)).astype(np.float32)
    out = np.zeros_like(x)
    rows_doubled[(7,)](x, out, 50, columns, 8, 1024)
    np.testing.assert_array_equal(out, 2 * x)
