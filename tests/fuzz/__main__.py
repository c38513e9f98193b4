"""Generated kernels with fresh seeds on every device, for so many minutes; each failure becomes a test file.

make fuzz MINUTES=10                                      everything, one process per core
python -m tests.fuzz --minutes 10 --jobs 14 --only cuda   the devices whose names begin so; results go to --out DIR
python -m tests.fuzz --device gpu --kernels 1000          on the GPU of this machine, which no other run takes
python -m tests.fuzz --seed 17 --only cuda:90             one kernel: its source, and what came of it

DIR has `results.jsonl` (one line per kernel), `summary.txt` (rewritten as it goes on) and the tests, reduced, a few for
each kind of failure. The same seed gives the same kernel as long as the generators stay as they are.
The exit code is 1 if anything differs, crashes or hangs.
"""

import argparse
import os
import secrets
import sys
import time
from collections.abc import Sequence
from math import inf
from pathlib import Path

from tests.fuzz.campaign import SHARES, Campaign
from tests.fuzz.devices import DEVICES, FAILURES, GENERATORS, generated
from tests.fuzz.failures import ROOT
from tests.fuzz.reduction import outcome_in_folder


def show(seed: int, devices: Sequence[str]) -> int:
    """One kernel on some devices."""
    bad = 0
    for device in devices:
        generator, kernel = generated(seed, device)
        print(
            kernel.source[kernel.source.index("@jit\ndef kernel") :],
            f"generator: {generator}, {kernel.numbers}",
            sep="\n",
        )
        found = outcome_in_folder(kernel, device)
        print(f"{device}: {found.kind}", found.why, sep="\n")
        bad += found.kind in FAILURES
    return int(bad > 0)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=inf, help="after which all is over")
    parser.add_argument("--kernels", type=float, default=inf, help="how many kernels at most")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", nargs="+", default=[""], help="how the names of the devices begin")
    parser.add_argument("--device", choices=["gpu"], help="the GPU of this machine, and nothing else")
    parser.add_argument("--generators", nargs="+", choices=sorted(GENERATORS), help="only these")
    parser.add_argument("--aliases", action="store_true", help="half of the kernels get arrays that overlap")
    parser.add_argument("--first", type=int, help="the first seed; otherwise a random one")
    parser.add_argument("--seed", type=int, help="one kernel")
    parser.add_argument("--once", action="store_true", help="end at the first failure")
    parser.add_argument("--out", type=Path, default=ROOT / "fuzz-failures")
    args = parser.parse_args(words)
    devices = [args.device] if args.device else [name for name in SHARES if name.startswith(tuple(args.only))]
    if not devices:
        parser.error(f"no device is called {' or '.join(args.only)}; there are {', '.join(DEVICES)}")
    if args.generators:
        os.environ["FUZZ_GENERATORS"] = ",".join(args.generators)  # which the processes inherit
    if args.aliases:
        os.environ["FUZZ_ALIASES"] = "1"
    if args.seed is not None:
        return show(args.seed, devices)
    if args.minutes == args.kernels == inf:
        parser.error("say how long: --minutes or --kernels")
    first = args.first if args.first is not None else secrets.randbelow(1 << 40)
    campaign = Campaign(devices, first, args.kernels, time.monotonic() + 60 * args.minutes, args.out)
    campaign.run(args.jobs, args.once)
    print(campaign.summary())
    return int(any(counts[kind] for counts in campaign.outcomes.values() for kind in FAILURES))


if __name__ == "__main__":
    sys.exit(main())
