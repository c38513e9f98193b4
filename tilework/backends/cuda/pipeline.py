"""NVIDIA GPUs: the list of stages."""

from collections.abc import Mapping
from typing import Any

from tilework import knobs
from tilework.backends.base import GPUTarget, Stage, run_passes
from tilework.backends.options import CompileOptions, capability_of


class CudaBackend:
    """``cuda:CAPABILITY``: 80 is Ampere, 90 is Hopper."""

    binary_ext = "ttir"

    def __init__(self, target: GPUTarget) -> None:
        self.target = target
        assert isinstance(target.arch, int)
        self.capability = target.arch

    def parse_options(self, settings: Mapping[str, Any]) -> CompileOptions:
        """Options with what the hardware implies: fp8 formats, tf32 dots, clusters only from Hopper on."""
        arch = knobs.runtime.override_arch or settings.get("arch") or f"sm{self.capability}"
        capability = capability_of(arch)
        options = CompileOptions.of(
            {**settings, "arch": arch},
            backend_name="cuda",
            warp_size=32,
            supported_fp8_dtypes=("fp8e4b15", "fp8e4nv", "fp8e5") if capability >= 89 else ("fp8e4b15", "fp8e5"),
            deprecated_fp8_dot_operand_dtypes=("fp8e4b15",) if capability >= 90 else (),
            default_dot_input_precision="tf32",
            max_num_imprecise_acc_default=2**30 if capability == 90 else 0,
        )
        if options.num_ctas > 1 and capability < 90:
            raise ValueError(
                f"num_ctas > 1 requires NVIDIA SM90+ (Hopper). Current target is sm_{capability}."
                " This configuration will fail. Please set num_ctas=1 or target an SM90+ GPU."
            )
        return options

    def stages(self, options: CompileOptions) -> dict[str, Stage]:
        """TTIR so far; the stages below it arrive with the GPU middle end."""
        from tilework.transforms.pipelines import ttir_pipeline

        capability = capability_of(options.arch) if options.arch else self.capability
        return {"ttir": lambda module: run_passes(module, ttir_pipeline(capability))}

    def hash(self) -> str:
        """The architecture; no external tool takes part yet."""
        return f"cuda-{self.capability}"
