"""Golden files: kernels with a mistake and the diagnostics they get; kernels and the TTIR they become.

A file `errors/NAME.py` holds kernels; `errors/NAME.err` the rendered diagnostic of each, under a line ``== KERNEL``. Kernels
take (p, n, BLOCK) and are compiled as ``*fp32, i32, 64`` unless the file's SIGNATURES say otherwise. Functions that are only
called by kernels are listed in neither. The same for `ttir/NAME.py` and `ttir/NAME.ttir`.
"""

import importlib
import re
from pathlib import Path
from typing import Any

from tilework.targets.base import GPUTarget
from tilework import knobs
from tilework.compiler import ASTSource, lower
from tilework.errors import CompilationError
from tilework.language.function import JITFunction
from tilework.tools.compile import parse_signature

FOLDER = Path(__file__).parent
DEFAULT = "*fp32, i32, 64"
TARGET = GPUTarget("cuda", 90, 32)


def topics(kind: str) -> list[str]:
    """The golden files of one kind."""
    return sorted(path.stem for path in (FOLDER / kind).glob("*.py") if path.stem != "__init__")


def kernels(kind: str, topic: str) -> dict[str, tuple[JITFunction, str]]:
    """Name -> (kernel, signature) of one file: the jit functions that take (p, n, BLOCK), or have a signature."""
    module = importlib.import_module(f"tests.golden.{kind}.{topic}")
    signatures = getattr(module, "SIGNATURES", {})
    found = {}
    for name, value in vars(module).items():
        if isinstance(value, JITFunction) and value.module == module.__name__:
            if name in signatures or value.arg_names == ["p", "n", "BLOCK"]:
                found[name] = (value, signatures.get(name, DEFAULT))
    return found


def diagnose(kernel: JITFunction, signature: str) -> str:
    """The rendered diagnostic of a kernel that must not compile where Triton's language ends."""
    try:
        with knobs.language.scope():
            knobs.language.strict_triton = True
            lower(source(kernel, signature), TARGET)
    except CompilationError as error:
        return error.diagnostic().render().replace(str(FOLDER.parent.parent) + "/", "")
    return "COMPILES"


def source(kernel: JITFunction, signature: str) -> ASTSource:
    """A kernel with the types from a signature text."""
    return ASTSource(kernel, *parse_signature(kernel, signature))


def render_ttir(kernel: JITFunction, signature: str) -> str:
    """The module as the frontend makes it, without locations."""
    from tilework.runtime.compile.sources import frontend_options
    from tilework.ir.printer import print_module

    return print_module(source(kernel, signature).module(frontend_options(TARGET, {})))


RENDER: dict[str, tuple[str, Any]] = {"errors": (".err", diagnose), "ttir": (".ttir", render_ttir)}


def expected_path(kind: str, topic: str) -> Path:
    return FOLDER / kind / (topic + RENDER[kind][0])


def read_expected(kind: str, topic: str) -> dict[str, str]:
    """Section name -> text."""
    path = expected_path(kind, topic)
    sections: dict[str, str] = {}
    if path.exists():
        for section in re.split(r"^== ", path.read_text(), flags=re.MULTILINE)[1:]:
            name, _, text = section.partition("\n")
            sections[name] = text.strip("\n")
    return sections
