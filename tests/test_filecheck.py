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
from pathlib import Path

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options, parse_argv_options
from filecheck.parser import Parser

from tilework.tools.cli import main

ROOT = Path(__file__).parent
RUN = re.compile(r"^\s*//\s*RUN:\s*(.*)$", re.MULTILINE)
MARKS = re.compile(r"//\s*(RUN|CHECK(-[A-Z]+)?):")
FILES = sorted(path for path in ROOT.rglob("*.mlir") if MARKS.search(path.read_text(encoding="utf-8")))


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
        code = main([word for word in tool[1:] if word != "2>&1"])
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
