"""Modes of measurement: ``mode="pcsampling:interval=1000"`` or `PCSampling(interval=1000)`, and those of
instrumentation.

>>> str(PCSampling(interval=500))
'pcsampling:interval=500'
>>> str(Default(granularity="warp_2")).split(":")[:3]
['default', 'metric_type=cycle', 'sampling_strategy=none']
"""

from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any


class Choice(Enum):
    """A setting that has some values; it prints as its name in a mode."""

    def __str__(self) -> str:
        return str(self.value)


METRIC_TYPE = Choice("METRIC_TYPE", {"CYCLE": "cycle"})
SAMPLING_STRATEGY = Choice("SAMPLING_STRATEGY", {"NONE": "none", "SELECTIVE": "selective"})
BUFFER_STRATEGY = Choice("BUFFER_STRATEGY", {"CIRCULAR": "circular", "FLUSH": "flush"})
BUFFER_TYPE = Choice("BUFFER_TYPE", {"SHARED": "shared", "GLOBAL": "global"})
GRANULARITY = Choice(
    "GRANULARITY",
    {name.upper(): name for name in ("cta", "warp", "warp_2", "warp_4", "warp_8")}
    | {name.upper(): name for name in ("warp_group", "warp_group_2", "warp_group_4", "warp_group_8")},
)


Optimize = Choice(  # what may be done to make clocks cheaper
    "Optimize",
    {"TIMESHIFT": "time_shift", **{name.upper(): name for name in ("sched_stores", "sched_barriers", "clock32")}},
)


def by_value(choices: Any) -> dict[str, Any]:
    return {choice.value: choice for choice in choices}


metric_types = by_value(METRIC_TYPE)
sampling_strategies = by_value(SAMPLING_STRATEGY)
buffer_strategies = by_value(BUFFER_STRATEGY)
buffer_types = by_value(BUFFER_TYPE)
granularities = by_value(GRANULARITY)
optimizations = by_value(Optimize)
CHOICES = {
    "metric_type": metric_types,
    "sampling_strategy": sampling_strategies,
    "buffer_strategy": buffer_strategies,
    "buffer_type": buffer_types,
    "granularity": granularities,
}


@dataclass(frozen=True)
class BaseMode:
    """A mode by name."""

    name: str


@dataclass(frozen=True)
class PCSampling(BaseMode):
    """Look where each warp is, every so many cycles."""

    name: str = field(default="pcsampling", init=False)
    interval: int = 1000

    def __post_init__(self) -> None:
        if not isinstance(self.interval, int) or self.interval <= 0:
            raise ValueError("Interval must be a positive integer.")

    def __str__(self) -> str:
        return f"{self.name}:interval={self.interval}"


@dataclass(frozen=True)
class InstrumentationMode(BaseMode):
    """The settings of clocks inside of kernels: metric, granularity and buffer."""

    metric_type: Any = METRIC_TYPE.CYCLE  # pyright: ignore[reportAttributeAccessIssue]
    sampling_strategy: Any = SAMPLING_STRATEGY.NONE  # pyright: ignore[reportAttributeAccessIssue]
    sampling_options: str = ""
    granularity: Any = GRANULARITY.WARP  # pyright: ignore[reportAttributeAccessIssue]
    buffer_strategy: Any = BUFFER_STRATEGY.CIRCULAR  # pyright: ignore[reportAttributeAccessIssue]
    buffer_type: Any = BUFFER_TYPE.SHARED  # pyright: ignore[reportAttributeAccessIssue]
    buffer_size: int = 0
    optimizations: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Values may be given by their names."""
        for name, known in CHOICES.items():
            object.__setattr__(self, name, chosen(name, getattr(self, name), known))
        listed = self.optimizations
        names = [part for part in listed.split(",") if part] if isinstance(listed, str) else listed
        object.__setattr__(self, "optimizations", [chosen("optimization", item, optimizations) for item in names])
        object.__setattr__(self, "buffer_size", int(self.buffer_size))

    def __str__(self) -> str:
        parts = [self.name]
        for setting in fields(self)[1:]:
            value = getattr(self, setting.name)
            parts.append(f"{setting.name}={','.join(map(str, value)) if isinstance(value, list) else value}")
        return ":".join(parts)


@dataclass(frozen=True)
class Default(InstrumentationMode):
    """Time the scopes of a kernel."""

    name: str = field(default="default", init=False)


@dataclass(frozen=True)
class MMA(InstrumentationMode):
    """Time the dots of a kernel."""

    name: str = field(default="mma", init=False)


def chosen(name: str, value: Any, known: dict[str, Any]) -> Any:
    if isinstance(value, Enum):
        return value
    if value not in known:
        raise ValueError(f"Unknown {name}: {value}")
    return known[value]


def interpret_mode(mode: str | InstrumentationMode | None) -> InstrumentationMode:
    """A mode of instrumentation from its text: ``default:granularity=warp:buffer_type=global``."""
    if isinstance(mode, InstrumentationMode):
        return mode
    name, *parts = (mode or "default").split(":")
    kinds = {"default": Default, "mma": MMA}
    if name not in kinds:
        raise ValueError(f"Unknown mode: {name}")
    known = {setting.name for setting in fields(InstrumentationMode)[1:]}
    settings: dict[str, Any] = {}
    for part in parts:
        setting, has_value, value = part.partition("=")
        if not has_value or setting not in known:
            raise ValueError(f"Malformed instrumentation option: '{part}'")
        settings[setting] = value
    return kinds[name](**settings)
