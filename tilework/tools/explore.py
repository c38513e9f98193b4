"""Show kernels from their source to machine code, in one page for a browser: every stage, linked line by line, every
pass, layouts, limits.

    tilework explore train.py --epochs 1                  run a program, show the kernels that it launches
    tilework explore --target cuda:90 train.py            the same for another device, with counters of the emulator
    tilework explore --triton train.py                    a program that says `import triton`
    tilework explore kernels.py:matmul --signature "*fp16:16, *fp16:16, *fp16:16, i32, 64" --target hip:gfx942
    tilework explore -o softmax.html --no-open softmax.py

The page is one file that needs no network and no server. `-o NAME.json` writes only the data; `tilework diff` compares
two pages or two data files. Options come before the program; everything after it is passed to the program.
"""

import argparse
import sys
from pathlib import Path
from typing import Any

from tilework import knobs
from tilework.errors import UsageError
from tilework.tools.compile import MISTAKES
from tilework.tools.program import Program

__all__ = ["MISTAKES", "add_arguments", "normalise", "run"]
MOST = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tilework explore`."""
    add = parser.add_argument
    add("source", metavar="SCRIPT.py|FILE.py:KERNEL|FILE.STAGE", help="a program, a kernel, or the file of a stage")
    add("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENT", help="the arguments of the program")
    add(
        "-o",
        "--output",
        metavar="FILE",
        help="the file to write the page to (.json: the data); default: a temporary file",
    )
    add("--no-open", action="store_true", help="write the page without opening a browser")
    add(
        "--target",
        help="cuda:90, hip:gfx942 or cpu, or several separated by commas; default: the device of the "
        "program, otherwise cuda:90",
    )
    add("--kernel", metavar="NAME", help="show only the kernels of the program with this name")
    add(
        "--most",
        type=int,
        default=MOST,
        metavar="N",
        help="the maximum number of kernels to show (default: %(default)s)",
    )
    add("--triton", action="store_true", help="run the program with tilework in place of Triton")
    add("--no-counters", action="store_true", help="do not run the kernel in the emulator")
    add("--signature", default="", help="for a kernel in a file: types and constants, as for `tilework compile`")
    add("--num-warps", type=int, help="for a kernel in a file; default: the target's")
    add("--num-ctas", type=int, help="for a kernel in a file; default: 1")
    add("--num-stages", type=int, help="for a kernel in a file; default: the target's")


def normalise(argv: list[str]) -> list[str]:
    """Options behind a kernel or a file of a stage, too: only a program has arguments of its own."""
    for index, arg in enumerate(argv):
        if not arg.startswith("-") and (".py:" in arg or arg.endswith(STAGE_FILES)):
            return [*argv[:index], *argv[index + 1 :], arg]
        if arg.endswith(".py") and (index == 0 or argv[index - 1] not in VALUED):
            break
    return list(argv)


STAGE_FILES = (".ttir", ".ttgir", ".ttcir", ".llir", ".ptx")
VALUED = ("-o", "--output", "--target", "--kernel", "--most", "--signature")


def run(args: argparse.Namespace) -> int:
    """Carry out `tilework explore`; the exit code is that of a program that was run."""
    from tilework.inspect.explorer.document import show  # lazily: the compiler loads when something is compiled

    requests, code = requested(args)
    path = show(requests, args.output, not args.no_open)
    print(f"{path}: {len(requests)} kernel{'s' * (len(requests) != 1)}, {path.stat().st_size / 1e6:.1f} MB")
    return code


def requested(args: argparse.Namespace) -> tuple[list[Any], int]:
    """Return the requests of a page, and the exit code of the program that was run."""
    from tilework.inspect.explorer.document import targets_of  # lazily: as in `run`

    targets = targets_of(args.target)
    if ".py:" in args.source or not args.source.endswith(".py"):
        settings = {name: value for name in ("num_warps", "num_ctas", "num_stages") if (value := getattr(args, name))}
        return [
            named_request(args.source, args.signature, target, settings, not args.no_counters)
            for target in targets or targets_of("cuda:90")
        ], 0
    return watched_requests(args, targets)


def named_request(named: str, signature: str, target: Any, settings: dict[str, Any], counts: bool) -> Any:
    """Return the request for ``FILE.py:KERNEL`` or for the file of a stage; settings that are parameters of the kernel
    become
    constants."""
    from tilework.aot.find_kernels import load_kernel  # lazily: as in `run`
    from tilework.compiler import ASTSource, IRSource
    from tilework.inspect.compilation import Request
    from tilework.inspect.replay import Launch
    from tilework.tools.compile import called_as, case_of

    if ".py:" not in named:
        check_options(target, settings)
        if not Path(named).is_file():
            raise UsageError(f"there is no file {named}")
        return Request(IRSource(Path(named)), target, settings)
    path, _, name = named.rpartition(":")
    fn = load_kernel(Path(path), name)
    constants = {param.name: settings[param.name] for param in fn.params if param.name in settings}
    options = {name: value for name, value in settings.items() if name not in constants}
    check_options(target, options)
    case = None if signature else case_of(fn)
    if case is None and not signature and not all(param.has_default for param in fn.params):
        help = f"or explore the program that launches it: tilework explore {path}"
        raise UsageError(f"say how {name} is called with --signature, {help}")
    types, fixed, attrs = called_as(fn, signature)
    types, fixed = {**types, **dict.fromkeys(constants, "constexpr")}, {**fixed, **constants}
    launch = None
    if counts and case is not None:
        import numpy as np  # lazily: only arguments need it

        given = {**case.arguments(np.random.default_rng(0)), **fixed}
        values = [given[name] for name in fn.arg_names]
        launch = Launch.of(fn, values, case.grid).copied(kept=[given, case.memory(given)])
    return Request(ASTSource(fn, types, fixed, attrs), target, options, launch)


def check_options(target: Any, options: dict[str, Any]) -> None:
    """Refuse options that the target does not know, before anything is compiled."""
    from tilework.targets.base import find_backend  # lazily: as in `run`

    try:
        find_backend(target).parse_options(options)
    except (AssertionError, KeyError, TypeError, ValueError) as error:
        raise UsageError(str(error.args[0]) if error.args else str(error)) from None


def watched_requests(args: argparse.Namespace, targets: Any) -> tuple[list[Any], int]:
    """Run a program and see which kernels it compiles; those of one that fails on the way are shown, too."""
    from tilework.inspect.explorer.document import NotExplored, watching  # lazily: as in `run`

    program = Program(args.source, tuple(args.arguments), as_triton=args.triton)
    if not program.is_there():
        raise UsageError(f"there is no file {program.name}")
    with watching(keeps_arguments=not args.no_counters) as seen:
        code = program.exit_code("tilework explore: interrupted; this is what was seen until then")
    if args.kernel:
        seen.kernels = {key: found for key, found in seen.kernels.items() if found[0].name == args.kernel}
    if not seen.kernels:
        named = f" called {args.kernel}" if args.kernel else ""
        help = "does it launch one in this process?"
        if knobs.runtime.interpret:
            help = "TRITON_INTERPRET runs kernels as Python"
        elif code:
            help = "the program failed before its first launch"
        raise NotExplored(f"{program.name} has compiled no kernel{named}: {help}")
    if len(seen.kernels) > args.most:
        print(
            f"{len(seen.kernels)} kernels: the {args.most} that were launched last are shown; --most shows more",
            file=sys.stderr,
        )
    return seen.requests(targets, args.most), code
