"""The last stages for NVIDIA GPUs: LLVM text, PTX, cubin.

    stages = backend.later_stages(options)
    stages["cubin"](stages["ptx"]("define ptx_kernel void @k() { ret void }"))

A machine without ptxas has no stage `cubin`: kernels end as PTX, and the driver assembles them when they are loaded.
The modules that do the work are imported when a stage runs; looking up a kernel in the cache needs neither LLVM nor
`cubin.py`.
"""

import warnings
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from tilework import knobs
from tilework.errors import StageError
from tilework.targets.base import Backend, Stage
from tilework.targets.nvidia.arch import capability_of

BLACKWELL = 100  # from this capability on the knob `ptxas_blackwell` names the assembler


def assembler(capability: int) -> Any:
    """Return the ptxas for a GPU, or None; the emulator executes PTX."""
    if (knobs.runtime.device or "").startswith("emulator"):
        return None
    return knobs.nvidia.find_tool("ptxas_blackwell" if capability >= BLACKWELL else "ptxas")


def required_assembler(capability: int) -> Any:
    """Return the ptxas for a GPU; raise a RuntimeError that says how to get one."""
    return knobs.nvidia.ptxas_blackwell if capability >= BLACKWELL else knobs.nvidia.ptxas


if TYPE_CHECKING:
    from tilework.targets.options import CompileOptions

NO_KERNEL = "no kernel: in PTX it is an .entry, in LLVM text a function with the calling convention ptx_kernel"
LOWERING = ("allocate-shared-memory-nv", "triton-nvidia-gpu-proxy-fence-insertion", "convert-triton-gpu-to-llvm")
BANNER = "// -----// NVPTX Dump //----- //"


class LaterStages(Backend):
    """The stages of a backend after TTGIR."""

    def later_stages(self, options: "CompileOptions") -> dict[str, Stage]:
        def llir(module: Any) -> str:
            # lazily: the compiler loads when something is compiled
            from tilework.targets.nvidia.lower.emit import emit_module
            from tilework.targets.observe import write_reproducer

            capability = capability_of(options.arch) if options.arch else int(self.target.arch)
            given = f"{{compute-capability={capability}}}"
            write_reproducer("make_llir", module, [f"{name}{given}" for name in LOWERING])
            lines = not knobs.compilation.disable_line_info
            return emit_module(module, capability, fuses=options.enable_fp_fusion, lines=lines, options=options)

        return {
            "llir": llir,
            "ptx": lambda text: shown(ptx_of(text, options)),
            "cubin": lambda text: cubin_of(text, options),
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


def cubin_of(text: str, options: "CompileOptions") -> bytes:
    # lazily: the compiler loads when something is compiled
    from tilework.targets.nvidia import ptx_text
    from tilework.targets.nvidia.cubin import CubinSettings, to_cubin
    from tilework.targets.nvidia.ptx_text import cpu_name

    tool = required_assembler(capability_of(options.arch or ""))
    settings = CubinSettings(cpu_name(options.arch or ""), options.enable_fp_fusion, options.ptx_options)
    return to_cubin(text, next(iter(ptx_text.entries(text)), "kernel"), settings, tool.path)
