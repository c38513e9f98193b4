"""A launch with its arguments in it, for loops that change only some of them.

    launch = add.bind(x, y, out, n, BLOCK=1024, grid=lambda meta: (cdiv(meta["n"], meta["BLOCK"]),))
    launch()                          # add[grid](x, y, out, n, BLOCK=1024)
    launch(x2)                        # the first argument is another one, this time
    launch(x=x2, n=m, grid=(7,))      # by name; the grid can change, too

A call is the launch that `kernel[grid]` would be with these arguments: the same results, errors and hooks. What is bound stays alive,
and is looked at again at every call, so that a tensor that was resized in between is not read where it was.
"""

import sys
from collections.abc import Sequence
from typing import Any


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
        self.positional = len(args)  # a keyword stays one: it may be an option, too
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
