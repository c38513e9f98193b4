"""Launch on the host without machine code: the evaluator executes the kernel's optimised TTIR."""

from collections.abc import Sequence
from math import prod
from typing import Any

from tilework.language.function import JITCallable
from tilework.runtime.devices.host.arrays import as_array
from tilework.runtime.devices.launcher import Extent, Launcher, Scratch

MOST_PROGRAMS = 2**31


class EvaluatorLauncher(Launcher):
    """Runs one compiled kernel, program after program."""

    def start(self, grid: Extent, stream: int, function: object, args: Sequence[object], scratch: Scratch) -> None:
        """Run every program of the grid, in order."""
        self.evaluate(grid, function, args, scratch)

    def evaluate(self, grid: Extent, function: Any, args: Sequence[Any], scratch: Scratch, races: Any = None) -> None:
        """The same; `races` is memory that looks for races."""
        from tilework.oracles.evaluator import evaluate  # lazily: a whole executor, which few programs use

        if prod(grid) > MOST_PROGRAMS:
            sizes = " x ".join(map(str, grid))
            raise ValueError(f"a grid of {sizes} has {prod(grid)} programs; at most {MOST_PROGRAMS} can be run")
        values: list[Any] = []
        for type, arg in zip(self.signature or ["?"] * len(args), args, strict=True):
            runtime_values(type, arg, values)
        if self.needs_scratch:
            values += [buffer.data_ptr() if buffer is not None else None for buffer in scratch]
        evaluate(function, self.name, values, grid, foreign=True, races=races)


def runtime_values(type: Any, arg: Any, values: list[Any]) -> None:
    """The leaves of an argument that exist at run time, as the evaluator takes them."""
    if type == "constexpr" or isinstance(arg, JITCallable):
        return
    if isinstance(type, tuple):
        for inner, item in zip(type, arg, strict=True):
            runtime_values(inner, item, values)
    elif isinstance(type, str) and type.startswith("tensordesc"):
        padding = getattr(arg, "padding", "zero")
        host = (as_array(arg.base), tuple(arg.shape), tuple(arg.strides))
        values.append((*host, "nan") if padding == "nan" else host)
    elif (isinstance(type, str) and type.startswith("*")) or hasattr(arg, "data_ptr"):
        values.append(as_array(arg))
    else:
        values.append(arg)
