"""The HIP backend with Triton's names and interface, and how arguments are specialised for AMD GPUs.

>>> HIPBackend.parse_attr("DS")
[['tt.divisibility', 16], ['tt.pointer_range', 32]]
"""

from typing import Any

from tilework import knobs
from tilework.runtime.launch.python.specialize import is_small, parse_attr
from tilework.target import Target
from tilework.targets.amd.options import HipOptions as HIPOptions
from tilework.targets.amd.pipeline import HipBackend
from tilework.targets.base import GPUTarget
from tilework.targets.options import CompileOptions
from tilework.triton.backends.compiler import BaseBackend
from tilework.triton.backends.listed import ListedBackend, known

__all__ = ["GPUTarget", "HIPBackend", "HIPOptions", "get_min_dot_size"]


class HIPBackend(HipBackend, ListedBackend):
    """Knows small tensors: below 2 GiB, 32-bit offsets reach every element."""

    supports_native_tensor_specialization = False

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return target.backend == "hip"

    def parse_options(self, opts: Any) -> CompileOptions:
        return super().parse_options(known(opts, HIPOptions))

    is_within_2gb = staticmethod(is_small)

    @staticmethod
    def parse_attr(desc: str) -> list[list[Any]]:
        return parse_attr(desc)

    @staticmethod
    def get_tensor_specialization(arg: Any, **kwargs: Any) -> str:
        key = BaseBackend.get_tensor_specialization(arg, **kwargs)
        return key + "S" if knobs.amd.use_buffer_ops and is_small(arg) else key


def get_min_dot_size(target: GPUTarget) -> Any:
    """Return what gives the smallest dot (m, n, k) that a target takes, for two operand types."""
    return Target.of(target).min_dot_size
