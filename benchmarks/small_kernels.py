"""The time of kernels that take a few microseconds, ours beside Triton's, by replays of CUDA graphs.

    python -m benchmarks.small_kernels [WORD ...]        rows whose name has one of the words

A graph has 50 launches of a kernel and is replayed 30 times; a low quantile counts. Each compiler runs twice, in
processes of its own, in turns.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from benchmarks.compiler_of_kernels import load

LAUNCHES, REPLAYS = 50, 30


def rows(kernels: Any, torch: Any) -> dict[str, Callable[[], Any]]:
    """Launches by the names of their rows."""

    def tensor(dtype: Any) -> Any:
        return torch.randn(1 << 20, device="cuda", dtype=dtype)

    x, y, out, w = (tensor(torch.float32) for _ in range(4))
    a, b, narrow = (tensor(torch.bfloat16) for _ in range(3))
    left, right, dots = (tensor(torch.float16) for _ in range(3))
    indices = torch.randint(0, 128, (128,), device="cuda")
    k = kernels
    return {
        "nothing": lambda: k.nothing[(1,)](x),
        "one store": lambda: k.one_store[(1,)](x),
        "add 1024": lambda: k.add[(1,)](x, y, out, 1024, 1024),
        "add 98432": lambda: k.add[(97,)](x, y, out, 98432, 1024),
        "add 1M": lambda: k.add[(1024,)](x, y, out, 1 << 20, 1024),
        "softmax 128x781": lambda: k.softmax[(128,)](out, x, 781, 1024),
        "softmax 4x4096": lambda: k.softmax[(4,)](out, x, 4096, 4096, num_warps=8),
        "rms norm 128x4096": lambda: k.rms_norm[(128,)](a, w, narrow, 4096, 1e-6, 4096, num_warps=8),
        "rms norm 8x1024": lambda: k.rms_norm[(8,)](a, w, narrow, 1024, 1e-6, 1024),
        "gather 128x512": lambda: k.gather_rows[(128,)](x, indices, out, 512, 512),
        "silu 64k": lambda: k.silu_times[(64,)](a, b, narrow, 65536, 1024),
        "row sums 64x4096": lambda: k.row_sums[(64,)](x, out, 4096, 512),
        "row sums 64x16384, bf16": lambda: k.row_sums[(64,)](a, out, 16384, 1024),
        "matmul 128": lambda: k.small_matmul[(2, 2)](left, right, dots, 128, 128, 128, 64, 64, 32),
        "matmul 512": lambda: k.small_matmul[(8, 8)](left, right, dots, 512, 512, 512, 64, 64, 32),
    }


def measure(compiler: str, words: list[str]) -> dict[str, float]:
    """Microseconds of a launch, by row."""
    import torch  # lazily: the process that prints needs none

    found: dict[str, float] = {}
    for name, launch in rows(load(compiler), torch).items():
        if words and not any(word in name for word in words):
            continue
        launch()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(LAUNCHES):
                launch()
        times: list[float] = []
        for _ in range(REPLAYS):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            times.append(start.elapsed_time(end) / LAUNCHES * 1e3)
        found[name] = sorted(times)[REPLAYS // 6]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*")
    parser.add_argument("--compiler", help="measure with this one only, and print JSON")
    args = parser.parse_args()
    if args.compiler:
        print(json.dumps(measure(args.compiler, args.words)))
        return
    command = [sys.executable, "-m", "benchmarks.small_kernels", *args.words, "--compiler"]
    runs: dict[str, list[dict[str, float]]] = {"triton": [], "tilework": []}
    for _ in range(2):
        for compiler, made in runs.items():
            made.append(json.loads(subprocess.run([*command, compiler], stdout=subprocess.PIPE, check=True).stdout))
    print(f"{'':26}{'Triton':>14}{'tilework':>16}   ratio")
    for name in runs["triton"][0]:
        theirs, ours = ([run[name] for run in made] for made in runs.values())
        shown = "".join(f"{min(times):9.2f}/{max(times):.2f} us" for times in (theirs, ours))
        print(f"{name:26}{shown}   {min(theirs) / min(ours):.2f}x")


if __name__ == "__main__":
    main()
