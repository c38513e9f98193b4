"""Values of kernels whose instructions `order_by_use` moves or `unpack_again` repeats, on the emulated GPU, beside
NumPy."""

from pathlib import Path

import numpy as np
import pytest
from ml_dtypes import bfloat16

import tilework
import tilework.language as tl
from tests.runtime.emulator_fixture import emulator
from tilework.targets.gpu import codegen
from tilework.targets.nvidia.lower.emit import NvidiaGpu


@tilework.jit
def divergence(predicted, truth, losses, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = 0.0
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        y = tl.load(predicted + row * n + at, mask=at < n, other=0.0)
        t = tl.load(truth + row * n + at, mask=at < n, other=0.0)
        total += tl.sum(t * (tl.log(tl.maximum(t, 1e-6)) - y), axis=0)
    tl.store(losses + row, total)


@tilework.jit
def gates(slopes, gate, up, n, BLOCK: tl.constexpr):
    """Overwrite what it has loaded: loads stay before stores."""
    at = tl.arange(0, BLOCK)
    d = tl.load(slopes + at, mask=at < n, other=0.0)
    a = tl.load(gate + at, mask=at < n, other=0.0)
    b = tl.load(up + at, mask=at < n, other=0.0)
    s = tl.sigmoid(a)
    tl.store(up + at, d * a * s, mask=at < n)
    tl.store(gate + at, d * (s + a * s * (1 - s)) * b, mask=at < n)


@pytest.fixture
def moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The blocks that `order_by_use` has looked at closely."""
    seen: list[int] = []
    order = codegen.ordered_by_use
    monkeypatch.setattr(codegen, "ordered_by_use", lambda lines: seen.append(len(lines)) or order(lines))
    with emulator(cache=str(tmp_path)):
        yield seen


def test_reduced_rows(moved: list[int]) -> None:
    rng = np.random.default_rng(3)
    y, t = rng.standard_normal((2, 3000), np.float32), rng.random((2, 3000), np.float32)
    t[0, 5], t[1, 7] = 0.0, 1e-30
    losses = np.zeros(2, np.float32)
    divergence[(2,)](y, t, losses, 3000, BLOCK=2048, num_warps=2)
    assert moved
    np.testing.assert_allclose(losses, (t * (np.log(np.maximum(t, 1e-6)) - y)).sum(1), rtol=1e-4)


def test_stored_tiles(moved: list[int]) -> None:
    rng = np.random.default_rng(4)
    d, a, b = (rng.standard_normal(2000, np.float32) for _ in range(3))
    gate, up = a.copy(), b.copy()
    gates[(1,)](d, gate, up, 2000, BLOCK=2048, num_warps=2)
    assert moved
    s = 1 / (1 + np.exp(-a))
    np.testing.assert_allclose(up, d * a * s, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(gate, d * (s + a * s * (1 - s)) * b, rtol=1e-4, atol=1e-5)


@tilework.jit
def normalised(x, w, y, n, BLOCK: tl.constexpr):
    """Two reductions of a row that is needed after each of them."""
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=0.0).to(tl.float32)
    mean = tl.sum(v, axis=0) / n
    d = tl.where(at < n, v - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(d * d, axis=0) / n + 1e-5)
    out = (v - mean) * scale * tl.load(w + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(y + row * n + at, out, mask=at < n)


@tilework.jit
def softmax(x, y, n, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * n + at, mask=at < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row * n + at, e / tl.sum(e, axis=0), mask=at < n)


@pytest.fixture
def again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The numbers of lines that `unpack_again` adds."""
    added: list[int] = []

    def unpack(function: codegen.Function, exchanges: tuple[str, ...]) -> None:
        before = sum(len(block.lines) for block in function.blocks)
        codegen.unpack_again(function, exchanges, NvidiaGpu.unpacking)
        added.append(sum(len(block.lines) for block in function.blocks) - before)

    monkeypatch.setattr(codegen, "order_by_use", unpack)
    with emulator(cache=str(tmp_path)):
        yield added


@pytest.mark.parametrize(("n", "block", "warps"), [(1000, 1024, 1), (1024, 1024, 4), (37, 64, 1)])
def test_rows_unpacked_again(again: list[int], n: int, block: int, warps: int) -> None:
    rng = np.random.default_rng(n)
    x, w = (rng.standard_normal(shape).astype(bfloat16) for shape in ((2, n), n))
    y = np.zeros((2, n), np.float32)
    normalised[(2,)](x, w, y, n, BLOCK=block, num_warps=warps)
    assert again[0] > 0
    x, w = x.astype(np.float64), w.astype(np.float64)
    d = x - x.mean(1, keepdims=True)
    expected = d / np.sqrt((d * d).mean(1, keepdims=True) + 1e-5) * w
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)


def test_special_values_unpacked_again(again: list[int]) -> None:
    x = np.linspace(-4, 4, 512, dtype=np.float32)[None].repeat(4, 0)
    x[1, 3], x[2, 5], x[3, :] = np.nan, -np.inf, -0.0
    given = x.astype(bfloat16)
    y = np.zeros_like(x)
    softmax[(4,)](given, y, 512, BLOCK=512, num_warps=1)
    assert again[0] > 0
    x = given.astype(np.float32)
    e = np.exp(x - np.fmax.reduce(x, 1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-5)
