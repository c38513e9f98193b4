"""Run a program, and show where its time goes: a tree of kernels, what each reaches of what this machine can, what to look at first.

    tilework profile train.py --epochs 1                 a table
    tilework profile --html profile.html train.py        also a page with pictures, for a browser
    tilework profile --trace trace.json train.py         also a trace for https://ui.perfetto.dev or chrome://tracing
    tilework profile --output train.hatchet train.py     also a file for proton-viewer and Hatchet
    tilework profile --triton train.py                   a program that says `import triton`
    tilework profile -m package.module                   a module

The program runs as it is; scopes of `tilework.profiler` in it become branches of the tree. The profile is shown when it ends, also if it
fails or is interrupted, and the exit code is the program's. What the machine can do is measured once, and kept in the cache folder.
"""

import argparse
import os
import sys
from pathlib import Path

from tilework.profiler.run_program import Program, run_profiled


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tilework profile`."""
    add = parser.add_argument
    add("--html", metavar="FILE", help="write a page with pictures: where the time goes, and how far from the limits")
    add("--trace", metavar="FILE", help="write what ran when, in Chrome's format")
    add("--output", "-o", metavar="FILE", help="write the tree, in the format of Proton and Hatchet")
    add("--top", type=int, default=40, metavar="N", help="how many lines of the tree are shown (40)")
    add("--measure", action="store_true", help="measure again what the machine can do")
    add("--triton", action="store_true", help="run the program with tilework as its Triton")
    add("-m", dest="is_module", action="store_true", help="SCRIPT is the name of a module")
    add("program", metavar="SCRIPT", help="the Python program")
    add("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENT", help="what it is called with")


def run(args: argparse.Namespace) -> int:
    """Execute the command; the exit code is that of the program."""
    program = Program(args.program, tuple(args.arguments), args.is_module, args.triton)
    if not program.is_there():
        return refuse(f"there is no {'module' if args.is_module else 'file'} {args.program}")
    for option in ("html", "trace", "output"):
        if (path := getattr(args, option)) and not os.access(folder := Path(path).absolute().parent, os.W_OK):
            return refuse(
                f"--{option} {path}: the folder {folder} {'cannot be written' if folder.is_dir() else 'is not there'}"
            )
    return run_profiled(
        program, html=args.html, trace=args.trace, output=args.output, top=args.top, measure=args.measure
    )


def refuse(text: str) -> int:
    print(f"tilework profile: error: {text}", file=sys.stderr)
    return 2
