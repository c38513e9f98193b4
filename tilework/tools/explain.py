"""Run a program, and explain why its kernels were recompiled, why configurations were slower, what makes kernels slow,
and where their results differ between devices.

    tilework explain train.py --epochs 1                 why compiled, why tuned, why slow
    tilework explain --why compiled train.py             one question, or several: compiled,tuned,slow,different
    tilework explain --target cuda:90 train.py           what would make them slow on another device than this one
    tilework explain --why different train.py            first launches also in interpreter, evaluator and emulators
    tilework explain --json train.py > why.json          for programs; what the program prints goes to stderr
    tilework explain --triton train.py                   a program that says `import triton`
    tilework explain -m package.module                   a module
    tilework explain records                             a folder of a running program (TILEWORK_EXPLAIN=records)

The program runs unchanged, in a separate process. If it fails, everything up to the failure is explained.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilework import knobs
from tilework.errors import UsageError
from tilework.inspect.explain.compiled import why_compiled, why_tuned
from tilework.inspect.findings import QUESTIONS, Explanation, Finding, Section
from tilework.inspect.replay import DEVICES
from tilework.runtime.recording.recorder import read_records
from tilework.target import GPUTarget, UnknownTarget
from tilework.tools.program import Program
from tilework.tools.program import add_arguments as add_program

MISTAKES, FAILURE = (UnknownTarget,), 2

DEFAULT = QUESTIONS[:3]
CRASHES = ("SIGSEGV", "SIGBUS", "SIGABRT", "SIGILL")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tilework explain`."""
    add = parser.add_argument
    add("--why", default=",".join(DEFAULT), metavar="LIST", help=f"the questions: {','.join(QUESTIONS)} (default:"
                                                               f" {','.join(DEFAULT)})")  # fmt: skip
    add("--json", action="store_true", help="print JSON; the program's output goes to stderr")
    add(
        "--target",
        action="append",
        default=[],
        metavar="TARGET",
        help="for slow: a target other than the program's, such as cuda:90; can be repeated",
    )
    add(
        "--device",
        action="append",
        default=[],
        metavar="DEVICE",
        help=f"why different: one of {', '.join(DEVICES)}; may be repeated (default: all)",
    )
    add_program(parser)


def run(args: argparse.Namespace) -> int:
    """Execute the command; the exit code is that of the program."""
    questions = [name for name in args.why.replace(" ", "").split(",") if name]
    if wrong := [name for name in questions if name not in QUESTIONS]:
        raise UsageError(f"--why knows {', '.join(QUESTIONS)}, not {wrong[0]!r}")
    if wrong := [name for name in args.device if name not in DEVICES]:
        raise UsageError(f"--device is one of {', '.join(DEVICES)}, not {wrong[0]!r}")
    targets = [str(GPUTarget.parse(text)) for text in args.target]
    if not args.is_module and os.path.isdir(args.program):
        return explain_running(args, questions)
    program = Program.of(args)
    with tempfile.TemporaryDirectory(prefix="tilework-explain-") as folder:
        devices = list(dict.fromkeys([DEVICES[0], *args.device])) if args.device else list(DEVICES)
        settings = {"targets": targets, "questions": questions, "devices": devices}
        Path(folder, "settings.json").write_text(json.dumps(settings))
        code = run_program(program, folder, args.json)
        records = list(read_records(folder))
        shown = explanation(records, questions, devices)
    nothing = f"no kernel of tilework was compiled or launched\n   {program.why_nothing(code)}"
    print(shown.to_json() if args.json else f"\n{shown}" if records else nothing)
    if code:
        print(f"tilework explain: the program {ending(code)}", file=sys.stderr)
    return code if code >= 0 else 128 - code


def explain_running(args: argparse.Namespace, questions: Sequence[str]) -> int:
    """Explain the records so far of a program that may be running still: TILEWORK_EXPLAIN names the folder."""
    records = list(read_records(args.program))
    if not records:
        help = f"start the program with TILEWORK_EXPLAIN={args.program}"
        raise UsageError(f"there are no records in {args.program}: {help}")
    shown = explanation(records, [name for name in questions if name in ("compiled", "tuned")], [])
    print(shown.to_json() if args.json else shown)
    return 0


def run_program(program: Program, folder: str, is_quiet: bool) -> int:
    """Run the program, with its events recorded in a folder; its exit code."""
    environment = {**knobs.environment_without(()), "TILEWORK_EXPLAIN": folder}
    output: dict[str, Any] = {"stdout": sys.stderr.fileno()} if is_quiet else {}
    sys.stdout.flush()
    with subprocess.Popen(program.command(), env=environment, **output) as process:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:  # the program has it, too, and may have something to put in order
                continue


def explanation(records: Sequence[Mapping[str, Any]], questions: Sequence[str], devices: Sequence[str]) -> Explanation:
    """Return the requested sections; tunings only if there are some."""
    sections: list[Section] = []
    if "compiled" in questions:
        sections.append(why_compiled(records))
    if "tuned" in questions and any(record["event"] == "tuned" for record in records):
        sections.append(why_tuned(records))
    if "slow" in questions and any(record["event"] == "module" for record in records):
        from tilework.inspect.explain.slow import recorded_cases, why_slow  # lazily: loads the compiler

        sections.append(why_slow(*recorded_cases(records)))
    if "different" in questions:
        from tilework.inspect.explain.different import section_of  # lazily: loads the compiler and the oracles

        found = [record for record in records if record["event"] == "different"]
        launches = sum(record["event"] == "launch" for record in records)
        sections.append(section_of([Finding.from_json(record["finding"]) for record in found], launches, devices))
    return Explanation(tuple(sections))


def ending(code: int) -> str:
    """Describe the end of a program that failed."""
    if code > 0:
        return f"ended with {code}; what happened until then is above"
    name = signal.Signals(-code).name if -code in signal.valid_signals() else str(-code)
    hint = " (TRITON_SANITIZE=1 finds accesses out of bounds)" if name in CRASHES else ""
    return f"was killed by {name}; what happened until then is above{hint}"
