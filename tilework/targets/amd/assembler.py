"""Objects of kernels with inline assembly, by LLVM's assembler: llvmlite has none for AMD GPUs, LLVM's and ROCm's programs have.

    object_of(assembly, text, "gfx942")        llvm-mc or clang, on the PATH or in ROCm

Without one of them a kernel with inline assembly is refused; `kernel.asm["amdgcn"]` can be looked at all the same.
"""

import re
from collections.abc import Sequence

from tilework.errors import StageError
from tilework.targets.amd.llvm_programs import commands, made_by

HAS_ASSEMBLY = re.compile(r" asm (?:sideeffect )?\".*!dbg (!\d+)| asm (?:sideeffect )?\"")
CALLS: dict[str, Sequence[str]] = {
    "llvm-mc": ("-triple=amdgcn-amd-amdhsa", "-filetype=obj", "-mcpu={arch}"),
    "clang": ("-target", "amdgcn-amd-amdhsa", "-mcpu={arch}", "-c", "-x", "assembler"),
}


def has_assembly(text: str) -> bool:
    """Whether LLVM text has assembly of the user's."""
    return HAS_ASSEMBLY.search(text) is not None


def object_of(assembly: str, text: str, arch: str) -> bytes:
    """The relocatable object of assembly, which was made of LLVM `text`."""
    found = [(name, command) for name in CALLS for command in commands(name)]
    refusals = ["neither llvm-mc nor clang is on the PATH or in ROCm"] if not found else []
    for name, command in found:
        options = [option.format(arch=arch) for option in CALLS[name]]
        made, words = made_by([*command, *options], assembly.encode())
        if made is not None:
            return made
        refusals.append(f"{command[0]}: {words}")  # an old one knows none of it
    raise StageError(f"{place_of(text)}inline assembly for hip:{arch} cannot be assembled: " + "\n".join(refusals))


def place_of(text: str) -> str:
    """``kernel.py:7: ``, the user's line with the assembly, if it is known."""
    call = HAS_ASSEMBLY.search(text)
    line = call and call[1] and re.search(rf"^{call[1]} = !DILocation\(line: (\d+)", text, re.MULTILINE)
    file = re.search(r'!DIFile\(filename: "(.*?)"', text)
    return f"{file[1]}:{line[1]}: " if line and file else ""
