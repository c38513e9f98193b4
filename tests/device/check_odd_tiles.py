"""Tiles of sizes that are no powers of two on a real GPU: every op of the tables in `tests/differential`, against
NumPy.

    python -m tests.device.check_odd_tiles --jobs 16 [--draw 400] [--seconds 120]

Every process compiles its cases and launches them on the one GPU; one whose launch failed is not used again.
`tests/sweep.py` says what else it takes.
"""

import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import tilework
from tests.differential.devices import Refused, innermost, signature_of
from tests.differential.tile_accesses import ACCESSES
from tests.sweep import chosen, options, size_text, sweep
from tests.targets.gpu_odd_tiles import all_cases, run_access, run_row
from tilework import knobs
from tilework.compiler import ASTSource
from tilework.errors import CompilationError
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


def run_case(name: str, size: tuple[int, ...]) -> None:
    """Raise if the GPU does not do what NumPy does."""
    try:
        (run_access if name in ACCESSES else run_row)(name, on_gpu, size)
    except CompilationError as error:
        raise Refused(innermost(error)) from error


def repeat(case: tuple[Any, ...]) -> str:
    return f"python -m tests.device.check_odd_tiles {shlex.quote(case[0])} --size {size_text(case[1])}"


def main() -> int:
    args = options(__doc__).parse_args()
    cases = sorted({(name, size) for name, _, size in all_cases()})
    return sweep(chosen(cases, args), run_case, repeat, args)


if __name__ == "__main__":
    sys.exit(main())
