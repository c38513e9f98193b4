"""Copies of source files that pages point to, with a number and an anchor for each line: ``source/tilework/target.py.html#L12``."""

from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_for_filename
from pygments.lexers.special import TextLexer
from pygments.util import ClassNotFound


def place_of(root: Path, file: str) -> str:
    """Where the site has a file of the repository; for a folder, a list of what is in it."""
    return f"source/{file}/index.html" if (root / file).is_dir() else f"source/{file}.html"


def write(root: Path, files: Iterable[str], site: Path, template: Any) -> None:
    """Write the copies of `files`, and of those that folders among them list."""
    waiting, written = sorted(files), set[str]()
    while waiting:
        if (file := waiting.pop()) in written:
            continue
        written.add(file)
        path = root / file
        if path.is_dir():
            inside = sorted(one.name for one in path.iterdir() if one.is_file() and not one.name.startswith("."))
            waiting += [f"{file}/{name}" for name in inside]
            body = "".join(f'<li><a href="{escape(name)}.html">{escape(name)}</a></li>' for name in inside)
            body = f"<ul>{body}</ul>"
        else:
            body = as_html(path)
        place = site / place_of(root, file)
        place.parent.mkdir(parents=True, exist_ok=True)
        base = "../" * (len(place.relative_to(site).parts) - 1)
        place.write_text(template.render(title=file, body=body, base=base))


def as_html(path: Path) -> str:
    """The coloured text of a file."""
    text = path.read_text(errors="replace")
    try:
        lexer = get_lexer_for_filename(path.name)
    except ClassNotFound:
        lexer = TextLexer()
    lines = highlight(text, lexer, HtmlFormatter(nowrap=True)).splitlines()
    numbered = (f'<a id="L{n}" href="#L{n}">{n:{len(str(len(lines)))}}</a>  {line}' for n, line in enumerate(lines, 1))
    return '<div class="code"><pre>' + "\n".join(numbered) + "</pre></div>"
