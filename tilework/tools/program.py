"""The program that a command runs: ``SCRIPT ARGUMENT ...`` or ``-m MODULE ARGUMENT ...``, in this process or in one of
its own."""

import argparse
import os
import runpy
import shlex
import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from tilework import knobs
from tilework.as_triton import as_triton, run_script, says_triton
from tilework.errors import UsageError


def add_arguments(parser: argparse.ArgumentParser, *, modules: bool = True, is_optional: bool = False) -> None:
    """Add the options that name a program and its arguments."""
    add = parser.add_argument
    add("--triton", action="store_true", help="run the program with tilework in place of Triton")
    if modules:
        add("-m", dest="is_module", action="store_true", help="SCRIPT is the name of a module")
    add("program", metavar="SCRIPT", nargs="?" if is_optional else None, help="the Python program")
    add("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENT", help="the arguments of the program")


class Program(NamedTuple):
    """A script or module, and what it is called with."""

    name: str
    arguments: tuple[str, ...]
    is_module: bool = False
    as_triton: bool = False

    @classmethod
    def of(cls, args: argparse.Namespace) -> "Program":
        """Return the program that the options name; UsageError if there is none."""
        found = cls(args.program, tuple(args.arguments), getattr(args, "is_module", False), args.triton)
        if not found.is_there():
            raise UsageError(f"there is no {'module' if found.is_module else 'file'} {found.name}")
        return found

    def __str__(self) -> str:
        return " ".join([*(["-m"] if self.is_module else []), *map(shlex.quote, (self.name, *self.arguments))])

    def says_triton(self) -> bool:
        return not self.is_module and says_triton(self.name)

    def means_us(self) -> bool:
        """Return True if its Triton is tilework: by `--triton`, or because it imports triton and no other is
        installed."""
        return self.as_triton or (self.says_triton() and find_spec("triton") is None)

    def is_there(self) -> bool:
        """Return True if the file or module exists."""
        if not self.is_module:
            return os.path.isfile(self.name)
        sys.path.insert(0, os.getcwd())
        try:
            return find_spec(self.name) is not None
        except ImportError:
            return False

    def command(self) -> list[str]:
        """The command line that runs it in a process of its own."""
        arguments = [*(["-m"] if self.is_module else []), self.name, *self.arguments]
        return [sys.executable, *(["-m", "tilework.as_triton"] if self.means_us() else []), *arguments]

    def run(self) -> None:
        """Run it in this process, as ``python SCRIPT`` and ``python -m MODULE`` do."""
        if self.means_us():
            as_triton()
        sys.argv = [self.name, *self.arguments]
        if self.is_module:
            runpy.run_module(self.name, run_name="__main__", alter_sys=True)
        else:
            sys.path.insert(0, "")
            run_script(Path(self.name))

    def exit_code(self, interrupted: str) -> int:
        """Run it until all its threads have ended, and return its exit code; exceptions are printed as Python does."""
        try:
            self.run()
        except SystemExit as error:
            return code_of(error)
        except KeyboardInterrupt:
            print(interrupted, file=sys.stderr)
            return 130
        except BaseException as error:
            error.__traceback__ = without_us(error.__traceback__)
            sys.excepthook(type(error), error, error.__traceback__)
            return 1
        finally:
            for thread in threading.enumerate():
                if thread is not threading.current_thread() and not thread.daemon:
                    thread.join()
        return 0

    def why_nothing(self, code: int) -> str:
        """Return the probable reason that no kernel was launched."""
        if knobs.runtime.interpret:
            why = "kernels run as Python, nothing is compiled, and they have no times of their own"
            return f"note: TRITON_INTERPRET=1 is set: {why}"
        if self.says_triton() and not self.means_us():
            return "help: it says `import triton`, and Triton is installed here: --triton runs it with tilework"
        if code:
            return "note: the program failed before its first launch"
        return "note: kernels of other compilers, and of torch itself, are not seen"


def code_of(error: SystemExit) -> int:
    """Return the exit code of a SystemExit as the interpreter does: a text is printed, and the code is 1."""
    if error.code is None or isinstance(error.code, int):
        return error.code or 0
    print(error.code, file=sys.stderr)
    return 1


def without_us(trace: Any) -> Any:
    """A traceback without the frames that run the program."""
    while trace is not None and trace.tb_frame.f_globals.get("__name__", "").partition(".")[0] in ("tilework", "runpy"):
        trace = trace.tb_next
    return trace
