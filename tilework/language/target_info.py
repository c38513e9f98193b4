"""The target of the kernel that is being compiled, as constants; on the host, the target of the active driver.

    if tl.target_info.cuda_capability_geq(9):
        ...                                     # compiled only for Hopper and newer

The compiler sets `TARGET` while it works; interpreted kernels (`IS_INTERPRETED`) have no target. Outside of kernels
`active_target`, which `runtime/devices` assigns, answers: libraries choose their tile sizes so.
"""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from tilework.language.function import constexpr_function

TARGET: ContextVar[Any] = ContextVar("TARGET", default=None)
IS_INTERPRETED: ContextVar[bool] = ContextVar("IS_INTERPRETED", default=False)
active_target: Callable[[], Any] | None = None

__all__ = [
    "cuda_capability_geq",
    "current_target",
    "is_cuda",
    "is_hip",
    "is_hip_cdna3",
    "is_hip_cdna4",
    "is_hip_gfx1250",
]


def _target() -> Any:
    found = TARGET.get()
    if found is not None or IS_INTERPRETED.get() or active_target is None:
        return found
    return active_target()


@constexpr_function
def current_target() -> Any:
    """The current target, with `backend`, `arch` and `warp_size`, or None in the interpreter.

    On the host, it is the target of the active driver, or None if there is no driver.

    Example:
        @tilework.jit
        def kernel():
            target: tl.constexpr = tl.target_info.current_target()
            tl.static_assert(target is None or target.backend == "cpu")

        kernel[(1,)]()
    """
    return _target()


@constexpr_function
def is_cuda() -> bool:
    """True for NVIDIA GPUs.

    Example:
        @tilework.jit
        def block_size():
            return 256 if tl.target_info.is_cuda() else 64

        assert call(block_size) == 64  # NumPy's arrays are on the CPU
    """
    target = _target()
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
    target = _target()
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
    target = _target()
    return target is not None and target.backend == "hip"


@constexpr_function
def is_hip_cdna3() -> bool:
    """True for AMD Instinct MI300.

    Example:
        assert not tl.target_info.is_hip_cdna3()
    """
    target = _target()
    return target is not None and target.backend == "hip" and target.arch == "gfx942"


@constexpr_function
def is_hip_cdna4() -> bool:
    """True for AMD Instinct MI350.

    Example:
        assert not tl.target_info.is_hip_cdna4()
    """
    target = _target()
    return target is not None and target.backend == "hip" and target.arch == "gfx950"


@constexpr_function
def is_hip_gfx1250() -> bool:
    """True for AMD's gfx1250.

    Example:
        assert not tl.target_info.is_hip_gfx1250()
    """
    target = _target()
    return target is not None and target.backend == "hip" and target.arch == "gfx1250"
