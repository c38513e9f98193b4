"""What a page holds: the entries of some kernels, and what they share.

document = build([request])
write(document, Path("kernel.html"))         # a page; Path("kernel.json"): only the data
read(Path("kernel.html")) == document
"""

import json
import re
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tilework.errors import TritonError
from tilework.inspect.explain.findings import listed
from tilework.inspect.explorer.collect import Request, collect
from tilework.inspect.explorer.page import data_of, page
from tilework.inspect.explorer.python_source import is_library, parts_of
from tilework.inspect.explorer.tables import Tables
from tilework.version import __version__

FORMAT, VERSION = "tilework-explorer", 1


class NotExplored(TritonError):
    """There is nothing to show, or a file is no page; shown without a traceback."""


def build(requests: Sequence[Request]) -> dict[str, Any]:
    """The data of a page with these kernels."""
    tables = Tables()
    kernels = [collect(request, tables) for request in requests]
    files = files_of(tables)
    return {
        "format": FORMAT,
        "version": VERSION,
        "tilework": __version__,
        "kernels": kernels,
        "files": files,
        **tables.data(),
    }


def files_of(tables: Tables) -> list[dict[str, Any]]:
    """The files that places name, with the functions that have those; the user's own come first when they are shown."""
    used: dict[int, set[int]] = {}
    for places in tables.places:
        for file, line in places:
            used.setdefault(file, set()).add(line)
    names = list(tables.files)
    labels = short_names(names)
    return [
        {
            "path": path,
            "label": labels[number],
            "library": is_library(path),
            "parts": [
                {"name": part.name, "first": part.first, "lines": [tables.strings[line] for line in part.lines]}
                for part in parts_of(path, used.get(number, ()))
            ],
        }
        for number, path in enumerate(names)
    ]


def short_names(paths: Sequence[str]) -> list[str]:
    """As much of the end of each path as tells them apart."""
    for depth in range(1, 1 + max((len(Path(path).parts) for path in paths), default=0)):
        labels = ["/".join(Path(path).parts[-depth:]) for path in paths]
        if len(set(labels)) == len(set(paths)):
            return labels
    return list(paths)


def write(document: dict[str, Any], path: Path) -> None:
    """Save a page, or its data if the name ends with .json."""
    text = json.dumps(document, separators=(",", ":"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if path.suffix == ".json" else page(text, title_of(document["kernels"])), encoding="utf-8")


def read(path: Path) -> dict[str, Any]:
    """The data of a page, or of a .json file, that was saved."""
    try:
        text = path.read_text(encoding="utf-8")
        document = json.loads(text if path.suffix == ".json" else data_of(text))
    except (OSError, ValueError, zlib.error) as error:
        raise NotExplored(f"{path} is no page of `tilework explore`: {error}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise NotExplored(f"{path} is no page of `tilework explore`")
    if document["version"] != VERSION:
        raise NotExplored(f"{path} has version {document['version']} of the format; this is version {VERSION}")
    return document


def title_of(kernels: Iterable[dict[str, Any]]) -> str:
    return listed(list(dict.fromkeys(kernel["name"] for kernel in kernels)), 3)


def file_name(requests: Sequence[Request]) -> str:
    """A name for the page of some kernels."""
    return re.sub(r"[^\w.-]+", "_", requests[0].source.name)[:60] + ".html"
