"""Reductions, scans and maps with functions of the user.

The function is written for scalars, but runs on whole slices: one call combines all neighbours of a block at once.

    reduce of 8 elements        x[0::2] and x[1::2] (4 pairs), then 2, then 1: the order of the elements is kept
    scan of 8 elements          slice after slice along the axis

A function that branches on its arguments cannot run on slices (a block has no single truth value). It is then called
again, element by element.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from tilework.language import core as tl
from tilework.language.dtypes import dtype
from tilework.oracles.interpreter.formats import Array
from tilework.oracles.interpreter.shapes import Shapes
from tilework.oracles.interpreter.tensors import tensor

Body = Callable[[Sequence[tl.tensor]], Sequence[Any]]
Arrays = list[Array]


class AmbiguousTruth(ValueError):
    """The truth of a block with several elements was asked for."""


class Reductions(Shapes):
    """`reduce`, `associative_scan` and `map_elementwise`."""

    def reduce(self, inputs: Sequence[tl.tensor], axis: int | None, region_builder: Body) -> tuple[tl.tensor, ...]:
        shape = common_input_shape(inputs, "reduce")
        arrays = [value.handle for value in inputs]
        if axis is None:
            arrays, shape, axis = [array.reshape(-1) for array in arrays], (prod(shape),), 0
        elements = [value.dtype for value in inputs]
        combine = Combine(self, region_builder, elements, "reduce")
        arrays = [np.moveaxis(array, axis, 0) for array in arrays]
        while arrays[0].shape[0] > 1:
            arrays = combine([array[0::2] for array in arrays], [array[1::2] for array in arrays])
        return tuple(tensor(array[0], element) for array, element in zip(arrays, elements, strict=True))

    def scan(
        self, inputs: Sequence[tl.tensor], axis: int, region_builder: Body, reverse: bool
    ) -> tuple[tl.tensor, ...]:
        common_input_shape(inputs, "scan")
        elements = [value.dtype for value in inputs]
        combine = Combine(self, region_builder, elements, "scan")
        arrays = [np.moveaxis(value.handle, axis, 0) for value in inputs]
        if reverse:
            arrays = [array[::-1] for array in arrays]
        total = [array[:1] for array in arrays]
        rows = [total]
        for position in range(1, arrays[0].shape[0]):
            total = combine(total, [array[position : position + 1] for array in arrays])
            rows.append(total)
        results = []
        for number, element in enumerate(elements):
            scanned = np.concatenate([row[number] for row in rows])
            results.append(tensor(np.moveaxis(scanned[::-1] if reverse else scanned, 0, axis), element))
        return tuple(results)

    def map_elementwise(self, args: Sequence[Any], pack: int, region_builder: Body) -> tuple[tl.tensor, ...]:
        """With pack 2 a function of two arguments gets ``a0, a1, b0, b1`` and returns ``x0, x1, y0, y1``."""
        if not args:
            raise ValueError("map_elementwise needs at least one tensor")
        if pack < 1 or pack & (pack - 1):
            raise ValueError(f"map_elementwise's pack must be a power of 2, got {pack}")
        blocks = self.broadcast_all([self.to_tensor(value) for value in args])
        shape = blocks[0].handle.shape or (1,)
        assert prod(shape) % pack == 0, f"a block of {prod(shape)} elements cannot be split into groups of {pack}"
        elements = [block.dtype for block in blocks for _ in range(pack)]
        arrays = [block.handle.reshape(-1)[place::pack] for block in blocks for place in range(pack)]
        results = self.on_slices(region_builder, arrays, elements)
        if not results or len(results) % pack:
            raise ValueError(
                f"a function mapped with pack={pack} must return {pack} values per output, got {len(results)}"
            )
        outputs = []
        for first in range(0, len(results), pack):
            group = results[first : first + pack]
            types = [value.dtype for value in group]
            if any(element != types[0] for element in types):
                raise TypeError(f"the {pack} values of one output must have one type, got {', '.join(map(str, types))}")
            outputs.append(tensor(np.stack([value.handle for value in group], axis=-1).reshape(shape), types[0]))
        return tuple(outputs)

    def on_slices(self, body: Body, arrays: Arrays, elements: Sequence[dtype]) -> list[tl.tensor]:
        """`body` on every position of equally shaped arrays; its results have the same shape."""
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


class Combine:
    """A combine function on slices: ``combine(left, right)`` of lists of arrays."""

    def __init__(self, semantic: Reductions, body: Body, elements: Sequence[dtype], name: str) -> None:
        self.semantic, self.body, self.elements, self.name = semantic, body, list(elements), name

    def __call__(self, left: Arrays, right: Arrays) -> Arrays:
        results = self.semantic.on_slices(self.body, [*left, *right], [*self.elements, *self.elements])
        given = [value.dtype for value in results]
        if given != self.elements:
            raise TypeError(
                f"the combine function of {self.name} must return the element types of its inputs: expected "
                f"({', '.join(map(str, self.elements))}), got ({', '.join(map(str, given))}); cast inside the function"
            )
        return [value.handle for value in results]


def common_input_shape(inputs: Sequence[tl.tensor], name: str) -> tuple[int, ...]:
    """The shape that all inputs have."""
    shapes = [value.handle.shape for value in inputs]
    if not shapes or not shapes[0]:
        raise ValueError(f"{name} needs a block, got a scalar" if shapes else f"{name} needs at least one block")
    for shape in shapes:
        if shape != shapes[0]:
            raise ValueError(f"all inputs of {name} must have one shape, got {list(shapes[0])} and {list(shape)}")
    return shapes[0]
