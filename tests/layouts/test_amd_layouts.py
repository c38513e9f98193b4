"""AMD's layouts: 738 of them as Triton 3.6 gave their bases (`amd_reference.json`), their text, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilework.ir.encodings import encoding_attr
from tilework.ir.parser import IRSyntaxError, parse_module
from tilework.layouts.amd import AmdMfma, AmdWmma, RotatingShared, TileGrid, tile_grid
from tilework.layouts.construct import dot_shared
from tilework.layouts.encodings import DotOperand, Encoding
from tilework.layouts.linear import LayoutError
from tilework.layouts.to_linear import to_linear

ROWS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "amd_reference.json").read_text())


def encoding_of(row: dict[str, Any]) -> Any:
    if row["kind"] == "dot_op":
        return DotOperand(row["op"], encoding_of(row["parent"]), row["k_width"])
    warps, instr, tiles = tuple(row["warps"]), tuple(row["instr"]), tuple(row.get("tiles", ()))
    if row["kind"] == "amd_wmma":
        return AmdWmma(row["version"], row["transposed"], tile_grid(warps, tiles), instr_shape=instr)
    bits = row.get("bits", 32)
    return AmdMfma(row["version"], warps, instr, row["transposed"], tiles_per_warp=tiles, element_bit_width=bits)


def test_layouts_are_those_of_triton() -> None:
    for row in ROWS:
        bases = dict(to_linear(encoding_of(row), tuple(row["shape"])).bases)
        assert {name: [list(v) for v in bases[name]] for name in row["bases"]} == row["bases"], row


WMMA_ROWS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "amd_wmma_reference.json").read_text())


def test_wmma_layouts_by_bases_are_those_of_triton() -> None:
    """As Triton 3.7 gives them, for all versions, instructions and widths. Of version 1 Triton puts the rows (columns)
    of tiles of a warp before the last half of K: ours are behind all of it, as those of the other versions are.
    """
    for row in WMMA_ROWS:
        bases = [tuple(map(tuple, row[name])) for name in ("register", "warp")]
        grid, instr, shape = TileGrid(*bases), tuple(row["instr"]), tuple(row["shape"])
        layout: Any = AmdWmma(row["version"], row["transposed"], grid, instr_shape=instr, own_rank=len(shape))
        layout = DotOperand(row["op"], layout, row["k_width"]) if row["kind"] == "dot_op" else layout
        found = dict(to_linear(layout, shape).bases)
        ours, theirs = {name: [list(v) for v in found[name]] for name in row["bases"]}, row["bases"]
        if row["version"] == 1 and row["kind"] == "dot_op" and grid.register:
            ours["register"].sort()
            theirs["register"].sort()
        assert ours == theirs, row


POWERS = st.sampled_from([1, 2, 4])
PAIRS, BITS = st.tuples(POWERS, POWERS), st.integers(4, 7)


@given(st.sampled_from([1, 2, 3]), st.booleans(), PAIRS, PAIRS, BITS, BITS)
def test_grids_of_older_text_mean_the_same(
    version: int, transposed: bool, warps: tuple[int, int], tiles: tuple[int, int], rows: int, columns: int
) -> None:
    """`warpsPerCTA` and `tilesPerWarp`, as Triton 3.6 laid them out; where a warp has several rows of tiles and columns
    repeat, registers are in another order since 3.7.
    """
    shape = (1 << rows, 1 << columns)
    text = f"version = {version}, isTranspose = {str(transposed).lower()}, warpsPerCTA = {list(warps)}"
    text += f", tilesPerWarp = {list(tiles)}" if tiles != (1, 1) else ""
    read: Any = parse_module(f"module attributes {{x.e = #ttg.amd_wmma<{{{text}}}>}} {{}}").attributes["x.e"]
    found = {name: list(bases) for name, bases in to_linear(read.data, shape).bases}
    size, warp_bases = [16, 16], []
    registers = list(to_linear(AmdWmma(version, transposed), (16, 16)).bases[0][1])

    def grow(bases: list[Any], dim: int, count: int) -> None:
        while count > 1:
            bases.append(tuple(size[dim] % shape[dim] if other == dim else 0 for other in (0, 1)))
            size[dim], count = size[dim] * 2, count // 2

    for dim in (1, 0):
        grow(registers, dim, tiles[dim])
        grow(warp_bases, dim, warps[dim])
        grow(registers, dim, shape[dim] // size[dim])
    wanted = {"register": registers, "warp": warp_bases}
    if tiles[0] > 1:
        assert sorted(found["register"]) == sorted(wanted["register"]) and found["warp"] == wanted["warp"]
    else:
        assert found["register"] == wanted["register"] and found["warp"] == wanted["warp"]


def test_rotating_rows() -> None:
    found = {order: to_linear(RotatingShared(2, 2, 2, order), (8, 16)).bases[0][1] for order in ((1, 0), (0, 1))}
    assert found[1, 0] == ((0, 1), (0, 2), (0, 4), (0, 8), (1, 0), (2, 2), (4, 2))
    assert found[0, 1] == ((1, 0), (2, 0), (4, 0), (0, 1), (2, 2), (2, 4), (0, 8))


WMMA = AmdWmma(2, True, tile_grid((2, 2)))
MFMA = AmdMfma(3, (2, 2), (32, 32, 8), True)
TEXTS: dict[str, Encoding] = {
    "#ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true}>": MFMA,
    "#ttg.amd_mfma<{version = 4, warpsPerCTA = [2, 2], instrShape = [16, 16, 32], isTransposed = true, "
    "tilesPerWarp = [2, 2], "
    "elementBitWidth = 64}>": AmdMfma(4, (2, 2), (16, 16, 32), True, tiles_per_warp=(2, 2), element_bit_width=64),
    "#ttg.amd_wmma<{version = 2, isTranspose = true, ctaLayout = {warp = [[0, 1], [1, 0]]}}>": WMMA,
    (
        "#ttg.amd_wmma<{version = 3, isTranspose = false, ctaLayout = {register = [[1, 0]], warp = [[0, 1], [2, 0]]}, "
        "CGALayout = [[0, 0]], instrShape = [16, 16, 32]}>"
    ): AmdWmma(3, False, tile_grid((2, 2), (2, 1)), instr_shape=(16, 16, 32), cga=((0, 0),)),
    "#ttg.amd_wmma<{version = 1, isTranspose = true, ctaLayout = {}}>": AmdWmma(1, True),
    "#ttg.amd_wmma<{version = 1, isTranspose = true, ctaLayout = {}, rank = 3}>": AmdWmma(1, True, own_rank=3),
    "#ttg.amd_wmma<{version = 2, isTranspose = true, ctaLayout = {warp = [[0, 0, 1]]}}>": AmdWmma(
        2, True, TileGrid((), ((0, 0, 1),))
    ),
    "#ttg.amd_rotating_shared<{vec = 4, perPhase = 1, maxPhase = 16, order = [0, 1]}>": RotatingShared(
        4, 1, 16, (0, 1)
    ),
}


@pytest.mark.parametrize("text", TEXTS)
def test_text(text: str) -> None:
    assert str(encoding_attr(TEXTS[text])) == text
    assert parse_module(f"module attributes {{x.e = {text}}} {{}}").attributes["x.e"] is encoding_attr(TEXTS[text])


@pytest.mark.parametrize(("grid", "message"), [
    ("{foo = [[0, 1], [1, 0]]}", "ctaLayout must be"), ("5", "ctaLayout must be"), ("[[0, 1]]", "ctaLayout must be"),
    ("{warp = [0, 1]}", "warp of ctaLayout must be a list of lists of integers"),
    ("{warp = 1}", "warp of ctaLayout must be a list of lists of integers"),
    ("{register = [[true, 0]]}", "register of ctaLayout must be a list of lists of integers"),
    ("{warp = {warp = [[0, 1]]}}", "warp of ctaLayout must be a list of lists of integers"),
    ("{warp = [[0, 1]], warp = [[1, 0]]}", "given twice"),
    ("{warp = [[1, 1], [1, 0]]}", "must move in one dimension at most"),
])  # fmt: skip
def test_refused_grids(grid: str, message: str) -> None:
    text = f"#ttg.amd_wmma<{{version = 2, isTranspose = true, ctaLayout = {grid}}}>"
    with pytest.raises(IRSyntaxError, match=message):
        parse_module(f"module attributes {{x.e = {text}}} {{}}")


def test_operands_in_lds() -> None:
    """As Triton 3.6 chose for these."""
    rows = [(64, 32), (128, 64)]
    found = [dot_shared(DotOperand(0, MFMA, 4), shape, (1, 0), 16) for shape in rows]
    assert [(found.vec, found.per_phase, found.max_phase) for found in found] == [(4, 2, 8), (4, 1, 16)]
    wave = dot_shared(DotOperand(0, WMMA, 8), (128, 32), (1, 0), 16)
    assert (wave.vec, wave.per_phase, wave.max_phase) == (8, 2, 4)
    assert dot_shared(DotOperand(1, MFMA, 4), (64, 128), (1, 0), 16).max_phase == 1  # K is not the fastest dimension


def test_refusals() -> None:
    with pytest.raises(LayoutError, match="one dimension at most"):
        AmdWmma(2, True, TileGrid(register=((1, 1),)))
    with pytest.raises(LayoutError, match="invalid"):
        AmdMfma(3, (2, 2), (8, 8, 8), True)
    with pytest.raises(LayoutError, match="kWidth parameter is mandatory"):
        DotOperand(0, MFMA)
    with pytest.raises(LayoutError, match="kWidth parameter must be 8/16 for WMMA v1"):
        DotOperand(0, AmdWmma(1, True, tile_grid((2, 2))), 4)
    with pytest.raises(LayoutError, match=r"the basis \[4\] of ctaLayout must be 2 powers of two"):
        AmdWmma(2, True, TileGrid((), ((4,),)))
    with pytest.raises(LayoutError, match=r"the basis \[0, 3\] of ctaLayout must be 2 powers of two or zeros"):
        AmdWmma(2, True, TileGrid((), ((0, 3),)))
    with pytest.raises(LayoutError, match="kWidth parameter is mandatory for WMMA v3"):
        DotOperand(0, AmdWmma(3, True, tile_grid((2, 2)), instr_shape=(16, 16, 32)))
