"""Names of Triton's testing module that projects use beside its functions."""

from collections.abc import Iterable, Sequence
from typing import Any

from tilework.runtime.tuning.benchmark import summarize
from tilework.triton import runtime

__all__ = ["_summarize_statistics", "runtime"]


def _summarize_statistics(times: Iterable[Any], quantiles: Sequence[float] | None, return_mode: str) -> Any:
    """Return the quantiles of times, or what `return_mode` asks for."""
    return summarize([float(time) for time in times], quantiles, return_mode)
