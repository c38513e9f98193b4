"""Many processes compile and launch the same kernels against one empty cache, while one of them is killed every second.

    python -m benchmarks.launch_stress --processes 8 --seconds 60 --kernels 50

At the end every entry of the cache must verify, and no process may have seen an error. The whole of it runs on a copy
of the package, made first: the sources are part of every cache key, so that sources can be edited during a
minute. Prints one line of counts: entries, verified, errors, launches, killed.
"""

import argparse
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

COPIED = "TILEWORK_STRESS_COPY"  # set in the process that runs on the copy
PACKAGES = ("tilework", "benchmarks")


def run_on_a_copy() -> int:
    """Start this program again with the sources as they are now."""
    import tilework

    root = Path(tilework.__file__).parent.parent
    with tempfile.TemporaryDirectory(prefix="tilework-stress-") as top:
        for package in PACKAGES:
            shutil.copytree(
                root / package, Path(top) / package, ignore=shutil.ignore_patterns("__pycache__", "results")
            )
        environment = {**os.environ, COPIED: top, "PYTHONPATH": top}
        command = [sys.executable, "-m", "benchmarks.launch_stress", *sys.argv[1:]]
        return subprocess.run(command, cwd=top, env=environment).returncode


def work(folder: str, kernels: int, seconds: float, seed: int, launches: Any, errors: Any) -> None:
    """Launch random kernels, forgetting the ones in memory each time, and check every result."""
    import numpy as np

    from benchmarks.stress_kernel import scale
    from tilework import knobs

    knobs.cache.dir = folder
    rng = random.Random(seed)
    x = np.arange(64, dtype=np.float32)
    out = np.empty_like(x)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        factor = rng.randrange(2, 2 + kernels)
        try:
            scale.device_caches.clear()
            scale[(2,)](x, out, 64, FACTOR=factor, BLOCK=32)
            if not (out == x * factor).all():
                raise AssertionError(f"factor {factor} gave {out[:4]}")
        except Exception as error:
            errors.put(f"{type(error).__name__}: {error}")
            return
        with launches.get_lock():
            launches.value += 1


def start(
    context: Any, folder: str, options: argparse.Namespace, seed: int, launches: Any, errors: Any
) -> SpawnProcess:
    process = context.Process(target=work, args=(folder, options.kernels, options.seconds, seed, launches, errors))
    process.start()
    return process


def stress(options: argparse.Namespace, folder: str) -> tuple[int, int, list[str]]:
    """(launches, killed, errors) of the whole run."""
    context = multiprocessing.get_context("spawn")
    errors = context.Queue()
    # each process counts for itself: a killed one may hold a shared lock for ever
    killed = launches = 0
    counters = [context.Value("q", 0) for _ in range(options.processes)]
    running = [start(context, folder, options, seed, counters[seed], errors) for seed in range(options.processes)]
    end, seed = time.monotonic() + options.seconds, options.processes
    while time.monotonic() < end:
        time.sleep(1)
        victim = random.randrange(options.processes)
        if (pid := running[victim].pid) is not None and running[victim].is_alive():
            os.kill(pid, signal.SIGKILL)
            killed += 1
            launches += counters[victim].get_obj().value
        running[victim].join()
        counters[victim] = context.Value("q", 0)
        running[victim] = start(context, folder, options, seed, counters[victim], errors)
        seed += 1
    for process in running:
        process.join(timeout=options.seconds + 60)
    launches += sum(counter.get_obj().value for counter in counters)
    seen = []
    while not errors.empty():
        seen.append(errors.get())
    return launches, killed, seen


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--kernels", type=int, default=50)
    options = parser.parse_args()
    if COPIED not in os.environ:
        return run_on_a_copy()
    from tilework.runtime.kernel_cache.entry import EntryStore
    from tilework.runtime.kernel_cache.eviction import entries_of, verify

    with tempfile.TemporaryDirectory(prefix="tilework-stress-") as top:
        folder = str(Path(top) / "cache")
        launches, killed, seen = stress(options, folder)
        store = EntryStore(folder)
        entries = entries_of(store)
        damage = [f"{entry.title}: {problems[0]}" for entry in entries if (problems := verify(store, entry))]
        kernels = len(list(Path(folder).glob("*/scale.json")))
    print(
        f"{len(entries)} entries ({kernels} of the {options.kernels} kernels), {len(entries) - len(damage)} verified,"
        f" {len(seen)} errors, {launches} launches, {killed} killed"
        f" [{options.processes} processes, {options.seconds:.0f} s]"
    )
    for text in (seen + damage)[:5]:
        print("  ", text)
    return 0 if not damage and not seen and kernels == options.kernels else 1


if __name__ == "__main__":
    sys.exit(main())
