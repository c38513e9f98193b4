"""Which encoding an op gives its result, from its operand's: no element may have to move.

>>> from tilework.layouts.encodings import Blocked
>>> tile = Blocked((1, 4), (4, 8), (4, 1), (1, 0))
>>> infer_trans(tile, (1, 0), (16, 32)).order
(0, 1)
>>> infer_expand_dims(infer_reduce(tile, 1), 1) == tile
True

Each function answers with an encoding or raises `LayoutError`. Reshapes are in `reshape.py`.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache

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
from tilework.layouts.errors import LayoutError
from tilework.layouts.linear import LinearLayout
from tilework.layouts.reshape import infer_memdesc_reshape as infer_memdesc_reshape
from tilework.layouts.reshape import infer_reshape as infer_reshape
from tilework.layouts.to_linear import MEMO, dim_names, to_linear

Ints = tuple[int, ...]


def infer_reduce(encoding: Distributed, axis: int) -> Slice:
    """Each thread keeps the results of the rows it had elements of."""
    return Slice(axis, encoding)


def infer_expand_dims(encoding: Distributed, axis: int) -> Distributed:
    """The layout that was sliced along `axis`."""
    if not isinstance(encoding, Slice):
        raise LayoutError("ExpandDimsOp operand encoding must be SliceEncodingAttr")
    if encoding.dim != axis:
        raise LayoutError(f"Incompatible slice dimension for ExpandDimsOp operand: it is {encoding.dim}, not {axis}")
    return encoding.parent


def inverse(perm: Sequence[int]) -> Ints:
    """The permutation that undoes `perm`.

    >>> inverse((2, 0, 1))
    (1, 2, 0)
    """
    found = [0] * len(perm)
    for place, dim in enumerate(perm):
        found[dim] = place
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
    """A blocked layout of other dimensions: each of its grids changed in the same way."""
    held, lanes, warps = map(change, (encoding.size_per_thread, encoding.threads_per_warp, encoding.warps_per_cta))
    return Blocked(held, lanes, warps, order, tuple(map(change, encoding.cga)))


def permuted_bases(bases: Bases, perm: Ints) -> Bases:
    return tuple(permuted(basis, perm) for basis in bases)


def permute_outs(layout: LinearLayout, perm: Ints) -> LinearLayout:
    """The layout of the transposed tensor: the same places, dimensions in another order under their new names."""
    return layout.transpose_outs([f"dim{dim}" for dim in perm]).rename_outs(dim_names(len(perm)))


@lru_cache(maxsize=MEMO)
def infer_join(encoding: Distributed, shape: Ints) -> Distributed:
    """Two tensors of `shape` side by side in a new last dimension: two neighbouring registers.

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
    """Whether splitting a tensor in `parent` gives `wanted`, as far as elements go."""
    joined = (*shape, 2)
    if not can_split(parent, joined):
        return False
    halves = infer_split(parent, joined)
    return to_linear(halves, shape) == to_linear(wanted, shape)


def is_split_blocked(encoding: Distributed) -> bool:
    """A blocked layout whose last dimension is two registers of each thread."""
    if not isinstance(encoding, Blocked):
        return False
    last = (encoding.size_per_thread[-1], encoding.threads_per_warp[-1], encoding.warps_per_cta[-1])
    return last == (2, 1, 1) and not any(basis[-1] for basis in encoding.cga)


def can_split(encoding: Distributed, shape: Ints) -> bool:
    """Whether each thread holds both halves of the last dimension."""
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
    """Two elements for each packed one, along `axis`: two neighbouring registers; `shape` is the operand's.

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
