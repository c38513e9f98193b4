"""The cost of exits of a loop on the CPU: the same loop without any, with one that its counter decides, with one that a
tile decides.

    python -m benchmarks.cpu_exits [--turns 40]

No exit is taken: all three do the same work. CPU time of one thread, the fastest of all turns, in which the three
follow each other.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tilework
import tilework.language as tl
from tilework import knobs

KINDS = ("none", "counter", "tile")


@tilework.jit
def sum_of_powers(x, out, n, limit, EXIT: tl.constexpr, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        if EXIT == "counter":
            if start >= limit:
                break
        values = tl.load(x + start + tl.arange(0, BLOCK))
        if EXIT == "tile":
            if tl.max(values, 0) > limit:
                break
        total += tl.exp(values)
    tl.store(out, tl.sum(total, 0))


@tilework.jit
def product(a, b, out, k, limit, EXIT: tl.constexpr, SIZE: tl.constexpr, DEPTH: tl.constexpr):
    rows, columns, inner = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :], tl.arange(0, DEPTH)
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for start in range(0, k, DEPTH):
        if EXIT == "counter":
            if start >= limit:
                break
        left = tl.load(a + rows * k + (start + inner)[None, :])
        if EXIT == "tile":
            if tl.max(tl.max(left, 1), 0) > limit:
                break
        total = tl.dot(left, tl.load(b + (start + inner)[:, None] * SIZE + columns), total, input_precision="ieee")
    tl.store(out + rows * SIZE + columns, total)


def loops(count: int = 256 * 1024, size: int = 64, depth: int = 8192) -> dict[str, Callable[[Any], Callable[[], Any]]]:
    """By name, what launches a loop with one kind of exit."""
    rng = np.random.default_rng(0)
    x, a, b = (rng.standard_normal(shape, dtype="f4") for shape in (count, (size, depth), (depth, size)))
    few, many = np.zeros(1, "f4"), np.zeros((size, size), "f4")
    return {
        f"sum of exp, {count // 1024} blocks of 1024": lambda kind: sum_of_powers.bind(
            x, few, count, 1 << 30, kind, 1024, grid=(1,)
        ),
        f"product, {size} x {depth} x {size}": lambda kind: product.bind(
            a, b, many, depth, 1 << 30, kind, size, size, grid=(1,)
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=40)
    turns = parser.parse_args().turns
    knobs.runtime.num_threads = 1
    print(f"{'ms, by what decides the exit':36}" + "".join(f"{kind:>10}" for kind in KINDS))
    for name, made in loops().items():
        calls = {kind: made(kind) for kind in KINDS}
        for call in calls.values():
            call()
        least = {kind: float("inf") for kind in calls}
        for _ in range(turns):
            for kind, call in calls.items():
                start = time.process_time()
                call()
                least[kind] = min(least[kind], time.process_time() - start)
        print(f"{name:36}" + "".join(f"{seconds * 1e3:10.2f}" for seconds in least.values()))


if __name__ == "__main__":
    main()
