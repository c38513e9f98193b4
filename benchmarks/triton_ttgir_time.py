"""Run under an interpreter that has Triton: how long its stages behind TTIR take for given TTIR. Called by
`gpu_compile`."""

import json
import sys
import tempfile

import triton
from triton import knobs
from triton.backends.compiler import GPUTarget

ROUNDS = 5


def measure(path: str, warps: int, stages: int, target: GPUTarget) -> dict[str, float]:
    """Least milliseconds of each stage, from Triton's own compile-time listener."""
    seen: list[dict[str, float]] = []

    def listener(**event: object) -> None:
        seen.append(dict(event["times"].lowering_stages))  # pyright: ignore[reportAttributeAccessIssue]

    knobs.compilation.listener = listener
    for _ in range(ROUNDS):
        triton.compile(path, target=target, options={"num_warps": warps, "num_stages": stages})
    return {name: min(one[name] for one in seen) / 1e3 for name in seen[0]}


def main() -> None:
    knobs.compilation.always_compile = True
    request = json.load(sys.stdin)
    with tempfile.TemporaryDirectory() as folder:
        knobs.cache.dir = folder
        target = GPUTarget(*request["target"])
        kernels = request["kernels"]
        print(json.dumps({name: measure(path, warps, stages, target) for name, path, warps, stages in kernels}))


if __name__ == "__main__":
    main()
