"""AMD GPUs: the stages, the passes from TTIR to TTGIR, and the compile options beyond those of all targets."""

import re
import warnings
from collections.abc import Collection, Mapping
from typing import Any

from tilework import knobs
from tilework.errors import DoesNotFit, StageError
from tilework.light_dataclass import light_dataclass
from tilework.process.triton_version import follows
from tilework.target import Target
from tilework.targets.amd.arch import FLOAT8, AmdFeature
from tilework.targets.base import Backend, Stage, llvmlite_release, run_passes
from tilework.targets.observe import wants_remarks
from tilework.targets.options import CompileOptions, chosen_names

KPACK_WARNING = (
    "kpack is deprecated starting from {arch} and will be removed in later releases. So for now kpack = {kpack} will be"
    " overwritten to 1 to make transitioning easier."
)
ATTRIBUTE, ATTRIBUTE_VALUE = re.compile(r"[\w.-]+"), re.compile(r'[^"\\\n]*')
ALLOWED = {"waves_per_eu": range(33), "matrix_instr_nonkdim": (0, 4, 16, 32), "kpack": (1, 2)}


PRECISIONS = ("ieee", "bf16x3", "bf16x6")


@light_dataclass
class HipOptions(CompileOptions):
    """Options of a launch; `num_stages` 2 is one buffer in LDS, with registers as the second."""

    IS_INSTRUMENTED = False
    backend_name: str = "hip"
    warp_size: int = 64
    supported_fp8_dtypes: tuple[str, ...] = ("fp8e4nv", "fp8e5", "fp8e5b16", "fp8e4b8")
    allowed_dot_input_precisions: tuple[str, ...] = PRECISIONS
    num_stages: int = 2
    waves_per_eu: int = 0  # waves that a SIMD should hold at once; 0: LLVM decides
    matrix_instr_nonkdim: int = 0  # rows and columns of matrix instructions, 16 or 32; 0: by the shape
    kpack: int = 1  # 2: operands twice as wide along K
    allow_flush_denorm: bool = False
    schedule_hint: str = "none"
    llvm_fn_attrs: tuple[
        tuple[str, str | None], ...
    ] = ()  # attributes of the kernel for LLVM; given as "name=value,name"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "llvm_fn_attrs", function_attributes(self.llvm_fn_attrs))
        for name, allowed in ALLOWED.items():
            if (value := getattr(self, name)) not in allowed:
                values = f"0 to {allowed[-1]}" if isinstance(allowed, range) else ", ".join(map(str, allowed))
                raise ValueError(f"{name} = {value!r} on {self.arch}: it may be {values}")
        if self.kpack != 1 and self.arch == "gfx950":
            warnings.warn(KPACK_WARNING.format(arch=self.arch, kpack=self.kpack), stacklevel=2)
            object.__setattr__(self, "kpack", 1)


def function_attributes(given: Any) -> tuple[tuple[str, str | None], ...]:
    """Return pairs of names and values, or None, of a text like "amdgpu-sched-strategy=max-ilp,name" or of pairs."""
    if isinstance(given, str):
        parts = [part.strip().partition("=") for part in given.split(",") if part.strip()]
        given = [(name.strip(), value.strip() if sign else None) for name, sign, value in parts]
    try:
        pairs = tuple((name, value) for name, value in given)
    except (TypeError, ValueError):
        pairs = (("", None),)
    for name, value in pairs:
        is_text = isinstance(name, str) and isinstance(value, str | None)
        if not is_text or not ATTRIBUTE.fullmatch(name) or not ATTRIBUTE_VALUE.fullmatch(value or ""):
            raise ValueError(f'llvm_fn_attrs is a text like "name=value,name" or a tuple of pairs, got {given!r}')
    return pairs


LLIR_PASSES = [
    "tritonamdgpu-expand-tensor-ops",
    "tritonamdgpu-update-async-wait-count",
    "convert-warp-pipeline",
    "optimize-amd-lds-usage",
]


def ttgir_pipeline(
    target: Target, num_warps: int = 4, num_stages: int = 2, side: int = 0, kpack: int = 1, hints: str = "none"
) -> list[str]:
    """Return the passes from optimised TTIR to TTGIR."""
    transposes = by_target(knobs.amd.use_in_thread_transpose, target, AmdFeature.IN_THREAD_TRANSPOSE)
    feature = AmdFeature.PINGPONG_COPIES if knobs.amd.use_async_copy else AmdFeature.PINGPONG
    uses_pingpong = by_target(knobs.amd.use_block_pingpong, target, feature)
    hint = "triton-amdgpu-insert-instruction-sched-hints{variant=attention}"
    return [
        f"convert-triton-to-tritongpu{{target={target} num-warps={num_warps} num-ctas=1}}",
        "tritongpu-coalesce",
        "tritongpu-F32DotTC{emu-tf32=false}",
        "tritongpu-remove-layout-conversions",
        "tritongpu-optimize-thread-locality",
        f"tritonamdgpu-accelerate-matmul{{matrix-instruction-size={side} kpack={kpack}}}",
        "tritongpu-remove-layout-conversions",
        "tritonamdgpu-optimize-epilogue",
        "tritonamdgpu-hoist-layout-conversions",
        "tritonamdgpu-sink-layout-conversions",
        "tritongpu-fuse-nested-loops",
        "canonicalize",
        "triton-licm",
        "canonicalize",
        f"tritonamdgpu-schedule-loops{{num-stages={num_stages}}}",
        *pipeline_passes(uses_pingpong),
        "tritonamdgpu-convert-tensor-ops",
        "canonicalize",
        *([hint] if "attention" in hints.split(",") else ()),
        "tritongpu-remove-layout-conversions",
        "tritongpu-reduce-data-duplication",
        *(["tritonamdgpu-in-thread-transpose", "tritongpu-remove-layout-conversions"] if transposes else ()),
        "tritonamdgpu-move-up-prologue-loads",
        *([f"tritonamdgpu-block-pingpong{{num-stages={num_stages}}}"] if num_stages > 1 and uses_pingpong else ()),
        "tritongpu-repeated-loads",
        *(["tritongpu-performance-remarks"] if wants_remarks() else ()),  # while accesses have pointers
        *buffer_passes(),
        "tritonamdgpu-fold-true-cmpi",
        "tritonamdgpu-prepare-if-combining",
        "canonicalize",
        "cse",
        "symbol-dce",
    ]


def pipeline_passes(uses_pingpong: bool) -> list[str]:
    """Return the pipelining passes, with direct copies to LDS if TRITON_HIP_USE_ASYNC_COPY is set."""
    if not knobs.amd.use_async_copy:
        return ["tritonamdgpu-pipeline"]
    pingpong = " use-pingpong=true" if uses_pingpong else ""
    return [f"tritonamdgpu-pipeline{{use-async-copy=true{pingpong}}}", "tritonamdgpu-coalesce-async-copy"]


def by_target(setting: bool | None, target: Target, feature: AmdFeature) -> bool:
    """Return the setting from the environment, or else the default of the target."""
    return feature in target.features if setting is None else setting


def buffer_passes() -> list[str]:
    """Return the passes that introduce buffer accesses, unless the environment disables them."""
    if not knobs.amd.use_buffer_ops:
        return []
    atomics, analyzes = knobs.amd.use_buffer_atomics, knobs.amd.buffer_ops_analyze_small_tensor_range
    options = f"allow-buffer-atomics={str(atomics).lower()} analyze-small-tensor-ofst={str(analyzes).lower()}"
    return [
        "tritonamdgpu-canonicalize-pointers",
        "canonicalize",
        f"tritonamdgpu-convert-buffer-ops{{{options}}}",
    ]


TEXTS: dict[str, str] = {}  # the LLVM text of the latest assemblies
MOST_TEXTS = 8


def assembled(llir: bytes | str, options: Mapping[str, Any]) -> str:
    from tilework.targets.amd.code_object import assembly  # lazily: few look at it

    return assembly(llir if isinstance(llir, str) else llir.decode())


class HipBackend(Backend):
    """``hip:gfx942``. Kernels end as code objects."""

    binary_ext = "hsaco"
    views = {"amdgcn": ("llir", assembled)}

    @property
    def specializes_small_arrays(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return knobs.amd.use_buffer_ops

    @property
    def is_emulated(self) -> bool:
        """Return True if the emulator runs the code objects: it executes the LLVM text."""
        return (knobs.runtime.device or "").startswith("emulator")

    def option_names(self) -> Collection[str]:
        return chosen_names(HipOptions)

    def parse_options(self, settings: Mapping[str, Any]) -> CompileOptions:
        given = target_of(str(self.target.arch))
        for waves in (self.target.warp_size, settings.get("warp_size", given.warp_size)):
            if waves != given.warp_size:
                raise ValueError(f"warps of {waves} threads on {given}: there they have {given.warp_size}")
        target = target_of(str(knobs.runtime.override_arch or settings.get("arch") or self.target.arch))
        has_tf32 = AmdFeature.XF32 in target.features
        options = HipOptions.of(
            {**({"schedule_hint": ""} if follows("schedule-hint") else {}), **settings, "arch": target.arch},
            backend_name="hip",
            warp_size=target.warp_size,
            supported_fp8_dtypes=FLOAT8 if knobs.amd.software_fp8 or knobs.language.is_triton else target.float8,
            deprecated_fp8_dot_operand_dtypes=target.slow_float8,
            default_dot_input_precision="tf32" if has_tf32 else "ieee",  # as tl.dot decides
            allowed_dot_input_precisions=tuple(sorted((*PRECISIONS, "tf32"))) if has_tf32 else PRECISIONS,
        )
        if options.num_ctas > 1:
            raise ValueError(f"num_ctas > 1 not supported on {target.arch}")
        if (threads := options.num_warps * target.warp_size) > target.limits.threads:
            raise DoesNotFit(threads, target.limits.threads, f"threads of {options.num_warps} warps on {target.arch}")
        return options

    def target_for(self, options: CompileOptions) -> Target:
        return target_of(options.arch) if options.arch else Target.of(self.target)

    def stages(self, options: CompileOptions) -> dict[str, Stage]:
        """TTIR, TTGIR, LLVM text, code object."""
        # lazily: the compiler loads when something is compiled
        from tilework.transforms.registry import checking_pipeline, ttir_pipeline

        target = self.target_for(options)
        checks = checking_pipeline(options.sanitize) if options.sanitize else ()
        ttir = ttir_pipeline(target, checks=checks, reproducible=options.reproducible)
        assert isinstance(options, HipOptions)
        ttgir = ttgir_pipeline(
            target,
            options.num_warps,
            options.num_stages,
            options.matrix_instr_nonkdim,
            options.kpack,
            options.schedule_hint.lower(),
        )

        def llir(module: Any) -> str:
            # lazily: the compiler loads when something is compiled
            from tilework.targets.amd.lower.emit import emit_module

            run_passes(module, LLIR_PASSES, "make_llir")
            lines = not knobs.compilation.disable_line_info
            return emit_module(module, target, fuses=options.enable_fp_fusion, lines=lines, options=options)

        def hsaco(text: str) -> bytes:
            from tilework.targets.amd.code_object import to_code_object  # lazily: loads LLVM
            from tilework.targets.amd.kernel_notes import with_text

            if knobs.amd.dump_amdgcn:
                print(f"// -----// AMDGCN Dump //----- //\n{assembled(text, {})}")
            data = to_code_object(text, str(target.arch))
            return with_text(data, text) if self.is_emulated else data

        return {
            "ttir": lambda module: run_passes(module, ttir, "make_ttir"),
            "ttgir": lambda module: run_passes(module, ttgir, "make_ttgir"),
            "llir": llir,
            "hsaco": hsaco,
        }

    def separate_stages(self, options: CompileOptions) -> dict[str, Stage]:
        """Return the stages with the assembly as one of them. It is assembled only if a user changed it, because few
        machines have an assembler."""
        stages = self.stages(options)
        code_object, arch = stages.pop("hsaco"), str(self.target_for(options).arch)

        def amdgcn(text: str) -> str:
            found = assembled(text, {})
            while len(TEXTS) >= MOST_TEXTS:
                TEXTS.pop(next(iter(TEXTS)), None)
            TEXTS[found] = text
            return found

        def hsaco(assembly: str) -> bytes:
            if assembly in TEXTS:
                return code_object(TEXTS[assembly])
            if self.is_emulated:
                raise StageError("the emulator executes LLVM text, and the stage amdgcn was replaced")
            from tilework.targets.amd.code_object import linked, object_of  # lazily: loads LLVM

            return linked(object_of(assembly, arch))

        return {**stages, "amdgcn": amdgcn, "hsaco": hsaco}

    def check_fit(self, stage: str, artifact: Any, options: CompileOptions, properties: Mapping[str, int]) -> None:
        """Raise DoesNotFit if LLVM text needs more LDS than there is, before the slow code generation."""
        if stage == "llir":
            shared = self.kernel_facts(stage, artifact, "", options, ())["shared"]
            if shared > (limit := properties.get("max_shared_mem", shared)):
                raise DoesNotFit(shared, limit, "shared memory")

    def kernel_facts(
        self, stage: str, artifact: Any, name: str, options: CompileOptions, given: Collection[str]
    ) -> dict[str, Any]:
        """Read shared and scratch memory and warps from LLVM text; registers per lane and 32-bit words of its stack
        from the code object.
        """
        if stage == "hsaco":
            from tilework.targets.amd.kernel_notes import read_notes  # lazily: as the linker

            notes = read_notes(artifact)
            return {"n_regs": notes.vgprs, "n_spills": notes.private_bytes // 4}
        if stage != "llir":
            return {}
        from tilework.targets.amd.code_object import metadata  # lazily: loads LLVM

        return {key: fact for key, fact in metadata(artifact).items() if key != "fp_contract"}

    def hash(self) -> str:
        return f"hip-{self.target.arch}-llvmlite-{llvmlite_release()}{'-text' * self.is_emulated}"


def target_of(arch: str) -> Target:
    """Return the target that the option ``arch="gfx942"`` names."""
    return Target.parse(f"hip:{arch}")
