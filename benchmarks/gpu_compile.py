"""Optimised TTIR to TTGIR for sm_90, warm, pass by pass, beside Triton's own time for the same text.

    python -m benchmarks.gpu_compile                the table
    python -m benchmarks.gpu_compile matmul_f16     and what each pass takes, the slowest first

The TTIR is what Triton printed for its kernels (tests/ir/reference). Part of `make bench-compile`.
"""

import gc
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

REFERENCE = Path(__file__).parent.parent / "tests" / "ir" / "reference" / "sm_90"
KERNELS = {
    "add": (4, 12.0),
    "softmax": (8, None),
    "matmul_f16": (8, 90.0),
    "attention": (4, 110.0),
}  # warps, budget in ms
STAGES, ROUNDS = 3, 9


def pass_times(kernel: str, rounds: int = ROUNDS) -> list[tuple[str, float]]:
    """Median milliseconds of each pass, in order."""
    from tilework.ir.parser import parse_module
    from tilework.target import Target
    from tilework.targets.base import pass_of
    from tilework.targets.nvidia.pipeline import ttgir_pipeline

    module = parse_module((REFERENCE / f"{kernel}.ttir").read_text())
    items = ttgir_pipeline(Target.parse("cuda:90"), KERNELS[kernel][0], STAGES)
    times: list[list[float]] = [[] for _ in items]
    for round in range(rounds + 2):
        work = module.clone()
        gc.collect()
        for item, seen in zip(items, times, strict=True):
            start = time.perf_counter()
            pass_of(item).apply(None, work)
            if round >= 2:
                seen.append(time.perf_counter() - start)
    return [(item, statistics.median(seen) * 1e3) for item, seen in zip(items, times, strict=True)]


def triton_times(python: str | None) -> dict[str, float]:
    """Triton's median milliseconds for its stage `ttgir`."""
    if python is None:
        return {}
    request = [[name, str(REFERENCE / f"{name}.ttir"), warps] for name, (warps, _) in KERNELS.items()]
    script = Path(__file__).with_name("triton_ttgir_time.py")
    done = subprocess.run([python, str(script)], input=json.dumps(request), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(done.stderr[-2000:], file=sys.stderr)
        return {}
    return json.loads(done.stdout.splitlines()[-1])


def main(python: str | None = None, details: tuple[str, ...] = ()) -> None:
    theirs = triton_times(python)
    print(f"{'TTIR to TTGIR, sm_90':24}{'passes':>10}{'budget':>10}{'Triton':>10}{'ratio':>8}   slowest passes")
    for kernel, (_, limit) in KERNELS.items():
        times = pass_times(kernel)
        total = sum(spent for _, spent in times)
        budget = "" if limit is None else f"{limit:7.0f} ms"
        other = f"{theirs[kernel]:7.1f} ms" if kernel in theirs else "-"
        ratio = f"{total / theirs[kernel]:.2f}" if kernel in theirs else ""
        slowest = sorted(times, key=lambda one: -one[1])[:3]
        names = ", ".join(f"{name.partition('{')[0]} {spent:.1f}" for name, spent in slowest)
        print(f"{kernel:24}{total:7.1f} ms{budget:>10}{other:>10}{ratio:>8}   {names}")
        if kernel in details:
            for name, spent in sorted(times, key=lambda one: -one[1]):
                print(f"{spent:12.2f} ms  {name}")


if __name__ == "__main__":
    from benchmarks.compile_time import triton_python

    main(triton_python(), tuple(sys.argv[1:]))
