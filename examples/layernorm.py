"""Layer normalisation, forward and backward. Backward adds into the weight gradients with atomics.

A tile is as wide as a row, whatever that is: nothing is masked.
"""

import numpy as np

import tilework
import tilework.language as tl
from examples.case import Arrays, Case


@tilework.jit
def layernorm_forward(x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr, stride, eps, COLS: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, COLS)
    x = tl.load(x_ptr + row * stride + cols).to(tl.float32)
    mean = tl.sum(x, axis=0) / COLS
    centred = x - mean
    rstd = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / COLS + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    tl.store(y_ptr + row * stride + cols, centred * rstd * tl.load(w_ptr + cols) + tl.load(b_ptr + cols))


@tilework.jit
def layernorm_backward(dx_ptr, dy_ptr, dw_ptr, db_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, stride, COLS: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, COLS)
    x, dy = [tl.load(rows + row * stride + cols).to(tl.float32) for rows in (x_ptr, dy_ptr)]
    rstd = tl.load(rstd_ptr + row)
    xhat = (x - tl.load(mean_ptr + row)) * rstd
    wdy = tl.load(w_ptr + cols).to(tl.float32) * dy
    c1 = tl.sum(xhat * wdy, axis=0) / COLS
    c2 = tl.sum(wdy, axis=0) / COLS
    tl.store(dx_ptr + row * stride + cols, (wdy - (xhat * c1 + c2)) * rstd)
    tl.atomic_add(dw_ptr + cols, dy * xhat)
    tl.atomic_add(db_ptr + cols, dy)


ROWS, COLS, EPS = 6, 200, 1e-5


def draw(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape, dtype="f4")


def forward_inputs(rng: np.random.Generator) -> Arrays:
    return {
        "x_ptr": draw(rng, ROWS, COLS), "y_ptr": draw(rng, ROWS, COLS), "w_ptr": draw(rng, COLS),
        "b_ptr": draw(rng, COLS), "mean_ptr": draw(rng, ROWS), "rstd_ptr": draw(rng, ROWS),
        "stride": COLS, "eps": EPS,
    }  # fmt: skip


def forward_reference(a: Arrays) -> Arrays:
    x = a["x_ptr"].astype("f8")
    mean, rstd = x.mean(1), 1 / np.sqrt(x.var(1) + EPS)
    y = (x - mean[:, None]) * rstd[:, None] * a["w_ptr"] + a["b_ptr"]
    return {"y_ptr": y.astype("f4"), "mean_ptr": mean.astype("f4"), "rstd_ptr": rstd.astype("f4")}


def backward_inputs(rng: np.random.Generator) -> Arrays:
    x = draw(rng, ROWS, COLS)
    return {
        "dx_ptr": draw(rng, ROWS, COLS), "dy_ptr": draw(rng, ROWS, COLS),
        "dw_ptr": np.zeros(COLS, "f4"), "db_ptr": np.zeros(COLS, "f4"), "x_ptr": x, "w_ptr": draw(rng, COLS),
        "mean_ptr": x.mean(1), "rstd_ptr": 1 / np.sqrt(x.var(1) + np.float32(EPS)), "stride": COLS,
    }  # fmt: skip


def backward_reference(a: Arrays) -> Arrays:
    x, dy, w = (a[name].astype("f8") for name in ("x_ptr", "dy_ptr", "w_ptr"))
    rstd = a["rstd_ptr"][:, None].astype("f8")
    xhat = (x - a["mean_ptr"][:, None]) * rstd
    wdy = w * dy
    dx = (wdy - xhat * (xhat * wdy).mean(1, keepdims=True) - wdy.mean(1, keepdims=True)) * rstd
    return {name: value.astype("f4") for name, value in {
        "dx_ptr": dx, "dw_ptr": (dy * xhat).sum(0), "db_ptr": dy.sum(0)}.items()}  # fmt: skip


F = "*fp32"
CASES = [
    Case(
        name="layernorm_forward",
        kernel=layernorm_forward,
        signature={"x_ptr": F, "y_ptr": F, "w_ptr": F, "b_ptr": F, "mean_ptr": F, "rstd_ptr": F,
                   "stride": "i32", "eps": "fp32"},
        constexprs={"COLS": COLS},
        grid=(ROWS,),
        arguments=forward_inputs,
        expected=forward_reference,
        atol=1e-4,
        divisible=("x_ptr", "y_ptr", "w_ptr", "b_ptr"),
    ),
    Case(
        name="layernorm_backward",
        kernel=layernorm_backward,
        signature={"dx_ptr": F, "dy_ptr": F, "dw_ptr": F, "db_ptr": F, "x_ptr": F, "w_ptr": F, "mean_ptr": F,
                   "rstd_ptr": F, "stride": "i32"},
        constexprs={"COLS": COLS},
        grid=(ROWS,),
        arguments=backward_inputs,
        expected=backward_reference,
        atol=1e-4,
        divisible=("dx_ptr", "dy_ptr", "x_ptr"),
    ),
]  # fmt: skip
