"""LLVM text to a code object (`.hsaco`), or to assembly.

    data = to_code_object(text)        # an ELF file that the HIP runtime loads
    assembly(text)                     # to look at

LLVM makes a relocatable object, `ld.lld` or `link.py` the loadable file of it. Assembly is made only when somebody asks for it, since
LLVM cannot assemble it again.
"""

import json
import re
from contextlib import ExitStack
from typing import Any

from tilework.errors import StageError
from tilework.targets.amd.assembler import has_assembly, object_of
from tilework.targets.amd.link import link
from tilework.targets.amd.llvm_programs import commands, made_by
from tilework.targets.llvm import switches
from tilework.targets.llvm.apart import apart
from tilework.targets.llvm.binding import llvm
from tilework.targets.llvm.compile import AMDGCN, data_layout, optimize, target_machine

LEVEL = 3
FACTS = re.compile(r"^; tilework: (\{.*\})$", re.MULTILINE)
PROCESSOR = re.compile(r'"target-cpu"="(gfx\w+)"')
KERNEL = re.compile(r"^define amdgpu_kernel void @([\w.$]+)", re.MULTILINE)
FLAGS = """
!llvm.module.flags = !{!10001}
!10001 = !{i32 1, !"amdhsa_code_object_version", i32 500}
"""


def told(text: str) -> dict[str, Any]:
    """What the first line of LLVM text of ours says."""
    found = FACTS.search(text)
    return json.loads(found[1]) if found is not None else {}


def kernel_name(text: str) -> str:
    """The name of the one kernel."""
    names = KERNEL.findall(text)
    if len(names) != 1:
        found = (
            f"the kernels {', '.join(names)}"
            if names
            else "no kernel, a function with the calling convention amdgpu_kernel"
        )
        raise StageError(f"the LLVM text has {found}: one is wanted")
    return names[0]


def processor_of(text: str, wanted: str = "") -> str:
    """The architecture that LLVM text says it is for, else the one that is wanted."""
    found = PROCESSOR.search(text)
    if found is None and not wanted:
        raise StageError(f'the LLVM text of {kernel_name(text)} does not say what it is for: "target-cpu"="gfx942"')
    if found is not None and wanted not in ("", found[1]):
        raise StageError(f"the LLVM text of {kernel_name(text)} is for {found[1]}, not for {wanted}")
    return wanted if found is None else found[1]


def machine_for(arch: str) -> Any:
    """RDNA3 keeps halves in whole registers, as Triton's code does."""
    features = "-real-true16" if arch.startswith("gfx11") else ""
    return target_machine(AMDGCN, arch, features, switches.level(LEVEL))


@apart
def generated(text: str, as_text: bool, arch: str = "") -> Any:
    """Assembly or a relocatable object."""
    name, machine = kernel_name(text), machine_for(processor_of(text, arch))
    with ExitStack() as owner:
        context = owner.enter_context(llvm.create_context())
        try:
            module = owner.enter_context(llvm.parse_assembly(text, context))
            if "amdhsa_code_object_version" not in text:
                module.link_in(owner.enter_context(llvm.parse_assembly(FLAGS, context)))
            module.triple, module.data_layout = AMDGCN, data_layout(machine)
            module.verify()
        except RuntimeError as error:
            raise StageError(f"LLVM does not accept the text of {name}: {error}") from None
        optimize(module, LEVEL, machine)
        with switches.watching(text):
            return machine.emit_assembly(module) if as_text else machine.emit_object(module)


def assembly(text: str) -> str:
    return generated(text, as_text=True)


def linked(data: bytes) -> bytes:
    """The code object of a relocatable one: by `ld.lld` where there is one, else by our own linker."""
    for command in commands("ld.lld"):
        made, _ = made_by([*command, "--threads=1", "-shared"], data)
        if made is not None:
            return made
    return link(data)


def to_code_object(text: str, arch: str = "") -> bytes:
    if has_assembly(text):
        return linked(object_of(assembly(text), text, processor_of(text)))
    return linked(generated(text, False, arch))
