"""The host: the list of stages.

| stage | output |
|---|---|
| `ttir` | TTIR; descriptors and block pointers have become ordinary loads and stores |
| `ttcir` | fused loop nests over buffers (`ir/ttc.py`) |
| `llir` | LLVM text as our code generator writes it, with the facts of `interface.py` in its first line |
| `obj` | an object file for this machine; `asm` shows its instructions under the lines of the source |

The text is folded, shared and vectorised as it is written, so that `obj` runs only LLVM's code generator: its optimiser
took a third of the time and made none of softmax, gelu, matmul, attention and cumsum faster. With
TILEWORK_DEVICE=evaluator kernels are compiled to TTIR only, and the evaluator runs them.
"""

import platform
from collections.abc import Collection, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from tilework import knobs
from tilework.targets.base import Backend, GPUTarget, Stage, llvmlite_release, run_passes

if TYPE_CHECKING:
    from tilework.targets.options import CompileOptions

DEFAULT_DEVICE = "native"  # or "evaluator": what runs kernels on the host unless TILEWORK_DEVICE says
DEVICES = ("native", "evaluator")
OPTIMISATION = 0  # the level of LLVM's optimiser, see `targets/llvm/compile.py`
CODE_GENERATION = 2  # that of its code generator


def device() -> str:
    """The device that runs kernels on the host; other values of TILEWORK_DEVICE do not change it."""
    chosen = knobs.runtime.device
    return chosen if chosen in DEVICES else DEFAULT_DEVICE


def assembled(ttcir: bytes | str, options: Mapping[str, Any]) -> str:
    from tilework.targets.cpu.assembly import assembly  # lazily: few look at it

    text = ttcir if isinstance(ttcir, str) else ttcir.decode()
    return assembly(text, options["enable_fp_fusion"], CODE_GENERATION, OPTIMISATION, str(options["target"].arch))


class CpuBackend(Backend):
    """``cpu``: see the module docstring."""

    views = {"asm": ("ttcir", assembled)}

    def __init__(self, target: GPUTarget) -> None:
        super().__init__(target)
        self.binary_ext = "obj" if device() == "native" else "ttir"

    def parse_options(self, settings: Mapping[str, Any]) -> "CompileOptions":
        """Options; those about warps are accepted and mean nothing here, a cluster is ignored with a warning."""
        from tilework.targets.options import CompileOptions  # lazily: what a bundle serves is not compiled

        return CompileOptions.of(settings, backend_name="cpu", warp_size=1, arch=platform.machine())

    def binary_after(self, stage: str, options: "CompileOptions") -> str:
        """The stage that the driver loads; the evaluator looks for races, in TTIR."""
        return "ttir" if options.sanitize == "race" else self.binary_ext

    def stages(self, options: "CompileOptions") -> dict[str, Stage]:
        # lazily: the compiler loads when something is compiled
        from tilework.target import Target
        from tilework.transforms.registry import ttir_pipeline

        ttir = ttir_pipeline(Target.of(self.target), options.sanitize == "race", reproducible=options.reproducible)
        return {
            "ttir": lambda module: run_passes(module, ttir, "make_ttir"),
            "ttcir": lambda module: tile_loops(module, options.sanitize, options.may_alias),
            "llir": lambda module: llvm_text(module, options.enable_fp_fusion, str(self.target.arch)),
            "obj": lambda text: object_code(text, str(self.target.arch)),
        }

    def kernel_facts(
        self, stage: str, artifact: Any, name: str, options: "CompileOptions", given: Collection[str]
    ) -> dict[str, Any]:
        """The facts that the launcher needs to call a kernel, from its LLVM text.

        There is no shared memory; its size and `n_regs` are not 0, because programs divide by them.
        """
        if stage != "llir":
            return {}
        from tilework.targets.cpu.run.interface import Interface  # lazily: only launches on the host need it

        interface = Interface.read(artifact)
        return {"name": interface.name, "interface": interface.facts(), "shared": 1}

    def hash(self) -> str:
        """The compiler behind the stages, and the machine that object code is for."""
        if self.binary_ext != "obj":
            return f"cpu-{platform.machine()}"
        return native_identity() + ("" if self.target.arch == "host" else f"-{self.target.arch}")


@cache
def native_identity() -> str:
    from tilework.targets.cpu.target import machine_identity  # lazily: only launches on the host need it

    identity = machine_identity()
    if not identity:
        from tilework.targets.cpu.target import detect  # lazily: loads LLVM

        identity = f"{detect().cpu};{','.join(sorted(detect().features))}"
    return f"cpu-{platform.machine()}-llvmlite-{llvmlite_release()}-{identity}"


def tile_loops(module: Any, sanitize: bool | str = False, may_alias: bool = False) -> Any:
    """TTIR to loop nests."""
    from tilework.transforms.registry import ttc_pipeline  # lazily: the compiler loads when something is compiled

    return run_passes(module, ttc_pipeline(sanitize, may_alias), "make_ttcir")


def llvm_text(module: Any, fuses: bool = True, arch: str = "host") -> str:
    """Loop nests to LLVM text: the functions, and the interface."""
    # lazily: the compiler loads when something is compiled
    from tilework.targets.cpu.lower.codegen import arena_size, emit_module
    from tilework.targets.cpu.lower.interface_of import interface_of
    from tilework.targets.cpu.machines import named_machine
    from tilework.targets.observe import is_recording

    requested = knobs.compilation.dump_ir_extract_di_local_variables and not knobs.compilation.disable_line_info
    lines = requested or is_recording()
    machine = named_machine(arch)
    text = emit_module(module, machine.facts, fuses=fuses, lines=lines, layout=machine.layout)
    interface = interface_of(module, arena_size(module))
    return interface.line() + text


def object_code(text: str, arch: str = "host") -> bytes:
    """LLVM text to an object file."""
    # lazily: loads LLVM, which a kernel from the cache does not need
    from tilework.targets.cpu.machines import named_machine
    from tilework.targets.llvm.compile import optimisation_level, to_object

    machine = named_machine(arch).code_generator(optimisation_level(CODE_GENERATION))
    return to_object(text, optimisation_level(OPTIMISATION), machine, watched=True)
