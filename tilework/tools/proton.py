"""The command `proton`: run a script, or pytest, in a session.

    proton -n matmul -k triton script.py --size 4096
    proton pytest tests/test_matmul.py

Sessions that the program starts itself are ignored; its scopes and metrics are not. The profile is written when it
ends, also if it fails.
"""

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from tilework.as_triton import run_script
from tilework.inspect.profiler.profile import DEFAULT_PROFILE_NAME, begin, end
from tilework.inspect.profiler.sessions import CONTEXTS, DATA
from tilework.inspect.profiler.stacks import flags
from tilework.tools.program import code_of


def parse_arguments(argv: Sequence[str] | None = None) -> tuple[argparse.Namespace, list[str]]:
    """(options, the program and its arguments)."""
    parser = argparse.ArgumentParser(
        prog="proton",
        description="Run a program, time its kernels, and write a profile.",
        usage="proton [options] (script.py | pytest) [ARGUMENT ...]",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add(
        "-n", "--name", default=DEFAULT_PROFILE_NAME, help="the path of the profile, without suffix; -: standard output"
    )
    add("-b", "--backend", choices=("cupti", "roctracer", "instrumentation"), help="default: depends on the device")
    add("-c", "--context", choices=CONTEXTS, default="shadow", help="a kernel's path: its scopes, or its call stack")
    add("-m", "--mode", help="accepted because Triton has it; has no effect")
    add("-d", "--data", choices=tuple(DATA), default="tree", help="what to collect")
    add("-k", "--hook", choices=("None", "triton"), help="triton: take names, flops and bytes from launch_metadata")
    add("program", nargs=argparse.REMAINDER, metavar="(script.py | pytest) ARGUMENT ...", help="what to run")
    found = parser.parse_args(argv)
    if not found.program:
        parser.error("a script, or pytest, is missing")
    return found, found.program


def is_pytest(script: str) -> bool:
    return os.path.basename(script) in ("pytest", "py.test")


def execute_as_main(script: str, args: Sequence[str]) -> int:
    """Run a script as ``python script.py`` does; its exit code."""
    if not os.path.isfile(script):
        print(f"proton: error: there is no file {script}", file=sys.stderr)
        return 2
    sys.argv = [script, *args]
    try:
        run_script(Path(script))
    except SystemExit as error:
        return code_of(error)
    except Exception as error:
        traceback.print_exc()
        print(f"An error occurred while executing the script: {error}")
        return 1
    return 0


def do_setup_and_execute(target_args: Sequence[str]) -> int:
    """Run the program; its exit code."""
    script, *rest = target_args
    if is_pytest(script):
        import pytest  # lazily: only `proton pytest` needs it

        return int(pytest.main(rest))
    return execute_as_main(script, rest)


def run_profiling(args: argparse.Namespace, target_args: Sequence[str]) -> int:
    """Run the program in a session; its exit code."""
    begin(args.name, args.context, args.data, args.backend, None, None if args.hook == "None" else args.hook)
    flags.command_line = True
    try:
        return do_setup_and_execute(target_args)
    finally:
        flags.command_line = False
        end(None)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the `proton` command; return its exit code."""
    args, target_args = parse_arguments(argv)
    try:
        return run_profiling(args, target_args)
    except (NotImplementedError, ValueError) as error:  # the request cannot be met
        print(f"proton: error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
