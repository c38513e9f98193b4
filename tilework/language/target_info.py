"""What a kernel may ask about the device it is compiled for; every answer is a constant.

    if tl.target_info.cuda_capability_geq(9):
        ...                                     # compiled only for Hopper and newer

The compiler sets `TARGET` while it works; outside of a compilation there may be none.
"""

from contextvars import ContextVar
from typing import Any

from tilework.language.function import constexpr_function

TARGET: ContextVar[Any] = ContextVar("TARGET", default=None)

__all__ = ["cuda_capability_geq", "current_target", "is_cuda", "is_hip", "is_hip_cdna3", "is_hip_cdna4"]


@constexpr_function
def current_target() -> Any:
    """The target, with `backend`, `arch` and `warp_size`, or None."""
    return TARGET.get()


@constexpr_function
def is_cuda() -> bool:
    """True for NVIDIA GPUs."""
    target = TARGET.get()
    return target is not None and target.backend == "cuda"


@constexpr_function
def cuda_capability_geq(major: int, minor: int = 0) -> bool:
    """True for NVIDIA GPUs of this compute capability or a later one: ``cuda_capability_geq(8, 9)``."""
    target = TARGET.get()
    return target is not None and target.backend == "cuda" and target.arch >= 10 * major + minor


@constexpr_function
def is_hip() -> bool:
    """True for AMD GPUs."""
    target = TARGET.get()
    return target is not None and target.backend == "hip"


@constexpr_function
def is_hip_cdna3() -> bool:
    """True for AMD Instinct MI300."""
    target = TARGET.get()
    return target is not None and target.backend == "hip" and target.arch == "gfx942"


@constexpr_function
def is_hip_cdna4() -> bool:
    """True for AMD Instinct MI350."""
    target = TARGET.get()
    return target is not None and target.backend == "hip" and target.arch == "gfx950"
