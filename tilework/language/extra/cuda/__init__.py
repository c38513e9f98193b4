"""Functions for NVIDIA GPUs: special registers, dependent launches, and `libdevice`."""

from typing import Any

from tilework.language import core
from tilework.language.extra.cuda import libdevice

__all__ = [
    "convert_custom_float8_sm70",
    "convert_custom_float8_sm80",
    "gdc_launch_dependents",
    "gdc_wait",
    "globaltimer",
    "libdevice",
    "num_threads",
    "num_warps",
    "smid",
]

THREADS_PER_WARP = 32


def _asm(_semantic: Any, text: str, constraint: str, dtype: core.dtype, is_pure: bool) -> Any:
    """A scalar from one instruction without inputs."""
    return core.inline_asm_elementwise(text, constraint, [], dtype, is_pure, 1, _semantic=_semantic)


@core.extern
def globaltimer(_semantic: Any = None) -> Any:
    """The time of the GPU's clock in nanoseconds, an int64; every call reads it anew."""
    return _asm(_semantic, "mov.u64 $0, %globaltimer;", "=l", core.int64, is_pure=False)


@core.extern
def smid(_semantic: Any = None) -> Any:
    """The number of the multiprocessor this program runs on, an int32."""
    return _asm(_semantic, "mov.u32 $0, %smid;", "=r", core.int32, is_pure=True)


@core.builtin
def num_threads(_semantic: Any = None) -> Any:
    """How many threads run this program, a constant."""
    return core.constexpr(_semantic.options.num_warps * THREADS_PER_WARP)


@core.builtin
def num_warps(_semantic: Any = None) -> Any:
    """How many warps run this program, a constant."""
    return core.constexpr(_semantic.options.num_warps)


@core.extern
def gdc_wait(_semantic: Any = None) -> None:
    """Wait until the kernels this one depends on have finished (programmatic dependent launch, sm_90)."""
    _asm(_semantic, "griddepcontrol.wait; // dummy $0", "=r", core.int32, is_pure=False)


@core.extern
def gdc_launch_dependents(_semantic: Any = None) -> None:
    """Let the kernels that depend on this one start (programmatic dependent launch, sm_90)."""
    _asm(_semantic, "griddepcontrol.launch_dependents; // dummy $0", "=r", core.int32, is_pure=False)


@core.builtin
def convert_custom_float8_sm80(arg: Any, dst_ty: Any, fp_downcast_rounding: Any = None, _semantic: Any = None) -> Any:
    """Convert to or from fp8e4b15, the format with exponent bias 15 that is computed in software."""
    return core.cast(arg, dst_ty, fp_downcast_rounding, _semantic=_semantic)


@core.builtin
def convert_custom_float8_sm70(arg: Any, dst_ty: Any, fp_downcast_rounding: Any = None, _semantic: Any = None) -> Any:
    """The same conversion as `convert_custom_float8_sm80`; the name that kernels for older GPUs use."""
    return core.cast(arg, dst_ty, fp_downcast_rounding, _semantic=_semantic)
