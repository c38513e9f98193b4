"""The compiler for the host with Triton's interface.

>>> CPUBackend(GPUTarget("cpu", "host", 1)).parse_options({"num_warps": 8}).num_warps
8
"""

from collections.abc import Mapping
from typing import Any

from tilework.targets.base import GPUTarget
from tilework.targets.cpu.pipeline import CpuBackend
from tilework.targets.options import CompileOptions
from tilework.triton.backends.cpu.torch_libraries import kernel_library, launcher_library
from tilework.triton.backends.listed import ListedBackend, known

__all__ = ["CPUBackend", "GPUTarget"]


class CPUBackend(CpuBackend, ListedBackend):
    """The host's compiler as a `BaseBackend`."""

    libraries = {"so": ("ttcir", kernel_library), "launcher.so": ("ttcir", launcher_library)}

    def __init__(self, target: GPUTarget) -> None:
        ListedBackend.__init__(self, target)
        CpuBackend.__init__(self, target)

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return target.backend == "cpu"

    def parse_options(self, opts: Mapping[str, Any]) -> CompileOptions:
        return super().parse_options(known(opts, CompileOptions))
