"""The profile as one page for a browser: where the time goes (an icicle chart), how far from the limits (a roofline), a
table, a timeline.

The page is one file that needs nothing else, no network and no server, and follows the browser's light or dark colours.
The pictures are SVG that is generated here; a script zooms into the chart when it is clicked, and sorts the table.
"""

import html
import json
import math
from collections.abc import Iterator, Sequence
from itertools import pairwise, product

from tilework.inspect.page import as_script, asset
from tilework.inspect.profiler.labels import (
    GAP,
    HEIGHT,
    Box,
    FreeSpace,
    around,
    line_boxes,
    nearest,
    width_of,
)
from tilework.inspect.profiler.report import (
    COLUMNS,
    DISTURBED,
    NOTES,
    Report,
    Row,
    Statistics,
    advice,
    cells_of,
    compile_lines,
    headline,
    limit_lines,
)
from tilework.inspect.profiler.saved import profile_data

WIDTH, ROW_HEIGHT = 1000, 26
ROOF_HEIGHT, MARGIN = 380, 56
LONGEST = 40  # letters of a label
LANE_HEIGHT, MOST_EVENTS = 22, 4000
COLORS = 8  # classes of the style sheet


def page(report: Report, statistics: Statistics) -> str:
    """Return the HTML page of a report; it contains the profile, for comparisons."""
    data = as_script(json.dumps(profile_data(report, statistics)))
    style, script = asset("profile.css"), asset("profile.js")
    colors = {name: index % COLORS for index, name in enumerate(dict.fromkeys(row.name for row in report.kernels))}
    parts = [
        f"<h1>{text(report.program)}</h1>",
        f"<p>{text(headline(report))}</p>",
        *(f"<p>{text(line)}</p>" for line in compile_lines(report)),
        f'<p class="first"><b>Look first:</b> {text(advice(report))}</p>',
    ]
    if report.kernels:
        parts += [
            section(
                "Where the time goes",
                "Width is time; click a part to zoom in, and the top to come back.",
                icicle(report, colors),
            ),
            section("How far from the limits", roofline_caption(report), roofline(report, colors)),
            section("Kernels", "Click a column to sort by it.", table(report)),
            section("When", "One lane for each stream or thread, and one for compiling.", timeline(statistics, colors)),
        ]
    body = "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{text(report.program)}: profile</title>\n'
        '<meta name="viewport" content="width=device-width,'
        f' initial-scale=1">\n<style>\n{style}</style></head>\n<body><main>\n{body}\n'
        f'</main>\n<script type="application/json" id="data">{data}</script>\n'
        f"<script>\n{script}</script></body></html>\n"
    )


def text(value: object) -> str:
    return html.escape(str(value))


def section(title: str, caption: str, content: str) -> str:
    return f"<section><h2>{text(title)}</h2><p>{caption}</p>\n{content}</section>"


def svg(height: float, label: str, content: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{text(label)}">{"".join(content)}</svg>'


def tip(row: Row, report: Report) -> str:
    """The tooltip of a kernel."""
    cells = zip(COLUMNS, cells_of(row, report), strict=True)
    return text("\n".join([row.name, *(f"{name}: {cell}" for name, cell in cells if cell)]))


# ---- the icicle chart


def icicle(report: Report, colors: dict[str, int]) -> str:
    """Rows of boxes: a scope above its kernels, each as wide as its time."""
    placed = list(boxes(report.root, 0.0, float(WIDTH), 0))
    depth = 1 + max(level for _, _, _, level in placed)
    found: list[str] = []
    for row, left, width, level in placed:
        if width < 0.3:
            continue
        kind = f"k{colors[row.name]}" if row.is_kernel else "scope"
        share = f" {100 * row.seconds / report.root.seconds:.1f} %" if report.root.seconds else ""
        name = (
            f"{row.name}{share}"
            if width > 7.5 * len(row.name) + 50
            else row.name
            if width > 7.5 * len(row.name) + 8
            else ""
        )
        y = level * ROW_HEIGHT
        found.append(
            f'<g class="box {kind}" data-x="{left:.3f}" data-w="{width:.3f}"'
            f' data-name="{text(row.name)}"><title>{tip(row, report)}</title>'
            f'<rect x="{left:.3f}" y="{y}" width="{max(width - 1, 0.3):.3f}" height="{ROW_HEIGHT - 2}" rx="3"/>'
            f'<text x="{left + 5:.3f}" y="{y + 17}">{text(name)}</text></g>'
        )
    return svg(depth * ROW_HEIGHT, "where the time goes", [f'<g id="icicle">{"".join(found)}</g>'])


def boxes(row: Row, left: float, width: float, level: int) -> Iterator[tuple[Row, float, float, int]]:
    yield row, left, width, level
    for child in row.children:
        part = width * child.seconds / row.seconds if row.seconds else 0.0
        yield from boxes(child, left, part, level + 1)
        left += part


# ---- the roofline


def roofline_caption(report: Report) -> str:
    if report.bandwidth is None:
        return "An emulated device has no limits."
    disturbed = f" <b>Beware: {text(DISTURBED.format(report.disturbed))}.</b>" if report.disturbed else ""
    return (
        "Each kernel by its operations per byte and its operations per second, both logarithmic; what is estimated is"
        " hollow. The slope is the memory's bandwidth, the flat lines are the arithmetic: no kernel gets above them,"
        " but one whose data comes from caches gets above the slope." + disturbed
    )


def roofline(report: Report, colors: dict[str, int]) -> str:
    """A roof for each kind of arithmetic that was used, and a point for each kernel."""
    points = [
        (row, sum(row.flops.values()) / row.bytes, (row.teraflops or 0.0) * 1e12)
        for row in report.kernels
        if row.bytes and row.flops and row.teraflops
    ]
    if report.bandwidth is None or not points or not report.rates:
        return "<p>There is no kernel whose operations and bytes are both known.</p>"
    rates = report.rates
    xs = [x for _, x, _ in points] + [rate / report.bandwidth for rate in rates.values()]
    ys = [y for _, _, y in points] + list(rates.values())
    x_axis, y_axis = Axis.around(xs, MARGIN, WIDTH - 20), Axis.around(ys, ROOF_HEIGHT - MARGIN, 26)
    found = [*grid_lines(x_axis, y_axis)]
    free = FreeSpace(Box(MARGIN, 4, WIDTH - 4, ROOF_HEIGHT - MARGIN))
    low = max(x_axis.low, y_axis.low / report.bandwidth)
    for rate in rates.values():
        corners = [(low, low * report.bandwidth), (rate / report.bandwidth, rate), (x_axis.high, rate)]
        placed = [(x_axis.at(x), y_axis.at(y)) for x, y in corners]
        found.append(f'<polyline class="roof" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in placed)}"/>')
        for start, end in pairwise(placed):
            free.avoid(line_boxes(*start, *end))
    circles = circles_of(points, report, x_axis, y_axis)
    for x, y, radius, _ in circles:
        free.take(Box(x - radius - 2, y - radius, x + radius + 2, y + radius))
    for kind, rate in sorted(rates.items(), key=lambda item: -item[1]):
        name = f"{kind} {units(rate, 'FLOP/s')}"
        found.append(
            label(name, free.place(above(x_axis, y_axis, rate, report.bandwidth, width_of(name)), width_of(name)))
        )
    name = f"copies {units(report.bandwidth, 'B/s')}"
    found.append(label(name, free.place(below(x_axis, y_axis, low, report.bandwidth), width_of(name))))
    unnamed = 0
    for x, y, radius, row in circles:
        kind = f"k{colors[row.name]}{'' if row.is_reported else ' hollow'}"
        circle = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>'
        name = row.name if len(row.name) <= LONGEST else f"{row.name[: LONGEST - 1]}…"
        box = free.place(around(x, y, radius, width_of(name)), width_of(name), (x, y))
        unnamed += box is None
        if box is not None and (end := far_end(x, y, radius, box)) is not None:
            free.avoid(line_boxes(x, y, *end))
            found.append(f'<line class="leader" x1="{x:.1f}" y1="{y:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"/>')
        found.append(f'<g class="{kind}"><title>{tip(row, report)}</title>{circle}</g>{label(name, box, x)}')
    note = f"<p>{unnamed} of the points have no label: there is no room. Point at them.</p>" if unnamed else ""
    return svg(ROOF_HEIGHT, "kernels and the limits of the machine", found) + note


def circles_of(
    points: Sequence[tuple[Row, float, float]], report: Report, x_axis: "Axis", y_axis: "Axis"
) -> list[tuple[float, float, float, Row]]:
    """The middle and the radius of each point; those of more time first, as the others are drawn above them."""
    whole = report.root.seconds or 1.0
    found = [(x_axis.at(x), y_axis.at(y), 4 + 14 * math.sqrt(row.seconds / whole), row) for row, x, y in points]
    return sorted(found, key=lambda circle: -circle[2])


def above(x_axis: "Axis", y_axis: "Axis", rate: float, bandwidth: float, width: float) -> Iterator[tuple[float, float]]:
    """Yield positions for the label of a flat roof: above its right end, further left, and below it."""
    y, right, ridge = y_axis.at(rate), x_axis.end - 4, x_axis.at(rate / bandwidth)
    ends = [right - step for step in range(0, max(1, int(right - ridge - width)), 20)]
    yield from ((end - width, y - HEIGHT - GAP) for end in ends)
    yield from ((end - width, y + GAP) for end in ends)


def below(x_axis: "Axis", y_axis: "Axis", low: float, bandwidth: float) -> Iterator[tuple[float, float]]:
    """Yield positions for the label of the slope: right of it, from its lower end upwards."""
    for down, step in product((0, 4, 8), range(1, 20)):
        x = low * 1.2**step
        yield x_axis.at(x) + 12, y_axis.at(x * bandwidth) - HEIGHT / 2 + down


def label(name: str, box: Box | None, x: float = 0.0) -> str:
    """The text in its box, on the side of `x`: the box is as wide as the widest font needs. Nothing without a box."""
    if box is None:
        return ""
    if box.right <= x:
        kind, at = " end", box.right
    elif box.left < x:
        kind, at = " middle", (box.left + box.right) / 2
    else:
        kind, at = "", box.left
    return f'<text class="label{kind}" x="{at:.1f}" y="{box.bottom - 3:.1f}">{text(name)}</text>'


def far_end(x: float, y: float, radius: float, box: Box) -> tuple[float, float] | None:
    """The end of the line that a label needs which is not next to its point."""
    end = nearest(box, x, y)
    return end if math.hypot(end[0] - x, end[1] - y) > radius + 2 * GAP else None


class Axis:
    """A logarithmic axis from `low` to `high`, both powers of ten, between two coordinates of the picture."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.low, self.high, self.start, self.end = low, high, start, end

    @classmethod
    def around(cls, values: Sequence[float], start: float, end: float) -> "Axis":
        low, high = math.floor(math.log10(min(values)) - 0.1), math.ceil(math.log10(max(values)) + 0.1)
        return cls(10.0**low, 10.0**high, start, end)

    def at(self, value: float) -> float:
        part = (math.log10(value) - math.log10(self.low)) / (math.log10(self.high) - math.log10(self.low))
        return self.start + part * (self.end - self.start)

    def tens(self) -> list[float]:
        first, last = round(math.log10(self.low)), round(math.log10(self.high))
        return [10.0**power for power in range(first, last + 1)]


def grid_lines(x_axis: Axis, y_axis: Axis) -> Iterator[str]:
    for value in x_axis.tens():
        x = x_axis.at(value)
        yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{y_axis.end}" y2="{y_axis.start}"/>'
        yield f'<text class="tick middle" x="{x:.1f}" y="{y_axis.start + 18}">{value:g}</text>'
    for value in y_axis.tens():
        y = y_axis.at(value)
        yield f'<line class="grid" x1="{x_axis.start}" x2="{x_axis.end}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text class="tick end" x="{x_axis.start - 6}" y="{y + 4:.1f}">{units(value, "")}</text>'
    middle = (x_axis.start + x_axis.end) / 2
    yield f'<text class="tick middle" x="{middle}" y="{y_axis.start + 38}">operations per byte</text>'
    yield f'<text class="tick" x="4" y="{y_axis.end - 14}">FLOP/s</text>'


def units(value: float, unit: str) -> str:
    """``12.5 GB/s``"""
    for scale, name in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= scale:
            return f"{value / scale:.3g} {name}{unit}"
    return f"{value:.3g} {unit}"


# ---- the table and the timeline


def table(report: Report) -> str:
    head = "".join(f"<th>{text(name)}</th>" for name in ("kernel", "scope", *COLUMNS))
    rows = []
    for row in sorted(report.kernels, key=lambda row: -row.seconds):
        cells = "".join(f"<td>{text(cell)}</td>" for cell in cells_of(row, report))
        rows.append(f"<tr><td>{text(row.name)}</td><td>{text(' / '.join(row.path[:-1]))}</td>{cells}</tr>")
    body = "".join(rows)
    notes = "".join(f"<p>{text(note)}</p>" for sign, note in NOTES.items() if sign in body)
    limits = "".join(f"<p>{text(line.strip())}</p>" for line in limit_lines(report)[:1])
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>{limits}{notes}'


def timeline(statistics: Statistics, colors: dict[str, int]) -> str:
    """The timeline of launches and compilations; of very many launches the longest."""
    first, last = statistics.started, max(statistics.ended, statistics.started + 1)
    scale = (WIDTH - MARGIN) / (last - first)
    events: list[tuple[str, str, int, float, str]] = []
    for one in statistics.compilations:
        took, source = one.seconds * 1e9, "from the cache" if one.hit else "compiled"
        events.append(("compiling", f"{one.name}, {source}", one.end - round(took), took, "scope"))
    for found in statistics.trace.launches if statistics.trace is not None else ():
        lane = f"{found.device_type} {found.stream}"
        kind = f"k{colors[found.name]}"
        events += [(lane, found.name, *times, kind) for times in zip(found.starts, found.durations, strict=True)]
    shown = sorted(events, key=lambda event: -event[3])[:MOST_EVENTS]
    lanes = {lane: index for index, lane in enumerate(sorted({event[0] for event in events}))}
    shapes = [
        f'<text class="tick" x="0" y="{LANE_HEIGHT * index + 15}">{text(lane)}</text>' for lane, index in lanes.items()
    ]
    for lane, name, start, took, kind in shown:
        x, width = MARGIN + 10 + (start - first) * scale * 0.98, max(took * scale * 0.98, 0.5)
        position = f'x="{x:.2f}" y="{LANE_HEIGHT * lanes[lane] + 2}" width="{width:.2f}" height="{LANE_HEIGHT - 4}"'
        shapes.append(f'<g class="{kind}"><title>{text(name)}: {took / 1e3:.1f} us</title><rect {position}/></g>')
    left = "" if len(shown) == len(events) else f"<p>The longest {len(shown)} of {len(events)} are shown.</p>"
    return svg(LANE_HEIGHT * max(len(lanes), 1), "what ran when", shapes) + left
