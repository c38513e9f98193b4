"""`tilework warm`: a cache filled from a recording is the one that the program would have filled."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runtime import served_program as program
from tests.runtime.bundles import stop_recording
from tilework import knobs, metrics
from tilework.tools.cli import main


def forget() -> None:
    for kernel in (program.add, program.applied, program.fill.fn):
        kernel.device_caches.clear()
        kernel.__dict__.pop("_bind_grid", None)


@pytest.fixture
def recorded(tmp_path: Path) -> Iterator[Path]:
    """Return the record of a run of the program, without its cache."""
    with knobs.runtime.scope(), knobs.cache.scope():
        knobs.cache.dir = str(tmp_path / "first")
        forget()
        with knobs.runtime.scope():
            knobs.runtime.record = str(tmp_path / "app.jsonl")
            program.run_add(1024)
            program.run_applied()
        stop_recording()
        knobs.cache.dir = str(tmp_path / "second")
        forget()
        yield tmp_path / "app.jsonl"
        forget()


def test_the_program_compiles_nothing(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["warm", str(recorded), "-j", "2"]) == 0
    assert "2 specialisations compiled for cpu, 0 already there" in capsys.readouterr().out
    knobs.runtime.no_jit = True
    metrics.reset()
    program.run_add(1024)
    program.run_applied()
    assert metrics.total("cache_hits", cache="disk") == 2 and metrics.total("compiles") == 0
    assert main(["warm", str(recorded), "-j", "2"]) == 0
    assert "0 specialisations compiled for cpu, 2 already there" in capsys.readouterr().out


def test_some_kernels_into_another_folder(recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["warm", str(recorded), "--kernel", "add", "--dir", str(tmp_path / "third"), "-j", "1"]) == 0
    assert list((tmp_path / "third").glob("*/add.json")) and not list((tmp_path / "third").glob("*/applied.json"))
    assert main(["warm", str(recorded), "--kernel", "subtract"]) == 1
    assert "there is no kernel subtract in it" in capsys.readouterr().err


def test_a_gpu_that_is_not_here(recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["warm", str(recorded), "--kernel", "add", "--target", "hip:gfx942", "-j", "1"]) == 0
    assert "1 specialisation compiled for hip:gfx942" in capsys.readouterr().out
    assert list((tmp_path / "second").glob("*/add.hsaco"))
    assert main(["warm", str(recorded), "--target", "cpu:x86-64-v3"]) == 1
    assert "launches on a CPU use code for that very one" in capsys.readouterr().err


def test_what_fails_is_named_and_the_rest_is_compiled(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add = next(line for line in map(json.loads, recorded.read_text().splitlines()) if line["kernel"].endswith(":add"))
    gone = {**add, "kernel": "tests.runtime.served_program:gone"}
    recorded.write_text("".join(json.dumps(line) + "\n" for line in (gone, add)))
    assert main(["warm", str(recorded), "-j", "1"]) == 1
    printed = capsys.readouterr()
    assert "1 specialisation compiled for cpu, 0 already there, 1 failed" in printed.out
    assert "gone(x: *fp32:16" in printed.err and "does not define gone" in printed.err
    recorded.write_text("{}")
    assert main(["warm", str(recorded)]) == 1 and "no record of TILEWORK_RECORD" in capsys.readouterr().err


def test_what_cannot_be_kept_is_a_failure(recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (file := tmp_path / "file").write_text("")
    assert main(["warm", str(recorded), "-j", "1", "--dir", str(file / "cache")]) == 1
    printed = capsys.readouterr()
    assert f"it was compiled, and could not be written to the cache {file / 'cache'}" in printed.err
    assert "0 specialisations compiled for cpu, 0 already there, 2 failed" in printed.out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"record": []}, "this is no record of TILEWORK_RECORD"),
        ({"kernel": 3}, "kernel is 3"),
        ({"constants": [1]}, "constants is [1]"),
    ],
)
def test_a_damaged_record(
    change: dict[str, object], message: str, recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [json.loads(line) for line in recorded.read_text().splitlines()]
    recorded.write_text(json.dumps({**lines[0], **change}) + "\n" + json.dumps(lines[1]) + "\n")
    assert main(["warm", str(recorded)]) == 1
    assert f"{recorded}:1: {message}" in capsys.readouterr().err
