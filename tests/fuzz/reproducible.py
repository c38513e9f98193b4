"""Generated kernels that promise the same bits: on every device, with any number of warps and threads, bit for bit.

python -m tests.fuzz.reproducible --kernels 500 --jobs 8  what differs as it is found, then how many did what
python -m tests.fuzz.reproducible --seconds 500 --digests FILE          as far as it comes; the same again goes on where
                                                                        it stopped
python -m tests.fuzz.reproducible --part 2/4 --against FILE             a quarter of them, compared with what another
                                                                        machine has written
python -m tests.fuzz.reproducible --setups interpreter cpu  in fewer setups, which are named by how they begin
python -m tests.fuzz.reproducible --seed 17                             one kernel: its source, and where it differs

Kernels that the language refuses to call reproducible (floats in atomics, assembly) do not count, nor do those whose
programs or threads meet in global memory without an order: they promise nothing. Those that write what they also read
mostly run as one program, in which there is an order.
"""

import argparse
import hashlib
import sys
import tempfile
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from tests.differential.elementwise_kernels import N
from tests.differential.elementwise_kernels import random_values as numbers
from tests.differential.everywhere import CHOSEN, SETUPS, in_setups
from tests.fuzz import comparison
from tests.fuzz.comparison import annotated
from tests.fuzz.cpu import kind
from tests.fuzz.gpu import compiled, emulate
from tests.fuzz.kernels import Kernel, generate_kernel
from tests.fuzz.run import load
from tests.fuzz.workers import Lost, results
from tests.targets.gpu_run import flat
from tilework.target import Target

CAPABILITY, WARPS = 80, 4  # every device can run what is generated for it
AMPERE = Target.parse("cuda:80")
EQUAL, DIFFERENT, RACING, REFUSED, LOST = "equal", "different", "racing", "refused", "lost"
PROMISED = (EQUAL, DIFFERENT, LOST)


@dataclass
class Outcome:
    """The outcome of one kernel: one of the words above, why, a digest of its results, and the seconds that each
    device took."""

    kind: str
    why: str = ""
    digest: str = ""
    seconds: dict[str, float] = field(default_factory=dict)


def generated(seed: int) -> Kernel:
    """The kernel of a seed; every fourth one has odd sizes, another fourth Python that Triton does not have."""
    kernel = generate_kernel(seed, CAPABILITY, odd=seed % 4 == 1, about_python=seed % 4 == 3, promises=True)
    return annotated(
        replace(kernel, source=kernel.source.replace("@jit\ndef kernel", "@jit(reproducible=True)\ndef kernel"))
    )


def arguments(kernel: Kernel, seed: int) -> dict[str, Any]:
    """As of any generated kernel; of the floats one in eight is special, or any pattern."""
    random, values = np.random.default_rng(seed), comparison.arguments(kernel, seed)
    for name, dtype in kernel.inputs.items():
        if dtype.is_float and seed % 3:
            size = values[name].size
            special = np.concatenate([numbers(values[name].dtype, random) for _ in range(-(-size // N))])[:size]
            values[name] = np.where(random.random(size) < 0.125, special, values[name])
    return values


def grid_of(kernel: Kernel) -> tuple[int, ...]:
    """One program where two would meet in arrays that are read and written, most times."""
    shares = any(name.startswith("io_") for name in kernel.inputs)
    return (1,) if shares and kernel.seed % 8 else (2,)


def outcome_of(seed: int, folder: Path, setups: Sequence[str] = CHOSEN) -> Outcome:
    """Compare the results of a kernel on all devices, if they are guaranteed to be equal."""
    kernel, seconds, found = generated(seed), {}, None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = time.perf_counter()
        try:
            function = load(kernel, folder)
            for setup, arrays in in_setups(function, arguments(kernel, seed), {}, grid_of(kernel), setups):
                seconds[setup], before = time.perf_counter() - before, time.perf_counter()
                found = found or digest(arrays)
        except Exception as error:
            text = str(error).strip() or type(error).__name__
            if "reproducible" in text:
                return Outcome(REFUSED, text.splitlines()[-1], seconds=seconds)
            is_race = grid_of(kernel) != (1,) and ("nothing orders the two" in text or meets(kernel, folder))
            return Outcome(RACING if is_race else DIFFERENT, f"{type(error).__name__}: {text}", seconds=seconds)
    return Outcome(EQUAL, digest=found or "", seconds=seconds)


def meets(kernel: Kernel, folder: Path) -> bool:
    """Return True if programs race in global memory."""
    text = compiled(kernel, folder, WARPS, AMPERE)
    return bool(emulate(kernel, text, arguments(kernel, kernel.seed), WARPS, AMPERE))


def digest(arrays: Mapping[str, Any]) -> str:
    """8 bytes of all numbers in arrays, by name; addresses are none."""
    summary = hashlib.sha256()
    for name in sorted(arrays):
        for array in flat(arrays[name]):
            summary.update(f"{name} {array.dtype} {array.shape} ".encode())
            summary.update(np.ascontiguousarray(array).tobytes())
    return summary.hexdigest()[:16]


def fingerprint(text: str) -> str:
    """Of a source: digests of another one say nothing about this."""
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def read_digests(path: Path) -> dict[int, str]:
    """Read the output of `--digests`: the digest of each kernel that is still generated unchanged, or why there is
    none."""
    if not path.exists():
        return {}
    lines = [line.split() for line in path.read_text().splitlines()]
    return {int(seed): found for seed, source, found in lines if source == fingerprint(generated(int(seed)).source)}


def outcome(seed: int, setups: Sequence[str]) -> Outcome:
    """`outcome_of`, in a process of its own."""
    with tempfile.TemporaryDirectory() as name:
        return outcome_of(seed, Path(name), setups)


class Tally:
    """The number of kernels with each outcome."""

    def __init__(self, wanted: int, against: Mapping[int, str]) -> None:
        self.wanted, self.against, self.start = wanted, against, time.monotonic()
        self.kinds: Counter[str] = Counter()
        self.reasons: dict[str, list[int]] = defaultdict(list)
        self.seconds: Counter[str] = Counter()
        self.compared = 0

    @property
    def promised(self) -> int:
        return sum(self.kinds[name] for name in PROMISED)

    def seeds(self, first: int, part: int, parts: int, end: float) -> Iterator[int]:
        """Seeds until enough kernels have made a promise."""
        for seed in count(first + part - 1, parts):
            if self.promised >= self.wanted or time.monotonic() > end:
                return
            yield seed

    def add(self, seed: int, found: Outcome) -> None:
        wanted = self.against.get(seed)
        if wanted is not None and found.kind == EQUAL and wanted not in (RACING, REFUSED):
            self.compared += 1
            if wanted != found.digest:
                found.kind, found.why = DIFFERENT, f"elsewhere: {wanted}, here: {found.digest}"
        self.kinds[found.kind] += 1
        self.seconds.update(found.seconds)
        if found.kind in (DIFFERENT, LOST):
            print(f"seed {seed}: {found.why}"[:600], flush=True)
        if found.kind in (DIFFERENT, LOST, REFUSED):
            self.reasons[f"{found.kind}: {kind(found.why)}"].append(seed)
        if self.promised % 25 == 0 and found.kind in PROMISED:
            print(f"{self} in {time.monotonic() - self.start:.0f} s", flush=True)

    def __str__(self) -> str:
        others = ", ".join(f"{self.kinds[name]} {name}" for name in (EQUAL, DIFFERENT, LOST))
        without = ", ".join(f"{self.kinds[name]} {name}" for name in (RACING, REFUSED))
        return f"{self.promised} promised: {others}; without a promise: {without}"


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--kernels", type=int, default=500, help="how many that make a promise, in all parts together")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--part", default="1/1", help="2/4: the second of four parts")
    parser.add_argument("--seconds", type=float, default=inf, help="after which all is over")
    parser.add_argument("--limit", type=float, default=300, help="seconds for one kernel")
    parser.add_argument("--setups", nargs="+", default=[""], help="how their names begin")
    parser.add_argument("--digests", type=Path, help="a file for the digests of the results; what it has is not run")
    parser.add_argument("--against", type=Path, help="such a file of another machine")
    parser.add_argument("--seed", type=int)
    args = parser.parse_args(words)
    setups = tuple(setup for setup in SETUPS if setup.startswith(tuple(args.setups)))
    if args.seed is not None:
        source = generated(args.seed).source
        print(source[source.index("@jit(reproducible=True)\ndef kernel") :])
        found = outcome(args.seed, setups)
        print(f"{found.kind} in {len(setups)} setups", found.why, found.digest, found.seconds, sep="\n")
        return int(found.kind == DIFFERENT)
    part, parts = map(int, args.part.split("/"))
    end = time.monotonic() + args.seconds
    done = read_digests(args.digests) if args.digests else {}
    tally = Tally(-(-args.kernels // parts), read_digests(args.against) if args.against else {})
    for seed, word in done.items():
        tally.add(seed, Outcome(word) if word in (RACING, REFUSED) else Outcome(EQUAL, digest=word))
    seeds = (seed for seed in tally.seeds(args.first, part, parts, end) if seed not in done)
    for seed, found in results(partial(outcome, setups=setups), seeds, args.jobs, args.limit, end):
        made = Outcome(LOST, found.why) if isinstance(found, Lost) else found
        tally.add(seed, made)
        if args.digests and made.kind not in (DIFFERENT, LOST):
            with args.digests.open("a") as file:
                file.write(f"{seed} {fingerprint(generated(seed).source)} {made.digest or made.kind}\n")
    for name, seeds in sorted(tally.reasons.items(), key=lambda item: -len(item[1])):
        print(f"{len(seeds):5}  {name}   seeds {', '.join(map(str, seeds[:8]))}")
    print("seconds:", ", ".join(f"{setup} {seconds:.0f}" for setup, seconds in tally.seconds.items()))
    print(f"{len(setups)} setups, {tally.compared} compared with another machine; {tally}")
    return int(tally.kinds[DIFFERENT] + tally.kinds[LOST] > 0)


if __name__ == "__main__":
    sys.exit(main())
