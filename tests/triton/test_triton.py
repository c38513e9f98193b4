"""Triton reads what we print, and we read what Triton prints.

The fixtures are what Triton 3.6 printed for the examples (`python -m tests.triton.peer` records them again), so reading
is tested everywhere; the other tests run where Triton is installed.
"""

from pathlib import Path

import pytest

from tests.pipeline.compiled import first_difference, location_difference
from tests.pipeline.stages import check_stage
from tests.triton.peer import FIXTURES, KEYS, ask, op_counts, triton_python, without_machine_paths
from tilework.ir.parser import parse_module
from tilework.ir.printer import print_module
from tilework.ir.verify import verify
from tilework.tools.cli import main

RECORDED = sorted(FIXTURES.glob("*.ttir"))


@pytest.fixture(autouse=True)
def needs_triton(request: pytest.FixtureRequest) -> None:
    """Tests that take `key` ask Triton."""
    if "key" in request.fixturenames and triton_python() is None:
        pytest.skip("Triton is not installed here; TRITON_PYTHON may name an interpreter that has it")


def read_back(text: str, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`tilework opt` prints the same module: the same ops, and the same locations where they are printed."""
    module = parse_module(text)
    verify(module)
    check_stage(module, "ttir")
    path.write_text(text)
    assert main(["opt", str(path), "--verify-each"]) == 0
    plain = parse_module(capsys.readouterr().out)
    assert first_difference(module, plain) is None
    located = parse_module(print_module(module, debuginfo=True))
    assert first_difference(module, located) is None
    assert location_difference(module, located) is None


@pytest.mark.parametrize("fixture", RECORDED, ids=lambda path: path.stem)
def test_recorded_text_is_read(fixture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    read_back(fixture.read_text(), tmp_path / fixture.name, capsys)


@pytest.mark.parametrize("fixture", RECORDED, ids=lambda path: path.stem)
def test_recorded_text_is_printed_with_the_same_lines(fixture: Path) -> None:
    """Not only the same module: the same number of ops, aliases and locations, line by line."""
    text = fixture.read_text()
    assert len(print_module(parse_module(text), debuginfo=True).splitlines()) == len(text.splitlines())


def test_every_example_is_recorded() -> None:
    assert [path.stem for path in RECORDED] == sorted(key.replace(":", "_sm_") for key in KEYS)
    assert not any('loc("/' in path.read_text() for path in RECORDED)


@pytest.mark.parametrize("form", ("plain", "located"))
@pytest.mark.parametrize("key", KEYS)
def test_triton_compiles_our_text(key: str, form: str) -> None:
    assert f"{key}:{form}" not in ask().refused, ask().refused[f"{key}:{form}"]


@pytest.mark.parametrize("key", KEYS)
def test_triton_text_is_read(key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    read_back(without_machine_paths(ask().printed[key]), tmp_path / "kernel.ttir", capsys)


@pytest.mark.parametrize("key", KEYS)
def test_triton_still_prints_the_recorded_ops(key: str) -> None:
    recorded = (FIXTURES / f"{key.replace(':', '_sm_')}.ttir").read_text()
    assert op_counts(ask().printed[key]) == op_counts(recorded)
