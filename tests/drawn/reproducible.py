"""Drawn kernels that promise the same bits: on every device, with any number of warps and threads, bit for bit.

python -m tests.drawn.reproducible --kernels 500      progress, then the failures, the most frequent kind first
python -m tests.drawn.reproducible --seed 17          one kernel: its source, and where it differs

Kernels that the language refuses to call reproducible (floats in atomics, assembly) do not count, nor do those whose programs or threads
meet in global memory without an order: they promise nothing.
"""

import argparse
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Sequence
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


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kernels", type=int, default=500, help="how many that keep a promise")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int)
    args = parser.parse_args(words)
    start, places = time.perf_counter(), tuple(PLACES)
    failures: dict[str, list[int]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if args.seed is not None:
            source = draw_kernel(args.seed, CAPABILITY).source
            print(source[source.index("@jit\ndef kernel") :])
            problem = problem_of(args.seed, folder, places)
            print(problem or f"the same bits in {len(places)} places")
            return int(problem is not None)
        counted = without = 0
        seed = args.first
        while counted < args.kernels:
            problem = problem_of(seed, folder, places)
            if problem is not None and problem.startswith(NO_PROMISE):
                without += 1
            else:
                counted += 1
                if problem is not None:
                    failures[kind(problem)].append(seed)
                    print(f"seed {seed}: {problem}"[:400], flush=True)
                if counted % 25 == 0 or counted == args.kernels:
                    bad, took = sum(map(len, failures.values())), time.perf_counter() - start
                    print(
                        f"{counted} kernels in {len(places)} places, {bad} differ, {without} without a promise, {took:.0f} s",
                        flush=True,
                    )
            seed += 1
    for name, seeds in sorted(failures.items(), key=lambda item: -len(item[1])):
        print(f"{len(seeds):5}  {name}   seeds {', '.join(map(str, seeds[:8]))}")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
