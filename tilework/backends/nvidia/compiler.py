"""The CUDA backend and its options with Triton's names and interface.

>>> CUDABackend(GPUTarget("cuda", 90, 32)).parse_options({"num_warps": 8}).default_dot_input_precision
'tf32'
"""

from dataclasses import dataclass, fields
from types import ModuleType
from typing import Any

from tilework.backends.base import GPUTarget
from tilework.backends.compiler import BaseBackend, Language
from tilework.backends.cuda.pipeline import CudaBackend
from tilework.backends.options import CompileOptions

__all__ = ["CUDABackend", "CUDAOptions", "GPUTarget"]


@dataclass(frozen=True)
class CUDAOptions(CompileOptions):
    """Compile options with the defaults of the oldest supported GPU."""

    backend_name: str = "cuda"
    warp_size: int = 32
    supported_fp8_dtypes: tuple[str, ...] = ("fp8e4b15", "fp8e5")
    default_dot_input_precision: str = "tf32"


class CUDABackend(CudaBackend, BaseBackend):
    """The CUDA backend as a `BaseBackend`."""

    def __init__(self, target: GPUTarget) -> None:
        BaseBackend.__init__(self, target)
        CudaBackend.__init__(self, target)

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return target.backend == "cuda"

    def parse_options(self, settings: Any) -> CUDAOptions:
        options = super().parse_options(settings)
        return CUDAOptions(**{field.name: getattr(options, field.name) for field in fields(options)})

    def add_stages(self, stages: dict[str, Any], options: Any, language: Language = Language.TRITON) -> None:
        if language is not Language.TRITON:
            raise ValueError("tilework compiles kernels of the tile language, not Gluon")
        for name, stage in self.stages(options).items():
            stages[name] = lambda product, metadata, stage=stage: stage(product)

    def load_dialects(self, context: Any) -> None:
        """Nothing to do: a context has every dialect."""

    def get_module_map(self) -> dict[str, ModuleType]:
        """Nothing is replaced: `tl.extra.libdevice` resolves by target in the compiler."""
        return {}
