"""Run a program, and show where its time goes: a tree of kernels, what each reaches of what this machine can, what to
look at first.

    tilework profile train.py --epochs 1                 a table
    tilework profile --html profile.html train.py        also a page with pictures, for a browser
    tilework profile --trace trace.json train.py         also a trace for https://ui.perfetto.dev or chrome://tracing
    tilework profile --output train.hatchet train.py     also a file for proton-viewer and Hatchet
    tilework profile --triton train.py                   a program that says `import triton`
    tilework profile -m package.module                   a module

The program runs as it is; scopes of `tilework.profiler` in it become branches of the tree. The profile is shown when it
ends, also if it fails or is interrupted, and the exit code is the program's. What the machine can do is measured once,
and kept in the cache folder.
"""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from tilework.errors import UsageError
from tilework.inspect.profiler.limits import Limits
from tilework.inspect.profiler.report import Statistics, make_report, text_of, trace_of
from tilework.tools import program

FAILURE = 2
INTERRUPTED = "tilework profile: interrupted; this is what was seen until then"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tilework profile`."""
    add = parser.add_argument
    add("--html", metavar="FILE", help="write a page with pictures: where the time goes, and how far from the limits")
    add("--trace", metavar="FILE", help="write what ran when, in Chrome's format")
    add("--output", "-o", metavar="FILE", help="write the tree, in the format of Proton and Hatchet")
    add("--top", type=int, default=40, metavar="N", help="how many lines of the tree are shown (40)")
    add("--measure", action="store_true", help="measure again what the machine can do")
    program.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Execute the command; the exit code is that of the program."""
    chosen = program.Program.of(args)
    for option in ("html", "trace", "output"):
        if (path := getattr(args, option)) and not os.access(folder := Path(path).absolute().parent, os.W_OK):
            why = "cannot be written" if folder.is_dir() else "is not there"
            raise UsageError(f"--{option} {path}: the folder {folder} {why}")
    statistics, process = Statistics(traces=args.trace is not None or args.html is not None), os.getpid()
    with statistics.collecting():
        code = chosen.exit_code(INTERRUPTED)
    sys.stdout.flush()
    if os.getpid() != process:  # the program has forked, and this is the end of the child
        return code
    limits = Limits.load()
    if args.measure:
        limits.measure_again()
    report = make_report(statistics, limits, str(chosen))
    print(f"\n{text_of(report, args.top)}")
    if not report.kernels:
        print(f"   {chosen.why_nothing(code)}")
    files: list[tuple[str | None, Any]] = [
        (args.output, lambda: statistics.tree.contents("hatchet").decode()),
        (args.trace, lambda: json.dumps(trace_of(statistics))),
        (args.html, lambda: page_of(report, statistics)),
    ]
    for path, make in files:
        if path is not None:
            Path(path).write_text(make(), encoding="utf-8")
            print(f"wrote {path}")
    return code


def page_of(report: Any, statistics: Statistics) -> str:
    from tilework.inspect.profiler.page import page  # lazily: only for --html

    return page(report, statistics)
