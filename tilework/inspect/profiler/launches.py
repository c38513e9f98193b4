"""Launches as the recorder passes them to sessions, the work of a launch, and metrics.

>>> Metric.named("cpu_time (ns)(exc)")
Metric(name='cpu_time (ns)', kind='exc')

``flops (inc)`` is summed up the tree, ``cpu_time (ns)(exc)`` is not, ``name (pty)`` is a property. The work of a launch
is what its author reports (`launch_metadata`) and the arguments that an estimate needs; it is seen at launches through
Python, and native launches with the same grid and integers do the same work.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple

from tilework.inspect.profiler.stacks import Path
from tilework.runtime.devices.launcher import Extent, Launcher

KINDS = ("inc", "exc", "pty")
Number = int | float


class Metric(NamedTuple):
    """The stored name, and how values of it go together."""

    name: str
    kind: str

    @classmethod
    def named(cls, text: str) -> "Metric":
        for kind in KINDS:
            if text.endswith(f"({kind})"):
                return cls(text.removesuffix(f"({kind})").rstrip(), kind)
        return cls(text, "inc")


def joined(name: str, kind: str, before: Number | str | None, value: Number | str) -> Number | str:
    """A metric of a node with one more value; a property is replaced."""
    if before is None or kind == "pty" or isinstance(value, str) or isinstance(before, str):
        return value
    if type(before) is not type(value):
        raise RuntimeError(
            f"Metric value type mismatch for {name}: it was {type(before).__name__} ({before}) and is"
            f" {type(value).__name__} ({value}) now"
        )
    return before + value


def checked(metrics: dict[str, Number]) -> dict[str, Number]:
    """Return the metrics of a user as numbers; TypeError for anything else."""
    for name, value in metrics.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not isinstance(name, str) or not (is_number or hasattr(value, "item")):
            raise TypeError(f"a metric is a name and a number, not {name!r}: {value!r}")
    return {name: value if isinstance(value, int | float) else value.item() for name, value in metrics.items()}


@dataclass(frozen=True)
class Launches:
    """One or more launches that differ in their times only; times are nanoseconds of the host's monotonic clock.

    `overheads` is what the calls took beside the programs (on a GPU: the whole calls), where that is known. `work` is
    what a listener found out about one of them, `metrics` what the launch hook said, `python` the Python call stack,
    where a session uses that.
    """

    path: Path
    name: str
    device_type: str
    device: int
    stream: int
    starts: Sequence[int]
    durations: Sequence[int]
    overheads: Sequence[int] = ()
    work: Any = None
    metrics: dict[str, Number] = field(default_factory=dict)
    python: Path = ()


REPORTED = ("flops", "flops8", "flops16", "flops32", "flops64", "bytes")


@dataclass(frozen=True)
class Work:
    """A launch of a kernel: the grid, its integers and the bytes of its arrays by name, and the figures of its
    author."""

    launcher: Launcher
    grid: Extent
    integers: tuple[tuple[str, int], ...]
    sizes: tuple[tuple[str, int], ...]
    reported: tuple[tuple[str, float], ...] = ()
    name: str = ""  # that the author gives it

    @property
    def programs(self) -> int:
        return prod(self.grid)


def work_of(launcher: Launcher, grid: Extent, args: Any) -> Work:
    """Return the work of a launch, before it runs."""
    fn = getattr(launcher.source, "fn", None)
    names = getattr(fn, "arg_names", None) or [str(index) for index in range(len(args))]
    named = dict(zip(names, args, strict=False))
    integers = tuple((name, int(value)) for name, value in named.items() if isinstance(value, int))
    sizes = tuple((name, size) for name, value in named.items() if (size := bytes_of(value)) is not None)
    reported, name = reported_by(fn, grid, launcher.metadata, named)
    return Work(launcher, grid, integers, sizes, reported, name)


def reported_by(
    fn: Any, grid: Extent, metadata: Any, named: dict[str, Any]
) -> tuple[tuple[tuple[str, float], ...], str]:
    """Flops, bytes and name by the kernel's `launch_metadata`; a warning where that fails: a profile must not end a
    program."""
    if (describe := getattr(fn, "launch_metadata", None)) is None:
        return (), ""
    try:
        found = describe(grid, metadata, named)
        return tuple((name, float(found[name])) for name in REPORTED if name in found), str(found.get("name", ""))
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
