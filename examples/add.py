"""Vector addition: the smallest kernel that has everything. Each program adds one block of `BLOCK` elements."""

import tilework
import tilework.language as tl
from examples.case import Case


@tilework.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


CASES = [
    Case(
        name="add",
        kernel=add,
        signature={"x_ptr": "*fp32", "y_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32"},
        constexprs={"BLOCK": 1024},
        grid=(4,),
        arguments=lambda rng: {
            "x_ptr": rng.standard_normal(3999, dtype="f4"),
            "y_ptr": rng.standard_normal(3999, dtype="f4"),
            "out_ptr": rng.standard_normal(3999, dtype="f4"),
            "n": 3999,
        },
        expected=lambda a: {"out_ptr": a["x_ptr"] + a["y_ptr"]},
        divisible=("x_ptr", "y_ptr", "out_ptr"),
    )
]
