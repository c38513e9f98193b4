"""Pages of the tutorials: scripts of docs/tutorials, run for what they print and draw (docs/tutorials/pages.py does
it)."""

import ast
import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
FOLDER = "tutorials"
INTRODUCTION = """\
# Tutorials

Each is a script that runs on a CPU in seconds, compares its results with NumPy's and draws a picture. Terms are in the
[glossary](../glossary.md). Read them in this order, or run them:

```sh
python docs/tutorials/01_vector_add.py --quick
```
"""


def pages(run: Sequence[str]) -> dict[str, str]:
    """The pages, by their place; scripts whose names begin with one of `run` are run, of the others only text and code
    is shown.

    The word "quick" among them asks for small sizes.
    """
    arguments = ["--quick"] if "quick" in run else []
    found = {f"{FOLDER}/index.md": index()}
    for script in scripts():
        is_run = script.name.startswith(tuple(run))
        with tempfile.TemporaryDirectory() as work:
            found[f"{FOLDER}/{script.stem}.md"] = maker().page_of(script, Path(work), arguments, is_run)
    return found


def paths() -> list[str]:
    """The paths of the pages, without making them."""
    return [f"{FOLDER}/index.md", *(f"{FOLDER}/{script.stem}.md" for script in scripts())]


def maker() -> Any:
    return import_module("docs.tutorials.pages")


def scripts() -> list[Path]:
    return maker().scripts()


def index() -> str:
    """The list of tutorials, each with what its docstring says first."""
    parts = [INTRODUCTION]
    for script in scripts():
        title, text, *_ = (ast.get_docstring(ast.parse(script.read_text())) or "").split("\n\n")
        parts.append(f"## [{title.lstrip('# ')}]({script.stem}.md)\n\n{text}")
    return "\n\n".join(parts)
