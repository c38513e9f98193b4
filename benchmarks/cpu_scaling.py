"""The cost of a launch on all cores beside its work: `python -m benchmarks.cpu_scaling --matrices --pool FAN_OUT=2`.

| column | time of a call |
|---|---|
| one | on one thread |
| share | the same divided by the cores: all of them, if nothing were lost |
| warm | on all, one call after another: the threads of the pool look out for work |
| rested | on all, after a pause in which they have fallen asleep, as torch beside it |

The fastest of several turns counts. `--pool NAME=NUMBER` changes a constant of `targets/cpu/run/pool_code.py` for this
run. The rows are those of `benchmarks.cpu`.
"""

import argparse
import time
from collections.abc import Iterator
from itertools import chain

from benchmarks import cpu
from tilework import knobs
from tilework.targets.cpu.run import pool_code
from tilework.targets.cpu.target import HostTarget

TURNS, REST = 7, 0.05  # the BLAS of NumPy looks out for work for 30 ms
LONGEST = 0.1  # seconds on one thread: what takes longer is not measured


def fastest(call: cpu.Call, repeats: int, rest: float) -> float:
    """Milliseconds of one of `repeats` calls."""
    times = []
    for _ in range(TURNS):
        time.sleep(rest)
        times.append(cpu.seconds(call, repeats))
    return min(times) * 1e3


def columns(row: cpu.Row, cores: int) -> Iterator[float | None]:
    row.ours()
    with knobs.runtime.scope():
        knobs.runtime.num_threads = 1
        if (once := cpu.seconds(row.ours, 1)) > LONGEST:
            return
        alone = fastest(row.ours, 1, 0)
    yield alone
    yield alone / cores
    yield fastest(row.ours, max(2, int(0.01 / once)), 0)
    yield fastest(row.ours, 1, REST)
    yield fastest(row.torch, 1, REST) if row.torch is not None else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--matrices", action="store_true", help="only products of matrices")
    parser.add_argument("--pool", default="", help="NAME=NUMBER,...")
    args = parser.parse_args()
    for name, number in (setting.split("=") for setting in args.pool.split(",") if setting):
        assert hasattr(pool_code, name), f"the pool has no {name}"
        setattr(pool_code, name, int(number))
    cores = HostTarget.detect().cores
    print(f"{args.pool:26}" + "".join(f"{name:>9}" for name in ("one", "share", "warm", "rested", "torch")) + "  ms")
    for row in chain(*([] if args.matrices else [cpu.elementwise_rows(), cpu.row_rows()]), cpu.matrix_rows()):
        if args.only in row.name and (found := list(columns(row, cores))):
            print(
                f"{row.name:26}" + "".join("        -" if ms is None else f"{ms:9.3f}" for ms in found),
                f"  {cpu.tile_of(row)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
