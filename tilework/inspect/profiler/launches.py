"""Launches as the recorder gives them to sessions: those of one kernel, at one place of the program, together."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tilework.inspect.profiler.metric_names import Number
from tilework.inspect.profiler.stacks import Path


@dataclass(frozen=True)
class Launches:
    """One or more launches that differ in their times only; times are nanoseconds of the host's monotonic clock.

    `overheads` is what the calls took beside the programs (on a GPU: the whole calls), where that is known. `work` is what a listener
    found out about one of them, `metrics` what the launch hook said, `python` the Python call stack, where a session asks for that.
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
