"""The encoding of a reshaped tensor, so that every thread keeps its elements in its registers.

>>> from tilework.layouts.encodings import Blocked
>>> infer_reshape((32, 32), Blocked((1, 4), (4, 8), (4, 1), (1, 0)), (32, 4, 8)).size_per_thread
(1, 1, 4)

A blocked layout stays blocked when it can. The two shapes are cut into groups of dimensions with as many elements on
both sides: (32, 32) to (32, 4, 8) has the groups 32 to 32 and 32 to 4x8. Within a group the threads must count through
the source dimensions as through one long dimension; then the destination dimensions are filled the same way, the most
minor one first. Anything else becomes a linear layout: the elements in row-major order, cut at the new places.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from math import prod

from tilework.layouts.construct import default_blocked
from tilework.layouts.encodings import Blocked, Distributed, Linear, NvmmaShared, Shared, SharedLinear
from tilework.layouts.errors import LayoutError
from tilework.layouts.linear import LinearLayout
from tilework.layouts.queries import machine_of
from tilework.layouts.to_linear import MEMO, dim_names, to_linear

Ints = tuple[int, ...]
Group = tuple[list[int], list[int]]


@lru_cache(maxsize=MEMO)
def infer_reshape(src_shape: Ints, encoding: Distributed, dst_shape: Ints, allow_reorder: bool = False) -> Distributed:
    """The encoding of the result. A reshape that may reorder can have any: the default is proposed."""
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
    """The same elements in row-major order, with the coordinates of another shape.

    >>> reshape_row_major(LinearLayout({"lane": [(0, 1), (1, 0)]}, {"dim0": 2, "dim1": 2}), (4,)).bases
    (('lane', ((1,), (2,))),)
    """
    names = dim_names(len(shape))
    flat = layout.transpose_outs(tuple(reversed(layout.out_names)))
    cut = flat.reshape_outs([(name, size) for name, size in reversed(list(zip(names, shape, strict=True)))])
    return cut.transpose_outs(names)


def groups(src: Sequence[int], dst: Sequence[int]) -> Iterator[Group]:
    """The dimensions of both shapes that have the same elements, from the most major; as few in a group as possible.

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
    """The blocked layout of the result, or None if there is none."""
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
    """The product of each field over a group, if it fills the minor dimensions before it uses a more major one.

    >>> count_through((4, 8), [(1, 4), (4, 2)]), count_through((4, 8), [(2, 4)])
    ([4, 8], None)
    """
    room, totals = list(shape), []
    for field in fields:
        for place, size in enumerate(field):
            if place and size > room[place]:
                return None
            if size > 1 and any(field[minor] < room[minor] for minor in range(place + 1, len(field))):
                return None
        room = [max(1, space // size) for space, size in zip(room, field, strict=True)]
        totals.append(prod(field))
    return totals


def fill(shape: Sequence[int], totals: Sequence[int]) -> list[list[int]]:
    """Each total spread over a group, the most minor dimension first; what is left goes to the most major.

    >>> fill((4, 8), [4, 8])
    [[1, 4], [4, 2]]
    """
    room, filled = list(shape), []
    for total in totals:
        values = [1] * len(shape)
        for place in reversed(range(len(shape))):
            values[place] = min(total, room[place]) if place else total
            room[place] = max(1, room[place] // values[place])
            total //= values[place]
        filled.append(values)
    return filled


@lru_cache(maxsize=MEMO)
def infer_memdesc_reshape(src_shape: Ints, encoding: Shared, dst_shape: Ints) -> Shared:
    """The same bytes under another shape: an nvmma layout stays one if that means the same places."""
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
    """Whether `encoding` exists for `shape` and puts every element where `layout` does."""
    if encoding.swizzling_byte_width and len(shape) < 2:
        return False
    column = 0 if encoding.transposed else len(shape) - 1
    width = encoding.swizzling_byte_width * encoding.vec // 16
    outer = shape[-1] if encoding.transposed else prod(shape) // shape[column]
    if encoding.swizzling_byte_width and (shape[column] < width or outer < 8):
        return False
    return to_linear(encoding, shape) == layout
