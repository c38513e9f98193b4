"""How many programs a launch has along each axis, from what users write as a grid.

>>> grid_extent((4,)), grid_extent([2, 3]), grid_extent(5)
((4, 1, 1), (2, 3, 1), (5, 1, 1))
"""

from collections.abc import Sequence
from operator import index
from typing import Any

from tilework.language import core as tl

MOST = 2**31 - 1  # along one axis


def grid_extent(grid: Any) -> tuple[int, int, int]:
    """Three sizes from one to three; a bare int counts as one."""
    if type(grid) is tuple and len(grid) == 1 and type(grid[0]) is int and 0 <= grid[0] <= MOST:
        return (grid[0], 1, 1)
    sizes: Sequence[Any] = grid if isinstance(grid, tuple | list) else (grid,)
    if not 1 <= len(sizes) <= 3:
        raise ValueError(f"a grid has one to three sizes, got {grid!r}")
    try:
        x, y, z = map(index, (*(tl._unwrap_if_constexpr(size) for size in sizes), 1, 1)[:3])
    except TypeError:
        if callable(grid):
            raise TypeError(f"a callable grid returns one to three integers, and this one returned {grid!r}") from None
        raise TypeError(f"grid sizes are integers, got {grid!r}") from None
    for size in (x, y, z):
        if not 0 <= size <= MOST:
            raise ValueError(f"grid size {size} is not between 0 and {MOST}")
    return x, y, z
