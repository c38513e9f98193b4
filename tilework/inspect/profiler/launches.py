"""Launches as the recorder passes them to sessions, the work of a launch, and metrics.

>>> Metric.named("cpu_time (ns)(exc)")
Metric(name='cpu_time (ns)', kind='exc')

``flops (inc)`` is summed up the tree, ``cpu_time (ns)(exc)`` is not, ``name (pty)`` is a property. The work of a launch
is what its author reports (`launch_metadata`) and the arguments that an estimate needs; it is seen at launches through
Python, and native launches with the same grid and integers do the same work.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import dropwhile
from math import prod
from typing import Any, NamedTuple

from tilework.inspect.profiler.stacks import Path
from tilework.runtime.devices.active_driver import DEVICE, driver, location_of
from tilework.runtime.devices.launcher import Extent, Launcher

KINDS = ("inc", "exc", "pty")
Number = int | float
Value = Number | list[Number]  # of a metric


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


def joined(name: str, kind: str, before: Value | str | None, value: Value | str) -> Value | str:
    """Return a metric of a node with one more value: a property is replaced, numbers and vectors are added."""
    if before is None or kind == "pty" or isinstance(value, str) or isinstance(before, str):
        return value
    if isinstance(before, list) and isinstance(value, list) and len(before) == len(value):
        return [one + other for one, other in zip(before, value, strict=True)]
    if type(before) is not type(value) or isinstance(before, list) or isinstance(value, list):
        raise RuntimeError(
            f"Metric value type mismatch for {name}: it was {type(before).__name__} ({before}) and is"
            f" {type(value).__name__} ({value}) now"
        )
    return before + value


def metric_value(value: Any) -> Value | None:
    """Return a number, a sequence of numbers, an array or a tensor of at most one dimension as a metric; None for
    anything else. Tensors are read at once, wherever they are. Leading dimensions of size 1 do not count, and a tensor
    with a single element is a number."""
    if hasattr(value, "tolist"):
        if not is_vector(value):
            return None
        value = value.tolist()
        while isinstance(value, list) and len(value) == 1:
            (value,) = value
    if isinstance(value, int | float):
        return int(value) if isinstance(value, bool) else value
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        return None
    items = [metric_value(item) for item in value]
    numbers = [item for item in items if isinstance(item, int | float)]
    if len(numbers) < len(items):
        return None
    return [*map(float, numbers)] if any(isinstance(item, float) for item in numbers) else [*numbers]


def is_vector(value: Any) -> bool:
    """Return True for an array of at most one dimension, without those of size 1 that come first."""
    return len([*dropwhile(lambda size: size == 1, getattr(value, "shape", ()))]) <= 1


@dataclass(frozen=True)
class Unread:
    """A metric of a launch on a device: a copy in stream order, since a read would wait for the device at each
    launch."""

    copy: Any

    def read(self) -> Value | None:
        return metric_value(self.copy)


def launch_metric(value: Any) -> Value | Unread | None:
    """Return the value as `metric_value`, but tensors on a device as `Unread`; None for a tensor on a device while a
    graph is captured, which would compute the value at each replay, not now."""
    value = tuple(value) if isinstance(value, list) else value
    if not location_of(value) & DEVICE:
        return metric_value(value)
    if not all(map(is_vector, value if isinstance(value, tuple) else (value,))) or is_capturing():
        return None
    return Unread(copied(value))


def copied(value: Any) -> Any:
    """Return the value with copies of the tensors on a device, which are enqueued in the current stream."""
    if isinstance(value, tuple):
        return tuple(map(copied, value))
    if location_of(value) != DEVICE:
        return value
    value = value.detach() if hasattr(value, "detach") else value
    return value.clone() if hasattr(value, "clone") else value.copy() if hasattr(value, "copy") else value


def is_capturing() -> bool:
    """Return True while the current stream records a graph."""
    active = driver.active
    gpus = getattr(active, "gpus", None)
    return gpus is not None and gpus.is_capturing(active.get_current_stream(active.get_current_device()))


def checked(metrics: Mapping[str, Any]) -> dict[str, Value]:
    """Return the metrics of a user as numbers and vectors; TypeError for anything else."""
    found = {name: metric_value(value) for name, value in metrics.items()}
    for name, value in found.items():
        if not isinstance(name, str) or value is None:
            raise TypeError(
                f"a metric is a name and a number, or a sequence of numbers, not {name!r}: {metrics[name]!r}"
            )
    return {name: value for name, value in found.items() if value is not None}


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
    metrics: dict[str, Value | Unread] = field(default_factory=dict)
    python: Path = ()

    @property
    def is_read(self) -> bool:
        """True if no metric is on a device."""
        return not any(isinstance(value, Unread) for value in self.metrics.values())

    def read(self) -> "Launches":
        """Return them with the values of metrics that are on a device."""
        found = {name: value.read() if isinstance(value, Unread) else value for name, value in self.metrics.items()}
        return replace(self, metrics={name: value for name, value in found.items() if value is not None})


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
