"""Tutorials as pages: the code of each script with what it printed and drew when it was recorded, and its notebook.

The docstring of a script is the head of its page. `# %%` begins a cell: the comment lines below it are prose
(Markdown), what follows is code. Editors show such scripts as notebooks, and `docsite/notebooks.py` writes them as
such.

    # %%
    # ## A heading                        ## A heading
    # Prose.                   ==>        Prose.
    print(1 + 1)                          (a block of Python, a block of text with "2")

Building the site runs no tutorial. Outputs and pictures are those of a recording (docs/figures, written by
`docsite/figures.py`), which names the machine; a script whose code has changed since then is shown without them.
"""

import ast
import contextlib
import hashlib
import io
import linecache
import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from docsite import chart, notebooks
from docsite.recordings import Recording, recording_of

ROOT = Path(__file__).parent.parent
SCRIPTS = ROOT / "docs" / "tutorials"
FOLDER = "tutorials"
SCRIPT_LINK = re.compile(r"\]\((\d\d_\w+)\.py\)")  # in a page it goes to the other script's page
INTRODUCTION = """\
# Tutorials

Each is a script and a notebook that runs on a CPU in seconds, compares its results with NumPy's and measures itself.
Needed are tilework and NumPy ([installation](../installation.md)). Terms are in the [glossary](../glossary.md). Read
them in this order, or after the first [what is different for users of NumPy](09_from_numpy.py); or download one and run
it:

```sh
python docs/tutorials/01_vector_add.py --quick
```

The times on the pages are recorded: each page names the machine, the date and the command.
"""


@dataclass(frozen=True)
class Cell:
    """Prose in Markdown, and the code below it with the number of its first line."""

    prose: str
    code: str
    line: int

    @property
    def heading(self) -> str:
        """The text of the heading that the prose begins with, or nothing."""
        first = self.prose.partition("\n")[0]
        return first.lstrip("# ") if first.startswith("#") else ""


def scripts() -> list[Path]:
    """The tutorials, in the order in which they are read."""
    return sorted(SCRIPTS.glob("[0-9][0-9]_*.py"))


def cells_of(script: Path) -> list[Cell]:
    """The docstring and what is below it, then a cell for each ``# %%``."""
    source = script.read_text(encoding="utf-8")
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
        cells.append(Cell(prose.strip(), "\n".join(lines[last:end]), last + 1))
    introduction = ast.get_docstring(ast.parse(source)) or ""
    return [Cell(introduction, cells[0].code, cells[0].line), *cells[1:]]


def digest(cells: Sequence[Cell]) -> str:
    """A name for the code of a script: recorded outputs belong to it. Prose and line breaks do not change it."""
    return hashlib.sha256("".join("".join(cell.code.split()) for cell in cells).encode()).hexdigest()[:16]


def run_cells(
    script: Path, cells: Sequence[Cell], work: Path, arguments: Sequence[str] = ()
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the output of each cell, and the names after it, as the script with its command line has them: one
    module, in the folder `work`."""
    names: dict[str, Any] = {"__name__": "__main__", "__file__": str(script)}
    with in_place_of_a_program(script, work, arguments):
        linecache.checkcache(str(script))
        for cell in cells:
            # blank lines above keep the numbers of the script's lines: kernels are read from the file
            code = compile("\n" * (cell.line - 1) + cell.code, str(script), "exec", dont_inherit=True)
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(code, names)
            yield printed.getvalue(), names


@contextlib.contextmanager
def in_place_of_a_program(script: Path, work: Path, arguments: Sequence[str]) -> Iterator[None]:
    """The folder and the command line that ``python script`` has."""
    before, argv = os.getcwd(), sys.argv
    os.chdir(work)
    sys.argv = [str(script), *arguments]
    try:
        yield
    finally:
        os.chdir(before)
        sys.argv = argv


def page_of(script: Path, recording: Recording | None) -> str:
    """The Markdown of one tutorial, with what was recorded of it."""
    cells = cells_of(script)
    is_current = recording is not None and recording.code == digest(cells)
    downloads = f"*Download: [{script.name}]({script.name}), [notebook]({script.stem}.ipynb).*"
    parts = []
    for index, cell in enumerate(cells):
        parts.append(linked(cell.prose).strip())
        if index == 0:
            parts.append(downloads)
        if code := cell.code.replace("  # fmt: skip", "").strip("\n"):
            parts.append(f"```python\n{code}\n```")
        if recording is not None and is_current:
            recorded = recording.cells[index]
            if recorded.output:
                parts.append(f"```text\n{recorded.output}\n```")
            parts += [figure(getattr(chart, one.kind)(**one.arguments), recorded.where) for one in recorded.figures]
    if recording is not None and is_current:
        parts.append(provenance(recording, script))
    return "\n\n".join(part for part in parts if part) + "\n"


def linked(prose: str) -> str:
    """Prose whose links to other scripts go to their pages."""
    return SCRIPT_LINK.sub(lambda found: f"]({found[1]}{'.md'})", prose)


def provenance(recording: Recording, script: Path) -> str:
    """The machines, the date and the command of a recording."""
    where = "; ".join(dict.fromkeys(cell.where for cell in recording.cells if cell.where))
    return (
        f"*Outputs and figures were recorded on {recording.date} at commit {recording.commit}: {where}. "
        f"The command: `{recording.command}`. The numbers: [{script.stem}.json](../figures/{script.stem}.json).*"
    )


def figure(svg: str, caption: str) -> str:
    """A picture as part of the page, whose colours it takes; without empty lines it is one block of Markdown."""
    picture = "\n".join(line for line in svg.splitlines() if line.strip())
    below = f"\n<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f"<figure>\n{picture}{below}\n</figure>"


def pages() -> dict[str, str]:
    """The pages and notebooks, by their path in the site."""
    found = {f"{FOLDER}/index.md": index()}
    for script in scripts():
        found[f"{FOLDER}/{script.stem}.md"] = page_of(script, recording_of(script.stem))
        found[f"{FOLDER}/{script.stem}.ipynb"] = notebooks.text_of(script, cells_of(script))
    return found


def paths() -> list[str]:
    """The paths of the pages, without making them."""
    return [f"{FOLDER}/index.md", *(f"{FOLDER}/{script.stem}.md" for script in scripts())]


def index() -> str:
    """The list of tutorials, each with what its docstring says first."""
    parts = [linked(INTRODUCTION)]
    for script in scripts():
        title, text, *_ = (ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or "").split("\n\n")
        downloads = f"[script]({script.name}), [notebook]({script.stem}.ipynb)"
        parts.append(f"## [{title.lstrip('# ')}]({script.stem}.md)\n\n{text}\n\n*{downloads}*")
    return "\n\n".join(parts)
