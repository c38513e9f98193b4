"""The CUDA backend and its options with Triton's names and interface.

>>> CUDABackend(GPUTarget("cuda", 90, 32)).parse_options({"num_warps": 8}).default_dot_input_precision
'tf32'

The stages can be driven by hand; each adds to `metadata` what it knows about the kernel:

    backend, options, metadata = CUDABackend(target), backend.parse_options({}), {}
    module = source.make_ir(target, options, backend.get_codegen_implementation(options), backend.get_module_map(), context)
    module = backend.make_ttgir(backend.make_ttir(module, metadata, options, 90), metadata, options, 90)
    ptx = backend.make_ptx(backend.make_llir(module, metadata, options, 90), metadata, options, 90)
"""

# pyright: reportUnusedImport=false

import hashlib
import subprocess
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from tilework import knobs
from tilework.errors import PTXASError
from tilework.language.extra import cuda
from tilework.target import Feature, Target
from tilework.targets.base import GPUTarget, run_passes
from tilework.targets.nvidia import ptx_text
from tilework.targets.nvidia.arch import number_of, target_of
from tilework.targets.nvidia.pipeline import CudaBackend, looks, ttgir_pipeline
from tilework.targets.nvidia.ptx_version import cpu_name, ptx_of_cuda
from tilework.targets.options import CompileOptions
from tilework.transforms.pipelines import ttir_pipeline
from tilework.triton.backends.compiler import plain
from tilework.triton.backends.listed import ListedBackend, known

BLACKWELL = 100
NO_SCRATCH = {
    "shared": 0,
    "tmem_size": 0,
    "global_scratch_size": 0,
    "global_scratch_align": 1,
    "profile_scratch_size": 0,
    "profile_scratch_align": 1,
}


@dataclass(frozen=True)
class CUDAOptions(CompileOptions):
    """Compile options with the defaults of the oldest supported GPU."""

    warp_size: int = 32
    supported_fp8_dtypes: tuple[str, ...] = ("fp8e5", "fp8e4b15")
    default_dot_input_precision: str = "tf32"
    max_num_imprecise_acc_default: int | None = None  # pyright: ignore[reportIncompatibleVariableOverride]
    extern_libs: tuple[tuple[str, str], ...] | None = None  # pyright: ignore[reportIncompatibleVariableOverride]
    backend_name: str = "cuda"

    def __post_init__(self) -> None:
        if self.extern_libs is None:
            path = knobs.nvidia.find_libdevice()
            object.__setattr__(self, "extern_libs", () if path is None else (("libdevice", path),))
        super().__post_init__()


class CUDABackend(CudaBackend, ListedBackend):
    """The CUDA backend as a `BaseBackend`."""

    def __init__(self, target: GPUTarget) -> None:
        ListedBackend.__init__(self, target)
        CudaBackend.__init__(self, target)

    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return target.backend == "cuda"

    def parse_options(self, opts: Any) -> CUDAOptions:
        options = super().parse_options(known(opts, CUDAOptions))
        return CUDAOptions(**{field.name: getattr(options, field.name) for field in fields(options)})

    def _parse_arch(self, arch: str) -> int:
        return number_of(arch)

    def get_target_name(self, options: Any) -> str:
        """``cuda:90``."""
        return f"cuda:{number_of(options.arch)}"

    def get_codegen_implementation(self, options: Any) -> dict[str, Any]:
        """What the frontend asks the target: the smallest dot that it takes, and how it converts old 8-bit floats."""
        has_pairs = Feature.CONVERT_PAIRS in target_of(options.arch).features
        convert = cuda.convert_custom_float8_sm80 if has_pairs else cuda.convert_custom_float8_sm70
        return {"convert_custom_types": convert, "min_dot_size": min_dot_size(self.target)}

    @staticmethod
    def make_ttir(mod: Any, metadata: dict[str, Any], opt: Any, capability: int) -> Any:
        """TTIR as the frontend writes it, to optimised TTIR, in place."""
        run_passes(plain(mod), ttir_pipeline(target_of(f"sm{capability}")), "make_ttir")
        return mod

    @staticmethod
    def make_ttgir(mod: Any, metadata: dict[str, Any], opt: Any, capability: int) -> Any:
        """TTIR to TTGIR, in place."""
        passes = ttgir_pipeline(target_of(f"sm{capability}"), opt.num_warps, opt.num_stages, opt.num_ctas)
        run_passes(plain(mod), [*passes, *looks()], "make_ttgir")
        metadata["tensordesc_meta"] = []
        return mod

    def gluon_to_ttgir(self, src: Any, metadata: dict[str, Any], options: Any, capability: int) -> Any:
        raise ValueError("tilework compiles kernels of the tile language, not Gluon")

    def make_llir(self, src: Any, metadata: dict[str, Any], options: Any, capability: int) -> str:
        """TTGIR to LLVM text."""
        text = self.later("llir", src, options, capability)
        told = ptx_text.told(text)
        facts = {name: told[name] for name in NO_SCRATCH if name in told}
        metadata |= {"num_warps": told.get("num_warps", options.num_warps), **NO_SCRATCH, **facts}
        return text

    def make_ptx(self, src: str, metadata: dict[str, Any], opt: Any, capability: int) -> str:
        """LLVM text to PTX."""
        text = self.later("ptx", src, opt, capability)
        metadata["name"] = next(iter(ptx_text.entries(text)))
        return text

    def make_cubin(self, src: str, metadata: dict[str, Any], opt: Any, capability: int) -> bytes:
        """PTX to machine code, by ptxas."""
        return self.later("cubin", src, opt, capability)

    def later(self, stage: str, product: Any, options: Any, capability: int) -> Any:
        """One of the stages after TTGIR, for a GPU of `capability`."""
        if capability != number_of(options.arch):
            options = replace(options, arch=f"sm{capability}")
        return self.stages(options)[stage](plain(product))


def min_dot_size(target: GPUTarget) -> Any:
    """What gives the smallest dot (m, n, k) that a target takes, for two operand types."""
    return Target.of(target).min_dot_size


def get_ptxas(arch: int) -> Any:
    """The assembler for a GPU, as path and version."""
    return knobs.nvidia.ptxas_blackwell if arch >= BLACKWELL else knobs.nvidia.ptxas


@cache
def get_ptxas_version(arch: int = 80) -> str:
    """What the assembler says about itself."""
    if (mock := knobs.nvidia.mock_ptx_version) is not None:
        return mock
    return subprocess.check_output([get_ptxas(arch).path, "--version"]).decode()


def ptx_get_version(cuda_version: str) -> int:
    """The newest PTX that a release of CUDA reads: ``"12.8"`` -> 87."""
    if int(cuda_version.partition(".")[0]) < 10:
        raise RuntimeError(f"Triton only support CUDA 10.0 or higher, but got CUDA version: {cuda_version}")
    return ptx_of_cuda(cuda_version)


def get_ptx_version_from_options(options: Any, arch: int) -> int:
    """The version of PTX that kernels are written in, as the assembler reads it."""
    return options.ptx_version or ptx_get_version(get_ptxas(arch).version)


def get_features(options: Any, arch: int) -> str:
    """What LLVM's code generator is told: ``+ptx86``."""
    return f"+ptx{min(86, get_ptx_version_from_options(options, arch))}"


def sm_arch_from_capability(capability: int) -> str:
    """90 -> ``sm_90a``."""
    return cpu_name(f"sm{capability}")


def file_hash(path: str) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()
