"""Every page of the site that is not a file of docs/."""

from collections import Counter
from functools import cache
from pathlib import Path

from docsite import command_line, environment, reference, tutorials

ROOT = Path(__file__).parent.parent
COPIED = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "README.md": "readme.md"}
WRITTEN_IN = {  # what a page is generated from
    **{page: file for file, page in COPIED.items()},
    "tutorials/index.md": "docsite/tutorials.py",
    "reference/command_line.md": "tilework/tools/cli.py",
    "reference/environment.md": "tilework/knobs/meanings.py",
    "reference/language.md": "docsite/public_names.py",
    "reference/language/libdevice.md": "tilework/language/extra/libdevice.py",
    "reference/runtime.md": "docsite/public_names.py",
}


@cache
def generated() -> dict[str, str]:
    """The Markdown of each generated page, by its path in the site: ``reference/language.md``. Tutorials are generated
    separately, with their notebooks."""
    copies = {path: (ROOT / name).read_text() for name, path in COPIED.items()}
    return {**copies, **reference.pages(), **environment.pages(), **command_line.pages()}


def source_of(page: str) -> str:
    """The file of the repository to edit for a change of a page; of a family of names, the one that defines most."""
    if page in WRITTEN_IN:
        return WRITTEN_IN[page]
    if page in tutorials.paths():
        return f"docs/{page.removesuffix('.md')}.py"
    entries = [one for one in reference.all_entries() if reference.path_of(one.family) == page]
    files = Counter(path[0] for one in entries if (path := reference.source_path(one.value)) is not None)
    return files.most_common(1)[0][0] if files else "docsite/public_names.py" if entries else f"docs/{page}"


def paths() -> set[str]:
    """The paths of all of them."""
    return {*generated(), *tutorials.paths()}
