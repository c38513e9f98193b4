"""Reductions, scans and small library functions, compiled and evaluated."""

from typing import Any

import numpy as np
import pytest

import tilework.language as tl
from tests.language.library_run import NUMPY, apply, refused, run, sample
from tilework import jit

ALL = ["u1", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "fp16", "bf16", "fp32", "fp64"]
EXTREMUM = {"u1": "i32", "i8": "i32", "u8": "i32", "i16": "i32", "u16": "i32", "fp16": "fp32", "bf16": "fp32"}
SUM = {"u1": "u32", "i8": "i32", "u8": "u32", "i16": "i32", "u16": "u32"}


@jit
def max1(x: Any) -> Any:
    return tl.max(x, 1)


@jit
def min_all(x: Any) -> Any:
    return x.min()


@pytest.mark.parametrize("dtype", ALL)
def test_max_and_min_are_at_least_32_bits(dtype: str) -> None:
    x = sample(dtype, (4, 8))
    result = EXTREMUM.get(dtype, dtype)
    np.testing.assert_array_equal(apply(max1, x, result, (4,)), x.max(1).astype(NUMPY[result]))
    assert apply(min_all, x, result) == x.min().astype(NUMPY[result])


def test_nan_counts_only_if_there_is_nothing_else() -> None:
    x = np.array([[1.0, np.nan, 3.0, 2.0], [np.nan] * 4], np.float32)
    np.testing.assert_array_equal(apply(max1, x, "fp32", (2,)), [3.0, np.nan])


@jit
def max_value(x: Any) -> Any:
    value, _ = tl.max(x, -1, return_indices=True)
    return value


@jit
def max_index(x: Any) -> Any:
    _, index = x.max(1, return_indices=True)
    return index


@jit
def argmax1(x: Any) -> Any:
    return tl.argmax(x, 1)


@jit
def argmin0_keep(x: Any) -> Any:
    return tl.argmin(x, axis=0, keep_dims=True)


@jit
def argmax_fast(x: Any) -> Any:
    return x.argmax(1, tie_break_left=False)


@pytest.mark.parametrize("dtype", ALL)
def test_indices_of_the_first_extremum(dtype: str) -> None:
    x = sample(dtype, (4, 16))
    key = x.astype(np.float32) if dtype == "bf16" else x
    value = "fp32" if dtype == "bf16" else dtype
    np.testing.assert_array_equal(apply(max_value, x, value, (4,)), key.max(1))
    np.testing.assert_array_equal(apply(max_index, x, "i32", (4,)), key.argmax(1))
    np.testing.assert_array_equal(apply(argmax1, x, "i32", (4,)), key.argmax(1))
    np.testing.assert_array_equal(apply(argmin0_keep, x, "i32", (1, 16)), key.argmin(0)[None])


def test_any_index_without_tie_break() -> None:
    x = np.array([[1, 5, 5, 2]], np.int32)
    assert apply(argmax_fast, x, "i32", (1,)) in (1, 2)


@pytest.mark.parametrize("shape", [(1, 1), (1, 2), (8, 1)])
def test_axes_of_size_one(shape: tuple[int, int]) -> None:
    x = sample("fp32", shape)
    np.testing.assert_array_equal(apply(argmax1, x, "i32", shape[:1]), x.argmax(1))
    np.testing.assert_array_equal(apply(max1, x, "fp32", shape[:1]), x.max(1))


@jit
def sum_all(x: Any) -> Any:
    return tl.sum(x)


@jit
def sum0_keep(x: Any) -> Any:
    return x.sum(0, keep_dims=True)


@jit
def sum_i8(x: Any) -> Any:
    return tl.sum(x, dtype=tl.int8)


@jit
def sum_i1(x: Any) -> Any:
    return tl.sum(x, dtype=tl.int1)


@pytest.mark.parametrize("dtype", ALL)
def test_sum_widens_small_integers(dtype: str) -> None:
    x = sample(dtype, (4, 8))
    result = SUM.get(dtype, dtype)
    wide = x.astype(NUMPY[result])
    np.testing.assert_array_equal(apply(sum0_keep, x, result, (1, 8)), wide.sum(0, dtype=wide.dtype, keepdims=True))
    assert apply(sum_all, x, result) == wide.sum(dtype=wide.dtype)


def test_sum_in_a_requested_dtype() -> None:
    x = np.array([100, 100, 1, 0], np.int32)
    assert apply(sum_i8, x, "i8") == np.int8(-55)
    assert apply(sum_i1, x, "u1") == True  # noqa: E712  (three nonzero elements, modulo 2)


@jit
def xor0(x: Any) -> Any:
    return tl.xor_sum(x, 0)


@jit
def or1(x: Any) -> Any:
    return x.reduce_or(1)


@pytest.mark.parametrize("dtype", ["u1", "i8", "i32", "u64"])
def test_bitwise_reductions_keep_the_dtype(dtype: str) -> None:
    x = sample(dtype, (4, 2))
    np.testing.assert_array_equal(apply(xor0, x, dtype, (2,)), np.bitwise_xor.reduce(x, 0))
    np.testing.assert_array_equal(apply(or1, x, dtype, (4,)), np.bitwise_or.reduce(x, 1))


@pytest.mark.parametrize(("fn", "name"), [(xor0, "xor_sum"), (or1, "reduce_or")])
def test_bitwise_reductions_refuse_floats(fn: Any, name: str) -> None:
    with refused(f"{name} only supported for integers"):
        apply(fn, sample("fp32", (4, 2)), "fp32", (2,))


@jit
def cumsum0(x: Any) -> Any:
    return tl.cumsum(x)


@jit
def cumsum1_reverse(x: Any) -> Any:
    return x.cumsum(1, reverse=True)


@jit
def cumprod_last(x: Any) -> Any:
    return tl.cumprod(x, -1)


@pytest.mark.parametrize("dtype", ALL)
def test_scans(dtype: str) -> None:
    x = sample(dtype, (4, 4))
    result = "fp32" if dtype == "bf16" else SUM.get(dtype, dtype)
    wide = x.astype(NUMPY[result])
    np.testing.assert_array_equal(apply(cumsum0, x, result, x.shape), wide.cumsum(0, dtype=wide.dtype))
    reverse = wide[:, ::-1].cumsum(1, dtype=wide.dtype)[:, ::-1]
    np.testing.assert_array_equal(apply(cumsum1_reverse, x, result, x.shape), reverse)
    if dtype not in ("u1", "fp16"):
        result = "fp32" if dtype == "bf16" else dtype
        wide = x.astype(NUMPY[result])
        np.testing.assert_array_equal(apply(cumprod_last, x, result, x.shape), wide.cumprod(1, dtype=wide.dtype))


@jit
def softmax1(x: Any) -> Any:
    return tl.softmax(x, dim=1, keep_dims=True)


@jit
def softmax0(x: Any) -> Any:
    return x.softmax()


def test_softmax() -> None:
    x = sample("fp32", (4, 8)) * 30
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(apply(softmax1, x, "fp32", x.shape), e / e.sum(1, keepdims=True), rtol=1e-5)
    e = np.exp(x - x.max(0))
    np.testing.assert_allclose(apply(softmax0, x, "fp32", x.shape), e / e.sum(0), rtol=1e-5)


@jit
def sigmoid(x: Any) -> Any:
    return x.sigmoid()


@jit
def raveled(x: Any) -> Any:
    return tl.ravel(x) + tl.zeros_like(tl.ravel(x)) + tl.zeros([x.numel], tl.float32)


@jit
def interleaved(x: Any) -> Any:
    return tl.interleave(x, -x)


@jit
def blocks_of_4(x: Any) -> Any:
    return tl.cdiv(x, 4)


def test_small_functions() -> None:
    x = sample("fp32", (2, 4))
    np.testing.assert_allclose(apply(sigmoid, x, "fp32", x.shape), 1 / (1 + np.exp(-x)), rtol=1e-5)
    np.testing.assert_array_equal(apply(raveled, x, "fp32", (8,)), x.ravel())
    np.testing.assert_array_equal(apply(interleaved, x, "fp32", (2, 8)), np.stack([x, 0 - x], -1).reshape(2, 8))
    n = np.arange(8, dtype=np.int32)
    np.testing.assert_array_equal(apply(blocks_of_4, n, "i32", (8,)), -(-n // 4))


@jit
def interleave_scalars(a: Any, b: Any, out: Any) -> None:
    tl.store(out + tl.arange(0, 2), tl.interleave(a, b))


def test_interleave_of_scalars() -> None:
    out = np.zeros(2, np.int32)
    run(interleave_scalars, {"a": "i32", "b": "i32", "out": "*i32"}, {}, [3, 4, out])
    assert out.tolist() == [3, 4]


@jit
def swizzle(out: Any, SI: tl.constexpr, SJ: tl.constexpr, SG: tl.constexpr) -> None:
    for i in tl.static_range(SI):
        for j in tl.static_range(SJ):
            new_i, new_j = tl.swizzle2d(i, j, SI, SJ, SG)
            tl.store(out + new_i * SJ + new_j, i * SJ + j)


def test_swizzle2d() -> None:
    out = np.full((5, 7), -1, np.int32)
    run(swizzle, {"out": "*i32"}, {"SI": 5, "SJ": 7, "SG": 3}, [out])
    expected = [
        [0, 3, 6, 9, 12, 15, 18],
        [1, 4, 7, 10, 13, 16, 19],
        [2, 5, 8, 11, 14, 17, 20],
        [21, 23, 25, 27, 29, 31, 33],
        [22, 24, 26, 28, 30, 32, 34],
    ]
    assert out.tolist() == expected
