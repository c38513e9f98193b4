"""Every `.mlir` file under tests/ with RUN or CHECK lines is a test: the commands run here, in process.

    // RUN: tilework opt %s -p canonicalize
    // CHECK: ...

A RUN line is `tilework opt ARGS`, optionally `| filecheck %s [--check-prefix=X]`; without the second part the output is
checked all the same when the file has CHECK lines. `%s` is the file, `2>&1` adds the standard error to what is checked,
and `not` in front expects a failure.
"""

import io
import re
import shlex
from contextlib import redirect_stderr, redirect_stdout
from itertools import pairwise
from pathlib import Path

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options, parse_argv_options
from filecheck.parser import Parser

from tilework.inspect.check_each import check_each
from tilework.ir.parser import parse_module
from tilework.tools.cli import main

ROOT = Path(__file__).parent
RUN = re.compile(r"^\s*//\s*RUN:\s*(.*)$", re.MULTILINE)
MARKS = re.compile(r"//\s*(RUN|CHECK(-[A-Z]+)?):")
FILES = sorted(path for path in ROOT.rglob("*.mlir") if MARKS.search(path.read_text(encoding="utf-8")))
OTHER_RESULTS = {  # passes whose result cannot be compared with the original's: why
    "triton-check-bounds": "the sizes of arrays become parameters",
    "triton-check-undefined": "stops at what is undefined",
    "tt-rectangles-to-descriptors": "descriptors become parameters",
    "tritongpu-F32DotTC": "rounds in assembly",
    "test-print-membar": "ops have barriers inside only once memory is allocated; see tests/analysis/test_membar.py",
}


def run_lines(text: str) -> list[str]:
    """The commands of a file; a backslash at the end of one continues it in the next."""
    commands: list[str] = []
    open_command = ""
    for part in RUN.findall(text):
        open_command += part.strip()
        if open_command.endswith("\\"):
            open_command = open_command[:-1] + " "
        else:
            commands.append(open_command)
            open_command = ""
    return commands


def execute(command: str, file: Path) -> None:
    """Run one RUN line and check what it prints."""
    tool, *checks = [shlex.split(part.replace("%s", str(file))) for part in command.split(" | ")]
    expects_failure = tool[0] == "not"
    tool = tool[1:] if expects_failure else tool
    assert tool[0] == "tilework", f"a RUN line runs tilework: {command}"
    with_errors = "2>&1" in tool
    stdout, stderr = io.StringIO(), io.StringIO()
    with redirect_stdout(stdout), redirect_stderr(stdout if with_errors else stderr):
        verified = ["--verify-each"] if tool[1] == "opt" else []
        code = main([word for word in (*tool[1:], *verified) if word != "2>&1"])
    assert (code != 0) == expects_failure, f"{command}\nexit code {code}\n{stderr.getvalue()}{stdout.getvalue()}"
    if checks:
        check(parse_argv_options(checks[0]), stdout.getvalue())
    elif re.search(r"^\s*//\s*CHECK", file.read_text(encoding="utf-8"), re.MULTILINE):
        check(Options(str(file)), stdout.getvalue())


def check(options: Options, output: str) -> None:
    """Compare `output` with the CHECK lines of the file named in `options`."""
    report = io.StringIO()
    matcher = Matcher(options, FInput("output", output), Parser.from_opts(options))
    matcher.stderr = report
    with redirect_stdout(report), redirect_stderr(report):
        failed = matcher.run()
    assert not failed, f"{report.getvalue()}\n--- output ---\n{output}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_run_lines(file: Path) -> None:
    commands = run_lines(file.read_text(encoding="utf-8"))
    assert commands, f"{file.name} has no RUN line"
    for command in commands:
        execute(command, file)


def value_checks() -> list[tuple[Path, str]]:
    """The files whose functions can be run before and after the passes of their RUN line, with the passes."""
    found: list[tuple[Path, str]] = []
    for file in FILES:
        for command in run_lines(file.read_text(encoding="utf-8")):
            words = shlex.split(command.split(" | ")[0])
            passes = ",".join(following for word, following in pairwise(words) if word == "-p")
            is_comparable = words[:2] == ["tilework", "opt"] and "--allow-unregistered-dialect" not in words and passes
            if is_comparable and not any(name in passes for name in OTHER_RESULTS):
                found.append((file, passes))
    return found


@pytest.mark.parametrize(("file", "passes"), value_checks(), ids=lambda part: getattr(part, "stem", part))
def test_passes_keep_what_the_functions_compute(file: Path, passes: str) -> None:
    for text in re.split(r"^// -----$", file.read_text(encoding="utf-8"), flags=re.MULTILINE):
        with redirect_stdout(io.StringIO()):
            report = check_each(parse_module(text), passes, seed=1, attempts=2, max_steps=20_000)
        assert report.ok, report
