"""Generated kernels on a real GPU, against the interpreter: the constructs of `docs/python.md` among all others.

    python -m tests.device.check_generated --kernels 200 [--first 0] [--plain]

Every kernel that differs is a line with its seed; then one line for all. Kernels are not fused, so that floats differ
only by what elementary functions and the order of sums allow; one whose threads meet in global memory without order
(the emulator says so) or whose results tell the order of its programs (the evaluator says so) may differ. ``--plain``
draws kernels of what Triton has, ``--loops`` short ones of nested loops, ``--hashes`` and ``--strides`` those of
`tests.fuzz.gpu`; with ``--ctas 2`` two blocks run each program. The exit code is the number of failures, 99 at most;
``--seconds`` ends early.
"""

import argparse
import sys
import tempfile
import time
import warnings
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

import tilework
from tests.device.check_cuda_kernels import allocate
from tests.fuzz.comparison import Unordered, annotated, arguments, interpreted, problem_with
from tests.fuzz.gpu import (
    BLOCK,
    MEETING,
    MOST_REFUSED,
    REFUSED,
    Refused,
    depends_on_order,
    finds_races,
    has_unordered_atomics,
    warps_of,
)
from tests.fuzz.kernels import Kernel, generate_kernel
from tests.fuzz.run import load
from tilework import knobs
from tilework.errors import SanitizerError
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.devices.cuda.device import DeviceArray


def compare(kernel: Kernel, folder: Path, ctas: int) -> str | None:
    """Return the first difference between the GPU and the interpreter, or None; raise `Unordered` if there is no single
    result."""
    got = arguments(kernel, kernel.seed)
    compiled = load(annotated(kernel), folder)
    is_emulated = (knobs.runtime.device or "").startswith("emulator")  # there arrays are where they are
    upload = np.asarray if is_emulated else DeviceArray.of
    placed: dict[str, Any] = {name: upload(x) if isinstance(x, np.ndarray) else x for name, x in got.items()}
    compiled[kernel.grid](**placed, num_warps=warps_of(kernel.seed), enable_fp_fusion=False, num_ctas=ctas)
    driver.active.get_device_interface().synchronize()
    wanted = interpreted(kernel, folder)
    if MEETING.search(kernel.source) or (ctas > 1 and has_unordered_atomics(kernel)):
        raise Unordered
    found = {
        name: np.asarray(placed[name] if is_emulated else placed[name].numpy())
        .view(wanted[name].dtype)
        .reshape(wanted[name].shape)
        for name in kernel.inputs
    }
    problem = problem_with(kernel, folder, found, wanted)
    if problem and (depends_on_order(kernel, folder) or finds_races(kernel, folder, warps_of(kernel.seed))):
        raise Unordered
    return problem


def problem_of(seed: int, folder: Path, ctas: int, **about: bool) -> str | None:
    """`compare` of one seed; errors are problems too, but `Refused` is raised."""
    try:
        return compare(generate_kernel(seed, **about), folder, ctas)
    except Unordered:
        return None
    except SanitizerError as error:  # of the emulator
        meets = "race: " in str(error) or len(set(BLOCK.findall(str(error)))) > 1
        return None if meets else str(error)
    except Exception as error:
        if ctas > 1 and (why := REFUSED.search(str(error))):
            raise Refused(why[1]) from None
        return f"{type(error).__name__}: {(str(error).strip() or 'no message').splitlines()[-1]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=inf, help="after which no other kernel begins")
    parser.add_argument("--plain", action="store_true", help="only what Triton has")
    parser.add_argument("--loops", action="store_true", help="mostly loops")
    parser.add_argument("--hashes", action="store_true", help="integers that overflow")
    parser.add_argument("--strides", action="store_true", help="tiles with strides of any sign")
    parser.add_argument("--ctas", type=int, default=1, help="blocks for each program")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    tilework.set_allocator(allocate)
    about = {f"about_{name}": getattr(args, name) for name in ("loops", "hashes", "strides")}
    about["about_python"] = not (args.plain or any(about.values()))
    target, start, count, bad, refused = driver.active.get_current_target(), time.perf_counter(), 0, 0, 0
    with tempfile.TemporaryDirectory() as name:
        for seed in range(args.first, args.first + MOST_REFUSED * args.kernels):
            if count == args.kernels or time.perf_counter() - start > args.seconds:
                break
            try:
                problem = problem_of(seed, Path(name), args.ctas, **about)
            except Refused:
                refused += 1
                continue
            count += 1
            if problem is not None:
                bad += 1
                print(f"seed {seed}: {problem}"[:400], flush=True)
    seconds = time.perf_counter() - start
    reported = f", {refused} others are refused" if refused else ""
    print(f"{count} generated kernels on {target}: {bad} differ{reported}, {seconds:.0f} s")
    return min(bad, 99)


if __name__ == "__main__":
    sys.exit(main())
