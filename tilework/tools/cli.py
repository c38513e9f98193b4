"""The `tilework` command: one module of this folder per subcommand, loaded only when it is used.

    tilework opt kernel.ttir -p canonicalize,cse
    tilework compile kernel.py:add --signature "*fp32:16, i32:16, 1024" --target cuda:90 --emit ttir

A subcommand module has `add_arguments(parser)` and `run(args) -> int`; one with options that argparse cannot describe
also has `normalise(argv)`, which rewrites them first.
"""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

SUBCOMMANDS = {
    "opt": "run passes on a file of TTIR",
    "compile": "compile a kernel to one or more stages",
    "layout": "show which thread owns each element of a tensor, or draw it",
    "emulate": "run a kernel of a file (PTX, or LLVM text for AMD GPUs) without a GPU, check it, count what it does",
    "tune": "run a program, tune its kernels, keep the results for later runs",
    "cache": "list, verify, prune or clear the cache of compiled kernels",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv`; the exit code."""
    argv = list(sys.argv[1:] if argv is None else argv)
    if not argv or argv[0] in ("-h", "--help"):
        print(usage())
        return 0 if argv else 2
    name, *rest = argv
    if name not in SUBCOMMANDS:
        print(f"tilework: error: no command '{name}'\n{usage()}", file=sys.stderr)
        return 2
    tool = import_module(f"tilework.tools.{name}")
    parser = argparse.ArgumentParser(prog=f"tilework {name}", description=tool.__doc__, allow_abbrev=False)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    tool.add_arguments(parser)
    normalise = getattr(tool, "normalise", list)
    return tool.run(parser.parse_args(normalise(rest)))


def usage() -> str:
    """The list of commands."""
    lines = ["usage: tilework COMMAND ...", "", "commands (each has --help):"]
    return "\n".join([*lines, *(f"  {name:<9} {summary}" for name, summary in SUBCOMMANDS.items())])
