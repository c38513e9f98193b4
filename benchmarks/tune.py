"""The time of tuning: beside its own compilations and measurements, beside Triton, many programs at once, and with
kills.

    python -m benchmarks.tune [--quick] [add] [matmul] [crowd] [kills]

Every row is a new process (or several) with an empty cache. `one by one` compiles and measures each configuration in
the process, without any of what the autotuner does to be faster. Triton's rows are there where it is installed and has
a GPU.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

CORES = len(os.sched_getaffinity(0))
CROWD = 15
GRIDS: dict[str, Callable[[dict[str, Any]], tuple[int, ...]]] = {
    "add": lambda meta: (-(-meta["n"] // meta["BLOCK"]),),
    "matmul": lambda meta: (meta["n"] // meta["M"], meta["n"] // meta["N"]),
}


# ---- in the processes that are measured


def program(how: str, kernel: str, count: int, seed: int, at: float) -> dict[str, Any]:
    """Tune one kernel; return the seconds of the first launch and the chosen configuration."""
    if how != "triton":
        import tilework

        tilework.as_triton()
    import triton

    from benchmarks import tune_kernels

    fn, configs = (
        getattr(tune_kernels, kernel),
        {"add": tune_kernels.ADDS, "matmul": tune_kernels.MATMULS}[kernel][:count],
    )
    args = arguments(kernel)
    once = {"do_bench": lambda call, quantiles: call() or [1.0] * 3} if at else {}
    tuned = triton.autotune(configs, key=["n"], **once)(fn)
    time.sleep(max(0.0, at - time.time()))
    start, cpu = time.perf_counter(), time.process_time()
    if how == "one by one":
        bench = triton.runtime.driver.active.get_benchmarker()
        compiling, best = 0.0, (float("inf"), None)
        for config in configs:
            begin = time.perf_counter()
            fn.warmup(*args, seed, grid=(1,), **config.all_kwargs())
            compiling += time.perf_counter() - begin
            if not at:
                call = lambda config=config: fn[GRIDS[kernel]](*args, seed, **config.all_kwargs())
                best = min(best, (bench(call, quantiles=(0.5, 0.2, 0.8))[0], str(config)))
        return {
            "cpu": time.process_time() - cpu,
            "seconds": time.perf_counter() - start,
            "compiling": compiling,
            "best": best[1],
            "end": time.time(),
        }
    tuned[GRIDS[kernel]](*args, seed)
    return {
        "cpu": time.process_time() - cpu,
        "seconds": time.perf_counter() - start,
        "best": str(tuned.best_config),
        "end": time.time(),
    }


def arguments(kernel: str) -> tuple[Any, ...]:
    """Return the inputs and the size, on the GPU if there is one."""
    if has_gpu():
        import torch

        n = 1 << 22 if kernel == "add" else 2048
        shape = (n,) if kernel == "add" else (n, n)
        return (*(torch.rand(shape, device="cuda", dtype=torch.float16) for _ in range(3)), n)
    import numpy as np

    n = 1 << 20 if kernel == "add" else 256
    shape = (n,) if kernel == "add" else (n, n)
    return (*(np.ones(shape, np.float16) for _ in range(3)), n)


def has_gpu() -> bool:
    if find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()


# ---- the processes that measure


def start(folder: str, how: str, kernel: str, count: int, seed: int = 0, at: float = 0.0) -> "subprocess.Popen[str]":
    """Start a process that prints what `program` returns."""
    command = [sys.executable, "-m", "benchmarks.tune", "--program", json.dumps([how, kernel, count, seed, at])]
    environment = {**os.environ, "TRITON_CACHE_DIR": folder, "TMPDIR": folder}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def result(process: "subprocess.Popen[str]") -> dict[str, Any] | None:
    """Return its last output; None if it did not finish."""
    text = process.communicate(timeout=500)[0]
    return json.loads(text.splitlines()[-1]) if process.returncode == 0 else None


def alone(how: str, kernel: str, count: int) -> dict[str, Any]:
    """Run one process with an empty cache."""
    with tempfile.TemporaryDirectory(prefix="tune") as folder:
        found = result(start(folder, how, kernel, count))
        assert found is not None, f"{how} {kernel} failed"
        return found


def row(title: str, seconds: float, note: str = "") -> None:
    print(f"{title:<46} {seconds:8.2f} s   {note}", flush=True)


def beside(kernel: str, count: int, others: Sequence[str]) -> None:
    """Tune one kernel, and compare with others."""
    title = f"{kernel}, {count} configurations"
    ours = alone("tilework", kernel, count)
    row(f"{title}, autotune", ours["seconds"], ours["best"])
    for other in others:
        theirs = alone(other, kernel, count)
        row(f"{title}, {other}", theirs["seconds"], f"autotune takes {ours['seconds'] / theirs['seconds']:.2f} of that")


def crowd(kernel: str, count: int, processes: int) -> None:
    """Run many programs at the same time, each with a different seed; compare tuning with compilations alone.

    Measuring is one call, so that compiling counts.
    """
    needed, seconds = (at_once(how, kernel, count, processes) for how in ("one by one", "tilework"))
    title = f"{processes} processes at once, {count} {kernel} each"
    row(f"{title}, compiling", needed)
    row(f"{title}, autotune", seconds, f"{seconds / needed:.2f} x their compilations on {CORES} cores")


def at_once(how: str, kernel: str, count: int, processes: int) -> float:
    """Return the seconds until the last of the programs is done."""
    with tempfile.TemporaryDirectory(prefix="tune") as folder:
        begin = time.time() + 8 + 2 * processes / CORES
        found = [result(one) for one in [start(folder, how, kernel, count, seed, begin) for seed in range(processes)]]
    assert all(found), "some did not finish"
    return max(one["end"] for one in found if one is not None) - begin


def kills(kernel: str, count: int, processes: int) -> None:
    """Kill workers and programs at random moments: the others finish, and no worker outlives its program."""
    draw = random.Random(0)
    with tempfile.TemporaryDirectory(prefix="tune") as folder:
        begin = time.time()
        running = [start(folder, "tilework", kernel, count, seed, begin) for seed in range(processes)]
        victims, workers = running[: processes // 3], 0
        while any(process.poll() is None for process in running):
            time.sleep(draw.uniform(0.1, 0.6))
            found = [worker for process in running if process.poll() is None for worker in children(process.pid)]
            if found:
                os.kill(draw.choice(found), signal.SIGKILL)
                workers += 1
            if victims and draw.random() < 0.3:
                victims.pop().kill()
        finished = [result(process) for process in running]
        survivors = len(running) - processes // 3
        assert sum(one is not None for one in finished) >= survivors, "a process that was not killed did not finish"
    row(
        f"{processes} processes, {count} {kernel} each, kill -9",
        time.time() - begin,
        f"{workers} workers and {processes // 3} programs killed",
    )


def children(process: int) -> list[int]:
    """Return the ids of a process's children."""
    found: list[int] = []
    for path in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):
            found += map(int, path.read_text().split())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer configurations and processes")
    parser.add_argument("sections", nargs="*", help="add, matmul, crowd, kills; all by default")
    parser.add_argument("--program", type=json.loads, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.program is not None:
        print(json.dumps(program(*options.program)))
        return
    is_triton_here = has_gpu() and find_spec("triton") is not None
    others = ["triton"] if is_triton_here else []
    sections: dict[str, Callable[[], None]] = {
        "add": lambda: beside("add", 4, ["one by one", *others]),
        "matmul": lambda: beside("matmul", 8 if options.quick else 40, others or ["one by one"]),
        "crowd": lambda: crowd("matmul", 4 if options.quick else 8, 4 if options.quick else CROWD),
        "kills": lambda: kills("matmul", 24, 3 if options.quick else 6),
    }
    print(f"{CORES} cores, {'a GPU' if has_gpu() else 'the CPU'}")
    for name in options.sections or sections:
        sections[name]()


if __name__ == "__main__":
    main()
