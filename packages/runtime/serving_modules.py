"""Which modules of tilework launch the kernels of a bundle: the wheel `tilework-runtime` has these.

    modules = runtime_modules(ROOT)        {"tilework.runtime.launch.python.jit": path, ...}

The compiler is in COMPILER's folders. A module elsewhere belongs to it if what it imports when it is loaded does, or is
one of the packages that only the compiler requires: what it imports inside of functions is for those who have it. So a
module need not be listed anywhere, and `tests/test_wheels.py` sees to it that what serves stays on its side.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "tilework"
COMPILER = (
    *(
        "analysis",
        "aot",
        "as_triton",
        "frontend",
        "inspect.explain",
        "inspect.explorer",
        "ir",
        "layouts",
        "oracles",
        "transforms",
        "triton",
    ),
    *("targets.gpu", "targets.amd.lower", "targets.cpu.lower", "targets.llvm.math", "targets.nvidia.lower"),
)
FOREIGN = ("xdsl", "llvmlite", "ml_dtypes")  # the packages that only the compiler requires


def version(root: Path = ROOT) -> str:
    """The version of tilework."""
    found = re.search(r'__version__ = "(.+)"', (root / PACKAGE / "version.py").read_text())
    assert found, "tilework/version.py says no version"
    return found[1]


def modules(root: Path = ROOT) -> dict[str, Path]:
    """Every module of the package."""
    found = sorted((root / PACKAGE).rglob("*.py"))
    return {".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path for path in found}


@cache
def runtime_modules(root: Path = ROOT) -> dict[str, Path]:
    """The modules of the runtime."""
    every = modules(root)
    theirs = {name for name in every if is_in_compiler(name)} | set(FOREIGN)
    needs = {name: set(loaded_with(name, every[name], every)) for name in every.keys() - theirs}
    while more := {name for name in needs.keys() - theirs if theirs & needs[name]}:
        theirs |= more
    return {name: path for name, path in every.items() if name not in theirs}


def is_in_compiler(module: str) -> bool:
    return f"{module}.".startswith(tuple(f"{PACKAGE}.{folder}." for folder in COMPILER))


def loaded_with(name: str, path: Path, every: dict[str, Path]) -> Iterator[str]:
    """The modules that are loaded with a module, and the packages of others."""
    parents = name.split(".")
    yield from (".".join(parents[:length]) for length in range(1, len(parents)))
    package = parents if path.name == "__init__.py" else parents[:-1]
    for node in statements(ast.parse(path.read_text()).body):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *((node.module or "").split("."))]).strip(".")
            names = [source, *(f"{source}.{alias.name}" for alias in node.names if f"{source}.{alias.name}" in every)]
        for found in names:
            parts = found.split(".")
            yield from (".".join(parts[:length]) for length in range(1, len(parts) + 1))


def statements(body: Iterable[ast.AST]) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports that run when a module is loaded."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from statements(node.orelse)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for inside in ("body", "orelse", "finalbody", "handlers"):
                yield from statements(getattr(node, inside, ()))
