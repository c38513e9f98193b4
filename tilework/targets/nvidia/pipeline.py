"""NVIDIA GPUs: the stages (TTIR, TTGIR, LLVM text, PTX, cubin), and the passes from TTIR to TTGIR.

>>> [name for name in ttgir_pipeline(Target.parse("cuda:90"), num_warps=8) if "tma" in name]
['triton-nvidia-tma-lowering']

A machine without ptxas has no stage `cubin`: kernels end as PTX, and the driver assembles them when they are loaded.
The modules that do the work are imported when a stage runs; looking up a kernel in the cache needs neither LLVM nor
`cubin.py`.
"""

import warnings
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from tilework import knobs
from tilework.errors import StageError
from tilework.knobs import is_on
from tilework.target import Feature, Target
from tilework.targets.base import Backend, Stage, llvmlite_release, run_passes
from tilework.targets.nvidia.arch import capability_of, target_of

if TYPE_CHECKING:
    from tilework.targets.options import CompileOptions

BLACKWELL = 100  # from this capability on the knob `ptxas_blackwell` names the assembler


def assembler(capability: int) -> Any:
    """Return the ptxas for a GPU, or None; the emulator executes PTX."""
    if (knobs.runtime.device or "").startswith("emulator"):
        return None
    return knobs.nvidia.find_tool("ptxas_blackwell" if capability >= BLACKWELL else "ptxas")


def required_assembler(capability: int) -> Any:
    """Return the ptxas for a GPU; raise a RuntimeError that says how to get one."""
    return knobs.nvidia.ptxas_blackwell if capability >= BLACKWELL else knobs.nvidia.ptxas


NO_KERNEL = "no kernel: in PTX it is an .entry, in LLVM text a function with the calling convention ptx_kernel"
LOWERING = ("allocate-shared-memory-nv", "triton-nvidia-gpu-proxy-fence-insertion", "convert-triton-gpu-to-llvm")
BANNER = "// -----// NVPTX Dump //----- //"


def settings_of(options: "CompileOptions") -> Any:
    """Return the settings that determine the PTX."""
    from tilework.targets.nvidia.ptx import PtxSettings  # lazily: the compiler loads when something is compiled
    from tilework.targets.nvidia.ptx_text import chosen_version, cpu_name, driver_release

    cpu = cpu_name(options.arch or "")
    reader = None
    if options.ptx_version is None:
        tool = assembler(capability_of(options.arch or ""))
        reader = tool.version if tool is not None else driver_release()
    return PtxSettings(
        cpu,
        chosen_version(cpu, options.ptx_version, reader),
        fuses=options.enable_fp_fusion,
        flushes=options.enable_reflect_ftz,
        maxnreg=options.maxnreg,
        keeps_debug=knobs.nvidia.disable_ptxas_opt,
        libraries=options.extern_libs,
    )


def ptx_of(text: str, options: "CompileOptions") -> str:
    from tilework.targets.nvidia.ptx import to_ptx  # lazily: the compiler loads when something is compiled

    return to_ptx(text, settings_of(options))


def tried(text: str, options: "CompileOptions") -> str:
    """Return the user's LLVM text, after checking in another process that LLVM does not abort on it."""
    from tilework.targets.nvidia.ptx import survives  # lazily: the compiler loads when something is compiled

    survives(text, settings_of(options))
    return text


def shown(text: str) -> str:
    """Return PTX, printed if the knob `nvidia.dump_nvptx` is set."""
    if knobs.nvidia.dump_nvptx:
        print(f"{BANNER}\n{text}")
    return text


def cubin_of(text: str, options: "CompileOptions", reordered: Callable[[], str] | None = None) -> bytes:
    """Assemble PTX; `reordered` returns it with instructions in another order."""
    # lazily: the compiler loads when something is compiled
    from tilework.targets.nvidia import ptx_text
    from tilework.targets.nvidia.cubin import CubinSettings, to_cubin
    from tilework.targets.nvidia.variants import variants_of

    arch = options.arch or ""
    settings = CubinSettings(ptx_text.cpu_name(arch), options.enable_fp_fusion, options.ptx_options)
    name, tool = next(iter(ptx_text.entries(text)), "kernel"), required_assembler(capability_of(arch))
    is_plain = knobs.nvidia.disable_ptxas_opt or options.ptx_options
    variants = None if is_plain else variants_of(text, target_of(arch), reordered)
    return to_cubin(text, name, settings, tool.path, variants)


def flag(value: bool) -> str:
    """Return a boolean pass option as text."""
    return str(value).lower()


def ttgir_pipeline(
    target: Target, num_warps: int = 4, num_stages: int = 3, num_ctas: int = 1, specialize: str = "pays"
) -> list[str]:
    """Return the passes from optimised TTIR to TTGIR.

    First layouts (convert to remove-layout-conversions), then tensor cores (accelerate-matmul to descriptor encodings),
    loops (fuse to pipeline), and the passes after pipelining (from prefetch on). Without asynchronous copies loops are
    not pipelined. `specialize` is the highest of `LEVELS` at which loops are warp specialized.
    """
    plain = knobs.nvidia.plain_dots
    split = specialization(specialize).replace("when", "partitions")
    loops = [
        "tritongpu-fuse-nested-loops" if plain else f"tritongpu-fuse-nested-loops{{{split} num-stages={num_stages}}}",
        "canonicalize",
        "triton-licm",
        "canonicalize",
        "tritongpu-combine-tensor-select-and-if",
        *([] if plain else ["tritongpu-longest-first"]),
        *persistent(specialize, num_stages),
        f"nvgpu-warp-specialization{{num-stages={num_stages} {specialization(specialize)}}}",
        f"tritongpu-assign-latencies{{num-stages={num_stages} spare={flag(not plain)}}}",
        "tritongpu-schedule-loops",
        f"tritongpu-pipeline{{num-stages={num_stages} early-copies={flag(not plain)} two-blocks={flag(not plain)}}}",
    ]
    return [
        f"convert-triton-to-tritongpu{{target={target} num-warps={num_warps} num-ctas={num_ctas}}}",
        "tritongpu-coalesce",
        f"tritongpu-F32DotTC{{emu-tf32={flag(Feature.MMA in target.features)}}}",
        "triton-nvidia-gpu-plan-cta",
        "tritongpu-remove-layout-conversions",
        "tritongpu-optimize-thread-locality",
        f"tritongpu-accelerate-matmul{{disable-mma-v3={flag(is_on('DISABLE_MMA_V3'))} keep-operands={flag(plain)}}}",
        "tritongpu-remove-layout-conversions",
        "tritongpu-optimize-dot-operands",
        "triton-nvidia-optimize-descriptor-encoding",
        "triton-loop-aware-cse",
        *(loops if Feature.ASYNC_COPY in target.features else ["triton-licm"]),
        "canonicalize",
        "triton-loop-aware-cse",
        "tritongpu-prefetch",
        "tritongpu-optimize-dot-operands",
        "tritongpu-coalesce-async-copy",
        *(["triton-nvidia-tma-lowering"] if Feature.TMA in target.features else []),
        *([] if plain else ["tritongpu-store-layouts"]),
        "tritongpu-remove-layout-conversions",
        "tritongpu-reduce-data-duplication",
        "tritongpu-reorder-instructions",
        *([] if plain else ["tritongpu-shorten-partitions", "tritongpu-early-loads", "tritongpu-prefetch-rows"]),
        "triton-loop-aware-cse",
        "symbol-dce",
        f"triton-nvidia-gpu-fence-insertion{{compute-capability={target.arch} copies={flag(not plain)}}}",
        "sccp",
        "cse",
        "canonicalize",
        "tritongpu-repeated-loads",
    ]


SPECIALIZE_LEVELS = {"0": "never", "1": "requested", "auto": "pays"}
LEVELS = ("unfit", "never", "requested", "pays")  # which loops are warp specialized


def copying(target: Target, options: "CompileOptions") -> list[str]:
    """Return the passes that turn loads of rectangles into TMA copies, if the options and the target allow it."""
    if not options.auto_tma or Feature.TMA not in target.features or options.num_ctas != 1:
        return []
    when = "pays" if options.auto_tma == "pays" else "always"
    return [f"tt-rectangles-to-descriptors{{when={when} num-warps={options.num_warps}}}", "canonicalize", "cse"]


def persistent(specialize: str, num_stages: int) -> list[str]:
    """Return the passes that make kernels persistent, if loops may be warp specialized without a request."""
    if specialization(specialize) != "when=pays" or knobs.nvidia.plain_dots or not knobs.nvidia.persistent_programs:
        return []
    return [f"tritongpu-persistent-programs{{num-stages={num_stages}}}"]


def specialization(most: str) -> str:
    """Return the pass option of warp specialisation that the knob requests, at most the level `most`.

    0: no loop, 1: loops that request it, auto: also where it should pay.
    """
    if (given := knobs.nvidia.warp_specialize or "auto") not in SPECIALIZE_LEVELS:
        raise ValueError(f"TILEWORK_WARP_SPECIALIZE is {', '.join(SPECIALIZE_LEVELS)}, not {given!r}")
    return f"when={min(SPECIALIZE_LEVELS[given], most, key=LEVELS.index)}"


def make_ttgir(module: Any, target: Target, names: list[str], whole: Callable[[], list[str]]) -> Any:
    """Run the passes to TTGIR; if partitions need more shared memory than there is, run the passes `whole` instead."""
    from tilework.ir.create import clone_op  # lazily: when something is compiled
    from tilework.targets.nvidia.fit import may_have_partitions, partitions_fit

    before = clone_op(module, {}) if may_have_partitions(module, target) else None
    made = run_passes(module, names, "make_ttgir")
    if before is not None and not partitions_fit(made, target):
        made = run_passes(before, whole(), "make_ttgir")
    return run_passes(made, names, "remarks") if (names := looks()) else made


def looks() -> list[str]:
    """Return the passes that print performance remarks about finished TTGIR, if wanted (`targets/observe.py`)."""
    from tilework.targets.observe import wants_limits, wants_remarks  # lazily: when something is compiled

    own = ["tritongpu-limit-remarks"] if wants_limits() else []
    return [*(["tritongpu-performance-remarks"] if wants_remarks() else []), *own]


def disassembled(cubin: bytes, options: Mapping[str, Any]) -> str:
    # lazily: few look at it
    from tilework.targets.nvidia.cubin import disassemble
    from tilework.targets.observe import is_recording

    return disassemble(cubin, lines=is_recording())


class CudaBackend(Backend):
    """``cuda:CAPABILITY``: 80 is Ampere, 90 is Hopper. Kernels end as cubins, or as PTX where there is no ptxas."""

    binary_ext = "cubin"
    views = {"sass": ("cubin", disassembled)}

    def parse_options(self, settings: Mapping[str, Any]) -> "CompileOptions":
        """Return the options, completed for the target: fp8 formats, tf32 dots, clusters only from Hopper on."""
        arch = knobs.runtime.override_arch or settings.get("arch") or f"sm{self.target.arch}"
        target = target_of(arch)
        libraries = dict(settings.get("extern_libs") or {})
        if not libraries.get("libdevice") and (path := knobs.nvidia.find_libdevice()) is not None:
            libraries["libdevice"] = path
        ptx_options = settings.get("ptx_options") or knobs.nvidia.ptxas_options
        from tilework.targets.options import CompileOptions  # lazily: what a bundle serves is not compiled

        options = CompileOptions.of(
            {**settings, "arch": arch, "extern_libs": libraries, "ptx_options": ptx_options},
            backend_name="cuda",
            warp_size=target.warp_size,
            supported_fp8_dtypes=target.float8,
            deprecated_fp8_dot_operand_dtypes=target.slow_float8,
            default_dot_input_precision="tf32",
            max_num_imprecise_acc_default=2**30 if Feature.WGMMA in target.features else 0,
        )
        if options.sanitize == "race":
            raise ValueError(
                f'sanitize="race" looks for races on the CPU, not on {self.target}: set TILEWORK_DEVICE=native'
            )
        if options.num_ctas > 1 and Feature.CLUSTERS not in target.features:
            raise ValueError(
                f"num_ctas > 1 requires NVIDIA SM90+ (Hopper). Current target is sm_{target.arch}."
                " This configuration will fail. Please set num_ctas=1 or target an SM90+ GPU."
            )
        return options

    def launch_defaults(self) -> dict[str, Any]:
        """Enable automatic TMA copies, which need hidden arguments: only for kernels that tilework compiles and
        launches itself.
        """
        requested = knobs.nvidia.auto_tma
        has_copies = requested is not False and Feature.TMA in Target.of(self.target).features
        return {"auto_tma": requested or "pays"} if has_copies and not knobs.compilation.override else {}

    def target_for(self, options: "CompileOptions") -> Target:
        return target_of(options.arch) if options.arch else Target.of(self.target)

    def stages(self, options: "CompileOptions") -> dict[str, Stage]:
        """TTIR, TTGIR, LLVM text, PTX, cubin."""
        # lazily: the compiler loads when something is compiled
        from tilework.transforms.registry import checking_pipeline, ttir_pipeline

        target = self.target_for(options)
        stages = 1 if options.sanitize else options.num_stages
        most = "never" if options.sanitize else "requested" if options.maxnreg else "pays"

        def ttgir(level: str) -> list[str]:
            passes = ttgir_pipeline(target, options.num_warps, stages, options.num_ctas, level)
            may_split = not (options.sanitize or options.reproducible or knobs.nvidia.plain_dots)
            names = ("tt-unroll-short-loops", "tt-split-masked-loops")
            split = [f"{name}{{num-warps={options.num_warps}}}" for name in names] if may_split else []
            scaled = ["tt-scaled-maximum"] if options.enable_fp_fusion and not options.sanitize else []
            runs = [] if options.sanitize or knobs.nvidia.plain_dots else ["tt-load-runs"]
            return [*runs, *split, *scaled, *passes]

        checks = checking_pipeline(options.sanitize) if options.sanitize else ()
        source = target.without(Feature.TMA) if options.sanitize else target
        ttir = ttir_pipeline(source, checks=checks, reproducible=options.reproducible)
        ttir = ttir if options.sanitize else [*ttir, *copying(target, options)]

        # by LLVM text and PTX of this compilation, the same in another order
        reordered: dict[str, Callable[[], str]] = {}

        def llir(module: Any) -> str:
            # lazily: the compiler loads when something is compiled
            from tilework.targets.nvidia.lower.emit import emit_module
            from tilework.targets.observe import write_reproducer

            capability = capability_of(options.arch) if options.arch else int(self.target.arch)
            given = f"{{compute-capability={capability}}}"
            write_reproducer("make_llir", module, [f"{name}{given}" for name in LOWERING])
            lines = not knobs.compilation.disable_line_info
            emit = partial(
                emit_module, module, capability, fuses=options.enable_fp_fusion, lines=lines, options=options
            )
            text = emit()
            reordered[text] = lambda: emit(by_use=False)
            return text

        def ptx(text: str) -> str:
            made = ptx_of(text, options)
            if (other := reordered.get(text)) is not None:
                reordered[made] = lambda: ptx_of(other(), options)
            return shown(made)

        return {
            "ttir": lambda module: run_passes(module, ttir, "make_ttir"),
            "ttgir": lambda module: make_ttgir(module, target, ttgir(most), lambda: ttgir("unfit")),
            "llir": llir,
            "ptx": ptx,
            "cubin": lambda text: cubin_of(text, options, reordered.get(text)),
        }

    def entering(self, options: "CompileOptions") -> dict[str, Stage]:
        from tilework.targets.nvidia import ptx_text  # lazily: what a bundle serves is not compiled

        most = options.maxnreg
        return {
            "llir": lambda text: tried(text, options),
            "ptx": lambda text: shown(text if most is None else ptx_text.with_maxnreg(text, most)),
        }

    def binary_after(self, stage: str, options: "CompileOptions") -> str:
        """Return "cubin", or "ptx" where there is no ptxas; a cubin of the user is kept."""
        return "ptx" if stage != "cubin" and assembler(capability_of(options.arch or "")) is None else "cubin"

    def kernel_facts(
        self, stage: str, artifact: Any, name: str, options: "CompileOptions", given: Collection[str]
    ) -> dict[str, Any]:
        """Read name, warps, clusters, dynamic shared memory and scratch memory from PTX.

        The only kernel of a file may have another name. Options that the user gave must agree with the text.
        """
        if stage != "ptx":
            return {}
        from tilework.targets.nvidia import ptx_text  # lazily: what a bundle serves is not compiled

        kernels = ptx_text.entries(artifact)
        if name not in kernels:
            if len(kernels) != 1:
                found = f"the kernels {', '.join(kernels)}: call the file after one of them" if kernels else NO_KERNEL
                raise StageError(f"the PTX of {name} has {found}")
            (name,) = kernels
        facts = {key: fact for key, fact in ptx_text.metadata(artifact).items() if key != "fp_contract"}
        if "shared" not in facts and ptx_text.has_dynamic_shared(artifact):
            warnings.warn(
                f"the PTX of {name} uses dynamic shared memory and does not say how much: launches give it none."
                ' Write the number of bytes into its first line: // tilework: {"shared": 4096}',
                stacklevel=2,
            )
        requested = options.num_warps if "num_warps" in given and "num_warps" not in facts else None
        return {"name": name, **facts, **ptx_text.launch_facts(name, kernels[name], requested)}

    def check_fit(self, stage: str, artifact: Any, options: "CompileOptions", properties: Mapping[str, int]) -> None:
        """Raise DoesNotFit if TTGIR needs more shared memory, threads or registers than there are."""
        if stage == "ttgir":
            from tilework.targets.nvidia.fit import check_fit  # lazily: the compiler loads when something is compiled

            check_fit(artifact, options, self.target_for(options), properties)

    def hash(self) -> str:
        """Return the architecture and the releases of both assemblers, since the option `arch` may select either.

        Where the driver assembles, this is its release: an older one cannot read the PTX.
        """
        tools = [assembler(capability) for capability in (int(self.target.arch), BLACKWELL)]
        found = "-".join(tool.version if tool is not None else "none" for tool in tools)
        if tools[0] is None:
            from tilework.targets.nvidia.ptx_text import driver_release  # lazily: most machines with a GPU have ptxas

            found += f"-driver-{driver_release()}"
        return f"cuda-{self.target.arch}-ptxas-{knobs.nvidia.mock_ptx_version or found}-llvmlite-{llvmlite_release()}"
