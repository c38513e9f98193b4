"""Pictures of the tutorials: line charts, bars and tiles, as SVG.

    svg = lines("Vector add", [1024, 4096], {"tilework": [3.1, 9.0], "NumPy": [4.0, 7.5]},
                x_label="elements", y_label="GB/s", x_log=True)

Text takes the colour of the page that the picture is in; a file that is opened alone follows the light or dark
setting of the reader's system. The colours of the series are distinguishable on both, also without seeing red or
green.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import cycle

WIDTH, HEIGHT = 720, 400
LEFT, RIGHT, TOP, BOTTOM = 72, 24, 74, 58
OURS = (("#2f81f7", ""), ("#2aa198", "2 3"), ("#b35bd6", "9 3 2 3"), ("#8b949e", "6 4"))
NUMPY = (("#e0752d", "6 4"), ("#c9952b", "9 3 2 3"))
RAMP = (
    (46, 32, 99),
    (46, 103, 173),
    (47, 168, 154),
    (166, 206, 86),
    (250, 232, 90),
)  # of tiles, from low to high
SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

STYLE = """
svg:root { color: #1f2328; background: #ffffff; }
@media (prefers-color-scheme: dark) { svg:root { color: #e6edf3; background: #0d1117; } }
"""
FONT = "font-family='system-ui, -apple-system, Segoe UI, Roboto, sans-serif'"


def lines(
    title: str,
    x: Sequence[float],
    series: Mapping[str, Sequence[float]],
    *,
    x_label: str,
    y_label: str,
    x_log: bool = False,
    y_log: bool = False,
    points_only: Sequence[str] = (),
) -> str:
    """One line for each of the `series`, over one x axis; points for those in `points_only`."""
    values = [value for line in series.values() for value in line]
    across = axis(x, x_log, LEFT, WIDTH - RIGHT, from_zero=False)
    up = axis(values, y_log, HEIGHT - BOTTOM, TOP, from_zero=not y_log)
    parts = [
        *frame(title, x_label, y_label),
        *legend(series, points_only=points_only),
        *horizontal_grid(up),
    ]
    parts += [
        text(across.position(tick), HEIGHT - BOTTOM + 18, label(tick, x_log), anchor="middle") for tick in across.ticks
    ]
    looks = looks_of(series)
    for name, line in series.items():
        color, dashes = looks[name]
        points = [(across.position(at), up.position(value)) for at, value in zip(x, line, strict=True)]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
        if name not in points_only:
            parts.append(
                f"<polyline points='{path}' fill='none' stroke='{color}' stroke-width='2.2' "
                f"stroke-dasharray='{dashes}' stroke-linejoin='round'/>"
            )
        radius = 3.4 if name in points_only or not points_only else 0.0
        for (a, b), at, value in zip(points, x, line, strict=True):
            tip = f"{name}, {label(at, x_log)} {x_label}: {label(value)} {y_label}"
            parts.append(
                f"<circle cx='{a:.1f}' cy='{b:.1f}' r='{radius}' fill='{color}'><title>{escape(tip)}</title></circle>"
            )
    return picture(title, parts)


def bars(
    title: str,
    groups: Sequence[str],
    series: Mapping[str, Sequence[float]],
    *,
    x_label: str,
    y_label: str,
) -> str:
    """A bar of each of the `series` in every group, with its value on top; they begin at 0."""
    up = axis(
        [value for line in series.values() for value in line],
        False,
        HEIGHT - BOTTOM,
        TOP,
        from_zero=True,
    )
    parts = [
        *frame(title, x_label, y_label),
        *(legend(series, as_squares=True) if len(series) > 1 else ()),
        *horizontal_grid(up),
    ]
    slot = (WIDTH - LEFT - RIGHT) / len(groups)
    width = min(64.0, 0.8 * slot / len(series))
    for column, group in enumerate(groups):
        looks = looks_of(series if len(series) > 1 else [group])
        middle = LEFT + slot * (column + 0.5)
        parts.append(text(middle, HEIGHT - BOTTOM + 18, group, anchor="middle"))
        for index, (name, line) in enumerate(series.items()):
            left = middle + width * (index - len(series) / 2)
            top = up.position(line[column])
            color, _ = looks[name if len(series) > 1 else group]
            tip = f"{name}, {group}: {label(line[column])} {y_label}".removeprefix(", ")
            parts.append(
                f"<rect x='{left + 1:.1f}' y='{top:.1f}' width='{width - 2:.1f}' height='{up.position(0) - top:.1f}' "
                f"rx='2' fill='{color}'><title>{escape(tip)}</title></rect>"
            )
            value = label(line[column])
            size = min(11.0, width / (0.58 * len(value)))
            parts.append(text(left + width / 2, top - 5, value, anchor="middle", size=size))
    return picture(title, parts)


def tiles(
    title: str,
    panels: Mapping[str, Sequence[Sequence[float]]],
    *,
    x_label: str,
    y_label: str,
    value_label: str,
    numbers: bool = False,
) -> str:
    """Tables of numbers as coloured squares, side by side, with one scale for all; row 0 is at the top."""
    tables = {name: [[float(cell) for cell in row] for row in rows] for name, rows in panels.items()}
    cells = [cell for rows in tables.values() for row in rows for cell in row]
    low, high = min(cells), max(cells)
    shade = lambda cell: ramp((cell - low) / (high - low) if high > low else 0.5)
    gap = 34
    width = (WIDTH - LEFT - RIGHT - 60 - gap * (len(tables) - 1)) / len(tables)
    most_rows, most_columns = (
        max(map(len, tables.values())),
        max(len(rows[0]) for rows in tables.values()),
    )
    side = min(width / most_columns, (HEIGHT - BOTTOM - TOP) / most_rows)
    edge = 0.8 if side > 6 else 0.0
    bottom = TOP + most_rows * side
    right = LEFT + sum(len(rows[0]) * side + gap for rows in tables.values()) - gap
    parts = [*frame(title, x_label, y_label, bottom, right)]
    left = float(LEFT)
    for name, rows in tables.items():
        columns = len(rows[0])
        parts.append(text(left + columns * side / 2, TOP - 9, name, anchor="middle"))
        for i, row in enumerate(rows):
            for first, after in runs(row, joined=not numbers and edge == 0):
                parts.append(
                    f"<rect x='{left + first * side:.2f}' y='{TOP + i * side:.2f}' fill='{shade(row[first])}' "
                    f"width='{(after - first) * side - edge:.2f}' height='{side - edge:.2f}'>"
                    f"<title>row {i}, column {first}: {label(row[first])} {escape(value_label)}</title></rect>"
                )
                if numbers:
                    ink = "#ffffff" if high == low or (row[first] - low) / (high - low) < 0.55 else "#111111"
                    size = min(13.0, side * 0.42)
                    at = (left + (first + 0.5) * side, TOP + (i + 0.5) * side + size * 0.36)
                    parts.append(text(*at, label(row[first]), anchor="middle", size=size, fill=ink))
        for at in tick_positions(columns):
            parts.append(
                text(
                    left + (at + 0.5) * side,
                    TOP + len(rows) * side + 14,
                    str(at),
                    anchor="middle",
                    size=11,
                )
            )
        for at in tick_positions(len(rows)) if left == LEFT else ():
            parts.append(text(left - 7, TOP + (at + 0.5) * side + 4, str(at), anchor="end", size=11))
        left += columns * side + gap
    return picture(
        title,
        [*parts, *color_scale(right + 26, bottom, low, high, value_label)],
        bottom + BOTTOM,
    )


class Axis:
    """An axis: `position(value)` maps a value to the picture's own units, and `ticks` have labels."""

    def __init__(
        self,
        low: float,
        high: float,
        ticks: list[float],
        start: float,
        end: float,
        is_log: bool,
    ) -> None:
        self.ticks = ticks
        scale: Callable[[float], float] = math.log2 if is_log else float
        first, span = scale(low), (scale(high) - scale(low)) or 1.0
        self.position: Callable[[float], float] = lambda value: start + (scale(value) - first) / span * (end - start)


def axis(values: Sequence[float], is_log: bool, start: float, end: float, from_zero: bool) -> Axis:
    """An axis that covers all `values`: powers of two, powers of ten, or steps of 1, 2 or 5."""
    low, high = min(values), max(values)
    if is_log and all(math.log2(value).is_integer() for value in values):
        first, last = round(math.log2(low)), round(math.log2(high))
        step = max(1, math.ceil((last - first) / 8))
        return Axis(
            low,
            high,
            [2.0**power for power in range(first, last + 1, step)],
            start,
            end,
            True,
        )
    if is_log:
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        return Axis(
            10.0 ** powers[0],
            10.0 ** powers[-1],
            [10.0**power for power in powers],
            start,
            end,
            True,
        )
    low = 0.0 if from_zero else low
    step = nice_step((high - low) or abs(high) or 1.0)
    top = math.ceil(high / step - 1e-9) * step if from_zero else high
    ticks = [count * step for count in range(math.ceil(low / step - 1e-9), math.floor(top / step + 1e-9) + 1)]
    return Axis(low, top or step, ticks, start, end, False)


def nice_step(span: float) -> float:
    """A step of 1, 2 or 5 times a power of ten that divides `span` into at most six."""
    power = 10.0 ** math.floor(math.log10(span / 6))
    return next(factor * power for factor in (1, 2, 5, 10) if span / (factor * power) <= 6)


def label(value: float, is_size: bool = False) -> str:
    """Three digits that count; sizes that are powers of two as 4K, 2M; small powers of ten as such."""
    if is_size and value >= 1024 and value % 1024 == 0:
        return f"{value / 2**20:g}M" if value % 2**20 == 0 else f"{value / 2**10:g}K"
    if abs(value) >= 1e6:
        return f"{value / 1e6:.3g}M"
    if 0 < value < 1e-2 and math.log10(value).is_integer():
        return f"10{str(round(math.log10(value))).translate(SUPERSCRIPT)}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def frame(
    title: str,
    x_label: str,
    y_label: str,
    bottom: float = HEIGHT - BOTTOM,
    right: float = WIDTH - RIGHT,
) -> Iterator[str]:
    """The title, and what the axes show."""
    yield text(LEFT, 26, title, size=16, weight="600")
    yield text((LEFT + right) / 2, bottom + BOTTOM - 14, x_label, anchor="middle")
    middle = (TOP + bottom) / 2
    yield f"<g transform='rotate(-90 18 {middle:.1f})'>{text(18, middle + 4, y_label, anchor='middle')}</g>"


def horizontal_grid(up: Axis) -> Iterator[str]:
    for tick in up.ticks:
        at = up.position(tick)
        yield (
            f"<line x1='{LEFT}' x2='{WIDTH - RIGHT}' y1='{at:.1f}' y2='{at:.1f}' stroke='currentColor' "
            f"stroke-opacity='{0.55 if tick == 0 else 0.15}'/>"
        )
        yield text(LEFT - 8, at + 4, label(tick), anchor="end")


def legend(names: Mapping[str, object], as_squares: bool = False, points_only: Sequence[str] = ()) -> Iterator[str]:
    """A square, a point or a piece of the line before each name."""
    left, width = float(LEFT), 12 if as_squares else 24
    for name, (color, dashes) in looks_of(names).items():
        dashes, thick = ("", 12) if as_squares else (dashes, 3)
        yield (
            f"<circle cx='{left + width - 6:.0f}' cy='48' r='4' fill='{color}'/>"
            if name in points_only
            else f"<line x1='{left:.0f}' x2='{left + width:.0f}' y1='48' y2='48' stroke='{color}' "
            f"stroke-width='{thick}' stroke-dasharray='{dashes}'/>"
        )
        yield text(left + width + 6, 52, name)
        left += width + 28 + 7.2 * len(name)


def color_scale(left: float, bottom: float, low: float, high: float, title: str) -> Iterator[str]:
    """The legend of the colours of tiles: high at the top."""
    steps, height = 40, bottom - TOP
    for step in range(steps):
        at = TOP + height * (1 - (step + 1) / steps)
        yield (
            f"<rect x='{left:.1f}' y='{at:.1f}' width='12' height='{height / steps + 0.4:.1f}' "
            f"fill='{ramp(step / (steps - 1))}'/>"
        )
    yield text(left + 17, TOP + 9, label(high), size=11)
    yield text(left + 17, TOP + height, label(low), size=11)
    middle = TOP + height / 2
    yield (
        f"<g transform='rotate(-90 {left + 28:.1f} "
        f"{middle:.1f})'>{text(left + 28, middle, title, anchor='middle', size=11)}</g>"
    )


def runs(row: Sequence[float], joined: bool) -> Iterator[tuple[int, int]]:
    """The start and end of runs of equal neighbours, which are one rectangle."""
    first = 0
    for at in range(1, len(row) + 1):
        if at == len(row) or not joined or row[at] != row[first]:
            yield first, at
            first = at


def tick_positions(count: int) -> range:
    return range(0, count, max(1, round(count / 8)))


def looks_of(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """The colour and the dashes of each series: NumPy's are the same in all pictures."""
    ours, numpy = cycle(OURS), cycle(NUMPY)
    return {name: next(numpy if "NumPy" in name else ours) for name in names}


def ramp(part: float) -> str:
    """The colour at `part` (0 to 1) of the scale."""
    position = min(max(part, 0.0), 1.0) * (len(RAMP) - 1)
    first = min(int(position), len(RAMP) - 2)
    mixed = (a + (b - a) * (position - first) for a, b in zip(RAMP[first], RAMP[first + 1], strict=True))
    return "#" + "".join(f"{round(channel):02x}" for channel in mixed)


def text(
    x: float,
    y: float,
    content: str,
    *,
    anchor: str = "start",
    size: float = 13,
    weight: str = "400",
    fill: str = "",
) -> str:
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}' font-size='{size:g}' font-weight='{weight}' "
        f"fill='{fill or 'currentColor'}'>{escape(content)}</text>"
    )


def picture(title: str, parts: Sequence[str], height: float = HEIGHT) -> str:
    head = (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height:.0f}' role='img' "
        f"aria-label='{escape(title, quote=True)}' {FONT} style='max-width: {WIDTH}px; width: 100%'>"
    )
    return "\n".join([head, f"<style>{STYLE}</style>", *parts, "</svg>", ""])
