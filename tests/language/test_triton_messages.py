"""Messages of Triton 3.7.1, as it gives them: ours begin with the same words, compiled and interpreted."""

from pathlib import Path

import numpy as np
import pytest

import tilework
from tests.frontend.rows import arguments, kernel
from tests.frontend.run import error, innermost

HEADER = """
@tilework.jit
def two(x, y):
    return x + y

@tilework.jit
def four(a, b, c, d):
    return a + c, b + d

class NT(NamedTuple):
    foo: tl.tensor
    bar: tl.constexpr = 3
"""
M = "m = tl.zeros((4, 8), tl.float32)\n"
CUBE = "t = tl.zeros((2, 4, 8), tl.float32)\n"
A, B = "a = tl.arange(0, 4)\n", "b = tl.arange(0, 8)\n"
MESSAGES = {
    "cat: ranks": (A + M + "tl.cat(a, m)", "tensors must have the same rank, got 1 and 2"),
    "cat: sizes": (A + B + "tl.cat(a, b)", "Cannot make_shape_compatible: incompatible dimensions at index 0: 4 and 8"),
    "cat: other sizes": (M + "tl.cat(m, tl.zeros((8, 8), tl.float32), dim=1)",
                         "tensor dims must match except in the concat dimension 1, got "),
    "cat: sizes of dim": (M + "tl.cat(m, tl.zeros((4, 16), tl.float32), dim=1)",
                          "Cannot make_shape_compatible: incompatible dimensions at index 1: 8 and 16"),
    "cat: dim": (M + "tl.cat(m, m, dim=2)", "invalid axis 2. Expected -2 <= axis < 2"),
    "cat: can_reorder": (A + M + "tl.cat(a, m, can_reorder=True)",
                         "shape not supported by cat. Expecting rank-1 inputs"),
    "cat of a number": (A + "tl.cat(a, 3)", "cat takes two blocks, got "),
    "permute: number of dims": (M + "tl.permute(m, 0, 1, 2)",
                                "permute dims must have the same length as input shape, got 2 and 3"),
    "permute": (M + "tl.permute(m, 0, 2)", "permute dims must be a permutation of 0, 1, ..., n-1, but were "),
    "T": (CUBE + "t.T", "permute dims must have the same length as input shape, got 3 and 2"),
    "trans": (A + "tl.trans(a)", "tl.trans invoked with a 0- or 1-dimensional tensor"),
    "to_tensor": ("tl.to_tensor('a')", "cannot convert a of type <class 'str'> to tensor"),
    "to_tensor of a large int": ("tl.to_tensor(2**64)", "Nonrepresentable integer 18446744073709551616."),
    "reduce: shapes": (A + M + "tl.reduce((m, a), 0, four)", "all reduction inputs must have the same shape"),
    "scan: shapes": (A + M + "tl.associative_scan((m, a), 0, four)", "all scan inputs must have the same shape"),
    "sort": (M + "tl.sort(m, dim=0)", "only minor dimension is currently supported"),
    "full": (A + "tl.full((4,), a, tl.int32)", "only accepts size-1 tensor"),
    "dot_scaled: out_dtype": (
        "s = tl.zeros((64, 2), tl.uint8)\nz = tl.zeros((64, 64), tl.uint8)\n"
        "tl.dot_scaled(z, s, 'e5m2', z, s, 'e5m2', out_dtype=tl.float16)",
        "Only float32 is supported for out_dtype at the moment"),
    "dot_scaled: scales": (
        "s = tl.zeros((64, 4), tl.uint8)\nz = tl.zeros((64, 64), tl.uint8)\n"
        "tl.dot_scaled(z, s, 'e5m2', z, None, 'e5m2')",
        "lhs_scale must be a tensor of shape [..., 64, 2]. Got ['64', '4']"),
    "descriptor: last stride": ("tl.make_tensor_descriptor(p, [n, n], [n, 2], [16, 16])",
                                "Tensor descriptor last dim must be 1 but got 2"),
    "a field": ("NT(n).baz", "'tuple' object has no attribute baz"),
}  # fmt: skip


@pytest.mark.parametrize("interpret", [False, True])
@pytest.mark.parametrize("row", MESSAGES)
def test_message(tmp_path: Path, row: str, interpret: bool) -> None:
    body, words = MESSAGES[row]
    fn, out = (
        kernel(tmp_path, body.rpartition("\n")[0] + "\nz = " + body.rpartition("\n")[2], HEADER),
        np.zeros(8, np.int32),
    )
    if interpret:
        with pytest.raises(Exception) as caught:
            tilework.jit(fn.fn, interpret=True)[(1,)](out, *arguments(), C=4)
        problem = innermost(caught.value)
    else:
        problem = innermost(error(fn, out, *arguments(), C=4))
    assert words in str(problem), problem
