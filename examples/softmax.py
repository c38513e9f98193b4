"""Softmax of each row, one program per row. The row is read once and stays in registers."""

import numpy as np

import tilework
import tilework.language as tl
from examples.case import Arrays, Case


@tilework.jit
def softmax(out_ptr, in_ptr, in_stride, out_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n_cols
    x = tl.load(in_ptr + row * in_stride + cols, mask=mask, other=-float("inf"))
    x = x - tl.max(x, axis=0)
    e = tl.exp(x)
    tl.store(out_ptr + row * out_stride + cols, e / tl.sum(e, axis=0), mask=mask)


def reference(a: Arrays) -> Arrays:
    x = a["in_ptr"].astype("f8")
    e = np.exp(x - x.max(1, keepdims=True))
    return {"out_ptr": (e / e.sum(1, keepdims=True)).astype("f4")}


CASES = [
    Case(
        name="softmax",
        kernel=softmax,
        signature={"out_ptr": "*fp32", "in_ptr": "*fp32", "in_stride": "i32", "out_stride": "i32", "n_cols": "i32"},
        constexprs={"BLOCK": 1024},
        grid=(8,),
        arguments=lambda rng: {
            "out_ptr": rng.standard_normal((8, 781), dtype="f4"),
            "in_ptr": rng.standard_normal((8, 781), dtype="f4"),
            "in_stride": 781,
            "out_stride": 781,
            "n_cols": 781,
        },
        expected=reference,
        divisible=("out_ptr", "in_ptr"),
    )
]
