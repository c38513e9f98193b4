"""Drawn kernels that promise the same bits: on every device, with any number of warps and threads, bit for bit.

python -m tests.drawn.reproducible --kernels 500 --jobs 8      progress, then the failures, the most frequent kind first
python -m tests.drawn.reproducible --seed 17                   one kernel: its source, and where it differs

Kernels that the language refuses to call reproducible (floats in atomics, assembly) do not count, nor do those whose programs or threads
meet in global memory without an order: they promise nothing.
"""

import argparse
import multiprocessing
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tests.differential.everywhere import CHOSEN, PLACES, everywhere
from tests.differential.test_differential_drawn import GRID, annotated, arguments
from tests.drawn.cpu import kind
from tests.drawn.gpu import MEETING, compiled, emulate
from tests.drawn.kernels import Kernel, draw_kernel
from tests.drawn.run import load
from tilework.target import Target

CAPABILITY, WARPS = 80, 4  # every place can run what is drawn for it
AMPERE = Target.parse("cuda:80")
NO_PROMISE = "no promise"


def problem_of(seed: int, folder: Path, places: Sequence[str] = CHOSEN) -> str | None:
    """Where a kernel differs, None if nowhere; a text that begins with `NO_PROMISE` if it makes none."""
    kernel = annotated(draw_kernel(seed, CAPABILITY))
    function = load(
        replace(kernel, source=kernel.source.replace("@jit\ndef kernel", "@jit(reproducible=True)\ndef kernel")), folder
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            everywhere(function, arguments(kernel, seed), {}, GRID, places)
        except Exception as error:
            text = str(error).strip() or type(error).__name__
            if "reproducible" in text:
                return f"{NO_PROMISE}: {text.splitlines()[-1]}"
            is_race = "nothing orders the two" in text or meets(kernel, folder)
            return f"{NO_PROMISE}: an order" if is_race else f"{type(error).__name__}: {text}"
    return None


def meets(kernel: Kernel, folder: Path) -> bool:
    """Whether programs or threads meet in global memory."""
    if MEETING.search(kernel.source):
        return True
    text = compiled(kernel, folder, WARPS, AMPERE)
    return bool(emulate(kernel, text, arguments(kernel, kernel.seed), WARPS, AMPERE))


def outcome(seed: int) -> tuple[int, str | None]:
    """`problem_of` in all places."""
    with tempfile.TemporaryDirectory() as name:
        return seed, problem_of(seed, Path(name), tuple(PLACES))


def outcomes(first: int, kernels: int, jobs: int) -> Iterator[tuple[int, str | None]]:
    """Of the seeds from `first` on, until so many kernels have made a promise."""
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        while kernels > 0:
            for seed, problem in pool.map(outcome, range(first, first + 4 * jobs), chunksize=1):
                if kernels > 0:
                    kernels -= problem is None or not problem.startswith(NO_PROMISE)
                    yield seed, problem
            first += 4 * jobs


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kernels", type=int, default=500, help="how many that make a promise")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int)
    args = parser.parse_args(words)
    if args.seed is not None:
        source = draw_kernel(args.seed, CAPABILITY).source
        print(source[source.index("@jit\ndef kernel") :])
        _, problem = outcome(args.seed)
        print(problem or f"the same bits in {len(PLACES)} places")
        return int(problem is not None)
    start, counted, without = time.perf_counter(), 0, 0
    failures: dict[str, list[int]] = defaultdict(list)
    for seed, problem in outcomes(args.first, args.kernels, args.jobs):
        if problem is not None and problem.startswith(NO_PROMISE):
            without += 1
            continue
        counted += 1
        if problem is not None:
            failures[kind(problem)].append(seed)
            print(f"seed {seed}: {problem}"[:400], flush=True)
        if counted % 25 == 0 or counted == args.kernels:
            bad, took = sum(map(len, failures.values())), time.perf_counter() - start
            print(
                f"{counted} kernels in {len(PLACES)} places, {bad} differ, {without} without a promise, {took:.0f} s",
                flush=True,
            )
    for name, seeds in sorted(failures.items(), key=lambda item: -len(item[1])):
        print(f"{len(seeds):5}  {name}   seeds {', '.join(map(str, seeds[:8]))}")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
