"""The host: the list of stages."""

from collections.abc import Mapping
from typing import Any

from tilework.backends.base import GPUTarget, Stage, run_passes
from tilework.transforms.pipelines import ttir_pipeline


class CpuBackend:
    """``cpu``: descriptors become ordinary loads and stores, as on GPUs without TMA."""

    def __init__(self, target: GPUTarget) -> None:
        self.target = target

    def stages(self, options: Mapping[str, Any]) -> dict[str, Stage]:
        """TTIR so far; native code arrives with the CPU backend."""
        return {"ttir": lambda module: run_passes(module, ttir_pipeline(None))}
