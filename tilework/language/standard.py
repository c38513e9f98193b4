"""The library of the tile language, written in the tile language.

    tl.softmax(x)                       # max, exp, sum, divide
    tl.sort(x, descending=True)         # a sorting network

A function here is compiled into the kernels that call it, like any jit function of a user. Reductions and scans are
in `folds.py`, sorting networks in `sorting.py`; all have their name here too.
"""

# Kernel code follows the rules of kernels, not of Python: a `constexpr` may be None, and has its value's attributes.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportAttributeAccessIssue=false

from tilework.language import core
from tilework.language.folds import argmax, argmin, cumprod, cumsum, max, min, reduce_or, sum, xor_sum
from tilework.language.function import jit
from tilework.language.sorting import _log2 as _log2  # torch's kernels call it
from tilework.language.sorting import bitonic_merge, flip, sort, topk

__all__ = [
    "argmax",
    "argmin",
    "bitonic_merge",
    "cdiv",
    "cumprod",
    "cumsum",
    "flip",
    "interleave",
    "max",
    "min",
    "ravel",
    "reduce_or",
    "sigmoid",
    "softmax",
    "sort",
    "sum",
    "swizzle2d",
    "topk",
    "xor_sum",
    "zeros",
    "zeros_like",
]


@jit
def cdiv(x: core.tensor, div: core.tensor) -> core.tensor:
    """Return the number of blocks of size `div` that cover `x`: ``cdiv(10, 4)`` is 3.

    For integers of the running kernel that are not negative; `tilework.cdiv` is the same for the host.

    Example:
        assert call(tl.cdiv, np.array([8, 9, 10, 12]), 4).tolist() == [2, 3, 3, 3]
    """
    return (x + (div - 1)) // div


@jit
def sigmoid(x: core.tensor) -> core.tensor:
    """``1 / (1 + exp(-x))``, for fp32 and fp64.

    Example:
        x = np.array([0.0, 2.0], np.float32)
        assert_close(call(tl.sigmoid, x), 1 / (1 + np.exp(-x)), atol=1e-6)
    """
    return 1 / (1 + core.exp(-x))


@jit
def softmax(
    x: core.tensor, dim: core.constexpr = None, keep_dims: core.constexpr = False, ieee_rounding: core.constexpr = False
) -> core.tensor:
    """``exp(x) / sum(exp(x))`` along `dim` (0 if None), without overflow: the maximum is subtracted first.

    For a block of rank 2 and more pass ``keep_dims=True``, unless `dim` is 0.

    Example:
        x = np.array([[1.0, 2.0], [1000.0, 1000.0]], np.float32)
        rows = call(tl.softmax, x, 1, keep_dims=True)
        assert_close(rows, [[0.26894143, 0.7310586], [0.5, 0.5]], atol=1e-6)
    """
    axis: core.constexpr = 0 if dim is None else dim
    exponentials = core.exp(x - max(x, axis, keep_dims=keep_dims))
    return core.fdiv(exponentials, sum(exponentials, axis, keep_dims=keep_dims), ieee_rounding)


@jit
def ravel(x: core.tensor, can_reorder: core.constexpr = False) -> core.tensor:
    """All elements in one axis, in row-major order unless `can_reorder`.

    Example:
        assert call(tl.ravel, np.arange(8).reshape(2, 4)).tolist() == list(range(8))
    """
    return core.reshape(x, [x.numel], can_reorder=can_reorder)


@jit
def zeros(shape: core.tuple, dtype: core.constexpr) -> core.tensor:
    """A block of zeros: ``acc = tl.zeros((64, 64), tl.float32)``.

    Example:
        assert call(tl.zeros, (2, 2), tl.int32).tolist() == [[0, 0], [0, 0]]
    """
    return core.full(shape, 0, dtype)


@jit
def zeros_like(input: core.tensor) -> core.tensor:
    """A block of zeros with the shape and dtype of `input`.

    Example:
        zeros = call(tl.zeros_like, np.ones((2, 4), np.float16))
        assert zeros.shape == (2, 4) and zeros.dtype == np.float16 and not zeros.any()
    """
    return core.full(input.shape, 0, input.dtype)


@jit
def swizzle2d(
    i: core.tensor, j: core.tensor, size_i: core.tensor, size_j: core.tensor, size_g: core.tensor
) -> tuple[core.tensor, core.tensor]:
    """Renumber a size_i by size_j grid so that programs close in time work on `size_g` rows.

    Within a group of rows the order is column by column. The new ids of a 4 by 4 grid in groups of 2:

        0  2  4  6
        1  3  5  7
        8 10 12 14
        9 11 13 15

    Programs that run at the same time then share rows and columns of the operands of a dot, which remain in the cache.

    Example:
        i, j = np.divmod(np.arange(16), 4)  # row-major: program 2 would be at (0, 2)
        rows, columns = call(tl.swizzle2d, i, j, 4, 4, 2)
        assert list(zip(rows[:4].tolist(), columns[:4].tolist())) == [(0, 0), (1, 0), (0, 1), (1, 1)]
    """
    linear = i * size_j + j
    per_group = size_g * size_j
    first_row = linear // per_group * size_g
    rows = core.minimum(size_i - first_row, size_g)  # the last group may have fewer
    inside = linear % per_group
    return first_row + inside % rows, inside // rows


@jit
def interleave(a: core.tensor, b: core.tensor) -> core.tensor:
    """The elements of two blocks alternating along the last axis: ``a0 b0 a1 b1`` and so on.

    Example:
        assert call(tl.interleave, np.array([1, 2]), np.array([30, 40])).tolist() == [1, 30, 2, 40]
    """
    joined = core.join(a, b)
    if len(joined.shape) == 1:
        return joined
    else:
        return core.reshape(joined, joined.shape[:-2] + [2 * joined.shape[-2]])


for _function in (cdiv, sigmoid, softmax, ravel):
    core.tensor_method(_function)
