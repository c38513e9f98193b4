"""NVIDIA GPUs: the list of stages."""

from collections.abc import Mapping
from typing import Any

from tilework.backends.base import GPUTarget, Stage, run_passes
from tilework.transforms.pipelines import ttir_pipeline


class CudaBackend:
    """``cuda:CAPABILITY``: 80 is Ampere, 90 is Hopper."""

    def __init__(self, target: GPUTarget) -> None:
        self.target = target

    def stages(self, options: Mapping[str, Any]) -> dict[str, Stage]:
        """TTIR so far; the stages below it arrive with the GPU middle end."""
        capability = self.target.arch
        assert isinstance(capability, int)
        return {"ttir": lambda module: run_passes(module, ttir_pipeline(capability))}
