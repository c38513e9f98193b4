"""The profiler on a real GPU: its times beside do_bench's, what profiling costs, limits, kernels of torch and of
graphs.

    python -m tests.device.check_profiler

Prints a table of kernels: microseconds by the profiler and by do_bench (without clearing caches), their ratio, and what
launching takes with and without a session, in turn. Needs an NVIDIA GPU; torch's kernels are looked for where it is.
"""

import importlib
import importlib.util
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tilework
import tilework.language as tl
import tilework.profiler as proton
from benchmarks.profiler_overhead import busy
from tilework.inspect.profiler.limits import Limits
from tilework.inspect.profiler.recorder import RECORDER
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.devices.cuda.device import GPUS as cuda
from tilework.runtime.devices.cuda.device import DeviceArray

ROUNDS, LAUNCHES = 15, 400
CLOSE = 0.10  # how much both ways of timing may differ, and a microsecond


@tilework.jit
def copy(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i))


def cases() -> dict[str, Callable[[], Any]]:
    large, other = (DeviceArray(64 << 20, "float32") for _ in range(2))
    small = DeviceArray.of(np.ones(132 * 1024, "f4"))
    grid = (large.shape[0] // 4096,)
    steps = {"busy 10": 1_000, "busy 50": 5_500, "busy 200": 22_000}
    made: dict[str, Callable[[], Any]] = {"copy 256 MB": lambda: copy[grid](large, other, BLOCK=4096)}
    return made | {name: lambda count=count: busy[(132,)](small, count, BLOCK=1024) for name, count in steps.items()}


def average_us(folder: str, call: Callable[[], Any]) -> tuple[float, int]:
    """(microseconds of a launch, launches) by a session."""
    call()
    proton.start(f"{folder}/p")
    for _ in range(LAUNCHES):
        call()
    proton.finalize()
    (node,) = json.loads(Path(f"{folder}/p.hatchet").read_text())[0]["children"]
    return node["metrics"]["time (ns)"] / node["metrics"]["count"] / 1e3, node["metrics"]["count"]


def loop_us(call: Callable[[], Any]) -> float:
    cuda.synchronize()
    start = time.perf_counter()
    for _ in range(LAUNCHES):
        call()
    cuda.synchronize()
    return (time.perf_counter() - start) / LAUNCHES * 1e6


def event_us(call: Callable[[], Any]) -> float:
    """A launch of many in a row, between two events."""
    start, end = (cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(LAUNCHES):
        call()
    end.record()
    cuda.synchronize()
    return start.elapsed_time(end) / LAUNCHES * 1e3


def overhead(folder: str, call: Callable[[], Any]) -> tuple[float, float]:
    """(microseconds of a launch without a session, how much more with one), in turn."""
    ratios, plain = [], []
    for _ in range(ROUNDS):
        before = loop_us(call)
        proton.start(f"{folder}/o")
        call()
        inside = loop_us(call)
        proton.finalize()
        plain.append(before)
        ratios.append(inside / ((before + loop_us(call)) / 2))
    return statistics.median(plain), statistics.median(ratios) - 1


def foreign(folder: str) -> int:
    """Kernels of torch, and ours in a graph, stand in the tree at their scopes; how many mistakes there are."""
    if importlib.util.find_spec("torch") is None:
        return 0
    torch = importlib.import_module("torch")
    a, x = torch.randn(512, 512, device="cuda"), torch.ones(1024, device="cuda")
    torch.mm(a, a)
    busy[(1,)](x, 10, BLOCK=1024)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        busy[(1,)](x, 10, BLOCK=1024)
    proton.start(f"{folder}/f")
    with proton.scope("product"):
        torch.mm(a, a)
    with proton.scope("graph"):
        for _ in range(3):
            graph.replay()
    with proton.scope("ours"):
        busy[(1,)](x, 10, BLOCK=1024)
    proton.finalize()
    scopes = {
        node["frame"]["name"]: node for node in json.loads(Path(f"{folder}/f.hatchet").read_text())[0]["children"]
    }
    inside = {
        name: [(child["frame"]["name"], child["metrics"].get("count")) for child in node["children"]]
        for name, node in scopes.items()
    }
    print(f"scopes with what ran in them: {inside}")
    good = inside.get("graph") == [("busy", 3)] and inside.get("ours") == [("busy", 1)] and inside.get("product")
    return 0 if good else 1


def main() -> int:
    if driver.active.get_current_target().backend != "cuda":
        print("no NVIDIA GPU is active here")
        return 2
    failed = 0
    print(
        f"{'kernel':14}{'profiler us':>13}{'do_bench us':>13}{'in a row us':>13}"
        f"{'ratio':>8}{'loop us':>10}{'overhead':>10}"
    )
    with tempfile.TemporaryDirectory() as folder:
        for name, call in cases().items():
            call()
            by_profiler, count = average_us(folder, call)
            by_bench = tilework.testing.do_bench(call, return_mode="median") * 1e3
            row = event_us(call)
            plain, more = overhead(folder, call)
            is_close = by_profiler <= 1.0 + by_bench * (1 + CLOSE) and by_profiler >= row * (1 - CLOSE) - 1.0
            good = is_close and count == LAUNCHES
            failed += not good
            cells = f"{by_profiler:13.2f}{by_bench:13.2f}{row:13.2f}{by_profiler / row:8.3f}"
            cells += f"{plain:10.2f}{100 * more:9.1f} %"
            print(f"{name:14}{cells}  {'PASS' if good else 'FAIL'}{'' if count == LAUNCHES else f' {count} launches'}")
        failed += foreign(folder)
    print(f"times by {type(RECORDER.clock).__name__}")
    limits = Limits.load()
    limits.measure_again()
    rates = {kind: limits.rate(kind) for kind in ("simd", "fp16", "bf16", "fp32", "int8")}
    shown = ", ".join(f"{kind} {rate / 1e12:.1f} TFLOP/s" for kind, rate in rates.items() if rate)
    print(f"\nlimits of {limits.device}: copies {(limits.bandwidth or 0) / 1e9:.0f} GB/s, {shown}")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
