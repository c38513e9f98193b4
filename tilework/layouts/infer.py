"""The encoding of an op's result, derived from its operand's so that no element has to move.

>>> from tilework.layouts.encodings import Blocked
>>> tile = Blocked((1, 4), (4, 8), (4, 1), (1, 0))
>>> infer_trans(tile, (1, 0), (16, 32)).order
(0, 1)
>>> infer_expand_dims(infer_reduce(tile, 1), 1) == tile
True
>>> infer_reshape((32, 32), tile, (32, 4, 8)).size_per_thread
(1, 1, 4)

Each function returns an encoding or raises `LayoutError`. A reshaped blocked layout remains blocked if possible. The
two shapes are split into groups of dimensions with as many elements on both sides: (32, 32) to (32, 4, 8) has the
groups 32 to 32 and 32 to 4x8. Within a group the threads must count through the source dimensions as through one long
dimension; then the destination dimensions are filled the same way, the most minor one first. Anything else becomes a
linear layout: the elements in row-major order, split at the new boundaries.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod

from tilework.layouts.construct import default_blocked
from tilework.layouts.encodings import (
    Bases,
    Blocked,
    Distributed,
    Encoding,
    Linear,
    NvmmaShared,
    Shared,
    SharedLinear,
    Slice,
    SwizzledShared,
)
from tilework.layouts.linear import LayoutError, LinearLayout
from tilework.layouts.to_linear import MEMO, dim_names, machine_of, to_linear

Ints = tuple[int, ...]
Group = tuple[list[int], list[int]]


@lru_cache(maxsize=MEMO)
def infer_reshape(src_shape: Ints, encoding: Distributed, dst_shape: Ints, allow_reorder: bool = False) -> Distributed:
    """Return the encoding of the result. A reshape that may reorder can have any: the default is proposed."""
    if prod(src_shape) != prod(dst_shape):
        raise LayoutError(f"cannot reshape {list(src_shape)} to {list(dst_shape)}: they have different sizes")
    if src_shape == dst_shape:
        return encoding
    sizes = machine_of(encoding)
    if allow_reorder or encoding == default_blocked(src_shape, None, None, *sizes):
        return default_blocked(dst_shape, None, None, *sizes)
    if isinstance(encoding, Blocked) and not encoding.cga:
        if (blocked := reshape_blocked(src_shape, encoding, dst_shape)) is not None:
            return blocked
    return Linear(reshape_row_major(to_linear(encoding, src_shape), dst_shape))


def reshape_row_major(layout: LinearLayout, shape: Sequence[int]) -> LinearLayout:
    """Return the same elements in row-major order, with the coordinates of another shape.

    >>> reshape_row_major(LinearLayout({"lane": [(0, 1), (1, 0)]}, {"dim0": 2, "dim1": 2}), (4,)).bases
    (('lane', ((1,), (2,))),)
    """
    names = dim_names(len(shape))
    flat = layout.transpose_outs(tuple(reversed(layout.out_names)))
    cut = flat.reshape_outs([(name, size) for name, size in reversed(list(zip(names, shape, strict=True)))])
    return cut.transpose_outs(names)


def groups(src: Sequence[int], dst: Sequence[int]) -> Iterator[Group]:
    """Yield the dimensions of both shapes that have the same elements, from the most major; as few in a group as
    possible.

    >>> list(groups((32, 32), (32, 4, 8)))
    [([0], [0]), ([1], [1, 2])]
    """
    left, right = 0, 0
    while left < len(src) or right < len(dst):
        mine, theirs = [], []
        before, after = 1, 1
        while before != after or before == 1:
            if before <= after and left < len(src):
                before *= src[left]
                mine.append(left)
                left += 1
            elif right < len(dst):
                after *= dst[right]
                theirs.append(right)
                right += 1
            else:
                break
        while left < len(src) and src[left] == 1:
            mine.append(left)
            left += 1
        while right < len(dst) and dst[right] == 1:
            theirs.append(right)
            right += 1
        yield mine, theirs


def reshape_blocked(src_shape: Ints, encoding: Blocked, dst_shape: Ints) -> Blocked | None:
    """Return the blocked layout of the result, or None if there is none."""
    parts = list(groups(src_shape, dst_shape))
    major_first = tuple(reversed(encoding.order))
    starts = {}
    for index, (mine, _) in enumerate(parts):
        if not mine:
            return None
        at = major_first.index(mine[0])
        if list(major_first[at : at + len(mine)]) != mine:
            return None
        starts[at] = index
    fields = (encoding.size_per_thread, encoding.threads_per_warp, encoding.warps_per_cta)
    answer = [[1] * len(dst_shape) for _ in fields]
    for mine, theirs in parts:
        totals = count_through([src_shape[dim] for dim in mine], [[field[dim] for dim in mine] for field in fields])
        if totals is None or not theirs:
            return None
        filled = fill([dst_shape[dim] for dim in theirs], totals)
        for field, values in zip(answer, filled, strict=True):
            for dim, value in zip(theirs, values, strict=True):
                field[dim] = value
    minor_first = [dim for at in sorted(starts, reverse=True) for dim in reversed(parts[starts[at]][1])]
    return Blocked(tuple(answer[0]), tuple(answer[1]), tuple(answer[2]), tuple(minor_first))


def count_through(shape: Sequence[int], fields: Sequence[Sequence[int]]) -> list[int] | None:
    """Return the product of each field over a group, if it fills the minor dimensions before it uses a more major one.

    >>> count_through((4, 8), [(1, 4), (4, 2)]), count_through((4, 8), [(2, 4)])
    ([4, 8], None)
    """
    left, totals = list(shape), []
    for field in fields:
        for dim, size in enumerate(field):
            if dim and size > left[dim]:
                return None
            if size > 1 and any(field[minor] < left[minor] for minor in range(dim + 1, len(field))):
                return None
        left = [max(1, space // size) for space, size in zip(left, field, strict=True)]
        totals.append(prod(field))
    return totals


def fill(shape: Sequence[int], totals: Sequence[int]) -> list[list[int]]:
    """Distribute each total over a group, the most minor dimension first; the rest goes to the most major.

    >>> fill((4, 8), [4, 8])
    [[1, 4], [4, 2]]
    """
    left, filled = list(shape), []
    for total in totals:
        values = [1] * len(shape)
        for dim in reversed(range(len(shape))):
            values[dim] = min(total, left[dim]) if dim else total
            left[dim] = max(1, left[dim] // values[dim])
            total //= values[dim]
        filled.append(values)
    return filled


@lru_cache(maxsize=MEMO)
def infer_memdesc_reshape(src_shape: Ints, encoding: Shared, dst_shape: Ints) -> Shared:
    """The same bytes under another shape: an nvmma layout remains one if it has the same offsets."""
    if prod(src_shape) != prod(dst_shape):
        raise LayoutError(f"cannot reshape {list(src_shape)} to {list(dst_shape)}: they have different sizes")
    if src_shape == dst_shape:
        return encoding
    layout = reshape_row_major(to_linear(encoding, src_shape), dst_shape)
    if isinstance(encoding, NvmmaShared) and not encoding.cga:
        kept, column = replace(encoding, rank=len(dst_shape)), 0 if encoding.transposed else -1
        if src_shape[column] == dst_shape[column] and is_same_shared(kept, dst_shape, layout):
            return kept
    return SharedLinear(layout, getattr(encoding, "alignment", 16))


def is_same_shared(encoding: NvmmaShared, shape: Ints, layout: LinearLayout) -> bool:
    """Return True if `encoding` exists for `shape` and has the same offsets as `layout`."""
    if encoding.swizzling_byte_width and len(shape) < 2:
        return False
    column = 0 if encoding.transposed else len(shape) - 1
    width = encoding.swizzling_byte_width * encoding.vec // 16
    outer = shape[-1] if encoding.transposed else prod(shape) // shape[column]
    if encoding.swizzling_byte_width and (shape[column] < width or outer < 8):
        return False
    return to_linear(encoding, shape) == layout


def infer_reduce(encoding: Distributed, axis: int) -> Slice:
    """The layout of a reduction: each thread keeps the results of the rows it had elements of."""
    return Slice(axis, encoding)


def infer_expand_dims(encoding: Distributed, axis: int) -> Distributed:
    """The layout that was sliced along `axis`."""
    if not isinstance(encoding, Slice):
        raise LayoutError("ExpandDimsOp operand encoding must be SliceEncodingAttr")
    if encoding.dim != axis:
        raise LayoutError(f"Incompatible slice dimension for ExpandDimsOp operand: it is {encoding.dim}, not {axis}")
    return encoding.parent


def inverse(perm: Sequence[int]) -> Ints:
    """Return the permutation that undoes `perm`.

    >>> inverse((2, 0, 1))
    (1, 2, 0)
    """
    found = [0] * len(perm)
    for index, dim in enumerate(perm):
        found[dim] = index
    return tuple(found)


def permuted(values: Sequence[int], perm: Sequence[int]) -> Ints:
    return tuple(values[dim] for dim in perm)


def check_perm(encoding: Encoding, perm: Sequence[int]) -> None:
    if sorted(perm) != list(range(encoding.rank)):
        raise LayoutError(f"order = {list(perm)} is not a permutation of the {encoding.rank} dimensions of the layout")


@lru_cache(maxsize=MEMO)
def infer_trans(encoding: Distributed, perm: Ints, shape: Ints) -> Distributed:
    """Result dimension i is operand dimension `perm[i]`; `shape` is the operand's."""
    check_perm(encoding, perm)
    if perm == tuple(range(len(perm))):
        return encoding
    if isinstance(encoding, Blocked):
        return regridded(encoding, permuted(inverse(perm), encoding.order), lambda grid: permuted(grid, perm))
    return Linear(permute_outs(to_linear(encoding, shape), perm))


def regridded(encoding: Blocked, order: Ints, change: Callable[[Ints], Ints]) -> Blocked:
    """Return a blocked layout of other dimensions: each of its grids changed in the same way."""
    held, lanes, warps = map(change, (encoding.size_per_thread, encoding.threads_per_warp, encoding.warps_per_cta))
    return Blocked(held, lanes, warps, order, tuple(map(change, encoding.cga)))


def permuted_bases(bases: Bases, perm: Ints) -> Bases:
    return tuple(permuted(basis, perm) for basis in bases)


def permute_outs(layout: LinearLayout, perm: Ints) -> LinearLayout:
    """Return the layout of the transposed tensor: the same locations, dimensions in another order under their new
    names."""
    return layout.transpose_outs([f"dim{dim}" for dim in perm]).rename_outs(dim_names(len(perm)))


@lru_cache(maxsize=MEMO)
def infer_join(encoding: Distributed, shape: Ints) -> Distributed:
    """The layout of two tensors of `shape`, joined in a new last dimension: two adjacent registers.

    >>> infer_join(Blocked((4,), (32,), (4,), (0,)), (512,)).size_per_thread
    (4, 2)
    """
    rank = encoding.rank
    if isinstance(encoding, Slice) and encoding.dim == rank and splits_to(encoding.parent, encoding, shape):
        return encoding.parent
    if isinstance(encoding, Blocked):
        return Blocked(
            encoding.size_per_thread + (2,),
            encoding.threads_per_warp + (1,),
            encoding.warps_per_cta + (1,),
            (rank, *encoding.order),
            tuple(basis + (0,) for basis in encoding.cga),
        )
    layout = to_linear(encoding, shape)
    outs = ((f"dim{rank}", 2), *layout.outs)
    columns = tuple(
        (name, (*((1,) if name == "register" else ()), *(column << 1 for column in columns)))
        for name, columns in layout.columns
    )
    return Linear(LinearLayout.packed(columns, outs).transpose_outs(dim_names(rank + 1)))


def splits_to(parent: Distributed, wanted: Distributed, shape: Ints) -> bool:
    """Return True if splitting a tensor in `parent` gives the layout of `wanted`."""
    joined = (*shape, 2)
    if not can_split(parent, joined):
        return False
    halves = infer_split(parent, joined)
    return to_linear(halves, shape) == to_linear(wanted, shape)


def is_split_blocked(encoding: Distributed) -> bool:
    """Return True for a blocked layout whose last dimension is two registers of each thread."""
    if not isinstance(encoding, Blocked):
        return False
    last = (encoding.size_per_thread[-1], encoding.threads_per_warp[-1], encoding.warps_per_cta[-1])
    return last == (2, 1, 1) and not any(basis[-1] for basis in encoding.cga)


def can_split(encoding: Distributed, shape: Ints) -> bool:
    """Return True if each thread holds both halves of the last dimension."""
    layout = to_linear(encoding, shape)
    return shape[-1] == 2 and 1 << layout.fields[f"dim{len(shape) - 1}"][0] in layout.by_in["register"]


@lru_cache(maxsize=MEMO)
def infer_split(encoding: Distributed, shape: Ints) -> Distributed:
    """The two halves of a tensor of `shape`, whose last dimension is 2."""
    rank = encoding.rank
    if is_split_blocked(encoding):
        assert isinstance(encoding, Blocked)
        return regridded(encoding, tuple(dim for dim in encoding.order if dim != rank - 1), lambda grid: grid[:-1])
    if shape[-1] != 2:
        raise LayoutError("SplitOp requires the last dimension to have size 2")
    if not can_split(encoding, shape):
        raise LayoutError("SplitOp requires at least 2 elements per thread in the axis/last dimension")
    layout = to_linear(encoding, shape)
    half = 1 << layout.fields[f"dim{rank - 1}"][0]
    left = list(layout.by_in["register"])
    left.remove(half)
    kept = layout.replace_in("register", left)
    return Linear(kept.sublayout(kept.in_names, dim_names(rank - 1)))


def infer_fp4_to_fp(encoding: Distributed, axis: int, shape: Ints) -> Distributed:
    """The layout of two elements for each packed one, along `axis`: two adjacent registers; `shape` is the operand's.

    >>> infer_fp4_to_fp(Blocked((1, 4), (4, 8), (4, 1), (1, 0)), 1, (16, 32)).size_per_thread
    (1, 8)
    """
    if isinstance(encoding, Blocked) and all(n == 1 for d, n in enumerate(encoding.size_per_thread) if d != axis):
        held = tuple(size * 2 if dim == axis else size for dim, size in enumerate(encoding.size_per_thread))
        return replace(encoding, size_per_thread=held)
    layout = to_linear(encoding, shape)
    bases = {
        name: [tuple(v * 2 if dim == axis else v for dim, v in enumerate(vector)) for vector in vectors]
        for name, vectors in layout.bases
    }
    bases["register"].insert(0, tuple(int(dim == axis) for dim in range(len(shape))))
    outs = {name: size * 2 if dim == axis else size for dim, (name, size) in enumerate(layout.outs)}
    return Linear(LinearLayout(bases, outs))


@lru_cache(maxsize=MEMO)
def infer_memdesc_trans(encoding: Shared, perm: Ints, shape: Ints) -> Shared:
    """The same bytes with the dimensions in another order; `shape` is the operand's.

    >>> infer_memdesc_trans(NvmmaShared(128, False, 16), (1, 0), (64, 128)).transposed
    True
    """
    check_perm(encoding, perm)
    if perm == tuple(range(len(perm))):
        return encoding
    if isinstance(encoding, SwizzledShared):
        moved = permuted(inverse(perm), encoding.order)
        return replace(encoding, order=moved, cga=permuted_bases(encoding.cga, perm))
    if isinstance(encoding, NvmmaShared) and perm == (1, 0):
        return replace(encoding, transposed=not encoding.transposed, cga=permuted_bases(encoding.cga, perm))
    alignment = getattr(encoding, "alignment", 16)
    return SharedLinear(permute_outs(to_linear(encoding, shape), perm), alignment)
