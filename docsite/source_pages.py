"""Copies of source files that pages point to, with a number and an anchor for each line:
``source/tilework/target.py.html#L12``."""

from collections.abc import Collection
from html import escape
from pathlib import Path
from typing import Any

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_for_filename
from pygments.lexers.special import TextLexer
from pygments.util import ClassNotFound


def path_of(root: Path, file: str) -> str:
    """Return the path of a repository file in the site; for a folder, that of a list of its files."""
    return f"source/{file}/index.html" if (root / file).is_dir() else f"source/{file}.html"


def write(root: Path, files: Collection[str], site: Path, template: Any) -> None:
    """Write the copies of `files`; of folders among them, lists, with their plain texts."""
    texts = {str(text.relative_to(root)) for file in files for text in (root / file).glob("*.txt")}
    files = texts.union(files)
    for file in sorted(files):
        body = listing(root, file, files) if (root / file).is_dir() else as_html(root / file)
        position = site / path_of(root, file)
        position.parent.mkdir(parents=True, exist_ok=True)
        base = "../" * (len(position.relative_to(site).parts) - 1)
        position.write_text(template.render(title=file, body=body, base=base))


def listing(root: Path, folder: str, copied: Collection[str]) -> str:
    """The files of a folder, with links to those that the site has."""
    names = sorted(one.name for one in (root / folder).iterdir() if one.is_file() and not one.name.startswith("."))
    items = (f'<a href="{name}.html">{name}</a>' if f"{folder}/{name}" in copied else escape(name) for name in names)
    return f"<ul>{''.join(f'<li><code>{item}</code></li>' for item in items)}</ul>"


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
