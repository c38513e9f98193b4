"""Pictures of layouts: as text, as SVG without dependencies, and in notebooks.

The tensor view has one entry for each element, `T<thread>:<register>`; an element that several threads hold has all of
them, `T0:0|T4:0`.

>>> layout = LinearLayout({"register": [(0, 1)], "lane": [(0, 2), (1, 0)], "warp": [(2, 0)], "block": []},
...                       ("dim0", "dim1"))
>>> print(tensor_view(layout), end="")
[[T0:0, T0:1, T1:0, T1:1]
[ T2:0, T2:1, T3:0, T3:1]
[ T4:0, T4:1, T5:0, T5:1]
[ T6:0, T6:1, T7:0, T7:1]]

The hardware view has one line for each register of a warp, with the coordinates of every lane.

>>> print(hardware_view(layout), end="")
Warp0:
(0,0), (0,2), (1,0), (1,2)
(0,1), (0,3), (1,1), (1,3)
Warp1:
(2,0), (2,2), (3,0), (3,2)
(2,1), (2,3), (3,1), (3,3)

For a layout of shared memory the tensor view shows the memory: at each offset in row-major order, the coordinates of
its element.

Tiles whose sizes are no powers of two have padding, which is not visible: dashes, and coordinates in square brackets.

>>> print(tensor_view(layout, (3, 3)), end="")
[[T0:0, T0:1, T1:0, ----]
[ T2:0, T2:1, T3:0, ----]
[ T4:0, T4:1, T5:0, ----]
[ ----, ----, ----, ----]]

In a drawing of a distributed layout every element is a cell in the colour of its thread, with `thread:register` in it.
Each warp has its own part of the colour wheel, through which its lanes move; a thick line separates the elements of
different warps. An element that several threads hold shows the first and the count (`x4`). The tooltip of a cell shows
all owners. In a drawing of shared memory every offset is a cell in the colour of its bank, with the coordinates of its
element; a row is 128 bytes (all banks once). The hardware view has a row for each register and a column for each lane.
Padding is grey.

A notebook shows a drawing on a shape that has all of the pattern once:

    Blocked((1, 2), (8, 4), (1, 2), (1, 0))          # the last line of a cell
"""

from collections.abc import Iterator, Sequence
from colorsys import hls_to_rgb
from dataclasses import replace
from html import escape
from itertools import product, takewhile

from tilework.layouts.banks import BANKS
from tilework.layouts.encodings import DISTRIBUTED_INS, SHARED_INS, Encoding, NvmmaShared, Shared
from tilework.layouts.linear import LayoutError, LinearLayout
from tilework.layouts.to_linear import to_linear
from tilework.light_dataclass import light_dataclass

Owner = tuple[int, int, int, int]
"""Block, warp, lane, register."""


def is_shared(layout: LinearLayout) -> bool:
    return "offset" in layout.by_in


def owners(layout: LinearLayout) -> dict[tuple[int, ...], list[Owner]]:
    """Return the owners of each element, in the order block, warp, lane, register."""
    found: dict[tuple[int, ...], list[Owner]] = {}
    blocks, warps, lanes, registers = (layout.images(name) for name in ("block", "warp", "lane", "register"))
    for (block, a), (warp, b), (lane, c), (register, d) in product(
        enumerate(blocks), enumerate(warps), enumerate(lanes), enumerate(registers)
    ):
        found.setdefault(layout.vector(a ^ b ^ c ^ d), []).append((block, warp, lane, register))
    return found


def is_padding(index: Sequence[int], seen: Sequence[int] | None) -> bool:
    """Return True if an element is outside of the sizes that the user has `seen`; None: there is no padding."""
    return seen is not None and any(i >= size for i, size in zip(index, seen, strict=True))


def tensor_view(layout: LinearLayout, seen: Sequence[int] | None = None) -> str:
    """One entry per element, rows in lines, dimensions in brackets. Elements from the sizes `seen` on are padding."""
    shape = [size for _, size in layout.outs]
    if is_shared(layout):
        return bracketed(shape, stored_elements(layout, seen), ",")
    held = owners(layout)
    counts = (layout.in_size("block"), layout.in_size("lane") * layout.in_size("warp"), layout.in_size("register"))
    lanes = layout.in_size("lane")
    entries = (
        hidden("|".join(owner_text(owner, lanes, counts) for owner in held[index]), is_padding(index, seen))
        for index in product(*(range(size) for size in shape))
    )
    return bracketed(shape, entries, ", ")


def hidden(entry: str, is_hidden: bool) -> str:
    """Replace padding by dashes."""
    return "-" * len(entry) if is_hidden else entry


def owner_text(owner: Owner, lanes: int, counts: tuple[int, int, int]) -> str:
    """`T12:3` with blanks in front, so that all entries have one width; `B1:T12:3` when there are several blocks."""
    block, warp, lane, register = owner
    values = (block, lane + lanes * warp, register)
    blanks = sum(digits(count) - digits(value) for count, value in zip(counts, values, strict=True))
    name = f"B{block}:" if counts[0] > 1 else ""
    return f"{' ' * blanks}{name}T{values[1]}:{register}"


def digits(value: int) -> int:
    return len(str(value))


def stored_elements(layout: LinearLayout, seen: Sequence[int] | None = None) -> Iterator[str]:
    """The coordinates at each offset: `(1:2)`."""
    for image in layout.images():
        values = (
            str(value).rjust(digits(size)) for value, (_, size) in zip(layout.vector(image), layout.outs, strict=True)
        )
        yield hidden(f"({':'.join(values)})", is_padding(layout.vector(image), seen))


def bracketed(shape: Sequence[int], entries: Iterator[str], separator: str) -> str:
    """Return entries in row-major order, one line for each run along the last dimension.

    >>> print(bracketed((2, 2), iter("abcd"), ","), end="")
    [[a,b]
    [ c,d]]
    """
    rank, pieces = len(shape), []
    for index, entry in zip(product(*(range(size) for size in shape)), entries, strict=False):
        opened = trailing(value == 0 for value in reversed(index))
        closed = trailing(value == size - 1 for value, size in zip(reversed(index), reversed(shape), strict=True))
        front = "[" * opened + (" " * (rank - opened) if index[-1] == 0 else "")
        pieces.append(front + entry + ("]" * closed + "\n" if index[-1] == shape[-1] - 1 else separator))
    return "".join(pieces)


def trailing(flags: Iterator[bool]) -> int:
    """Return the number of leading true flags."""
    return sum(takewhile(bool, flags))


def hardware_view(layout: LinearLayout, seen: Sequence[int] | None = None) -> str:
    """For each warp one line per register: the element of every lane. For shared memory, one line per offset."""
    if is_shared(layout):
        return offsets_view(layout, seen)
    lines = []
    blocks = layout.images("block")
    for block, a in enumerate(blocks):
        if len(blocks) > 1:
            lines.append(f"Block{block}:")
        for warp, b in enumerate(layout.images("warp")):
            lines.append(f"Warp{warp}:")
            for c in layout.images("register"):
                lines.append(", ".join(coordinates(layout, a ^ b ^ c ^ d, seen) for d in layout.images("lane")))
    return "\n".join(lines) + "\n"


def coordinates(layout: LinearLayout, image: int, seen: Sequence[int] | None = None) -> str:
    """`(1,2)`; of padding `[1,2]`."""
    index = layout.vector(image)
    text = ",".join(map(str, index))
    return f"[{text}]" if is_padding(index, seen) else f"({text})"


def offsets_view(layout: LinearLayout, seen: Sequence[int] | None = None) -> str:
    """The element at every offset, block by block."""
    lines = []
    for block, a in enumerate(layout.images("block")):
        lines.append(f"Block: {block}:")
        for offset, b in enumerate(layout.images("offset")):
            lines.append(f"Offset: {offset} -> {coordinates(layout, a ^ b, seen)}")
    return "\n".join(lines) + "\n"


MAX_CELLS = 1 << 15
LINE = 32  # elements per row of a one-dimensional tensor
CELL_WIDTH, CELL_HEIGHT = 46, 30
LEFT, TOP, GAP = 54, 78, 34
FONT = "font-family='Helvetica, Arial, sans-serif'"
INK, FAINT, PADDING = "#1a1a1a", "#666666", "#e4e4e4"


@light_dataclass
class Cell:
    """A box: its colour, its text (large and small), its tooltip, its owner."""

    colour: str
    text: str
    small: str = ""
    hint: str = ""
    group: int = 0


@light_dataclass
class Grid:
    """Cells in rows, under a caption, with names of rows and columns."""

    caption: str
    rows: Sequence[Sequence[Cell]]
    row_names: Sequence[str]
    column_names: Sequence[str]


def draw(
    layout: LinearLayout, title: str, hardware: bool = False, bits: int = 32, seen: Sequence[int] | None = None
) -> str:
    """Return the SVG text. `bits` is the size of an element, which determines the banks of shared memory; elements from
    the sizes `seen` on are padding."""
    count = 1 << (layout.total_in_bits if hardware or is_shared(layout) else layout.total_out_bits)
    if count > MAX_CELLS:
        raise LayoutError(f"a drawing of {count} cells is too large to read; give a shape with at most {MAX_CELLS}")
    if is_shared(layout):
        grids, legend = memory_grids(layout, bits, seen), bank_legend
    else:
        grids = hardware_grids(layout, seen) if hardware else tensor_grids(layout, seen)
        legend = thread_legend
    names = legend(layout) if seen is None else [*legend(layout), ("padding", [PADDING])]
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
    """Return `#rrggbb`, which every SVG viewer supports."""
    parts = hls_to_rgb(hue % 360 / 360, lightness, saturation)
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)


# Cells


def unseen(cell: Cell, is_hidden: bool) -> Cell:
    """Return the cell, grey and empty if it is padding."""
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
        f"T{o[1] * lanes + o[2]}:{o[3]}" + (f" of block {o[0]}" if has_several_blocks(layout) else "") for o in held
    )
    thread = f"T{warp * lanes + lane}:{register}"
    group = block * warps + warp
    return Cell(
        colour, f"B{block} {thread}" if has_several_blocks(layout) else thread, copies, f"{index} in {names}", group
    )


def has_several_blocks(layout: LinearLayout) -> bool:
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
            caption = f"block {block}, warp {warp}" if has_several_blocks(layout) else f"warp {warp}"
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
        caption = f"block {block}" if has_several_blocks(layout) else ""
        grids.append(Grid(caption, rows, names, [f"+{column}" for column in range(min(width, len(cells)))]))
    return grids


# The legend


def thread_legend(layout: LinearLayout) -> list[tuple[str, list[str]]]:
    """Return the name of every warp with the colours of its lanes."""
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
        for index, colour in enumerate(colours):
            body.append(box(LEFT + index * swatch, top - 11, swatch, 13, colour, "none"))
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
    position = f"x='{x:g}' y='{y:g}' width='{width:g}' height='{height:g}'"
    return f"<rect {position} fill='{colour}' stroke='{line}'>{inside}</rect>"


def text(x: float, y: float, content: str, size: float, anchor: str, weight: str = "normal", colour: str = INK) -> str:
    return (
        f"<text x='{x:g}' y='{y:g}' font-size='{size:g}' text-anchor='{anchor}' font-weight='{weight}' "
        f"fill='{colour}'>{escape(content)}</text>"
    )


MOST_CELLS = 1 << 12
LARGEST = 1 << 9  # of an axis, to find the period of the pattern
LEAST = 16  # of an axis along which threads hold several elements
SHARED_SHAPES = {1: (64,), 2: (8, 64), 3: (2, 8, 32)}
FRAME = "overflow: auto; max-height: 36em; background: white; color: #1a1a1a; display: inline-block; max-width: 100%"


def encoding_html(encoding: Encoding) -> str:
    """Return a picture of the encoding of the smallest tensor that shows it."""
    try:
        shape = shape_for(encoding)
        layout = to_linear(encoding, shape)
    except LayoutError:
        return f"<code>{escape(repr(encoding))}</code>"
    bits = encoding.element_bit_width if isinstance(encoding, NvmmaShared) else 32
    return layout_html(layout, repr(encoding), bits)


def layout_html(layout: LinearLayout, title: str = "LinearLayout", bits: int = 32) -> str:
    """Return a picture if the ins are known and it is not too large; else the bases."""
    is_known = set(layout.in_names) in (set(DISTRIBUTED_INS), set(SHARED_INS))
    cells = 1 << max(layout.total_out_bits, layout.total_in_bits if "offset" in layout.in_names else 0)
    if is_known and 1 < cells <= MOST_CELLS:
        try:
            return f'<div style="{FRAME}">{draw(layout, title, bits=bits)}</div>'
        except LayoutError:
            pass
    rows = [
        f"<tr><td>{escape(name)}</td><td>{', '.join(map(str, vectors)) or '(one)'}</td></tr>"
        for name, vectors in layout.bases
    ]
    outs = " x ".join(f"{name} ({size})" for name, size in layout.outs)
    head = f"<caption>{escape(title)}: bases of {escape(outs)}</caption>"
    return f"<table>{head}<tr><th>in</th><th>bases</th></tr>{''.join(rows)}</table>"


def shape_for(encoding: Encoding) -> tuple[int, ...]:
    """Return the size of a tensor in which every lane and warp has its own elements; for shared memory a usual tile."""
    if isinstance(encoding, Shared):
        return SHARED_SHAPES.get(encoding.rank, (8,) * encoding.rank)
    whole = to_linear(encoding, (LARGEST,) * encoding.rank)
    sizes = [1] * encoding.rank
    for name in ("lane", "warp", "block"):
        for vector in dict(whole.bases).get(name, ()):
            sizes = [max(size, 1 << at.bit_length() if at else 1) for size, at in zip(sizes, vector, strict=True)]
    registers = dict(whole.bases).get("register", ())
    for vector in registers:  # contiguous elements of a thread
        for axis, at in enumerate(vector):
            if at and at * 2 <= max(sizes[axis], LEAST):
                sizes[axis] = max(sizes[axis], at * 2)
    return tuple(sizes)
