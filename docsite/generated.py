"""Every page of the site that is not a file of docs/."""

from functools import cache
from pathlib import Path

from docsite import command_line, environment, reference, tutorials

ROOT = Path(__file__).parent.parent
COPIED = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "README.md": "readme.md"}


@cache
def generated() -> dict[str, str]:
    """The Markdown of each, by its place in the site: ``reference/language.md``. Tutorials take seconds, and are made
    apart."""
    copies = {path: (ROOT / name).read_text() for name, path in COPIED.items()}
    return {**copies, **reference.pages(), **environment.pages(), **command_line.pages()}


def paths() -> set[str]:
    """The paths of all of them."""
    return {*generated(), *tutorials.paths()}
