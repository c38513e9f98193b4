"""# Fused softmax

Softmax of each row of a matrix, as one kernel: a row is read once, kept in registers, and written once. This
tutorial shows reductions, tiles that are longer than a row, and why it pays to *fuse* steps.

    python docs/tutorials/02_fused_softmax.py
"""

import sys

import chart
import numpy as np

import tilework
import tilework.language as tl
from tilework.testing import assert_close, do_bench

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
# One program does one row. The number of columns is known at run time only, and one kernel is to serve many of them,
# so `BLOCK` is the next power of two, and the mask excludes the rest ([a tile may have any
# size](../python.md#tiles-of-any-size) that is a constant). Masked elements get the value that does not change
# the result: minus infinity, which is no maximum, and whose exponential is 0.
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
# reaches fewer of these useful gigabytes per second. On a CPU with few cores the exponentials take their time as well.


def gigabytes_per_second(cols: int, elements: int) -> list[float]:
    x = rng.standard_normal((elements // cols, cols), dtype="f4")
    out = np.empty_like(x)
    calls = (lambda: softmax(x, out), lambda: softmax_numpy(x))
    return [
        8 * x.size / do_bench(call, warmup=5, rep=20, return_mode="min") / 1e6
        for call in calls
    ]


widths = [2**power for power in range(8, 11 if QUICK else 15)]
speeds = [gigabytes_per_second(cols, 2**16 if QUICK else 2**21) for cols in widths]
print(f"{'columns':>8}{'tilework':>10}{'NumPy':>10}   GB/s")
for cols, (ours, numpy) in zip(widths, speeds, strict=True):
    print(f"{cols:8}{ours:10.1f}{numpy:10.1f}")

chart.lines(
    "fused-softmax.svg",
    "Softmax of rows, float32",
    widths,
    dict(zip(["tilework", "NumPy"], zip(*speeds))),
    x_label="columns",
    y_label="useful GB/s (more is better)",
    x_log=True,
)

# %%
# ## Try it
#
# - Rows of 100 000 elements: the tile becomes 131072 elements long. A kernel for very long rows would walk over a row
#   in pieces with a running maximum and sum; [attention](06_attention.py) does just that.
# - `@tilework.jit(sanitize="strict")` and a load without `other=`: which line uses an element that was never loaded?
#
# Next: [matrix multiplication](03_matmul.py).
