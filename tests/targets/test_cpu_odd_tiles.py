"""Ops on tiles of odd sizes, in a process of its own: an access behind an array would end it. See `odd_tiles.py`."""

import os
import subprocess
import sys

import pytest

ALL = os.environ.get("TILEWORK_ALL_TILE_SIZES") == "1"  # every op, 1 to 130 elements and 20 pairs: a quarter of an hour


@pytest.mark.parametrize("chosen", [[] if ALL else ["--draw", "12"]], ids=["all" if ALL else "drawn"])
def test_odd_tiles_are_right_and_stay_inside_of_their_arrays(chosen: list[str]) -> None:
    command = [sys.executable, "-m", "tests.targets.odd_tiles", *chosen]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout.replace("\r", "\n")[-2000:] + done.stderr[-2000:]
