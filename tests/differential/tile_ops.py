"""Every op on tiles, as a row: a function of blocks, what NumPy makes of the same arrays, and what the blocks hold.

    row = ROWS["sort"]
    row.fn       the function, called in a kernel with the blocks and `row.params(shape)`
    row.numpy    the same of arrays
    row.codes    the types of the elements, one for each block

`test_differential_sizes.py` runs the rows for sizes that are no powers of two.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tilework.language as tl
from tests.differential.devices import Array
from tilework.language.function import jit

CE = tl.constexpr
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Row:
    """See the module."""

    fn: Any
    numpy: Callable[..., Any]
    codes: Sequence[str] = ("fp32",)
    params: Callable[[Shape], Sequence[Any]] = field(default=lambda shape: ())
    shapes: Callable[[Shape], Sequence[Shape]] | None = None  # of the blocks, where they are not all the tile's
    ranks: Sequence[int] = (1, 2)
    rtol: float = 0.0
    low: int = -9  # integers are generated from `low` to `high`
    high: int = 9
    is_special: bool = False  # with NaN, infinities and the extremes of integers
    most: int = 1024  # elements of a tile, where only some sizes are run; 0: none of this row


def last(shape: Shape) -> int:
    return shape[-1]


@jit
def ranges(x, N: CE):
    return x * 2 + tl.arange(0, N), tl.arange(5, 5 + N), tl.full((N,), 3, tl.int8), tl.zeros(x.shape, x.dtype)


@jit
def elements(x, y):
    return (
        x + y,
        tl.where(x < y, x, 7),
        x.to(tl.float32) * 0.5,
        tl.maximum(x, y),
        -x,
        (x & y) == 3,
        x // (tl.abs(y) + 1),
    )


@jit
def functions(x):
    return tl.exp(x), tl.sqrt(tl.abs(x)), tl.sigmoid(x), tl.fma(x, x, x), tl.floor(x), x.to(tl.float16)


@jit
def broadcasts(x, ROWS: CE):
    column = tl.arange(0, ROWS)[:, None]
    return x + column, tl.broadcast_to(x[..., None, :] if len(x.shape) == 1 else x, (ROWS, x.shape[-1]))


@jit
def larger(a, b):
    return a if a > b else b


@jit
def products_and_sums(a, b, c, d):
    return a * c, b + d


@jit
def affine(a, b, c, d):
    return a * c, b * c + d


@jit
def reductions(x, AXIS: CE):
    sums = tl.sum(x, AXIS), tl.max(x, AXIS), tl.min(x, AXIS, keep_dims=True), tl.xor_sum(x, AXIS)
    return (*sums, tl.reduce_or(x, AXIS), tl.argmax(x, AXIS), tl.argmin(x, AXIS), tl.reduce(x, AXIS, larger))


@jit
def whole(x):
    return tl.sum(x), tl.max(x), tl.min(x)


@jit
def float_reductions(x, AXIS: CE):
    return tl.max(x, AXIS), tl.argmin(x, AXIS), tl.min(x, AXIS)


@jit
def composed(x, y, AXIS: CE):
    return *tl.reduce((x, y), AXIS, products_and_sums), *tl.reduce((x, y), AXIS, affine)


@jit
def scans(x, AXIS: CE):
    return tl.cumsum(x, AXIS), tl.cumsum(x, AXIS, reverse=True), tl.cumprod(x, AXIS)


@jit
def composed_scans(x, y, AXIS: CE):
    left, right = tl.associative_scan((x, y), AXIS, affine)
    back, again = tl.associative_scan((x, y), AXIS, affine, reverse=True)
    return left, right, back, again


@jit
def sorts(x):
    return tl.sort(x), tl.sort(x, descending=True)


@jit
def sorts_and_reductions(x, AXIS: CE):
    """Each use of `v` wants something else in padded lanes."""
    v = x + 1
    up, total, bits = tl.sort(v), tl.sum(v, AXIS), tl.xor_sum(v, AXIS)
    return up, total, bits, tl.topk(v, 1), tl.min(v, AXIS), tl.cumsum(v, AXIS, reverse=True), tl.argmax(v, AXIS)


@jit
def best(x, K: CE):
    return tl.topk(x, K)


@jit
def merges(x):
    return tl.bitonic_merge(x), tl.bitonic_merge(x, descending=True)


@jit
def flips(x, AXIS: CE):
    return tl.flip(x, AXIS), tl.flip(x)


@jit
def reshapes(x, SHAPE: CE):
    y = tl.reshape(x, SHAPE)
    column = tl.unsqueeze(y, 1)
    return y, tl.ravel(y), tl.expand_dims(y, 1), tl.reshape(y * 2, x.shape), tl.squeeze(column, 1) + tl.to_tensor(1)


@jit
def permutes(x):
    return tl.trans(x), x.T + 1, tl.permute(tl.expand_dims(x, 1), (2, 0, 1))


@jit
def joins(x, y):
    pair = tl.join(x, y)
    left, right = tl.split(pair)
    return pair, left, right, tl.interleave(x, y)


@jit
def cats(x, y):
    return tl.sort(tl.cat(x, y, can_reorder=True)), tl.sum(tl.cat(x, y, can_reorder=True))


@jit
def cats_in_order(x, y, AXIS: CE):
    return tl.cat(x, y, dim=AXIS), tl.cat(y, x)


@jit
def gathers(x, index, AXIS: CE):
    return tl.gather(x, index % x.shape[AXIS], AXIS)


@jit
def counts(x, BINS: CE):
    return tl.histogram(x, BINS), tl.histogram(x, BINS, mask=x > 2)


@jit
def softmaxes(x, AXIS: CE):
    return tl.softmax(x, AXIS, keep_dims=True)


@jit
def randoms(x):
    return (*tl.randint4x(7, x), tl.rand(7, x))


@jit
def dots(x, y):
    return tl.dot(x, y), tl.dot(x, y, tl.full((x.shape[0], y.shape[1]), 2, tl.float32))


@jit
def scaled_dots(x, x_scale, y, y_scale):
    left, right = (x_scale + 124).to(tl.uint8), (y_scale + 124).to(tl.uint8)
    return tl.dot_scaled(x, left, "e4m3", y, right, "e4m3"), tl.dot_scaled(x, None, "e4m3", y, right, "e4m3")


def numpy_scaled_dots(x: Array, x_scale: Array, y: Array, y_scale: Array) -> tuple[Array, Array]:
    left, right = (np.exp2(f32(scale) - 3).repeat(32, -1) for scale in (x_scale, y_scale))
    y = f32(y) * right.T
    return (f32(x) * left) @ y, f32(x) @ y


@jit
def swapped(a, b):
    return b, a


@jit
def both(a, b):
    return a + b, a - b


@jit
def maps(x, y):
    return (*tl.map_elementwise(both, x, y), tl.map_elementwise(swapped, x + y, pack=2))


@jit
def indices(x, START: CE, STEP: CE):
    y = x
    y[..., START:] = 3
    return x[..., START], x[..., -1], x[..., START:], x[..., ::STEP], x[..., ::-1], y, x[..., None]


def argument(x: Array, AXIS: int, find: Any, other: Any) -> Array:
    """The place of the extreme; NaN loses against every number."""
    return find(np.where(np.isnan(x), other, x), AXIS).astype(np.int32)


def fold(step: Callable[[Any, Any], Any], parts: Sequence[Array], axis: int, reverse: bool = False) -> list[Any]:
    """All running combinations of `parts` along `axis`."""
    moved = [np.moveaxis(part, axis, 0)[:: -1 if reverse else 1] for part in parts]
    total: Any = [part[0] for part in moved]
    steps = [total]
    for position in range(1, len(moved[0])):
        total = step(total, [part[position] for part in moved])
        steps.append(total)
    done = [np.stack([one[i] for one in steps])[:: -1 if reverse else 1] for i in range(len(parts))]
    return [np.moveaxis(one, 0, axis) for one in done]


def numpy_affine(one: Any, two: Any) -> list[Any]:
    return [one[0] * two[0], one[1] * two[0] + two[1]]


def numpy_scans(x: Array, y: Array, AXIS: int) -> list[Any]:
    return [*fold(numpy_affine, [x, y], AXIS), *fold(numpy_affine, [x, y], AXIS, True)]


def numpy_sorted(x: Array) -> tuple[Array, Array]:
    up = np.sort(x, axis=-1)
    return up, up[..., ::-1]


def numpy_sorts_and_reductions(x: Array, AXIS: int) -> tuple[Array, ...]:
    v = x + np.int32(1)
    up, total, bits = np.sort(v, -1), v.sum(AXIS, dtype=np.int32), np.bitwise_xor.reduce(v, AXIS)
    back = np.flip(np.flip(v, AXIS).cumsum(AXIS, dtype=np.int32), AXIS)
    return up, total, bits, up[..., -1:], v.min(AXIS), back, v.argmax(AXIS).astype(np.int32)


def hills(x: Array) -> Array:
    """Each row rises and then falls."""
    up = np.sort(x, axis=-1)
    return np.concatenate([up[..., ::2], up[..., 1::2][..., ::-1]], -1)


def numpy_join(x: Array, y: Array) -> tuple[Array, ...]:
    pair = np.stack([x, y], -1)
    return pair, x, y, pair.reshape(*x.shape[:-1], -1)


def numpy_indices(x: Array, START: int, STEP: int) -> tuple[Array, ...]:
    y = x.copy()
    y[..., START:] = 3
    return x[..., START], x[..., -1], x[..., START:], x[..., ::STEP], x[..., ::-1], y, x[..., None]


def pairs_swapped(x: Array) -> Array:
    return x.reshape(-1, 2)[:, ::-1].reshape(x.shape)


def f32(x: Array) -> Array:
    return x.astype(np.float32)


EXTREME: dict[str, Any] = {"is_special": True}
AXIS: dict[str, Any] = {"params": lambda shape: (len(shape) - 1,)}
FIRST: dict[str, Any] = {"params": lambda shape: (0,)}
SMALL = ("i32",)

ROWS: dict[str, Row] = {
    "ranges": Row(
        ranges,
        lambda x, N: (
            x * 2 + np.arange(N, dtype=np.int32),
            np.arange(5, 5 + N, dtype=np.int32),
            np.full(N, 3, np.int8),
            x * 0,
        ),
        SMALL,
        lambda shape: (last(shape),),
    ),
    "elements": Row(
        elements,
        lambda x, y: (
            x + y,
            np.where(x < y, x, 7),
            f32(x) * np.float32(0.5),
            np.maximum(x, y),
            -x,
            (x & y) == 3,
            np.trunc(x / (abs(y) + 1)).astype(np.int32),
        ),
        ("i32", "i32"),
    ),
    "functions": Row(
        functions,
        lambda x: (
            *(np.exp(x), np.sqrt(abs(x)), 1 / (1 + np.exp(-x)), x * x + x),
            *(np.floor(x), x.astype(np.float16)),
        ),
        rtol=2e-6,
    ),
    "broadcasts": Row(
        broadcasts,
        lambda x, ROWS: (x + np.arange(ROWS, dtype=np.int32)[:, None], np.broadcast_to(x, (ROWS, last(x.shape)))),
        SMALL,
        lambda shape: (shape[0] if len(shape) > 1 else 3,),
    ),
    **{
        f"reductions{axis}": Row(
            reductions,
            lambda x, AXIS: (
                *(x.sum(AXIS, dtype=np.int32), x.max(AXIS), x.min(AXIS, keepdims=True)),
                *(np.bitwise_xor.reduce(x, AXIS), np.bitwise_or.reduce(x, AXIS)),
                *(x.argmax(AXIS).astype(np.int32), x.argmin(AXIS).astype(np.int32), x.max(AXIS)),
            ),
            SMALL,
            params=(AXIS if axis else FIRST)["params"],
            ranks=(2,) if axis == 0 else (1, 2),
            is_special=axis == 1,
        )
        for axis in (1, 0)
    },
    "whole": Row(whole, lambda x: (x.sum(dtype=np.int32), x.max(), x.min()), SMALL),
    "float reductions": Row(
        float_reductions,
        lambda x, AXIS: (
            np.fmax.reduce(x, AXIS),
            argument(x, AXIS, np.argmin, np.inf),
            np.fmin.reduce(x, AXIS),
        ),
        **AXIS,
        **EXTREME,
    ),
    "composed": Row(
        composed,
        lambda x, y, AXIS: (
            *(x.prod(AXIS, dtype=np.int32), y.sum(AXIS, dtype=np.int32)),
            *(part.take(-1, AXIS) for part in fold(numpy_affine, [x, y], AXIS)),
        ),
        ("i32", "i32"),
        **AXIS,
    ),
    "scans": Row(
        scans,
        lambda x, AXIS: (
            x.cumsum(AXIS, dtype=np.int32),
            np.flip(np.flip(x, AXIS).cumsum(AXIS, dtype=np.int32), AXIS),
            x.cumprod(AXIS, dtype=np.int32),
        ),
        SMALL,
        **AXIS,
    ),
    "scans0": Row(
        scans,
        lambda x, AXIS: (
            x.cumsum(AXIS, dtype=np.int32),
            np.flip(np.flip(x, AXIS).cumsum(AXIS, dtype=np.int32), AXIS),
            x.cumprod(AXIS, dtype=np.int32),
        ),
        SMALL,
        most=0,
        ranks=(2,),
        **FIRST,
    ),
    "composed scans": Row(composed_scans, numpy_scans, ("i32", "i32"), **AXIS),
    "sorts": Row(sorts, numpy_sorted, **EXTREME),
    **{f"sorts {code}": Row(sorts, numpy_sorted, (code,), most=0, **EXTREME) for code in ("i32", "u8", "fp16", "i64")},
    "sorts and reductions": Row(sorts_and_reductions, numpy_sorts_and_reductions, SMALL, **AXIS),
    "topk": Row(
        best, lambda x, K: numpy_sorted(x)[1][..., :K], SMALL, lambda shape: ((last(shape) + 2) // 3,), **EXTREME
    ),
    "topk all": Row(best, lambda x, K: numpy_sorted(x)[1], ("fp32",), lambda shape: (last(shape),), **EXTREME),
    "merges": Row(merges, numpy_sorted, SMALL),
    "flips": Row(flips, lambda x, AXIS: (np.flip(x, AXIS), x[..., ::-1]), ("fp16",), **FIRST, **EXTREME),
    "reshapes": Row(
        reshapes,
        lambda x, SHAPE: (x.reshape(SHAPE), x.ravel(), x.reshape(SHAPE)[:, None], x * 2, x.reshape(SHAPE) + 1),
        SMALL,
        lambda shape: ((last(shape), *shape[:-1]) if len(shape) > 1 else (1, last(shape)),),
    ),
    "permutes": Row(permutes, lambda x: (x.T, x.T + 1, np.transpose(x[:, None], (2, 0, 1))), SMALL, ranks=(2,)),
    "joins": Row(joins, numpy_join, ("fp32", "fp32"), **EXTREME),
    "cats": Row(
        cats,
        lambda x, y: (np.sort(np.concatenate([x, y])), np.concatenate([x, y]).sum(dtype=np.int32)),
        ("i32", "i32"),
        ranks=(1,),
    ),
    "cats in order": Row(
        cats_in_order,
        lambda x, y, AXIS: (np.concatenate([x, y], AXIS), np.concatenate([y, x])),
        ("fp16", "fp16"),
        **AXIS,
    ),
    "gathers": Row(
        gathers,
        lambda x, index, AXIS: np.take_along_axis(x, index % x.shape[AXIS], AXIS),
        ("fp32", "i32"),
        shapes=lambda shape: (shape, (*shape[:-1], last(shape) + 2)),
        low=0,
        high=1000,
        **AXIS,
    ),
    "counts": Row(
        counts,
        lambda x, BINS: tuple(
            np.bincount(part[part < BINS], minlength=BINS).astype(np.int32) for part in (x, x[x > 2])
        ),
        SMALL,
        lambda shape: (last(shape) // 2 + 1,),
        ranks=(1,),
        low=0,
        high=40,
    ),
    "softmaxes": Row(
        softmaxes,
        lambda x, AXIS: (lambda e: e / e.sum(AXIS, keepdims=True))(np.exp(x - x.max(AXIS, keepdims=True))),
        rtol=4e-6,
        **AXIS,
    ),
    "randoms": Row(randoms, lambda x: None, SMALL, low=0),
    "dots": Row(
        dots,
        lambda x, y: (f32(x) @ f32(y), f32(x) @ f32(y) + np.float32(2)),
        ("fp16", "fp16"),
        shapes=lambda shape: (shape, (last(shape), min(shape[0], 16) + 3)),
        ranks=(2,),
        rtol=1e-5,
    ),
    "dots f32": Row(
        dots,
        lambda x, y: (x @ y, x @ y + np.float32(2)),
        ("fp32", "fp32"),
        shapes=lambda shape: (shape, (last(shape), 5)),
        most=0,
        ranks=(2,),
        rtol=1e-5,
    ),
    "scaled dots": Row(
        scaled_dots,
        numpy_scaled_dots,
        ("fp8e4nv", "i32", "fp8e4nv", "i32"),
        shapes=lambda shape: ((shape[0], 96), (shape[0], 3), (96, last(shape)), (last(shape), 3)),
        ranks=(2,),
        rtol=1e-5,
        low=0,
        high=6,
        most=16,
    ),
    "maps": Row(
        maps,
        lambda x, y: (x + y, x - y, pairs_swapped(x + y)),
        ("i32", "i32"),
        shapes=lambda shape: ((*shape[:-1], 2 * last(shape)),) * 2,
    ),
    "indices": Row(indices, numpy_indices, SMALL, lambda shape: (last(shape) // 3, 2), is_special=True),
}


def inputs(row: Row, shape: Shape, seed: int) -> list[Array]:
    """Blocks for `row` on tiles of `shape`."""
    from tests.differential.harness import sample  # it imports this package's devices

    shapes = [shape] * len(row.codes) if row.shapes is None else row.shapes(shape)
    random = np.random.default_rng(seed)
    made: list[Array] = []
    for number, (code, own) in enumerate(zip(row.codes, shapes, strict=True)):
        if row.is_special:
            array = sample(code, own, seed + number)
            if array.dtype.kind not in "iub":
                array = np.where(np.isnan(array), np.abs(array), array)  # one NaN: the last of all
                if row.fn in (sorts, best):
                    array = array + np.zeros(1, array.dtype)  # one zero: NumPy sorts both as it likes
        elif code.startswith("fp"):
            array = (random.integers(-16, 16, own) / 8).astype(sample(code, (1,), 0).dtype)
        else:
            array = random.integers(row.low, row.high, own, endpoint=True).astype(sample(code, (1,), 0).dtype)
        made.append(array)
    return [hills(made[0])] if row.fn is merges else made
