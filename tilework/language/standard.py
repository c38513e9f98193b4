"""The library of the tile language, written in the tile language.

    tl.softmax(x)                       # max, exp, sum, divide
    tl.sort(x, descending=True)         # a sorting network

A function here is compiled into the kernels that call it, like any jit function of a user. Reductions and scans are
in `folds.py`, and have their name here too.
"""

from typing import Any

from tilework.language import core
from tilework.language.folds import (
    _elementwise_max,
    _extremum_dtype,
    _shape_along,
    _xor_combine,
    argmax,
    argmin,
    cumprod,
    cumsum,
    max,
    min,
    reduce_or,
    sum,
    xor_sum,
)
from tilework.language.function import constexpr_function, jit
from tilework.language.target_info import TARGET
from tilework.process.triton_version import follows

# ---- Sorting networks: `sort`, `topk`, `bitonic_merge` and `flip`, written in the tile language.
#
# Let n be a power of two. Reshaping the last axis from n to ``2 x 2 x ... x 2`` gives every bit of the index an axis of
# its own, and "the element whose index differs in bit b" is the other element along one axis of size 2:
#
#     partner = keys ^ xor_sum(keys, axis, keep_dims=True)          # a ^ (a ^ b) is b
#
# so all steps of a bitonic network are whole-block operations. For 8 elements, a run of 2**s elements is sorted by
# comparing along bits s-1, ..., 0, upwards or downwards by bit s of the index; doubling s gives the sorted block:
#
#     s = 1: bit 0      s = 2: bits 1, 0      s = 3: bits 2, 1, 0
#
# Floats are sorted through integer keys in the same order: the bits, with those of negative numbers below the sign
# inverted. Comparing keys is a total order (-NaN, -inf, ..., -0, 0, ..., inf, NaN), so no element is ever lost.
#
# A size that is no power of two is made one first, with elements that are sorted last: upwards the largest key there
# is, downwards the smallest, neither of which an element of the block can follow. They are cut off afterwards.
#
# Where a kernel is compiled, sorting runs is one op: a CPU makes loops over the steps of it, a GPU knows where elements
# are best in each step.


# Kernel code follows the rules of kernels, not of Python: a `constexpr` may be None, and has its value's attributes.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportAttributeAccessIssue=false


ALTERNATING = core.constexpr(2)  # the order of runs that are sorted alternately upwards (0) and downwards (1)


@constexpr_function
def _log2(size: int) -> int:
    """The number of index bits of a power of two: ``_log2(8)`` is 3."""
    return size.bit_length() - 1


@constexpr_function
def _next_power_of_2(size: int) -> int:
    """The smallest power of two that is not below `size`: ``_next_power_of_2(6)`` is 8."""
    return 1 << (size - 1).bit_length()


@constexpr_function
def _is_last(dim: int | None, rank: int) -> bool:
    return rank > 0 and (dim is None or dim in (-1, rank - 1))


@constexpr_function
def _hypercube(shape: list[int], dim: int) -> list[int]:
    """`shape` as [before, 2, 2, ..., 2, after]: one axis for each index bit of `dim`."""
    before, after = 1, 1
    for size in shape[:dim]:
        before *= size
    for size in shape[dim + 1 :]:
        after *= size
    return [before] + [2] * (shape[dim].bit_length() - 1) + [after]


@constexpr_function
def _rows(shape: list[int]) -> list[int]:
    """`shape` as [rows, 2, 2, ..., 2]; axis ``-1 - b`` is bit b of the index along the last dimension."""
    before = 1
    for size in shape[:-1]:
        before *= size
    return [before] + [2] * (shape[-1].bit_length() - 1)


@constexpr_function
def _with_last(shape: list[int], size: int) -> list[int]:
    return [*shape[:-1], size]


@constexpr_function
def _bits_dtype(dtype: core.dtype) -> core.dtype:
    """The integer dtype that holds the bits of `dtype`: itself for integers."""
    return dtype if dtype.is_int() else core.get_int_dtype(dtype.primitive_bitwidth, True)


@constexpr_function
def _is_cpu() -> bool:
    target = TARGET.get()
    return target is not None and target.backend == "cpu"


@constexpr_function
def _is_one_op(dtype: core.dtype, merges: bool) -> bool:
    """Return True if the compiler has an op for it: to sort, on every target; to merge, on the CPU."""
    return dtype.primitive_bitwidth >= 8 and (_is_cpu() if merges else TARGET.get() is not None)


@core.builtin
def _sort_by_one_op(
    keys: core.tensor, bits: core.constexpr, order: core.constexpr, merges: core.constexpr, _semantic: Any = None
) -> core.tensor:
    return _semantic.sorted_runs(keys, bits.value, int(order.value), merges.value)


@core.builtin
def _resized(x: core.tensor, size: int | core.constexpr, _semantic: Any = None) -> core.tensor:
    """`size` elements along the last axis; new ones are undefined."""
    return _semantic.resized(x, _semantic.checked_shape((*x.type.sizes[:-1], int(size))))


@jit
def _padded(keys: core.tensor, descending: core.constexpr) -> core.tensor:
    """A power of two of keys along the last axis, the new ones such that they are sorted last."""
    size: core.constexpr = _next_power_of_2(keys.shape[-1])
    rank: core.constexpr = len(keys.shape)
    fill: core.constexpr = keys.dtype.get_int_min_value() if descending else keys.dtype.get_int_max_value()
    inside = core.reshape(core.arange(0, size) < keys.shape[-1], _shape_along(-1, rank, size))
    last = core.full(_shape_along(-1, rank, 1), fill, keys.dtype)
    return core.where(inside, _resized(keys, size), last)


@jit
def _partner(bits: core.tensor, axis: core.constexpr) -> core.tensor:
    """Return for each element the other one along an axis of size 2."""
    return bits ^ core.reduce(bits, axis, _xor_combine, keep_dims=True)


@jit
def _ordered(bits: core.tensor) -> core.tensor:
    """Bits of floats to integers in the same order, and back."""
    width: core.constexpr = bits.dtype.primitive_bitwidth
    magnitude: core.constexpr = bits.dtype.get_int_max_value()
    return bits ^ ((bits >> (width - 1)) & magnitude)


@jit
def _to_keys(x: core.tensor) -> core.tensor:
    """Integers in the order of the elements of `x`."""
    if x.dtype.is_floating():
        return _ordered(x.to(_bits_dtype(x.dtype), bitcast=True))
    else:
        return x


@jit
def _from_keys(keys: core.tensor, dtype: core.constexpr) -> core.tensor:
    """The inverse of `_to_keys`."""
    if dtype.is_floating():
        return _ordered(keys).to(dtype, bitcast=True)
    else:
        return keys


@jit
def _largest_first(keys: core.tensor, descending: core.constexpr) -> core.tensor:
    """Keys whose descending order is that of `keys`, or their ascending order; its own inverse."""
    if descending:
        return keys
    else:
        return ~keys


@jit
def _index_bit(bit: core.constexpr, rank: core.constexpr) -> core.tensor:
    """Bit `bit` of the index, 0 or 1, in a shape that broadcasts with a hypercube of `rank`."""
    return core.reshape(core.arange(0, 2), _shape_along(-1 - bit, rank, 2))


@jit
def _compare_exchange(keys: core.tensor, larger_first: core.tensor, bit: core.constexpr) -> core.tensor:
    """Order the pairs that differ in index bit `bit`: smaller first, or larger first where that is true."""
    partner = _partner(keys, len(keys.shape) - 1 - bit)
    wants_larger = _index_bit(bit, len(keys.shape)) != larger_first
    return core.where(wants_larger, core.maximum(keys, partner), core.minimum(keys, partner))


@jit
def _merge(keys: core.tensor, order: core.constexpr, bits: core.constexpr) -> core.tensor:
    """Sort each aligned run of ``2**bits`` elements that is bitonic (it rises and then falls, or the reverse)."""
    if _is_one_op(keys.dtype, True):
        return _sort_by_one_op(keys, bits, order, True)
    else:
        larger_first = _index_bit(bits, len(keys.shape)) if order == ALTERNATING else order
        for done in core.static_range(bits):
            keys = _compare_exchange(keys, larger_first, bits - 1 - done)
        return keys


@jit
def _sort_runs(keys: core.tensor, order: core.constexpr, bits: core.constexpr) -> core.tensor:
    """Sort each aligned run of ``2**bits`` elements; shorter ones alternately upwards and downwards, so that pairs are
    bitonic."""
    if _is_one_op(keys.dtype, False):
        return _sort_by_one_op(keys, bits, order, False)
    else:
        keys = core.reshape(keys, _rows(keys.shape))
        for stage in core.static_range(1, bits):
            keys = _merge(keys, ALTERNATING, stage)
        return _merge(keys, order, bits)


@jit
def sort(x: core.tensor, dim: core.constexpr = None, descending: core.constexpr = False) -> core.tensor:
    """Sort along the last axis: ``tl.sort(x, descending=True)``. NaN counts as larger than every number.

    `dim` is None or the last axis; to sort along another axis, `permute` the block first. Only values are sorted; to
    find out where they came from, put the index into the low bits of the key.

    Example:
        x = np.array([[3, 1, 2, 0], [5, 7, 6, 4]])
        assert call(tl.sort, x).tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]
        assert call(tl.sort, x, descending=True)[1].tolist() == [7, 6, 5, 4]
    """
    core.static_assert(_is_last(dim, len(x.shape)), "only minor dimension is currently supported")
    if x.shape[-1] == _next_power_of_2(x.shape[-1]):
        keys = _sort_runs(_to_keys(x), descending, _log2(x.shape[-1]))
        return _from_keys(core.reshape(keys, x.shape), x.dtype)
    else:
        wide = _padded(_to_keys(x), descending)
        keys = core.reshape(_sort_runs(wide, descending, _log2(wide.shape[-1])), wide.shape)
        return _from_keys(_resized(keys, x.shape[-1]), x.dtype)


@jit
def bitonic_merge(x: core.tensor, dim: core.constexpr = None, descending: core.constexpr = False) -> core.tensor:
    """Sort along the last axis, along which the elements first rise and then fall, or the reverse.

    This is one step of `sort`, and if the size is a power of two, much cheaper than all of it. `dim` is None or the
    last axis.

    Example:
        assert call(tl.bitonic_merge, np.array([1, 4, 3, 2])).tolist() == [1, 2, 3, 4]
    """
    core.static_assert(_is_last(dim, len(x.shape)), "only minor dimension is currently supported")
    if x.shape[-1] == _next_power_of_2(x.shape[-1]):
        keys = _merge(core.reshape(_to_keys(x), _rows(x.shape)), descending, _log2(x.shape[-1]))
        return _from_keys(core.reshape(keys, x.shape), x.dtype)
    else:  # elements behind the last would make it rise, fall and rise
        return sort(x, None, descending)


@jit
def topk(
    x: core.tensor, k: core.constexpr, dim: core.constexpr = None, descending: core.constexpr = True
) -> core.tensor:
    """The `k` largest elements along the last axis, the largest first: ``tl.topk(x, 8)``; the smallest ones if not
    `descending`.

    If this leaves elements out, a dtype of 8 or 16 bits becomes int32 or fp32. `dim` is None or the last axis.

    Example:
        x = np.array([3, 1, 7, 5, 0, 2, 6, 4])
        assert call(tl.topk, x, 2).tolist() == [7, 6]
        assert call(tl.topk, x, 2, descending=False).tolist() == [0, 1]
    """
    core.static_assert(_is_last(dim, len(x.shape)), "only minor dimension is currently supported")
    core.static_assert(k > 0 and k <= x.shape[-1], "k must be at least 1, not above the size of the dimension")
    bits: core.constexpr = _log2(_next_power_of_2(x.shape[-1]))
    kept: core.constexpr = _log2(_next_power_of_2(k))
    if k == x.shape[-1]:
        return sort(x, None, descending)
    elif kept == bits:
        return _resized(sort(x, None, descending), k).to(_extremum_dtype(x.dtype))
    else:
        keys = _largest_first(_to_keys(x), descending)
        keys = keys if x.shape[-1] == 2**bits else _padded(keys, True)
        shape: core.constexpr = keys.shape
        keys = core.reshape(_sort_runs(keys, ALTERNATING, kept), _rows(shape))
        for dropped in core.static_range(bits - kept):
            # of two runs in opposite order, the larger of each pair are the k largest, and bitonic
            keys = core.reduce(keys, bits - dropped - kept, _elementwise_max)
            keys = _merge(keys, True if dropped + 1 == bits - kept else ALTERNATING, kept)
        keys = core.reshape(keys, _with_last(shape, 2**kept))
        keys = _largest_first(keys if k == 2**kept else _resized(keys, k), descending)
        return _from_keys(keys, x.dtype).to(_extremum_dtype(x.dtype))


@constexpr_function
def _flip_dim(dim: int | None, rank: int) -> int:
    dim = -1 if dim is None else dim
    return dim + rank if dim < 0 else dim


@jit
def flip(x: core.tensor, dim: core.constexpr = None) -> core.tensor:
    """Reverse the elements along `dim` (the last one if None).

    Example:
        x = np.arange(8).reshape(2, 4)
        assert_close(call(tl.flip, x), x[:, ::-1])
        assert_close(call(tl.flip, x, 0), x[::-1])
    """
    axis: core.constexpr = _flip_dim(dim, len(x.shape))
    core.static_assert(axis >= 0 and axis < len(x.shape), "flip: dim is out of range")
    if _is_cpu() or x.shape[axis] != _next_power_of_2(x.shape[axis]):
        size: core.constexpr = x.shape[axis]
        index = core.reshape(size - 1 - core.arange(0, size), _shape_along(axis - len(x.shape), len(x.shape), size))
        return core.gather(x, core.broadcast_to(index, x.shape), axis)
    else:
        bits = core.reshape(core.cast(x, _bits_dtype(x.dtype), bitcast=True), _hypercube(x.shape, axis))
        for bit in core.static_range(_log2(x.shape[axis])):
            bits = _partner(bits, bit + 1)
        return core.cast(core.reshape(bits, x.shape), x.dtype, bitcast=True)


for _function in (sort, topk, flip):
    core.tensor_method(_function)


# ---- The library of the tile language, written in the tile language.


# Kernel code follows the rules of kernels, not of Python: a `constexpr` may be None, and has its value's attributes.
# pyright: reportArgumentType=false, reportAssignmentType=false, reportAttributeAccessIssue=false


__all__ = [
    "argmax",
    "argmin",
    "atomic_poll",
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
    "squeeze",
    "sum",
    "swizzle2d",
    "topk",
    "unsqueeze",
    "xor_sum",
    "zeros",
    "zeros_like",
]


@jit
def cdiv(x: core.tensor, div: core.tensor) -> core.tensor:
    """Return the number of blocks of size `div` that cover `x`: ``cdiv(10, 4)`` is 3.

    For non-negative integers in a kernel; on the host, use `tilework.cdiv`.

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

    For a block of rank 2 or more, pass ``keep_dims=True`` unless `dim` is 0.

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
def squeeze(x: core.tensor, dim: core.constexpr) -> core.tensor:
    """`x` without the axis `dim`, whose size is 1.

    Example:
        assert_close(call(tl.squeeze, np.arange(4).reshape(4, 1), 1), np.arange(4))
    """
    axis: core.constexpr = dim if dim >= 0 else dim + len(x.shape)
    core.static_assert(axis >= 0 and axis < len(x.shape), "squeeze: dim is out of range")
    core.static_assert(x.shape[axis] == 1, "squeeze: the axis has more than one element")
    return core.reshape(x, x.shape[:axis] + x.shape[axis + 1 :])


@jit
def _any(mask: core.tensor) -> core.tensor:
    if len(mask.shape) == 0:
        return mask
    else:
        return max(mask.to(core.int32)) > 0


@jit
def atomic_poll(
    pointer: core.tensor,
    expected_value: core.tensor,
    sem: core.constexpr = None,
    scope: core.constexpr = None,
    timeout_ns: core.constexpr = None,
) -> None:
    """Wait until memory holds `expected_value` at every address of a block.

    Another program must write the value while this one waits; a program that waits for a later one may wait forever.
    `sem` and `scope` are those of `atomic_cas`. There is no `timeout_ns`.

    Example:
        @tilework.jit
        def kernel(flag, out):
            tl.atomic_xchg(flag, 1)
            tl.atomic_poll(flag, 1)
            tl.store(out, 5)

        flag, out = np.zeros(1, np.int32), np.zeros(1, np.int32)
        kernel[(1,)](flag, out)
        assert out[0] == 5
    """
    core.static_assert(timeout_ns is None, "atomic_poll has no timeout: it waits until memory holds the value")
    expected = core.broadcast_to(core.to_tensor(expected_value).to(pointer.dtype.element_ty), pointer.shape)
    old = core.atomic_cas(pointer, expected, expected, sem, scope)
    while _any(old != expected):
        old = core.atomic_cas(pointer, expected, expected, sem, scope)


@constexpr_function
def _new_axis(dim: int, rank: int) -> int:
    if follows("negative-unsqueeze"):
        return dim if dim >= 0 else dim + rank + 1
    return slice(dim).indices(rank)[1]  # Triton 3.7 slices the shape: no `dim` is out of range


@jit
def unsqueeze(x: core.tensor, dim: core.constexpr) -> core.tensor:
    """`x` with a new axis of size 1 at `dim`.

    As in Triton 3.7, a negative `dim` counts the axes of `x`: -1 inserts the new axis before the last one. As in Triton
    3.8 (``TILEWORK_TRITON_VERSION=3.8.0``), it counts the axes of the result: -1 makes the new axis the last one.

    Example:
        assert call(tl.unsqueeze, np.arange(4), 1).shape == (4, 1)
    """
    axis: core.constexpr = _new_axis(dim, len(x.shape))
    core.static_assert(axis >= 0 and axis <= len(x.shape), "unsqueeze: dim is out of range")
    return core.reshape(x, x.shape[:axis] + [1] + x.shape[axis:])


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

    Within a group of rows, the order is column by column. These are the new ids of a 4 by 4 grid in groups of 2:

        0  2  4  6
        1  3  5  7
        8 10 12 14
        9 11 13 15

    Programs that run at the same time then share rows and columns of the operands of a dot, which stay in the cache.

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


for _function in (atomic_poll, cdiv, sigmoid, softmax, ravel):
    core.tensor_method(_function)
