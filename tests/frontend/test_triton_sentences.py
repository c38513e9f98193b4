"""What Triton 3.6 says when it refuses a kernel stands in what we say: programs and their tests quote it."""

from pathlib import Path

import numpy as np
import pytest

from tests.frontend.rows import arguments, kernel
from tests.frontend.run import error

HEADER = """
@tilework.jit
def two(x, y):
    return x + y
"""
BLOCK, HALF = "tl.zeros((16, 16), tl.float16)", "tl.zeros((16,), tl.float16)"
SENTENCES = {
    "two(n)": "two() missing 1 required positional argument: 'y'",
    "two(n, n, z=3)": "two() got an unexpected keyword argument 'z'",
    "two(n, n, n)": "two() takes 2 positional arguments but 3 were given",
    "if tl.arange(0, 4) > 2:\n    pass": "Boolean value of Tensor with more than one value is ambiguous",
    "for i in range(0, 2.5 * n):\n    pass": "For loop bounds and step must all be ints, are (int32, fp32, int32)",
    "for i in tl.static_range(n):\n    pass": "int32[] used as tl.static_range start value is not a constexpr",
    "def f():\n    pass": "nested function definition is not supported.",
    "tl.cat(tl.arange(0, 4), tl.arange(0, 4))": "current implementation of `cat` always may reorder elements",
    f"tl.dot({BLOCK}, tl.zeros((32, 16), tl.float16))": "input and other must have equal reduction dimensions",
    f"tl.dot({BLOCK}, {HALF})": "input and other must have equal ranks >= 2",
    f"tl.dot({BLOCK}, {BLOCK}, tl.zeros((16, 32), tl.float32))": "accumulator shape is incompatible",
    f"tl.dot({BLOCK}.to(tl.int32), {BLOCK}.to(tl.int32))": "Unsupported lhs dtype int32",
    f"tl.dot_scaled({BLOCK}, None, 'e4m3', {BLOCK}, None, 'e4m3')": "Unexpected dtype for e4m3. Got fp16",
    "tl.atomic_add(p, 1, scope='warp')": "Memory semantic warp not supported",
    f"tl.gather({BLOCK}, tl.arange(0, 16), 0)": "source and index tensors must have the same rank",
    f"tl.gather({HALF}, {HALF}, 0)": "index must be an integer tensor",
    "tl.make_tensor_descriptor(p, [n, n], [n], [16, 16])": "Expected 2 strides but got 1",
    "tl.make_tensor_descriptor(p, [n, n], [n, 1], [16, 16]).load([0])": "expected 2 offsets, but got 1",
    "tl.make_block_ptr(p, (n,), (1,), (0,), (4, 4), (0,))": "Expected shape/strides/offsets/block_shape to have the same length",
    "tl.advance(tl.make_block_ptr(p, (n,), (1,), (0,), (4,), (0,)), (4,))": (
        "The result of tl.advance is not being used. Note that tl.advance does not have any side effects."
        " To move the block pointer, you need to assign the result of tl.advance to a variable."
    ),
    "tl.device_print(n)": "int32[] is not string",
    "tl.device_print('é', n)": "é is not an ascii string",
    "tl.store(out, n + 2**70)": "Nonrepresentable integer 1180591620717411303424.",
}  # fmt: skip


@pytest.mark.parametrize("body", SENTENCES)
def test_sentence(tmp_path: Path, body: str) -> None:
    problem = error(kernel(tmp_path, body, HEADER), np.zeros(8, np.int32), *arguments(), C=4)
    assert SENTENCES[body] in str(problem)
