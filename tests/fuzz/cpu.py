"""Generated kernels as machine code of this host, against the interpreter.

python -m tests.fuzz.cpu --kernels 2000 --jobs 2      progress, then the failures, the most frequent kind first
python -m tests.fuzz.cpu --seed 17                    one kernel: its source, and what is wrong with it

Multiplications and additions are not fused here, so that floats differ only by what elementary functions and the order
of sums allow; `rounding.py` says how much that is. Every third kernel gets arrays that are aligned to their elements
and no further. A kernel that kills its process is a failure like any other.
"""

import argparse
import re
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from tests.differential.devices import NATIVE, machine_code
from tests.fuzz.comparison import arguments, interpreted, problem_with
from tests.fuzz.kernels import CPU, Kernel, generate_kernel
from tests.fuzz.run import compile_generated
from tests.fuzz.workers import Lost, results
from tilework import knobs
from tilework.targets.cpu.run import pool as driver
from tilework.targets.cpu.target import HostTarget


def compare(kernel: Kernel, folder: Path) -> str | None:
    """Describe the difference of the machine code's results, or return None."""
    is_shifted = kernel.seed % 3 == 1
    pointers = (
        () if is_shifted else tuple(name for name in kernel.divisible if name in kernel.inputs)
    )  # numbers are not
    module = compile_generated(replace(kernel, divisible=pointers), folder)
    code, interface, pack = machine_code(module, tuple(kernel.signature.values()), fuses=False)
    NATIVE.clear()
    compiled = arguments(kernel, kernel.seed)
    if is_shifted:
        compiled |= {name: np.concatenate((compiled[name][:1], compiled[name]))[1:] for name in kernel.inputs}
    with knobs.runtime.scope():
        knobs.runtime.num_threads = 1  # programs that add to the same address do it in order
        driver.run(code, interface, pack(list(compiled.values())), (*kernel.grid, 1, 1))
    return problem_with(kernel, folder, compiled, interpreted(kernel, folder))


def problem_of(seed: int, folder: Path, **about: bool) -> str | None:
    """`compare` of one seed; errors of the compiler are problems too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return compare(generate_kernel(seed, CPU, **about), folder)
        except Exception as error:
            return f"{type(error).__name__}: {str(error).strip().splitlines()[-1]}\n{error}"


def narrow(vectors: int) -> None:
    """Make code for a machine with fewer features from now on: vectors of 32 bytes, or of 16 that have no masks and no
    fused sums."""
    host = HostTarget.detect()
    found = {name for name in host.features if not name.startswith("avx512")}
    if vectors < 32:
        found = {name for name in found if not name.startswith(("avx", "fma", "f16c"))}
    machine = HostTarget.of(host.arch, host.cpu, found, host.cores)
    HostTarget.detect = staticmethod(lambda: machine)


def outcome(seed: int, vectors: int = 0, **about: bool) -> str | None:
    """`problem_of`, in a process of its own."""
    if vectors:
        narrow(vectors)
    with tempfile.TemporaryDirectory() as folder:
        return problem_of(seed, Path(folder), **about)


def kind(problem: str) -> str:
    """Problems that are probably one: without numbers, names of values and what stands on further lines."""
    return re.sub(r"[%@]\S+|-?\d[\d.e+-]*|nan|inf|True|False", "_", problem.splitlines()[0])[:110]


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kernels", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--vectors", type=int, default=0, help="bytes of the vectors of a smaller machine: 32 or 16")
    parser.add_argument("--odd", action="store_true", help="sizes that are no powers of two")
    parser.add_argument(
        "--loops", action="store_true", help="mostly loops, with all kinds of bounds and carried values"
    )
    parser.add_argument(
        "--hashes", action="store_true", help="integers that overflow, in addresses, masks and divisors"
    )
    parser.add_argument("--python", action="store_true", help="mostly Python that Triton does not have")
    parser.add_argument("--strides", action="store_true", help="tiles with strides of any sign, masks at every edge")
    parser.add_argument("--tiles", action="store_true", help="odd tiles of which each has many uses")
    args = parser.parse_args(words)
    about = {
        "about_tiles": args.tiles,
        "odd": args.odd,
        "about_loops": args.loops,
        "about_hashes": args.hashes,
        "about_strides": args.strides,
        "about_python": args.python,
    }
    if args.seed is not None:
        if args.vectors:
            narrow(args.vectors)
        source = generate_kernel(args.seed, CPU, **about).source
        print(source[source.index("@jit\ndef kernel") :])
        with tempfile.TemporaryDirectory() as folder:
            problem = problem_of(args.seed, Path(folder), **about)
        print(problem or "no difference")
        return int(problem is not None)
    start = time.perf_counter()
    failures: dict[str, list[tuple[int, str]]] = defaultdict(list)
    seeds = range(args.first, args.first + args.kernels)
    for count, (seed, found) in enumerate(
        results(partial(outcome, vectors=args.vectors, **about), seeds, args.jobs), 1
    ):
        problem = found.why if isinstance(found, Lost) else found
        if problem is not None:
            failures[kind(problem)].append((seed, problem))
            print(f"seed {seed}: {problem}"[:400], flush=True)
        if count % 50 == 0 or count == args.kernels:
            bad = sum(map(len, failures.values()))
            print(f"{count}/{args.kernels} kernels, {bad} failures, {time.perf_counter() - start:.0f} s", flush=True)
    for name, found in sorted(failures.items(), key=lambda item: -len(item[1])):
        print(f"{len(found):5}  {name}   seeds {', '.join(str(seed) for seed, _ in found[:8])}")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
