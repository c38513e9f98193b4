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
    """The target, with `backend`, `arch` and `warp_size`, or None outside of a compilation and in the interpreter.

    Example:
        @tilework.jit
        def kernel():
            target: tl.constexpr = tl.target_info.current_target()
            tl.static_assert(target is None or target.backend == "cpu")

        kernel[(1,)]()
    """
    return TARGET.get()


@constexpr_function
def is_cuda() -> bool:
    """True for NVIDIA GPUs.

    Example:
        @tilework.jit
        def block_size():
            return 256 if tl.target_info.is_cuda() else 64

        assert call(block_size) == 64  # NumPy's arrays are on the CPU
    """
    target = TARGET.get()
    return target is not None and target.backend == "cuda"


@constexpr_function
def cuda_capability_geq(major: int, minor: int = 0) -> bool:
    """True for NVIDIA GPUs of this compute capability or a later one: ``cuda_capability_geq(8, 9)``.

    Example:
        @tilework.jit
        def stages():
            return 4 if tl.target_info.cuda_capability_geq(9) else 2

        assert call(stages) == 2
    """
    target = TARGET.get()
    return target is not None and target.backend == "cuda" and target.arch >= 10 * major + minor


@constexpr_function
def is_hip() -> bool:
    """True for AMD GPUs.

    Example:
        @tilework.jit
        def lanes():
            return 64 if tl.target_info.is_hip() else 32

        assert call(lanes) == 32
    """
    target = TARGET.get()
    return target is not None and target.backend == "hip"


@constexpr_function
def is_hip_cdna3() -> bool:
    """True for AMD Instinct MI300.

    Example:
        assert not tl.target_info.is_hip_cdna3()
    """
    target = TARGET.get()
    return target is not None and target.backend == "hip" and target.arch == "gfx942"


@constexpr_function
def is_hip_cdna4() -> bool:
    """True for AMD Instinct MI350.

    Example:
        assert not tl.target_info.is_hip_cdna4()
    """
    target = TARGET.get()
    return target is not None and target.backend == "hip" and target.arch == "gfx950"
