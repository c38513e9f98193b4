"""The Python path of a warm launch: the files it runs through are few, and docs/architecture.md lists them."""

import os
import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any
from unittest import mock

import numpy as np

import tilework
import tilework.language as tl
from tests.python_programs import run_python

ROOT = Path(tilework.__file__).parent.parent
MOST_FILES = 13


@tilework.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


def files_of_a_warm_launch() -> list[str]:
    """The files of tilework whose code runs in the third launch of a kernel, in the order of their first use."""
    found: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            found.setdefault(frame.f_code.co_filename)

    warm_launches(2)
    sys.setprofile(note)
    warm_launches(1)
    sys.setprofile(None)
    package = os.path.join(ROOT, "tilework", "")
    return [file.removeprefix(package) for file in found if file.startswith(package)]


def warm_launches(times: int) -> None:
    """Launch a kernel that is compiled already."""
    x, y, out = (np.ones(64, np.float32) for _ in range(3))
    for _ in range(times):
        add[(1,)](x, y, out, 64, BLOCK=64)
    assert out.tolist() == [2.0] * 64


def variables_of_a_warm_launch() -> list[str]:
    """The environment variables that the third launch of a kernel reads."""
    warm_launches(2)
    read: list[str] = []

    def noted(self: Any, name: str) -> str:
        read.append(name)
        return usual(self, name)

    usual = os._Environ.__getitem__
    with mock.patch.object(os._Environ, "__getitem__", noted):  # `get` and `getenv` go through it
        warm_launches(1)
    return read


def listed_files() -> list[str]:
    text = (ROOT / "docs" / "architecture.md").read_text()
    section = text.partition("## A launch, file by file")[2].partition("\n## ")[0]
    return re.findall(r"^\d+\. `([\w/.]+)`", section, re.MULTILINE)


def in_python(function: str) -> list[str]:
    """Return the result of a function of this file in a process without the native launcher."""
    code = f"from tests.runtime.test_launch_path import {function}; print(*{function}())"
    settings = {"TILEWORK_NATIVE_LAUNCH": "0", "TILEWORK_DEVICE": "native", "PYTHONPATH": str(ROOT)}
    ran = run_python("-c", code, env={**os.environ, **settings})
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split()


def test_a_warm_launch_runs_through_few_files() -> None:
    files = in_python("files_of_a_warm_launch")
    assert len(files) <= MOST_FILES and sorted(files) == sorted(listed_files())


def test_a_warm_launch_reads_no_environment_variable() -> None:
    assert in_python("variables_of_a_warm_launch") == []
