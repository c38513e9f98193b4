"""LLVM as Triton's native module shows it, over llvmlite.

    module = llvm.to_module(ttgir, llvm.context())          # LLVM text of a TTGIR module
    llvm.link_extern_libs(module, [libdevice])
    llvm.optimize_module(module, llvm.OPTIMIZE_O3)
    print(module)

Code generation from TTGIR is one step here, so `to_module` takes TTGIR, where Triton's takes MLIR's LLVM dialect.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import llvmlite.binding as binding

from tilework.backends.cuda.libdevice import link_libraries
from tilework.backends.llvm.compile import initialize_all, nvptx_target_machine
from tilework.ir.module_facts import capability

TRIPLE = "nvptx64-nvidia-cuda"


class optimization_level(IntEnum):
    """How much `optimize_module` does; Os and Oz, which are about size, are as O3 here."""

    O0 = 0
    O1 = 1
    O2 = 2
    O3 = 3
    Os = 4
    Oz = 5


OPTIMIZE_O0, OPTIMIZE_O1, OPTIMIZE_O2, OPTIMIZE_O3, OPTIMIZE_Os, OPTIMIZE_Oz = optimization_level


def init_targets() -> None:
    """Make every target of this LLVM known."""
    initialize_all()


class context:
    """What a module lives in."""

    def __init__(self) -> None:
        self.wrapped = binding.create_context()


class module:
    """An LLVM module; `str` is its text."""

    def __init__(self, text: str, context: "context", machine: Any) -> None:
        self.context, self.machine = context, machine
        self.wrapped = binding.parse_assembly(text, context.wrapped)
        self.wrapped.triple, self.wrapped.data_layout = machine.triple, str(machine.target_data)

    def get_functions(self) -> list[Any]:
        """Its functions: `name`, `is_declaration`."""
        return list(self.wrapped.functions)

    def __str__(self) -> str:
        return str(self.wrapped)


def to_module(mod: Any, ctx: context) -> module:
    """The LLVM module of a TTGIR module, for the target that it names."""
    from tilework.backends.cuda.ptx_version import cpu_name
    from tilework.backends.gpu.codegen import emit_module

    number = capability(mod.wrapped)
    text = emit_module(mod.wrapped, number)
    return module(text, ctx, nvptx_target_machine(cpu_name(f"sm{number}"), "+ptx80"))


def link_extern_libs(mod: module, paths: Sequence[str]) -> None:
    """Link what the module calls of bitcode libraries; a file called libdevice... is NVIDIA's."""
    libraries = [("libdevice" if "libdevice" in path else path, path) for path in paths]
    link_libraries(mod.wrapped, mod.context.wrapped, mod.machine, libraries, flushes=True)


def optimize_module(
    mod: module,
    opt: optimization_level,
    arch: str = "",
    features: str = "",
    flags: Sequence[str] = (),
    enable_fp_fusion: bool = False,
) -> None:
    """Run LLVM's pipeline of a level."""
    tuning = binding.create_pipeline_tuning_options(speed_level=min(int(opt), 3))
    passes = binding.create_pass_builder(mod.machine, tuning)
    passes.getModulePassManager().run(mod.wrapped, passes)


def translate_to_asm(
    llvm_ir: str, triple: str, proc: str, features: str, flags: Sequence[str], enable_fp_fusion: bool, is_object: bool
) -> str | bytes:
    """Machine code of LLVM text, for any target of this LLVM: as assembly, or as an object file."""
    initialize_all()
    machine = binding.Target.from_triple(triple).create_target_machine(cpu=proc, features=features, opt=3)
    with binding.parse_assembly(llvm_ir, binding.create_context()) as parsed:
        parsed.triple, parsed.data_layout = triple, str(machine.target_data)
        return machine.emit_object(parsed) if is_object else machine.emit_assembly(parsed)
