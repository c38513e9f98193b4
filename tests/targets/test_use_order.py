"""Values of kernels whose instructions `order_by_use` moves, on the emulated GPU, beside NumPy."""

from pathlib import Path

import numpy as np
import pytest

import tilework
import tilework.language as tl
from tests.runtime.emulator_fixture import emulator
from tilework.targets.gpu import codegen


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
