"""# Fused softmax

Softmax of each row of a matrix, as one kernel: a row is read once, kept in registers, and written once. This
tutorial shows reductions, tiles that are longer than a row, and why it pays to *fuse* steps.

    python 02_fused_softmax.py
"""

import sys

import numpy as np

import tilework
import tilework.language as tl
from tilework.testing import Benchmark, assert_close, do_bench, perf_report

QUICK = "--quick" in sys.argv

# %%
# ## What NumPy does
#
# Each step reads whole arrays from memory, and most of them write one: a maximum, a difference, an exponential, a sum
# and a quotient over a matrix of `M * N` elements move about `8 * M * N` elements through memory. Reading the matrix
# once and writing the result once would be `2 * M * N`.


def softmax_numpy(x: np.ndarray) -> np.ndarray:
    shifted = x - x.max(axis=1, keepdims=True)
    numerator = np.exp(shifted)
    return numerator / numerator.sum(axis=1, keepdims=True)


# %%
# ## The kernel
#
# One program does one row. The number of columns is known only at run time, and one kernel must serve many widths, so
# `BLOCK` is the next power of two, and the mask excludes the rest ([a tile may have any
# size](../python.md#tiles-of-any-size) that is a constant). Masked elements get the value that does not change the
# result: minus infinity, which is never the maximum, and whose exponential is 0.
#
# `tl.max` and `tl.sum` reduce a tile to a scalar. The compiler fuses everything between the load and the store into
# one loop nest and keeps the row in registers.


@tilework.jit
def softmax_rows(out_ptr, x_ptr, stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * stride + cols, mask=mask, other=-float("inf"))
    numerator = tl.exp(x - tl.max(x, axis=0))
    tl.store(
        out_ptr + row * stride + cols, numerator / tl.sum(numerator, axis=0), mask=mask
    )


def softmax(x: np.ndarray, out: np.ndarray) -> None:
    rows, cols = x.shape
    softmax_rows[(rows,)](out, x, cols, cols, BLOCK=tilework.next_power_of_2(cols))


rng = np.random.default_rng(0)
x = rng.standard_normal((1823, 781), dtype="f4")
out = np.empty_like(x)
softmax(x, out)
assert_close(out, softmax_numpy(x), atol=1e-6)
print(
    f"largest difference from NumPy: {np.abs(out - softmax_numpy(x)).max():.1e}, rows sum to {out.sum(1).mean():.6f}"
)

# %%
# ## How fast is it?
#
# Bytes count as if the matrix were read once and written once. An implementation that reads or writes it more often
# reaches fewer of these useful gigabytes per second. On a CPU with few cores the exponentials take noticeable time as
# well.


@perf_report(
    Benchmark(
        x_names=["columns"],
        x_vals=[2**power for power in range(8, 11 if QUICK else 15)],
        line_arg="library",
        line_vals=["tilework", "NumPy"],
        line_names=["tilework", "NumPy"],
        plot_name="Softmax of rows, float32",
        xlabel="columns",
        ylabel="useful GB/s (more is better)",
        x_log=True,
        args={"elements": 2**16 if QUICK else 2**21},
    )
)
def gigabytes_per_second(columns: int, library: str, elements: int) -> float:
    x = rng.standard_normal((elements // columns, columns), dtype="f4")
    out = np.empty_like(x)
    calls = {"tilework": lambda: softmax(x, out), "NumPy": lambda: softmax_numpy(x)}
    ms = do_bench(calls[library], warmup=5, rep=20, return_mode="min")
    return 8 * x.size / ms / 1e6


gigabytes_per_second.run(print_data=True, save_precision=1)

# %%
# ## On a GPU
#
# `softmax` above asks for `x.shape` and passes arrays on: it works with tensors of torch as well, on the GPU that
# they are on. Without a GPU this cell only says so.


@perf_report(
    Benchmark(
        x_names=["columns"],
        x_vals=[2**power for power in range(8, 15)],
        line_arg="library",
        line_vals=["tilework", "torch"],
        line_names=["tilework", "torch"],
        plot_name="Softmax of rows on the GPU, float32",
        xlabel="columns",
        ylabel="useful GB/s (more is better)",
        x_log=True,
        args={"elements": 2**26},
    )
)
def gpu_gigabytes_per_second(
    columns: int, library: str, elements: int, device: str = "cuda"
) -> float:
    import torch

    x = torch.randn((elements // columns, columns), device=device)
    out = torch.empty_like(x)
    calls = {"tilework": lambda: softmax(x, out), "torch": lambda: torch.softmax(x, 1)}
    calls["tilework"]()
    torch.testing.assert_close(out, torch.softmax(x, 1))
    ms = do_bench(calls[library], warmup=5, rep=20, return_mode="median")
    return 8 * elements / ms / 1e6


if tilework.runtime.driver.active.get_current_target().backend == "cpu":
    print("There is no GPU here.")
else:
    gpu_gigabytes_per_second.run(print_data=True, save_precision=1)

# %%
# ## Try it
#
# - Rows of 100 000 elements: the tile becomes 131072 elements long. A kernel for very long rows would go through a
#   row in pieces, with a running maximum and sum; [attention](06_attention.py) does just that.
# - `@tilework.jit(sanitize="strict")` and a load without `other=`: which line uses an element that was never loaded?
#
# Next: [matrix multiplication](03_matmul.py).
