"""Strategies: linear layouts, and encodings with a shape that fits them."""

from hypothesis import strategies as st

from tilework.layouts.encodings import (
    Bases,
    Blocked,
    Distributed,
    DotOperand,
    NvidiaMma,
    NvmmaShared,
    Shared,
    Slice,
    SwizzledShared,
)
from tilework.layouts.linear import LinearLayout

Shape = tuple[int, ...]


@st.composite
def linear_layouts(
    draw: st.DrawFn, ins: tuple[str, ...] = ("register", "lane"), outs: tuple[str, ...] = ("dim0", "dim1")
) -> LinearLayout:
    """Any linear layout: neither surjective nor injective in general."""
    sizes = {out: 1 << draw(st.integers(0, 3)) for out in outs}
    vector = st.tuples(*(st.integers(0, size - 1) for size in sizes.values()))
    return LinearLayout({name: draw(st.lists(vector, max_size=4)) for name in ins}, sizes)


@st.composite
def invertible_layouts(draw: st.DrawFn) -> LinearLayout:
    """A layout with one location for each coordinate: unit vectors shuffled, then mixed by adding some to others."""
    bits = draw(st.lists(st.integers(0, 3), min_size=2, max_size=2))
    total = sum(bits)
    columns = [1 << bit for bit in draw(st.permutations(range(total)))]
    for _ in range(draw(st.integers(0, 6)) if total > 1 else 0):
        to, what = draw(st.permutations(range(total)))[:2]
        columns[to] ^= columns[what]
    cut = draw(st.integers(0, total))
    outs = tuple((f"dim{dim}", 1 << count) for dim, count in enumerate(bits))
    return LinearLayout.packed((("register", tuple(columns[:cut])), ("lane", tuple(columns[cut:]))), outs)


@st.composite
def surjective_layouts(draw: st.DrawFn, outs: tuple[tuple[str, int], ...], ins: tuple[str, ...]) -> LinearLayout:
    """A layout that reaches every coordinate: all unit vectors and some others, in any order, in any of the ins."""
    total = sum(size.bit_length() - 1 for _, size in outs)
    more = draw(st.lists(st.integers(0, (1 << total) - 1), max_size=3))
    columns: dict[str, list[int]] = {name: [] for name in ins}
    for column in draw(st.permutations([*(1 << bit for bit in range(total)), *more])):
        columns[draw(st.sampled_from(ins))].append(column)
    return LinearLayout.packed(tuple((name, tuple(found)) for name, found in columns.items()), outs)


@st.composite
def indices(draw: st.DrawFn, layout: LinearLayout) -> dict[str, int]:
    """A location of a layout."""
    return {name: draw(st.integers(0, layout.in_size(name) - 1)) for name in layout.in_names}


def powers(low: int, high: int) -> st.SearchStrategy[int]:
    return st.integers(low, high).map(lambda bits: 1 << bits)


@st.composite
def grids(draw: st.DrawFn, bits: int, rank: int) -> Shape:
    """2^bits locations over the dimensions."""
    counts = [0] * rank
    for _ in range(bits):
        counts[draw(st.integers(0, rank - 1))] += 1
    return tuple(1 << count for count in counts)


@st.composite
def shapes(draw: st.DrawFn, rank: int, low: int = 0, high: int = 6) -> Shape:
    return tuple(draw(powers(low, high if rank < 3 else min(high, 4))) for _ in range(rank))


@st.composite
def cgas(draw: st.DrawFn, rank: int) -> Bases:
    """The distribution of a tensor over up to four blocks."""
    bases, sizes = [], [1] * rank
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        dim = draw(st.one_of(st.none(), st.integers(0, rank - 1)))
        bases.append(tuple(sizes[dim] if d == dim and dim is not None else 0 for d in range(rank)))
        if dim is not None:
            sizes[dim] *= 2
    return tuple(bases)


@st.composite
def blockeds(draw: st.DrawFn, rank: int, warps: int | None = None, cga: bool = True) -> Blocked:
    count = draw(st.integers(0, 3)) if warps is None else warps
    return Blocked(
        tuple(draw(powers(0, 2)) for _ in range(rank)),
        draw(grids(5, rank)),
        draw(grids(count, rank)),
        tuple(draw(st.permutations(range(rank)))),
        draw(cgas(rank)) if cga else (),
    )


@st.composite
def mmas(draw: st.DrawFn, rank: int, warps: int | None = None, cga: bool = True) -> NvidiaMma:
    count = draw(st.integers(0, 3)) if warps is None else warps
    blocks = draw(cgas(rank)) if cga else ()
    if rank == 2 and count >= 2 and draw(st.booleans()):
        return NvidiaMma(3, 0, (4, 1 << (count - 2)), (16, draw(powers(3, 8)), 16), cga=blocks)
    return NvidiaMma(2, 0, draw(grids(count, rank)), (16, 8) if rank == 2 else (1, 16, 8), cga=blocks)


@st.composite
def distributed(draw: st.DrawFn, rank: int, warps: int | None = None, cga: bool = True) -> Distributed:
    """Any named distributed encoding of a rank."""
    kind = draw(st.sampled_from(["blocked", "mma", "dot", "slice"]))
    if kind == "slice" and rank < 3:
        return Slice(draw(st.integers(0, rank)), draw(distributed(rank + 1, warps, cga)))
    if kind == "blocked" or rank not in (2, 3):
        return draw(blockeds(rank, warps, cga))
    parent = draw(mmas(rank, warps, cga))
    if kind == "mma":
        return parent
    if draw(st.booleans()):
        return DotOperand(draw(st.integers(0, 1)), draw(blockeds(rank, warps, cga)))
    return DotOperand(0 if parent.is_hopper else draw(st.integers(0, 1)), parent, draw(powers(0, 3)))


@st.composite
def shared(draw: st.DrawFn, rank: int) -> Shared:
    """A named encoding of shared memory."""
    if draw(st.booleans()):
        order = tuple(draw(st.permutations(range(rank))))
        return SwizzledShared(draw(powers(0, 3)), draw(powers(0, 3)), draw(powers(0, 3)), order, draw(cgas(rank)))
    swizzle = draw(st.sampled_from([0, 32, 64, 128])) if rank > 1 else 0
    return NvmmaShared(swizzle, rank == 2 and draw(st.booleans()), draw(st.sampled_from([8, 16, 32])), False, rank)
