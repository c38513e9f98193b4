"""One HTML file with everything in it: the data, the styles and the programs of `assets/`. It loads nothing, so that it works without a network.

page(json.dumps(document), "matmul")             "<!doctype html>..."
data_of(text)                                    the JSON again
"""

import re
from html import escape
from importlib.resources import files

ASSETS = files("tilework.explorer") / "assets"
STYLES = ("theme.css", "layout.css", "views.css")
EXPLORER = ("data.js", "dom.js", "code.js", "source.js", "passes.js", "layouts.js", "report.js", "search.js", "panes.js", "main.js")  # fmt: skip
DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)


def page(data: str, title: str, scripts: tuple[str, ...] = EXPLORER) -> str:
    """The page that shows `data`, a JSON text."""
    parts = {
        "title": escape(title),
        "styles": "\n".join(asset(name) for name in STYLES),
        "data": data.replace("</", "<\\/"),  # the same to JSON, and no end of the script to HTML
        "scripts": "\n".join(asset(name) for name in scripts),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], asset("page.html"))


def asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def data_of(text: str) -> str:
    """The data of a page; a ValueError if there are none."""
    if (found := DATA.search(text)) is None:
        raise ValueError("it holds no data")
    return found[1]
