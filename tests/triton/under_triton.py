"""Run under an interpreter that has Triton; nothing here imports tilework.

Reads from standard input {"kernels": [...], "texts": [...], "modules": [...], "lowered": [...], "assembled": [...]},
each perhaps missing; prints as its last line what Triton's own compiler gives for the kernels (executed with `triton`
under the name `tilework`), what it prints for modules it has only read, what it makes of our TTIR (lowered) and of
assembly for AMD GPUs (objects in base64), and what it says about texts we printed, of the stage that they name (TTIR
without one): {"printed": {key: text}, "refused": {key: message}}.
"""

# pyright takes tests/triton for triton.
# pyright: reportAttributeAccessIssue=false

import base64
import json
import sys
import tempfile
import types
from pathlib import Path

import triton
import triton.language
from triton import knobs
from triton._C.libtriton import amd, ir, llvm, nvidia
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


def target_of(arch: int | str) -> GPUTarget:
    """90, or ``gfx942``."""
    if isinstance(arch, int):
        return GPUTarget("cuda", arch, 32)
    return GPUTarget("hip", arch, 32 if arch.startswith("gfx1") else 64)


def load(file: str, kernel: str) -> object:
    """Import an example with Triton under our names."""
    stand_in = types.ModuleType("tilework")
    stand_in.__dict__.update({name: getattr(triton, name) for name in dir(triton) if not name.startswith("__")})
    stand_in.language = triton.language  # pyright: ignore[reportAttributeAccessIssue]
    sys.modules["tilework"] = stand_in
    sys.modules["tilework.language"] = triton.language
    root = str(Path(file).parent.parent)
    if root not in sys.path:
        sys.path.insert(0, root)
    return getattr(__import__(f"examples.{Path(file).stem}", fromlist=[kernel]), kernel)


def print_kernel(entry: dict) -> str:
    """The TTIR of a kernel, or the stage it asks for, with locations."""
    attrs = {tuple(path): facts for path, facts in entry["attrs"]}
    kernel = load(entry["file"], entry["kernel"])
    source = ASTSource(kernel, entry["signature"], entry["constexprs"], attrs)
    compiled = triton.compile(source, target=target_of(entry["arch"]), options=entry.get("options"))
    return compiled.asm[entry.get("stage", "ttir")]


def write_text(entry: dict, folder: str) -> Path:
    """A file with the text of `entry`, named after its stage."""
    path = Path(folder) / f"{entry['key'].replace(':', '_')}.{entry.get('stage', 'ttir')}"
    path.write_text(entry["text"])
    return path


def reprint(entry: dict, folder: str) -> str:
    """A module as Triton prints it after reading and verifying it."""
    context = ir.context()
    ir.load_dialects(context)
    nvidia.load_dialects(context)
    return ir.parse_mlir_module(str(write_text(entry, folder)), context).str_nodebug()


def lower_text(entry: dict, folder: str) -> str:
    """The TTGIR that Triton makes of our TTIR."""
    path = write_text(entry, folder)
    target = target_of(entry["arch"])
    return triton.compile(str(path), target=target, options=entry["options"]).asm["ttgir"]


def accept(entry: dict, folder: str) -> None:
    """Compile our text to the end; an exception says what is wrong with it."""
    path = write_text(entry, folder)
    compiled = triton.compile(str(path), target=target_of(entry["arch"]))
    assert compiled.asm.keys() & {"cubin", "hsaco"}, "no machine code"


def main() -> None:
    request = json.load(sys.stdin)
    printed: dict[str, str] = {}
    refused: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        knobs.cache.dir = folder
        for entry in request.get("kernels", ()):
            printed[entry["key"]] = print_kernel(entry)
        for entry in request.get("modules", ()):
            try:
                printed[entry["key"]] = reprint(entry, folder)
            except Exception as error:
                refused[entry["key"]] = f"{type(error).__name__}: {error}"
        for entry in request.get("lowered", ()):
            try:
                printed[entry["key"]] = lower_text(entry, folder)
            except Exception as error:
                refused[entry["key"]] = f"{type(error).__name__}: {error}"
        llvm.init_targets()
        for entry in request.get("assembled", ()):
            made = amd.assemble_amdgcn(entry["text"], entry["arch"], entry["features"])
            printed[entry["key"]] = base64.b64encode(made).decode()
        for entry in request.get("texts", ()):
            try:
                accept(entry, folder)
            except Exception as error:
                refused[entry["key"]] = f"{type(error).__name__}: {error}"
    print(json.dumps({"printed": printed, "refused": refused}))


if __name__ == "__main__":
    main()
