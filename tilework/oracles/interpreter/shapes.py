"""Shapes: ranges, views, gathering, counting."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilework.language import core as tl
from tilework.language.dtypes import int32
from tilework.language.typing.carrier import Pair, Shape
from tilework.language.typing.indexing import Part
from tilework.oracles.interpreter.failures import at_run_time
from tilework.oracles.interpreter.operators import Operators
from tilework.oracles.interpreter.tensors import tensor


class Shapes(Operators):
    """Functions that move elements and compute nothing."""

    def counting(self, start: int, end: int) -> tl.tensor:
        return tensor(np.arange(start, end, dtype=np.int32), int32)

    def with_axis(self, x: tl.tensor, axis: int) -> tl.tensor:
        return tensor(np.expand_dims(x.handle, axis), x.dtype)

    def reshaped(self, x: tl.tensor, shape: Shape, can_reorder: bool) -> tl.tensor:
        return tensor(x.handle.reshape(shape), x.dtype)

    def resized(self, x: tl.tensor, shape: Shape) -> tl.tensor:
        """Elements that are not there are copies of others, which no result may depend on."""
        have = x.handle.shape
        return tensor(
            x.handle[np.ix_(*(np.arange(size) % own for size, own in zip(shape, have, strict=True)))], x.dtype
        )

    def permuted(self, x: tl.tensor, order: Shape) -> tl.tensor:
        return tensor(np.transpose(x.handle, order), x.dtype)

    def concatenated(self, x: tl.tensor, y: tl.tensor) -> tl.tensor:
        return tensor(np.concatenate((x.handle, y.handle)), x.dtype)

    def joined(self, x: tl.tensor, y: tl.tensor) -> tl.tensor:
        return tensor(np.stack((x.handle, y.handle), axis=-1), x.dtype)

    def halves(self, x: tl.tensor) -> Pair:
        return tensor(x.handle[..., 0], x.dtype), tensor(x.handle[..., 1], x.dtype)

    def gathered(self, src: tl.tensor, index: tl.tensor, axis: int) -> tl.tensor:
        places, size = index.handle.astype(np.int64), src.handle.shape[axis]
        outside = (places < 0) | (places >= size)
        if outside.any():
            text = f"gather: index {places[outside][0]} is outside axis {axis}, which has {size} elements"
            raise at_run_time(IndexError(text))
        return tensor(np.take_along_axis(src.handle, places, axis), src.dtype)

    def taken(self, x: tl.tensor, parts: Sequence[Part]) -> tl.tensor:
        return tensor(x.handle[tuple(map(self._numpy_index, parts))], x.dtype)

    def placed(self, x: tl.tensor, parts: Sequence[Part], value: tl.tensor) -> tl.tensor:
        made = x.handle.copy()
        made[tuple(map(self._numpy_index, parts))] = value.handle
        return tensor(made, x.dtype)

    def _numpy_index(self, part: Part) -> Any:
        if part.picked:
            return int(part.start.handle) if isinstance(part.start, tl.tensor) else part.start
        assert isinstance(part.start, int)
        end = part.start + part.step * part.count
        return slice(part.start, end if end >= 0 else None, part.step)

    def counted(self, x: tl.tensor, bins: int, mask: tl.tensor | None) -> tl.tensor:
        """Values outside the bins are left out; under the sanitizer they are an error."""
        values = x.handle.astype(np.int64)
        if mask is not None:
            values = values[mask.handle]
        inside = (values >= 0) & (values < bins)
        if self.options.sanitize and not inside.all():
            text = f"histogram: value {values[~inside][0]} is outside the {bins} bins; mask it"
            raise at_run_time(IndexError(text))
        return tensor(np.bincount(values[inside], minlength=bins).astype(np.int32), int32)
