"""# Quantised weights: int4 matmul

A matrix of weights in four bits for each number, eight numbers in an int32, with a scale for each group. This tutorial
packs them, unpacks them in the kernel that multiplies, and shows what is lost and what is gained.

    python 11_int4_matmul.py
"""

import sys

import numpy as np

import tilework
import tilework.language as tl
from tilework.testing import Benchmark, assert_close, do_bench, perf_report

QUICK = "--quick" in sys.argv
rng = np.random.default_rng(0)

# %%
# ## Four bits for a number
#
# An integer of four bits has one of 16 values. A group of `GROUP` weights of the same column shares a *scale*: the
# largest magnitude of the group divided by 7, so that every weight divided by the scale lies between -7 and 7.
# Rounded to an integer, plus 8, it is between 1 and 15. The kernel computes with the weight `(number - 8) * scale`.
#
# Eight of these numbers fit into an int32: number `k` is in bits `4 * (k % 8)` to `4 * (k % 8) + 3` of word `k // 8`.

GROUP = 64


def quantise(w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers from 1 to 15, [K, N], and a scale for each group of a column, [K / GROUP, N]."""
    groups = w.reshape(-1, GROUP, w.shape[1])
    scales = np.abs(groups).max(axis=1) / 7
    numbers = np.rint(groups / scales[:, None]) + 8
    return numbers.reshape(w.shape).astype("u4"), scales.astype(w.dtype)


def pack(numbers: np.ndarray) -> np.ndarray:
    """Eight numbers of a column in one int32: [K / 8, N]."""
    eights = numbers.reshape(-1, 8, numbers.shape[1])
    shifts = 4 * np.arange(8, dtype="u4")[None, :, None]
    return np.bitwise_or.reduce(eights << shifts, axis=1).view("i4")


def dequantise(numbers: np.ndarray, scales: np.ndarray) -> np.ndarray:
    return (numbers.astype("f4") - 8) * np.repeat(scales, GROUP, axis=0)


w = rng.standard_normal((256, 200), dtype="f4")
numbers, scales = quantise(w)
packed = pack(numbers)
print(
    f"{w.nbytes} bytes of float32 became {packed.nbytes} of numbers and {scales.nbytes} of scales"
)
print(
    f"the first word {int(packed.view('u4')[0, 0]):08x} holds the numbers {numbers[:8, 0]}"
)
difference = dequantise(numbers, scales) - w
print(
    f"error of a weight: {np.abs(difference).mean():.3f} in the mean, the weights: {np.abs(w).mean():.3f}"
)

# %%
# ## The kernel
#
# The matmul of [the third tutorial](03_matmul.py), with one more step. `packed_ptr + (k // 8)` loads the word of each
# weight: eight rows of the tile have the same pointers, and the same word serves them all. `>>` moves the number to the
# lowest bits, and `& 15` keeps only these. The shift of an int32 keeps its sign, which does not matter below bit 4.
#
# `GROUP` is a multiple of `BK`, so that all weights of one step of a column have one scale. `GROUP` and the sizes of
# tiles are constants, and the compiler knows that `k % 8` counts 0, 1, ... 7, 0, 1, ...


@tilework.jit
def int4_kernel(
    a_ptr, packed_ptr, scales_ptr, c_ptr, M, N, K,
    GROUP: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    is_row, is_column = m < M, n < N
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        a_ptrs = a_ptr + m[:, None] * K + (start + k)[None, :]
        a = tl.load(a_ptrs, mask=is_row[:, None], other=0.0)
        word_ptrs = packed_ptr + ((start + k) // 8)[:, None] * N + n[None, :]
        words = tl.load(word_ptrs, mask=is_column[None, :], other=0)
        number = (words >> (k % 8 * 4)[:, None]) & 15
        scale = tl.load(scales_ptr + start // GROUP * N + n, mask=is_column, other=0.0)
        weight = (number - 8).to(a.dtype) * scale[None, :]
        acc = tl.dot(a, weight, acc)
    mask = is_row[:, None] & is_column[None, :]
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc, mask=mask)


def int4_matmul(
    a, packed, scales, out, blocks: tuple[int, int, int] = (16, 64, 64)
) -> None:
    """`out = a @ weights`, for arrays of NumPy or tensors of torch."""
    (m, k), n = a.shape, packed.shape[1]
    bm, bn, bk = blocks
    assert k % GROUP == 0 and GROUP % bk == 0
    grid = (tilework.cdiv(m, bm), tilework.cdiv(n, bn))
    int4_kernel[grid](a, packed, scales, out, m, n, k, GROUP=GROUP, BM=bm, BN=bn, BK=bk)


a = rng.standard_normal((5, 256), dtype="f4")
out = np.empty((5, 200), "f4")
int4_matmul(a, packed, scales, out)
expected = a @ dequantise(numbers, scales)
assert_close(out, expected, atol=1e-3)
print(
    f"largest difference from NumPy with the same weights: {np.abs(out - expected).max():.1e}"
)
exact = a @ w
error = np.linalg.norm(out - exact) / np.linalg.norm(exact)
print(f"from the product with the weights before: {100 * error:.1f} % of its norm")

# %%
# ## Smaller groups, smaller errors
#
# One large weight makes the scale of its whole group coarse. A scale for fewer weights costs more bytes.

print(f"{'group':>6}{'bits for a weight':>20}{'error':>9}")
for group in (256, 128, 64, 32):
    parts = w.reshape(-1, group, w.shape[1])
    step = np.abs(parts).max(axis=1, keepdims=True) / 7
    error = np.linalg.norm(np.rint(parts / step) * step - parts) / np.linalg.norm(w)
    print(f"{group:6}{4 + 32 / group:20.2f}{100 * error:8.1f}%")

# %%
# ## How fast is it?
#
# A language model that writes one token multiplies one row by all of its weights: each weight is read for two
# operations, and what counts is how many bytes the weights take. With more rows (several users, or a prompt) there
# are more operations for each weight, and unpacking is extra work. NumPy multiplies with weights in float32.

SIZE = 256 if QUICK else 2048


def operands(rows: int) -> tuple[np.ndarray, ...]:
    a = rng.standard_normal((rows, SIZE), dtype="f4")
    w = rng.standard_normal((SIZE, SIZE), dtype="f4")
    numbers, scales = quantise(w)
    return a, w, pack(numbers), scales, np.empty((rows, SIZE), "f4")


@perf_report(
    Benchmark(
        x_names=["rows"],
        x_vals=[1, 16] if QUICK else [1, 4, 16, 64],
        line_arg="way",
        line_vals=["int4", "float32"],
        line_names=["tilework, int4", "NumPy, float32"],
        plot_name=f"Rows times {SIZE} x {SIZE} weights",
        xlabel="rows",
        ylabel="milliseconds (less is better)",
        x_log=True,
        y_log=True,
        args={},
    )
)
def milliseconds(rows: int, way: str) -> float:
    a, w, packed, scales, out = operands(rows)
    calls = {
        "int4": lambda: int4_matmul(a, packed, scales, out),
        "float32": lambda: np.matmul(a, w, out=out),
    }
    return do_bench(calls[way], warmup=5, rep=30, return_mode="min")


milliseconds.run(print_data=True, save_precision=3)

# %%
# ## On a GPU
#
# Activations and scales in float16, weights of 8192 by 8192: 128 MiB in float16, 34 MiB in int4. The tiles of `a`
# have 16 rows, the fewest that tensor cores take. Without a GPU this cell only says so.


@perf_report(
    Benchmark(
        x_names=["rows"],
        x_vals=[1, 4, 16, 64],
        line_arg="way",
        line_vals=["int4", "float16"],
        line_names=["tilework, int4", "torch, float16"],
        plot_name="Rows times 8192 x 8192 weights on the GPU",
        xlabel="rows",
        ylabel="milliseconds (less is better)",
        x_log=True,
        y_log=True,
        args={"size": 8192},
    )
)
def gpu_milliseconds(rows: int, way: str, size: int, device: str = "cuda") -> float:
    import torch

    numbers = torch.randint(1, 16, (size // 8, 8, size), dtype=torch.int32, device=device)
    packed = torch.zeros((size // 8, size), dtype=torch.int32, device=device)
    for eighth in range(8):
        packed |= numbers[:, eighth] << 4 * eighth
    scales = 0.01 + 0.02 * torch.rand((size // GROUP, size), device=device).to(
        torch.float16
    )
    w = (numbers.reshape(size, size) - 8) * scales.repeat_interleave(GROUP, dim=0)
    a = torch.randn((rows, size), device=device).to(torch.float16)
    out = torch.empty((rows, size), dtype=torch.float16, device=device)
    int4_matmul(a, packed, scales, out)
    torch.testing.assert_close(out, a @ w, atol=0.3, rtol=0.02)
    calls = {
        "int4": lambda: int4_matmul(a, packed, scales, out),
        "float16": lambda: torch.matmul(a, w, out=out),
    }
    return do_bench(calls[way], warmup=10, rep=40, return_mode="median")


if tilework.runtime.driver.active.get_current_target().backend == "cpu":
    print("There is no GPU here.")
else:
    gpu_milliseconds.run(print_data=True, save_precision=3)

# %%
# ## Try it
#
# - One row and many columns: `blocks=(16, 32, 64)` makes twice as many programs. On which machine is that faster?
# - A zero point: `(number - zero) * scale`, with a second small matrix, for weights that are not symmetric.
# - `K` is long and `N` short: let several programs share a tile of `out`, each with a part of `K`, and add with
#   `tl.atomic_add` (*split K*).
#
# Next: [segmented and ragged data](12_ragged.py).
