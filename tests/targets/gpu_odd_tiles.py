"""Tiles of sizes that are no powers of two on emulated GPUs, with the emulators' checks, against NumPy.

python -m tests.targets.gpu_odd_tiles --jobs 16  every op on four GPUs, 1 to 130 elements and 20 odd pairs
python -m tests.targets.gpu_odd_tiles --draw 40                  40 of those cases
python -m tests.targets.gpu_odd_tiles 'sorts*' --gpu cuda:80     rows whose names begin so, on one GPU

See `tests/sweep.py` for what else it takes.
"""

import shlex
import sys
from collections.abc import Iterator
from functools import partial

import numpy as np

from tests.differential.devices import Device, Refused, run_amd_emulator, run_emulator
from tests.differential.harness import compare, outcome
from tests.differential.tile_accesses import ACCESSES, arrays
from tests.differential.tile_ops import ROWS, inputs
from tests.sweep import chosen, options, size_text, sweep
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


def repeat(case: Case) -> str:
    name, gpu, size = case
    return f"python -m tests.targets.gpu_odd_tiles {shlex.quote(name)} --gpu {gpu} --size {size_text(size)}"


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--gpu", choices=GPUS)
    args = parser.parse_args()
    cases = (case for case in all_cases() if args.gpu in (None, case[1]))
    return sweep(chosen(cases, args), run_case, repeat, args)


if __name__ == "__main__":
    sys.exit(main())
