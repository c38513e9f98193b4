"""Launch grids: the number of programs along each axis, the arithmetic to compute it, and launches with bound
arguments.

    >>> grid_extent((4,)), grid_extent([2, 3]), grid_extent(5)
    ((4, 1, 1), (2, 3, 1), (5, 1, 1))

A bound launch is for loops that change only some arguments:

    launch = add.bind(x, y, out, n, BLOCK=1024, grid=lambda meta: (cdiv(meta["n"], meta["BLOCK"]),))
    launch()                          # add[grid](x, y, out, n, BLOCK=1024)
    launch(x2)                        # another first argument, in this call
    launch(x=x2, n=m, grid=(7,))      # by name; the grid can change, too

A call is the launch that `kernel[grid]` would be with these arguments: the same results, errors and hooks. Bound
arguments are kept alive and are read again at every call, so that a tensor may be resized in between.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from operator import index
from typing import Any

from tilework.language import core as tl
from tilework.language.function import constexpr_function

MOST = 2**31 - 1  # along one axis
WRONG_GRID = "a grid is a tuple of one to three integers, or a function of the arguments that returns one"


class NoSuchParameter(KeyError):
    """A callable grid asked for a parameter that the kernel does not have."""

    def __str__(self) -> str:
        return str(self.args[0])


class GridArguments(dict[str, Any]):
    """The arguments of a launch, by name, as a callable grid gets them."""

    def __init__(self, arguments: Mapping[str, Any] | Iterable[tuple[str, Any]], kernel: str) -> None:
        super().__init__(arguments)
        self.kernel = kernel

    def __missing__(self, name: object) -> Any:
        import difflib  # lazily: only mistakes need it

        close = difflib.get_close_matches(str(name), self, n=1)
        advice = f"did you mean {close[0]!r}?" if close else f"it has {', '.join(self)}"
        raise NoSuchParameter(f"the grid asks for {name!r}, which is no parameter of `{self.kernel}`\nhelp: {advice}")

    def __getattr__(self, name: str) -> Any:
        advice = f"\nhelp: write meta[{name!r}]" if name in self else ""
        raise AttributeError(f"the arguments that a grid gets are a dict, which has no attribute {name!r}{advice}")


def has_float(sizes: Sequence[Any]) -> bool:
    return any(hasattr(size, "is_integer") and not hasattr(size, "__index__") for size in sizes)


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
        advice = "divide with `//`, or with tilework.cdiv, which rounds up" if has_float(sizes) else WRONG_GRID
        raise TypeError(f"grid sizes are integers, got {grid!r}\nhelp: {advice}") from None
    for size in (x, y, z):
        if not 0 <= size <= MOST:
            raise ValueError(f"grid size {size} is not between 0 and {MOST}")
    return x, y, z


@constexpr_function
def cdiv(x: int, y: int) -> int:
    """The quotient, rounded up: ``cdiv(10, 4) == 3`` is the number of programs for 10 elements in blocks of 4.

    Example:
        assert tilework.cdiv(10, 4) == 3
    """
    return (x + y - 1) // y


@constexpr_function
def next_power_of_2(n: int) -> int:
    """The smallest power of two that is not less than `n`: ``next_power_of_2(781) == 1024``, a block that holds a row
    of 781.

    Example:
        assert [tilework.next_power_of_2(n) for n in (1, 3, 64, 781)] == [1, 4, 64, 1024]
    """
    n -= 1
    for shift in (1, 2, 4, 8, 16, 32):  # sets all bits below the highest one; torch.compile keeps it symbolic
        n |= n >> shift
    return n + 1


class BoundLaunch:
    """See the module docstring."""

    def __init__(self, kernel: Any, arg_names: Sequence[str], args: tuple[Any, ...], grid: Any, kwargs: dict[str, Any]):
        if len(args) > len(arg_names):
            raise TypeError(f"{kernel.__name__} takes {len(arg_names)} arguments, and {len(args)} are bound")
        if twice := [name for name in arg_names[: len(args)] if name in kwargs]:
            raise TypeError(f"{kernel.__name__} is bound with two values of {', '.join(twice)}")
        given = dict(zip(arg_names, args, strict=False)) | kwargs
        self.kernel = kernel
        self.arg_names = tuple(arg_names)
        self.positional = len(args)  # a keyword remains a keyword: it may be an option, too
        self.names = tuple(map(sys.intern, given))
        self.values = tuple(given.values())
        self.grid = grid if callable(grid) else tuple(grid) if isinstance(grid, tuple | list) else (grid,)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Launch, with these arguments instead of what is bound."""
        grid = kwargs.pop("grid", self.grid)
        if len(args) > len(self.arg_names):
            raise TypeError(f"{self.kernel.__name__} takes {len(self.arg_names)} arguments, and is given {len(args)}")
        changed = dict(zip(self.arg_names, args, strict=False))
        if twice := [name for name in changed if name in kwargs]:
            raise TypeError(f"{self.kernel.__name__} is given two values of {', '.join(twice)}")
        given = dict(zip(self.names, self.values, strict=True)) | changed | kwargs
        values = [given.pop(name) for name in self.names[: self.positional]]
        return self.kernel[grid](*values, **given)

    def __repr__(self) -> str:
        return f"{self.kernel.__name__}.bind({', '.join(self.names)})"
