"""The comparison of two profiles as one page for a browser: bars before and after, and a table."""

from collections.abc import Sequence

from tilework.inspect.page import asset
from tilework.inspect.profiler.comparison import (
    COLUMNS,
    KernelChange,
    ProfileComparison,
    cells_of,
    name_of,
    notes_of,
    title,
    totals_of,
    verdict,
)
from tilework.inspect.profiler.page import WIDTH, section, svg, text

BAR, GAP, LABEL, FIGURE = 13, 12, 240, 90
MOST_BARS = 24
KINDS = {"slower": "k3", "faster": "k1", "same": "k0", "new": "k2", "gone": "k2"}  # classes of the style sheet


def page(found: ProfileComparison) -> str:
    """Return the HTML page of a comparison."""
    first, *rest = verdict(found)
    parts = [
        "<h1>Two profiles</h1>",
        f"<p><b>a</b> {text(title(found.a))}</p>",
        f"<p><b>b</b> {text(title(found.b))}</p>",
        *(f"<p>Note: {text(note)}.</p>" for note in notes_of(found)),
        f'<p class="first"><b>{text(first)}</b>{"".join(f"<br>{text(line)}" for line in rest)}</p>',
    ]
    if found.rows:
        caption = "The upper bar is a, the lower one b; what changed most comes first."
        parts += [
            section("Time in kernels", caption, bars(found)),
            section("Kernels", "Click a column to sort by it.", table(found)),
        ]
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Two profiles</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>\n{asset('profile.css')}</style></head>\n<body><main>\n{body}\n</main>\n"
        f"<script>\n{asset('profile.js')}</script></body></html>\n"
    )


def bars(found: ProfileComparison) -> str:
    """Two bars for each kernel, on one scale of time."""
    rows = found.rows[:MOST_BARS]
    longest = max((max(row.a.seconds, row.b.seconds) for row in rows), default=0.0) or 1.0
    scale = (WIDTH - LABEL - FIGURE) / longest
    shapes = [shape for index, row in enumerate(rows) for shape in bars_of(row, index * (2 * BAR + GAP), scale)]
    more = f"<p>{len(found.rows) - len(rows)} more are in the table.</p>" if len(rows) < len(found.rows) else ""
    return svg(len(rows) * (2 * BAR + GAP), "time of each kernel before and after", shapes) + more


def bars_of(row: KernelChange, top: int, scale: float) -> list[str]:
    name = name_of(row)
    shown = name if len(name) <= 32 else f"{name[:31]}…"
    shapes = [
        f'<text class="end" x="{LABEL - 8}" y="{top + BAR + 4}"><title>{text(name)}</title>{text(shown)}</text>',
    ]
    for index, (side, kind) in enumerate(((row.a, "scope"), (row.b, KINDS[row.kind]))):
        y, width = top + index * BAR, max(side.seconds * scale, 1.0 if side.calls else 0.0)
        time = f"{side.seconds * 1e3:.3g} ms" if side.calls else "none"
        tip = text(f"{name}, {'ab'[index]}: {side.seconds * 1e3:.3f} ms, {side.calls} calls")
        shapes += [
            f'<g class="{kind}"><title>{tip}</title>',
            f'<rect x="{LABEL}" y="{y}" width="{width:.1f}" height="{BAR - 1}" rx="2"/></g>',
            f'<text class="tick" x="{LABEL + width + 5:.1f}" y="{y + 10}">{time}</text>',
        ]
    return shapes


def table(found: ProfileComparison) -> str:
    """Return all kernels and their sum as a table, with what each was compiled for."""
    head = "".join(f"<th>{text(name)}</th>" for name in ("kernel", "compiled for", *COLUMNS))
    rows = [row_of("all kernels", "", totals_of(found))]
    for row in found.rows:
        a, b = row.signatures
        compiled = (f"a: {a}", f"b: {b}") if a and b and a != b else (a or b,)
        rows.append(row_of(name_of(row), "<br>".join(map(text, compiled)), cells_of(row)))
    body = "".join(rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def row_of(name: str, compiled: str, cells: Sequence[str]) -> str:
    figures = "".join(f"<td>{text(cell)}</td>" for cell in cells)
    return f'<tr><td>{text(name)}</td><td style="white-space: normal; min-width: 14em">{compiled}</td>{figures}</tr>'
