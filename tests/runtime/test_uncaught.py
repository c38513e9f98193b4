"""What a script prints when its kernel does not compile: the user's lines and the diagnostic, nothing of ours."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tilework
import tilework.language as tl

ROOT = Path(tilework.__file__).parent.parent
KERNEL = """
import threading
import numpy as np
import tilework
import tilework.language as tl

@tilework.jit
def inner(x):
    return x + tl.arange(0, 24)

@tilework.jit
def kernel(x, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, inner(i))

tuned = tilework.autotune([tilework.Config({"BLOCK": 16}), tilework.Config({"BLOCK": 32})], ["n"])(kernel)
"""
LAUNCHES = {
    "plain": "kernel[(1,)](np.zeros(16, 'f4'), 16, BLOCK=16)",
    "callable grid": "kernel[lambda meta: (1,)](np.zeros(16, 'f4'), 16, BLOCK=16)",
    "run": "kernel.run(np.zeros(16, 'f4'), 16, BLOCK=16, grid=(1,))",
    "warmup": "kernel.warmup(tilework.MockTensor(tl.float32), 16, BLOCK=16, grid=(1,))",
    "autotuned": "tuned[(1,)](np.zeros(16, 'f4'), 16)",
    "compile": "tilework.compile(tilework.ASTSource(kernel, {'x': '*fp32', 'n': 'i32'}, {'BLOCK': 16}))",
}


def stderr_of(tmp_path: Path, text: str, **environment: str) -> str:
    script = tmp_path / "train.py"
    script.write_text(KERNEL + text + "\n")
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "TRITON_CACHE_DIR": str(tmp_path / "cache"), **environment}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=variables, check=False)
    assert "Exception in thread" in done.stderr or done.returncode == 1
    return done.stderr


@pytest.mark.parametrize("how", LAUNCHES)
def test_no_line_of_ours_is_shown(tmp_path: Path, how: str) -> None:
    shown = stderr_of(tmp_path, LAUNCHES[how])
    lines = shown.splitlines()
    assert lines[0] == "Traceback (most recent call last):" and LAUNCHES[how] in shown
    assert str(ROOT / "tilework") not in shown
    assert "train.py:9:16: error: " in shown and "tl.arange(0, 24)" in shown
    assert "note: called from here" in shown


def test_in_a_thread(tmp_path: Path) -> None:
    call = LAUNCHES["plain"]
    shown = stderr_of(tmp_path, f"t = threading.Thread(target=lambda: {call}, name='worker')\nt.start()\nt.join()")
    assert shown.startswith("Exception in thread worker:\nTraceback") and str(ROOT / "tilework") not in shown


def test_everything_is_shown_when_asked_for(tmp_path: Path) -> None:
    shown = stderr_of(tmp_path, LAUNCHES["plain"], TRITON_FRONT_END_DEBUGGING="1")
    assert str(ROOT / "tilework" / "frontend") in shown


def test_other_errors_are_as_ever(tmp_path: Path) -> None:
    shown = stderr_of(tmp_path, "kernel[(1,)](np.zeros(16, 'f4'), 1.5j, BLOCK=16)")
    assert "TypeError" in shown and shown.count("Traceback") >= 1


@tilework.jit
def wrong(x):
    tl.store(x, undefined_name)  # noqa: F821


def test_notebooks_ask_the_exception() -> None:
    with pytest.raises(tilework.CompilationError) as caught:
        wrong[(1,)](np.zeros(1, "f4"))
    lines = caught.value._render_traceback_()  # pyright: ignore[reportAttributeAccessIssue]
    text = "\n".join(lines)
    assert "undefined_name" in text and "test_uncaught.py" in text and str(ROOT / "tilework" / "runtime") not in text
