"""Reductions, scans, sorting and maps (4.7 to 4.9, 4.14)."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilework.language as tl
from tests.differential.devices import FLOATS, HOSTS, INTS, NUMPY, Refused, gpu_of
from tests.differential.harness import agree, launch, sample
from tests.differential.settings import few_examples, seeds, shapes
from tilework.language.function import jit

ANY = st.sampled_from(["u1", *INTS, *FLOATS])
TOLERANCE = {"fp16": 1e-2, "bf16": 5e-2, "fp32": 1e-5, "fp64": 1e-12}


def tolerance(code: str) -> dict[str, Any]:
    """Sums may be done in any order, and round each time."""
    return {"rtol": TOLERANCE.get(code, 0.0), "atol": 4 * TOLERANCE.get(code, 0.0)}


@jit
def sums(x, AXIS: tl.constexpr):
    return tl.sum(x, AXIS), x.sum(AXIS, keep_dims=True), tl.sum(x, AXIS, dtype=tl.float32)


@jit
def total(x):
    return tl.sum(x), tl.sum(x, keep_dims=True), tl.max(x), tl.min(x)


@jit
def extrema(x, AXIS: tl.constexpr):
    return tl.max(x, AXIS), tl.min(x, AXIS), x.max(AXIS, keep_dims=True), x.min(AXIS)


@jit
def offsets(x, AXIS: tl.constexpr):
    return tl.argmax(x, AXIS), tl.argmin(x, AXIS), x.argmax(AXIS, keep_dims=True)


@jit
def values_and_places(x, AXIS: tl.constexpr):
    top, where = tl.max(x, AXIS, return_indices=True)
    low, index = tl.min(x, AXIS, return_indices=True, keep_dims=True)
    return top, where, low, index


@jit
def bits(x, AXIS: tl.constexpr):
    return tl.xor_sum(x, AXIS), tl.reduce_or(x, AXIS), x.xor_sum(AXIS, keep_dims=True), tl.xor_sum(x)


@few_examples
@given(ANY, shapes(), seeds)
def test_sum(code: str, shape: tuple[int, ...], seed: int) -> None:
    values = sample(code, shape, seed, special=False)
    agree(sums, values, params=(seed % len(shape),), **tolerance("fp32" if code not in TOLERANCE else code))
    agree(total, values, **tolerance(code))


@few_examples
@given(ANY, shapes(), seeds)
def test_max_and_min(code: str, shape: tuple[int, ...], seed: int) -> None:
    values = sample(code, shape, seed)
    agree(extrema, np.where(values == 0, np.ones_like(values), values), params=(seed % len(shape) - len(shape),))


@few_examples
@given(ANY, shapes(), seeds)
def test_argmax_and_argmin(code: str, shape: tuple[int, ...], seed: int) -> None:
    values = sample(code, shape, seed, special=False)
    agree(offsets, values, params=(seed % len(shape),))
    agree(values_and_places, values, params=(seed % len(shape),))


@jit
def loudest(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@jit
def quietest(a, b):
    return tl.minimum(a, b)


@jit
def with_nan(x, AXIS: tl.constexpr, SORTED: tl.constexpr):
    top, where = tl.max(x, AXIS, return_indices=True)
    low, index = tl.min(x, AXIS, return_indices=True)
    highest, _ = tl.max(x, AXIS, return_indices=True, return_indices_tie_break_left=False)
    lowest, _ = tl.min(x, AXIS, return_indices=True, return_indices_tie_break_left=False)
    best, worst = tl.max(x, AXIS), tl.min(x, AXIS)
    rows = tl.sort(x) if SORTED else x
    return top, where, low, index, tl.argmax(x, AXIS), tl.argmin(x, AXIS), highest, lowest, best, worst, rows


@jit
def folds_with_nan(x, AXIS: tl.constexpr, SORTED: tl.constexpr):
    rising, falling = tl.associative_scan(x, AXIS, loudest), tl.associative_scan(x, AXIS, quietest, reverse=True)
    return (
        tl.reduce(x, AXIS, loudest),
        rising,
        falling,
        tl.cumsum(x, AXIS),
        tl.sum(x, AXIS),
        tl.topk(x, 4) if SORTED else x,
    )


@pytest.mark.parametrize(
    ("code", "shape", "axis"), [("fp32", (8, 32), 1), ("fp16", (32, 8), 0), ("bf16", (4, 4, 8), 2), ("fp64", (128,), 0)]
)
def test_nan_in_every_reduction(code: str, shape: tuple[int, ...], axis: int) -> None:
    """NaN counts only if there is nothing else, whatever the order in which a target combines elements."""
    random = np.random.default_rng([*map(ord, code)])
    values = random.choice([-np.inf, -3, -2, -1, 1, 2, 3, np.inf], shape)
    share = np.linspace(0, 1.2, shape[0]).reshape(-1, *[1] * (len(shape) - 1))  # the last rows have nothing else
    values = np.where(random.random(shape) < (share if axis else share.T if len(shape) == 1 else 0.8), np.nan, values)
    block = values.astype(NUMPY[code])
    is_short = shape[-1] < 32  # networks of longer rows take long to compile
    top, where, low, index, *others = agree(with_nan, block, params=(axis, is_short))
    is_silent = np.isnan(values).all(axis, keepdims=True)
    for found, at, again, worst, best in (
        (top, where, others[0], -np.inf, np.max),
        (low, index, others[1], np.inf, np.min),
    ):
        wanted = best(np.where(np.isnan(values), worst, values), axis, keepdims=True)
        assert np.array_equal(at, np.argmax((values == wanted) | is_silent, axis)) and np.array_equal(at, again)
        wanted = np.where(is_silent, np.nan, wanted).squeeze(axis)
        assert np.array_equal(found.astype(np.float64), wanted, equal_nan=True)
    for found, wanted in zip(others[2:6], (top, low, top, low), strict=True):
        assert np.array_equal(found.astype(np.float64), wanted.astype(np.float64), equal_nan=True)
    rows = np.sort(values, axis=-1) if is_short else values
    assert np.array_equal(others[6].astype(np.float64), rows, equal_nan=True)
    if code != "bf16":
        agree(folds_with_nan, block, params=(axis, is_short))


@few_examples
@given(st.sampled_from(["u1", *INTS]), shapes(), seeds)
def test_xor_sum_and_reduce_or(code: str, shape: tuple[int, ...], seed: int) -> None:
    agree(bits, sample(code, shape, seed), params=(seed % len(shape),))


@jit
def later(a, b):
    return b


@jit
def linear(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@jit
def larger(a, b):
    if a > b:
        result = a
    else:
        result = b
    return result


@jit
def custom_reduce(x, AXIS: tl.constexpr):
    return tl.reduce(x, AXIS, later), tl.reduce((x,), AXIS, later)[0], x.reduce(AXIS, larger, keep_dims=True)


@jit
def pair_reduce(x, y, AXIS: tl.constexpr):
    return tl.reduce((x, y), AXIS, linear)


@jit
def custom_scan(x, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    return tl.associative_scan(x, AXIS, later, REVERSE), x.associative_scan(AXIS, larger, reverse=REVERSE)


@jit
def pair_scan(x, y, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    return tl.associative_scan((x, y), AXIS, linear, REVERSE)


@few_examples
@given(st.sampled_from([*INTS, *FLOATS]), shapes(), st.booleans(), seeds)
def test_combine_functions(code: str, shape: tuple[int, ...], reverse: bool, seed: int) -> None:
    """`later` is associative and not commutative; `larger` branches, so it runs element by element."""
    values, axis = sample(code, shape, seed, special=False), seed % len(shape)
    agree(custom_reduce, values, params=(axis,))
    agree(custom_scan, values, params=(axis, reverse))


@few_examples
@given(st.sampled_from(["i32", "u64", "i64"]), shapes(), st.booleans(), seeds)
def test_combine_functions_of_pairs(code: str, shape: tuple[int, ...], reverse: bool, seed: int) -> None:
    x, y, axis = sample(code, shape, seed), sample(code, shape, seed + 1), seed % len(shape)
    agree(pair_reduce, x, y, params=(axis,))
    agree(pair_scan, x, y, params=(axis, reverse))


@jit
def cumulative(x, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    return (
        tl.cumsum(x, AXIS, REVERSE),
        x.cumprod(AXIS, REVERSE),
        x.cumsum(AXIS, dtype=tl.int64) if x.dtype.is_int() else x,
    )


@few_examples
@given(ANY, shapes(), st.booleans(), seeds)
def test_cumsum_and_cumprod(code: str, shape: tuple[int, ...], reverse: bool, seed: int) -> None:
    values = sample(code, shape, seed, special=False)
    agree(cumulative, values, params=(seed % len(shape), reverse), **tolerance(code))


@jit
def sorting(x, K: tl.constexpr):
    return tl.sort(x), tl.sort(x, descending=True), x.sort(), tl.topk(x, K)


@jit
def merging(x):
    return tl.bitonic_merge(x), tl.bitonic_merge(x, descending=True)


@few_examples
@given(st.sampled_from([*INTS, *FLOATS]), st.sampled_from([(8,), (2, 4), (4,), (1,)]), seeds)
def test_sort_and_topk(code: str, shape: tuple[int, ...], seed: int) -> None:
    values = sample(code, shape, seed, special=False)
    rows = agree(sorting, values, params=(max(1, shape[-1] // 2),))[0]
    assert np.array_equal(rows, np.sort(values, axis=-1))
    rising = np.sort(values, axis=-1)
    half = shape[-1] // 2
    agree(merging, np.concatenate((rising[..., :half], rising[..., half:][..., ::-1]), axis=-1))


@jit
def collatz(n):
    steps = 0
    while n > 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps += 1
    return steps


@jit
def sign_and_size(a, b):
    if a < b:
        result = -1
    else:
        result = 1
    return result, a + b


@jit
def swapped(a0, a1, b0, b1):
    return b1, b0, a1 + b0, a0 + b1


@jit
def mapped(x):
    return tl.map_elementwise(collatz, x)


@jit
def mapped_pair(x, y):
    return tl.map_elementwise(sign_and_size, x, y)


@jit
def mapped_packed(x, y):
    return tl.map_elementwise(swapped, x, y, pack=2)


@few_examples
@given(seeds)
def test_map_elementwise(seed: int) -> None:
    small = np.random.default_rng(seed).integers(1, 30, 8).astype(np.int32)
    agree(mapped, small)
    agree(mapped_pair, sample("fp32", (8,), seed, special=False), sample("fp32", (8,), seed + 1, special=False))


def test_map_elementwise_packed() -> None:
    """The groups of elements are unspecified; the sum of all does not depend on it."""
    x = np.arange(8, dtype=np.int32)
    agree(mapped_packed, x, np.ones(8, np.int32))


@jit
def wrong_combine(a, b):
    return (a + b).to(tl.float64)


@jit
def refused(x):
    return tl.reduce(x, 0, wrong_combine)


@jit
def float_bits(x):
    return tl.xor_sum(x, 0)


@pytest.mark.parametrize(
    ("fn", "text"), [(refused, "must return the element types"), (float_bits, "only supported for integers")]
)
def test_both_refuse(fn: Any, text: str) -> None:
    with pytest.raises(Refused, match=text):
        agree(fn, sample("fp32", (8,), 1))


@jit
def higher(a, i, b, j):
    return tl.where(a > b, a, b), tl.where(a > b, i, j)


@jit
def last_above(a, b):
    return tl.where(b > 100, b, tl.maximum(a, b))


@jit
def sum_and_largest(a, b, c, d):
    return c + a, tl.maximum(b, d)


@jit
def by_rare_functions(x):
    return tl.reduce(x, 0, last_above), *tl.reduce((x, x), 0, sum_and_largest)


@pytest.mark.parametrize("size", [1024, 100])
def test_a_function_that_looks_commutative_for_small_numbers(size: int) -> None:
    """The last of the numbers above 100, or the largest: an associative function of the order."""
    x = np.random.default_rng(size).integers(0, 200, size).astype(np.int32)
    got = agree(by_rare_functions, x)
    np.testing.assert_array_equal([int(one.item()) for one in got], [x[x > 100][-1], x.sum(), x.max()])


@jit
def falling_columns(x, out, counts, M: tl.constexpr, N: tl.constexpr):
    row, column = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    tile, index = tl.load(x + row + column * M), row * N + column
    _, first = tl.reduce((tl.ravel(tile), tl.arange(0, M * N)), 0, higher)
    _, again = tl.reduce((tile, index), None, higher)
    tl.store(out, tl.argmax(tl.ravel(tile), 0))
    tl.store(out + 1, first)
    tl.store(out + 2, again)
    tl.store(out + 3, tl.reduce(tl.ravel(tile), 0, later))
    few = tl.arange(0, M * N) < M
    tl.store(counts + tl.arange(0, 8), tl.histogram(tl.ravel(tile) % 8, 8, mask=few))


@pytest.mark.parametrize("shape", [(32, 16), (6, 20)])
def test_reductions_keep_the_order_of_a_tile_that_lies_in_columns(shape: tuple[int, int]) -> None:
    """A GPU may lay out the columns first; which element of the rows is meant must not depend on that."""
    m, n = shape
    x = np.random.default_rng(3).permutation(m * n).astype(np.int32)
    tile = x.reshape(n, m).T.ravel()
    args = {"x": x, "out": np.zeros(4, np.int32), "counts": np.zeros(8, np.int32)}
    devices = HOSTS | {gpu: gpu_of([gpu]) for gpu in ("cuda:90", "hip:gfx942")}
    got = launch(falling_columns, args, {"M": m, "N": n}, devices=devices)
    np.testing.assert_array_equal(got["out"], [tile.argmax()] * 3 + [tile[-1]])
    np.testing.assert_array_equal(got["counts"], np.bincount(tile[:m] % 8, minlength=8))
