"""Growth of compile time with the size of a kernel: the time per part, relative to the smallest of the same kind.

    python -m benchmarks.growth                             all curves, on the CPU
    python -m benchmarks.growth cuda:90 loops ifs           two curves, to PTX

The kernels are those of `growth_kernels.py`: each consists of N equal parts. A row shows the CPU time of a compilation
(the least of ROUNDS, with all its threads), that of each stage, and behind each time its growth: the time per part
divided by the time per part of the first row. 1 is linear. With an interpreter that has Triton (TRITON_PYTHON, see
`compile_time.py`), a GPU table ends with Triton's time to PTX and its growth, measured in the same run.
"""

import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.compile_time import triton_python
from benchmarks.growth_kernels import CURVES, Curve, source_of
from tilework.runtime.compile.sources import frontend_options
from tilework.targets.base import GPUTarget, find_backend

ROUNDS = 2
WIDEST = 20.0  # seconds: a curve ends with the first row that takes longer
LAST = {"cpu": "obj", "cuda": "ptx", "hip": "amdgcn"}  # the stages behind these are other programs


def stage_times(curve: Curve, n: int, target: str) -> dict[str, float]:
    """Return the seconds of CPU time in the frontend and in each stage."""
    device = GPUTarget.parse(target)
    backend = find_backend(device)
    times: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        source = source_of(curve, n, Path(folder))
        gc.collect()
        start = time.process_time()
        product = source.module(frontend_options(device, {}))
        times["frontend"] = time.process_time() - start
        for name, stage in backend.stages(backend.parse_options({})).items():
            gc.collect()
            start = time.process_time()
            product = stage(product)
            times[name] = time.process_time() - start
            if name == LAST[device.backend]:
                break
    return times


def triton_times(python: str, target: str, jobs: Sequence[tuple[str, int]]) -> dict[tuple[str, int], float]:
    """Return the seconds of CPU time that Triton takes to PTX, by curve and number of parts."""
    with tempfile.TemporaryDirectory() as folder:
        requests = []
        for position, (name, n) in enumerate(jobs):
            under = Path(folder, str(position))
            under.mkdir()
            source = source_of(CURVES[name], n, under)
            requests.append({"file": str(next(under.glob("*.py"))), "signature": source.signature})
        script = Path(__file__).with_name("growth_process.py")
        command = [python, str(script), target]
        done = subprocess.run(command, input=json.dumps(requests), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(done.stderr[-2000:], file=sys.stderr)
        return {}
    return dict(zip(jobs, json.loads(done.stdout.splitlines()[-1]), strict=True))


def cell(seconds: float, n: int, first: float) -> str:
    return f"{seconds:8.2f} {seconds / n / first:5.2f}"


def main(arguments: Sequence[str]) -> None:
    target, names = "cpu", list(arguments)
    if names and names[0].partition(":")[0] in LAST:
        target = names.pop(0)
    python = None if target == "cpu" else triton_python()
    stage_times(CURVES["static_range"], 10, target)  # loads the compiler
    columns: list[str] = []
    measured: list[tuple[str, int]] = []
    for name in names or CURVES:
        per_part: dict[str, float] = {}
        for n in CURVES[name].sizes:
            rounds = [stage_times(CURVES[name], n, target) for _ in range(ROUNDS)]
            times = {stage: min(each[stage] for each in rounds) for stage in rounds[0]}
            times = {"all": sum(times.values()), **times}
            if not columns:
                columns = list(times)
                print(f"{target:24}{'N':>6}{''.join(f'{column:>15}' for column in columns)}")
            per_part = per_part or {stage: seconds / n for stage, seconds in times.items()}
            cells = "".join(f" {cell(times[stage], n, per_part[stage])}" for stage in columns)
            print(f"{name:24}{n:6}{cells}", flush=True)
            measured.append((name, n))
            if times["all"] > WIDEST:
                break
    if python:
        print(f"\n{'Triton':24}{'N':>6}{'all':>15}")
        first: dict[str, float] = {}
        for (name, n), seconds in triton_times(python, target, measured).items():
            first.setdefault(name, seconds / n)
            print(f"{name:24}{n:6} {cell(seconds, n, first[name])}")


if __name__ == "__main__":
    main(sys.argv[1:])
