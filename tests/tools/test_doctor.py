"""`tilework doctor`: a line for everything, kernels that really run, variables that are never read."""

import argparse
import json
import sys
from pathlib import Path

import pytest

from tilework.tools import doctor
from tilework.tools.cli import main


def test_it_looks_at_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    code = main(["doctor", "--json", "--quick"])
    found = json.loads(capsys.readouterr().out)
    states = {line["name"]: line["state"] for line in found["lines"]}
    wanted = "python xdsl llvmlite numpy cpu ptxas nvdisasm libdevice ld.lld cache torch".split()
    assert set(wanted) <= set(states) and {"cuda kernels", "hip kernels", "emulator"} <= set(states)
    assert states["llvmlite"] == states["cache"] == "ok"
    assert code == int("!!" in states.values()) and found["ok"] == (code == 0)


def test_misspelt_variables_and_bad_values_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWORK_NUM_THREDS", "4")
    monkeypatch.setenv("TRITON_OF_SOMEBODY_ELSE", "4")
    monkeypatch.setenv("TILEWORK_PTXAS_TIMEOUT", "soon")
    lines = {line.name: line for line in doctor.environment(argparse.Namespace())}
    assert lines["TILEWORK_NUM_THREDS"].state == doctor.BROKEN
    assert lines["TILEWORK_NUM_THREDS"].text.endswith("did you mean 'TILEWORK_NUM_THREADS'?")
    assert lines["TRITON_OF_SOMEBODY_ELSE"].state == doctor.ABSENT
    assert "expected int" in lines["TILEWORK_PTXAS_TIMEOUT"].text


@pytest.mark.parametrize(("device", "state"), [("native", "ok"), ("cudda", "!!"), ("emulator:sm_9", "!!")])
def test_the_device_that_is_requested_is_looked_at(device: str, state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWORK_DEVICE", device)
    assert doctor.requested_device().state == state


def test_a_cache_that_cannot_be_written_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "file"))
    (line,) = doctor.cache(argparse.Namespace())
    assert line.state == doctor.BROKEN and "set TRITON_CACHE_DIR" in line.text


def test_kernels_are_run(monkeypatch: pytest.MonkeyPatch) -> None:
    args = argparse.Namespace(quick=False)
    line = doctor.tried("cpu kernels", "native", args)
    assert line.state == doctor.OK and line.text.startswith("a kernel for cpu")
    monkeypatch.setattr(doctor, "PROGRAM", "raise ValueError('wrong')")
    assert doctor.tried("cpu kernels", "native", args).text == "a small kernel failed: ValueError: wrong"


def test_the_runtime_alone_needs_no_linker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "is_runtime_only", lambda: True)
    monkeypatch.setitem(sys.modules, "tilework.targets.amd.code_object", None)  # pyright: ignore[reportArgumentType]
    assert [line.state for line in doctor.amd(argparse.Namespace())] == [doctor.ABSENT]


def test_what_cannot_be_looked_at_is_broken() -> None:
    def broken_lines(args: argparse.Namespace) -> list[doctor.Line]:
        raise OSError("no  such\nthing")

    (line,) = doctor.guarded(broken_lines)(argparse.Namespace())
    assert str(line) == f"!! {'broken':<16} OSError: no such thing"
