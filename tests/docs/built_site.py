"""The site, built once for all tests of a run, and what its pages point to."""

import fcntl
import os
import re
import subprocess
import sys
from functools import cache
from html import unescape
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

ROOT = Path(__file__).parent.parent.parent
RUN_TUTORIALS = "01,quick"  # one of them, for its picture; tests/test_tutorials.py runs all


def build_once(folder: Path) -> Path:
    """The site in `folder`, which processes that test at the same time share."""
    site = folder / "site"
    with open(folder / "site.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (site / "index.html").is_file():
            variables = {
                **os.environ,
                "DOCS_TUTORIALS": RUN_TUTORIALS,
                "PYTHONPATH": str(ROOT),
                "TRITON_CACHE_DIR": str(folder / "cache"),
            }
            command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)]
            done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    return site


class Links(NamedTuple):
    """The anchors of a page, and every address in it."""

    anchors: set[str]
    targets: set[str]


@cache
def links_of(page: Path) -> Links:
    text = page.read_text()  # `<` begins a tag here, and nothing else: text has `&lt;`
    anchors = re.findall(r"""<[a-z][^>]*?\sid=["']([^"']*)["']""", text)
    targets = re.findall(r"""<[a-z][^>]*?\s(?:href|src)=["']([^"']*)["']""", text)
    return Links({unescape(one) for one in anchors}, {unescape(one) for one in targets})


def broken_links(site: Path) -> list[str]:
    """``page: address`` for each that leads nowhere, or that a reader without network cannot follow into the site."""
    wrong: list[str] = []
    for page in sorted(site.rglob("*.html")):
        for target in sorted(links_of(page).targets):
            if re.match(r"(https?|mailto|data):", target):
                continue
            path, _, anchor = target.partition("#")
            file = (page.parent / unquote(path)).resolve() if path else page
            is_there = file.is_file() and file.is_relative_to(site.resolve())
            if not is_there or (anchor and file.suffix == ".html" and unquote(anchor) not in links_of(file).anchors):
                wrong.append(f"{page.relative_to(site)}: {target}")
    return wrong
