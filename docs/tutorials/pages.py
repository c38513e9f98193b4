"""Tutorials as pages: each script is run, and becomes Markdown with its code, what that printed, and the pictures it
drew.

The docstring of a script is the head of its page. `# %%` begins a cell: the comment lines below it are prose
(Markdown), what follows is code. Editors show such scripts as notebooks. A cell's output and its pictures come below
its code:

    # %%
    # ## A heading                        ## A heading
    # Prose.                   ==>        Prose.
    print(1 + 1)                          (a block of Python, a block of text with "2")

`page_of(script, work)` is the text of a page; `make docs` makes them all. Pictures are written into the folder `work`,
and become part of the page. An exception in a cell is one of the script, at the script's line.
"""

import ast
import contextlib
import io
import linecache
import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
SCRIPT_LINK = re.compile(
    r"\]\((\d\d_\w+)\.py\)"
)  # in a page it goes to the other script's page


@dataclass(frozen=True)
class Cell:
    """Prose in Markdown, and the code below it with the number of its first line."""

    prose: str
    code: str
    line: int


def scripts() -> list[Path]:
    """The tutorials, in the order in which they are read."""
    return sorted(FOLDER.glob("[0-9][0-9]_*.py"))


def cells_of(script: Path) -> list[Cell]:
    """The docstring and what is below it, then a cell for each ``# %%``."""
    source = script.read_text()
    lines = source.splitlines()
    head = ast.parse(source).body[0]
    assert head.end_lineno is not None
    marks = [number for number, line in enumerate(lines) if line.startswith("# %%")]
    bounds = [head.end_lineno, *(mark + 1 for mark in marks)]
    cells = []
    for first, end in zip(bounds, [*marks, len(lines)], strict=True):
        last = first
        while last < end and lines[last].startswith("#"):
            last += 1
        prose = "\n".join(line[1:].removeprefix(" ") for line in lines[first:last])
        cells.append(Cell(prose, "\n".join(lines[last:end]), last + 1))
    introduction = ast.get_docstring(ast.parse(source)) or ""
    return [Cell(introduction, cells[0].code, cells[0].line), *cells[1:]]


def run_cells(
    script: Path, cells: Sequence[Cell], work: Path, arguments: Sequence[str] = ()
) -> Iterator[str]:
    """Return the output of each cell, as the script with its command line prints it: one module, in the folder
    `work`."""
    names: dict[str, Any] = {"__name__": "__main__", "__file__": str(script)}
    with in_place_of_a_program(script, work, arguments):
        linecache.checkcache(str(script))
        for cell in cells:
            # blank lines above keep the numbers of the script's lines: kernels are read from the file
            code = compile(
                "\n" * (cell.line - 1) + cell.code, str(script), "exec", dont_inherit=True
            )
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(code, names)
            yield printed.getvalue()


@contextlib.contextmanager
def in_place_of_a_program(
    script: Path, work: Path, arguments: Sequence[str]
) -> Iterator[None]:
    """The folder, the command line and the import path that ``python script`` has."""
    before, argv, path = os.getcwd(), sys.argv, list(sys.path)
    os.chdir(work)
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.parent))
    try:
        yield
    finally:
        os.chdir(before)
        sys.argv, sys.path[:] = argv, path


def page_of(
    script: Path, work: Path, arguments: Sequence[str] = (), runs: bool = True
) -> str:
    """The Markdown of one tutorial, which is run for it, unless text and code will do."""
    cells = cells_of(script)
    parts = []
    outputs = run_cells(script, cells, work, arguments) if runs else [""] * len(cells)
    for cell, printed in zip(cells, outputs, strict=True):
        output, pictures = split_output(printed)
        parts.append(
            SCRIPT_LINK.sub(lambda found: f"]({found[1]}{'.md'})", cell.prose).strip()
        )
        if code := cell.code.replace("  # fmt: skip", "").strip("\n"):
            parts.append(f"```python\n{code}\n```")
        if output:
            parts.append(f"```text\n{output}\n```")
        parts += [
            figure((work / picture).read_text(encoding="utf-8")) for picture in pictures
        ]
    made = " What is shown was made by running it." if runs else ""
    parts.append(f"*The whole script: [{script.name}]({script.name}).{made}*")
    return "\n\n".join(part for part in parts if part) + "\n"


def split_output(printed: str) -> tuple[str, list[str]]:
    """The text that a cell printed, and the pictures that `chart` wrote."""
    lines = printed.rstrip().splitlines()
    pictures = [
        line.removeprefix("written: ") for line in lines if line.startswith("written: ")
    ]
    return "\n".join(line for line in lines if not line.startswith("written: ")), pictures


def figure(svg: str) -> str:
    """A picture as part of the page, whose colours it takes; without empty lines it is one block of Markdown."""
    return (
        "<figure>\n"
        + "\n".join(line for line in svg.splitlines() if line.strip())
        + "\n</figure>"
    )
