"""Matrix products (4.5)."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilework.language as tl
from tests.differential.devices import FP8, Refused
from tests.differential.harness import agree, sample
from tests.differential.settings import few_examples, seeds
from tilework.language.function import jit

SIZES = st.sampled_from([(1, 1, 1), (4, 8, 16), (16, 16, 16), (2, 32, 8)])


@jit
def dot(a, b):
    return tl.dot(a, b)


@jit
def dot_into(a, b, acc, TYPE: tl.constexpr):
    return tl.dot(a, b, acc, out_dtype=TYPE)


@jit
def precise(a, b, PRECISION: tl.constexpr):
    return tl.dot(a, b, input_precision=PRECISION)


@few_examples
@given(st.sampled_from(["i8", "fp16", "bf16", "fp32", "fp64", *FP8]), SIZES, seeds)
def test_dot(code: str, size: tuple[int, int, int], seed: int) -> None:
    m, n, k = size
    a, b = sample(code, (m, k), seed, special=False), sample(code, (k, n), seed + 1, special=False)
    agree(dot, a, b, rtol=1e-5, atol=1e-3)
    batched = sample(code, (2, m, k), seed, special=False), sample(code, (2, k, n), seed + 1, special=False)
    agree(dot, *batched, rtol=1e-5, atol=1e-3)


@few_examples
@given(
    st.sampled_from([("i8", "i32"), ("fp16", "fp16"), ("fp16", "fp32"), ("fp32", "fp32"), ("fp64", "fp64")]),
    SIZES,
    seeds,
)
def test_accumulator(types: tuple[str, str], size: tuple[int, int, int], seed: int) -> None:
    m, n, k = size
    code, result = types
    a, b = sample(code, (m, k), seed, special=False), sample(code, (k, n), seed + 1, special=False)
    acc = sample(result, (m, n), seed + 2, special=False)
    agree(dot_into, a, b, acc, params=(tl.str_to_ty(result),), rtol=2e-3 if result == "fp16" else 1e-5, atol=1e-3)


def test_mixed_fp8() -> None:
    a, b = sample("fp8e5", (4, 16), 1, special=False), sample("fp8e4nv", (16, 4), 2, special=False)
    agree(dot, a, b, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("precision", ["tf32", "tf32x3", "ieee", "bf16x3", "bf16x6"])
def test_precisions(precision: str) -> None:
    a, b = sample("fp32", (8, 16), 1, special=False), sample("fp32", (16, 8), 2, special=False)
    lost = {"tf32": 2.0**-9, "bf16x3": 2.0**-14}.get(precision, 0.0)  # of each product
    gpu = (0.0, lost * float(np.max(np.abs(a) @ np.abs(b))))
    agree(precise, a, b, params=(precision,), rtol=1e-5, atol=1e-4, gpu=gpu)


@jit
def four_axes(a, b):
    return tl.dot(a, b)


def test_rank_four() -> None:
    agree(
        four_axes,
        sample("fp32", (2, 2, 4, 8), 1, special=False),
        sample("fp32", (2, 2, 8, 4), 2, special=False),
        rtol=1e-5,
        atol=1e-4,
    )


@jit
def scaled(a, a_scale, b, b_scale, acc, A: tl.constexpr, B: tl.constexpr):
    return tl.dot_scaled(a, a_scale, A, b, b_scale, B, acc)


@jit
def unscaled(a, b, A: tl.constexpr, B: tl.constexpr):
    return tl.dot_scaled(a, None, A, b, None, B)


@jit
def packed_along_m(a, a_scale, b):
    return tl.dot_scaled(a, a_scale, "e2m1", b, None, "e4m3", lhs_k_pack=False)


def operand(format: str, rows: int, k: int, seed: int) -> Any:
    """A block of `rows` along K in one of the formats, in the type that carries it."""
    random = np.random.default_rng(seed)
    if format == "e2m1":
        return random.integers(0, 256, (rows, k // 2)).astype(np.uint8)
    codes = {"e4m3": "fp8e4nv", "e5m2": "fp8e5", "bf16": "bf16", "fp16": "fp16"}
    return sample(codes[format], (rows, k), seed, special=False)


FORMATS = st.sampled_from(["e2m1", "e4m3", "e5m2", "bf16", "fp16"])


@few_examples
@given(FORMATS, FORMATS, seeds)
def test_dot_scaled(left: str, right: str, seed: int) -> None:
    m, n, k = 8, 4, 64
    random = np.random.default_rng(seed)
    a, b = operand(left, m, k, seed), np.ascontiguousarray(operand(right, n, k, seed + 1).T)
    scales = [random.integers(123, 131, (size, k // 32)).astype(np.uint8) for size in (m, n)]
    acc = sample("fp32", (m, n), seed, special=False)
    agree(scaled, a, scales[0], b, scales[1], acc, params=(left, right), rtol=1e-4, atol=1e-1)
    scales[0][0, 0] = 255
    result = agree(scaled, a, scales[0], b, scales[1], acc, params=(left, right), rtol=1e-4, atol=1e-1)[0]
    assert np.isnan(result[0]).all() and np.isfinite(result[1:]).all()
    agree(unscaled, a, b, params=(left, right), rtol=1e-4, atol=1e-1)


@jit
def scaled_left(a, a_scale, b, A: tl.constexpr, B: tl.constexpr):
    return tl.dot_scaled(a, a_scale, A, b, None, B)


@jit
def scaled_right(a, b, b_scale, A: tl.constexpr, B: tl.constexpr):
    return tl.dot_scaled(a, None, A, b, b_scale, B)


BESIDE = {"e2m1": "bf16", "e4m3": "bf16", "e5m2": "fp16", "bf16": "e4m3", "fp16": "e5m2"}


@pytest.mark.parametrize("format", BESIDE)
def test_dot_scaled_at_every_scale(format: str) -> None:
    """Rows with one number each, all scale bytes: 0 is 2**-127, 255 is NaN; NumPy says what comes out."""
    numbers = {"e2m1": 6.0, "e4m3": 64.0, "e5m2": 2.0**-14, "bf16": 1.5 * 2.0**20, "fp16": 2.0**-20}
    wide = "fp16" in (format, BESIDE[format])
    bytes = np.arange(256)
    exact = np.where(bytes == 255, np.nan, numbers[format] * 2.0 ** (bytes - 127.0))
    # f16 computes only what it can hold
    kept = bytes[~((np.abs(exact) < 2.0**-24) | (np.abs(exact) > 65504))] if wide else bytes
    kept = np.resize(kept, 256)
    codes = {
        "e4m3": ml_dtypes.float8_e4m3fn,
        "e5m2": ml_dtypes.float8_e5m2,
        "bf16": ml_dtypes.bfloat16,
        "fp16": np.float16,
    }
    a = np.zeros((256, 32), np.float32)
    a[:, 3] = numbers[format]
    a = (
        np.where(a[:, ::2] != 0, 7, np.where(a[:, 1::2] != 0, 7 << 4, 0)).astype(np.uint8)
        if format == "e2m1"
        else a.astype(codes[format])
    )
    b, scales = np.ones((32, 4), np.float32).astype(codes[BESIDE[format]]), kept.astype(np.uint8)[:, None]
    with np.errstate(over="ignore"):
        wanted = np.broadcast_to(exact[kept].astype(np.float32)[:, None], (256, 4))
    for bytes_as in (np.uint8, np.int8):  # the same bits
        given, transposed = scales.view(bytes_as), [np.ascontiguousarray(operand.T) for operand in (b, a)]
        got = agree(scaled_left, a, given, b, params=(format, BESIDE[format]))[0]
        np.testing.assert_array_equal(got, wanted)
        got = agree(scaled_right, *transposed, given, params=(BESIDE[format], format))[0]
        np.testing.assert_array_equal(got, wanted.T)


def test_dot_scaled_packed_along_m() -> None:
    random = np.random.default_rng(0)
    a = random.integers(0, 256, (4, 32)).astype(np.uint8)
    scale = random.integers(125, 129, (8, 1)).astype(np.uint8)
    agree(packed_along_m, a, scale, sample("fp8e4nv", (32, 4), 1, special=False), rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize(
    ("left", "right", "text"),
    [
        (sample("fp32", (4, 8), 1), sample("fp16", (8, 4), 1), "same dtype"),
        (sample("fp32", (4, 8), 1), sample("fp32", (4, 4), 1), "input and other must have equal reduction dimensions"),
        (sample("u8", (4, 8), 1), sample("u8", (8, 4), 1), "only int8 supported"),
    ],
)
def test_both_refuse(left: Any, right: Any, text: str) -> None:
    with pytest.raises(Refused, match=text):
        agree(dot, left, right)
