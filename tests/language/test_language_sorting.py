"""Sorting networks, compiled and evaluated."""

from typing import Any

import numpy as np
import pytest

import tilework.language as tl
from tests.language.library_run import NUMPY, apply, bits, refused, sample
from tilework import jit

DTYPES = ["u1", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "fp16", "bf16", "fp32", "fp64"]


@jit
def ascending(x: Any) -> Any:
    return tl.sort(x)


@jit
def descending(x: Any) -> Any:
    return x.sort(descending=True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_sort_keeps_the_dtype(dtype: str) -> None:
    x = sample(dtype, (2, 16))
    order = np.sort(x.astype(np.float64) if dtype == "bf16" else x, axis=1).astype(x.dtype)
    np.testing.assert_array_equal(apply(ascending, x, dtype, x.shape), order)
    np.testing.assert_array_equal(apply(descending, x, dtype, x.shape), order[:, ::-1])


@pytest.mark.parametrize("shape", [(1,), (2,), (1, 1), (1, 2), (4, 1), (8, 64), (2, 2, 4), (128,)])
def test_sort_of_any_size(shape: tuple[int, ...]) -> None:
    x = sample("fp32", shape)
    np.testing.assert_array_equal(apply(ascending, x, "fp32", shape), np.sort(x, axis=-1))
    np.testing.assert_array_equal(apply(descending, x, "fp32", shape), np.sort(x, axis=-1)[..., ::-1])


@pytest.mark.parametrize("dtype", ["fp16", "bf16", "fp32", "fp64"])
def test_sort_loses_no_element(dtype: str) -> None:
    x = np.array([0.0, -0.0, np.inf, np.nan, -np.inf, 1.5, -0.0, -2.0], NUMPY[dtype])
    result = apply(ascending, x, dtype, x.shape)
    assert sorted(bits(result).tolist()) == sorted(bits(x).tolist())
    expected = np.array([-np.inf, -2.0, -0.0, -0.0, 0.0, 1.5, np.inf, np.nan], NUMPY[dtype])
    np.testing.assert_array_equal(bits(result), bits(expected))


@jit
def top1(x: Any) -> Any:
    return tl.topk(x, 1)


@jit
def top4(x: Any) -> Any:
    return tl.topk(x, 4, dim=-1)


@jit
def top16(x: Any) -> Any:
    return tl.topk(x, 16)


@pytest.mark.parametrize(("fn", "k"), [(top1, 1), (top4, 4), (top16, 16)])
@pytest.mark.parametrize(("dtype", "result"), [("fp32", "fp32"), ("fp16", "fp32"), ("bf16", "fp32"), ("i8", "i32")])
def test_topk(fn: Any, k: int, dtype: str, result: str) -> None:
    x = sample(dtype, (2, 16))
    wanted = np.sort(x.astype(np.float64), axis=1)[:, ::-1][:, :k]
    got = apply(fn, x, dtype if k == 16 else result, (2, k))
    np.testing.assert_array_equal(got.astype(np.float64), wanted)


def test_topk_of_one_row() -> None:
    x = sample("i32", (8,))
    assert apply(top1, x, "i32", (1,)) == x.max()
    np.testing.assert_array_equal(apply(top4, x, "i32", (4,)), np.sort(x)[::-1][:4])


@jit
def merge(x: Any) -> Any:
    return tl.bitonic_merge(x)


@jit
def merge_down(x: Any) -> Any:
    return tl.bitonic_merge(x, descending=True)


def test_bitonic_merge_sorts_what_rises_and_falls() -> None:
    x = np.array([1, 4, 6, 7, 8, 5, 3, 2], np.int32)
    np.testing.assert_array_equal(apply(merge, x, "i32", x.shape), np.sort(x))
    np.testing.assert_array_equal(apply(merge_down, x, "i32", x.shape), np.sort(x)[::-1])


@jit
def flip_last(x: Any) -> Any:
    return tl.flip(x)


@jit
def flip0(x: Any) -> Any:
    return x.flip(0)


@jit
def flip1(x: Any) -> Any:
    return tl.flip(x, 1)


@jit
def flip_minus_2(x: Any) -> Any:
    return tl.flip(x, dim=-2)


@pytest.mark.parametrize(("fn", "axis"), [(flip_last, -1), (flip0, 0), (flip1, 1), (flip_minus_2, -2)])
@pytest.mark.parametrize("shape", [(2, 4, 8), (4, 1, 2)])
def test_flip(fn: Any, axis: int, shape: tuple[int, ...]) -> None:
    x = sample("i16", shape)
    np.testing.assert_array_equal(apply(fn, x, "i16", shape), np.flip(x, axis))


@pytest.mark.parametrize("dtype", ["u1", "fp16", "fp32"])
def test_flip_keeps_every_bit(dtype: str) -> None:
    x = sample(dtype, (8,))
    if dtype != "u1":
        x[:3] = np.inf, np.nan, -0.0
    np.testing.assert_array_equal(bits(apply(flip_last, x, dtype, x.shape)), bits(x[::-1].copy()))


def test_only_the_last_axis_is_sorted() -> None:
    @jit
    def sort_rows(x: Any) -> Any:
        return tl.sort(x, dim=0)

    with refused("only minor dimension"):
        apply(sort_rows, sample("i32", (2, 4)), "i32", (2, 4))
