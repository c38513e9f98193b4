"""Many processes compile and launch the same kernels against one empty cache, while one of them is killed every second.

    python -m benchmarks.launch_stress --processes 8 --seconds 60 --kernels 50

At the end every entry of the cache must verify, and no process may have seen an error. Prints one line of counts.
"""

import argparse
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import numpy as np

import tilework
import tilework.language as tl


@tilework.jit
def scale(x_ptr, out_ptr, n, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=mask) * FACTOR, mask=mask)


def work(folder: str, kernels: int, seconds: float, seed: int, launches: Any, errors: Any) -> None:
    """Launch random kernels, forgetting the ones in memory each time, and check every result."""
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


def start(context: Any, folder: str, options: argparse.Namespace, seed: int, launches: Any, errors: Any) -> SpawnProcess:
    process = context.Process(target=work, args=(folder, options.kernels, options.seconds, seed, launches, errors))
    process.start()
    return process


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--kernels", type=int, default=50)
    options = parser.parse_args()
    from tilework.tools.cli import main as command

    context = multiprocessing.get_context("spawn")
    errors = context.Queue()
    # each process counts for itself: a killed one may hold a shared lock for ever
    killed = launches = 0
    with tempfile.TemporaryDirectory() as top:
        folder = str(Path(top) / "cache")
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
        entries = [path for path in Path(folder).iterdir() if path.is_dir() and not path.name.startswith(".")]
        verified = command(["cache", "verify", "--dir", folder])
    print(
        f"{options.processes} processes, {options.seconds:.0f} s: {launches} launches, {killed} killed,"
        f" {len(entries)} entries, verify {'ok' if verified == 0 else 'FAILED'}, {len(seen)} errors"
    )
    for text in seen[:5]:
        print("  ", text)
    return 0 if verified == 0 and not seen and len(entries) == options.kernels else 1


if __name__ == "__main__":
    sys.exit(main())
