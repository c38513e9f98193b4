"""LLVM text to a code object (`.hsaco`), or to assembly.

    data = to_code_object(text)        # an ELF file that the HIP runtime loads
    assembly(text)                     # for display

LLVM emits a relocatable object, and `ld.lld` or `link.py` links it. Kernels with inline assembly need an assembler,
which llvmlite lacks for AMD GPUs:

    object_of(assembly, "gfx942")        llvm-mc or clang

Without one, a kernel with inline assembly is refused, though `kernel.asm["amdgcn"]` shows its assembly.

The programs `ld.lld`, `llvm-mc` and `clang` come from ROCm or the PATH, and `ld.lld` also from the package ziglang
(``pip install tilework[amd]``). None is required.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from typing import Any

from tilework import knobs
from tilework.errors import StageError
from tilework.targets.amd.link import link
from tilework.targets.llvm.apart import apart
from tilework.targets.llvm.compile import (
    AMDGCN,
    data_layout,
    llvm,
    optimisation_level,
    optimize,
    target_machine,
    watching,
)


def commands(name: str) -> Iterator[list[str]]:
    """Yield the command lines that start a program, the preferred one first."""
    rocm = os.path.join(knobs.getenv("ROCM_PATH") or "/opt/rocm", "llvm", "bin")
    yield from ([path] for folder in (rocm, None) if (path := shutil.which(name, path=folder)))
    if name == "ld.lld" and find_spec("ziglang") is not None:
        yield [sys.executable, "-m", "ziglang", name]


def made_by(command: Sequence[str], data: bytes) -> tuple[bytes | None, str]:
    """Run a program on a file; return its output and "", or None and its error text."""
    with tempfile.TemporaryDirectory() as folder:
        source, made = (os.path.join(folder, file) for file in ("kernel.in", "kernel.out"))
        with open(source, "wb") as file:
            file.write(data)
        try:
            done = subprocess.run([*command, source, "-o", made], capture_output=True, text=True, check=False)
        except OSError as error:
            return None, str(error)
        if done.returncode or not os.path.isfile(made):
            return None, "\n".join(done.stderr.strip().splitlines()[:3])
        with open(made, "rb") as file:
            return file.read(), ""


HAS_ASSEMBLY = re.compile(r" asm (?:sideeffect )?\".*!dbg (!\d+)| asm (?:sideeffect )?\"")
CALLS: dict[str, Sequence[str]] = {
    "llvm-mc": ("-triple=amdgcn-amd-amdhsa", "-filetype=obj", "-mcpu={arch}"),
    "clang": ("-target", "amdgcn-amd-amdhsa", "-mcpu={arch}", "-c", "-x", "assembler"),
}


def has_assembly(text: str) -> bool:
    """Return True if LLVM text has inline assembly."""
    return HAS_ASSEMBLY.search(text) is not None


def object_of(assembly: str, arch: str, subject: str = "the assembly of the stage amdgcn") -> bytes:
    """Assemble to a relocatable object; errors name the `subject`."""
    found = [(name, command) for name in CALLS for command in commands(name)]
    refusals = ["neither llvm-mc nor clang is on the PATH or in ROCm"] if not found else []
    for name, command in found:
        options = [option.format(arch=arch) for option in CALLS[name]]
        made, output = made_by([*command, *options], assembly.encode())
        if made is not None:
            return made
        refusals.append(f"{command[0]}: {output}")  # an old version may not know the processor
    raise StageError(f"{subject} for hip:{arch} cannot be assembled: " + "\n".join(refusals))


def location_of(text: str) -> str:
    """Return ``kernel.py:7: ``, the user's line with the assembly, if it is known."""
    call = HAS_ASSEMBLY.search(text)
    line = call and call[1] and re.search(rf"^{call[1]} = !DILocation\(line: (\d+)", text, re.MULTILINE)
    file = re.search(r'!DIFile\(filename: "(.*?)"', text)
    return f"{file[1]}:{line[1]}: " if line and file else ""


LEVEL = 3
FACTS = re.compile(r"^; tilework: (\{.*\})$", re.MULTILINE)
PROCESSOR = re.compile(r'"target-cpu"="(gfx\w+)"')
KERNEL = re.compile(r"^define amdgpu_kernel void @([\w.$]+)", re.MULTILINE)
FLAGS = """
!llvm.module.flags = !{!10001}
!10001 = !{i32 1, !"amdhsa_code_object_version", i32 500}
"""


def metadata(text: str) -> dict[str, Any]:
    """Return the contents of the metadata comment in the first line of LLVM text."""
    found = FACTS.search(text)
    return json.loads(found[1]) if found is not None else {}


def kernel_name(text: str) -> str:
    """Return the name of the only kernel."""
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
    """Return the architecture that the LLVM text names, else `wanted`."""
    found = PROCESSOR.search(text)
    if found is None and not wanted:
        raise StageError(f'the LLVM text of {kernel_name(text)} does not say what it is for: "target-cpu"="gfx942"')
    if found is not None and wanted not in ("", found[1]):
        raise StageError(f"the LLVM text of {kernel_name(text)} is for {found[1]}, not for {wanted}")
    return wanted if found is None else found[1]


def machine_for(arch: str) -> Any:
    """Return the target machine; on RDNA3 16-bit values occupy whole registers, as in Triton."""
    features = "-real-true16" if arch.startswith("gfx11") else ""
    return target_machine(AMDGCN, arch, features, optimisation_level(LEVEL))


@apart
def generated(text: str, as_text: bool, arch: str = "") -> Any:
    """Return assembly, or a relocatable object."""
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
        with watching(text):
            return machine.emit_assembly(module) if as_text else machine.emit_object(module)


def assembly(text: str) -> str:
    return generated(text, as_text=True)


def linked(data: bytes) -> bytes:
    """Link a relocatable object by `ld.lld`, else by our own linker."""
    for command in commands("ld.lld"):
        made, _ = made_by([*command, "--threads=1", "-shared"], data)
        if made is not None:
            return made
    return link(data)


def to_code_object(text: str, arch: str = "") -> bytes:
    if has_assembly(text):
        return linked(object_of(assembly(text), processor_of(text), f"{location_of(text)}inline assembly"))
    return linked(generated(text, False, arch))
