"""What notebooks show of layouts: the pictures of `svg.py`, on a shape that shows all of the pattern once.

    Blocked((1, 2), (8, 4), (1, 2), (1, 0))          # the last line of a cell

A picture is on white, in light and in dark notebooks, since its colours say whose an element is.
"""

from html import escape

from tilework.layouts.encodings import NvmmaShared
from tilework.layouts.errors import LayoutError
from tilework.layouts.families import DISTRIBUTED_INS, SHARED_INS, Encoding, Shared
from tilework.layouts.linear import LinearLayout
from tilework.layouts.svg import draw
from tilework.layouts.to_linear import to_linear

MOST_CELLS = 1 << 12
LARGEST = 1 << 9  # of an axis, to find out where the pattern begins again
LEAST = 16  # of an axis along which threads hold several elements
SHARED_SHAPES = {1: (64,), 2: (8, 64), 3: (2, 8, 32)}
FRAME = "overflow: auto; max-height: 36em; background: white; color: #1a1a1a; display: inline-block; max-width: 100%"


def encoding_html(encoding: Encoding) -> str:
    """A picture of the encoding of the smallest tensor that shows it."""
    try:
        shape = shape_for(encoding)
        layout = to_linear(encoding, shape)
    except LayoutError:
        return f"<code>{escape(repr(encoding))}</code>"
    bits = encoding.element_bit_width if isinstance(encoding, NvmmaShared) else 32
    return layout_html(layout, repr(encoding), bits)


def layout_html(layout: LinearLayout, title: str = "LinearLayout", bits: int = 32) -> str:
    """A picture where the names say what is held by whom, and where it is not too large; else the bases."""
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
    """How large a tensor must be until every lane and warp has its own elements; of shared memory a usual tile."""
    if isinstance(encoding, Shared):
        return SHARED_SHAPES.get(encoding.rank, (8,) * encoding.rank)
    whole = to_linear(encoding, (LARGEST,) * encoding.rank)
    sizes = [1] * encoding.rank
    for name in ("lane", "warp", "block"):
        for vector in dict(whole.bases).get(name, ()):
            sizes = [max(size, 1 << at.bit_length() if at else 1) for size, at in zip(sizes, vector, strict=True)]
    registers = dict(whole.bases).get("register", ())
    for vector in registers:  # what a thread holds side by side
        for axis, at in enumerate(vector):
            if at and at * 2 <= max(sizes[axis], LEAST):
                sizes[axis] = max(sizes[axis], at * 2)
    return tuple(sizes)
