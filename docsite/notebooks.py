"""Tutorials as Jupyter notebooks (nbformat 4): a Markdown cell and a code cell for each cell of a script.

Links go to the site, since a notebook is read elsewhere. Nothing is executed here, and no library is needed.
"""

import json
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docsite.tutorials import Cell

ROOT = Path(__file__).parent.parent
RELATIVE_LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)(#[^)\s]*)?\)")


def text_of(script: Path, cells: "Sequence[Cell]") -> str:
    """The notebook of a script, as the text of its file."""
    found: list[dict[str, Any]] = []
    for index, cell in enumerate(cells):
        sources = (("markdown", with_links_to_the_site(cell.prose)), ("code", cell.code.strip("\n")))
        for kind, source in sources:
            if source:
                found.append(notebook_cell(kind, source, f"{script.stem}-{index}-{kind}"))
    notebook = {
        "cells": found,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def notebook_cell(kind: str, source: str, name: str) -> dict[str, Any]:
    """A cell as nbformat 4 has it; only code has outputs."""
    cell: dict[str, Any] = {"cell_type": kind, "id": name, "metadata": {}}
    if kind == "code":
        cell |= {"execution_count": None, "outputs": []}
    return {**cell, "source": source.splitlines(keepends=True)}


def with_links_to_the_site(prose: str) -> str:
    """``../python.md#tiles`` -> the page's address in the published documentation."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        site = tomllib.load(file)["project"]["urls"]["Documentation"]

    def link(found: re.Match[str]) -> str:
        path = f"tutorials/{found[1]}" if not found[1].startswith("../") else found[1].removeprefix("../")
        return f"]({site}/{re.sub(r'[.](py|md)$', '.html', path)}{found[2] or ''})"

    return RELATIVE_LINK.sub(link, prose)
