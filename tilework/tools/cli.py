"""The `tilework` command: one module of this folder per subcommand, loaded only when it is used.

    tilework opt kernel.ttir -p canonicalize,cse
    tilework compile kernel.py:add --signature "*fp32:16, i32:16, 1024" --target cuda:90 --emit ttir

A subcommand module has `add_arguments(parser)` and `run(args) -> int`; one with options that argparse cannot describe
also has `normalise(argv)`, which rewrites them first, and `more_options()`, which lists them. A user error is a
`UsageError`, or one of the exceptions that the module lists as its `MISTAKES`, with `FAILURE` as the exit code; an
unexpected exception is one line, too, and its traceback goes to a file (TRITON_FRONT_END_DEBUGGING=1 shows it).
"""

import argparse
import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from tilework import knobs
from tilework.errors import CompilationError, CompilerMissing, UsageError, did_you_mean, message_of
from tilework.version import __version__

SUBCOMMANDS = {
    "new": "write a small project: a kernel, its test, a benchmark, a notebook",
    "opt": "run passes on a file of TTIR",
    "compile": "compile a kernel to one or more stages, or (--aot) for C programs",
    "link": "write one C function for kernels that were compiled ahead of time",
    "precompile": "compile the kernels of a program ahead of time into one file, which serves them without a compiler",
    "warm": "compile the kernels of a program into the cache before it starts",
    "bundle": "show what a file written by precompile contains, or verify it",
    "layout": "show which thread owns each element of a tensor, or render it as SVG",
    "explore": "show kernels from source to machine code, in a page for a browser",
    "diff": "compare two kernels, configurations, targets or compilers: stages, passes, metrics",
    "emulate": "run a kernel from a file (PTX, or LLVM IR for AMD GPUs) without a GPU; check it, and count"
    " what it does",
    "explain": "run a program and explain why its kernels were recompiled, are slow, or differ between devices",
    "profile": "run a program and show where its time goes, kernel by kernel, and what to look at first",
    "tune": "run a program, tune its kernels, and keep the results for later runs",
    "doctor": "report what works on this machine, and what to install",
    "cache": "list, verify, prune or clear the cache of compiled kernels",
}
UNRECOGNIZED = re.compile(r"unrecognized arguments: (\S+)")
CHOICE = re.compile(r"invalid choice: '(.*?)' \(choose from (.*)\)")


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors suggest the option or choice that was meant."""

    more_options: Sequence[str] = ()

    def error(self, message: str) -> NoReturn:
        if (unknown := UNRECOGNIZED.match(message)) is not None and unknown[1].startswith("-"):
            message += did_you_mean(unknown[1].partition("=")[0], [*self._option_string_actions, *self.more_options])
        elif (choice := CHOICE.search(message)) is not None:
            message += did_you_mean(choice[1], re.findall(r"[\w-]+", choice[2]))
        super().error(message)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv`; the exit code."""
    argv = list(sys.argv[1:] if argv is None else argv)
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(usage())
        return 0 if argv else 2
    if argv[0] in ("-V", "--version", "version"):
        print(f"tilework {__version__}")
        return 0
    name, *rest = argv
    if name not in SUBCOMMANDS:
        print(f"tilework: error: no command '{name}'{did_you_mean(name, SUBCOMMANDS)}\n{usage()}", file=sys.stderr)
        return 2
    tool: ModuleType | None = None
    try:
        tool = imported(name)
        args = parser_of(name).parse_args(getattr(tool, "normalise", list)(rest))
        code = tool.run(args)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # the reader has seen enough: `tilework cache list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        print(f"tilework {name}: interrupted", file=sys.stderr)
        return 130
    except CompilationError as error:
        print(error.diagnostic().render(), file=sys.stderr)
        return getattr(tool, "FAILURE", 1)
    except (UsageError, CompilerMissing, *getattr(tool, "MISTAKES", ())) as error:
        print(f"tilework {name}: {getattr(tool, 'ERROR', 'error: ')}{message_of(error)}", file=sys.stderr)
        return getattr(tool, "FAILURE", 1)
    except Exception as error:
        if knobs.compilation.front_end_debugging:
            raise
        print(unexpected(name, error), file=sys.stderr)
        return 70


def imported(name: str) -> ModuleType:
    """The module of a subcommand; `CompilerMissing` if it needs the compiler, and that is not there."""
    try:
        return import_module(f"tilework.tools.{name}")
    except ImportError:
        from tilework.runtime.compile.compiler_presence import require_compiler  # lazily: only then

        require_compiler()
        raise


def parser_of(name: str) -> Parser:
    """Return the parser of a subcommand's options."""
    tool = imported(name)
    parser = Parser(prog=f"tilework {name}", description=tool.__doc__, allow_abbrev=False)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.more_options = getattr(tool, "more_options", tuple)()
    tool.add_arguments(parser)
    return parser


def unexpected(name: str, error: Exception) -> str:
    """One line about a mistake of ours, whose traceback is kept in a file."""
    import tempfile  # lazily: only mistakes need them
    import traceback

    message = " ".join(str(error).split()) or "no message"
    with tempfile.NamedTemporaryFile("w", prefix="tilework-", suffix=".txt", delete=False) as file:
        file.write(f"tilework {__version__}: {' '.join(sys.argv)}\n\n")
        file.write("".join(traceback.format_exception(error)))
    return (
        f"tilework {name}: internal error: {type(error).__name__}: {message}\n"
        f"tilework {name}: this is a mistake in tilework; please report it with {file.name}"
    )


def read_text(path: str) -> str:
    """The contents of a text file; a UsageError if it is not text."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: {message_of(error)}") from None


def usage() -> str:
    """The list of commands."""
    lines = ["usage: tilework COMMAND ...", "       tilework --version", "", "commands (each has --help):"]
    return "\n".join([*lines, *(f"  {name:<10} {summary}" for name, summary in SUBCOMMANDS.items())])
