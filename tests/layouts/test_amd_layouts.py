"""AMD's layouts: 738 of them as Triton 3.6 gave their bases (`amd_reference.json`), their text, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from tilework.ir.encodings import encoding_attr
from tilework.ir.parser import parse_module
from tilework.layouts.amd import AmdMfma, AmdWmma, RotatingShared
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
        return AmdWmma(row["version"], row["transposed"], warps, instr_shape=instr, tiles_per_warp=tiles)
    bits = row.get("bits", 32)
    return AmdMfma(row["version"], warps, instr, row["transposed"], tiles_per_warp=tiles, element_bit_width=bits)


def test_layouts_are_those_of_triton() -> None:
    for row in ROWS:
        bases = dict(to_linear(encoding_of(row), tuple(row["shape"])).bases)
        assert {name: [list(v) for v in bases[name]] for name in row["bases"]} == row["bases"], row


def test_rotating_rows() -> None:
    found = {order: to_linear(RotatingShared(2, 2, 2, order), (8, 16)).bases[0][1] for order in ((1, 0), (0, 1))}
    assert found[1, 0] == ((0, 1), (0, 2), (0, 4), (0, 8), (1, 0), (2, 2), (4, 2))
    assert found[0, 1] == ((1, 0), (2, 0), (4, 0), (0, 1), (2, 2), (2, 4), (0, 8))


MFMA = AmdMfma(3, (2, 2), (32, 32, 8), True)
TEXTS: dict[str, Encoding] = {
    "#ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true}>": MFMA,
    "#ttg.amd_mfma<{version = 4, warpsPerCTA = [2, 2], instrShape = [16, 16, 32], isTransposed = true, "
    "tilesPerWarp = [2, 2], "
    "elementBitWidth = 64}>": AmdMfma(4, (2, 2), (16, 16, 32), True, tiles_per_warp=(2, 2), element_bit_width=64),
    "#ttg.amd_wmma<{version = 2, isTranspose = true, warpsPerCTA = [2, 2]}>": AmdWmma(2, True, (2, 2)),
    (
        "#ttg.amd_wmma<{version = 3, isTranspose = true, warpsPerCTA = [2, 2], tilesPerWarp = [2, 1], "
        "instrShape = [16, 16, 32]}>"
    ): (AmdWmma(3, True, (2, 2), tiles_per_warp=(2, 1), instr_shape=(16, 16, 32))),
    "#ttg.amd_rotating_shared<{vec = 4, perPhase = 1, maxPhase = 16, order = [0, 1]}>": RotatingShared(
        4, 1, 16, (0, 1)
    ),
}


@pytest.mark.parametrize("text", TEXTS)
def test_text(text: str) -> None:
    assert str(encoding_attr(TEXTS[text])) == text
    assert parse_module(f"module attributes {{x.e = {text}}} {{}}").attributes["x.e"] is encoding_attr(TEXTS[text])


def test_operands_in_lds() -> None:
    """As Triton 3.6 chose for these."""
    rows = [(64, 32), (128, 64)]
    found = [dot_shared(DotOperand(0, MFMA, 4), shape, (1, 0), 16) for shape in rows]
    assert [(found.vec, found.per_phase, found.max_phase) for found in found] == [(4, 2, 8), (4, 1, 16)]
    wave = dot_shared(DotOperand(0, AmdWmma(2, True, (2, 2)), 8), (128, 32), (1, 0), 16)
    assert (wave.vec, wave.per_phase, wave.max_phase) == (8, 2, 4)
    assert dot_shared(DotOperand(1, MFMA, 4), (64, 128), (1, 0), 16).max_phase == 1  # K is not the fastest dimension


def test_refusals() -> None:
    with pytest.raises(LayoutError, match="invalid"):
        AmdMfma(3, (2, 2), (8, 8, 8), True)
    with pytest.raises(LayoutError, match="kWidth parameter is mandatory"):
        DotOperand(0, MFMA)
    with pytest.raises(LayoutError, match="kWidth parameter must be 8/16 for WMMA v1"):
        DotOperand(0, AmdWmma(1, True, (2, 2)), 4)
    with pytest.raises(LayoutError, match="rank"):
        AmdWmma(2, True, (4,))
