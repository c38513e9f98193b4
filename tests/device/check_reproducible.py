"""The same bits on the GPU, on this machine's CPU, and on the machine where the tables of digests were made.

    python -m tests.device.check_reproducible [--generated 500] [--steps 300] [--jobs 16] [--seconds 300]
    python -m tests.device.check_reproducible --write        make the table, on this machine's CPU

Each row: what was computed, its digest on the CPU, and PASS or where another one differs. Elementwise operations of
every type, the examples with 1, 4 and 8 warps, a network trained for some hundred steps, and generated kernels, whose
table is made by `python -m tests.fuzz.reproducible --digests tests/device/generated_digests.txt`. Without a GPU only
CPU and tables are compared. Reductions, scans, dots and ordered atomics are rows of their own. The exit code is the
number of rows that differ, 99 at most.
"""

import argparse
import inspect
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

import tilework
from examples.demo import all_cases
from tests.device.check_cuda_kernels import allocate
from tests.differential.elementwise_kernels import ROWS, N, random_values
from tests.differential.test_reproducible_orders import meeting, product, reductions, scans
from tests.differential.training import SHAPES, fresh, train
from tests.fuzz.reproducible import (
    DIFFERENT,
    EQUAL,
    LOST,
    RACING,
    REFUSED,
    Outcome,
    Tally,
    arguments,
    digest,
    fingerprint,
    generated,
    grid_of,
    meets,
    read_digests,
)
from tests.fuzz.run import load
from tests.fuzz.workers import Lost, results
from tests.targets.gpu_run import with_addresses

TABLE = Path(__file__).with_name("reproducible_digests.json")
GENERATED = Path(__file__).with_name("generated_digests.txt")  # python -m tests.fuzz.reproducible --digests
WARPS = (1, 4, 8)
LIMIT = 240  # seconds for one row
Arrays = dict[str, Any]
Launch = Callable[[Any, Sequence[int], Arrays, Arrays], None]  # of a kernel: grid, arguments, options


def on_host(kernel: Any, grid: Sequence[int], args: Arrays, options: Arrays) -> None:
    """Arrays of the host are computed on by the CPU, whatever else there is."""
    kernel[tuple(grid)](*args.values(), reproducible=True, **options)


def on_gpu(kernel: Any, grid: Sequence[int], args: Arrays, options: Arrays, memory: Sequence[Any] = ()) -> None:
    """The same with copies on the GPU, which are copied back."""
    from tilework.runtime.devices.active_driver import driver
    from tilework.runtime.devices.cuda.device import DeviceArray

    behind = [(array, DeviceArray.of(array)) for array in memory]
    moved = {array.ctypes.data: copy.data_ptr() for array, copy in behind}
    copies = {
        name: DeviceArray.of(with_addresses(value, moved))
        for name, value in args.items()
        if isinstance(value, np.ndarray)
    }
    kernel[tuple(grid)](*(copies.get(name, value) for name, value in args.items()), reproducible=True, **options)
    driver.active.get_device_interface().synchronize()
    for array, copy in [*behind, *((args[name], copy) for name, copy in copies.items())]:
        if not moved or array.dtype not in (np.int64, np.uint64):
            array[...] = copy.numpy().reshape(array.shape)


def elementwise(name: str, launch: Launch, warps: int) -> str:
    row = ROWS[name]
    args = row.arguments()
    launch(row.kernel, (1,), args, {"N": N, "num_warps": warps})
    return digest(args)


def orders() -> dict[str, tuple[Any, tuple[int, ...], Arrays, Arrays]]:
    """Kernels whose bits depend on an order: (kernel, grid, arguments, constants)."""
    rng = np.random.default_rng(7)

    def wild(*shape: int, dtype: Any = np.float32) -> Any:
        return (rng.standard_normal(shape) * 10.0 ** rng.uniform(-3, 3, shape)).astype(dtype)

    indices = rng.integers(0, 3, (2048, 64)).astype(np.int32)
    sums, pairs = np.zeros(64 + 256 + 1, np.float32), wild(64, 64)
    return {
        "reductions": (reductions, (1,), {"x": wild(64, 256), "out": sums}, {"M": 64, "N": 256}),
        "scans": (scans, (1,), {"x": wild(4096), "out": np.zeros(4096, np.float32)}, {"N": 4096}),
        "scans of 1000": (scans, (1,), {"x": wild(1000), "out": np.zeros(1000, np.float32)}, {"N": 1000}),
        "dots": (product, (1,), {"a": wild(64, 128), "b": wild(128, 64), "c": pairs}, {"N": 64, "K": 128}),
        "2048 programs taking turns": (
            meeting,
            (2, 1024),
            {"x": wild(2048, 64), "offsets": indices, "out": np.zeros(3, np.float32)},
            {"N": 64},
        ),
    }


def ordered(name: str, launch: Launch, warps: int) -> str:
    kernel, grid, args, constants = orders()[name]
    launch(kernel, grid, args, {**constants, "num_warps": warps})
    return digest(args)


def example(name: str, launch: Launch, warps: int) -> str:
    case = next(case for case in all_cases() if case.name == name)
    arrays = case.arguments(np.random.default_rng(5))
    args = {name: arrays[name] for name in case.kernel.arg_names if name in case.signature}
    if memory := case.memory(arrays):
        pointers = {id(value) for value in args.values()}
        if launch is on_gpu:
            on_gpu(case.kernel, case.grid, args, {**case.constexprs, "num_warps": warps}, memory)
        else:
            launch(case.kernel, case.grid, args, {**case.constexprs, "num_warps": warps})
        return digest({name: value for name, value in arrays.items() if id(value) not in pointers})
    launch(case.kernel, case.grid, args, {**case.constexprs, "num_warps": warps})
    return digest(arrays)


def training(steps: int, launch: Launch, warps: int) -> str:
    arrays = fresh()
    train(lambda kernel, args: launch(kernel, (1,), args, {"num_warps": warps}), steps, arrays)
    assert steps < 100 or arrays["loss"][0] < 1.0, f"the network learned nothing: {arrays['loss'][0]}"
    return digest({name: arrays[name] for name in (*SHAPES, "loss")})


def generated_kernel(seed: int, launch: Launch, warps: int, folder: Path) -> str:
    kernel = generated(seed)
    args = arguments(kernel, seed)
    launch(load(kernel, folder), grid_of(kernel), args, {"num_warps": warps})
    return digest({name: value for name, value in args.items() if isinstance(value, np.ndarray)})


def of_file(function: Any) -> str:
    return fingerprint(Path(inspect.getfile(function)).read_text())


def has_gpu() -> bool:
    from tilework.runtime.devices.cuda.driver import CudaDriver

    return CudaDriver.is_active()


def compared(compute: Callable[[Launch, int], str], wanted: str | None, gpu: bool) -> tuple[str, str]:
    """(the digest on the CPU, what differs)."""
    try:
        found = compute(on_host, 4)
    except Exception as error:
        if "reproducible" in str(error):  # floats in atomics, assembly
            return REFUSED, ""
        raise
    problems = [] if wanted in (None, found) else [f"the table has {wanted}"]
    for warps in WARPS if gpu else ():
        if (other := compute(on_gpu, warps)) != found:
            problems.append(f"the GPU with {warps} warps has {other}")
    return found, "; ".join(problems)


def generated_outcome(work: tuple[int, str | None, bool]) -> Outcome:
    """One generated kernel, in a process of its own; differences of one whose threads meet in memory are none."""
    seed, wanted, gpu = work
    if gpu:
        tilework.set_allocator(allocate)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder = Path(name)
        try:
            found, problem = compared(lambda launch, warps: generated_kernel(seed, launch, warps, folder), wanted, gpu)
            if problem and grid_of(generated(seed)) != (1,) and meets(generated(seed), folder):
                return Outcome(RACING)
        except Exception as error:
            found, problem = "", f"{type(error).__name__}: {str(error).strip().splitlines()[-1]}"
    if found == REFUSED:
        return Outcome(REFUSED)
    return Outcome(DIFFERENT if problem else EQUAL, problem, found, {"each": time.perf_counter() - start})


def check_generated(kernels: int, gpu: bool, jobs: int, seconds: float) -> int:
    """Generated kernels until so many have made a promise; how many broke it."""
    table, tally, end = read_digests(GENERATED), Tally(kernels, {}), time.monotonic() + seconds
    without = {seed for seed, word in table.items() if word in (RACING, REFUSED)}
    work = ((seed, table.get(seed), gpu) for seed in tally.seeds(0, 1, 1, end) if seed not in without)
    for (seed, wanted, _), found in results(generated_outcome, work, jobs, LIMIT, end):
        made = Outcome(LOST, found.why) if isinstance(found, Lost) else found
        tally.compared += made.kind == EQUAL and wanted is not None
        tally.add(seed, made)
    print(f"generated kernels: {tally}; {tally.compared} compared with the table")
    return tally.kinds[DIFFERENT] + tally.kinds[LOST]


def rows(steps: int) -> dict[str, Callable[[Launch, int], str]]:
    """The computations besides generated kernels; the slowest come first."""
    return {
        f"training, {steps} steps of {of_file(fresh)}": partial(training, steps),
        **{f"example {case.name} of {of_file(case.kernel.fn)}": partial(example, case.name) for case in all_cases()},
        **{f"{name} of {of_file(meeting.fn)}": partial(ordered, name) for name in orders()},
        **{f"{name} of {of_file(random_values)}": partial(elementwise, name) for name in ROWS},
    }


def row_outcome(work: tuple[str, str | None, int, bool]) -> tuple[str, str]:
    """One row, in a process of its own."""
    name, wanted, steps, gpu = work
    if gpu:
        tilework.set_allocator(allocate)
    try:
        return compared(rows(steps)[name], wanted, gpu)
    except Exception as error:
        return "", f"{type(error).__name__}: {error}"


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--generated", type=int, default=500)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=inf, help="after which no more generated kernels are begun")
    parser.add_argument("--write", action="store_true", help="make the table instead of comparing with it")
    args = parser.parse_args(words)
    start = time.monotonic()
    table: dict[str, str] = {} if args.write or not TABLE.exists() else json.loads(TABLE.read_text())
    gpu, made, bad = not args.write and has_gpu(), {}, 0
    print(f"CPU, {'GPU with 1, 4 and 8 warps, ' if gpu else 'no GPU, '}{len(table)} digests in the table", flush=True)
    work = [(name, table.get(name), args.steps, gpu) for name in rows(args.steps)]
    for (name, *_), found in results(row_outcome, work, args.jobs, LIMIT):
        made[name], problem = ("", found.why) if isinstance(found, Lost) else found
        bad += bool(problem)
        print(f"{'FAIL' if problem else 'PASS'}  {made[name]:16}  {name}  {problem}".rstrip(), flush=True)
    print(
        f"{sum(name in table for name in made)} of {len(made)} compared with the table, "
        f"{time.monotonic() - start:.0f} s"
    )
    if args.write:
        TABLE.write_text(json.dumps({name: made[name] for name in rows(args.steps)}, indent=0) + "\n")
    elif args.generated:
        bad += check_generated(args.generated, gpu, args.jobs, args.seconds)
    return min(bad, 99)


if __name__ == "__main__":
    sys.exit(main())
