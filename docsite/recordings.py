"""What a tutorial printed and drew on a named machine: a file of docs/figures, as text that a diff shows line by line.

`docsite/figures.py` writes them, `docsite/tutorials.py` shows them. A figure is a function of `docsite/chart.py` and
its arguments.
"""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent.parent / "docs" / "figures"


@dataclass(frozen=True)
class Figure:
    """`kind` is the name of a function of `chart`."""

    kind: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class RecordedCell:
    """What a cell printed and its figures, with the machine if it has measured something."""

    output: str
    figures: tuple[Figure, ...] = ()
    where: str = ""


@dataclass(frozen=True)
class Recording:
    """All cells of a script; `code` is the digest of what was run."""

    code: str
    command: str
    date: str
    commit: str
    cells: tuple[RecordedCell, ...]

    def text(self) -> str:
        """JSON, with a line for each field and for each cell."""
        fields = asdict(self)
        cells = ",\n  ".join(json.dumps(cell, ensure_ascii=False) for cell in fields.pop("cells"))
        head = "".join(f'"{name}": {json.dumps(value)},\n' for name, value in fields.items())
        return f'{{{head}"cells": [\n  {cells}\n]}}\n'


def read(text: str) -> Recording:
    """The recording that `Recording.text` wrote."""
    fields = json.loads(text)
    cells = tuple(
        RecordedCell(cell["output"], tuple(Figure(**one) for one in cell["figures"]), cell["where"])
        for cell in fields.pop("cells")
    )
    return Recording(**fields, cells=cells)


def recording_of(name: str) -> Recording | None:
    """The recording of the tutorial with this name, or None if there is none."""
    file = FOLDER / f"{name}.json"
    return read(file.read_text(encoding="utf-8")) if file.is_file() else None


def merged(host: Recording, gpu: Recording | None) -> Recording:
    """The cells of the host's run; the cells that also ran on a GPU replace theirs."""
    if gpu is None:
        return host
    cells = (on_gpu if on_gpu.where else on_host for on_host, on_gpu in zip(host.cells, gpu.cells, strict=True))
    return replace(host, cells=tuple(cells))
