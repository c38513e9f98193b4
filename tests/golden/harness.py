"""Golden files: kernels with a mistake and the diagnostics they get; kernels and the TTIR they become.

A file `errors/NAME.py` holds kernels; `errors/NAME.err` the rendered diagnostic of each, under a line ``== KERNEL``, and
`errors/NAME.interpreted` what the interpreter says, which runs some that the compiler refuses. Kernels take (p, n, BLOCK)
and are compiled as ``*fp32, i32, 64`` unless the file's SIGNATURES say otherwise; where Triton's language ends they must
not compile, unless the file's STRICT is False. Functions that are only called by kernels are listed in neither. The same
for `ttir/NAME.py` and `ttir/NAME.ttir`.
"""

import importlib
import re
from pathlib import Path
from typing import Any

import numpy as np

import tilework
from tilework import knobs
from tilework.compiler import ASTSource, lower
from tilework.errors import CompilationError, InterpreterError
from tilework.language.function import JITFunction
from tilework.targets.base import GPUTarget
from tilework.tools.compile import parse_signature

FOLDER = Path(__file__).parent
DEFAULT = "*fp32, i32, 64"
TARGET = GPUTarget("cuda", 90, 32)


def topics(kind: str) -> list[str]:
    """The golden files of one kind."""
    return sorted(path.stem for path in (FOLDER / RENDER[kind][0]).glob("*.py") if path.stem != "__init__")


def kernels(kind: str, topic: str) -> dict[str, tuple[JITFunction, str]]:
    """Name -> (kernel, signature) of one file: the jit functions that take (p, n, BLOCK), or have a signature."""
    module = importlib.import_module(f"tests.golden.{RENDER[kind][0]}.{topic}")
    signatures = getattr(module, "SIGNATURES", {})
    found = {}
    for name, value in vars(module).items():
        if isinstance(value, JITFunction) and value.module == module.__name__:
            if name in signatures or value.arg_names == ["p", "n", "BLOCK"]:
                found[name] = (value, signatures.get(name, DEFAULT))
    return found


def is_strict(kernel: JITFunction) -> bool:
    """Return True for a kernel that must not compile where Triton's language ends."""
    return getattr(importlib.import_module(kernel.module), "STRICT", True)


def diagnose(kernel: JITFunction, signature: str) -> str:
    """The rendered diagnostic of a kernel that must not compile."""
    try:
        with knobs.language.scope():
            knobs.language.strict_triton = is_strict(kernel)
            lower(source(kernel, signature), TARGET)
    except CompilationError as error:
        return error.diagnostic().render().replace(str(FOLDER.parent.parent) + "/", "")
    return "COMPILES"


def diagnose_interpreted(kernel: JITFunction, signature: str) -> str:
    """What the interpreter says when it runs the kernel on zeros."""
    given = [argument(part.strip()) for part in signature.split(",")]
    try:
        with knobs.language.scope(), np.errstate(all="ignore"):
            knobs.language.strict_triton = is_strict(kernel)
            tilework.jit(kernel.fn, interpret=True)[(1,)](*given)
    except CompilationError as error:
        text = error.diagnostic().render()
    except InterpreterError as error:
        text = str(error)
    else:
        text = "RUNS"
    return text.replace(str(FOLDER.parent.parent) + "/", "")


def argument(kind: str) -> Any:
    """A value for a parameter: zeros, 5, or the constant."""
    if kind.startswith("*"):
        return np.zeros(1024, np.float32)
    return int(kind) if kind.isdigit() else 5


def source(kernel: JITFunction, signature: str) -> ASTSource:
    """A kernel with the types from a signature text."""
    return ASTSource(kernel, *parse_signature(kernel, signature))


def render_ttir(kernel: JITFunction, signature: str) -> str:
    """The module as the frontend makes it, without locations."""
    from tilework.runtime.compile.sources import frontend_options
    from tilework.ir.printer import print_module

    return print_module(source(kernel, signature).module(frontend_options(TARGET, {})))


# kind -> (folder, suffix of the expected text, what makes it)
RENDER: dict[str, tuple[str, str, Any]] = {
    "errors": ("errors", ".err", diagnose),
    "interpreted": ("errors", ".interpreted", diagnose_interpreted),
    "ttir": ("ttir", ".ttir", render_ttir),
}


def expected_path(kind: str, topic: str) -> Path:
    folder, suffix, _ = RENDER[kind]
    return FOLDER / folder / (topic + suffix)


def read_expected(kind: str, topic: str) -> dict[str, str]:
    """Section name -> text."""
    path = expected_path(kind, topic)
    sections: dict[str, str] = {}
    if path.exists():
        for section in re.split(r"^== ", path.read_text(), flags=re.MULTILINE)[1:]:
            name, _, text = section.partition("\n")
            sections[name] = text.strip("\n")
    return sections
