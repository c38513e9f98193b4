"""The CUDA backend and its options with Triton's names and interface.

>>> CUDABackend(GPUTarget("cuda", 90, 32)).parse_options({"num_warps": 8}).default_dot_input_precision
'tf32'
"""

from dataclasses import dataclass, fields
from typing import Any

from tilework.backends.base import GPUTarget
from tilework.backends.cuda.pipeline import CudaBackend
from tilework.backends.options import CompileOptions
from tilework.triton.backends.listed import ListedBackend

__all__ = ["CUDABackend", "CUDAOptions", "GPUTarget"]


@dataclass(frozen=True)
class CUDAOptions(CompileOptions):
    """Compile options with the defaults of the oldest supported GPU."""

    backend_name: str = "cuda"
    warp_size: int = 32
    supported_fp8_dtypes: tuple[str, ...] = ("fp8e4b15", "fp8e5")
    default_dot_input_precision: str = "tf32"


class CUDABackend(CudaBackend, ListedBackend):
    """The CUDA backend as a `BaseBackend`."""

    def __init__(self, target: GPUTarget) -> None:
        ListedBackend.__init__(self, target)
        CudaBackend.__init__(self, target)

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return target.backend == "cuda"

    def parse_options(self, opts: Any) -> CUDAOptions:
        options = super().parse_options(opts)
        return CUDAOptions(**{field.name: getattr(options, field.name) for field in fields(options)})
