"""Messages that contain Triton 3.6's own sentence where it refuses a kernel: programs and their tests quote it."""

from pathlib import Path

import numpy as np
import pytest

from tests.frontend.rows import arguments, kernel
from tests.frontend.run import error
from tilework.language.typing.promotion import IncompatibleTypeErrorImpl

HEADER = """
@tilework.jit
def two(x, y):
    return x + y
"""
BLOCK, HALF = "tl.zeros((16, 16), tl.float16)", "tl.zeros((16,), tl.float16)"
SENTENCES = {
    "two(n)": "missing a required argument: 'y'",
    "two(n, n, z=3)": "got an unexpected keyword argument 'z'",
    "two(n, n, n)": "too many positional arguments",
    "if tl.arange(0, 4) > 2:\n    pass": "Boolean value of Tensor with more than one value is ambiguous",
    "for i in range(0, 2.5 * n):\n    pass": "For loop bounds and step must all be ints, are (int32, fp32, int32)",
    "for i in tl.static_range(n):\n    pass": "int32[] used as tl.static_range start value is not a constexpr",
    "def f():\n    pass": "nested function definition is not supported.",
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
    "tl.make_block_ptr(p, (n,), (1,), (0,), (4, 4), (0,))": ("Expected shape/strides/offsets/block_shape to have "
                                                             "the same length"),
    "tl.advance(tl.make_block_ptr(p, (n,), (1,), (0,), (4,), (0,)), (4,))": (
        "The result of tl.advance is not being used. Note that tl.advance does not have any side effects."
        " To move the block pointer, you need to assign the result of tl.advance to a variable."
    ),
    "tl.device_print(n)": "int32[] is not string",
    "tl.device_print('é', n)": "é is not an ascii string",
    "tl.store(out, n + 2**70)": "Nonrepresentable integer 1180591620717411303424.",
    "tl.dot(tl.zeros((2, 16, 16), tl.float16), tl.zeros((4, 16, 16), tl.float16))": ("input and other must have "
                                                                                     "equal batch shapes"),
    f"tl.dot({BLOCK}.to(tl.uint8), {BLOCK}.to(tl.uint8))": "only int8 supported!",
    f"tl.dot_scaled({HALF}, None, 'fp16', {BLOCK}, None, 'fp16')": "Both inputs must be either 2D or 3D; (lhs: ",
    f"tl.dot_scaled({BLOCK}, None, 'fp16', {BLOCK}, None, 'fp16', lhs_k_pack=False)": (
        "only mxfp4 inputs can be packed along a dimension different than K"
    ),
    f"tl.dot_scaled({BLOCK}, None, 'e9m9', {BLOCK}, None, 'fp16')": "Invalid float format: e9m9.",
    "tl.reduce((tl.arange(0, 4), tl.arange(0, 8)), 0, two)": "all reduction inputs must have the same shape",
    f"tl.gather({HALF}, tl.arange(0, 16), 3)": "gather axis 3 must be < source rank (1)",
    f"tl.gather({BLOCK}, tl.zeros((16, 8), tl.int32), 0)": "index dim 1 must match the corresponding source dim",
    "tl.make_tensor_descriptor(p, [n, n], [n, 1], [4, 16]).gather(tl.arange(0, 8), 0)": (
        "descriptor block must have 1 row, but got"
    ),
    "tl.make_tensor_descriptor(p, [n, n], [n, 1], [16, 16]).atomic_max([0, 0], tl.zeros((16, 16), tl.float32))": (
        "Unsupported dtype"
    ),
    "tl.maximum(x, x, propagate_nan=3)": "Unexpected propagate_nan 3",
    "tl.store(p, None)": "cannot convert None of type <class 'NoneType'> to tensor",
    "min(n)": "min requires at least 2 values",
    "len(n)": "object of type 'tensor' has no len()",
    "y: tl.constexpr = 1\nif n > 0:\n    y = 2": ("initial value for `y` is of type constexpr[1], "
                                                  "but the then block redefines it as int32"),
}  # fmt: skip


@pytest.mark.parametrize("body", SENTENCES)
def test_sentence(tmp_path: Path, body: str) -> None:
    problem = error(kernel(tmp_path, body, HEADER), np.zeros(8, np.int32), *arguments(), C=4)
    assert SENTENCES[body] in str(problem)


def test_types_that_do_not_go_together_are_an_error_by_the_name_that_triton_has(tmp_path: Path) -> None:
    problem = error(kernel(tmp_path, "p & p"), np.zeros(8, np.int32), *arguments(), C=4)
    assert isinstance(problem.__cause__ or problem.__context__, IncompatibleTypeErrorImpl)
    assert "invalid operands of type pointer<fp32> and pointer<fp32>" in str(problem)
