"""Optimised TTIR to TTGIR for GPUs, warm, pass by pass, beside Triton's own time for the same text; and for AMD's to
the code object.

    python -m benchmarks.gpu_compile                       the tables
    python -m benchmarks.gpu_compile matmul_f16            and what each pass takes, the slowest first
    python -m benchmarks.gpu_compile hip:gfx942            one target
    python -m benchmarks.gpu_compile --base 03f25b0        rows of the GPU table, Python to PTX and to machine code,
                                                           beside another commit

The TTIR is what Triton printed for its kernels (tests/ir/reference). Part of `make bench-compile`. LLVM makes code in a
process of its own for both, so the whole is what a launch waits for.
"""

import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.ttgir_decisions import text_for

KERNELS = {
    "add": (4, 12.0),
    "softmax": (8, None),
    "matmul_f16": (8, 90.0),
    "attention": (4, 110.0),
}  # warps, budget in ms for sm_90
TARGETS = {"cuda:90": 3, "hip:gfx942": 2}  # and stages of loops
ROUNDS = 9
ROW_ROUNDS, ROW_TURNS = 5, 3


def pass_times(kernel: str, target: str, rounds: int = ROUNDS) -> list[tuple[str, float]]:
    """Least milliseconds of each pass, in order."""
    from tilework.ir.parser import parse_module
    from tilework.target import Target
    from tilework.targets.amd import pipeline as amd
    from tilework.targets.base import pass_of
    from tilework.targets.nvidia import pipeline as nvidia

    module = parse_module(text_for(kernel, target))
    pipeline = amd.ttgir_pipeline if target.startswith("hip") else nvidia.ttgir_pipeline
    items = pipeline(Target.parse(target), KERNELS[kernel][0], num_stages=TARGETS[target])
    times: list[list[float]] = [[] for _ in items]
    for round in range(rounds + 2):
        work = module.clone()
        gc.collect()
        for item, seen in zip(items, times, strict=True):
            start = time.perf_counter()
            pass_of(item).apply(None, work)
            if round >= 2:
                seen.append(time.perf_counter() - start)
    return [(item, min(seen) * 1e3) for item, seen in zip(items, times, strict=True)]


def whole_time(kernel: str, target: str, rounds: int = 5) -> float:
    """Least milliseconds from TTIR to what the driver loads."""
    from tilework.ir.parser import parse_module
    from tilework.target import GPUTarget
    from tilework.targets.base import find_backend

    backend = find_backend(GPUTarget.parse(target))
    stages = backend.stages(backend.parse_options({"num_warps": KERNELS[kernel][0], "num_stages": TARGETS[target]}))
    times = []
    for _ in range(rounds):
        product = parse_module(text_for(kernel, target))
        start = time.perf_counter()
        for name in list(stages)[1:]:
            product = stages[name](product)
        times.append(time.perf_counter() - start)
    return min(times) * 1e3


def triton_times(python: str | None, target: str) -> dict[str, dict[str, float]]:
    """Least milliseconds of each of Triton's stages, by kernel."""
    from tilework.target import GPUTarget

    if python is None:
        return {}
    name = GPUTarget.parse(target)
    script = Path(__file__).with_name("triton_ttgir_time.py")
    with tempfile.TemporaryDirectory() as folder:
        kernels = []
        for kernel, (warps, _) in KERNELS.items():
            path = Path(folder) / f"{kernel}.ttir"
            path.write_text(text_for(kernel, target))
            kernels.append([kernel, str(path), warps, TARGETS[target]])
        request = json.dumps({"target": [name.backend, name.arch, name.warp_size], "kernels": kernels})
        done = subprocess.run([python, str(script)], input=request, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(done.stderr[-2000:], file=sys.stderr)
        return {}
    return json.loads(done.stdout.splitlines()[-1])


def main(python: str | None = None, words: Sequence[str] = ()) -> None:
    for target in [name for name in TARGETS if name in words] or TARGETS:
        theirs = triton_times(python, target)
        print(f"{f'TTIR to TTGIR, {target}':28}{'passes':>10}{'budget':>10}{'Triton':>10}{'ratio':>8}   slowest passes")
        for kernel, (_, limit) in KERNELS.items():
            times = pass_times(kernel, target)
            total = sum(spent for _, spent in times)
            budget = f"{limit:7.0f} ms" if limit and target == "cuda:90" else ""
            slowest = sorted(times, key=lambda one: -one[1])[:3]
            names = ", ".join(f"{name.partition('{')[0]} {spent:.1f}" for name, spent in slowest)
            print(f"{kernel:28}{total:7.1f} ms{budget:>10}{beside(total, theirs.get(kernel), ('ttgir',))}   {names}")
            if kernel in words:
                for name, spent in sorted(times, key=lambda one: -one[1]):
                    print(f"{spent:12.2f} ms  {name}")
            if target.startswith("hip"):
                whole = whole_time(kernel, target)
                print(f"{'  to the code object':28}{whole:7.1f} ms{'':10}{beside(whole, theirs.get(kernel), LATER)}")


def row_times(tree: str) -> dict[str, dict[str, float]]:
    """Least CPU milliseconds of each stage, by row, of the tilework in a folder."""
    script = Path(__file__).with_name("gpu_rows_process.py")
    environment = {**os.environ, "PYTHONPATH": tree}
    command = [sys.executable, "-P", str(script), str(ROW_ROUNDS)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def beside_commit(commit: str, turns: int = ROW_TURNS) -> None:
    """Compile times of rows beside another commit, alternating: other load on the machine slows down both."""
    root = Path(__file__).parents[1]
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.run(["git", "archive", commit, "tilework"], cwd=root, capture_output=True, check=True)
        subprocess.run(["tar", "x", "-C", folder], input=packed.stdout, check=True)
        found = [(row_times(folder), row_times(str(root))) for _ in range(turns)]
    print(
        f"{'Python to PTX, CPU ms':28}{commit:>10}{'now':>10}{'ratio':>8}"
        f"{'without LLVM':>22}{'ratio':>8}{'with ptxas':>22}{'ratio':>8}"
    )
    for row in found[0][0]:
        line = f"{row:28}"
        for width, dropped in ((10, ("cubin",)), (12, ("ptx", "cubin")), (12, ())):
            then, now = (
                min(sum(ms for stage, ms in turn[side][row].items() if stage not in dropped) for turn in found)
                for side in (0, 1)
            )
            line += f"{then:{width}.1f}{now:10.1f}{now / then:8.2f}"
        print(line)


LATER = ("ttgir", "llir", "amdgcn", "hsaco")


def beside(own: float, theirs: dict[str, float] | None, stages: Sequence[str]) -> str:
    """Triton's time, and the ratio."""
    if theirs is None:
        return f"{'-':>10}{'':8}"
    total = sum(theirs[stage] for stage in stages)
    return f"{total:7.1f} ms{own / total:8.2f}"


if __name__ == "__main__":
    if "--base" in sys.argv:
        beside_commit(sys.argv[sys.argv.index("--base") + 1])
    else:
        from benchmarks.compile_time import triton_python

        main(triton_python(), sys.argv[1:])
