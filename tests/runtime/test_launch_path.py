"""The Python path of a warm launch: the files it runs through are few, and docs/architecture.md lists them."""

import os
import re
import sys
from pathlib import Path
from types import FrameType

import numpy as np

import tilework
import tilework.language as tl
from tests.python_programs import run_python

ROOT = Path(tilework.__file__).parent.parent
MOST_FILES = 12


@tilework.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


def files_of_a_warm_launch() -> list[str]:
    """The files of tilework whose code runs in the third launch of a kernel, in the order of their first use."""
    x, y, out = (np.ones(64, np.float32) for _ in range(3))
    found: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            found.setdefault(frame.f_code.co_filename)

    for turn in range(3):
        sys.setprofile(note if turn == 2 else None)
        add[(1,)](x, y, out, 64, BLOCK=64)
    sys.setprofile(None)
    assert out.tolist() == [2.0] * 64
    package = os.path.join(ROOT, "tilework", "")
    return [file.removeprefix(package) for file in found if file.startswith(package)]


def listed_files() -> list[str]:
    text = (ROOT / "docs" / "architecture.md").read_text()
    section = text.partition("## A launch, file by file")[2].partition("\n## ")[0]
    return re.findall(r"^\d+\. `([\w/.]+)`", section, re.MULTILINE)


def test_a_warm_launch_runs_through_few_files() -> None:
    code = "from tests.runtime.test_launch_path import files_of_a_warm_launch; print(*files_of_a_warm_launch())"
    settings = {"TILEWORK_NATIVE_LAUNCH": "0", "TILEWORK_DEVICE": "native", "PYTHONPATH": str(ROOT)}
    ran = run_python("-c", code, env={**os.environ, **settings})
    assert ran.returncode == 0, ran.stderr
    files = ran.stdout.split()
    assert len(files) <= MOST_FILES and sorted(files) == sorted(listed_files())
