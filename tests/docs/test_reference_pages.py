"""Every public name has its entry in the generated reference, and every page its place in the navigation."""

import re
from pathlib import Path

import tilework.language as tl
from docsite import reference
from docsite.docstrings import as_markdown
from docsite.navigation import navigation
from tests.language.test_language_surface import FUNCTIONS, OBJECTS

ROOT = Path(__file__).parent.parent.parent


def entries() -> set[str]:
    """The anchors of all pages of the reference: ``tl.load``."""
    pages = "\n".join(reference.pages().values())
    return set(re.findall(r"^##+ .* { #([\w.]+) }$", pages, re.MULTILINE)) | set(
        re.findall(r"<span id='(.*?)'>", pages)
    )


def test_every_name_of_the_language_has_an_entry() -> None:
    modules = {name for name in OBJECTS if type(getattr(tl, name)) is type(tl)}
    public = {name for name in [*FUNCTIONS, *OBJECTS] if not name.startswith("_")} - modules
    assert {f"tl.{name}" for name in public | set(reference.public_names())} - entries() == set()


def test_entries_show_signature_documentation_and_source() -> None:
    (page,) = [text for place, text in reference.pages().items() if "/memory." in place]
    (entry,) = re.findall(r"^## tl\.load .*?(?=^## )", page, re.DOTALL | re.MULTILINE)
    assert "tl.load(\n    pointer,\n    mask=None," in entry and "_semantic" not in entry
    assert "Where `mask` is false nothing is read" in entry
    line = re.search(r"repo:tilework/language/memory_builtins.py#L(\d+)", entry)
    assert (
        line
        and "def load(" in (ROOT / "tilework/language/memory_builtins.py").read_text().splitlines()[int(line[1]) - 1]
    )


def test_code_of_docstrings_is_shown_as_code() -> None:
    text = as_markdown("Adds.\n\n    x = f(1)\n\n    y = 2\n\nThen more prose, in a line.\n\nExample:\n    z = 3\n")
    assert text == (
        "Adds.\n\n```python\nx = f(1)\n\ny = 2\n```\n\nThen more prose, in a line.\n\n**Example**\n\n```python\nz = 3\n```"
    )


def test_a_page_that_no_row_names_is_listed() -> None:
    lesson, news = (f"{name}.md" for name in ("tutorials/01", "unheard_of"))
    found = navigation([news, lesson])
    assert found == [{"Tutorials": [lesson]}, {"More": [news]}]
