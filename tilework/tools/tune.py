"""Run a program, tune every kernel that it launches, and keep the results: later runs of it find them and tune nothing.

    tilework tune train.py --epochs 1                    here, with worker processes
    tilework tune --triton train.py                      a program that says `import triton`
    tilework tune --workers ray://head:10001 train.py    on the GPUs of a Ray cluster (pip install tilework[ray])

On a cluster the program runs once per GPU (`--parts` says otherwise), and each run measures its part of the
configurations of every kernel. The folder of the program is sent along; whatever else it imports must be there, and the
same tilework. Results belong to the kind of GPU, the kernel's source and the versions of the tools; a changed kernel is
tuned again.
"""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilework import knobs
from tilework.errors import UsageError
from tilework.runtime.kernel_cache.entry import EntryStore
from tilework.runtime.kernel_cache.key import file_stem, triton_key
from tilework.runtime.tuning.results import SAVED, TIMING, decode_timing, has_failed, order
from tilework.tools.program import Program
from tilework.tools.program import add_arguments as add_program

FAILURE = 2
TAIL = 4000  # characters of what a failed program printed

Files = dict[str, str]  # texts by their paths below the cache folder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `tilework tune`."""
    add = parser.add_argument
    add("--workers", default=None, metavar="ADDRESS", help="a Ray cluster: ray://HOST:PORT, auto, or local")
    add("--parts", type=int, default=None, metavar="N", help="with --workers: how many runs share the measuring")
    add_program(parser, modules=False)


def run(args: argparse.Namespace) -> int:
    """Execute the command; the exit code is that of the program."""
    program = Program.of(args)
    store = EntryStore(knobs.cache.dir)
    before = saved(store)
    code = tune_on_cluster(args, store) if args.workers else run_program(program, {"TILEWORK_SAVE_TUNING": "1"})
    print(report(store, before))
    return code


def run_program(program: Program, variables: Mapping[str, str], **settings: Any) -> int:
    """Run a program, with more variables; its exit code."""
    environment = {**knobs.environment_without(()), **variables}
    return subprocess.run(program.command(), env=environment, check=False, **settings).returncode


def saved(store: EntryStore) -> dict[Path, tuple[int, int]]:
    """The files with saved results, with inode and modification time to detect replaced ones."""
    stats = {path: path.stat() for path in Path(store.root).glob(f"*/*.{SAVED}.json")}
    return {path: (found.st_ino, found.st_mtime_ns) for path, found in stats.items()}


def report(store: EntryStore, before: Mapping[Path, tuple[int, int]]) -> str:
    """One line per kernel and tuning key whose results are new."""
    lines = sorted(line_of(path) for path, found in saved(store).items() if before.get(path) != found)
    return "\n".join(lines or ["nothing new was tuned"])


def line_of(path: Path) -> str:
    """``matmul (1024, 'fp16'): 0.041 ms with {'BLOCK': 128, ...}, of 12 configurations``"""
    data = json.loads(path.read_text(encoding="utf-8"))
    timings = {text: decode_timing(value) for text, value in data["timings"].items()}
    best = min(timings, key=lambda text: order(timings[text]))
    failed = sum(map(has_failed, timings.values()))
    rest = f", {failed} of which cannot run" if failed else ""
    time = f"{order(timings[best])[0]:.4g} ms"
    return f"{data['kernel']} {data['key']}: {time} with {best}, of {len(timings)} configurations{rest}"


# ---- on a cluster


def tune_on_cluster(args: argparse.Namespace, store: EntryStore) -> int:
    """Measure in parts on the machines of a cluster, and save the whole here."""
    try:
        import ray  # an optional dependency, for clusters
    except ImportError:
        raise UsageError("--workers needs Ray: pip install 'tilework[ray]'") from None
    script = Path(args.program).resolve()
    settings = {"runtime_env": {"working_dir": str(script.parent)}, "log_to_driver": False, "logging_level": "ERROR"}
    try:
        with ray.init(address=args.workers, **settings):
            gpus = int(ray.cluster_resources().get("GPU", 0))
            parts = args.parts or gpus or len(ray.nodes())
            task = ray.remote(measure_part).options(num_gpus=min(1, gpus), num_cpus=1, scheduling_strategy="SPREAD")
            given = (script.name, args.arguments, args.triton, triton_key())
            done: list[tuple[int, str, Files]] = ray.get(
                [task.remote(*given, f"{part}/{parts}") for part in range(parts)]
            )
    except ConnectionError as error:
        raise UsageError(f"no Ray cluster at {args.workers}: {error}") from None
    parts = len(done)
    for part, (code, text, _) in enumerate(done):
        if code:
            print(f"tilework tune: part {part} of {parts} ended with {code}:\n{text}", file=sys.stderr)
    save(store, {path: text for _, _, files in done for path, text in files.items()})
    return max((code for code, _, _ in done), key=abs, default=0)


def measure_part(
    script: str, arguments: Sequence[str], as_triton: bool, package: str, part: str
) -> tuple[int, str, Files]:
    """On a machine of the cluster: (exit code, the end of what it printed, timings) of a run that measures one part."""
    if triton_key() != package:
        return 1, f"{socket.gethostname()} has another tilework: install the same on all machines", {}
    with tempfile.TemporaryDirectory() as folder:
        log, cache = Path(folder, "log"), Path(folder, "cache")
        variables = {
            "TILEWORK_TUNING_PART": part,
            "TRITON_CACHE_AUTOTUNING": "1",
            "TRITON_CACHE_DIR": str(cache),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }
        program = Program(script, tuple(arguments), as_triton=as_triton)
        with log.open("wb") as output:
            code = run_program(program, variables, stdout=output, stderr=subprocess.STDOUT)
        files = {
            str(path.relative_to(cache)): path.read_text(encoding="utf-8") for path in cache.glob(f"*/*.{TIMING}.json")
        }
        return code, log.read_text(errors="replace")[-TAIL:], files


def save(store: EntryStore, files: Files) -> None:
    """Put timings together and keep them for every later run."""
    whole: dict[str, dict[str, Any]] = {}
    for path, text in files.items():
        data = json.loads(text)
        folder = os.path.dirname(path)
        kept = whole.setdefault(folder, {**data, "timings": {}})
        kept["timings"] |= data["timings"]
    for folder, data in whole.items():
        store.put(folder, f"{file_stem(data['kernel'])}.{SAVED}.json", json.dumps(data, indent=1).encode())
