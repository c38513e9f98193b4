"""What makes a kernel slow on a GPU, if somebody asked for remarks: see `targets/diagnostics.py`."""

from typing import Any

from tilework.targets.base import run_passes
from tilework.targets.diagnostics import wants_remarks

LAST = "tritongpu-performance-remarks"


def reporting(module: Any, names: list[str], tag: str) -> Any:
    """Run passes, and look at the finished module too when remarks are wanted."""
    return run_passes(module, [*names, LAST] if wants_remarks() else names, tag)
