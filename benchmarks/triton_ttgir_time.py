"""Run under an interpreter that has Triton: how long its stage `ttgir` takes for given TTIR. Called by `gpu_compile`."""

import json
import statistics
import sys
import tempfile

import triton
from triton import knobs
from triton.backends.compiler import GPUTarget

ROUNDS = 5


def measure(path: str, warps: int) -> float:
    """Median milliseconds, from Triton's own compile-time listener."""
    seen: list[float] = []

    def listener(**event: object) -> None:
        stages = dict(event["times"].lowering_stages)  # pyright: ignore[reportAttributeAccessIssue]
        seen.append(stages["ttgir"] / 1e3)

    knobs.compilation.listener = listener
    for _ in range(ROUNDS + 1):
        triton.compile(path, target=GPUTarget("cuda", 90, 32), options={"num_warps": warps, "num_stages": 3})
    return statistics.median(seen[1:])


def main() -> None:
    knobs.compilation.always_compile = True
    with tempfile.TemporaryDirectory() as folder:
        knobs.cache.dir = folder
        print(json.dumps({name: measure(path, warps) for name, path, warps in json.load(sys.stdin)}))


if __name__ == "__main__":
    main()
