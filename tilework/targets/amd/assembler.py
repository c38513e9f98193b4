"""Objects of kernels with inline assembly, by LLVM's assembler: llvmlite has none for AMD GPUs, LLVM's and ROCm's programs have.

    object_of(assembly, text, "gfx942")        llvm-mc or clang, on the PATH or in ROCm

Without one of them a kernel with inline assembly is refused; `kernel.asm["amdgcn"]` can be looked at all the same.
"""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence

from tilework.errors import StageError

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
    rocm = os.path.join(os.environ.get("ROCM_PATH", "/opt/rocm"), "llvm", "bin")
    found = [(name, path) for name in CALLS for place in (rocm, None) if (path := shutil.which(name, path=place))]
    refusals = ["neither llvm-mc nor clang is on the PATH or in ROCm"] if not found else []
    for name, path in found:
        with tempfile.TemporaryDirectory() as folder:
            source, made = (os.path.join(folder, file) for file in ("kernel.s", "kernel.o"))
            with open(source, "w") as file:
                file.write(assembly)
            options = [option.format(arch=arch) for option in CALLS[name]]
            done = subprocess.run([path, *options, source, "-o", made], capture_output=True, text=True, check=False)
            if not done.returncode:
                with open(made, "rb") as file:
                    return file.read()
            refusals.append(
                f"{path}: " + "\n".join(done.stderr.strip().splitlines()[:3])
            )  # an old one knows none of it
    raise StageError(f"{place_of(text)}inline assembly for hip:{arch} cannot be assembled: " + "\n".join(refusals))


def place_of(text: str) -> str:
    """``kernel.py:7: ``, the user's line with the assembly, if it is known."""
    call = HAS_ASSEMBLY.search(text)
    line = call and call[1] and re.search(rf"^{call[1]} = !DILocation\(line: (\d+)", text, re.MULTILINE)
    file = re.search(r'!DIFile\(filename: "(.*?)"', text)
    return f"{file[1]}:{line[1]}: " if line and file else ""
