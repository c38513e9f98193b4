"""Many processes store and load the same cache entries while one after the other is killed.

    python -m benchmarks.cache_stress --processes 8 --seconds 60 --entries 50 --kill-every 1

Each process picks an entry at random, loads it, compares every byte, and stores it when it is missing (and now and then
when it is not; entries with odd numbers get other content each time, so that they are replaced). A killed process is
replaced by a new one. The run passes if no process saw an error or a warning and if at the end every entry verifies.
With `--max-size` a bound is set that evicts all the time.
"""

import argparse
import hashlib
import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tilework import knobs
from tilework.runtime.kernel_cache import eviction as cache_evict
from tilework.runtime.kernel_cache.entry import SCRATCH, EntryStore
from tilework.runtime.kernel_cache.managers import load_entry, store_entry

SIZES = {"source": 2000, "ttir": 4000, "ttgir": 9000, "ptx": 20000, "json": 1500}
COUNTS = ("loads", "misses", "stores")


def key_of(number: int) -> str:
    return hashlib.sha256(f"entry {number}".encode()).hexdigest()


def content(number: int, variant: int) -> dict[str, bytes]:
    """The files of an entry; all of them depend on the variant, so that a mixture is seen."""
    line = f"entry {number} variant {variant}\n".encode()
    files = {f"kernel.{kind}": (line * (size // len(line) + 1))[:size] for kind, size in SIZES.items()}
    return {**files, "kernel.json": json.dumps({"number": number, "variant": variant}).encode()}


def work(arguments: argparse.Namespace, counts: Any, position: int, problems: str) -> None:
    """Load and store until the time is over; what goes wrong is written to a file."""
    warnings.simplefilter("error")
    cache_evict.GRACE = arguments.grace
    choose = random.Random(os.urandom(8))
    try:
        while time.time() < arguments.end:
            number = choose.randrange(arguments.entries)
            files = load_entry(key_of(number), "kernel")
            counts[position] += 1
            if files is not None:
                variant = json.loads(files["kernel.json"])["variant"]
                assert files == content(number, variant), f"entry {number} is a mixture"
            if files is None or choose.random() < arguments.stores:
                counts[position + 1] += files is None
                counts[position + 2] += 1
                paths = store_entry(key_of(number), "kernel", content(number, number % 2 * choose.randrange(1000)))
                assert len(paths) == len(SIZES), "the entry was not written"
    except BaseException:
        Path(problems, str(os.getpid())).write_text(traceback.format_exc())
        raise


def stress(arguments: argparse.Namespace) -> int:
    """Run, report, and check; the exit code."""
    knobs.cache.dir = os.path.join(arguments.dir, "cache")
    knobs.cache.max_size = arguments.max_size
    problems = os.path.join(arguments.dir, "problems")
    os.mkdir(problems)
    context = multiprocessing.get_context("fork")
    counts = context.Array("Q", len(COUNTS) * arguments.processes, lock=False)
    arguments.end = time.time() + arguments.seconds

    def start(index: int) -> Any:
        process = context.Process(target=work, args=(arguments, counts, index * len(COUNTS), problems))
        process.start()
        return process

    workers = [start(index) for index in range(arguments.processes)]
    killed = 0
    while time.time() < arguments.end - arguments.kill_every:
        time.sleep(arguments.kill_every)
        victim = killed % arguments.processes
        os.kill(workers[victim].pid, signal.SIGKILL)
        workers[victim].join()
        workers[victim] = start(victim)
        killed += 1
    for worker in workers:
        worker.join()
    return report(arguments, counts, killed, problems)


def report(arguments: argparse.Namespace, counts: Any, killed: int, problems: str) -> int:
    """Print what happened and what is left; 0 if all is well."""
    store = EntryStore(knobs.cache.dir)
    entries = cache_evict.entries_of(store)
    bad = [problem for entry in entries for problem in cache_evict.verify(store, entry)]
    missing = 0 if arguments.max_size else arguments.entries - len(entries)
    errors = [Path(problems, name).read_text() for name in sorted(os.listdir(problems))]
    left = len(os.listdir(os.path.join(store.root, SCRATCH)))
    totals = {name: sum(counts[index :: len(COUNTS)]) for index, name in enumerate(COUNTS)}
    done = ", ".join(f"{count} {name}" for name, count in totals.items())
    print(f"{arguments.processes} processes, {arguments.seconds:g} s, {killed} killed: {done}")
    print(f"{len(entries)} entries, {len(bad)} damaged, {missing} missing; {len(errors)} processes with an error")
    print(f"{left} unfinished folders of killed writers, {cache_evict.remove_stale(store, age=0)} of them cleared up")
    print("\n".join([*bad, *errors]), end="" if not bad and not errors else "\n")
    return int(bool(bad or missing or errors))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--processes", type=int, default=8)
    add("--seconds", type=float, default=60.0)
    add("--entries", type=int, default=50)
    add("--kill-every", type=float, default=1.0, metavar="SECONDS")
    add("--stores", type=float, default=0.2, metavar="FRACTION", help="how many loads are followed by a store anyway")
    add("--max-size", type=int, default=0, metavar="BYTES", help="the bound of the cache; 0 is none")
    add("--grace", type=float, default=cache_evict.GRACE, metavar="SECONDS", help="how long a new entry is safe")
    add("--dir", default=None, help="where to work; a temporary folder by default")
    arguments = parser.parse_args(argv)
    if arguments.dir is not None:
        return stress(arguments)
    with tempfile.TemporaryDirectory() as arguments.dir:
        return stress(arguments)


if __name__ == "__main__":
    sys.exit(main())
