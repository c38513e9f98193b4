"""LLVM as Triton's native module shows it, over llvmlite.

    module = llvm.to_module(ttgir, llvm.context())          # LLVM text of a TTGIR module
    llvm.link_extern_libs(module, [libdevice])
    llvm.optimize_module(module, llvm.OPTIMIZE_O3)
    print(module)

Code generation from TTGIR is one step here, so `to_module` takes TTGIR, where Triton's takes MLIR's LLVM dialect. A
module is its text: objects of LLVM live only inside of a function (`targets/llvm/apart.py` explains why).
"""

import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from enum import IntEnum
from typing import Any

from tilework.ir.module_facts import target
from tilework.targets.llvm.apart import apart
from tilework.targets.llvm.compile import NVPTX, data_layout, initialize_all, optimize, target_machine
from tilework.targets.llvm.compile import llvm as binding
from tilework.targets.nvidia.ptx import link_libraries

NAME_OF_FUNCTION = re.compile(r'^(define|declare)\b[^@\n]*@"?([\w.$]+)', re.MULTILINE)
HEAD_COMMENTS = re.compile(r"\A(?:;[^\n]*\n)*")  # comments at the head of a text, which LLVM does not keep


class optimization_level(IntEnum):
    """The amount of work of `optimize_module`; Os and Oz, which are about size, are as O3 here."""

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
    """The context of a module; it is empty."""


class function:
    """A function of a module."""

    def __init__(self, name: str, is_declared: bool) -> None:
        self.name, self.is_declared = name, is_declared

    def is_declaration(self) -> bool:
        """Return True if the module only calls it."""
        return self.is_declared


class module:
    """An LLVM module for an NVIDIA GPU; `str` is its text."""

    def __init__(self, text: str, cpu: str) -> None:
        self.text, self.cpu = text, cpu

    def get_functions(self) -> list[function]:
        return [function(name, kind == "declare") for kind, name in NAME_OF_FUNCTION.findall(self.text)]

    def __str__(self) -> str:
        return self.text

    @apart
    def change(self, work: Callable[[Any, Any, Any], Any]) -> None:
        """Let `work(module, context, machine)` change LLVM's module, and keep its text."""
        machine = target_machine(NVPTX, self.cpu, "+ptx86")
        with ExitStack() as owner:
            own = owner.enter_context(binding.create_context())
            parsed = owner.enter_context(binding.parse_assembly(self.text, own))
            parsed.triple, parsed.data_layout = NVPTX, data_layout(machine)
            work(parsed, own, machine)
            head = HEAD_COMMENTS.match(self.text)
            self.text = (head[0] if head else "") + str(parsed)


def to_module(mod: Any, ctx: context) -> module:
    """The LLVM module of a TTGIR module, for the target that it names."""
    from tilework.targets.nvidia.lower.emit import emit_module  # lazily: the compiler loads when something is compiled
    from tilework.targets.nvidia.ptx_text import cpu_name

    capability = int(target(mod.wrapped).arch)
    return module(emit_module(mod.wrapped, capability), cpu_name(f"sm{capability}"))


def link_extern_libs(mod: module, paths: Sequence[str]) -> None:
    """Link what the module calls of bitcode libraries; a file called libdevice... is NVIDIA's."""
    libraries = [("libdevice" if "libdevice" in path else path, path) for path in paths]
    mod.change(lambda parsed, own, machine: link_libraries(parsed, own, machine, libraries, flushes=True))


def optimize_module(
    mod: module,
    opt: optimization_level,
    arch: str = "",
    features: str = "",
    flags: Sequence[str] = (),
    enable_fp_fusion: bool = False,
) -> None:
    """Run LLVM's pipeline of a level."""
    mod.change(lambda parsed, own, machine: optimize(parsed, min(int(opt), 3), machine))


@apart
def translate_to_asm(
    llvm_ir: str, triple: str, proc: str, features: str, flags: Sequence[str], enable_fp_fusion: bool, is_object: bool
) -> str | bytes:
    """Machine code of LLVM text, for any target of this LLVM: as assembly, or as an object file."""
    initialize_all()
    machine = binding.Target.from_triple(triple).create_target_machine(cpu=proc, features=features, opt=3)
    with ExitStack() as owner:
        own = owner.enter_context(binding.create_context())
        parsed = owner.enter_context(binding.parse_assembly(llvm_ir, own))
        parsed.triple, parsed.data_layout = triple, data_layout(machine)
        return machine.emit_object(parsed) if is_object else machine.emit_assembly(parsed)
