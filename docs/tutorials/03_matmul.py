"""# Matrix multiplication

`C = A @ B`, a tile of `C` at a time. This tutorial shows two-dimensional tiles, `tl.dot`, why the sizes of tiles
matter, and how `autotune` chooses them.

    python docs/tutorials/03_matmul.py
"""

import sys

import chart
import numpy as np

import tilework
import tilework.language as tl
from tilework.testing import assert_close, do_bench

QUICK = "--quick" in sys.argv

# %%
# ## The kernel
#
# Each program computes one tile of `BM` by `BN` elements of `C`. For that it needs `BM` whole rows of `A` and `BN`
# whole columns of `B`, and walks along them in steps of `BK`. `rm[:, None]` is a column and `rk[None, :]` a row of a
# tile; their sum has both axes, so that `a_ptr + rm[:, None] * K + rk[None, :]` is a `BM` by `BK` tile of pointers into
# `A`.
#
# `tl.dot(a, b, acc)` multiplies two tiles and adds the result to a third. It accumulates in float32, whatever the
# inputs are. On a CPU it becomes a micro-kernel that keeps part of `acc` in vector registers, on a GPU it is what
# tensor cores do.
#
# Rows and columns past the end wrap around (`% M`, `% N`): they compute values that are not stored, without a mask in
# the loop. Along `K` every element contributes to the sum, so the last step is masked and filled with zeros.


@tilework.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    rm = tl.program_id(0) * BM + tl.arange(0, BM)
    rn = tl.program_id(1) * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    a_ptrs = a_ptr + (rm % M)[:, None] * K + rk[None, :]
    b_ptrs = b_ptr + rk[:, None] * N + (rn % N)[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptrs, mask=rk[None, :] < K - k, other=0.0)
        b = tl.load(b_ptrs, mask=rk[:, None] < K - k, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BK
        b_ptrs += BK * N
    mask = (rm[:, None] < M) & (rn[None, :] < N)
    tl.store(c_ptr + rm[:, None] * N + rn[None, :], acc, mask=mask)


def grid(meta: dict[str, int]) -> tuple[int, int]:
    return tilework.cdiv(meta["M"], meta["BM"]), tilework.cdiv(meta["N"], meta["BN"])


rng = np.random.default_rng(0)


def random(rows: int, cols: int) -> np.ndarray:
    return rng.standard_normal((rows, cols), dtype="f4")


a, b, c = random(300, 200), random(200, 170), np.empty((300, 170), "f4")
matmul_kernel[grid](a, b, c, 300, 170, 200, BM=64, BN=64, BK=32)
assert_close(c, a @ b, atol=1e-4)
print(f"largest difference from NumPy: {np.abs(c - a @ b).max():.1e}")

# %%
# ## The size of tiles
#
# In one step of `k` a tile of 16 by 16 reads 32 elements for 256 multiply-adds, one of 128 by 128 reads 256 for 16384:
# large tiles read less. But their operands must fit into the caches, and there must be enough programs for all cores.
# The best sizes are not known beforehand; here they are measured, for one multiplication of square matrices.


def gflops(size: int, bm: int, bn: int, bk: int) -> float:
    a, b, c = random(size, size), random(size, size), np.empty((size, size), "f4")
    launch = lambda: matmul_kernel[grid](a, b, c, size, size, size, BM=bm, BN=bn, BK=bk)
    return 2 * size**3 / do_bench(launch, warmup=1, rep=10, return_mode="min") / 1e6


size = 128 if QUICK else 384
rows, columns = ([32, 64], [32, 64]) if QUICK else ([16, 64, 128], [16, 64, 128])
measured = [[gflops(size, bm, bn, 64) for bn in columns] for bm in rows]
print(f"{size} x {size}, BK = 64; GFLOP/s with BN =", "".join(f"{bn:8}" for bn in columns))
for bm, speeds in zip(rows, measured, strict=True):
    print(f"{'BM = ' + str(bm):>41}", "".join(f"{speed:8.1f}" for speed in speeds))

chart.bars(
    "matmul-tiles.svg",
    f"Sizes of tiles: C = A @ B, {size} x {size}, float32",
    [f"BM = {bm}" for bm in rows],
    {f"BN = {bn}": speeds for bn, speeds in zip(columns, zip(*measured), strict=True)},
    x_label="rows of a tile",
    y_label="GFLOP/s (more is better)",
)

# %%
# ## Autotuning
#
# `autotune` measures a list of configurations at the first launch of each new `key`, and keeps the fastest. The
# caller passes the sizes of the matrices, and no longer those of the tiles.

CONFIGS = [
    tilework.Config({"BM": bm, "BN": bn, "BK": 64})
    for bm, bn in ((32, 32), (64, 64), (64, 128))
]
matmul = tilework.autotune(configs=CONFIGS[:2] if QUICK else CONFIGS, key=["M", "N", "K"])(
    matmul_kernel
)

matmul[grid](a, b, c, 300, 170, 200)
assert_close(c, a @ b, atol=1e-4)
print("chosen for 300 x 170 x 200:", matmul.best_config)

# %%
# ## How fast is it?
#
# NumPy calls a BLAS library, whose kernels were written for this kind of processor by hand.


def speeds_of(size: int) -> list[float]:
    a, b, c = random(size, size), random(size, size), np.empty((size, size), "f4")
    calls = (
        lambda: matmul[grid](a, b, c, size, size, size),
        lambda: np.matmul(a, b, out=c),
    )
    return [
        2 * size**3 / do_bench(call, warmup=1, rep=20, return_mode="min") / 1e6
        for call in calls
    ]


sizes = [64, 128] if QUICK else [64, 128, 256, 512]
speeds = [speeds_of(size) for size in sizes]
print(f"{'size':>6}{'tilework':>11}{'NumPy':>11}   GFLOP/s")
for size, (ours, numpy) in zip(sizes, speeds, strict=True):
    print(f"{size:6}{ours:11.1f}{numpy:11.1f}")

chart.lines(
    "matmul.svg",
    "Square matrices, float32",
    sizes,
    dict(zip(["tilework", "NumPy (BLAS)"], zip(*speeds))),
    x_label="rows and columns",
    y_label="GFLOP/s (more is better)",
    x_log=True,
)

# %%
# ## Try it
#
# - Matrices of float16 (`.astype("f2")`): the kernel is compiled again, it still accumulates in float32; store
#   `acc.to(tl.float16)`.
# - `TRITON_PRINT_AUTOTUNING=1` shows what was measured.
# - Which limit would this loop have on a GPU? [GPU performance](../gpu-performance.md) shows the remarks about it.
#
# Next: [dropout and random numbers](04_dropout.py).
