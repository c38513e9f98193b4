"""NVIDIA GPUs: the list of stages, and the list of passes from TTIR to TTGIR.

>>> [name for name in ttgir_pipeline(90, num_warps=8) if "tma" in name]
['triton-nvidia-tma-lowering']
"""

from collections.abc import Collection, Mapping
from functools import cache
from importlib.metadata import version
from typing import Any

from tilework import knobs
from tilework.targets.base import GPUTarget, Stage, run_passes
from tilework.targets.nvidia.assembly import binary_of, entering, kernel_facts, later_stages
from tilework.targets.nvidia.cubin import BLACKWELL, assembler
from tilework.targets.nvidia.remarks import reporting
from tilework.targets.observe import is_on
from tilework.targets.options import CompileOptions, capability_of


def ttgir_pipeline(capability: int, num_warps: int = 4, num_stages: int = 3, num_ctas: int = 1) -> list[str]:
    """The passes from optimised TTIR to TTGIR for a GPU of compute `capability`: 80 is Ampere, 90 is Hopper.

    Layouts first (convert to remove-layout-conversions), then tensor cores (accelerate-matmul to descriptor encodings),
    loops (fuse to pipeline), and what the pipelined code needs (prefetch on). Before Ampere loops are not pipelined.
    """
    loops = [
        "tritongpu-fuse-nested-loops",
        "canonicalize",
        "triton-licm",
        "canonicalize",
        "tritongpu-combine-tensor-select-and-if",
        f"nvgpu-warp-specialization{{num-stages={num_stages}}}",
        f"tritongpu-assign-latencies{{num-stages={num_stages}}}",
        "tritongpu-schedule-loops",
        f"tritongpu-pipeline{{num-stages={num_stages}}}",
    ]
    return [
        f"convert-triton-to-tritongpu{{target=cuda:{capability} num-warps={num_warps} num-ctas={num_ctas}}}",
        "tritongpu-coalesce",
        f"tritongpu-F32DotTC{{emu-tf32={str(capability >= 80).lower()}}}",
        "triton-nvidia-gpu-plan-cta",
        "tritongpu-remove-layout-conversions",
        "tritongpu-optimize-thread-locality",
        "tritongpu-accelerate-matmul{disable-mma-v3=true}"
        if is_on("DISABLE_MMA_V3")
        else "tritongpu-accelerate-matmul",
        "tritongpu-remove-layout-conversions",
        "tritongpu-optimize-dot-operands",
        "triton-nvidia-optimize-descriptor-encoding",
        "triton-loop-aware-cse",
        *(loops if capability >= 80 else ["triton-licm"]),
        "canonicalize",
        "triton-loop-aware-cse",
        "tritongpu-prefetch",
        "tritongpu-optimize-dot-operands",
        "tritongpu-coalesce-async-copy",
        *(["triton-nvidia-tma-lowering"] if capability >= 90 else []),
        "tritongpu-remove-layout-conversions",
        "tritongpu-reduce-data-duplication",
        "tritongpu-reorder-instructions",
        "triton-loop-aware-cse",
        "symbol-dce",
        f"triton-nvidia-gpu-fence-insertion{{compute-capability={capability}}}",
        "sccp",
        "cse",
        "canonicalize",
    ]


class CudaBackend:
    """``cuda:CAPABILITY``: 80 is Ampere, 90 is Hopper. Kernels end as cubins, or as PTX where there is no ptxas."""

    binary_ext = "cubin"

    def __init__(self, target: GPUTarget) -> None:
        self.target = target
        assert isinstance(target.arch, int)
        self.capability = target.arch

    def parse_options(self, settings: Mapping[str, Any]) -> CompileOptions:
        """Options with what the hardware implies: fp8 formats, tf32 dots, clusters only from Hopper on."""
        arch = knobs.runtime.override_arch or settings.get("arch") or f"sm{self.capability}"
        capability = capability_of(arch)
        libraries = dict(settings.get("extern_libs") or {})
        if not libraries.get("libdevice") and (path := knobs.nvidia.find_libdevice()) is not None:
            libraries["libdevice"] = path
        ptx_options = settings.get("ptx_options") or knobs.nvidia.ptxas_options
        options = CompileOptions.of(
            {**settings, "arch": arch, "extern_libs": libraries, "ptx_options": ptx_options},
            backend_name="cuda",
            warp_size=32,
            supported_fp8_dtypes=("fp8e4b15", "fp8e4nv", "fp8e5") if capability >= 89 else ("fp8e4b15", "fp8e5"),
            deprecated_fp8_dot_operand_dtypes=("fp8e4b15",) if capability >= 90 else (),
            default_dot_input_precision="tf32",
            max_num_imprecise_acc_default=2**30 if capability == 90 else 0,
        )
        if options.sanitize == "race":
            raise ValueError(
                f'sanitize="race" looks for races on the CPU, not on {self.target}: set TILEWORK_DEVICE=native'
            )
        if options.num_ctas > 1 and capability < 90:
            raise ValueError(
                f"num_ctas > 1 requires NVIDIA SM90+ (Hopper). Current target is sm_{capability}."
                " This configuration will fail. Please set num_ctas=1 or target an SM90+ GPU."
            )
        return options

    def stages(self, options: CompileOptions) -> dict[str, Stage]:
        """TTIR, TTGIR, LLVM text, PTX, cubin."""
        from tilework.transforms.pipelines import checking_pipeline, ttir_pipeline

        capability = capability_of(options.arch) if options.arch else self.capability
        stages = 1 if options.sanitize else options.num_stages
        ttgir = ttgir_pipeline(capability, options.num_warps, stages, options.num_ctas)
        ttir = (
            [*ttir_pipeline(None), *checking_pipeline(options.sanitize)]
            if options.sanitize
            else ttir_pipeline(capability)
        )
        return {
            "ttir": lambda module: run_passes(module, ttir, "make_ttir"),
            "ttgir": lambda module: reporting(module, ttgir, "make_ttgir"),
            **later_stages(options, self.target),
        }

    def entering(self, options: CompileOptions) -> dict[str, Stage]:
        """What is done with a file that the user brings as the product of a stage."""
        return entering(options)

    def binary_after(self, stage: str, options: CompileOptions) -> str:
        """The stage that the driver loads, of a kernel that a file of `stage` describes."""
        return stage if stage == "cubin" else binary_of(options)

    def kernel_facts(
        self, stage: str, text: str, name: str, options: CompileOptions, given: Collection[str]
    ) -> dict[str, Any]:
        """What a launch must know about a kernel, from the text of a stage."""
        return kernel_facts(stage, text, name, options, given)

    def hash(self) -> str:
        """The architecture, and the releases of the assemblers; the option `arch` may ask for either."""
        tools = [assembler(capability) for capability in (self.capability, BLACKWELL)]
        found = "-".join(tool.version if tool is not None else "none" for tool in tools)
        return f"cuda-{self.capability}-ptxas-{knobs.nvidia.mock_ptx_version or found}-llvmlite-{llvmlite_release()}"


@cache
def llvmlite_release() -> str:
    """The version of llvmlite, which need not be loaded."""
    return version("llvmlite")
