"""Choices that were made elsewhere: those of a bundle, and none at all where nothing may be tuned."""

from collections.abc import Mapping, Sequence
from typing import Any

from tilework import knobs
from tilework.errors import NotRecorded
from tilework.knobs.hooks import SERVERS
from tilework.metrics import count


def served_choice(tuner: Any, named: Mapping[str, Any], kwargs: Mapping[str, Any]) -> Any:
    """The configuration that a bundle has for these arguments; None if there is no bundle, or tuning may find it."""
    if not (SERVERS or knobs.runtime.bundle):
        return None
    from tilework.runtime.bundle.serving import choice_for  # lazily: few programs are served

    return choice_for(tuner, named, kwargs)


def count_tuning(fn: Any, seconds: float) -> None:
    """For `tilework.metrics`."""
    labels = {"kernel": f"{fn.__module__}.{fn.__qualname__}"}
    count("tunings", 1, **labels)
    count("tuning_seconds", seconds, **labels)


def check_may_tune(name: str, key: tuple[Any, ...], missing: Sequence[Any]) -> None:
    """Refuse to measure under TILEWORK_NO_JIT=1; timings that are on disk are as good as ever."""
    if missing and knobs.runtime.no_jit:
        count("refusals", kernel=name)
        raise NotRecorded(
            f"TILEWORK_NO_JIT=1 forbids to tune {name} for the key {key}, of which {len(missing)} configurations have not been"
            " measured: tune it before (`tilework tune`), or serve it from a bundle that was recorded with this key"
        )
