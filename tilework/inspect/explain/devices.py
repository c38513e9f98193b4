"""One launch, repeated: in the interpreter, in the evaluator, as code of the CPU, and on emulated GPUs.

    launch = Launch(add, (x, y, out, 1000, 1024), (4, 1, 1), {"num_warps": 8})
    run_on("emulator:sm_90", launch)

Each run binds, specialises and compiles for its device as a program there would. Nothing is recorded meanwhile, and the active device is
what it was afterwards.
"""

import copy
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod
from typing import Any

from tilework import knobs
from tilework.runtime.devices.active_driver import default_driver, driver
from tilework.runtime.launch.python.binder import call_of
from tilework.runtime.launch.python.jit import DeviceCaches
from tilework.runtime.recording.recorder import QUIET

INTERPRETER, EVALUATOR, NATIVE = "interpreter", "evaluator", "native"
GPUS = ("emulator:sm_80", "emulator:sm_90", "emulator:gfx942")
DEVICES = (INTERPRETER, EVALUATOR, NATIVE, *GPUS)
PROGRAMS = 16  # of a grid that are run: the interpreter and the emulators are slow


@dataclass(frozen=True)
class Launch:
    """A kernel with all its arguments in order, a grid, and options."""

    fn: Any
    values: tuple[Any, ...]
    grid: tuple[int, int, int]
    options: Mapping[str, Any] = field(default_factory=dict)

    def first_programs(self, most: int = PROGRAMS) -> "Launch":
        """The same with a smaller grid, if it is a large one."""
        x = min(self.grid[0], most)
        y = min(self.grid[1], max(most // max(x, 1), 1))
        return Launch(self.fn, self.values, (x, y, min(self.grid[2], max(most // max(x * y, 1), 1))), self.options)

    @property
    def programs(self) -> int:
        return prod(self.grid)

    def call(self, options: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the positional and keyword arguments of this launch with `options`."""
        return call_of(self.fn, self.values, options)


def run_on(device: str, launch: Launch) -> Any:
    """Run a launch once; the compiled kernel, if there is one."""
    with silence():
        if device == INTERPRETER:
            return interpreted(launch)
        with active(device):
            made = unlaunched(launch.fn)
            args, kwargs = launch.call(launch.options)
            return made.run(*args, grid=launch.grid, warmup=False, **kwargs)


def interpreted(launch: Launch) -> None:
    from tilework.oracles.interpreter import InterpretedFunction  # lazily: a whole executor
    from tilework.oracles.interpreter.function import COMPILER_OPTIONS

    fn = launch.fn
    kernel = InterpretedFunction(fn.fn, debug=fn.debug, do_not_specialize=fn.do_not_specialize)
    kernel.sanitize, kernel.reproducible = None, fn.reproducible
    options = {name: value for name, value in launch.options.items() if name in COMPILER_OPTIONS}
    args, kwargs = launch.call(options)
    kernel[launch.grid](*args, **kwargs)


def unlaunched(fn: Any) -> Any:
    """The same kernel without anything that was compiled of it."""
    made = copy.copy(fn)
    made.device_caches = DeviceCaches(made.create_binder)
    made._compiled_as = {}
    made.pre_run_hooks = []
    return made


@contextmanager
def silence() -> Iterator[None]:
    """What this thread does inside is not recorded, and it warns of nothing."""
    before, QUIET.is_quiet = QUIET.is_quiet, True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        QUIET.is_quiet = before


@contextmanager
def active(device: str) -> Iterator[None]:
    """What TILEWORK_DEVICE would choose is the active device."""
    from tilework.runtime.devices.cuda.device import GPUS as NVIDIA  # lazily: few change the device
    from tilework.runtime.devices.hip.hip_device import GPUS as AMD

    before = (driver._active, driver._host)
    libraries = [(gpus.found, gpus.found.found) for gpus in (NVIDIA, AMD)]
    with knobs.runtime.scope():
        knobs.runtime.device = device
        knobs.runtime.explain = None
        try:
            driver.set_active(default_driver())
            yield
        finally:
            driver._active, driver._host = before
            for place, found in libraries:
                place.found = found
