"""Fill the cache of compiled kernels with what a program needs, before it starts.

    TILEWORK_RECORD=app.jsonl python app.py      writes down what the program uses
    tilework warm app.jsonl                      compiles it into the cache, on this machine or on another one
    python app.py                                compiles nothing

What the cache has already is left as it is. With a shared cache its machines have it then, too: one machine that needs
no GPU (`--target cuda:90`) can fill it for all. Choices of autotuners are not made here: `tilework tune` makes them, or
a bundle (`tilework precompile`) brings them. Kernels that cannot be compiled are listed at the end, with the reasons,
and the exit code is 1.
"""

import argparse
import sys
from textwrap import indent

from tilework import knobs
from tilework.errors import BundleError, UsageError
from tilework.inspect.findings import counted
from tilework.runtime.bundle.serving import LEVELS, parse_target, target_name
from tilework.runtime.compile.compiler_presence import require_compiler
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.progress import Progress
from tilework.runtime.recording.manifest import read_manifest, record_text
from tilework.target import UnknownTarget
from tilework.targets.cpu.target import available_cores

MISTAKES = (BundleError, UnknownTarget)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("manifests", nargs="+", metavar="manifest", help="files that TILEWORK_RECORD has written")
    add(
        "--target",
        "-t",
        action="append",
        default=[],
        help="cuda:90, hip:gfx942, cpu; can be given several times; default: the device of this machine",
    )
    add("--dir", default=None, metavar="DIR", help="the cache directory; TRITON_CACHE_DIR by default")
    add("--kernel", action="append", default=[], metavar="NAME", help="only kernels of that name")
    add("--jobs", "-j", type=int, default=available_cores(), help="processes that compile")
    add("--script", action="append", default=[], help="where a recorded script is now")
    add("--path", action="append", default=[], help="a folder to import modules from")


def run(args: argparse.Namespace) -> int:
    require_compiler()
    from tilework.aot.find_kernels import Finder  # lazily: the compiler may not be there
    from tilework.aot.precompile import Job
    from tilework.aot.warm import warm

    if args.dir is not None:
        knobs.cache.dir = args.dir
    here = driver.active.get_current_target()
    targets = list(dict.fromkeys(parse_target(text) for text in args.target)) or [here]
    if others := [target for target in targets if target.backend == "cpu" and target.arch in LEVELS]:
        name = target_name(vars(others[0]))
        raise UsageError(f"--target {name}: launches on a CPU use code for that very one; run this there, for cpu")
    records = [record for record in read_manifest(args.manifests) if record["record"] == "kernel"]
    if not records:
        raise UsageError(f"{', '.join(args.manifests)}: there is no kernel in it")
    if args.kernel:
        records = [record for record in records if is_named(record["kernel"], args.kernel)]
        if not records:
            raise UsageError(f"{', '.join(args.manifests)}: there is no kernel {' or '.join(args.kernel)} in it")
    with Progress("warming", len(records) * len(targets), 0, delay=0) as progress:

        def step(job: Job, error: str | None) -> None:
            progress.step()

        done = warm(records, targets, Finder(args.script, args.path), max(1, args.jobs), step)
    for note in done.notes:
        print(f"note: {note}", file=sys.stderr)
    for job, error in done.failures:
        title = f"{record_text(job.record)} for {target_name(vars(job.target))}"
        print(f"error: {title}\n{indent(error, '    ')}", file=sys.stderr)
    failed = f", {len(done.failures)} failed" if done.failures else ""
    names = ", ".join(target_name(vars(target)) for target in targets)
    print(
        f"{knobs.cache.dir}: {counted(done.compiled, 'specialisation')} compiled for {names},"
        f" {done.present} already there{failed}"
    )
    return 1 if done.failures else 0


def is_named(kernel: str, names: list[str]) -> bool:
    """Return True for ``app:Model.add`` if `names` has it, or its last part."""
    return kernel in names or kernel.rpartition(":")[2].rpartition(".")[2] in names
