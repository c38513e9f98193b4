"""Run a program, and say why its kernels were compiled again, why configurations lost, what makes them slow, where they differ.

    tilework explain train.py --epochs 1                 why compiled, why tuned, why slow
    tilework explain --why compiled train.py             one question, or several: compiled,tuned,slow,different
    tilework explain --target cuda:90 train.py           what would make them slow on another device than this one
    tilework explain --why different train.py            first launches also in the interpreter, the evaluator and emulators
    tilework explain --json train.py > why.json          for programs; what the program prints goes to stderr
    tilework explain --triton train.py                   a program that says `import triton`
    tilework explain -m package.module                   a module
    tilework explain records                             a folder that a running program writes (TILEWORK_EXPLAIN=records)

The program runs as it is, in a process of its own. If it fails, what had happened until then is explained.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tilework import knobs
from tilework.as_triton import says_triton
from tilework.explain.devices import DEVICES
from tilework.explain.findings import Explanation, Finding, Section
from tilework.explain.recompiles import why_compiled
from tilework.explain.tunings import why_tuned
from tilework.runtime.recording.recorder import read_records
from tilework.target import GPUTarget, UnknownTarget

QUESTIONS = ("compiled", "tuned", "slow", "different")
ASKED = ("compiled", "tuned", "slow")
CRASHES = ("SIGSEGV", "SIGBUS", "SIGABRT", "SIGILL")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tilework explain`."""
    add = parser.add_argument
    add("--why", default=",".join(ASKED), metavar="LIST", help=f"which questions: {','.join(QUESTIONS)} (default: {','.join(ASKED)})")  # fmt: skip
    add("--json", action="store_true", help="print JSON; what the program prints goes to stderr")
    add(
        "--target",
        action="append",
        default=[],
        metavar="TARGET",
        help="why slow: another target than the program's, for example cuda:90; may be repeated",
    )
    add(
        "--device",
        action="append",
        default=[],
        metavar="DEVICE",
        help=f"why different: one of {', '.join(DEVICES)}; may be repeated (default: all)",
    )
    add("--triton", action="store_true", help="run the program with tilework as its Triton")
    add("-m", dest="is_module", action="store_true", help="SCRIPT is the name of a module")
    add("program", metavar="SCRIPT", help="the Python program")
    add("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENT", help="what it is called with")


def run(args: argparse.Namespace) -> int:
    """Execute the command; the exit code is that of the program."""
    questions = [word for word in args.why.replace(" ", "").split(",") if word]
    if wrong := [word for word in questions if word not in QUESTIONS]:
        return refuse(f"--why knows {', '.join(QUESTIONS)}, not {wrong[0]!r}")
    if wrong := [word for word in args.device if word not in DEVICES]:
        return refuse(f"--device is one of {', '.join(DEVICES)}, not {wrong[0]!r}")
    try:
        targets = [str(GPUTarget.parse(text)) for text in args.target]
    except UnknownTarget as error:
        return refuse(str(error))
    if not args.is_module and os.path.isdir(args.program):
        return explain_running(args, questions)
    if not args.is_module and not os.path.isfile(args.program):
        return refuse(f"there is no file {args.program}")
    with tempfile.TemporaryDirectory(prefix="tilework-explain-") as folder:
        devices = list(dict.fromkeys([DEVICES[0], *args.device])) if args.device else list(DEVICES)
        settings = {"targets": targets, "questions": questions, "devices": devices}
        Path(folder, "settings.json").write_text(json.dumps(settings))
        code = run_program(args, folder)
        records = list(read_records(folder))
        shown = explanation(records, questions, devices)
    print(shown.to_json() if args.json else f"\n{shown}" if records else nothing(args, code))
    if code:
        print(f"tilework explain: the program {ending(code)}", file=sys.stderr)
    return code if code >= 0 else 128 - code


def explain_running(args: argparse.Namespace, questions: Sequence[str]) -> int:
    """What a program has recorded so far, which may be running still: TILEWORK_EXPLAIN names the folder."""
    records = list(read_records(args.program))
    if not records:
        return refuse(f"there are no records in {args.program}: start the program with TILEWORK_EXPLAIN={args.program}")
    shown = explanation(records, [word for word in questions if word in ("compiled", "tuned")], [])
    print(shown.to_json() if args.json else shown)
    return 0


def refuse(text: str) -> int:
    print(f"tilework explain: error: {text}", file=sys.stderr)
    return 2


def run_program(args: argparse.Namespace, folder: str) -> int:
    """Run the program, with its events recorded in a folder; its exit code."""
    environment = {**knobs.environment_without(()), "TILEWORK_EXPLAIN": folder}
    command = [sys.executable]
    if args.triton or means_us(args):
        command += ["-m", "tilework.as_triton"]
    command += [*(["-m"] if args.is_module else []), args.program, *args.arguments]
    output: dict[str, Any] = {"stdout": sys.stderr.fileno()} if args.json else {}
    sys.stdout.flush()
    with subprocess.Popen(command, env=environment, **output) as process:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:  # the program has it, too, and may have something to put in order
                continue


def means_us(args: argparse.Namespace) -> bool:
    """Whether a program that says `import triton` can only mean us: there is no other."""
    return not args.is_module and says_triton(args.program) and find_spec("triton") is None


def explanation(records: Sequence[Mapping[str, Any]], questions: Sequence[str], devices: Sequence[str]) -> Explanation:
    """The sections that were asked for; tunings only where there are some."""
    sections: list[Section] = []
    if "compiled" in questions:
        sections.append(why_compiled(records))
    if "tuned" in questions and any(record["event"] == "tuned" for record in records):
        sections.append(why_tuned(records))
    if "slow" in questions and any(record["event"] == "module" for record in records):
        from tilework.explain.cases import recorded_cases  # loads the compiler
        from tilework.explain.slow import why_slow

        sections.append(why_slow(*recorded_cases(records)))
    if "different" in questions:
        from tilework.explain.different import section_of  # loads the compiler and the oracles

        found = [record for record in records if record["event"] == "different"]
        launches = sum(record["event"] == "launch" for record in records)
        sections.append(section_of([Finding.from_json(record["finding"]) for record in found], launches, devices))
    return Explanation(tuple(sections))


def nothing(args: argparse.Namespace, code: int) -> str:
    """Why there is nothing to explain, as far as that can be known."""
    lines = ["no kernel of tilework was compiled or launched"]
    if knobs.runtime.interpret:
        lines.append("   note: TRITON_INTERPRET=1 is set: kernels run as Python, and nothing is compiled")
    elif not args.is_module and not args.triton and says_triton(args.program) and not means_us(args):
        lines.append("   help: it says `import triton`, and Triton is installed here: --triton runs it with tilework")
    elif code:
        lines.append("   note: the program failed before that")
    return "\n".join(lines)


def ending(code: int) -> str:
    """How a program ended that did not succeed."""
    if code > 0:
        return f"ended with {code}; what happened until then is above"
    name = signal.Signals(-code).name if -code in signal.valid_signals() else str(-code)
    hint = " (TRITON_SANITIZE=1 finds accesses out of bounds)" if name in CRASHES else ""
    return f"was killed by {name}; what happened until then is above{hint}"
