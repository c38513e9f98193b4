"""Allowed imports: the table of the architecture, checked against every import in the package."""

import ast
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).parent.parent / "tilework"

BASE = ["light_dataclass"]  # every part may import it
ALLOWED: dict[str, list[str]] = {
    "light_dataclass": [],
    "errors": [],
    "process": ["knobs"],
    "version": [],
    "target": ["process", "errors"],
    "knobs": [],
    "numerics": ["errors", "process"],
    "layouts": ["errors", "process"],
    "language": ["numerics", "layouts", "errors", "knobs", "process"],
    "ir": ["target", "layouts", "numerics", "errors", "process"],
    "frontend": ["language", "numerics", "ir", "layouts", "errors", "process"],
    "analysis": ["ir", "layouts", "target", "errors"],
    "transforms": ["numerics", "analysis", "ir", "layouts", "target", "errors", "process"],
    "targets": [
        "targets.llvm.math",
        "transforms",
        "numerics",
        "analysis",
        "ir",
        "layouts",
        "target",
        "errors",
        "knobs",
        "process",
    ],
    "targets.llvm.math": ["targets", "numerics"],
    "oracles.interpreter": [
        "targets.llvm.math",
        "language",
        "numerics",
        "layouts",
        "knobs",
        "errors",
        "target",
        "process",
    ],
    "oracles.emulator": ["numerics", "errors", "process"],
    "oracles.evaluator": ["targets.llvm.math", "ir", "numerics", "layouts", "errors"],
    "oracles": [],
    "runtime": ["*"],
    "inspect": [
        "process",
        *("runtime", "aot", "oracles.interpreter", "oracles.emulator", "oracles.evaluator", "targets", "transforms"),
        *(
            "analysis",
            "ir",
            "frontend",
            "language",
            "layouts",
            "numerics",
            "knobs",
            "target",
            "errors",
            "version",
            "forks",
        ),
    ],
    "profiler": ["inspect"],
    "tools": ["*"],
    "aot": ["compiler", "knobs", "language", "process", "runtime", "targets", "target", "errors"],
    "compiler": ["runtime", "targets", "errors"],
    "testing": ["*"],
    "triton": ["*"],
    "as_triton": ["triton"],
    "__main__": ["tools"],
    "__init__": ["language", "runtime", "errors", "knobs", "version"],
}
FORMULAS = ("targets", "llvm", "math")
FILES = sorted(path for path in PACKAGE.rglob("*.py"))


def owner_of(path: Path) -> str:
    """The row of the table that a file belongs to."""
    return row_of(path.relative_to(PACKAGE).with_suffix("").parts)


def row_of(parts: Sequence[str]) -> str:
    """Oracles share nothing, so each has a row: ``("oracles", "emulator", "ports")`` -> ``oracles.emulator``. Formulas
    have one: two of these compute by them in reproducible kernels, and they need nothing of a compiler."""
    if tuple(parts[:3]) == FORMULAS:
        return ".".join(FORMULAS)
    is_inside = parts[0] == "oracles" and len(parts) > 1 and parts[1] != "__init__"
    return ".".join(parts[: 1 + is_inside])


class ImportStatement(NamedTuple):
    node: ast.Import | ast.ImportFrom
    is_inside: bool  # of a function
    is_for_types: bool  # under TYPE_CHECKING


@cache  # of the statements alone: whole trees take more memory than everything else that tests import
def import_statements(path: Path) -> list[ImportStatement]:
    """Every import of a file; expressions are not looked through."""
    found: list[ImportStatement] = []
    waiting = [(node, False, False) for node in ast.parse(path.read_text()).body]
    for node, is_inside, is_for_types in waiting:
        if isinstance(node, ast.Import | ast.ImportFrom):
            found.append(ImportStatement(node, is_inside, is_for_types))
            continue
        is_inside |= isinstance(node, ast.FunctionDef)
        is_for_types |= isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            waiting += [(child, is_inside, is_for_types) for child in getattr(node, part, ())]
    return found


@cache
def imports_of(path: Path) -> list[tuple[int, str]]:
    """(line, part of tilework) for every import."""
    found = []
    for node, _, _ in import_statements(path):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif node.level:
            above = path.relative_to(PACKAGE.parent).with_suffix("").parts[: -node.level]
            names = [".".join((*above, *(node.module or "").split(".")))]
        else:
            whole = node.module == "tilework"
            names = [f"tilework.{alias.name}" for alias in node.names] if whole else [node.module or ""]
        for name in names:
            parts = name.split(".")
            if parts[0] == "tilework" and len(parts) > 1 and parts[1]:
                found.append((node.lineno, row_of(parts[1:])))
    return found


def test_every_folder_has_a_row() -> None:
    assert {owner_of(path) for path in FILES} <= set(ALLOWED)


def test_imports_follow_the_table() -> None:
    wrong = []
    for path in FILES:
        owner = owner_of(path)
        allowed = {owner, *BASE, *ALLOWED[owner]}
        wrong += [
            f"{path.relative_to(PACKAGE)}:{line} imports tilework.{part}; tilework/{owner} may import {ALLOWED[owner]}"
            for line, part in imports_of(path)
            if part not in allowed and "*" not in allowed
        ]
    assert not wrong, "\n".join(wrong)


def test_no_file_of_loose_ends() -> None:
    assert not [path for path in FILES if path.stem in {"utils", "helpers", "misc_utils"}]


def test_targets_do_not_import_each_other() -> None:
    shared = {"base", "driver_library", "elf_sections", "gpu", "likely_drivers", "llvm", "observe", "options"}
    for path in (PACKAGE / "targets").rglob("*.py"):
        own = path.relative_to(PACKAGE / "targets").parts[0].removesuffix(".py")
        for node, _, _ in import_statements(path):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tilework.targets."):
                other = (node.module or "").split(".")[2]
                assert other == own or other in shared, f"{path}: target {own} imports target {other}"


def test_only_as_triton_knows_the_mirror_of_triton() -> None:
    for path in FILES:
        if owner_of(path) not in ("triton", "as_triton"):
            assert "triton" not in {part for _, part in imports_of(path)}, path


def without_docstrings(path: Path) -> str:
    """The code of a file, without comments and texts that explain it."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body[0] = ast.Pass()
    return ast.unparse(tree)


@pytest.mark.parametrize("path", sorted((PACKAGE / "targets" / "gpu").glob("*.py")), ids=lambda path: path.name)
def test_neutral_gpu_rules_name_no_vendor(path: Path) -> None:
    found = re.findall(r"(?i)nvvm|nvidia|ptx|cuda|\bsm_|amd|gfx", without_docstrings(path))
    assert not found, found


Edge = tuple[str, int, bool]  # module, line, whether it stands in a function
MODULES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path for path in FILES
}


@cache
def edges_of(module: str) -> list[Edge]:
    """Every import of a module of the package, also those inside functions; those that only type checkers see are left
    out."""
    found: list[Edge] = []
    for node, is_inside, is_for_types in import_statements(MODULES[module]):
        if is_for_types:
            continue
        if isinstance(node, ast.Import):
            names = {alias.name for alias in node.names}
        else:
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            names = {name if name in MODULES else node.module or "" for name in inner}
        found += [(name, node.lineno, is_inside) for name in sorted(names)]
    return found


@cache
def graph_of_imports() -> dict[str, set[str]]:
    return {module: {name for name, _, _ in edges_of(module) if name in MODULES} - {module} for module in MODULES}


def test_no_circles() -> None:
    """No module imports itself through others, not even inside functions. Mixins know the class that they are mixed
    into as a type only."""
    graph = graph_of_imports()
    while leaves := [module for module, needs in graph.items() if not needs]:
        graph = {module: needs.difference(leaves) for module, needs in graph.items() if needs}
    while roots := graph.keys() - set().union(*graph.values()):
        graph = {module: needs for module, needs in graph.items() if module not in roots}
    assert not graph, "circles: " + "; ".join(f"{module} -> {', '.join(needs)}" for module, needs in graph.items())


# as strings, where an import would go up or in a circle: nothing is imported unless a user asks for it
ASKED_BY_NAME = {
    "tilework": {"tilework.compiler"},  # names of the package that load the compiler
    "tilework.aot.find_kernels": {"tilework.as_triton"},  # a program that was recorded under `as_triton`
    "tilework.process.events": {
        "tilework.inspect.explain.kernels",
        "tilework.inspect.explorer.document",
    },  # methods of kernels that explain them
    "tilework.layouts.encodings": {"tilework.layouts.picture"},  # pictures in notebooks
    "tilework.layouts.linear": {"tilework.layouts.picture"},
    "tilework.process.plugins": {"tilework.targets"},  # a group of what is built in
    "tilework.runtime.recording.recorder": {"tilework.runtime.tuning.autotuner"},  # only if it is imported
    "tilework.target": {"tilework.targets"},  # a group of entry points
    "tilework.targets.likely_drivers": {"tilework.targets.nvidia.libcuda"},  # only if it is imported
}


def test_modules_above_are_requested_by_name_in_few_places() -> None:
    found: dict[str, set[str]] = {}
    for module, path in MODULES.items():
        allowed = {owner_of(path), *BASE, *ALLOWED[owner_of(path)]}
        named = set(re.findall(r"""["'](tilework(?:\.\w+)+)["']""", path.read_text())) & MODULES.keys() - {module}
        up = {name for name in named if row_of(name.split(".")[1:]) not in allowed and "*" not in allowed}
        if wrong := up | {name for name in named if module in reached_from(name)}:
            found[module] = wrong
    assert found == ASKED_BY_NAME


def reached_from(module: str) -> set[str]:
    """All that a module imports, and what these import."""
    found, waiting = set[str](), [module]
    while waiting:
        more = graph_of_imports()[waiting.pop()] - found
        found |= more
        waiting += more
    return found


def test_imports_in_functions_say_why() -> None:
    """The first of several has a comment on its line or above it: ``# lazily: torch is optional``."""
    silent = []
    for module, path in MODULES.items():
        lines = path.read_text().splitlines()
        inside = {line for _, line, is_inside in edges_of(module) if is_inside}
        first = (line for line in inside if line - 1 not in inside)
        silent += [
            f"{module}:{line}"
            for line in first
            if "#" not in lines[line - 1] and not lines[line - 2].lstrip().startswith("#")
        ]
    assert not silent, f"imports inside functions that do not say why: {sorted(silent)}"


CHANGING = {
    "setdefault",
    "pop",
    "append",
    "add",
    "update",
    "remove",
    "extend",
    "discard",
    "clear",
    "write",
    "send",
    "next",
}


def test_assertions_change_nothing() -> None:
    """``python -O`` leaves them out."""
    changing = []
    for module, path in MODULES.items():
        for line, text in enumerate(path.read_text().splitlines(), start=1):
            if text.lstrip().startswith("assert "):
                called = set(re.findall(r"(\w+)\(", text.partition(', f"')[0]))
                changing += [f"{module}:{line}"] if called & CHANGING or ":=" in text else []
    assert not changing, f"assertions that change something: {changing}"


def test_a_file_of_tests_has_one_name() -> None:
    """`tests.ir.test_declare` and `test_declare` would be two modules, with two classes of every name: workers import
    by the first."""
    folders = {path.parent for path in Path(__file__).parent.rglob("test_*.py")}
    assert not [folder for folder in sorted(folders) if not (folder / "__init__.py").exists()]
