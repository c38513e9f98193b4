"""The host: the list of stages."""

import platform
from collections.abc import Mapping
from typing import Any

from tilework.backends.base import GPUTarget, Stage, run_passes
from tilework.backends.options import CompileOptions


class CpuBackend:
    """``cpu``: descriptors become ordinary loads and stores, as on GPUs without TMA."""

    binary_ext = "ttir"

    def __init__(self, target: GPUTarget) -> None:
        self.target = target

    def parse_options(self, settings: Mapping[str, Any]) -> CompileOptions:
        """Options; those about warps and clusters are accepted and mean nothing here."""
        return CompileOptions.of(settings, backend_name="cpu", warp_size=1, arch=platform.machine())

    def stages(self, options: CompileOptions) -> dict[str, Stage]:
        """TTIR so far; native code arrives with the CPU backend."""
        from tilework.transforms.pipelines import ttir_pipeline

        return {"ttir": lambda module: run_passes(module, ttir_pipeline(None))}

    def hash(self) -> str:
        """The kind of machine."""
        return f"cpu-{platform.machine()}"
