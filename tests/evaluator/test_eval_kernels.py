"""Whole kernels, in the TTIR that the reference compiler prints for them, against NumPy."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tilework.ir.parser import parse_module
from tilework.oracles.evaluator import EvaluationError, evaluate

FOLDER = Path(__file__).parent.parent / "ir" / "reference" / "sm_90"
RNG = np.random.default_rng(0)


def launch(name: str, args: list[Any], grid: tuple[int, ...]) -> None:
    module = parse_module((FOLDER / f"{name}.ttir").read_text(), f"{name}.ttir")
    evaluate(module, None, args, grid)


def normal(*shape: int, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    return RNG.normal(size=shape).astype(dtype)


def test_add() -> None:
    x, y, out = normal(1500), normal(1500), np.zeros(1500, np.float32)
    launch("add", [x, y, out, 1500], (2,))
    assert (out == x + y).all()


def test_softmax() -> None:
    x, out = normal(3, 1000), np.zeros((3, 1000), np.float32)
    launch("softmax", [out, x, 1000, 1000, 1000], (3,))
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(1, keepdims=True), rtol=1e-5)


def test_layernorm_in_bf16() -> None:
    x, w, b = (normal(*shape, dtype=ml_dtypes.bfloat16) for shape in ((2, 512), (512,), (512,)))
    out = np.zeros_like(x)
    launch("layernorm", [x, out, w, b, 512, 512, 1e-5], (2,))
    wide = x.astype(np.float64)
    centred = wide - wide.mean(1, keepdims=True)
    wanted = centred / np.sqrt(centred.var(1, keepdims=True) + 1e-5) * w.astype(float) + b.astype(float)
    np.testing.assert_allclose(out.astype(float), wanted, rtol=2e-2, atol=2e-2)


def test_transpose() -> None:
    x, out = normal(80, 96), np.zeros((96, 80), np.float32)
    launch("transpose", [x, out, 80, 96], (2, 2))
    assert (out == x.T).all()


def test_matmul_with_masked_k() -> None:
    a, b = normal(80, 48, dtype=np.float16), normal(48, 96, dtype=np.float16)
    out = np.zeros((80, 96), np.float16)
    launch("matmul_f16_small", [a, b, out, 80, 96, 48, 48, 96, 96], (4,))
    np.testing.assert_allclose(out, a.astype(float) @ b.astype(float), rtol=2e-3, atol=2e-3)


def test_matmul_with_descriptors() -> None:
    a, b = normal(144, 96, dtype=np.float16), normal(96, 272, dtype=np.float16)
    out = np.zeros((144, 272), np.float16)
    descriptors = [(array, array.shape, (array.shape[1], 1)) for array in (a, b, out)]
    launch("matmul_descriptor", [*descriptors, 144, 272, 96], (4,))
    np.testing.assert_allclose(out, a.astype(float) @ b.astype(float), rtol=2e-3, atol=1e-2)


def test_causal_attention() -> None:
    heads, length, dim = 2, 256, 128
    q, k, v = (normal(heads, length, dim, dtype=np.float16) for _ in range(3))
    out, scale = np.zeros_like(q), 1 / np.sqrt(dim)
    launch("attention_causal", [q, k, v, out, scale * np.log2(np.e), length * dim, dim, length], (2, heads))
    s = q.astype(float) @ k.astype(float).swapaxes(1, 2) * scale
    s = np.where(np.tri(length, dtype=bool), s, -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    np.testing.assert_allclose(out, p / p.sum(-1, keepdims=True) @ v.astype(float), rtol=5e-3, atol=5e-3)


def test_cumsum_adds_in_order() -> None:
    x, out = normal(2, 1000), np.zeros((2, 1000), np.float32)
    launch("cumsum", [x, out, 1000, 1000], (2,))
    assert (out == np.cumsum(x, axis=1)).all()


def test_sort() -> None:
    x, out = normal(4, 64), np.zeros((4, 64), np.float32)
    launch("sort", [x, out, 64], (4,))
    assert (out == np.sort(x, axis=1)).all()


def test_histogram_counts_duplicate_addresses() -> None:
    x, out = RNG.integers(0, 10, 2000).astype(np.int32), np.zeros(10, np.int32)
    launch("histogram", [x, out, 2000], (2,))
    assert out.tolist() == np.bincount(x, minlength=10).tolist()


def test_a_wrong_size_is_reported_with_argument_and_program() -> None:
    x, y, out = normal(1500), normal(1400), np.zeros(1500, np.float32)
    with pytest.raises(EvaluationError, match=r"argument 'y', which has 1400 elements.*program \(1, 0, 0\)") as caught:
        launch("add", [x, y, out, 1500], (2,))
    assert caught.value.op == "tt.load"
