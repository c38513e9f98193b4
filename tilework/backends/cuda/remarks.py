"""What the passes say about speed, on standard error, when the knob `compilation.performance_remarks` is set.

    TILEWORK_PERFORMANCE_REMARKS=1 python train.py

    train.py:41:9: remark: this load is not coalesced: a warp reads 4 bytes in a row, a memory sector has 32. ...
       41 |     x = tl.load(x_ptr + rows * stride)
          |         ^^^^^^^

A remark is shown once, at the user's line: for code of the library, at the line that calls it.
"""

import linecache
import re
import sys
from typing import Any

from tilework.backends.base import run_passes
from tilework.errors import LIBRARY, Diagnostic, Span

WORD = re.compile(r"[\w.]+")
LAST = "tritongpu-performance-remarks"


def reporting(module: Any, names: list[str]) -> Any:
    """Run passes and print what they remark, then what the finished module shows."""
    from tilework.transforms.ttg.remarks import listening

    with listening() as remarks:
        run_passes(module, [*names, LAST])
    for text in dict.fromkeys(render(remark) for remark in remarks):
        print(text, file=sys.stderr)
    return module


def render(remark: Any) -> str:
    """One remark as a diagnostic; without a place in the source, one line."""
    from tilework.ir.locations import source_positions

    spans = [span(*position) for position in source_positions(remark.location)]
    own = [found for found in spans if not found.file.startswith(LIBRARY)] or spans
    if not own:
        return f"remark: {remark}"
    return Diagnostic(own[0], remark.text, callers=tuple(own[1:]), severity="remark").render()


def span(file: str, line: int, column: int) -> Span:
    """The place with the text of its line, if the file is there; columns of locations count from 0."""
    text = linecache.getline(file, line).rstrip("\n")
    word = WORD.match(text, column)
    return Span(file, line, column, max(column + 1, word.end() if word else 0), text)
