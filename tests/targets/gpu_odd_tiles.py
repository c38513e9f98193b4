"""Tiles of sizes that are no powers of two on emulated GPUs, with the emulators' checks, against NumPy.

python -m tests.targets.gpu_odd_tiles                        every op on four GPUs, 1 to 130 elements and 20 odd pairs (an hour)
python -m tests.targets.gpu_odd_tiles --draw 40              40 of those cases
python -m tests.targets.gpu_odd_tiles sorts --gpu cuda:80    rows whose names begin so, on one GPU
"""

import argparse
import random
import sys
import traceback
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from tests.differential.devices import Device, Refused, run_amd_emulator, run_emulator
from tests.differential.harness import compare, outcome
from tests.differential.tile_accesses import ACCESSES, arrays
from tests.differential.tile_ops import ROWS, inputs
from tests.targets.odd_tiles import LINES, PAIRS
from tilework.target import Target

GPUS = ("cuda:80", "cuda:90", "hip:gfx942", "hip:gfx1100")
Case = tuple[str, str, tuple[int, ...]]  # the row, the GPU, the size


def device_of(gpu: str) -> Device:
    target = Target.parse(gpu)
    return partial(run_amd_emulator, target) if target.backend == "hip" else partial(run_emulator, target=target)


def all_cases() -> Iterator[Case]:
    for gpu in GPUS:
        for name, row in ROWS.items():
            sizes = [*([(n,) for n in LINES] if 1 in row.ranks else []), *(PAIRS if 2 in row.ranks else [])]
            yield from ((name, gpu, size) for size in sizes)
        yield from ((name, gpu, size) for name in ACCESSES for size in PAIRS)


def run_case(name: str, gpu: str, size: tuple[int, ...]) -> None:
    """Raise if a GPU does not do what NumPy does."""
    (run_access if name in ACCESSES else run_row)(name, device_of(gpu), size)


def run_row(name: str, device: Device, size: tuple[int, ...]) -> None:
    row = ROWS[name]
    given, params = inputs(row, size, sum(size)), tuple(row.params(size))
    expected = row.numpy(*given, *params)
    got = outcome(device, row.fn, given, params)
    if isinstance(got, Refused):
        raise got
    if expected is None:
        return
    expected = expected if isinstance(expected, tuple | list) else (expected,)
    for number, (one, other) in enumerate(zip(expected, got[1], strict=True)):
        wanted = np.asarray(one).astype(other.dtype).reshape(other.shape)
        compare(wanted, other, f"result {number} of {name}", 16 if row.rtol else 0, 4 * row.rtol, 4 * row.rtol)


def run_access(name: str, device: Device, size: tuple[int, ...]) -> None:
    access = ACCESSES[name]
    m, n = size
    args, constants = arrays(access, m, n)
    wanted = args["out"].copy()
    access.numpy(args["x"], wanted, m, n)
    device(access.kernel, args, constants, (1,))
    compare(wanted, args["out"], name)


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", help="names of rows, or how they begin")
    parser.add_argument("--gpu", choices=GPUS)
    parser.add_argument("--draw", type=int, help="so many of the cases")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", type=int, default=1 << 20, help="elements of a tile")
    args = parser.parse_args(argv)
    cases = [
        case
        for case in all_cases()
        if (not args.rows or case[0].startswith(tuple(args.rows)))
        and args.gpu in (None, case[1])
        and np.prod(case[2]) <= args.most
    ]
    if args.draw:
        cases = random.Random(args.seed).sample(cases, min(args.draw, len(cases)))
    wrong: list[Any] = []
    for number, case in enumerate(cases):
        print(f"\r{number}/{len(cases)} {case[0]} {case[1]} {case[2]}        ", end="", flush=True)
        try:
            run_case(*case)
        except Exception:
            wrong.append(case)
            print(f"\n{traceback.format_exc()[-1500:]}")
    print(f"\n{len(cases)} cases, {len(wrong)} wrong {wrong[:20]}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
