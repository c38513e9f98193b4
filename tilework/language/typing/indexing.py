"""Subscripts of blocks, with NumPy's meaning: ``x[3]``, ``x[i]``, ``x[2:10]``, ``x[..., ::2]``, ``x[:, 0] = v``.

Bounds of slices are known at compile time, since shapes are; a place may be a run-time scalar. What is written here is which elements
are meant; `taken` and `placed` of the carriers move them.
"""

import builtins
from collections.abc import Sequence
from typing import Any, NamedTuple

from tilework.language.compile_time import slice, tuple
from tilework.language.typing.promotion import plain
from tilework.language.typing.python_names import describe_type
from tilework.language.typing.shapes import check_broadcast_to, shape_of
from tilework.language.typing.views import Views
from tilework.language.values import tensor


class Part(NamedTuple):
    """What is taken of one axis: every `step`-th element from `start`, `count` of them; the axis of one that is `picked` is gone."""

    start: int | tensor
    step: int
    count: int
    picked: bool = False

    def is_whole(self, size: int) -> bool:
        return not self.picked and (self.start, self.step, self.count) == (0, 1, size)


def index_items(index: Any) -> list[Any]:
    """The items of a subscript, which may be one."""
    index = plain(index)
    return [plain(item) for item in (index if isinstance(index, list | tuple | builtins.tuple) else [index])]


def is_plain_view(index: Any) -> bool:
    """Only ``:`` and None, which are all that Triton takes."""
    return all(
        item is None or (is_slice(item) and python_slice(item) == builtins.slice(None)) for item in index_items(index)
    )


def is_slice(item: Any) -> bool:
    return isinstance(item, slice | builtins.slice)


def python_slice(item: Any) -> Any:
    return item.to_python() if isinstance(item, slice) else item


class Indexing(Views):
    """Parts of blocks, read and replaced."""

    def subscript(self, x: tensor, index: Any) -> tensor:
        """``x[index]``."""
        parts, new_axes = self.parts(x, index)
        if not all(part.is_whole(size) for part, size in zip(parts, shape_of(x), strict=True)):
            self.checked_shape(sizes_of(parts))
            x = self.taken(x, parts)
        for axis in new_axes:
            x = self.expand_dims(x, axis)
        return x

    def with_subscript(self, x: tensor, index: Any, value: Any) -> tensor:
        """What `x` is after ``x[index] = value``."""
        parts, new_axes = self.parts(x, index, may_be_empty=True)
        value = self.cast(self.to_tensor(value), x.dtype)
        shape = [part.count for part in parts if not part.picked]
        for axis in new_axes:
            shape.insert(axis, 1)
        own = shape_of(value)
        while len(own) > len(shape) and own[0] == 1:
            own = own[1:]
        value = self.reshape(value, own)
        check_broadcast_to(own, builtins.tuple(shape[max(len(shape) - len(own), 0) :]))
        if not all(shape):
            return x
        for axis in reversed(new_axes):
            at = axis - len(shape)  # from the end, where shapes meet
            shape.pop(axis)
            if len(own := shape_of(value)) >= -at:
                value = self.reshape(value, [size for place, size in enumerate(own, -len(own)) if place != at])
        return self.placed(x, parts, value)

    def parts(self, x: tensor, index: Any, *, may_be_empty: bool = False) -> builtins.tuple[list[Part], list[int]]:
        """What is taken of each axis, and where the result has new ones."""
        shape, items = shape_of(x), index_items(index)
        used = sum(item is not None and item is not Ellipsis for item in items)
        if used > len(shape):
            raise IndexError(f"unsupported tensor index: too many indices, {used} for a block of shape {list(shape)}")
        dots = [place for place, item in enumerate(items) if item is Ellipsis]
        if len(dots) > 1:
            raise IndexError("an index can have only one `...`")
        rest: list[Any] = [builtins.slice(None)] * (len(shape) - used)
        at = dots[0] if dots else len(items)
        items[at : at + 1] = rest
        parts: list[Part] = []
        new_axes: list[int] = []
        place = 0
        for item in items:
            if item is None:
                new_axes.append(place)
            else:
                parts.append(self.part(item, len(parts), shape[len(parts)], may_be_empty))
            place += item is None or not parts[-1].picked
        return parts, new_axes

    def part(self, item: Any, axis: int, size: int, may_be_empty: bool) -> Part:
        """One item of a subscript for an axis of `size` elements."""
        item = python_slice(item)
        if isinstance(item, builtins.slice):
            if any(isinstance(bound, tensor) for bound in (item.start, item.stop, item.step)):
                raise TypeError(
                    "the bounds of a slice must be known at compile time\nhelp: x[i] may be any scalar; load what you need, or use tl.gather"
                )
            places = range(*item.indices(size))
            if not places and not may_be_empty:
                raise IndexError(f"{shown_slice(item)} takes nothing of axis {axis}, which has {size} elements")
            return Part(places.start, places.step, len(places))
        if isinstance(item, tensor):
            return Part(self.checked_place(item, axis, size), 1, 1, True)
        if isinstance(item, bool) or not isinstance(item, int):
            raise TypeError(
                f"unsupported tensor index: {item!r}\nhelp: an index is an integer, a slice, None or `...`; tl.gather takes blocks of indices"
            )
        if not -size <= item < size:
            raise IndexError(f"index {item} is outside axis {axis}, which has {size} elements")
        return Part(item % size, 1, 1, True)

    def checked_place(self, place: tensor, axis: int, size: int) -> tensor:
        """A run-time place, counted from the start; debug builds check it."""
        if place.type.is_block() or not place.dtype.is_int() or place.dtype.is_bool():
            raise TypeError(
                f"unsupported tensor index: {describe_type(place.type)}\nhelp: a run-time index is an integer scalar; tl.gather takes blocks of"
                " indices, tl.where masks"
            )
        if place.dtype.is_int_signed():
            place = self.where(self.less_than(place, 0), self.add(place, size, False), place)
        if self.asserts():
            inside = self.and_(self.greater_equal(place, 0), self.less_than(place, size))
            self.asserted(inside, f"index is outside axis {axis}, which has {size} elements")
        return place


def shown_slice(item: builtins.slice) -> str:
    """``2:10`` as it is written."""
    text = ":".join("" if part is None else str(part) for part in (item.start, item.stop))
    return text if item.step is None else f"{text}:{item.step}"


def sizes_of(parts: Sequence[Part]) -> builtins.tuple[int, ...]:
    """The shape of what is taken."""
    return builtins.tuple(part.count for part in parts if not part.picked)
