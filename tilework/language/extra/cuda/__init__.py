"""Functions for NVIDIA GPUs: special registers, dependent launches, and `libdevice`.

A kernel that calls one of the registers or dependent launches can be compiled for NVIDIA GPUs only;
`tl.target_info.is_cuda()` keeps the call out of other compilations.

Example:
    @tilework.jit
    def kernel(out):
        if tl.target_info.is_cuda():
            tl.store(out, tl.extra.cuda.smid())
        else:
            tl.store(out, -1)

    out = np.zeros(1, np.int32)
    kernel[(1,)](out)  # NumPy's arrays are on the CPU
    assert out[0] == -1
"""

from typing import TYPE_CHECKING, Any

from tilework.language import core
from tilework.language.compile_time import SUPPLIED
from tilework.language.extra.cuda import libdevice

if TYPE_CHECKING:
    from tilework.language.semantic import Semantic

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


def _asm(_semantic: "Semantic", text: str, constraint: str, dtype: core.dtype, is_pure: bool) -> Any:
    """A scalar from one instruction without inputs."""
    return core.inline_asm_elementwise(text, constraint, [], dtype, is_pure, 1, _semantic=_semantic)


@core.extern
def globaltimer(_semantic: "Semantic" = SUPPLIED) -> core.tensor:
    """The time of the GPU's clock in nanoseconds, an int64; every call reads the clock again.

    Example:
        @tilework.jit
        def kernel(out):
            tl.store(out, tl.extra.cuda.globaltimer())

        source = tilework.compiler.ASTSource(kernel, {"out": "*i64"})
        stages = tilework.compiler.lower(source, tilework.compiler.GPUTarget("cuda", 90, 32), ["ptx"])
        assert "%globaltimer" in stages["ptx"]
    """
    return _asm(_semantic, "mov.u64 $0, %globaltimer;", "=l", core.int64, is_pure=False)


@core.extern
def smid(_semantic: "Semantic" = SUPPLIED) -> core.tensor:
    """The id of the multiprocessor that this program runs on, an int32.

    Example:
        @tilework.jit
        def kernel(out):
            tl.store(out + tl.program_id(0), tl.extra.cuda.smid())

        source = tilework.compiler.ASTSource(kernel, {"out": "*i32"})
        stages = tilework.compiler.lower(source, tilework.compiler.GPUTarget("cuda", 90, 32), ["ptx"])
        assert "%smid" in stages["ptx"]
    """
    return _asm(_semantic, "mov.u32 $0, %smid;", "=r", core.int32, is_pure=True)


@core.builtin
def num_threads(_semantic: "Semantic" = SUPPLIED) -> core.constexpr:
    """Return the number of threads that run this program, a constant: 32 times the launch option `num_warps`.

    Example:
        @tilework.jit
        def kernel(out):
            tl.store(out, tl.extra.cuda.num_threads())

        out = np.zeros(1, np.int32)
        kernel[(1,)](out, num_warps=8)
        assert out[0] == 256
    """
    return core.constexpr(_semantic.options.num_warps * THREADS_PER_WARP)


@core.builtin
def num_warps(_semantic: "Semantic" = SUPPLIED) -> core.constexpr:
    """Return the number of warps that run this program, a constant: the launch option `num_warps`.

    Example:
        @tilework.jit
        def kernel(out):
            tl.store(out, tl.extra.cuda.num_warps())

        out = np.zeros(1, np.int32)
        kernel[(1,)](out, num_warps=4)
        assert out[0] == 4
    """
    return core.constexpr(_semantic.options.num_warps)


@core.extern
def gdc_wait(_semantic: "Semantic" = SUPPLIED) -> None:
    """Wait until the kernels this one depends on have finished (programmatic dependent launch, sm_90).

    A launch with ``launch_pdl=True`` may begin while the previous kernel is still running; after this call, the results
    of that kernel may be read.

    Example:
        @tilework.jit
        def kernel(x, out):
            tl.extra.cuda.gdc_wait()
            tl.store(out, tl.load(x))

        source = tilework.compiler.ASTSource(kernel, {"x": "*fp32", "out": "*fp32"})
        stages = tilework.compiler.lower(source, tilework.compiler.GPUTarget("cuda", 90, 32), ["ptx"])
        assert "griddepcontrol.wait" in stages["ptx"]
    """
    _asm(_semantic, "griddepcontrol.wait; // dummy $0", "=r", core.int32, is_pure=False)


@core.extern
def gdc_launch_dependents(_semantic: "Semantic" = SUPPLIED) -> None:
    """Let the kernels that depend on this one start (programmatic dependent launch, sm_90); they wait with `gdc_wait`.

    Example:
        @tilework.jit
        def kernel(out):
            tl.extra.cuda.gdc_launch_dependents()
            tl.store(out, 1.0)

        source = tilework.compiler.ASTSource(kernel, {"out": "*fp32"})
        stages = tilework.compiler.lower(source, tilework.compiler.GPUTarget("cuda", 90, 32), ["ptx"])
        assert "griddepcontrol.launch_dependents" in stages["ptx"]
    """
    _asm(_semantic, "griddepcontrol.launch_dependents; // dummy $0", "=r", core.int32, is_pure=False)


@core.builtin
def convert_custom_float8_sm80(
    arg: core.tensor,
    dst_ty: core.dtype | core.constexpr,
    fp_downcast_rounding: str | core.constexpr | None = None,
    _semantic: "Semantic" = SUPPLIED,
) -> core.tensor:
    """Convert to or from fp8e4b15, a format with exponent bias 15 that is implemented in software. `tl.cast` does the
    same.

    Example:
        x = np.array([0.5, 1.3], np.float32)
        assert call(tl.extra.cuda.convert_custom_float8_sm80, x, tl.float8e4b15).tolist() == [0.5, 1.25]
    """
    return core.cast(arg, dst_ty, fp_downcast_rounding, _semantic=_semantic)


@core.builtin
def convert_custom_float8_sm70(
    arg: core.tensor,
    dst_ty: core.dtype | core.constexpr,
    fp_downcast_rounding: str | core.constexpr | None = None,
    _semantic: "Semantic" = SUPPLIED,
) -> core.tensor:
    """The same conversion as `convert_custom_float8_sm80`; the name that kernels for older GPUs use.

    Example:
        x = np.array([0.5, 1.3], np.float32)
        assert call(tl.extra.cuda.convert_custom_float8_sm70, x, tl.float8e4b15).tolist() == [0.5, 1.25]
    """
    return core.cast(arg, dst_ty, fp_downcast_rounding, _semantic=_semantic)
