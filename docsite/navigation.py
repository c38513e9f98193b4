"""The order of pages: sections of patterns, tried from top to bottom; a page that no pattern names is under "More".

    >>> navigation(["index.md", "tuning.md", "packages/runtime/README.md"])
    [{'Start': [{'Home': 'index.md'}]}, {'Guides': ['tuning.md']}, {'More': ['packages/runtime/README.md']}]

A pattern may name pages that do not exist (yet); a page is listed once, at the first pattern that it matches.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase

from docsite.public_names import FAMILIES
from docsite.reference import path_of

FAMILY_PAGES = {
    part: tuple(path_of(family) for family in FAMILIES if family.part == part) for part in ("language", "runtime")
}
SECTIONS: dict[str, tuple[str, ...]] = {
    "Start": (
        *("index.md", "installation.md", "first-steps.md", "coming-from-triton.md", "python.md"),
        *("troubleshooting.md", "glossary.md", "measurements.md"),
    ),
    "Tutorials": ("tutorials/index.md", "tutorials/*"),
    "Guides": (
        *("cpu*.md", "gpu*.md", "emulator-and-sanitizer.md", "tuning.md"),
        *("multi-process.md", "shared-cache.md"),
        *("torch_compile.md", "notebook*.md"),
        *("aot.md", "serving.md", "amd.md", "reproducible.md", "guides/*"),
    ),
    "Seeing inside": (
        *("explorer.md", "profiler.md", "explain.md", "command-line.md", "sanitizer.md", "emulator.md"),
        "cost-model.md",
    ),
    "The language": ("reference/language.md", *FAMILY_PAGES["language"], "reference/language/*"),
    "The runtime": (
        *("api.md", "reference/runtime.md", *FAMILY_PAGES["runtime"], "reference/runtime/*"),
        *("reference/command_line.md", "reference/environment.md", "compatibility.md"),
    ),
    "Comparisons": ("comparison-*.md",),
    "The compiler": ("stages.md", "design.md", "architecture.md", "contributing.md", "changelog.md", "readme.md"),
}
OTHERS = "More"
TITLES = {"index.md": "Home", "readme.md": "README"}  # the others have their first heading's
Entry = str | dict[str, str]


def navigation(pages: Iterable[str]) -> list[dict[str, list[Entry]]]:
    """The sections that have pages, each with its pages in the order of its patterns."""
    left = sorted(pages)
    found: list[dict[str, list[Entry]]] = []
    for section, patterns in SECTIONS.items():
        listed: list[Entry] = []
        for pattern in patterns:
            matching = [page for page in left if fnmatchcase(page, pattern)]
            listed += [{TITLES[page]: page} if page in TITLES else page for page in matching]
            left = [page for page in left if page not in matching]
        if listed:
            found.append({section: listed})
    return [*found, {OTHERS: [*left]}] if left else found
