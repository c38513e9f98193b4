"""Layouts as a drawing: SVG without dependencies, for a browser or a talk.

Of a distributed layout every element is a cell in the colour of its thread, with `thread:register` in it. Each warp has
its own part of the colour wheel, through which its lanes move; a thick line separates the elements of different warps.
An element that several threads hold shows the first and how many there are (`x4`). Pointing at a cell shows all owners.

Of shared memory every place is a cell in the colour of its bank, with the coordinates of the element that lies there;
a line of 128 bytes (all banks once) is a row.

The hardware view has a row for each register and a column for each lane, in the colours of the threads. Padding, which nobody
sees, is grey in all of them.
"""

from collections.abc import Sequence
from colorsys import hls_to_rgb
from dataclasses import dataclass, replace
from html import escape

from tilework.layouts.banks import BANKS
from tilework.layouts.errors import LayoutError
from tilework.layouts.linear import LinearLayout
from tilework.layouts.picture import Owner, coordinates, is_padding, is_shared, owners

MAX_CELLS = 1 << 15
LINE = 32  # the elements of a one-dimensional tensor that stand side by side
CELL_WIDTH, CELL_HEIGHT = 46, 30
LEFT, TOP, GAP = 54, 78, 34
FONT = "font-family='Helvetica, Arial, sans-serif'"
INK, FAINT, PADDING = "#1a1a1a", "#666666", "#e4e4e4"


@dataclass(frozen=True)
class Cell:
    """One box: its colour, what is written in it (large and small), what pointing at it shows, whose it is."""

    colour: str
    text: str
    small: str = ""
    hint: str = ""
    group: int = 0


@dataclass(frozen=True)
class Grid:
    """Cells in rows, under a caption, with names of rows and columns."""

    caption: str
    rows: Sequence[Sequence[Cell]]
    row_names: Sequence[str]
    column_names: Sequence[str]


def draw(
    layout: LinearLayout, title: str, hardware: bool = False, bits: int = 32, seen: Sequence[int] | None = None
) -> str:
    """The SVG text. `bits` is the size of an element, which decides the banks of shared memory; from the sizes `seen` on is padding."""
    count = 1 << (layout.total_in_bits if hardware or is_shared(layout) else layout.total_out_bits)
    if count > MAX_CELLS:
        raise LayoutError(f"a drawing of {count} cells is too large to read; give a shape with at most {MAX_CELLS}")
    if is_shared(layout):
        grids, legend = memory_grids(layout, bits, seen), bank_legend
    else:
        grids = hardware_grids(layout, seen) if hardware else tensor_grids(layout, seen)
        legend = thread_legend
    names = legend(layout) if seen is None else [*legend(layout), ("padding, which nobody sees", [PADDING])]
    return page(title, subtitle(layout, hardware, bits), grids, names)


def subtitle(layout: LinearLayout, hardware: bool, bits: int) -> str:
    shape = " x ".join(str(size) for _, size in layout.outs)
    if is_shared(layout):
        return f"shared memory of a {shape} tensor of {bits}-bit elements: a row is 128 bytes, a colour is a bank"
    warps, lanes, registers = (layout.in_size(name) for name in ("warp", "lane", "register"))
    sizes = f"{warps} warps x {lanes} lanes x {registers} registers"
    if hardware:
        return f"{shape} tensor on {sizes}: each cell is the element that a lane holds in a register"
    return f"{shape} tensor on {sizes}: each cell is thread:register"


# Colours


def thread_colour(warp: int, lane: int, warps: int, lanes: int) -> str:
    """Each warp has its part of the colour wheel; neighbouring lanes also differ in lightness."""
    hue = 360 * (warp + 0.82 * lane / lanes) / warps
    return colour_code(hue, 0.72 - 0.14 * (lane % 2), 0.83 - 0.11 * (lane // 2 % 2))


def bank_colour(bank: int) -> str:
    return colour_code(360 * bank / BANKS, 0.7, 0.82 - 0.1 * (bank % 2))


def colour_code(hue: float, saturation: float, lightness: float) -> str:
    """`#rrggbb`, which every program that shows SVG knows."""
    parts = hls_to_rgb(hue % 360 / 360, lightness, saturation)
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)


# What is in the cells


def unseen(cell: Cell, is_hidden: bool) -> Cell:
    """The cell, grey and empty where it is padding."""
    return (
        replace(cell, colour=PADDING, text="", small="", hint=f"padding: {cell.hint or cell.text}")
        if is_hidden
        else cell
    )


def tensor_grids(layout: LinearLayout, seen: Sequence[int] | None) -> list[Grid]:
    """A grid for every index of the dimensions before the last two."""
    held = owners(layout)
    shape = [size for _, size in layout.outs]
    rows, columns = (shape[-2], shape[-1]) if len(shape) > 1 else (max(1, shape[0] // LINE), min(shape[0], LINE))
    cells = [unseen(owner_cell(layout, index, held[index]), is_padding(index, seen)) for index in sorted(held)]
    grids = []
    for first in range(0, len(cells), rows * columns):
        part = [cells[first + row * columns : first + (row + 1) * columns] for row in range(rows)]
        outer = sorted(held)[first][:-2]
        caption = f"[{', '.join(map(str, outer))}, :, :]" if outer else ""
        names = [str(row) for row in range(rows)] if len(shape) > 1 else [str(row * columns) for row in range(rows)]
        grids.append(Grid(caption, part, names, [str(column) for column in range(columns)]))
    return grids


def owner_cell(layout: LinearLayout, index: tuple[int, ...], held: Sequence[Owner]) -> Cell:
    block, warp, lane, register = held[0]
    lanes, warps = layout.in_size("lane"), layout.in_size("warp")
    colour = thread_colour(warp, lane, warps, lanes)
    copies = f"x{len(held)}" if len(held) > 1 else ""
    names = ", ".join(
        f"T{o[1] * lanes + o[2]}:{o[3]}" + (f" of block {o[0]}" if block_count(layout) else "") for o in held
    )
    place = f"T{warp * lanes + lane}:{register}"
    group = block * warps + warp
    return Cell(colour, f"B{block} {place}" if block_count(layout) else place, copies, f"{index} in {names}", group)


def block_count(layout: LinearLayout) -> bool:
    """Whether there are several blocks."""
    return layout.in_size("block") > 1


def hardware_grids(layout: LinearLayout, seen: Sequence[int] | None) -> list[Grid]:
    """A grid for every warp: registers below each other, lanes side by side."""
    lanes, warps = layout.in_size("lane"), layout.in_size("warp")
    grids = []
    for block, a in enumerate(layout.images("block")):
        for warp, b in enumerate(layout.images("warp")):
            rows = [
                [
                    unseen(
                        Cell(thread_colour(warp, lane, warps, lanes), coordinates(layout, a ^ b ^ c ^ d)),
                        is_padding(layout.vector(a ^ b ^ c ^ d), seen),
                    )
                    for lane, d in enumerate(layout.images("lane"))
                ]
                for c in layout.images("register")
            ]
            caption = f"block {block}, warp {warp}" if block_count(layout) else f"warp {warp}"
            registers = [f"r{register}" for register in range(len(rows))]
            grids.append(Grid(caption, rows, registers, [f"T{warp * lanes + lane}" for lane in range(lanes)]))
    return grids


def memory_grids(layout: LinearLayout, bits: int, seen: Sequence[int] | None) -> list[Grid]:
    """A grid for every block: 128 bytes in a row."""
    grids = []
    width = max(1, BANKS * 32 // bits)
    for block, a in enumerate(layout.images("block")):
        cells = [
            unseen(
                Cell(
                    bank_colour(offset * bits // 32 % BANKS),
                    coordinates(layout, a ^ b),
                    "",
                    f"offset {offset}, bank {offset * bits // 32 % BANKS}",
                ),
                is_padding(layout.vector(a ^ b), seen),
            )
            for offset, b in enumerate(layout.images("offset"))
        ]
        rows = [cells[first : first + width] for first in range(0, len(cells), width)]
        names = [str(first) for first in range(0, len(cells), width)]
        caption = f"block {block}" if block_count(layout) else ""
        grids.append(Grid(caption, rows, names, [f"+{column}" for column in range(min(width, len(cells)))]))
    return grids


# The legend


def thread_legend(layout: LinearLayout) -> list[tuple[str, list[str]]]:
    """For every warp its name and the colours of its lanes."""
    lanes, warps = layout.in_size("lane"), layout.in_size("warp")
    return [
        (
            f"warp {warp}: T{warp * lanes} to T{warp * lanes + lanes - 1}",
            [thread_colour(warp, lane, warps, lanes) for lane in range(lanes)],
        )
        for warp in range(warps)
    ]


def bank_legend(layout: LinearLayout) -> list[tuple[str, list[str]]]:
    return [(f"bank 0 to {BANKS - 1}", [bank_colour(bank) for bank in range(BANKS)])]


# Drawing


def page(title: str, under: str, grids: Sequence[Grid], legend: Sequence[tuple[str, list[str]]]) -> str:
    """Title, legend and grids below each other."""
    swatch, legend_height = 9, 20
    longest = max(len(row) for grid in grids for row in grid.rows)
    width = max(LEFT + longest * CELL_WIDTH + 24, 24 + 8.6 * len(title), 24 + 7 * len(under), 620)
    body: list[str] = []
    top = TOP
    for name, colours in legend:
        for place, colour in enumerate(colours):
            body.append(box(LEFT + place * swatch, top - 11, swatch, 13, colour, "none"))
        body.append(text(LEFT + len(colours) * swatch + 10, top, name, 12, "start"))
        top += legend_height
    top += GAP
    for grid in grids:
        body += grid_shapes(grid, top)
        top += len(grid.rows) * CELL_HEIGHT + GAP + (14 if grid.caption else 0)
    head = [
        f"<svg xmlns='http://www.w3.org/2000/svg' width='{width:.0f}' height='{top}' viewBox='0 0 {width:.0f} {top}' "
        f"role='img' {FONT}>",
        f"<title>{escape(title)}</title>",
        "<rect width='100%' height='100%' fill='white'/>",
        text(24, 30, title, 15, "start", "bold"),
        text(24, 52, under, 12.5, "start", colour=FAINT),
    ]
    return "\n".join([*head, *body, "</svg>"]) + "\n"


def grid_shapes(grid: Grid, top: float) -> list[str]:
    """The cells, their names, and thick lines where the group changes."""
    shapes: list[str] = []
    if grid.caption:
        shapes.append(text(LEFT, top - 18, grid.caption, 13, "start", "bold"))
        top += 4
    for column, name in enumerate(grid.column_names):
        shapes.append(text(LEFT + (column + 0.5) * CELL_WIDTH, top - 5, name, 10.5, "middle", colour=FAINT))
    for row, (name, cells) in enumerate(zip(grid.row_names, grid.rows, strict=True)):
        y = top + row * CELL_HEIGHT
        shapes.append(text(LEFT - 8, y + CELL_HEIGHT / 2 + 4, name, 10.5, "end", colour=FAINT))
        for column, cell in enumerate(cells):
            shapes += cell_shapes(cell, LEFT + column * CELL_WIDTH, y)
    return shapes + borders(grid, top)


def cell_shapes(cell: Cell, x: float, y: float) -> list[str]:
    size = 12 if len(cell.text) <= 6 else max(6.5, 72 / len(cell.text))
    middle = y + CELL_HEIGHT / 2 + (1 if cell.small else 4)
    shapes = [box(x, y, CELL_WIDTH, CELL_HEIGHT, cell.colour, "#ffffff", cell.hint)]
    shapes.append(text(x + CELL_WIDTH / 2, middle, cell.text, size, "middle"))
    if cell.small:
        shapes.append(text(x + CELL_WIDTH / 2, y + CELL_HEIGHT - 3.5, cell.small, 8.5, "middle", colour="#444444"))
    return shapes


def borders(grid: Grid, top: float) -> list[str]:
    """A frame, and a line between neighbours of different groups."""
    lines: list[str] = []
    for row, cells in enumerate(grid.rows):
        y = top + row * CELL_HEIGHT
        for column, cell in enumerate(cells):
            x = LEFT + column * CELL_WIDTH
            if column and cells[column - 1].group != cell.group:
                lines.append(line(x, y, 0, CELL_HEIGHT))
            if row and column < len(grid.rows[row - 1]) and grid.rows[row - 1][column].group != cell.group:
                lines.append(line(x, y, CELL_WIDTH, 0))
    width, height = len(grid.rows[0]) * CELL_WIDTH, len(grid.rows) * CELL_HEIGHT
    return [*lines, line(LEFT, top, width, height), line(LEFT, top, 0, height), line(LEFT, top + height, width, 0)]


def line(x: float, y: float, across: float, down: float) -> str:
    """A thick line to the right, then down."""
    return f"<path d='M{x:g} {y:g}h{across:g}v{down:g}' stroke='{INK}' stroke-width='1.8' fill='none'/>"


def box(x: float, y: float, width: float, height: float, colour: str, line: str, hint: str = "") -> str:
    inside = f"<title>{escape(hint)}</title>" if hint else ""
    place = f"x='{x:g}' y='{y:g}' width='{width:g}' height='{height:g}'"
    return f"<rect {place} fill='{colour}' stroke='{line}'>{inside}</rect>"


def text(x: float, y: float, words: str, size: float, anchor: str, weight: str = "normal", colour: str = INK) -> str:
    return (
        f"<text x='{x:g}' y='{y:g}' font-size='{size:g}' text-anchor='{anchor}' font-weight='{weight}' "
        f"fill='{colour}'>{escape(words)}</text>"
    )
