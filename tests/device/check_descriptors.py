"""Descriptors on a real GPU: calls and loops that make them, stores followed by loads of the same memory, many times
over.

    python -m tests.device.check_descriptors [--rounds 20] [--programs 1056] [--warps 4 8 1] [NAME ...]

Each line: the kernel, its warps, PASS or how many elements were wrong in how many rounds. Old data shows up in some
rounds only, so each kernel runs many programs at once and many times, on new numbers. The exit code is the number of
failures, 99 at most.
"""

import argparse
import sys
import time

import numpy as np

import tilework
from tests.device.check_cuda_kernels import KEPT, allocate
from tests.device.descriptor_kernels import CASES, Case
from tilework.runtime.devices.cuda.device import DeviceArray


def failed_rounds(case: Case, rounds: int, programs: int, warps: int) -> tuple[int, int]:
    """(rounds with a wrong result, wrong elements in all of them)."""
    rng = np.random.default_rng(7)
    bad = elements = 0
    for _ in range(rounds):
        arrays = case.arrays(programs, rng)
        x, y = (DeviceArray.of(array) for array in arrays)
        case.kernel[(programs,)](x, y, **case.constants, num_warps=warps)
        wrong = sum(
            int((got.numpy() != wanted).sum()) for got, wanted in zip((x, y), case.wanted(*arrays), strict=True)
        )
        bad, elements = bad + (wrong > 0), elements + wrong
        KEPT.clear()
    return bad, elements


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--programs", type=int, default=1056)
    parser.add_argument("--warps", type=int, nargs="*", default=[4, 8, 1])
    given = parser.parse_args()
    tilework.set_allocator(allocate)
    failures = 0
    for name in given.names or CASES:
        for warps in given.warps:
            start = time.perf_counter()
            try:
                bad, elements = failed_rounds(CASES[name], given.rounds, given.programs, warps)
                said = f"FAIL {elements} elements wrong in {bad} of {given.rounds} rounds" if bad else "PASS"
            except Exception as error:
                bad, said = 1, f"FAIL {type(error).__name__}: {str(error)[:300]}"
            failures += bad > 0
            print(f"{name:16} warps {warps}  {said}  {time.perf_counter() - start:.1f} s", flush=True)
    print(f"{failures} failed")
    return min(failures, 99)


if __name__ == "__main__":
    sys.exit(main())
