"""Copies of the repository to plant mutants in, and pytest in such a copy."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.operators import Mutant
from tests.mutants.reached import TimedTest

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("benchmarks", "docs", "docsite", "examples", "packages", "tests", "tilework")  # and the files beside them


@dataclass(frozen=True)
class Outcome:
    """`verdict` is "killed", "survived", "timeout" or "broken" (pytest itself failed: see `by`)."""

    verdict: str
    by: str  # the test that failed


class Tree:
    """A copy of the repository. The file of a mutant gets a time of change that no file had before, so that Python
    compiles it again; every mutant has an empty folder for compiled kernels."""

    def __init__(self, folder: Path, origin: Path = ROOT) -> None:
        self.folder = folder / "tree"
        self.clock = 2_000_000_000  # seconds: the future
        self.folder.mkdir()
        for path in origin.iterdir():
            if path.is_file() and path.name != ".git":  # a worktree has a file
                shutil.copy2(path, self.folder)
            elif path.name in COPIED:
                shutil.copytree(path, self.folder / path.name, symlinks=True)

    def environment(self, scratch: Path) -> dict[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(self.folder), *filter(None, [os.environ.get("PYTHONPATH")])]),
            "OPENBLAS_NUM_THREADS": "1",
            "TRITON_HOME": str(scratch),
            "TRITON_CACHE_DIR": str(scratch / "cache"),
            "TMPDIR": str(scratch),
        }

    def pytest(
        self, arguments: Sequence[str], settings: Mapping[str, str], scratch: Path, seconds: float | None
    ) -> int | None:
        """The exit code of pytest with `arguments`, or None if it takes longer than `seconds`; its output goes to
        `scratch`/output."""
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "--basetemp",
            str(scratch / "tests"),
            *arguments,
        ]
        with (scratch / "output").open("w") as output:
            process = subprocess.Popen(
                command, cwd=self.folder, env={**self.environment(scratch), **settings}, stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
            try:
                return process.wait(seconds)
            except subprocess.TimeoutExpired:
                return None
            finally:
                end(process)

    def run(self, mutant: Mutant, tests: Sequence[TimedTest]) -> Outcome:
        """The outcome of `tests` with `mutant` in place."""
        path = self.folder / mutant.file
        source, before = path.read_bytes(), path.stat()
        self.clock += 1
        path.write_text(mutant.apply(source.decode()), encoding="utf-8")
        os.utime(path, (self.clock, self.clock))
        try:
            return self.outcome(tests)
        finally:
            path.write_bytes(source)
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    def outcome(self, tests: Sequence[TimedTest]) -> Outcome:
        with tempfile.TemporaryDirectory(dir=self.folder.parent, ignore_cleanup_errors=True) as name:
            scratch = Path(name)
            chosen, failed = scratch / "chosen", scratch / "failed"
            chosen.write_text("\n".join(test.id for test in tests))
            limit = 40 + 3 * sum(test.seconds for test in tests)
            files = list(dict.fromkeys(test.file for test in tests))
            settings = {"MUTANTS_CHOSEN": str(chosen), "MUTANTS_FAILED": str(failed)}
            code = self.pytest(["-x", "-p", "tests.mutants.chosen", *files], settings, scratch, limit)
            if code is None:
                return Outcome("timeout", f"after {limit:.0f} s")
            if code == 0:
                return Outcome("survived", "")
            if failed.exists():
                return Outcome("killed", failed.read_text())
            lines = (scratch / "output").read_text(errors="replace").splitlines()
            last = next((line for line in reversed(lines) if line.strip()), "")
            verdict = (
                "killed" if code in (1, 2) or code < 0 else "broken"
            )  # 2: a file cannot be imported; < 0: a signal
            return Outcome(verdict, f"exit code {code}: {last[:200]}")


def end(process: subprocess.Popen) -> None:
    """Kill what is left of the process and of the programs it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
