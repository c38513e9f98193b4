"""Creation, shapes and data movement: results must be equal bit by bit."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tilework.language as tl
from tests.differential.devices import FLOATS, FP8, INTS, NUMPY, Refused
from tests.differential.harness import agree, sample
from tests.differential.settings import few_examples, seeds, shapes
from tilework.language.function import jit

CODES = st.sampled_from(["u1", *INTS, *FLOATS, *FP8])


@jit
def creation(x, N: tl.constexpr, VALUE: tl.constexpr, TYPE: tl.constexpr):
    return tl.arange(0, N), tl.arange(3, 3 + N), tl.full((N, 2), VALUE, TYPE), tl.zeros([2, N], TYPE), tl.zeros_like(x)


@few_examples
@given(CODES, CODES, shapes(), st.sampled_from([1, 2, 16]), seeds)
def test_creation(code: str, target: str, shape: tuple[int, ...], n: int, seed: int) -> None:
    agree(creation, sample(code, shape, seed), params=(n, 0 if target in FP8 else 1, tl.str_to_ty(target)))


@jit
def filled_with_scalar(x, TYPE: tl.constexpr):
    return tl.full((4,), tl.sum(x, 0), TYPE), tl.full([], 3, TYPE), tl.full((2, 2), -1, TYPE)


@few_examples
@given(st.sampled_from(["i32", "i64", "fp32", "fp64"]), st.sampled_from([*INTS, *FLOATS]), seeds)
def test_full(code: str, target: str, seed: int) -> None:
    agree(filled_with_scalar, sample(code, (8,), seed, special=False), params=(tl.str_to_ty(target),), rtol=1e-2)


@jit
def broadcasting(a, b):
    left, right = tl.broadcast(a, b)
    return left, right, tl.broadcast_to(a, left.shape), a.broadcast_to(left.shape)


@few_examples
@given(CODES, shapes(2, 3), seeds)
def test_broadcast(code: str, shape: tuple[int, ...], seed: int) -> None:
    narrow = tuple(1 if seed >> axis & 1 else size for axis, size in enumerate(shape))
    agree(broadcasting, sample(code, narrow, seed), sample("i32", shape, seed))


@jit
def expansion(x):
    return (
        x[:, None],
        x[None, :],
        x[None, :, None],
        tl.expand_dims(x, -1),
        tl.expand_dims(x, (0, 2)),
        x.expand_dims([1, 2]),
    )


@jit
def scalar_expansion(x):
    s = tl.sum(x, 0)
    y = s[:, None] + tl.arange(0, 4)[None, :]
    return s[None], s[None, None], tl.expand_dims(s, 0), tl.expand_dims(5, (0, 1)), s[:, None], s[None, :], s[:], y


@few_examples
@given(CODES, st.sampled_from([1, 4, 16]), seeds)
def test_indexing_and_expand_dims(code: str, n: int, seed: int) -> None:
    agree(expansion, sample(code, (n,), seed))
    agree(scalar_expansion, sample("i32", (n,), seed))


@jit
def reshaping(x, SHAPE: tl.constexpr):
    y = tl.reshape(x, SHAPE)
    return y, tl.ravel(y), y.reshape(x.shape), tl.view(x, SHAPE) + 0 if False else y.ravel()


@few_examples
@given(CODES, st.sampled_from([((4, 4), (16,)), ((8,), (2, 2, 2)), ((2, 8), (4, 4)), ((1, 4), (2, 2))]), seeds)
def test_reshape(code: str, pair: tuple[Any, Any], seed: int) -> None:
    agree(reshaping, sample(code, pair[0], seed), params=(pair[1],))


@jit
def transposition(x):
    return tl.trans(x), x.trans(), x.T, tl.permute(x, 1, 0), tl.permute(x, (0, 1)), tl.trans(x, 1, 0)


@jit
def permutation(x, DIMS: tl.constexpr):
    return tl.permute(x, DIMS), x.permute(DIMS), tl.trans(x, DIMS), tl.trans(x)


@few_examples
@given(CODES, shapes(2, 2), st.permutations(range(3)), seeds)
def test_transposition(code: str, shape: tuple[int, ...], dims: list[int], seed: int) -> None:
    agree(transposition, sample(code, shape, seed))
    agree(permutation, sample(code, (2, *shape), seed), params=(tuple(dims),))


@jit
def joining(a, b):
    both = tl.join(a, b)
    left, right = tl.split(both)
    first, second = both.split()
    return both, left, right, first, second, tl.interleave(a, b)


@jit
def scalar_joining(a, b):
    pair = tl.join(tl.max(a, 0), tl.max(b, 0))
    left, right = tl.split(pair)
    return pair, left, right, tl.interleave(left, right)


@jit
def concatenation(a, b):
    return tl.sort(tl.cat(a, b, can_reorder=True))


@few_examples
@given(CODES, shapes(1, 3), seeds)
def test_join_split_interleave_cat(code: str, shape: tuple[int, ...], seed: int) -> None:
    agree(joining, sample(code, shape, seed), sample(code, shape, seed + 1))
    agree(scalar_joining, sample("i32", (4,), seed), sample("i32", (4,), seed + 1))
    agree(concatenation, sample("i32", (4,), seed), sample("i32", (4,), seed + 1))


@jit
def flipping(x, DIM: tl.constexpr):
    return tl.flip(x, DIM), x.flip(DIM), tl.flip(x)


@few_examples
@given(CODES.filter(lambda code: code != "u1"), shapes(1, 3), seeds)
def test_flip(code: str, shape: tuple[int, ...], seed: int) -> None:
    dim = seed % len(shape) - (len(shape) if seed & 1 else 0)
    values = sample(code, shape, seed)
    assert np.array_equal(bits(agree(flipping, values, params=(dim,))[0]), bits(np.flip(values, dim)))


def bits(x: Any) -> Any:
    return np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}")


@jit
def gathering(src, index, AXIS: tl.constexpr):
    return tl.gather(src, index, AXIS), src.gather(index, axis=AXIS)


@few_examples
@given(
    CODES,
    st.sampled_from([(0, (8,)), (1, (4, 8)), (0, (8, 2)), (-1, (2, 4))]),
    st.sampled_from(["i32", "i64", "u8"]),
    seeds,
)
def test_gather(code: str, case: tuple[int, tuple[int, ...]], index: str, seed: int) -> None:
    axis, shape = case
    wanted = tuple(16 if position == axis % len(shape) else size for position, size in enumerate(shape))
    offsets = np.random.default_rng(seed).integers(0, shape[axis], wanted).astype(NUMPY[index])
    src = sample(code, shape, seed)
    assert np.array_equal(
        bits(agree(gathering, src, offsets, params=(axis,))[0]),
        bits(np.take_along_axis(src, offsets.astype(int), axis)),
    )


@jit
def counting(x, mask, BINS: tl.constexpr):
    return tl.histogram(x, BINS), tl.histogram(x, BINS, mask=mask), x.histogram(BINS)


@few_examples
@given(st.sampled_from(INTS), st.sampled_from([1, 4, 16, 64]), seeds)
def test_histogram(code: str, bins: int, seed: int) -> None:
    """Values outside the bins are not counted."""
    values = np.random.default_rng(seed).integers(-bins, 2 * bins, 64).astype(NUMPY[code])
    counts = agree(counting, values, sample("u1", (64,), seed), params=(bins,))
    inside = values[(values >= 0) & (values < bins)]
    assert counts[0].tolist() == np.bincount(inside.astype(int), minlength=bins).tolist()


@pytest.mark.parametrize("bins", [128, 256, 512])
def test_histogram_of_bytes(bins: int) -> None:
    """A byte of 200 is 200, one of -1 is in no bin, also where the bins reach beyond the type."""
    values, mask = np.arange(0, 256, dtype=np.uint8), np.ones(256, np.bool_)
    counts = agree(counting, values, mask, params=(bins,))[0]
    assert counts.tolist() == [1] * min(bins, 256) + [0] * (bins - 256)
    assert agree(counting, values.view(np.int8), mask, params=(bins,))[0].tolist() == [1] * 128 + [0] * (bins - 128)


@jit
def items(x):
    return x.reshape([1, 1]).item(), tl.sum(x, 0).item(), x.numel, x.shape[0], tl.cdiv(x.shape[0], 3)


def test_items_and_sizes() -> None:
    agree(items, sample("fp32", (1,), 1))


@jit
def wrong_axis(x):
    return tl.expand_dims(x, 5)


@jit
def wrong_range(x):
    return tl.arange(3, 3)


@jit
def wrong_shape(x):
    return tl.reshape(x, (3, 3))


@jit
def wrong_broadcast(x):
    return x[:, None] + tl.arange(0, 4)[:, None]


@jit
def wrong_index(x):
    return x[x > 0]


@pytest.mark.parametrize(
    ("fn", "text"),
    [
        (wrong_axis, "invalid axis 5"),
        (wrong_range, "must be greater than the start"),
        (wrong_shape, "cannot change total number of elements"),
        (wrong_broadcast, "incompatible dimensions at index 0: 8 and 4"),
        (wrong_index, "unsupported tensor index"),
    ],
)
def test_both_refuse(fn: Any, text: str) -> None:
    with pytest.raises(Refused, match=text):
        agree(fn, sample("i32", (8,), 1))
