"""Values that are not arrays: block pointers and tensor descriptors.

Both describe a block of a strided array. Element `i` of a block at `offsets` lies at
`base + sum((offsets[d] + i[d]) * strides[d])` elements, and is inside when every index is in `[0, shape[d])`.

    >>> view = BlockView(base=1000, shape=(3, 4), strides=(4, 1), element=f32, block=(2, 2))
    >>> addresses, inside = view.at((2, 0), checked=(0, 1))
    >>> addresses.tolist(), inside.tolist()
    ([[1032, 1036], [1048, 1052]], [[True, True], [False, False]])
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from xdsl.ir import Attribute

from tilework.ir.types import Shape
from tilework.numerics.rounding import Array
from tilework.oracles.evaluator.floats import BOOL, memory_bytes


@dataclass(frozen=True)
class BlockView:
    """A strided array of `element`, read and written in blocks of shape `block`."""

    base: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    element: Attribute
    block: Shape
    offsets: tuple[int, ...] = ()
    pad_with_nan: bool = False

    def advanced(self, steps: tuple[int, ...]) -> Self:
        """A block pointer moved by `steps` elements in each dimension."""
        return replace(self, offsets=tuple(a + b for a, b in zip(self.offsets, steps, strict=True)))

    def at(self, offsets: tuple[int, ...], checked: tuple[int, ...]) -> tuple[Array, Array]:
        """Addresses of the block at `offsets`, and which of them are inside in the `checked` dimensions."""
        indices = [offset + np.arange(size, dtype=np.int64) for offset, size in zip(offsets, self.block, strict=True)]
        return self.of_indices(np.ix_(*indices), self.block, checked)

    def of_indices(self, indices: tuple[Array, ...], block: Shape, checked: tuple[int, ...]) -> tuple[Array, Array]:
        """The same for one index array per dimension, which broadcast to `block`."""
        address = np.full(block, self.base, np.int64)
        inside = np.ones(block, BOOL)
        for dim, (index, stride) in enumerate(zip(indices, self.strides, strict=True)):
            address = address + index * np.int64(stride * memory_bytes(self.element))
            if dim in checked:
                inside = inside & (index >= 0) & (index < self.shape[dim])
        return address, inside


@dataclass(frozen=True)
class DescriptorAt:
    """A descriptor that is read from memory when it is used: at `address`, of blocks of `type`."""

    address: int
    type: Attribute


@dataclass
class Tensormap:
    """A descriptor that a kernel wrote to memory; TMA sees it after a fence."""

    view: BlockView
    is_acquired: bool = False


@dataclass(eq=False)
class Dot:
    """An asynchronous product of a warp group; `is_done` once it was waited for."""

    is_done: bool = False


@dataclass(frozen=True, eq=False)
class InFlight:
    """The result of a `Dot`, which may not be looked at before its wait, but rearranged."""

    value: Array
    dot: Dot

    def reshape(self, shape: tuple[int, ...]) -> "InFlight":
        return InFlight(self.value.reshape(shape), self.dot)

    def transpose(self, order: tuple[int, ...]) -> "InFlight":
        return InFlight(self.value.transpose(order), self.dot)
