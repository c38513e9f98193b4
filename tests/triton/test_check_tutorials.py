"""`tests.device.check_tutorials` on a folder of two scripts: one that runs with another device's name, one that
fails."""

from pathlib import Path

import pytest

from tests.device import check_tutorials

RUNS = """
import numpy as np
import triton
import triton.language as tl


def zeros(size, device="cuda"):
    assert device == "cpu", device
    return np.zeros(size, "f4")


@triton.jit
def ones(out, BLOCK: tl.constexpr):
    tl.store(out + tl.arange(0, BLOCK), 1.0)


out = zeros(8, device='cuda')
ones[(1,)](out, BLOCK=8)
assert out.sum() == 8 and (triton.runtime.driver.active.get_current_target().backend == "cuda") is False
"""
FAILS = 'DEVICE = "cuda:0"  # é\nraise SystemExit(f"on {DEVICE}")\n'


def test_scripts_run_with_the_name_of_the_cpu(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], warm_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(warm_cache))
    (tmp_path / "01-runs.py").write_text(RUNS)
    (tmp_path / "02-fails.py").write_text(FAILS)
    (tmp_path / "other.py").write_text("1 / 0")
    assert check_tutorials.main([str(tmp_path), "--device", "cpu", "--seconds", "100"]) == 1
    printed = capsys.readouterr().out
    assert "01-runs.py: 2 lines changed" in printed and "other" not in printed
    assert "   17: out = zeros(8, device='cuda')\n     > out = zeros(8, device=\"cpu\")\n" in printed
    rows = [line.split(maxsplit=3) for line in printed.splitlines()[-2:]]
    assert [(row[0], row[1], row[3:]) for row in rows] == [("01-runs", "0", []), ("02-fails", "1", ["on cpu"])]


def test_a_script_that_takes_too_long_is_ended() -> None:
    assert check_tutorials.run("03-waits", "while True: pass", "cpu", 0.5).code is None
