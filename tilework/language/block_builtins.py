"""Builtins that create blocks and change their shape, dots, and those that take a function: `reduce`,
`associative_scan` and `map_elementwise`.

The function is a jit function on scalars. The semantic object opens a region and passes its scalar arguments to a
Python callback, which has the code generator (`_generator`) compile the call:

    @jit
    def add(a, b):
        return a + b

    tl.reduce(x, 0, add)        # the region contains one call of `add`
"""

import builtins
from typing import TYPE_CHECKING, Any

from tilework.language.compile_time import (
    SUPPLIED,
    _unwrap_if_constexpr,
    _unwrap_iterable,
    _unwrap_shape,
    constexpr,
    tuple,
)
from tilework.language.dtypes import dtype
from tilework.language.values import Sizes, Value, tensor

if TYPE_CHECKING:
    from tilework.language.semantic import Semantic
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tilework.language.compile_time import Active
from tilework.language.dtypes import float32

if TYPE_CHECKING:
    from tilework.language.semantic import Semantic


def arange(start: int | constexpr, end: int | constexpr, _semantic: "Semantic" = SUPPLIED) -> tensor:
    """The int32 block ``start, start + 1, ..., end - 1``, of any length.

    Both ends are known at compile time. Kernels locate their elements by adding such a range to an offset computed from
    `program_id`.

    Example:
        assert call(tl.arange, 0, 4).tolist() == [0, 1, 2, 3]

        @tilework.jit
        def fill(out, n, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            tl.store(out + i, i, mask=i < n)

        out = np.zeros(10, np.int32)
        fill[(3,)](out, 10, BLOCK=4)
        assert out.tolist() == list(range(10))
    """
    return _semantic.arange(_unwrap_if_constexpr(start), _unwrap_if_constexpr(end))


def full(shape: Sizes, value: Value, dtype: dtype | constexpr, _semantic: "Semantic" = SUPPLIED) -> tensor:
    """A block filled with one value: ``acc = tl.full((M, N), float("-inf"), tl.float32)``. Shape ``()`` gives a scalar.

    `value` is a number or a run-time scalar. It is converted to `dtype`.

    Example:
        assert call(tl.full, (2, 2), 7, tl.int8).tolist() == [[7, 7], [7, 7]]
    """
    return _semantic.full(_unwrap_shape(shape), value, _unwrap_if_constexpr(dtype))


def broadcast(input: Value, other: Value, _semantic: "Semantic" = SUPPLIED) -> builtins.tuple[tensor, tensor]:
    """Broadcast two values to their common shape: ``row, col = tl.broadcast(i[None, :], j[:, None])``.

    Operators broadcast automatically, by NumPy's rules; use this where the shape itself is needed (a mask for `store`,
    a `reshape`).

    Example:
        rows, columns = call(tl.broadcast, np.array([[10], [20]]), np.array([[1, 2]]))
        assert rows.tolist() == [[10, 10], [20, 20]] and columns.tolist() == [[1, 2], [1, 2]]
    """
    return _semantic.broadcast(_semantic.to_tensor(input), _semantic.to_tensor(other))


def broadcast_to(input: Value, *shape: Sizes, _semantic: "Semantic" = SUPPLIED) -> tensor:
    """Repeat axes of size 1 to reach `shape`: ``tl.broadcast_to(x[:, None], M, N)``. A scalar fills the block.

    The shape can be given as separate sizes or as one tuple: ``tl.broadcast_to(x, (M, N))``.

    Example:
        assert call(tl.broadcast_to, np.array([[1], [2]]), (2, 4)).tolist() == [[1, 1, 1, 1], [2, 2, 2, 2]]
        assert call(tl.broadcast_to, np.int32(5), 2, 2).tolist() == [[5, 5], [5, 5]]
    """
    return _semantic.broadcast_to(input, _unwrap_shape(_unwrap_iterable(shape)))


def expand_dims(input: Value, axis: Sizes, _semantic: "Semantic" = SUPPLIED) -> tensor:
    """Insert axes of size 1 at the given positions of the result: ``tl.expand_dims(x, (0, -1))`` of (4,) has shape (1,
    4, 1).

    Usually written as an index, ``x[None, :, None]``.

    Example:
        assert call(tl.expand_dims, np.arange(4), 0).shape == (1, 4)
        assert call(tl.expand_dims, np.arange(4), (0, -1)).shape == (1, 4, 1)
    """
    input = _semantic.to_tensor(input)
    axes = _unwrap_shape(axis)
    rank = len(input.shape) + len(axes)
    axes = [_wrap_axis(axis, rank) for axis in axes]
    if len(set(axes)) != len(axes):
        raise ValueError(f"expand_dims received duplicate axes, normalized axes = {axes}")
    for axis in sorted(axes):
        input = _semantic.expand_dims(input, axis)
    return input


def _wrap_axis(axis: int | constexpr, rank: int) -> int:
    """`axis` counted from 0: ``_wrap_axis(-1, 3)`` is 2."""
    axis = _unwrap_if_constexpr(axis)
    if not isinstance(axis, int) or not -rank <= axis < rank:
        raise ValueError(f"invalid axis {axis}. Expected {-rank} <= axis < {rank}")
    return axis % rank


def reshape(
    input: Value, *shape: Sizes, can_reorder: bool | constexpr = False, _semantic: "Semantic" = SUPPLIED
) -> tensor:
    """The same elements in row-major order under another shape: ``tl.reshape(x, 4, 8)`` or ``x.reshape([4, 8])``.

    With `can_reorder`, the compiler may choose another order of the elements, which can be cheaper on a GPU because
    threads need not exchange data.

    Example:
        assert_close(call(tl.reshape, np.arange(8), (2, 4)), np.arange(8).reshape(2, 4))
    """
    return _semantic.reshape(input, _unwrap_shape(_unwrap_iterable(shape)), _unwrap_if_constexpr(can_reorder))


def view(input: Value, *shape: Sizes, _semantic: "Semantic" = SUPPLIED) -> tensor:
    """Deprecated: `reshape` with ``can_reorder=True``.

    Example:
        assert sorted(call(tl.view, np.arange(4), (2, 2)).ravel()) == [0, 1, 2, 3]  # in some order
    """
    _semantic.warn("view is deprecated, please use reshape with can_reorder being true.", UserWarning)
    return _semantic.reshape(input, _unwrap_shape(_unwrap_iterable(shape)), True)


def permute(input: tensor, *dims: Sizes, _semantic: "Semantic" = SUPPLIED) -> tensor:
    """Axis i of the result is axis ``dims[i]`` of the input: ``tl.permute(x, 2, 0, 1)``.

    The order can be given as separate integers or as one tuple.

    Example:
        x = np.arange(16).reshape(2, 2, 4)
        assert_close(call(tl.permute, x, (2, 0, 1)), np.transpose(x, (2, 0, 1)))
    """
    return _semantic.permute(input, _unwrap_shape(_unwrap_iterable(dims)))


def trans(input: tensor, *dims: Sizes, _semantic: "Semantic" = SUPPLIED) -> tensor:
    """Swap the last two axes; with `dims`, the same as `permute`: ``tl.trans(x)`` of (M, N) is (N, M).

    ``x.T`` is the same for a block of rank 2. As an operand of `dot`, it costs nothing: the operand is read transposed.

    Example:
        x = np.arange(8).reshape(2, 4)
        assert_close(call(tl.trans, x), x.T)
    """
    order = _unwrap_shape(_unwrap_iterable(dims))
    if not order:
        rank = len(input.shape)
        if rank < 2:
            raise ValueError(
                f"tl.trans invoked with a 0- or 1-dimensional tensor: {describe(input)} has no two axes to swap"
            )
        order = [*range(rank - 2), rank - 1, rank - 2]
    return _semantic.permute(input, order)


def cat(
    input: tensor,
    other: tensor,
    can_reorder: bool | constexpr = False,
    dim: int | constexpr = 0,
    _semantic: "Semantic" = SUPPLIED,
) -> tensor:
    """Concatenate two blocks of the same shape along `dim`: ``tl.cat(a, b, dim=1)``.

    With `can_reorder`, the elements of two 1-D blocks come in no particular order, which may be cheaper.

    Example:
        x = np.arange(8).reshape(2, 4)
        assert_close(call(tl.cat, x, -x, dim=1), np.concatenate([x, -x], 1))
        assert sorted(call(tl.cat, np.array([1, 2]), np.array([3, 4]), can_reorder=True)) == [1, 2, 3, 4]
    """
    return _semantic.cat(input, other, _unwrap_if_constexpr(can_reorder), _unwrap_if_constexpr(dim))


def join(a: Value, b: Value, _semantic: "Semantic" = SUPPLIED) -> tensor:
    """Join two values along a new last axis: (N,) and (N,) give (N, 2); two scalars give (2,).

    The inputs are broadcast to each other first. `split` is the inverse.

    Example:
        assert call(tl.join, np.array([1, 2]), np.array([3, 4])).tolist() == [[1, 3], [2, 4]]
    """
    return _semantic.join(a, b)


def split(a: tensor, _semantic: "Semantic" = SUPPLIED) -> tuple:
    """The inverse of `join`: ``left, right = tl.split(x)`` for a last axis of size 2.

    Example:
        even, odd = call(tl.split, np.arange(8).reshape(4, 2))
        assert even.tolist() == [0, 2, 4, 6] and odd.tolist() == [1, 3, 5, 7]
    """
    return tuple(_semantic.split(a))


def gather(src: tensor, index: tensor, axis: int | constexpr, _semantic: "Semantic" = SUPPLIED) -> tensor:
    """Pick elements along an axis: ``out[i, j] = src[i, index[i, j]]`` for axis 1.

    `index` has the rank and, except along `axis`, the sizes of `src`; the result has the shape of `index`. An index
    that is out of range gives an unspecified value; the sanitizer reports its use (docs/sanitizer.md). On a GPU,
    threads exchange elements through shared memory, or by shuffles if each warp holds the whole axis.

    Example:
        x, index = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1, 1], [0, 1]])
        assert_close(call(tl.gather, x, index, 1), np.take_along_axis(x, index, 1))
    """
    return _semantic.gather(src, index, _unwrap_if_constexpr(axis))


def histogram(
    input: tensor, num_bins: int | constexpr, mask: Value | None = None, _semantic: "Semantic" = SUPPLIED
) -> tensor:
    """Count the values 0 .. num_bins - 1 of a 1-D integer block: ``tl.histogram(x, 256, mask=x < 256)``.

    Elements where `mask` is false are not counted. Values outside the range are ignored; the sanitizer reports them as
    an error (docs/sanitizer.md). Counts are int32.

    Example:
        x = np.array([0, 1, 1, 3, 3, 3, 0, 1], np.int32)
        assert call(tl.histogram, x, 4).tolist() == [2, 3, 0, 3]
        assert call(tl.histogram, x, 4, mask=x > 0).tolist() == [0, 3, 0, 3]
    """
    return _semantic.histogram(input, _unwrap_if_constexpr(num_bins), _none_or(mask))


def _none_or(value: Any) -> Any:
    """None for None and for ``constexpr(None)``, else the value."""
    return None if isinstance(value, constexpr) and value.value is None else value


def dot(
    input: tensor,
    other: tensor,
    acc: tensor | None = None,
    input_precision: str | constexpr | None = None,
    allow_tf32: bool | constexpr | None = None,
    max_num_imprecise_acc: int | constexpr | None = None,
    out_dtype: dtype | constexpr | None = float32,
    _semantic: "Semantic" = SUPPLIED,
) -> tensor:
    """The matrix product of two blocks, added to `acc` if that is given: ``acc = tl.dot(a, b, acc)``.

    The shapes are (M, K) and (K, N); leading axes are batch axes. The result is fp32 for floats of 32 bits and fewer
    (or `out_dtype`, which may be ``tl.float16`` for fp16 and fp8), fp64 for fp64, and int32 for int8. With
    ``out_dtype=None``, it has the dtype of `acc`.

    `input_precision` says how fp32 is multiplied: "ieee" uses all bits; "tf32" uses 10 bits of the fraction; "tf32x3",
    "bf16x3" and "bf16x6" use several dots of fewer bits. The default is "tf32" on NVIDIA GPUs and on AMD GPUs that have
    it, and "ieee" elsewhere; the CPU always multiplies fp32 with all bits. `allow_tf32` is the older name (True is
    "tf32", False is "ieee"). `max_num_imprecise_acc` is the number of fp8 multiplications along K after which, on
    Hopper, a partial sum is added in full precision.

    On NVIDIA GPUs, K must be at least 16 (32 for 8-bit types); other targets accept any size. Matrix units are used for
    blocks of about 16 by 16 and larger.

    Example:
        @tilework.jit
        def matmul(a, b, c, N: tl.constexpr):
            i = tl.arange(0, N)
            at = i[:, None] * N + i[None, :]
            tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at), input_precision="ieee"))

        a, b = np.arange(256, dtype=np.float32).reshape(16, 16), np.eye(16, dtype=np.float32) * 2
        c = np.empty_like(a)
        matmul[(1,)](a, b, c, N=16)
        assert_close(c, a @ b)
    """
    return _semantic.dot(
        input,
        other,
        _none_or(acc),
        _unwrap_if_constexpr(input_precision),
        _unwrap_if_constexpr(allow_tf32),
        _unwrap_if_constexpr(max_num_imprecise_acc),
        _unwrap_if_constexpr(out_dtype),
    )


def dot_scaled(
    lhs: tensor,
    lhs_scale: tensor | None,
    lhs_format: str | constexpr,
    rhs: tensor,
    rhs_scale: tensor | None,
    rhs_format: str | constexpr,
    acc: tensor | None = None,
    fast_math: bool | constexpr = False,
    lhs_k_pack: bool | constexpr = True,
    rhs_k_pack: bool | constexpr = True,
    out_dtype: dtype | constexpr = float32,
    _semantic: "Semantic" = SUPPLIED,
) -> tensor:
    """The matrix product of two blocks in a microscaling format: each group of 32 elements along K has its own scale.

        acc = tl.dot_scaled(a, a_scale, "e4m3", b, b_scale, "e2m1", acc)

    The formats are "e2m1" (two fp4 in a uint8), "e4m3", "e5m2", "bf16" and "fp16". Scales are exponents (127 is 1.0,
    128 is 2.0) in uint8 or int8 of shape (M, K / 32) and (N, K / 32), or None. The two fp4 of a byte are neighbours
    along K, or, with `lhs_k_pack` (or `rhs_k_pack`) False, along M (or N). `fast_math` omits the handling of scales
    that are NaN.

    AMD's MI350 multiplies scaled fp8 and fp4 directly. Elsewhere, operands are scaled to bf16 or fp16 and multiplied as
    in `dot`. `tilework.tools.mxfp` converts floats to operands and scales.

    Example:
        @tilework.jit
        def kernel(a, b, a_scale, out):
            i, k = tl.arange(0, 16), tl.arange(0, 32)
            left = tl.load(a + i[:, None] * 32 + k[None, :]).to(tl.bfloat16)
            right = tl.load(b + k[:, None] * 16 + i[None, :]).to(tl.bfloat16)
            scale = tl.load(a_scale + i[:, None] + tl.arange(0, 1)[None, :])
            result = tl.dot_scaled(left, scale, "bf16", right, None, "bf16")
            tl.store(out + i[:, None] * 16 + i[None, :], result)

        a, b = np.ones((16, 32), np.float32), np.ones((32, 16), np.float32)
        exponents, out = np.full((16, 1), 128, np.uint8), np.empty((16, 16), np.float32)
        kernel[(1,)](a, b, exponents, out)
        assert_close(out, 2 * (a @ b))  # 128: every group of `a` times 2
    """
    return _semantic.dot_scaled(
        lhs,
        _none_or(lhs_scale),
        _unwrap_if_constexpr(lhs_format),
        rhs,
        _none_or(rhs_scale),
        _unwrap_if_constexpr(rhs_format),
        _none_or(acc),
        _unwrap_if_constexpr(fast_math),
        _unwrap_if_constexpr(lhs_k_pack),
        _unwrap_if_constexpr(rhs_k_pack),
        _unwrap_if_constexpr(out_dtype),
    )


def reduce(
    input: Any,
    axis: int | constexpr | None,
    combine_fn: Callable[..., Any],
    keep_dims: bool | constexpr = False,
    _semantic: "Semantic" = SUPPLIED,
    _generator: Active = SUPPLIED,
) -> Any:
    """Combine all elements along an axis (of the whole block, if `axis` is None) with an associative function.

        smallest = tl.reduce(x, 0, minimum_of_two)
        value, index = tl.reduce((x, i), 0, larger_with_index)    # several blocks at once: fn(x1, i1, x2, i2)

    `combine_fn` is a jit function of two scalars (for several blocks: of twice as many scalars as there are blocks).
    The order in which elements are combined differs between targets, so sums of floats may differ in their last bits.
    `keep_dims` leaves axes of size 1 in place of those that were reduced.

    Example:
        @tilework.jit
        def longer(a, b):
            return tl.where(tl.abs(a) > tl.abs(b), a, b)

        x = np.array([[1, -7, 3, 4], [2, 2, 9, -8]])
        assert call(tl.reduce, x, 1, longer).tolist() == [-7, 9]
    """
    inputs = [input] if isinstance(input, tensor) else list(input)
    rank = len(inputs[0].shape)
    axis, keep_dims = _constant("reduce", "axis", axis), _constant("reduce", "keep_dims", keep_dims)
    if axis is not None:
        axis = _wrap_axis(axis, rank)
    results = _semantic.reduce(inputs, axis, _region_of(combine_fn, _generator))
    if keep_dims:
        restored = [axis] if axis is not None else [0] * rank
        for position in restored:
            results = [_semantic.expand_dims(result, position) for result in results]
    return results[0] if isinstance(input, tensor) else tuple(results)


def associative_scan(
    input: Any,
    axis: int | constexpr,
    combine_fn: Callable[..., Any],
    reverse: bool | constexpr = False,
    _semantic: "Semantic" = SUPPLIED,
    _generator: Active = SUPPLIED,
) -> Any:
    """Combine each element with all elements before it along an axis (or after it, if `reverse`).

    `combine_fn` is an associative jit function, as in `reduce`; a tuple of blocks is scanned together.

    Example:
        @tilework.jit
        def larger(a, b):
            return tl.maximum(a, b)

        x = np.array([3, 1, 4, 1])
        assert call(tl.associative_scan, x, 0, larger).tolist() == [3, 3, 4, 4]
        assert call(tl.associative_scan, x, 0, larger, reverse=True).tolist() == [4, 4, 4, 1]
    """
    inputs = [input] if isinstance(input, tensor) else list(input)
    axis = _wrap_axis(_constant("associative_scan", "axis", axis), len(inputs[0].shape))
    region = _region_of(combine_fn, _generator)
    results = _semantic.scan(inputs, axis, region, _constant("associative_scan", "reverse", reverse))
    return results[0] if isinstance(input, tensor) else tuple(results)


def map_elementwise(
    scalar_fn: Callable[..., Any],
    *args: Value,
    pack: int | constexpr = 1,
    _semantic: "Semantic" = SUPPLIED,
    _generator: Active = SUPPLIED,
) -> Any:
    """Call a jit function on each element; branches in it are taken per element.

        tl.map_elementwise(compare, x, y)         # compare(x[i], y[i]) for every i

    An `if` on a block is an error in a kernel, but here the function gets scalars. With ``pack=p``, the function takes
    `p` elements of each argument at once and returns `p` values per result.

    Example:
        @tilework.jit
        def steps(n):  # of the Collatz sequence
            count = 0
            while n != 1:
                n = n // 2 if n % 2 == 0 else 3 * n + 1
                count += 1
            return count

        @tilework.jit
        def all_steps(x):
            return tl.map_elementwise(steps, x)

        assert call(all_steps, np.array([1, 2, 3, 6], np.int32)).tolist() == [0, 1, 7, 8]
    """
    results = _semantic.map_elementwise(args, _unwrap_if_constexpr(pack), _region_of(scalar_fn, _generator))
    return results[0] if len(results) == 1 else tuple(results)


def _region_of(fn: Callable[..., Any], _generator: Active) -> Callable[[Sequence[Any]], list[Any]]:
    """The body of a region: the results of `fn` on the scalars of its entry block."""
    function = _unwrap_if_constexpr(fn)

    def build(scalars: Sequence[Any]) -> list[Any]:
        result = _generator.call_JitFunction(function, scalars, kwargs={})
        return list(result.values) if isinstance(result, tuple) else [result]

    return build


def describe(value: tensor) -> str:
    """``fp32[64]``."""
    shape = [str(_unwrap_if_constexpr(size)) for size in value.shape]
    return f"{value.dtype}[{', '.join(shape)}]" if shape else str(value.dtype)


def _constant(function: str, parameter: str, value: Any) -> Any:
    """`value` as Python sees it; the shape of a result cannot depend on a value of the running kernel."""
    value = _unwrap_if_constexpr(value)
    if isinstance(value, tensor):
        raise ValueError(f"{function}: `{parameter}` must be constexpr, but is {describe(value)} at run time")
    return value
