"""Layouts as text: which thread owns each element, or which element each thread holds.

The tensor view has one entry for each element, `T<thread>:<register>`; an element that several threads hold has all of
them, `T0:0|T4:0`.

>>> layout = LinearLayout({"register": [(0, 1)], "lane": [(0, 2), (1, 0)], "warp": [(2, 0)], "block": []},
...                       ("dim0", "dim1"))
>>> print(tensor_view(layout), end="")
[[T0:0, T0:1, T1:0, T1:1]
[ T2:0, T2:1, T3:0, T3:1]
[ T4:0, T4:1, T5:0, T5:1]
[ T6:0, T6:1, T7:0, T7:1]]

The hardware view has one line for each register of a warp, with the coordinates that every lane has there.

>>> print(hardware_view(layout), end="")
Warp0:
(0,0), (0,2), (1,0), (1,2)
(0,1), (0,3), (1,1), (1,3)
Warp1:
(2,0), (2,2), (3,0), (3,2)
(2,1), (2,3), (3,1), (3,3)

For a layout of shared memory the tensor view shows the memory: at each place in row-major order, the coordinates of the
element that lies there.

Tiles whose sizes are no powers of two are laid out with padding, which nobody sees: dashes, and coordinates in square brackets.

>>> print(tensor_view(layout, (3, 3)), end="")
[[T0:0, T0:1, T1:0, ----]
[ T2:0, T2:1, T3:0, ----]
[ T4:0, T4:1, T5:0, ----]
[ ----, ----, ----, ----]]
"""

from collections.abc import Iterator, Sequence
from itertools import product

from tilework.layouts.linear import LinearLayout

Owner = tuple[int, int, int, int]
"""Block, warp, lane, register."""


def is_shared(layout: LinearLayout) -> bool:
    """Whether the layout is one of shared memory."""
    return "offset" in layout.by_in


def owners(layout: LinearLayout) -> dict[tuple[int, ...], list[Owner]]:
    """Who holds each element, in the order block, warp, lane, register."""
    found: dict[tuple[int, ...], list[Owner]] = {}
    blocks, warps, lanes, registers = (layout.images(name) for name in ("block", "warp", "lane", "register"))
    for (block, a), (warp, b), (lane, c), (register, d) in product(
        enumerate(blocks), enumerate(warps), enumerate(lanes), enumerate(registers)
    ):
        found.setdefault(layout.vector(a ^ b ^ c ^ d), []).append((block, warp, lane, register))
    return found


def is_padding(index: Sequence[int], seen: Sequence[int] | None) -> bool:
    """Whether an element lies outside of the sizes that the user has `seen`; None: there is no padding."""
    return seen is not None and any(place >= size for place, size in zip(index, seen, strict=True))


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
    """Dashes in place of what nobody sees."""
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
    for place in layout.images():
        numbers = (
            str(value).rjust(digits(size)) for value, (_, size) in zip(layout.vector(place), layout.outs, strict=True)
        )
        yield hidden(f"({':'.join(numbers)})", is_padding(layout.vector(place), seen))


def bracketed(shape: Sequence[int], entries: Iterator[str], separator: str) -> str:
    """Entries in row-major order, one line for each run along the last dimension.

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
    """How many flags are true before the first that is not."""
    count = 0
    for flag in flags:
        if not flag:
            break
        count += 1
    return count


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


def coordinates(layout: LinearLayout, place: int, seen: Sequence[int] | None = None) -> str:
    """`(1,2)`; of padding `[1,2]`."""
    index = layout.vector(place)
    numbers = ",".join(map(str, index))
    return f"[{numbers}]" if is_padding(index, seen) else f"({numbers})"


def offsets_view(layout: LinearLayout, seen: Sequence[int] | None = None) -> str:
    """The element at every offset, block by block."""
    lines = []
    for block, a in enumerate(layout.images("block")):
        lines.append(f"Block: {block}:")
        for offset, b in enumerate(layout.images("offset")):
            lines.append(f"Offset: {offset} -> {coordinates(layout, a ^ b, seen)}")
    return "\n".join(lines) + "\n"
