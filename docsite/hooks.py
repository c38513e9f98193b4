"""Hooks that MkDocs calls while it builds the site: generated pages, navigation, links, the copies of source files, the
search.

Links of pages are written for readers of the repository (``../CHANGELOG.md``, ``../tilework/target.py``);
`on_page_markdown` turns them to pages of the site.
"""

import json
import os
import posixpath
import re
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from docsite import mlir_lexer, source_pages, stages, tutorials
from docsite.generated import COPIED, generated, source_of
from docsite.navigation import navigation
from tilework.version import __version__

ROOT = Path(__file__).parent.parent

CODE = re.compile(r"(^```.*?^```)", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
NAMED = re.compile(r"(?<![`/\w])docs/([\w-]+\.md)\b")
COPIED_PICTURE = re.compile(r'\b(src|srcset)="docs/(?=pictures/)')
CELL_CODE = re.compile(r"(?<=<code>)[^<]+(?=</code>)")
SHOWN: set[str] = set()  # files of the repository that pages point to


def on_config(config: Any) -> Any:
    """Pass the version and the address of the repository to the theme."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    config.extra |= {"version": __version__, "edit": f"{project['urls']['Repository']}/edit/main/"}
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages, and list all pages."""
    SHOWN.clear()
    mlir_lexer.register()
    for position, text in {**generated(), **tutorials.pages()}.items():
        files.append(File.generated(config, position, content=text))
    config.nav = navigation(file.src_uri for file in files.documentation_pages())
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Show what the page asks for, and point links to files of the repository to what the site has of them."""
    here = page.file.src_uri
    if here in COPIED.values():
        markdown = COPIED_PICTURE.sub(r'\1="', markdown)
    parts = CODE.split(stages.expand(markdown))  # every second part is code
    for position in range(0, len(parts), 2):
        parts[position] = LINK.sub(lambda found: f"]({site_link(found[1], here)})", parts[position])
        if here.startswith("reference/"):  # docstrings name pages as files
            parts[position] = NAMED.sub(lambda found: f"[{found[1]}]({relative(found[1], here)})", parts[position])
    return "".join(parts)


def site_link(target: str, page: str) -> str:
    """A link of a page as MkDocs shall see it: ``../README.md`` -> ``readme.md``, ``../tilework/target.py`` ->
    ``repo:tilework/target.py``."""
    path, hash_sign, anchor = target.partition("#")
    if ":" in path or not path:
        return target
    file = in_repository(path, page)
    if file in COPIED or (file.startswith("docs/") and page in COPIED.values()):
        path = relative(COPIED.get(file) or file.removeprefix("docs/"), page)
    elif not file.startswith("docs/") and (ROOT / file).exists():
        path = f"repo:{file}"
    return path + hash_sign + anchor


def relative(position: str, page: str) -> str:
    return posixpath.relpath(position, posixpath.dirname(page) or ".")


def in_repository(path: str, page: str) -> str:
    """The file that a relative link of a page means, below the root."""
    folder = "" if page in COPIED.values() else posixpath.join("docs", posixpath.dirname(page))
    return posixpath.normpath(posixpath.join(folder, path))


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """Point ``repo:FILE`` to the copy of that file."""

    def link(found: re.Match[str]) -> str:
        SHOWN.add(found[1])
        return f'href="{relative(source_pages.path_of(ROOT, found[1]), page.url)}'

    return re.sub(r'href="repo:([^"#]+)', link, html)


def on_page_context(context: Any, page: Any, config: Any, nav: Any) -> Any:
    """Set the address at which a page can be edited."""
    page.edit_url = config.extra["edit"] + source_of(page.file.src_uri)
    return context


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Let long names in tables break after their separators; the search index is made without these marks."""
    return re.sub(r"<td\b.*?</td>", lambda cell: CELL_CODE.sub(breakable, cell[0]), output, flags=re.DOTALL)


def breakable(code: re.Match[str]) -> str:
    return re.sub(r"(?<=\w[_./,=|])(?=[\w<*])", "<wbr>", code[0])


def on_post_build(config: Any) -> None:
    """Write the copies of source files, and the search index as a script: a page of a folder may not read files."""
    site = Path(config.site_dir)
    template = config.theme.get_env().get_template("source.html")
    source_pages.write(ROOT, SHOWN, site, template)
    rows = search_rows(json.loads((site / "search" / "search_index.json").read_text())["docs"])
    (site / "search_index.js").write_text(f"const SEARCH_INDEX = {json.dumps(rows, separators=(',', ':'))};\n")
    for left in (site / "search").iterdir():
        os.unlink(left)
    (site / "search").rmdir()


def search_rows(entries: list[dict[str, str]]) -> list[list[str]]:
    """Address, title and text of every section. MkDocs lists a page with all its text before its sections: the row of a
    page gets what is above its first section."""
    rows = [[entry["location"], entry["title"], " ".join(entry["text"].split())] for entry in entries]
    for page, section in pairwise(rows):
        if "#" not in page[0] and "#" in section[0]:
            page[2] = page[2].partition(f"{section[1]} # {section[2][:40]}")[0].removeprefix(f"{page[1]} # ")
    return rows
