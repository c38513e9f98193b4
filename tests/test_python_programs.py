"""What tests start through `run_python` is what ``python`` would have run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.python_programs import run_python

ASK = "import json, sys\nprint(json.dumps([sys.argv, sys.path[0], __name__, globals().get('__file__'), sys.stdin.read()]))\n"
PROGRAMS = {
    "a script": (ASK, ["program.py", "a", "-b"]),
    "text": (ASK, ["-c", ASK, "a"]),
    "a module": (ASK, ["-m", "program", "a"]),
    "an exit code": ("raise SystemExit(3)", ["program.py"]),
    "a word at the end": ("raise SystemExit('enough')", ["program.py"]),
    "an error": ("def f():\n    1 / 0\nf()", ["program.py"]),
    "an error of a module": ("1 / 0", ["-m", "program"]),
    "no module": ("", ["-m", "absent"]),
    "what is done at the end": ("import atexit\natexit.register(print, 'end')\nprint('begun')", ["program.py"]),
    "a thread that lasts": (
        "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.01), print('late'))).start()",
        ["program.py"],
    ),
    "a signal": ("import os, signal\nos.kill(os.getpid(), signal.SIGTERM)", ["program.py"]),
    "what the path begins with": ("import neighbour, sitecustomize\nprint(neighbour.__file__)", ["program.py"]),
}


@pytest.mark.parametrize("which", PROGRAMS)
def test_as_python_runs_it(tmp_path: Path, which: str) -> None:
    text, arguments = PROGRAMS[which]
    (tmp_path / "program.py").write_text(text)
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "neighbour.py").write_text("")
    (tmp_path / "more" / "sitecustomize.py").write_text("import sys\nprint('customised', len(sys.argv))\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "more")}
    wanted = subprocess.run(
        [sys.executable, *arguments], cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )  # fmt: skip
    done = run_python(*arguments, cwd=tmp_path, env=environment)
    without_argv = [one.stdout.partition("customised")[2].partition("\n")[2] for one in (wanted, done)]
    assert without_argv[0] == without_argv[1]
    assert (done.returncode, done.stderr) == (wanted.returncode, wanted.stderr)


def test_nothing_of_tilework_is_there_and_programs_know_nothing_of_each_other() -> None:
    for _ in range(2):
        code = "import sys; print([name for name in sys.modules if name.startswith('tilework')]); sys.modules['tilework'] = 1"
        done = run_python("-c", code)
        assert done.stdout == "[]\n", done.stderr


def test_a_program_that_hangs_is_ended() -> None:
    with pytest.raises(AssertionError, match="hung"):
        run_python("-c", "import time; time.sleep(60)", timeout=0.1)
    assert run_python("-c", "print(1)").stdout == "1\n"
