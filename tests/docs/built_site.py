"""The site, built once for all tests of a run, and what its pages point to."""

import fcntl
import re
from functools import cache
from html import unescape
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from tests.docs.page_runner import ROOT, run_command
from tilework.process.output import bytes_in


def build_once(folder: Path, cache: Path) -> Path:
    """The site in `folder`, which processes that test at the same time share."""
    site = folder / "site"
    with open(folder / "site.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (site / "index.html").is_file():
            command = f"TRITON_CACHE_DIR={cache} python -m mkdocs build --strict".split()
            with open(folder / "site.log", "w+") as log:
                code = run_command([*command, "-f", str(ROOT / "mkdocs.yml"), "--site-dir", str(site)], log.fileno())
                assert code == 0, bytes_in(log).decode()[-3000:]
    return site


class Links(NamedTuple):
    """The anchors of a page, and every address in it."""

    anchors: set[str]
    targets: set[str]


@cache
def links_of(page: Path) -> Links:
    text = page.read_text()  # `<` begins a tag here, and nothing else: text has `&lt;`
    anchors = re.findall(r"""<[a-z][^>]*?\sid=["']([^"']*)["']""", text)
    targets = re.findall(r"""<[a-z][^>]*?\s(?:href|src|srcset)=["']([^"']*)["']""", text)
    return Links({unescape(one) for one in anchors}, {unescape(one) for one in targets})


def broken_links(site: Path) -> list[str]:
    """``page: address`` for each that leads nowhere, or that a reader without network cannot follow into the site."""
    wrong: list[str] = []
    site = site.resolve()
    for page in sorted(site.rglob("*.html")):
        anchors, targets = links_of(page)
        for target in sorted(targets):
            path, _, anchor = target.partition("#")
            if (not path and unquote(anchor) in anchors) or re.match(r"(https?|mailto|data):", target):
                continue
            file = (page.parent / unquote(path)).resolve() if path else page
            is_there = file.is_file() and file.is_relative_to(site)
            if not is_there or (anchor and file.suffix == ".html" and unquote(anchor) not in links_of(file).anchors):
                wrong.append(f"{page.relative_to(site)}: {target}")
    return wrong
