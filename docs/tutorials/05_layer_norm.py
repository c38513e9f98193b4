"""# Layer norm with gradients

Layer normalisation forward and backward: reductions over rows, a reduction over columns that many programs share, and a
check of gradients by differences. At the end the kernels train a layer.

    python 05_layer_norm.py
"""

import sys

import numpy as np

import tilework
import tilework.language as tl
from tilework.testing import Benchmark, assert_close, do_bench, perf_report

QUICK = "--quick" in sys.argv

# %%
# ## Forward
#
# `y = (x - mean) * rstd * w + b` for each row, where `rstd` is one over the standard deviation. One program does one
# row, as in [softmax](02_fused_softmax.py), and stores `mean` and `rstd` for the backward pass. A layer has one
# width, which is a constant of its kernels: [a tile is as wide as a row](../python.md#tiles-of-any-size), whatever
# that is, and nothing is masked. (With tiles of the next power of two, elements past the end would have to be zero,
# and in `centred` zero *again* after the mean is subtracted, or they would count in the variance.)


@tilework.jit
def forward_kernel(x_ptr, w_ptr, b_ptr, y_ptr, mean_ptr, rstd_ptr, eps, COLS: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, COLS)
    x = tl.load(x_ptr + row * COLS + cols)
    mean = tl.sum(x, axis=0) / COLS
    centred = x - mean
    rstd = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / COLS + eps)
    y = centred * rstd * tl.load(w_ptr + cols) + tl.load(b_ptr + cols)
    tl.store(y_ptr + row * COLS + cols, y)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


# %%
# ## Backward
#
# With `xhat = (x - mean) * rstd` and the gradient `dy` of the result,
#
# - `dx = (w * dy - xhat * mean(xhat * w * dy) - mean(w * dy)) * rstd`, row by row,
# - `dw` is the sum of `dy * xhat` over all rows, and `db` the sum of `dy`.
#
# The sums over rows are shared by all programs. They could add with `tl.atomic_add`; here each program takes many
# rows, `program_id`, `program_id + PROGRAMS` and so on, sums what belongs to them in a tile of its own, and writes
# that as one row of a small matrix. A second kernel adds these rows up. No program waits for another, and results are
# the same every time.


@tilework.jit
def backward_kernel(
    x_ptr, w_ptr, dy_ptr, mean_ptr, rstd_ptr, dx_ptr, dw_ptr, db_ptr, n_rows,
    PROGRAMS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    cols = tl.arange(0, COLS)
    w = tl.load(w_ptr + cols)
    dw = tl.zeros((COLS,), tl.float32)
    db = tl.zeros((COLS,), tl.float32)
    for row in range(tl.program_id(0), n_rows, PROGRAMS):
        x, dy = [tl.load(rows + row * COLS + cols) for rows in (x_ptr, dy_ptr)]
        mean, rstd = [tl.load(statistic + row) for statistic in (mean_ptr, rstd_ptr)]
        xhat = (x - mean) * rstd
        wdy = w * dy
        dx = wdy - xhat * (tl.sum(xhat * wdy, axis=0) / COLS) - tl.sum(wdy, axis=0) / COLS
        tl.store(dx_ptr + row * COLS + cols, dx * rstd)
        dw += dy * xhat
        db += dy
    tl.store(dw_ptr + tl.program_id(0) * COLS + cols, dw)
    tl.store(db_ptr + tl.program_id(0) * COLS + cols, db)


@tilework.jit
def sum_rows(parts_ptr, out_ptr, n_cols, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    parts = tl.load(
        parts_ptr + tl.arange(0, ROWS)[:, None] * n_cols + cols[None, :],
        mask=cols[None, :] < n_cols,
        other=0.0,
    )
    tl.store(out_ptr + cols, tl.sum(parts, axis=0), mask=cols < n_cols)


# %%
# ## As a layer

PROGRAMS = 16


class LayerNorm:
    """`forward` keeps what `backward` needs."""

    def __init__(self, cols: int) -> None:
        self.w, self.b = np.ones(cols, "f4"), np.zeros(cols, "f4")

    def forward(self, x: np.ndarray) -> np.ndarray:
        rows, cols = x.shape
        self.x, y = x, np.empty_like(x)
        self.mean, self.rstd = np.empty(rows, "f4"), np.empty(rows, "f4")
        forward_kernel[(rows,)](x, self.w, self.b, y, self.mean, self.rstd, 1e-5, COLS=cols)
        return y

    def backward(self, dy: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rows, cols = dy.shape
        dx, dw, db = np.empty_like(dy), np.empty(cols, "f4"), np.empty(cols, "f4")
        parts = np.empty((2, PROGRAMS, cols), "f4")
        saved = (self.x, self.w, dy, self.mean, self.rstd)
        backward_kernel[(PROGRAMS,)](*saved, dx, *parts, rows, PROGRAMS=PROGRAMS, COLS=cols)
        for part, out in zip(parts, (dw, db), strict=True):
            sum_rows[(tilework.cdiv(cols, 256),)](part, out, cols, ROWS=PROGRAMS, BLOCK=256)
        return dx, dw, db


# %%
# ## Are the gradients right?
#
# There are two ways to know. One is the formula in NumPy, the other is the definition: change one element of `x` a
# little, and see by how much the loss (here the sum of `y * dy`, in float64) changes.


def normalise_numpy(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> np.ndarray:
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5) * w + b


rng = np.random.default_rng(0)
x, dy = rng.standard_normal((2, 50, 200), dtype="f4")
layer = LayerNorm(200)
layer.w, layer.b = rng.standard_normal((2, 200), dtype="f4")
assert_close(layer.forward(x), normalise_numpy(x, layer.w, layer.b), atol=1e-4)
dx, dw, db = layer.backward(dy)

xhat = normalise_numpy(x, np.float32(1), np.float32(0))
assert_close(dw, (dy * xhat).sum(0), atol=1e-4)
assert_close(db, dy.sum(0), atol=1e-4)

h, wide = 1e-4, x.astype("f8")
for row, col in ((0, 0), (17, 100), (49, 199)):
    change = np.zeros_like(wide)
    change[row, col] = h
    up, down = (
        np.sum(normalise_numpy(wide + sign * change, layer.w, layer.b) * dy)
        for sign in (1, -1)
    )
    print(
        f"dx[{row}, {col}]: kernel {dx[row, col]:+.5f}, by differences {(up - down) / (2 * h):+.5f}"
    )
    assert abs(dx[row, col] - (up - down) / (2 * h)) < 1e-3

# %%
# ## Training with it
#
# Here a layer learns the scale and the shift of another one, by gradient descent on the mean square of the
# difference.

target = LayerNorm(200)
target.w, target.b = 1 + rng.standard_normal((2, 200), dtype="f4")
student, wanted, losses = LayerNorm(200), target.forward(x), []
for _ in range(20 if QUICK else 60):
    difference = student.forward(x) - wanted
    losses.append(float(np.mean(difference**2)))
    _, dw, db = student.backward(2 * difference / len(x))
    student.w -= 0.1 * dw
    student.b -= 0.1 * db
print(f"loss: {losses[0]:.3f} at first, {losses[-1]:.2e} at the end")

# %%
# ## How fast is it?
#
# Bytes count as if everything were read and written once: 8 for each element forward, 12 backward.


def backward_numpy(
    x: np.ndarray, w: np.ndarray, dy: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    centred = x - x.mean(axis=1, keepdims=True)
    rstd = 1 / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5)
    xhat, wdy = centred * rstd, w * dy
    dx = (
        wdy
        - xhat * (xhat * wdy).mean(axis=1, keepdims=True)
        - wdy.mean(axis=1, keepdims=True)
    ) * rstd
    return dx, (dy * xhat).sum(0), dy.sum(0)


x, dy = rng.standard_normal((2, 64 if QUICK else 1024, 1024), dtype="f4")
layer = LayerNorm(1024)
assert_close(layer.forward(x), normalise_numpy(x, layer.w, layer.b), atol=1e-4)
assert_close(layer.backward(dy)[0], backward_numpy(x, layer.w, dy)[0], atol=1e-4)
calls = {
    ("forward", "tilework"): lambda: layer.forward(x),
    ("forward", "NumPy"): lambda: normalise_numpy(x, layer.w, layer.b),
    ("backward", "tilework"): lambda: layer.backward(dy),
    ("backward", "NumPy"): lambda: backward_numpy(x, layer.w, dy),
}


@perf_report(
    Benchmark(
        x_names=["direction"],
        x_vals=["forward", "backward"],
        line_arg="library",
        line_vals=["tilework", "NumPy"],
        line_names=["tilework", "NumPy"],
        plot_name=f"Layer norm, {x.shape[0]} rows of {x.shape[1]} float32",
        ylabel="useful GB/s (more is better)",
        args={},
    )
)
def gigabytes_per_second(direction: str, library: str) -> float:
    size = (8 if direction == "forward" else 12) * x.size
    ms = do_bench(calls[direction, library], warmup=5, rep=30, return_mode="min")
    return size / ms / 1e6


gigabytes_per_second.run(print_data=True, save_precision=1)

# %%
# ## Try it
#
# - `tl.atomic_add(dw_ptr + cols, dw)` instead of the partial sums: one kernel fewer, and results that differ in the
#   last bits from run to run, because additions come in any order.
# - With torch: put both launches into a `torch.autograd.Function`; tensors are passed to kernels just as arrays are.
#
# Next: [attention](06_attention.py).
