"""The sample kernels on a real GPU: from `kernel[grid](...)` to the result, compared with NumPy.

    python -m tests.device.check_cuda_kernels [--warps 4 8] [--stages 3] [--jobs 8] [NAME ...]

With several jobs each kernel has a process of its own, so that one which breaks the GPU's context breaks nothing else.
Each line: the kernel, its warps and stages, PASS or what differs, the registers, spills and shared memory, and the
seconds that compiling took. The exit code is the number of failures, 99 at most.
"""

import argparse
import copy
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import tilework
from examples.case import Case
from tests.pipeline.gpu import CASES, contents
from tests.targets.gpu_run import flat, with_addresses
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.devices.cuda.device import DeviceArray


def run(case: Case, warps: int, stages: int) -> tuple[str | None, Any]:
    """(what is wrong, the compiled kernel)."""
    arrays = case.arguments(np.random.default_rng(11))
    expected = dict(contents(case.expected(copy.deepcopy(arrays))))
    memory = {id(array): DeviceArray.of(array) for array in case.memory(arrays)}
    moved = {array.ctypes.data: memory[id(array)].data_ptr() for array in case.memory(arrays)}
    placed = dict(memory)
    for value in arrays.values():
        for array in flat(value):
            placed.setdefault(id(array), DeviceArray.of(with_addresses(array, moved)))
    args = [placed.get(id(arrays[name]), arrays[name]) for name in case.kernel.arg_names if name in case.signature]
    kernel = case.kernel[case.grid](*args, **case.constexprs, num_warps=warps, num_stages=stages)
    driver.active.get_device_interface().synchronize()
    for value in arrays.values():
        for array in flat(value):
            if moved and array.dtype in (np.int64, np.uint64):
                continue
            array[...] = placed[id(array)].numpy().reshape(array.shape)
    found = dict(contents(arrays))
    for label, wanted in expected.items():
        error = float(np.max(np.abs(found[label].astype("f8") - wanted.astype("f8").reshape(found[label].shape))))
        if not error <= tolerance(case):
            return f"{label} is off by {error:.3g} (allowed {tolerance(case):.3g})", kernel
    return None, kernel


def tolerance(case: Case) -> float:
    """The tolerance beside NumPy's result: f32 dots use tf32 on a GPU."""
    return max(case.atol, 5e-3 if "matmul_fp32" in case.name or case.name in ("chained", "nested") else 0)


KEPT: list[DeviceArray] = []


def allocate(size: int, alignment: int, stream: int | None) -> DeviceArray:
    """Scratch memory, for descriptors that kernels make; it must stay until the kernel has run."""
    KEPT.append(DeviceArray(size, "uint8"))
    return KEPT[-1]


def run_alone(name: str, warps: int, stages: int) -> bool:
    """One kernel in another process; whether it failed."""
    command = [sys.executable, "-m", "tests.device.check_cuda_kernels", name]
    command += ["--warps", str(warps), "--stages", str(stages)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines() or [f"{name}: exit code {done.returncode}: {done.stderr[-600:]}"]
    print("\n".join(lines[:-1] or lines), flush=True)
    return done.returncode != 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--warps", type=int, nargs="*", default=[4])
    parser.add_argument("--stages", type=int, nargs="*", default=[3])
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    if given.jobs > 1:
        names = given.names or sorted(CASES)
        listed = [(name, warps, stages) for name in names for warps in given.warps for stages in given.stages]
        with ThreadPoolExecutor(given.jobs) as pool:
            failures = sum(pool.map(lambda one: run_alone(*one), listed))
        print(f"{failures} of {len(listed)} failed")
        return min(failures, 99)
    tilework.set_allocator(allocate)
    failures = 0
    for name in given.names or sorted(CASES):
        for warps in given.warps:
            for stages in given.stages:
                start = time.perf_counter()
                facts = ""
                try:
                    problem, kernel = run(CASES[name], warps, stages)
                    facts = f"{kernel.n_regs} registers, {kernel.n_spills} spills, {kernel.metadata.shared} B shared"
                except Exception as error:
                    problem = f"{type(error).__name__}: {str(error)[:600]}"
                failures += problem is not None
                took = time.perf_counter() - start
                said = "PASS" if problem is None else f"FAIL {problem}"
                print(f"{name:28} warps {warps} stages {stages}  {said}  {facts}  {took:.2f} s", flush=True)
    print(f"{failures} failed")
    return min(failures, 99)


if __name__ == "__main__":
    sys.exit(main())
