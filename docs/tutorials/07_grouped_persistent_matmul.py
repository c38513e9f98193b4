"""# Grouped and persistent matmul

Scheduling the tiles of a matrix multiplication. The order of tiles decides what the caches hold; a *persistent* kernel
starts one program for each core (or multiprocessor), which loops over many tiles; a *grouped* kernel loops over the
tiles of many multiplications.

    python 07_grouped_persistent_matmul.py
"""

import os
import sys

import numpy as np

import tilework
import tilework.language as tl
from tilework.testing import Benchmark, assert_close, do_bench, perf_report

QUICK = "--quick" in sys.argv

# %%
# ## The order of tiles
#
# Tiles in the same row of `C` need the same rows of `A`, tiles in the same column the same columns of `B`. In
# row-major order the first eight programs need one row of tiles of `A` and eight columns of `B`. If the programs go
# down `GROUP` rows before they go right, sixteen programs need four rows and four columns: less is read, and what is
# read again is still in the cache.
#
# `tile_of` is a function that kernels call; it is compiled into them.


@tilework.jit
def tile_of(index, tiles_m, tiles_n, GROUP: tl.constexpr):
    width = GROUP * tiles_n
    first = index // width * GROUP
    rows = min(tiles_m - first, GROUP)
    return first + index % width % rows, index % width // rows


@tilework.jit
def order_kernel(out_ptr, tiles_m, tiles_n, GROUP: tl.constexpr):
    index = tl.program_id(0)
    m, n = tile_of(index, tiles_m, tiles_n, GROUP)
    tl.store(out_ptr + m * tiles_n + n, index)


orders = {}
for group in (1, 4):
    order = np.empty((8, 8), "i4")
    order_kernel[(64,)](order, 8, 8, GROUP=group)
    orders[group] = order
    sixteen = np.argwhere(order < 16)
    rows, columns = (len(set(sixteen[:, axis])) for axis in (0, 1))
    print(
        f"GROUP = {group}: the first 16 tiles need {rows} rows of A and {columns} columns of B, {rows + columns} in all"
    )

for rows in zip(*orders.values(), strict=True):
    print("     ".join("".join(f"{index:3}" for index in row) for row in rows))

# %%
# ## A persistent kernel
#
# The grid of this kernel has the size of the machine, not of the problem. Program 0 of 4 computes tiles 0, 4, 8 and
# so on. On a GPU that hides the beginning and the end of each tile behind other tiles' work; on a CPU, where a
# program costs a function call, it makes no visible difference, and the order of tiles is what counts.


@tilework.jit
def matmul_tile(
    a_ptr, b_ptr, c_ptr, m, n, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    rm = m * BM + tl.arange(0, BM)
    rn = n * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        a = tl.load(
            a_ptr + (rm % M)[:, None] * K + (k + rk)[None, :],
            mask=(k + rk)[None, :] < K,
            other=0.0,
        )
        b = tl.load(
            b_ptr + (k + rk)[:, None] * N + (rn % N)[None, :],
            mask=(k + rk)[:, None] < K,
            other=0.0,
        )
        acc = tl.dot(a, b, acc)
    tl.store(
        c_ptr + rm[:, None] * N + rn[None, :],
        acc,
        mask=(rm[:, None] < M) & (rn[None, :] < N),
    )


@tilework.jit
def persistent_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    PROGRAMS: tl.constexpr, GROUP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    tiles_m, tiles_n = tl.cdiv(M, BM), tl.cdiv(N, BN)
    for index in range(tl.program_id(0), tiles_m * tiles_n, PROGRAMS):
        m, n = tile_of(index, tiles_m, tiles_n, GROUP)
        matmul_tile(a_ptr, b_ptr, c_ptr, m, n, M, N, K, BM, BN, BK)


CORES = os.cpu_count() or 1
TILE = {"BM": 64, "BN": 64, "BK": 64}
rng = np.random.default_rng(0)


def random(rows: int, cols: int) -> np.ndarray:
    return rng.standard_normal((rows, cols), dtype="f4")


def persistent(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    (m, k), n = a.shape, b.shape[1]
    persistent_kernel[(CORES,)](a, b, c, m, n, k, PROGRAMS=CORES, GROUP=4, **TILE)


a, b, c = random(300, 170), random(170, 250), np.empty((300, 250), "f4")
persistent(a, b, c)
assert_close(c, a @ b, atol=1e-4)
print(
    f"{CORES} programs computed {tilework.cdiv(300, 64) * tilework.cdiv(250, 64)} tiles; largest difference from NumPy "
    f"{np.abs(c - a @ b).max():.1e}"
)

# %%
# ## Many multiplications in one launch
#
# A mixture-of-experts layer multiplies many matrices of different sizes. With a launch for each matrix, cores are
# idle at the end of each launch. A grouped kernel gives the tiles of all multiplications consecutive indices, and its
# programs loop over them as above. The kernel reads the addresses and sizes of the matrices from arrays; the compiler
# knows nothing about them.


@tilework.jit
def grouped_kernel(
    a_table, b_table, c_table, sizes_ptr, problems,
    PROGRAMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    index = tl.program_id(0)
    before = 0  # tiles of earlier multiplications
    for problem in range(problems):
        M, N, K = [tl.load(sizes_ptr + problem * 3 + i) for i in range(3)]
        tiles_n = tl.cdiv(N, BN)
        after = before + tl.cdiv(M, BM) * tiles_n
        while index < after:
            a, b, c = [
                tl.load(table + problem).to(tl.pointer_type(tl.float32))
                for table in (a_table, b_table, c_table)
            ]
            tile = index - before
            matmul_tile(a, b, c, tile // tiles_n, tile % tiles_n, M, N, K, BM, BN, BK)
            index += PROGRAMS
        before = after


def addresses(arrays: list[np.ndarray]) -> np.ndarray:
    return np.array([array.ctypes.data for array in arrays], "i8")


def grouped(tables: list[np.ndarray], sizes: np.ndarray) -> None:
    grouped_kernel[(CORES,)](*tables, sizes, len(sizes), PROGRAMS=CORES, **TILE)


SIZES = [(64 + 37 * i % 200, 64 + 53 * i % 150, 128) for i in range(6 if QUICK else 24)]
As, Bs, Cs = (
    [random(*shape) for shape in shapes]
    for shapes in (
        [(m, k) for m, _, k in SIZES],
        [(k, n) for _, n, k in SIZES],
        [(m, n) for m, n, _ in SIZES],
    )
)
tables, sizes = [addresses(arrays) for arrays in (As, Bs, Cs)], np.array(SIZES, "i4")
grouped(tables, sizes)
for a, b, c in zip(As, Bs, Cs, strict=True):
    assert_close(c, a @ b, atol=1e-4)
print(
    f"{len(SIZES)} multiplications, the smallest {min(SIZES)}, the largest {max(SIZES)}: all equal NumPy's"
)

# %%
# ## How fast is it?
#
# The same multiplications three ways: one grouped launch, a launch for each, and NumPy in a loop.


def one_by_one(count: int) -> None:
    for a, b, c in zip(As[:count], Bs[:count], Cs[:count], strict=True):
        persistent(a, b, c)


def numpy_matmuls(count: int) -> None:
    for a, b, c in zip(As[:count], Bs[:count], Cs[:count], strict=True):
        np.matmul(a, b, out=c)


calls = {
    "grouped": lambda count: grouped([table[:count] for table in tables], sizes[:count]),
    "one by one": one_by_one,
    "NumPy": numpy_matmuls,
}


@perf_report(
    Benchmark(
        x_names=["multiplications"],
        x_vals=[3, 6] if QUICK else [3, 6, 12, 24],
        line_arg="way",
        line_vals=list(calls),
        line_names=["one grouped launch", "a launch each", "NumPy"],
        plot_name="Multiplications of different sizes, float32",
        xlabel="multiplications",
        ylabel="GFLOP/s (more is better)",
        args={},
    )
)
def gflops(multiplications: int, way: str) -> float:
    operations = 2 * sum(m * n * k for m, n, k in SIZES[:multiplications])
    call = lambda: calls[way](multiplications)
    return operations / do_bench(call, warmup=5, rep=40, return_mode="min") / 1e6


gflops.run(print_data=True, save_precision=1)

# %%
# ## Try it
#
# - Matrices of float16: `tl.pointer_type` in the kernel names the type; make it a `tl.constexpr` parameter.
# - `TRITON_SANITIZE=1`: pointers loaded from a table are checked against the arrays of the launch, and those passed
#   to `tilework.oracles.interpreter.register_memory`. What is reported about the others?
#
# Next: [descriptors and TMA](08_descriptors_tma.py).
