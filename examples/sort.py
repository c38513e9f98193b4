"""A bitonic sorting network, written out: log2(n)(log2(n)+1)/2 compare-and-swap steps over whole rows."""

import numpy as np

import tilework
import tilework.language as tl
from examples.case import Case


@tilework.jit
def compare_and_swap(x, positions, distance, run):
    """Swap elements `distance` apart so that runs of length `run` become alternately ascending and descending."""
    partner = tl.gather(x, positions ^ distance, 0)
    ascending = (positions & run) == 0
    lower = (positions & distance) == 0
    return tl.where(ascending == lower, tl.minimum(x, partner), tl.maximum(x, partner))


@tilework.jit
def sort_rows(x_ptr, out_ptr, stride, LOG2: tl.constexpr):
    BLOCK: tl.constexpr = 1 << LOG2
    row = tl.program_id(0)
    positions = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + positions)
    for i in tl.static_range(LOG2):
        for j in tl.static_range(i, -1, -1):
            x = compare_and_swap(x, positions, 1 << j, 2 << i)
    tl.store(out_ptr + row * stride + positions, x)


CASES = [
    Case(
        name="sort",
        kernel=sort_rows,
        signature={"x_ptr": "*fp32", "out_ptr": "*fp32", "stride": "i32"},
        constexprs={"LOG2": 6},
        grid=(4,),
        arguments=lambda rng: {
            "x_ptr": rng.standard_normal((4, 64), dtype="f4"),
            "out_ptr": rng.standard_normal((4, 64), dtype="f4"),
            "stride": 64,
        },
        expected=lambda a: {"out_ptr": np.sort(a["x_ptr"], axis=1)},
        divisible=("x_ptr", "out_ptr", "stride"),
    )
]
