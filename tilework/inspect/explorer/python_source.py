"""The lines of Python that a page shows: of each file the functions that code comes from.

    parts_of("matmul.py", {13, 28})       [Part("program_tile", 10, [...]), Part("matmul", 22, [...])]

A place outside of every function (a text that was replaced, a file that has changed) is shown with the lines around it.
"""

import ast
import linecache
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from tilework.errors import LIBRARY

AROUND = 3


@dataclass(frozen=True)
class Part:
    """Consecutive lines of a file, and what they are called."""

    name: str
    first: int
    lines: list[str]


def is_library(file: str) -> bool:
    """Whether a file belongs to the language itself."""
    return file.startswith(LIBRARY)


def parts_of(file: str, used: Collection[int]) -> list[Part]:
    """The functions that have one of the lines `used`; [] if the file cannot be read."""
    lines = [line.rstrip("\n") for line in linecache.getlines(file)] or read(file)
    used = {line for line in used if 0 < line <= len(lines)}
    if not used:
        return []
    known = functions("\n".join(lines))
    found = {(first, last): name for name, first, last in known if any(first <= line <= last for line in used)}
    alone = [line for line in used if not any(first <= line <= last for first, last in found)]
    ranges = [*found, *((max(1, line - AROUND), line + AROUND) for line in alone)]
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    return [Part(found.get((first, last), ""), first, lines[first - 1 : last]) for first, last in merged]


def read(file: str) -> list[str]:
    try:
        return Path(file).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def functions(text: str) -> Iterator[tuple[str, int, int]]:
    """Name, first line (of the decorators) and last line of every function that is not inside another one."""
    try:
        waiting: list[ast.AST] = list(ast.parse(text).body)
    except SyntaxError:
        return
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            yield node.name, first, node.end_lineno or node.lineno
        else:
            waiting += ast.iter_child_nodes(node)
