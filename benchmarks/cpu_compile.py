"""The part of `make bench-compile` about the CPU: milliseconds of each stage for a launch that finds nothing in the cache.

A stage's time includes writing its product as text. `x4` is the total with a tile of four times as many elements,
relative to the total: code does not grow with the tile.
"""

import os
import statistics
import tempfile
from typing import Any

from examples import add, attention, matmul, softmax
from examples.case import Case
from tilework import knobs
from tilework.backends.base import GPUTarget
from tilework.compiler import ASTSource, compile

ROUNDS = 7
ROWS: list[tuple[Case, dict[str, Any], dict[str, Any], float]] = [  # case, tile, larger tile, budget
    (add.CASES[0], {"BLOCK": 1024}, {"BLOCK": 4096}, 60.0),
    (softmax.CASES[0], {"BLOCK": 1024}, {"BLOCK": 4096}, 120.0),
    (matmul.CASES[0], {"BM": 64, "BN": 64, "BK": 64}, {"BM": 128, "BN": 128, "BK": 64}, 350.0),
    (attention.CASES[0], {"BM": 64, "BN": 64, "D": 64}, {"BM": 128, "BN": 128, "D": 64}, 500.0),
]


def stage_times(case: Case, tile: dict[str, Any]) -> dict[str, float]:
    """Median milliseconds of the frontend, each stage, and storing the entry."""
    found: dict[str, list[float]] = {}

    def listen(*, times: knobs.CompileTimes, **event: Any) -> None:
        for name, time in (("frontend", times.ir_initialization), *times.lowering_stages, ("store", times.store_results)):
            found.setdefault(name, []).append(time / 1e3)

    source = ASTSource(case.kernel, case.types, {**case.constexprs, **tile}, case.attrs)
    with knobs.compilation.scope():
        knobs.compilation.always_compile = True
        knobs.compilation.listener = listen
        for _ in range(ROUNDS + 1):
            compile(source, GPUTarget("cpu", "host", 1))
    return {name: statistics.median(times[1:]) for name, times in found.items()}


def main() -> None:
    os.environ.setdefault("TILEWORK_DEVICE", "native")
    columns = ("frontend", "ttir", "ttcir", "llir", "obj", "store")
    print(f"{'CPU':24}{''.join(f'{name:>10}' for name in columns)}{'total':>10}{'budget':>10}{'x4':>8}")
    with knobs.cache.scope(), tempfile.TemporaryDirectory() as folder:
        knobs.cache.dir = folder
        for case, tile, larger, budget in ROWS:
            times = stage_times(case, tile)
            total, grown = sum(times.values()), sum(stage_times(case, larger).values())
            cells = "".join(f"{times.get(name, 0.0):7.1f} ms" for name in columns)
            print(f"{case.name:24}{cells}{total:7.1f} ms{budget:7.0f} ms{grown / total - 1:+8.0%}")


if __name__ == "__main__":
    main()
