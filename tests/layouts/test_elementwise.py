"""Every named layout over its whole domain, against a formula that knows nothing of bits.

The formulas: the modular arithmetic of a grid of threads for blocked layouts; the tables of the PTX ISA for fragments
of `mma.sync` and `wgmma`; the xor of the row for swizzled memory; the xor of address bits for TMA's swizzles.
"""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import product
from math import prod

import pytest

from tests.rows import row as table_row
from tilework.layouts.encodings import (
    Blocked,
    Distributed,
    DotOperand,
    Encoding,
    NvidiaMma,
    NvmmaShared,
    Slice,
    SwizzledShared,
)
from tilework.layouts.to_linear import to_linear

Shape = tuple[int, ...]
Fragment = Callable[[int, int], tuple[int, int]]
SHAPES = [(1, 1), (8, 8), (16, 16), (16, 64), (64, 16), (32, 128), (128, 32), (2, 256)]


@cache
def table(encoding: Encoding, shape: Shape) -> dict[tuple[int, ...], Shape]:
    """The coordinates of every location: (warp, lane, register), or (offset,)."""
    layout = to_linear(encoding, shape)
    names = ("offset",) if "offset" in layout.in_names else ("warp", "lane", "register")
    found = {(): 0}
    for name in names:
        images = layout.images(name)
        found = {(*position, i): a ^ b for position, a in found.items() for i, b in enumerate(images)}
    return {position: layout.vector(packed) for position, packed in found.items()}


def every_offset(encoding: Distributed, shape: Shape) -> list[tuple[int, int, int]]:
    layout = to_linear(encoding, shape)
    warps, lanes, registers = (range(layout.in_size(name)) for name in ("warp", "lane", "register"))
    return list(product(warps, lanes, registers))


def unravel(index: int, sizes: Sequence[int], order: Sequence[int]) -> list[int]:
    """The digits of a number that counts through `sizes`, `order[0]` fastest."""
    digits = [0] * len(sizes)
    for dim in order:
        index, digits[dim] = divmod(index, sizes[dim])
    return digits


# Blocked


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    "encoding",
    [
        Blocked((1, 4), (4, 8), (4, 1), (1, 0)),
        Blocked((2, 2), (8, 4), (1, 2), (1, 0)),
        Blocked((4, 1), (32, 1), (2, 2), (0, 1)),
        Blocked((1, 8), (1, 32), (8, 1), (1, 0)),
        Blocked((2, 1), (2, 16), (1, 4), (0, 1)),
    ],
)
def test_blocked(encoding: Blocked, shape: Shape) -> None:
    size, lanes, warps, order = (
        encoding.size_per_thread,
        encoding.threads_per_warp,
        encoding.warps_per_cta,
        encoding.order,
    )
    reps = [max(1, s // (a * b * c)) for s, a, b, c in zip(shape, size, lanes, warps, strict=True)]
    indices = table(encoding, shape)
    for warp, lane, register in every_offset(encoding, shape):
        rep, inner = divmod(register, prod(size))
        at, of_lane, of_warp, of_rep = (
            unravel(inner, size, order),
            unravel(lane, lanes, order),
            unravel(warp, warps, order),
            unravel(rep, reps, order),
        )
        wanted = tuple(
            (at[d] + size[d] * (of_lane[d] + lanes[d] * (of_warp[d] + warps[d] * of_rep[d]))) % shape[d]
            for d in range(len(shape))
        )
        assert indices[warp, lane, register] == wanted
    assert to_linear(encoding, shape).in_size("register") == prod(size) * prod(reps)


def test_blocked_of_three_dimensions() -> None:
    encoding, shape = Blocked((1, 2, 4), (2, 4, 4), (4, 1, 1), (2, 1, 0)), (16, 16, 32)
    indices = table(encoding, shape)
    for warp, lane, register in every_offset(encoding, shape):
        rep, inner = divmod(register, 8)
        rep2, rep = rep % 2, rep // 2
        rep1, rep0 = rep % 2, rep // 2
        wanted = (
            lane // 16 + 2 * (warp + 4 * rep0),
            inner // 4 + 2 * (lane // 4 % 4 + 4 * rep1),
            inner % 4 + 4 * (lane % 4 + 4 * rep2),
        )
        assert indices[warp, lane, register] == wanted


# Tensor cores: the tables of the PTX ISA, "Matrix fragments for mma.m16n8k*"


def accumulator(lane: int, i: int) -> tuple[int, int]:
    """c0, c1 are in the row of the group, c2, c3 eight below."""
    return lane // 4 + (8 if i >= 2 else 0), lane % 4 * 2 + (i & 1)


def a_k8_tf32(lane: int, i: int) -> tuple[int, int]:
    return lane // 4 + (0 if i in (0, 2) else 8), lane % 4 + (0 if i in (0, 1) else 4)


def a_k16_f16(lane: int, i: int) -> tuple[int, int]:
    row = lane // 4 + (0 if i in (0, 1, 4, 5) else 8)
    return row, lane % 4 * 2 + (i & 1) + (0 if i < 4 else 8)


def a_k32_s8(lane: int, i: int) -> tuple[int, int]:
    row = lane // 4 + (0 if i < 4 or 8 <= i < 12 else 8)
    return row, lane % 4 * 4 + (i & 3) + (0 if i < 8 else 16)


def b_k8_tf32(lane: int, i: int) -> tuple[int, int]:
    return lane % 4 + 4 * i, lane // 4


def b_k16_f16(lane: int, i: int) -> tuple[int, int]:
    return lane % 4 * 2 + (i & 1) + (0 if i < 2 else 8), lane // 4


def b_k32_s8(lane: int, i: int) -> tuple[int, int]:
    return lane % 4 * 4 + (i & 3) + (0 if i < 4 else 16), lane // 4


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("warps", [(1, 1), (2, 2), (4, 1), (1, 4)])
def test_mma_accumulator(warps: tuple[int, int], shape: Shape) -> None:
    encoding = NvidiaMma(2, 0, warps, (16, 8))
    across = max(1, shape[1] // (8 * warps[1]))
    indices = table(encoding, shape)
    for warp, lane, register in every_offset(encoding, shape):
        row, column = accumulator(lane, register % 4)
        down, right = divmod(register // 4, across)
        wanted = (
            (row + 16 * (warp // warps[1] + warps[0] * down)) % shape[0],
            (column + 8 * (warp % warps[1] + warps[1] * right)) % shape[1],
        )
        assert indices[warp, lane, register] == wanted


@pytest.mark.parametrize("shape", [(64, 64), (128, 32), (128, 256), (64, 8)])
@pytest.mark.parametrize(("warps", "n"), [((4, 1), 32), ((8, 1), 64), ((4, 2), 32), ((4, 1), 256)])
def test_wgmma_accumulator(warps: tuple[int, int], n: int, shape: Shape) -> None:
    encoding = NvidiaMma(3, 0, warps, (16, n, 16))
    across = max(1, shape[1] // (n * warps[1]))
    indices = table(encoding, shape)
    for warp, lane, register in every_offset(encoding, shape):
        rep, r = divmod(register, n // 2)
        down, right = divmod(rep, across)
        row = lane // 4 + 8 * (r >> 1 & 1) + 16 * (warp % warps[0] + warps[0] * down)
        column = (r & 1) + 2 * (lane % 4) + 8 * (r >> 2) + n * (warp // warps[0] + warps[1] * right)
        assert indices[warp, lane, register] == (row % shape[0], column % shape[1])


@pytest.mark.parametrize("shape", [(16, 16), (32, 32), (64, 128), (128, 64)])
@table_row("parent", [NvidiaMma(2, 0, (2, 2), (16, 8)), NvidiaMma(3, 0, (4, 1), (16, 64, 16))])
@pytest.mark.parametrize(("width", "fragment"), [(1, a_k8_tf32), (2, a_k16_f16), (4, a_k32_s8)])
def test_operand_a(width: int, fragment: Fragment, parent: NvidiaMma, shape: Shape) -> None:
    encoding = DotOperand(0, parent, width)
    warps = parent.warps_per_cta
    along_k = max(1, shape[1] // (8 * width))
    indices = table(encoding, shape)
    for warp, lane, register in every_offset(encoding, shape):
        rep, i = divmod(register, 4 * width)
        row, k = fragment(lane, i)
        down, right = divmod(rep, along_k)
        mine = warp % warps[0] if parent.is_hopper else warp // warps[1]
        wanted = ((row + 16 * (mine + warps[0] * down)) % shape[0], (k + 8 * width * right) % shape[1])
        assert indices[warp, lane, register] == wanted


@pytest.mark.parametrize("shape", [(16, 16), (32, 32), (64, 128), (128, 64)])
@pytest.mark.parametrize(("width", "fragment"), [(1, b_k8_tf32), (2, b_k16_f16), (4, b_k32_s8)])
def test_operand_b(width: int, fragment: Fragment, shape: Shape) -> None:
    encoding = DotOperand(1, NvidiaMma(2, 0, (2, 2), (16, 8)), width)
    along_k = max(1, shape[0] // (8 * width))
    indices = table(encoding, shape)
    for warp, lane, register in every_offset(encoding, shape):
        rep, i = divmod(register, 2 * width)
        k, column = fragment(lane, i)
        right, down = divmod(rep, along_k)
        wanted = ((k + 8 * width * down) % shape[0], (column + 8 * (warp % 2 + 2 * right)) % shape[1])
        assert indices[warp, lane, register] == wanted


@pytest.mark.parametrize("op_idx", [0, 1])
def test_operands_of_a_blocked_dot_hold_whole_rows_or_columns(op_idx: int) -> None:
    """A thread holds, for each element of its result, all of K."""
    parent = Blocked((2, 2), (8, 4), (2, 2), (1, 0))
    shape = (32, 64) if op_idx == 0 else (64, 32)
    held: dict[tuple[int, int], set[Shape]] = {}
    indices = table(DotOperand(op_idx, parent), shape)
    for warp, lane, register in every_offset(DotOperand(op_idx, parent), shape):
        held.setdefault((warp, lane), set()).add(indices[warp, lane, register])
    results: dict[tuple[int, int], set[int]] = {}
    indices = table(parent, (32, 32))
    for warp, lane, register in every_offset(parent, (32, 32)):
        where = indices[warp, lane, register]
        results.setdefault((warp, lane), set()).add(where[op_idx])
    for thread, mine in held.items():
        wanted = {(m, k) if op_idx == 0 else (k, m) for m in results[thread] for k in range(64)}
        assert mine == wanted


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("parent", [Blocked((1, 4), (4, 8), (4, 1), (1, 0)), NvidiaMma(2, 0, (2, 2), (16, 8))])
@pytest.mark.parametrize("size", [4, 16, 64])
def test_a_slice_holds_what_its_parent_has_an_element_of(parent: Distributed, dim: int, size: int) -> None:
    full = (64, size) if dim == 0 else (size, 64)
    wanted: dict[tuple[int, int], set[int]] = {}
    indices = table(parent, full)
    for warp, lane, register in every_offset(parent, full):
        wanted.setdefault((warp, lane), set()).add(indices[warp, lane, register][1 - dim])
    held: dict[tuple[int, int], list[int]] = {}
    indices = table(Slice(dim, parent), (size,))
    for warp, lane, register in every_offset(Slice(dim, parent), (size,)):
        held.setdefault((warp, lane), []).append(indices[warp, lane, register][0])
    assert {thread: set(elements) for thread, elements in held.items()} == wanted
    assert all(len(set(elements)) == len(elements) for elements in held.values())


# Shared memory


@pytest.mark.parametrize("shape", [(4, 8), (16, 16), (32, 64), (64, 32), (8, 128)])
@table_row("parameters", list(product((1, 2, 4, 8), (1, 2, 4), (1, 2, 4, 8))))
def test_swizzled_shared(parameters: tuple[int, int, int], shape: Shape) -> None:
    vec, per_phase, max_phase = parameters
    for order in ((1, 0), (0, 1)):
        stored = table(SwizzledShared(vec, per_phase, max_phase, order), shape)
        columns = shape[order[0]]
        seen = set()
        for offset in range(shape[0] * shape[1]):
            position = stored[(offset,)]
            row, column = position[order[1]], position[order[0]]
            phase = row // per_phase % max_phase * vec % columns
            assert offset == row * columns + (column ^ phase)
            seen.add(position)
        assert len(seen) == shape[0] * shape[1]


def test_the_swizzle_in_pieces_of_vec_elements() -> None:
    """For whole pieces: offset = row*C + ((c/vec) xor phase)*vec + c mod vec."""
    layout = to_linear(SwizzledShared(2, 1, 4, (1, 0)), (4, 8))
    row = [layout.apply(offset=8 + position)["dim1"] for position in range(8)]
    assert row == [2, 3, 0, 1, 6, 7, 4, 5]


@pytest.mark.parametrize("transposed", [False, True])
@table_row(("swizzle", "bits"), list(product((32, 64, 128), (8, 16, 32))))
def test_nvmma_shared(swizzle: int, bits: int, transposed: bool) -> None:
    """TMA: bits 4, 5, 6 of an address in a panel are xored with bits 7, 8, 9, as many as the swizzle has."""
    width = 8 * swizzle // bits
    rows, columns = 64, 4 * width
    shape = (columns, rows) if transposed else (rows, columns)
    offsets = {position: offset for (offset,), position in table(NvmmaShared(swizzle, transposed, bits), shape).items()}
    for row, column in product(range(rows), range(columns)):
        panel, inside = divmod(column, width)
        address = row * swizzle + inside * bits // 8
        address ^= (address >> 7 & (swizzle // 16 - 1)) << 4
        wanted = panel * rows * width + address * 8 // bits
        assert offsets[(column, row) if transposed else (row, column)] == wanted


@pytest.mark.parametrize("shape", [(16, 16), (256, 64), (64, 512), (512, 512)])
def test_nvmma_shared_without_swizzle(shape: Shape) -> None:
    """Boxes of at most 256 x 256, each row-major; boxes of a row side by side."""
    inverse = to_linear(NvmmaShared(0, False, 16), shape).invert()
    box = [min(size, 256) for size in shape]
    for row, column in product(range(0, shape[0], 5), range(0, shape[1], 3)):
        number = row // box[0] * (shape[1] // box[1]) + column // box[1]
        wanted = number * box[0] * box[1] + row % box[0] * box[1] + column % box[1]
        assert inverse.apply(dim0=row, dim1=column)["offset"] == wanted
