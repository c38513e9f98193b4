"""One launch on every device there is, with several numbers of warps and threads: all results must have the same bits.

>>> everywhere(kernel, {"x": x, "out": out}, {"N": 64})

`make test` takes some of them, all with REPRODUCIBLE_ALL=1.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tilework import knobs
from tilework.inspect.replay import EVALUATOR, INTERPRETER, NATIVE, Launch, run_on

Array = np.ndarray[Any, Any]
SETUPS: dict[str, tuple[str, dict[str, Any], int]] = {  # device, options, threads
    "interpreter": (INTERPRETER, {}, 1),
    "evaluator": (EVALUATOR, {}, 1),
    "cpu, 1 thread": (NATIVE, {}, 1),
    "cpu, 2 threads": (NATIVE, {}, 2),
    "sm_80, 1 warp": ("emulator:sm_80", {"num_warps": 1}, 1),
    "sm_80, 4 warps": ("emulator:sm_80", {"num_warps": 4}, 1),
    "sm_80, 8 warps": ("emulator:sm_80", {"num_warps": 8, "num_stages": 2}, 1),
    "sm_90, 1 warp": ("emulator:sm_90", {"num_warps": 1}, 1),
    "sm_90, 4 warps": ("emulator:sm_90", {"num_warps": 4}, 1),
    "sm_90, 8 warps": ("emulator:sm_90", {"num_warps": 8, "num_stages": 2}, 1),
    "gfx942, 4 warps": ("emulator:gfx942", {"num_warps": 4}, 1),
}
QUICK = ("interpreter", "evaluator", "cpu, 2 threads", "sm_80, 8 warps", "gfx942, 4 warps")
CHOSEN = tuple(SETUPS) if os.environ.get("REPRODUCIBLE_ALL") else QUICK


def everywhere(
    kernel: Any,
    args: Mapping[str, Any],
    constants: Mapping[str, Any] | None = None,
    grid: Sequence[int] = (1,),
    setups: Sequence[str] = CHOSEN,
) -> dict[str, Array]:
    """The arrays after a launch, which are the same in all places."""
    (wanted, *_) = [arrays for _, arrays in in_setups(kernel, args, constants, grid, setups)]
    return wanted


def in_setups(
    kernel: Any,
    args: Mapping[str, Any],
    constants: Mapping[str, Any] | None = None,
    grid: Sequence[int] = (1,),
    setups: Sequence[str] = CHOSEN,
) -> Iterator[tuple[str, dict[str, Array]]]:
    """(place, the arrays after a launch there), one after the other; an `AssertionError` where they differ from those
    of the first."""
    wanted: dict[str, Array] = {}
    for setup in setups:
        device, options, threads = SETUPS[setup]
        own = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in args.items()}
        given = {**own, **(constants or {})}
        values = tuple(given[name] for name in kernel.arg_names)
        with knobs.runtime.scope():
            knobs.runtime.num_threads = threads
            x, y, z = [*grid, 1, 1][:3]
            run_on(device, Launch(kernel, values, (x, y, z), {**options, "reproducible": True}))
        arrays = {name: value for name, value in own.items() if isinstance(value, np.ndarray)}
        for name, array in wanted.items():
            if not np.array_equal(bits(array), bits(arrays[name])):
                where = np.flatnonzero(bits(array) != bits(arrays[name]))
                old, new = array.ravel()[where[0]], arrays[name].ravel()[where[0]]
                raise AssertionError(
                    f"{name}: {len(where)} of {array.size} differ between {setups[0]} and {setup}, "
                    f"at {where[0]}: {old!r}, {new!r}"
                )
        wanted = wanted or arrays
        yield setup, arrays


def bits(array: Array) -> Array:
    return array.reshape(-1).view(f"u{array.itemsize}")
