"""Reductions, scans and maps with user functions.

The function is written for scalars, but runs on whole slices: one call combines all neighbours of a block at once.

    reduce of 8 elements        x[0::2] and x[1::2] (4 pairs), then 2, then 1: the order of the elements is kept
    scan of 8 elements          slice after slice along the axis

`SUM_ORDER` chooses another association, which shows how far results depend on it (`tilework explain`).

A function that branches on its arguments cannot run on slices (a block has no single truth value). It is then called
again, element by element.
"""

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from tilework.language import core as tl
from tilework.language.dtypes import dtype
from tilework.language.typing.carrier import Body
from tilework.language.typing.shapes import check_combined, packed_types
from tilework.numerics.rounding import Array
from tilework.oracles.interpreter.operators import Shapes
from tilework.oracles.interpreter.tensors import tensor

Arrays = list[Array]
ORDERS = ("forward", "backward")
# reductions and dots add one element after the other, from the first one on or from the last; None: as above
SUM_ORDER: ContextVar[str | None] = ContextVar("sum_order", default=None)


class AmbiguousTruth(ValueError):
    """The truth value of a block with several elements was requested."""


class Reductions(Shapes):
    """Implements `reduce`, `associative_scan` and `map_elementwise`."""

    def reduced(self, inputs: Sequence[tl.tensor], axis: int, body: Body) -> tuple[tl.tensor, ...]:
        elements = [value.dtype for value in inputs]
        combine = Combine(self, body, elements, "reduce")
        arrays = [np.moveaxis(value.handle, axis, 0) for value in inputs]
        if (order := SUM_ORDER.get()) is not None:
            arrays = folded(combine, arrays, order)
        while (length := arrays[0].shape[0]) > 1:
            even = length - length % 2
            pairs = combine([array[0:even:2] for array in arrays], [array[1:even:2] for array in arrays])
            arrays = [np.concatenate((pair, array[even:])) for pair, array in zip(pairs, arrays, strict=True)]
        return tuple(tensor(array[0], element) for array, element in zip(arrays, elements, strict=True))

    def scanned(self, inputs: Sequence[tl.tensor], axis: int, body: Body, reverse: bool) -> tuple[tl.tensor, ...]:
        elements = [value.dtype for value in inputs]
        combine = Combine(self, body, elements, "scan")
        arrays = [np.moveaxis(value.handle, axis, 0) for value in inputs]
        if self.options.reproducible or SUM_ORDER.get() is not None:
            joined = self.scanned_by_halves(arrays, combine, reverse)
            pairs = zip(joined, elements, strict=True)
            return tuple(tensor(np.moveaxis(array, 0, axis), element) for array, element in pairs)
        if reverse:
            arrays = [array[::-1] for array in arrays]
        total = [array[:1] for array in arrays]
        rows = [total]
        for position in range(1, arrays[0].shape[0]):
            total = combine(total, [array[position : position + 1] for array in arrays])
            rows.append(total)
        results = []
        for index, element in enumerate(elements):
            scanned = np.concatenate([row[index] for row in rows])
            results.append(tensor(np.moveaxis(scanned[::-1] if reverse else scanned, 0, axis), element))
        return tuple(results)

    def scanned_by_halves(self, arrays: Arrays, combine: "Combine", reverse: bool) -> Arrays:
        """Join blocks of 1, 2, 4 ... elements in pairs: the later one of a pair is combined with the total of the
        earlier one.

        Blocks start at multiples of their size; in reverse, the one with the higher indices is the earlier one.
        """
        results, size = [array.copy() for array in arrays], 1
        while size < len(results[0]):
            for start in range(0, len(results[0]) - size, 2 * size):
                low, high = slice(start, start + size), slice(start + size, start + 2 * size)
                later, total = (low, start + size) if reverse else (high, start + size - 1)
                count = len(results[0][later])
                before = [np.repeat(array[total : total + 1], count, axis=0) for array in results]
                joined = combine(before, [array[later] for array in results])
                for array, made in zip(results, joined, strict=True):
                    array[later] = made
            size *= 2
        return results

    def mapped(self, blocks: Sequence[tl.tensor], pack: int, body: Body) -> tuple[tl.tensor, ...]:
        shape = blocks[0].handle.shape
        elements = [block.dtype for block in blocks for _ in range(pack)]
        arrays = [block.handle.reshape(-1)[lane::pack] for block in blocks for lane in range(pack)]
        results = self.on_slices(body, arrays, elements)
        types = packed_types([value.dtype for value in results], pack)
        groups = [[value.handle for value in results[first : first + pack]] for first in range(0, len(results), pack)]
        stacked = [np.stack(group, axis=-1).reshape(shape) for group in groups]
        return tuple(tensor(values, element) for values, element in zip(stacked, types, strict=True))

    def on_slices(self, body: Body, arrays: Arrays, elements: Sequence[dtype]) -> list[tl.tensor]:
        """Apply `body` to every position of equally shaped arrays; its results have the same shape."""
        shape = arrays[0].shape
        flat = [array.reshape(-1) for array in arrays]
        try:
            results = self.results_of(body, flat, elements)
        except AmbiguousTruth:
            rows = [self.results_of(body, list(scalars), elements) for scalars in zip(*flat, strict=True)]
            columns = zip(*rows, strict=True)
            results = [tensor(np.stack([value.handle for value in column]), column[0].dtype) for column in columns]
        count = flat[0].shape
        return [tensor(np.broadcast_to(value.handle, count).reshape(shape), value.dtype) for value in results]

    def results_of(self, body: Body, arrays: Sequence[Any], elements: Sequence[dtype]) -> list[tl.tensor]:
        values = [tensor(array, element) for array, element in zip(arrays, elements, strict=True)]
        return [self.to_tensor(value) for value in body(values)]


def folded(combine: "Combine", arrays: Arrays, order: str) -> Arrays:
    """Combine the elements along the first axis one by one; the function need not be commutative."""
    count, is_forward = len(arrays[0]), order == ORDERS[0]
    total = [array[:1] if is_forward else array[-1:] for array in arrays]
    for position in range(1, count) if is_forward else range(count - 2, -1, -1):
        element = [array[position : position + 1] for array in arrays]
        total = combine(total, element) if is_forward else combine(element, total)
    return total


class Combine:
    """A combine function on slices: ``combine(left, right)`` of lists of arrays."""

    def __init__(self, semantic: Reductions, body: Body, elements: Sequence[dtype], name: str) -> None:
        self.semantic, self.body, self.elements, self.name = semantic, body, list(elements), name

    def __call__(self, left: Arrays, right: Arrays) -> Arrays:
        results = self.semantic.on_slices(self.body, [*left, *right], [*self.elements, *self.elements])
        check_combined([value.dtype for value in results], self.elements, self.name)
        return [value.handle for value in results]
