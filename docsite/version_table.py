"""``python -m docsite.version_table``: writes the table of differences between versions of Triton into
docs/compatibility.md, from `DIFFERENCES` of `tilework/process/triton_version.py`."""

import re
from pathlib import Path

from tilework.process.triton_version import DIFFERENCES

PAGE = Path(__file__).parent.parent / "docs" / "compatibility.md"
HEADER = "| name | since | before | since then |\n|---|---|---|---|\n"
TABLE = re.compile(re.escape(HEADER) + r"(\|.*\n)*")


def table() -> str:
    """Return the table as Markdown."""
    rows = (
        f"| `{name}` | {row.since} | {cell(row.before)} | {cell(row.after)} |\n" for name, row in DIFFERENCES.items()
    )
    return HEADER + "".join(rows)


def cell(text: str) -> str:
    """Return words with Markdown's characters escaped, but in code."""
    parts = text.replace("\n", " ").split("`")
    plain = [re.sub(r"([\\_*\[\]<>|{}])", r"\\\1", part) for part in parts[::2]]
    code = [f"`{part}`" for part in parts[1::2]]
    return "".join(piece for pair in zip(plain, [*code, ""], strict=True) for piece in pair)


def written(page: str) -> str:
    """Return the text of the page with the present table."""
    return TABLE.sub(lambda _: table(), page)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
