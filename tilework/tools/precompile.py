"""Compile the kernels that a program needs ahead of time, for any machine, into one file.

    TILEWORK_RECORD=app.jsonl python app.py                                  writes down what the program uses
    tilework precompile app.jsonl --target cuda:90 --target cpu:x86-64-v3    compiles it, into app.tilebundle
    TILEWORK_BUNDLE=app.tilebundle TILEWORK_NO_JIT=1 python app.py           is served from it

No GPU is needed. With TILEWORK_BUNDLE_KEY or TILEWORK_BUNDLE_KEY_FILE in the environment, the bundle is signed. If
kernels cannot be compiled, they are listed at the end with the reasons, and the exit code is 1; the bundle contains all
others.
"""

import argparse
import os
import sys
from textwrap import indent

from tilework.errors import BundleError, UsageError
from tilework.inspect.findings import counted
from tilework.runtime.bundle.bundle_file import Counts, write_bundle
from tilework.runtime.bundle.serving import bundle_key, parse_target, target_name
from tilework.runtime.compile.compiler_presence import require_compiler
from tilework.runtime.progress import Progress
from tilework.runtime.recording.manifest import read_manifest, record_text
from tilework.target import UnknownTarget
from tilework.targets.cpu.target import available_cores

MISTAKES = (BundleError, UnknownTarget)

EXTENSION = ".tilebundle"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("manifests", nargs="+", metavar="manifest", help="files written with TILEWORK_RECORD")
    parser.add_argument(
        "--target",
        "-t",
        action="append",
        default=[],
        help="cuda:90, hip:gfx942, cpu (this machine), cpu:x86-64-v3, cpu:armv8-a; can be given several times;"
        " default: cpu",
    )
    parser.add_argument("--output", "-o", help=f"the bundle; default: the name of the manifest, with {EXTENSION}")
    parser.add_argument(
        "--jobs", "-j", type=int, default=available_cores(), help="the number of processes that compile"
    )
    parser.add_argument("--list", action="store_true", help="show what would be compiled, without compiling it")
    parser.add_argument(
        "--ptx", action="store_true", help="also keep the PTX, for GPUs that are newer than the targets"
    )
    parser.add_argument("--script", action="append", default=[], help="the current path of a recorded script")
    parser.add_argument("--path", action="append", default=[], help="a folder to import modules from")


def run(args: argparse.Namespace) -> int:
    require_compiler()
    from tilework.aot.find_kernels import Finder  # lazily: the compiler may not be there
    from tilework.aot.precompile import Job, precompile
    from tilework.aot.trees import specializations

    targets = list(dict.fromkeys(parse_target(text) for text in args.target or ["cpu"]))
    names = ", ".join(target_name(vars(target)) for target in targets)
    records = read_manifest(args.manifests)
    kernels = specializations(records)
    if args.list:
        for record in kernels:
            print(record_text(record))
        print(counted(len(kernels), "specialisation"), "for", names)
        return 0
    if not kernels:
        raise UsageError(f"{', '.join(args.manifests)}: there is no kernel in it")
    if (key := bundle_key()) is not None and not key.can_sign:
        raise BundleError(f"TILEWORK_BUNDLE_KEY is {key.name}, a public key, which cannot sign: set the private one")
    output = args.output or os.path.splitext(args.manifests[0])[0] + EXTENSION
    with Progress("precompiling", len(kernels) * len(targets), 0, delay=0) as progress:

        def step(job: Job, error: str | None) -> None:
            progress.step()

        made = precompile(records, targets, Finder(args.script, args.path), max(1, args.jobs), args.ptx, step)
    for note in made.notes:
        print(f"note: {note}", file=sys.stderr)
    for job, error in made.failures:
        print(
            f"error: {record_text(job.record)} for {target_name(vars(job.target))}\n{indent(error, '    ')}",
            file=sys.stderr,
        )
    digest = write_bundle(output, made.contents, key)
    failed = f", {len(made.failures)} failed" if made.failures else ""
    counts = Counts.of(made.contents.kernels, made.contents.entries)
    print(f"{output}: {counts} for {names}{failed}"
          f", {os.path.getsize(output):,} bytes\ndigest {digest}{' (signed)' if key else ''}")  # fmt: skip
    return 1 if made.failures else 0
