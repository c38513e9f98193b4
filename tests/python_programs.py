"""Programs that tests start:
`run_python("-m", "tilework", "--version", cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)})`."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from tilework.process.output import bytes_in


def run_python(
    *arguments: str, cwd: Path | None = None, env: Mapping[str, str] | None = None, timeout: float = 300
) -> "subprocess.CompletedProcess[str]":
    """``python ARGUMENTS``, and what it printed; that goes to files, so that nothing waits for processes which a
    program leaves behind."""
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        files = {"stdin": subprocess.DEVNULL, "stdout": stdout, "stderr": stderr}
        done = subprocess.run([sys.executable, *arguments], cwd=cwd, env=env, timeout=timeout, **files)
        printed = [bytes_in(file).decode() for file in (stdout, stderr)]
    return subprocess.CompletedProcess(arguments, done.returncode, *printed)


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_until(is_true: Callable[[], bool], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.02)
