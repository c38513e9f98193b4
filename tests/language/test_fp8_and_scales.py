"""Constants of 8-bit floats, and the scales of `dot_scaled` (3.7.1)."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import tilework
import tilework.compiler
import tilework.language as tl
from tests.frontend.rows import Refused, arguments, check, kernel
from tests.frontend.run import after_passes, ttir
from tests.language.both_ways import call_both
from tilework.ir.printer import print_module


@pytest.mark.parametrize("interpret", [False, True])
@pytest.mark.parametrize("dtype", [tl.float8e4nv, tl.float8e5, tl.float8e4b15])
@pytest.mark.parametrize("value", [0.0, 1.5, -0.375, 1])
def test_constants_of_8_bit_floats(dtype: tl.dtype, value: float, interpret: bool) -> None:
    filled = call_both(filled_as, interpret, value, dtype)
    np.testing.assert_array_equal(filled, np.full(4, value, np.float32))


@pytest.mark.parametrize("interpret", [False, True])
@pytest.mark.parametrize("value", [float("inf"), float("-inf")])
def test_infinities_of_8_bit_floats(value: float, interpret: bool) -> None:
    """A block of them is exact; a cast gives the largest number, as on GPUs."""
    np.testing.assert_array_equal(call_both(filled_as, interpret, value, tl.float8e5), np.full(4, value, np.float32))
    largest = np.full(4, 448.0 if value > 0 else -448.0, np.float32)
    np.testing.assert_array_equal(call_both(filled_as, interpret, value, tl.float8e4nv), largest)


@pytest.mark.parametrize(
    ("value", "dtype", "wanted"),
    [  # those of Triton 3.7.1, which folds the bitcast of -inf and cannot compile 1.3
        (1.5, "float8e4nv", "arith.constant dense<1.500000e+00> : tensor<8xf8E4M3FN>"),
        (448.0, "float8e4nv", "arith.constant dense<4.480000e+02> : tensor<8xf8E4M3FN>"),
        (-3, "float8e5", "arith.constant dense<-3.000000e+00> : tensor<8xf8E5M2>"),
        (2.0**-9, "float8e4nv", "arith.constant dense<1.953130e-03> : tensor<8xf8E4M3FN>"),
        (0.0, "float8e5", "arith.constant dense<0.000000e+00> : tensor<8xf8E5M2>"),
        (float("-inf"), "float8e5", "tt.bitcast %cst : tensor<8xi8> -> tensor<8xf8E5M2>"),
        (1.3, "float8e5", "tt.fp_to_fp %cst, rounding = rtne : f32 -> f8E5M2"),
    ],
)
def test_text_of_constants_of_8_bit_floats(tmp_path: Path, value: float, dtype: str, wanted: str) -> None:
    address = f"p.to(tl.pointer_type(tl.{dtype})) + tl.arange(0, 8)"
    fn = kernel(tmp_path, f"tl.store({address}, tl.full((8,), float('{value}'), tl.{dtype}))")
    module = after_passes(ttir(fn, np.zeros(8, np.int32), *arguments(), C=4))
    assert wanted in print_module(module)


@tilework.jit
def filled_as(value: tl.constexpr, dtype: tl.constexpr):
    return tl.full((4,), value, dtype).to(tl.float32)


BLOCKS = "x = tl.zeros((16, 64), tl.uint8)\ny = tl.zeros((64, 16), tl.uint8)\ns = tl.zeros((16, 2), tl.uint8)\n"
SCALES = {
    "[..., 16, 2]": (BLOCKS + "tl.dot_scaled(x, tl.zeros((16, 4), tl.uint8), 'e4m3', y, s, 'e4m3')", "lhs"),
    "[..., 16, 4]": (BLOCKS + "tl.dot_scaled(x, s, 'e2m1', tl.zeros((128, 16), tl.uint8), s, 'e4m3')", "lhs"),
    "[..., 16, 2] ": (BLOCKS + "tl.dot_scaled(x, s, 'e4m3', y, tl.zeros((2, 16), tl.uint8), 'e4m3')", "rhs"),
}  # fmt: skip


@pytest.mark.parametrize("wanted", SCALES)
def test_shapes_of_scales(tmp_path: Path, wanted: str) -> None:
    body, side = SCALES[wanted]
    check(tmp_path, body, Refused(AssertionError, f"{side}_scale must be a tensor of shape {wanted.strip()}. Got ['"))


@tilework.jit
def batched(a, x, y, s, t, out):
    rows, k, b = tl.arange(0, 16)[None, :, None], tl.arange(0, 32)[None, None, :], tl.arange(0, 2)[:, None, None]
    left = tl.load(x + b * 512 + rows * 32 + k)
    right = tl.load(y + b * 512 + k.permute(0, 2, 1) * 16 + rows.permute(0, 2, 1))
    scales = tl.load(s + b * 16 + rows), tl.load(t + b * 16 + rows)
    product = tl.dot_scaled(left, scales[0], "e5m2", right, scales[1], "e5m2")
    tl.store(out + b * 256 + rows * 16 + tl.arange(0, 16)[None, None, :], product)


@pytest.mark.parametrize("interpret", [False, True])
def test_batched_scaled_dot(interpret: bool) -> None:
    random = np.random.default_rng(0)
    x, y = (random.integers(0x38, 0x42, shape).astype(np.uint8) for shape in ((2, 16, 32), (2, 32, 16)))
    s, t = (random.integers(125, 130, (2, 16, 1)).astype(np.uint8) for _ in range(2))
    left, right = (bits.view(ml_dtypes.float8_e5m2).astype(np.float32) for bits in (x, y))
    left *= np.exp2(s.astype(np.float32) - 127)
    right *= np.exp2(t.reshape(2, 1, 16).astype(np.float32) - 127)
    out = np.zeros((2, 16, 16), np.float32)
    tilework.jit(batched.fn, interpret=interpret)[(1,)](0, x, y, s, t, out)
    np.testing.assert_allclose(out, left @ right, rtol=1e-6)
