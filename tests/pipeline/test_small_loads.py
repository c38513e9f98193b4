"""Small loads of pipelined loops that start one iteration early, in registers."""

import re
from pathlib import Path

import numpy as np
import pytest

import tilework.language as tl
from tests.pipeline.test_loops_copy_early import ttgir
from tests.runtime.emulator_fixture import emulator
from tilework.runtime.launch.python.jit import jit

K, N = 32, 256


@jit
def scaled_products(
    a, b, rows, columns, o, trips, USE: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    """Products of tiles with a scale for each row, and one for the tile, as matmuls of blockwise quantized fp8 have."""
    rm, rn, rk = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    row_pointers, left = rows + rm, a + rm[:, None] * BK + rk[None, :]
    for trip in range(trips):
        row = tl.load(row_pointers)
        column = tl.load(columns + trip)
        y = tl.load(b + trip * BK * BN + rk[:, None] * BN + rn[None, :])
        acc += tl.dot(tl.load(left), y) * row[:, None] * column
        if USE == "stored":
            tl.store(rows + (trip + 1) * BM + rm, row + 1)
        if USE == "indexed":
            row_pointers = rows + rm + tl.load(columns + trip).to(tl.int32) * BM
        else:
            row_pointers += BM
        left += BM * BK
    tl.store(o + rm[:, None] * BN + rn[None, :], acc)


def expected(a: np.ndarray, b: np.ndarray, rows: np.ndarray, columns: np.ndarray, trips: int) -> np.ndarray:
    parts = [(a[t].astype("f4") @ b[t].astype("f4")) * rows[t][:, None] * columns[t] for t in range(trips)]
    return sum(parts, np.zeros((a.shape[1], b.shape[2]), np.float32))


@pytest.mark.parametrize("size", [16, 64])
@pytest.mark.parametrize("stages", [2, 3])
def test_values(size: int, stages: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(size)
    a, b = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((6, size, K), (6, K, N)))
    for trips in (0, 1, 2, 5):
        rows, columns = (rng.integers(1, 5, shape).astype(np.float32) for shape in ((trips, size), trips))
        out = np.zeros((size, N), np.float32)
        with emulator("sm_90", str(tmp_path)):
            kernel = jit(scaled_products.fn)
            kernel[(1,)](a, b, rows, columns, out, trips, "", size, N, K, num_warps=4, num_stages=stages)
        np.testing.assert_array_equal(out, expected(a, b, rows, columns, trips))


def test_a_loop_that_stores_what_it_loads_next(tmp_path: Path) -> None:
    trips, rng = 4, np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((trips, 16, K), (trips, K, N)))
    rows, columns = np.zeros((trips + 1, 16), np.float32), np.ones(trips, np.float32)
    out = np.zeros((16, N), np.float32)
    with emulator("sm_90", str(tmp_path)):
        scaled_products[(1,)](a, b, rows, columns, out, trips, "stored", 16, N, K, num_warps=1, num_stages=3)
    scales = np.arange(trips, dtype=np.float32)[:, None].repeat(16, 1)
    np.testing.assert_array_equal(rows[1:], scales + 1)
    np.testing.assert_array_equal(out, expected(a, b, scales, columns, trips))


@pytest.mark.parametrize(
    ("use", "early"), [("", ["rows", "columns"]), ("stored", ["columns"]), ("indexed", ["columns"])]
)
def test_loads_of_the_next_iteration(use: str, early: list[str]) -> None:
    """Those are masked by the predicate of the next iteration; an address must not depend on another load."""
    constants = {"USE": use, "BM": 64, "BN": N, "BK": K}
    text = ttgir(scaled_products, "*fp16 *fp16 *fp32 *fp32 *fp32 i32", constants, 4)
    turn = text.partition("scf.for")[2].partition("scf.yield")[0]
    masked = re.findall(r"%(row|column)\w* = tt\.load %\w+, %", turn)
    assert [f"{name}s" for name in masked] == early


def test_many_warps_need_no_early_loads() -> None:
    constants = {"USE": "", "BM": 32, "BN": 64, "BK": K}
    text = ttgir(scaled_products, "*fp16 *fp16 *fp32 *fp32 *fp32 i32", constants, 8)
    turn = text.partition("scf.for")[2].partition("scf.yield")[0]
    assert "async_copy" in turn and not re.findall(r"%(row|column)\w* = tt\.load %\w+, %", turn)
