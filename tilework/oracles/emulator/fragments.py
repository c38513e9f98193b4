"""Where the elements of a matrix lie in the registers of a warp.

A layout is given by bases, as in linear layouts: `elements` are the (row, column) that each bit of the index within a thread's
fragment adds, `lanes` those that each bit of the lane adds. An accumulator of 16 x 8:

    >>> layout = Fragment((16, 8), ((0, 1), (8, 0)), ((0, 2), (0, 4), (1, 0), (2, 0), (4, 0)))
    >>> layout.places[:, 5].tolist()                      # the four elements of lane 5
    [[1, 2], [1, 3], [9, 2], [9, 3]]
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

from tilework.forks import cached_property
from tilework.oracles.emulator.arenas import Array

LANES = 32
Bases = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Fragment:
    """The layout of a matrix in one warp."""

    shape: tuple[int, int]
    elements: Bases
    lanes: Bases

    @property
    def count(self) -> int:
        """Elements per thread."""
        return 1 << len(self.elements)

    @cached_property
    def places(self) -> Array:
        """(element, lane, 2): row and column."""
        index, lane = np.arange(self.count), np.arange(LANES)
        found = np.zeros((self.count, LANES, 2), np.int64)
        for bit, base in enumerate(self.elements):
            found += (index >> bit & 1)[:, None, None] * np.array(base)
        for bit, base in enumerate(self.lanes):
            found += (lane >> bit & 1)[None, :, None] * np.array(base)
        return found

    @cached_property
    def scatter(self) -> Array:
        """For lane and element, in this order, the index of the matrix element, row by row."""
        rows, columns = self.places[..., 0], self.places[..., 1]
        return (rows * self.shape[1] + columns).T.reshape(-1).copy()

    @cached_property
    def gather(self) -> Array:
        """For each matrix element, row by row, its index in (lane, element)."""
        return np.argsort(self.scatter)

    def matrix(self, values: Array) -> Array:
        """(warps, 32, count) of a fragment to (warps, rows, columns)."""
        return values.reshape(len(values), -1).take(self.gather, axis=1).reshape(-1, *self.shape)

    def fragment(self, matrix: Array) -> Array:
        """(warps, rows, columns) to (warps, 32, count)."""
        return matrix.reshape(len(matrix), -1).take(self.scatter, axis=1).reshape(-1, LANES, self.count)


def powers(start: int, stop: int) -> list[int]:
    """``powers(2, 16)`` is [2, 4, 8]."""
    found = []
    while start < stop:
        found.append(start)
        start *= 2
    return found


@cache
def operand_a(rows: int, depth: int, bits: int) -> Fragment:
    """A (rows x k), elements of `bits`; the four lanes of a row hold 32 bits each (64 for f64) side by side."""
    packed = max(1, 32 // bits)
    elements = [(0, step) for step in powers(1, packed)] + [(step, 0) for step in powers(8, rows)]
    elements += [(0, step) for step in powers(4 * packed, depth)]
    return Fragment((rows, depth), tuple(elements), ((0, packed), (0, 2 * packed), (1, 0), (2, 0), (4, 0)))


@cache
def operand_b(depth: int, bits: int) -> Fragment:
    """B (k x 8)."""
    packed = max(1, 32 // bits)
    elements = [(step, 0) for step in powers(1, packed)] + [(step, 0) for step in powers(4 * packed, depth)]
    return Fragment((depth, 8), tuple(elements), ((packed, 0), (2 * packed, 0), (0, 1), (0, 2), (0, 4)))


@cache
def accumulator(rows: int, columns: int = 8) -> Fragment:
    """C and D (rows x columns): pairs of neighbours, then the row 8 below, then the next 8 columns."""
    elements = [(0, 1)] + [(step, 0) for step in powers(8, rows)] + [(0, step) for step in powers(8, columns)]
    return Fragment((rows, columns), tuple(elements), ((0, 2), (0, 4), (1, 0), (2, 0), (4, 0)))
