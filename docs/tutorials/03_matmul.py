"""# Matrix multiplication

`C = A @ B`, a tile of `C` at a time. This tutorial shows two-dimensional tiles, `tl.dot`, why the sizes of tiles
matter, and how `autotune` chooses them.

    python 03_matmul.py
"""

import sys

import numpy as np

import tilework
import tilework.language as tl
from tilework.testing import Benchmark, assert_close, do_bench, perf_report

QUICK = "--quick" in sys.argv

# %%
# ## The kernel
#
# Each program computes one tile of `BM` by `BN` elements of `C`. For that it needs `BM` whole rows of `A` and `BN`
# whole columns of `B`, and goes along them in steps of `BK`. `rm[:, None]` is a column and `rk[None, :]` a row of a
# tile; their sum has both axes, so that `a_ptr + rm[:, None] * K + rk[None, :]` is a `BM` by `BK` tile of pointers
# into `A`.
#
# `tl.dot(a, b, acc)` multiplies two tiles and adds the result to a third. It accumulates in float32, whatever the
# inputs are. On a CPU it becomes a micro-kernel that keeps part of `acc` in vector registers, on a GPU it is done by
# tensor cores.
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
# In one step of `k` a tile of 16 by 16 reads 32 elements for 256 multiply-adds, one of 128 by 128 reads 256 for
# 16384: large tiles read less. But their operands must fit into the caches, and there must be enough programs for all
# cores. The best sizes are not known in advance; here they are measured for one multiplication of square matrices.


SIZE = 128 if QUICK else 384
TILES = [32, 64] if QUICK else [16, 64, 128]


@perf_report(
    Benchmark(
        x_names=["tile"],
        x_vals=[f"BM = {rows}" for rows in TILES],
        line_arg="columns",
        line_vals=TILES,
        line_names=[f"BN = {columns}" for columns in TILES],
        plot_name=f"Sizes of tiles: C = A @ B, {SIZE} x {SIZE}, float32, BK = 64",
        xlabel="rows of a tile",
        ylabel="GFLOP/s (more is better)",
        args={},
    )
)
def speed_of_tiles(tile: str, columns: int) -> float:
    a, b, c = random(SIZE, SIZE), random(SIZE, SIZE), np.empty((SIZE, SIZE), "f4")
    blocks = {"BM": int(tile.removeprefix("BM = ")), "BN": columns, "BK": 64}
    launch = lambda: matmul_kernel[grid](a, b, c, SIZE, SIZE, SIZE, **blocks)
    ms = do_bench(launch, warmup=1, rep=10, return_mode="min")
    return 2 * SIZE**3 / ms / 1e6


speed_of_tiles.run(print_data=True, save_precision=1)

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


@perf_report(
    Benchmark(
        x_names=["size"],
        x_vals=[64, 128] if QUICK else [64, 128, 256, 512, 1024],
        line_arg="library",
        line_vals=["tilework", "NumPy"],
        line_names=["tilework", "NumPy (BLAS)"],
        plot_name="Square matrices, float32",
        xlabel="rows and columns",
        ylabel="GFLOP/s (more is better)",
        x_log=True,
        args={},
    )
)
def gflops(size: int, library: str) -> float:
    a, b, c = random(size, size), random(size, size), np.empty((size, size), "f4")
    calls = {
        "tilework": lambda: matmul[grid](a, b, c, size, size, size),
        "NumPy": lambda: np.matmul(a, b, out=c),
    }
    ms = do_bench(calls[library], warmup=1, rep=20, return_mode="min")
    return 2 * size**3 / ms / 1e6


gflops.run(print_data=True, save_precision=1)

# %%
# ## On a GPU
#
# Matrices of float16 on a GPU, where tensor cores do `tl.dot`: the tiles are larger, and warps and stages are further
# choices. `num_warps` is the number of warps that share the work of a program, `num_stages` how many steps of the
# loop are loaded ahead. Without a GPU this cell only says so.

GPU_CONFIGS = [
    tilework.Config({"BM": bm, "BN": bn, "BK": 64}, num_warps=warps, num_stages=stages)
    for bm, bn, warps, stages in ((128, 128, 4, 4), (128, 128, 8, 3), (128, 256, 8, 3))
]
gpu_matmul = tilework.autotune(configs=GPU_CONFIGS, key=["M", "N", "K"])(matmul_kernel)


@perf_report(
    Benchmark(
        x_names=["size"],
        x_vals=[512, 1024, 2048, 4096, 8192],
        line_arg="library",
        line_vals=["tilework", "torch"],
        line_names=["tilework", "torch (cuBLAS)"],
        plot_name="Square matrices on the GPU, float16",
        xlabel="rows and columns",
        ylabel="TFLOP/s (more is better)",
        x_log=True,
        args={},
    )
)
def gpu_tflops(size: int, library: str, device: str = "cuda") -> float:
    import torch

    a, b = torch.randn((2, size, size), device=device).to(torch.float16)
    c = torch.empty_like(a)
    calls = {
        "tilework": lambda: gpu_matmul[grid](a, b, c, size, size, size),
        "torch": lambda: torch.matmul(a, b, out=c),
    }
    calls["tilework"]()
    torch.testing.assert_close(c, a @ b, atol=0.1, rtol=0.01)
    ms = do_bench(calls[library], warmup=20, rep=50, return_mode="median")
    return 2 * size**3 / ms / 1e9


if tilework.runtime.driver.active.get_current_target().backend == "cpu":
    print("There is no GPU here.")
else:
    gpu_tflops.run(print_data=True, save_precision=1)

# %%
# ## Try it
#
# - Matrices of float16 (`.astype("f2")`): the kernel is compiled again and still accumulates in float32; the store
#   converts the sums.
# - `TRITON_PRINT_AUTOTUNING=1` shows what was measured.
# - Which limit would this loop have on a GPU? [GPU performance](../gpu-performance.md) shows the remarks about it.
#
# Next: [dropout and random numbers](04_dropout.py).
