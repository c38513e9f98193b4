"""Tiles of sizes that are no powers of two on a real GPU: every op of the tables in `tests/differential`, against NumPy.

    python -m tests.device.check_odd_tiles [--draw 400] [--seconds 120]

Prints each case that differs, then one line for all. The exit code is 1 if there is one.
"""

import argparse
import random
import sys
import time
import traceback
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import tilework
from tests.differential.devices import signature_of
from tests.differential.tile_accesses import ACCESSES
from tests.targets.gpu_odd_tiles import all_cases, run_access, run_row
from tilework import knobs
from tilework.compiler import ASTSource
from tilework.language.function import JITFunction
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.devices.cuda.device import DeviceArray


def on_gpu(kernel: JITFunction, args: Mapping[str, Any], constants: Mapping[str, Any], grid: Sequence[int]) -> None:
    """Compile for the active device, launch, and bring the arrays back."""
    signature = {name: signature_of(args[name]) if name in args else "constexpr" for name in kernel.arg_names}
    compiled = tilework.compile(
        ASTSource(kernel, signature, dict(constants)), target=driver.active.get_current_target()
    )
    is_emulated = (knobs.runtime.device or "").startswith("emulator")  # there arrays are where they are
    arrays = {name: value for name, value in args.items() if isinstance(value, np.ndarray)}
    placed = dict(args) | ({} if is_emulated else {name: DeviceArray.of(array) for name, array in arrays.items()})
    compiled[(*grid, 1, 1)[:3]](*({**placed, **constants}[name] for name in kernel.arg_names))
    driver.active.get_device_interface().synchronize()
    for name, array in arrays.items():
        if not is_emulated:
            array[...] = placed[name].numpy()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", type=int, default=400, help="so many of the cases")
    parser.add_argument("--seconds", type=float, default=120, help="and no longer than this")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    cases = sorted({(name, size) for name, _, size in all_cases()})
    drawn = random.Random(given.seed).sample(cases, min(given.draw, len(cases)))
    end, done, wrong = time.monotonic() + given.seconds, 0, []
    for name, size in drawn:
        if time.monotonic() > end:
            break
        done += 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                (run_access if name in ACCESSES else run_row)(name, on_gpu, size)
        except Exception:
            wrong.append((name, size))
            print(f"{name} {size}: {traceback.format_exc()[-900:]}")
    print(f"{done} of {len(cases)} cases on {driver.active.get_current_target()}: {len(wrong)} wrong {wrong[:20]}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
