"""What one launch had to do: what its author says (`launch_metadata`), and what its arguments tell for an estimate.

Seen at the launches that go through Python; those in machine code with the same grid and integers do the same.
"""

import warnings
from dataclasses import dataclass
from math import prod
from typing import Any

from tilework.runtime.devices.launcher import Extent, Launcher

TOLD = ("flops", "flops8", "flops16", "flops32", "flops64", "bytes")


@dataclass(frozen=True)
class Work:
    """A launch of a kernel: the grid, its integers and the bytes of its arrays by name, and what was told of it."""

    launcher: Launcher
    grid: Extent
    numbers: tuple[tuple[str, int], ...]
    sizes: tuple[tuple[str, int], ...]
    told: tuple[tuple[str, float], ...] = ()
    name: str = ""  # that the author gives it

    @property
    def programs(self) -> int:
        return prod(self.grid)


def work_of(launcher: Launcher, grid: Extent, args: Any) -> Work:
    """What can be said of a launch before it runs."""
    fn = getattr(launcher.source, "fn", None)
    names = getattr(fn, "arg_names", None) or [str(index) for index in range(len(args))]
    named = dict(zip(names, args, strict=False))
    numbers = tuple((name, int(value)) for name, value in named.items() if isinstance(value, int))
    sizes = tuple((name, size) for name, value in named.items() if (size := bytes_of(value)) is not None)
    told, name = told_by(fn, grid, launcher.metadata, named)
    return Work(launcher, grid, numbers, sizes, told, name)


def told_by(fn: Any, grid: Extent, metadata: Any, named: dict[str, Any]) -> tuple[tuple[tuple[str, float], ...], str]:
    """Flops, bytes and name by the kernel's `launch_metadata`; a warning where that fails: a profile must not end a program."""
    if (tell := getattr(fn, "launch_metadata", None)) is None:
        return (), ""
    try:
        found = tell(grid, metadata, named)
        return tuple((name, float(found[name])) for name in TOLD if name in found), str(found.get("name", ""))
    except Exception as error:  # of the user's function
        warnings.warn(f"launch_metadata of {fn.__name__} raised {type(error).__name__}: {error}", stacklevel=2)
        return (), ""


def bytes_of(value: Any) -> int | None:
    """The bytes of an array, a tensor, or what a descriptor describes; None for anything else."""
    value = getattr(value, "base", value) if hasattr(value, "block_shape") else value
    size = getattr(value, "nbytes", None)
    if isinstance(size, int):
        return size
    if hasattr(value, "numel") and hasattr(value, "element_size"):
        return int(value.numel()) * int(value.element_size())
    return None
