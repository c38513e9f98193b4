"""Counts of machine code and their comparison (`benchmarks/static_kernels.py`)."""

from dataclasses import replace

import pytest

from benchmarks.corpus import Launch, Parameter, Storage, Tensor
from benchmarks.sass_counts import Listing
from benchmarks.static_kernels import compared, compilations, counts_of

CODE = """LDC R1, c[0x0][0x28]
@!P0 LDG.E.128 R4, desc[UR4][R2.64]
LDG.E.U16.CONSTANT R5, desc[UR4][R2.64+0x2]
LDGSTS.E.BYPASS.128 [R7], desc[UR4][R8.64]
SHFL.BFLY PT, R7, R4, 0x10, 0x1f
MUFU.EX2 R7, R7
@P1 BRA `(.L_x_0)
STG.E.64 desc[UR4][R2.64], R4
STL [R1], R4
EXIT
BRA `(.L_x_0)"""


def test_counts_of_a_listing() -> None:
    """The branch behind the end is no loop."""
    found = counts_of(Listing(CODE.splitlines(), {".L_x_0": 1}, 40), shared=1024, threads=256, seconds=0.5)
    assert (found.instructions, found.registers, found.spills, found.loops) == (11, 40, 1, 1)
    assert (found.loads, found.load_bytes, found.stores, found.store_bytes) == (3, 18, 1, 8)
    assert (found.mufu, found.shuffles, found.barriers, found.tensor) == (1, 1, 0, 0)
    assert found.occupancy == 6 and found.widths == {"LDG.128": 1, "LDG.U16": 1, "STG.64": 1}


def test_outliers_are_printed_by_group(capsys: pytest.CaptureFixture[str]) -> None:
    before = counts_of(Listing(CODE.splitlines(), {".L_x_0": 1}, 32), shared=0, threads=256, seconds=1.0)
    after = replace(before, instructions=20, spills=3, loops=0)
    compared({"lib a": after, "lib b": before}, {"lib a": before, "lib b": before}, "before")
    text = capsys.readouterr().out
    assert "2 compilations, ours beside before" in text and "more loops: 0" in text
    assert "over 1.25x the instructions: 1\n  lib a" in text and "instructions 20/11, spills 3/1" in text


def test_launches_with_one_compilation_count_once() -> None:
    def launch(n: int, block: int) -> Launch:
        parameters = [Parameter("x"), Parameter("n"), Parameter("BLOCK", is_constexpr=True)]
        arguments = {"x": Tensor(0, "fp32", [64], [1]), "n": n, "BLOCK": block}
        return Launch("lib", "add", "add_0", "add", parameters, arguments, [Storage("fp32", 64, ["range"])], [1])

    launches = [launch(32, 64), launch(64, 64), launch(33, 64), launch(32, 128)]
    assert compilations(launches) == {"lib add": 0, "lib add #2": 2, "lib add #3": 3}
