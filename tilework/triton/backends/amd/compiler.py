"""The HIP backend with Triton's names and interface, and how arguments are specialised for AMD GPUs.

>>> HIPBackend.parse_attr("DS")
[['tt.divisibility', 16], ['tt.pointer_range', 32]]
"""

from typing import Any

from tilework import knobs
from tilework.targets.amd.options import HipOptions as HIPOptions
from tilework.targets.amd.pipeline import HipBackend
from tilework.targets.base import GPUTarget
from tilework.triton.backends.compiler import BaseBackend
from tilework.triton.backends.listed import ListedBackend

__all__ = ["GPUTarget", "HIPBackend", "HIPOptions"]

LIMIT = 2**31 - 1  # a buffer instruction addresses this many bytes


class HIPBackend(HipBackend, ListedBackend):
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
