"""One HTML file with everything in it: the data, the styles and the programs of `assets/`. It loads nothing, so that it
works without a network.

page(json.dumps(document), "matmul")             "<!doctype html>..."
data_of(text)                                    the JSON again

Large data are compressed, which browsers undo by themselves since 2023.
"""

import base64
import re
import zlib
from html import escape
from importlib.resources import files

ASSETS = files("tilework.inspect") / "assets"
EXPLORER = ("common.js", "layouts.js", "explorer.js")
COMPARISON = ("common.js", "comparison.js")
DATA = re.compile(r'<script type="application/json" id="data"( data-packed)?>(.*?)</script>', re.DOTALL)
LARGE = 4_000_000  # characters of data


def page(data: str, title: str, scripts: tuple[str, ...] = EXPLORER) -> str:
    """The page that shows `data`, a JSON text."""
    is_large = len(data) > LARGE
    packed = base64.b64encode(zlib.compress(data.encode(), 9)).decode() if is_large else as_script(data)
    parts = {
        "title": escape(title),
        "styles": asset("explorer.css"),
        "packed": " data-packed" if is_large else "",
        "data": packed,
        "scripts": "\n".join(asset(name) for name in scripts),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], asset("page.html"))


def as_script(data: str) -> str:
    """Return JSON for a script: HTML would read "</script" and "<!--" there; JSON has "<" in strings only."""
    return data.replace("<", r"\u003c")


def asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def data_of(text: str) -> str:
    """The data of a page; a ValueError if there are none."""
    if (found := DATA.search(text)) is None:
        raise ValueError("it holds no data")
    return zlib.decompress(base64.b64decode(found[2])).decode() if found[1] else found[2]
