"""`make bench-launch`: what `kernel[grid](six arguments)` costs above the kernel's own work, warm.

The launcher is replaced by one that does nothing, so that only binding, specialising, looking up and calling are left.
Beside it: what Python itself takes for a call with the same arguments, and for the address of an array.
"""

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tilework
import tilework.language as tl

ROUNDS, CALLS = 15, 2000
BUDGET_US = 15.0


@tilework.jit
def empty(x, y, z, a, b, c, BLOCK: tl.constexpr):
    pass


class NoWork:
    """A launcher that only counts."""

    def __init__(self, *args: Any) -> None:
        self.calls = 0

    def __call__(self, *args: Any) -> None:
        self.calls += 1


def per_call(call: Callable[[], Any]) -> float:
    """Median microseconds of one call."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        times.append((time.perf_counter() - start) / CALLS)
    return statistics.median(times) * 1e6


def main() -> None:
    arrays = [np.zeros(1024, "f4") for _ in range(3)]
    kernel = empty[(1,)](*arrays, 1024, 17, 0.5, BLOCK=64)
    kernel._launch = NoWork()
    launch = empty[(1,)]
    rows = [
        ("kernel[grid](3 arrays, 3 numbers, BLOCK=64)", per_call(lambda: launch(*arrays, 1024, 17, 0.5, BLOCK=64))),
        ("the same, six arrays", 0.0),
        ("a Python function of the same arguments", per_call(lambda: plain(*arrays, 1024, 17, 0.5, BLOCK=64))),
        ("address of one NumPy array", per_call(lambda: arrays[0].__array_interface__["data"][0])),
    ]
    six = arrays * 2
    empty[(1,)](*six, BLOCK=64)._launch = NoWork()
    rows[1] = (rows[1][0], per_call(lambda: launch(*six, BLOCK=64)))
    print(f"{'call':48}{'us':>8}{'budget':>8}")
    for index, (name, microseconds) in enumerate(rows):
        print(f"{name:48}{microseconds:8.2f}{BUDGET_US if index < 2 else '':>8}")


def plain(x: Any, y: Any, z: Any, a: Any, b: Any, c: Any, BLOCK: int) -> None:
    """What Python cannot avoid."""


if __name__ == "__main__":
    main()
