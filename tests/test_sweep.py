"""Sweeps end, whatever their cases do: see `sweep.py`."""

import os
import signal
import time

import pytest

from tests.differential.devices import Refused
from tests.sweep import chosen, options, sweep

CASES = [("row", (size,)) for size in range(1, 21)]


def run_case(name: str, size: tuple[int, ...]) -> None:
    assert size != (3,), "three"
    if size == (4,):
        os.kill(os.getpid(), signal.SIGKILL)
    if size == (5,):
        time.sleep(60)
    if size == (6,):
        raise Refused("six")


def test_crashes_and_hangs_are_failures_like_others(capsys: pytest.CaptureFixture[str]) -> None:
    args = options("").parse_args(["--jobs", "2", "--limit", "1"])
    assert sweep(chosen(CASES, args), run_case, str, args) == 1
    text = capsys.readouterr().out
    assert "exit code -9" in text and "no result after 1 seconds" in text and "AssertionError: three" in text
    assert "20 cases of 20: 16 right, 3 wrong, 1 refused" in text
    assert set(text.splitlines()[-5:-1]) == {
        *(f"wrong: ('row', ({size},))" for size in (3, 4, 5)),
        "refused: ('row', (6,))",
    }


def test_a_sweep_ends_in_time(capsys: pytest.CaptureFixture[str]) -> None:
    args = options("").parse_args(["--seconds", "0"])
    assert sweep(chosen(CASES, args), run_case, str, args) == 0
    assert "0 cases of 20, the time is over" in capsys.readouterr().out


def test_parts_are_all_of_the_cases() -> None:
    parts = [chosen(CASES, options("").parse_args(["--part", f"{number}/3"])) for number in (1, 2, 3)]
    assert sorted(case for part in parts for case in part) == CASES
