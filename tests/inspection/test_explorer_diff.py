"""The output of `tilework diff` for two compilations."""

import re
from pathlib import Path

import pytest

from tests.inspection.documents import compiled
from tests.inspection.kernels_to_explore import __file__ as FILE
from tilework.inspect.explorer.compare import compare, data_of
from tilework.inspect.explorer.document import write
from tilework.tools.cli import main


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The same kernel with 4 and with 8 warps."""
    folder = tmp_path_factory.mktemp("saved")
    files = [folder / "four.json", folder / "eight.html"]
    for file, warps in zip(files, (4, 8), strict=True):
        write(compiled("cuda:90", warps), file)
    return files


def test_the_first_pass_with_a_difference_is_named(saved: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", *map(str, saved)]) == 1
    reported = capsys.readouterr().out
    assert reported.startswith("a: scaled_sum, cuda:90, num_warps=4\nb: scaled_sum, cuda:90, num_warps=8\n")
    assert "TTIR       the same" in reported and "TTGIR      differs" in reported
    assert "differ first behind convert-triton-to-tritongpu{target=cuda:90 num-warps=4" in reported
    assert '+ module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8' in reported


def test_a_compilation_does_not_differ_from_itself(saved: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", str(saved[0]), str(saved[0])]) == 0
    reported = capsys.readouterr().out
    assert "differs" not in reported and "passes that both ran leave the same" in reported


def test_one_text_is_shown_whole(saved: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    main(["diff", *map(str, saved), "--show", "ptx"])
    reported = capsys.readouterr().out
    assert reported.startswith("--- a PTX\n+++ b PTX\n@@") and "+.reqntid 256" in reported.replace("\t", "")


def test_targets_have_different_stages() -> None:
    found = compare(compiled("cpu"), compiled("cuda:90"))
    assert ("TTCIR", 0) in found.only and ("PTX", 1) in found.only
    assert re.search("only b ran .*triton-remake-carried-descriptors", found.parted)
    assert "canonicalize" in [step.name for step in found.steps]
    assert data_of(found)["titles"] == ["scaled_sum, cpu", "scaled_sum, cuda:90"]


def test_mistakes_are_reported_in_a_line(saved: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    for argv, words in (
        ([str(saved[0]), "--kernel", "other"], "has no kernel 'other'; it has scaled_sum"),
        ([f"{FILE}:scaled_sum", "--b-options", "num_warps"], "'num_warps' is no option"),
        ([f"{FILE}:scaled_sum", "--signature", "*fp32", "--b-options", "warps=3"], "no entry for y_ptr"),
        (["none.json"], "none.json is no page"),
        ([*map(str, saved), "--show", "ptxx"], "did you mean 'ptx'?"),
    ):
        assert main(["diff", *argv]) == 2
        assert words in (reported := capsys.readouterr().err) and "Traceback" not in reported, reported
