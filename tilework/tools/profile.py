"""Run a program, and show where its time goes: a tree of kernels, how close each comes to the limits of this machine,
and what to look at first.

    tilework profile train.py --epochs 1                 a table
    tilework profile --html profile.html train.py        also a page with pictures, for a browser
    tilework profile --trace trace.json train.py         also a trace for https://ui.perfetto.dev or chrome://tracing
    tilework profile --output train.hatchet train.py     also a file for proton-viewer and Hatchet
    tilework profile --triton train.py                   a program that says `import triton`
    tilework profile -m package.module                   a module
    tilework profile --save before.json train.py         keep the profile, and compare it with that of another day,
    tilework profile --compare before.json after.json    version, block size or machine (--html FILE: also as a page)

The program runs unchanged; scopes of `tilework.profiler` in it become branches of the tree. The profile is shown when
the program ends, even if it fails or is interrupted, and the exit code is the program's. The limits of the machine are
measured once and kept in the cache folder.
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
from tilework.inspect.profiler.saved import load, profile_data
from tilework.tools import program

FAILURE = 2
INTERRUPTED = "tilework profile: interrupted; this is what was seen until then"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tilework profile`."""
    add = parser.add_argument
    add(
        "--html",
        metavar="FILE",
        help="write a page with pictures: where the time goes, and how close kernels come to the limits",
    )
    add("--trace", metavar="FILE", help="write a timeline in Chrome's trace format")
    add("--output", "-o", metavar="FILE", help="write the tree in the format of Proton and Hatchet")
    add("--save", metavar="FILE", help="write the profile for a later --compare (pages contain it, too)")
    add(
        "--compare",
        action="store_true",
        help="compare two profiles: SCRIPT is the one before, ARGUMENT the one after; nothing is run",
    )
    add("--top", type=int, default=40, metavar="N", help="the number of lines of the tree to show (default: 40)")
    add("--measure", action="store_true", help="measure the limits of the machine again")
    program.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Execute the command; the exit code is that of the program."""
    if args.compare:
        return compare_files(args)
    chosen = program.Program.of(args)
    check_folders(args)
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
        (args.save, lambda: json.dumps(profile_data(report, statistics), indent=1)),
    ]
    for path, make in files:
        if path is not None:
            Path(path).write_text(make(), encoding="utf-8")
            print(f"wrote {path}")
    return code


def check_folders(args: argparse.Namespace) -> None:
    """Raise a UsageError for a file that cannot be written, before the program runs."""
    for option in ("html", "trace", "output", "save"):
        if (path := getattr(args, option)) and not os.access(folder := Path(path).absolute().parent, os.W_OK):
            why = "cannot be written" if folder.is_dir() else "is not there"
            raise UsageError(f"--{option} {path}: the folder {folder} {why}")


def compare_files(args: argparse.Namespace) -> int:
    """Print the comparison of two saved profiles. The options behind them were taken for those of a program."""
    from tilework.inspect.profiler import comparison, comparison_page  # lazily: only for --compare

    parser = argparse.ArgumentParser(prog="tilework profile --compare", allow_abbrev=False)
    for name in ("before", "after"):
        parser.add_argument(name, metavar=name.upper())
    parser.add_argument("--html", metavar="FILE", default=args.html)
    parser.add_argument("--top", type=int, metavar="N", default=args.top)
    files = parser.parse_args([args.program, *args.arguments])
    check_folders(argparse.Namespace(html=files.html, trace=None, output=None, save=None))
    found = comparison.compare(load(files.before), load(files.after))
    print(comparison.text_of(found, files.top))
    if files.html is not None:
        Path(files.html).write_text(comparison_page.page(found), encoding="utf-8")
        print(f"wrote {files.html}")
    return 0


def page_of(report: Any, statistics: Statistics) -> str:
    from tilework.inspect.profiler.page import page  # lazily: only for --html

    return page(report, statistics)
