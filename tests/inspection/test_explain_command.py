"""`tilework explain` as a new user meets it, and what TILEWORK_EXPLAIN records."""

import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest

import tilework
from tests.inspection.kernels import add
from tilework import knobs
from tilework.inspect.explain.compiled import why_compiled
from tilework.inspect.replay import Died, isolated
from tilework.process.events import LISTENERS
from tilework.runtime.recording import recorder as recording
from tilework.tools.cli import main

SCRIPT = """
import sys, triton
import numpy as np
tl = triton.language

@triton.jit
def scale(x, n, factor, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)

x = np.ones((64, 2), np.float32)[:, 0]
scale[(1,)](x, 64, 2.0, BLOCK=64)
scale[(1,)](x, 33, 2.0, BLOCK=64)
print("x is", x[:2], sys.argv[1:])
sys.exit(3)
"""


def test_a_program_for_triton_that_fails_at_its_end(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "scale.py"
    script.write_text(SCRIPT)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TILEWORK_NATIVE_LAUNCH", "0")  # which would be compiled for this cache
    requested = ["--json", "--triton", "--why", "compiled,slow,different", "--device", "native"]
    assert main(["explain", *requested, str(script), "--json", "more"]) == 3
    printed = capfd.readouterr()
    assert "x is [4. 4.] ['--json', 'more']" in printed.err, "the launches that are repeated change nothing"
    assert "the program ended with 3" in printed.err
    found = json.loads(printed.out)
    again = next(one for one in found["compiled"]["findings"] if one["facts"]["against"] == "process")
    assert "`n` = 33 is not a multiple of 16, and 64 was" in again["title"]
    assert (
        again["span"]["file"] == str(script)
        and again["span"]["line"] == SCRIPT[: SCRIPT.index("x, 33")].count("\n") + 1
    )
    assert found["slow"]["summary"] == "scale(x: *fp32:16, n: i32, factor: fp32, BLOCK=64) on cpu"
    notes = [one["title"] for one in found["slow"]["findings"] if "not contiguous" in one["title"]]
    assert len(notes) == 1 and "'x'" in notes[0] and "its strides are (2,) elements" in notes[0]
    assert found["different"]["summary"] == "2 launches on interpreter, native: no wrong values"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["nowhere.py"], "there is no file nowhere.py"),
        (["--why", "fast", __file__], "--why knows compiled, tuned, slow, different, not 'fast'"),
        (["--target", "vax", __file__], "there is no compiler for 'vax'"),
        (["--device", "vax", __file__], "--device is one of interpreter, evaluator, native"),
    ],
)
def test_what_makes_no_sense_is_reported_in_a_line(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("tilework explain: error: ") and text in printed.err and not printed.out


def test_a_folder_for_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(recording, "ACTIVE", [])
    monkeypatch.setenv("TILEWORK_EXPLAIN", str(tmp_path / "records"))
    before = list(LISTENERS)
    kernel = tilework.jit(add.fn)
    x = np.ones(64, np.float32)
    kernel[(1,)](x, x, x.copy(), 64, 1, BLOCK=64)
    for made in recording.ACTIVE[:]:
        recording.stop(made)
    assert before == LISTENERS
    rows = list(recording.read_records(tmp_path / "records"))
    assert [row["event"] for row in rows] == ["compiled", "loaded"]
    assert why_compiled(rows).summary.startswith("1 kernel")
    assert main(["explain", str(tmp_path / "records")]) == 0 and "why compiled: 1 kernel" in capsys.readouterr().out
    assert main(["explain", str(tmp_path)]) == 2 and "no records in" in capsys.readouterr().err
    (tmp_path / "records" / "1.jsonl").write_text('{"event": "cut sho')
    assert len(list(recording.read_records(tmp_path / "records"))) == 2


def test_recompilations_are_reported_while_a_program_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(recording, "ACTIVE", [])
    monkeypatch.setenv("TILEWORK_EXPLAIN", "1")
    kernel = tilework.jit(add.fn)
    x = np.ones(64, np.float32)
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path)
        for block in (16, 32):
            kernel[(1,)](x, x, x.copy(), 64, 1, BLOCK=block)
    reported = capsys.readouterr().err
    assert reported.count("add is compiled again") == 1 and "the constant `BLOCK` is 32, not 16" in reported
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path)
        kernel[(1,)](x, x, x, 64, 1, BLOCK=32)
    for made in recording.ACTIVE[:]:
        recording.stop(made)
    assert "its arguments overlap (may_alias is True)" in capsys.readouterr().err


def test_a_copy_of_the_process_may_die() -> None:
    assert isolated(lambda: {"a": (1, 2)}) == {"a": [1, 2]}
    assert isolated(lambda: os.kill(os.getpid(), signal.SIGKILL)) == Died("signal SIGKILL")
    assert isolated(lambda: signal.pause(), seconds=0.05) == Died("no answer in 0 s")
