"""Timings of the autotuner on disk, one per configuration.

    <cache dir>/<key>/matmul.autotune.json
    {"kernel": "matmul", "key": "(1024, 'fp32')", "timings": {"{'BLOCK': 64, 'num_warps': 4, ...}": [0.41, 0.40, 0.43]}}

The key covers everything that a timing depends on besides the configuration: this package, the backend and its tools,
the kernel's source, the environment and the tuning key. So a list of configurations that grew by one needs one
measurement. A configuration that cannot run has the timing null, and is not tried again. A file that cannot be read, or
that holds something else, is as good as none.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilework.runtime.devices.active_driver import driver
from tilework.runtime.kernel_cache.environment import cache_invalidating_env_vars
from tilework.runtime.kernel_cache.managers import file_stem, get_cache_manager, triton_key
from tilework.runtime.tuning.config import Config
from tilework.targets.base import find_backend

Timing = Any  # what a benchmarker returned: a number, or a list of them
FAILED = (math.inf, math.inf, math.inf)


@dataclass(frozen=True)
class TuningResults:
    """The results file of one kernel and one tuning key."""

    kernel: str
    tuning_key: str
    folder: str

    @classmethod
    def of(cls, fn: Any, tuning_key: tuple[Any, ...]) -> "TuningResults":
        """The file for a kernel on the active device."""
        target = driver.active.get_current_target()
        parts = [
            triton_key(),
            find_backend(target).hash(),
            str(target),
            fn.cache_key,
            str(sorted(cache_invalidating_env_vars().items())),
            str(tuning_key),
        ]
        folder = hashlib.sha256("-".join(["autotune", *parts]).encode()).hexdigest()
        return cls(fn.__name__, str(tuning_key), folder)

    @property
    def file(self) -> str:
        """The name of the file."""
        return f"{file_stem(self.kernel)}.autotune.json"

    def load(self) -> dict[str, Timing]:
        """Timings by `config_text`; empty if there are none."""
        path = get_cache_manager(self.folder).get_file(self.file)
        if path is None:
            return {}
        try:
            found = json.loads(Path(path).read_text())["timings"]
            return {str(text): decode_timing(value) for text, value in found.items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return {}

    def store(self, timings: Mapping[str, Timing]) -> None:
        """Add timings to those that are there; the file is replaced in one step."""
        merged = {text: encode_timing(value) for text, value in {**self.load(), **timings}.items()}
        data = {"kernel": self.kernel, "key": self.tuning_key, "timings": merged}
        get_cache_manager(self.folder).put(json.dumps(data, indent=1), self.file, binary=False)


def config_text(config: Config) -> str:
    """What tells a configuration from others, across processes; a file that replaces a stage counts by its content."""
    settings = config.all_kwargs()
    if isinstance(path := settings.get("ir_override"), str) and Path(path).is_file():
        settings["ir_override"] = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    return str(dict(sorted(settings.items())))


def is_storable(timing: Timing) -> bool:
    """Numbers can be stored; what else a user's benchmarker may return cannot."""
    values = timing if isinstance(timing, list | tuple) else [timing]
    return all(isinstance(value, int | float) for value in values)


def encode_timing(timing: Timing) -> Any:
    """JSON has no infinity: a failed configuration is null."""
    return None if has_failed(timing) else timing


def decode_timing(value: Any) -> Timing:
    """The inverse of `encode_timing`; anything that is not a timing is a TypeError."""
    if value is None:
        return list(FAILED)
    if not is_storable(value) or value == []:
        raise TypeError(f"not a timing: {value!r}")
    return value


def order(timing: Timing) -> list[float]:
    """Timings compare as lists, numbers as lists of one."""
    return list(timing) if isinstance(timing, list | tuple) else [timing]


def has_failed(timing: Timing) -> bool:
    """Whether the configuration could not run."""
    return math.isinf(order(timing)[0])
