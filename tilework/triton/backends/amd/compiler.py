"""How arguments are specialised for AMD GPUs. Tilework does not compile for them.

>>> HIPBackend.parse_attr("DS")
[['tt.divisibility', 16], ['tt.pointer_range', 32]]
"""

from types import ModuleType
from typing import Any, NoReturn

from tilework import knobs
from tilework.targets.base import GPUTarget
from tilework.triton.backends.compiler import BaseBackend, Language

LIMIT = 2**31 - 1  # a buffer instruction addresses this many bytes


class HIPBackend(BaseBackend):
    """Knows small tensors: below 2 GiB, 32-bit offsets reach every element."""

    supports_native_tensor_specialization = False

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return target.backend == "hip"

    @staticmethod
    def is_within_2gb(arg: Any) -> bool:
        """Whether the storage of a tensor is known to be below 2 GiB."""
        if hasattr(arg, "ptr_range"):
            return arg.ptr_range() <= LIMIT
        return hasattr(arg, "untyped_storage") and arg.untyped_storage().size() <= LIMIT

    @staticmethod
    def parse_attr(desc: str) -> list[list[Any]]:
        return BaseBackend.parse_attr(desc) + ([["tt.pointer_range", 32]] if "S" in desc else [])

    @staticmethod
    def get_tensor_specialization(arg: Any, **kwargs: Any) -> str:
        key = BaseBackend.get_tensor_specialization(arg, **kwargs)
        return key + "S" if knobs.amd.use_buffer_ops and HIPBackend.is_within_2gb(arg) else key

    def hash(self) -> str:
        return f"hip-{self.target.arch}"

    def parse_options(self, options: dict[str, Any]) -> NoReturn:
        raise ValueError("tilework does not compile for AMD GPUs; it has the targets cuda and cpu")

    def add_stages(self, stages: dict[str, Any], options: Any, language: Language = Language.TRITON) -> None:
        self.parse_options({})

    def load_dialects(self, context: Any) -> None:
        """There are none."""

    def get_module_map(self) -> dict[str, ModuleType]:
        """Nothing is replaced."""
        return {}
