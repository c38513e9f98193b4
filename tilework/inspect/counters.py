"""Counters of a kernel by source line: a launch of it is repeated on an emulated GPU, with copies of its arguments.

    launch = Launch((4, 1, 1), (x, y, out, n, 1024))
    count(source, GPUTarget.parse("cuda:90"), {}, launch)["total"]["sectors"]

A launch in the emulator takes about a million times as long as on a GPU, so only the first programs of a grid run. PTX
is counted: AMD GPUs and CPUs are not.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from tilework.errors import SanitizerError
from tilework.inspect.profiler.launches import bytes_of
from tilework.targets.base import GPUTarget

PROGRAMS = 4  # that are run
PATIENCE = 400_000  # instructions of a block
UNPLACED = "PTX"  # the file of code that has no line
LARGEST = 256 << 20  # bytes of arguments that are copied


@dataclass(frozen=True)
class Launch:
    """A call of a kernel: the grid, and all arguments in order, constants too; `kept` keeps the targets of pointer
    tables alive."""

    grid: tuple[int, ...]
    arguments: tuple[Any, ...]
    kept: Any = None

    @classmethod
    def of(cls, grid: Sequence[int], arguments: Sequence[Any], kept: Any = None) -> "Launch | None":
        """A launch with copies of its arrays, as they are now; None if they are large."""
        if sum(bytes_of(argument) or 0 for argument in arguments) > LARGEST:
            return None
        return cls(tuple(grid), tuple(map(copied, arguments)), kept)


def copied(argument: Any) -> Any:
    """The argument, with arrays of its own in the memory of the host."""
    if isinstance(argument, tuple):
        return tuple(map(copied, argument)) if type(argument) is tuple else argument
    if hasattr(argument, "block_shape") and hasattr(argument, "base"):  # a descriptor
        made = copy.copy(argument)
        made.base = copied(argument.base)
        return made
    if isinstance(argument, np.ndarray):
        return copied_array(argument)
    if hasattr(argument, "detach") and hasattr(argument, "data_ptr"):
        return argument.detach().cpu().clone()
    return argument


def copied_array(array: Any) -> Any:
    """Copy an array to the same offset modulo 256 bytes that it has in its base: the offset decides which sectors are
    touched."""
    if not array.flags.c_contiguous:
        return array.copy(order="K")
    root = array
    while isinstance(root.base, np.ndarray):
        root = root.base
    start = (array.ctypes.data - root.ctypes.data) % 256
    whole = np.empty(array.nbytes + start, np.uint8)
    made = whole[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


def count(source: Any, target: GPUTarget, settings: Mapping[str, Any], launch: Launch | None) -> dict[str, Any]:
    """Return counts by line and in total; {"why": reason} if nothing could be counted."""
    if target.backend != "cuda":
        return {"why": f"the emulator counts what PTX does; this is code for {target}"}
    if launch is None:
        return {
            "why": "no launch is known: explore a program that launches the kernel, or give `.explore` its arguments"
            " and a grid"
        }
    from tilework.runtime.devices.emulated.emulated_driver import NVIDIA  # lazily: with the emulator

    if (arch := f"sm_{target.arch}") not in NVIDIA:
        return {"why": f"the emulator has no {arch}; it has {', '.join(NVIDIA)}"}
    try:
        counters, found = emulated(source, target, settings, launch, arch)
    except Exception as error:  # whatever the kernel does wrong is no reason to show nothing else
        return {"why": f"the launch failed in the emulator: {error}"}
    return {
        "grid": list(launch.grid),
        "programs": min(prod(launch.grid), PROGRAMS),
        "of": prod(launch.grid),
        "total": shown_counts(counters.total),
        "lines": [(place, shown_counts(counts)) for place, counts in counted_lines(counters)],
        "findings": found,
    }


def counted_lines(counters: Any) -> list[tuple[tuple[str, int], Any]]:
    """((file, line), counts) of all code that has a source line, in order."""
    return [(place, counts) for place, counts in sorted(counters.lines.items()) if place[0] != UNPLACED]


@contextmanager
def emulating(arch: str) -> Iterator[None]:
    """Launch on an emulated GPU that runs the first programs of a grid only; nothing is recorded."""
    from tilework.inspect.replay import active, silence  # lazily: with the emulator
    from tilework.runtime.devices.cuda.device import GPUS

    with silence(), active(f"emulator:{arch}"):
        for device in GPUS.library().loaded.devices:
            device.most_blocks, device.max_instructions = PROGRAMS, PATIENCE
        yield


def emulated(
    source: Any, target: GPUTarget, settings: Mapping[str, Any], launch: Launch, arch: str
) -> tuple[Any, list[str]]:
    """The counters of one launch, and the errors that the sanitizer found in it."""
    # lazily: with the emulator
    from tilework.runtime.compile.cached import compile
    from tilework.runtime.compile.compiled import launch_kernel
    from tilework.runtime.devices.active_driver import driver

    found: list[str] = []
    with emulating(arch):
        kernel = compile(source, target, dict(settings))
        stream = driver.active.get_current_stream(driver.active.get_current_device())
        chosen = kernel.justified(launch.grid, launch.arguments)
        try:
            launch_kernel(chosen, launch.grid, stream, launch.arguments)
        except SanitizerError as error:
            found = str(error).splitlines()
        return chosen.counters, found


def shown_counts(counts: Any) -> dict[str, Any]:
    """The counts of a line that a page shows."""
    return {
        "instructions": sum(counts.instructions.values()),
        "kinds": dict(sorted(counts.instructions.items())),
        "sectors": counts.sectors,
        "coalescing": round(counts.coalescing, 4) if counts.sectors else None,
        "wavefronts": counts.wavefronts,
        "conflicts": counts.conflicts,
        "tensor": counts.tensor_operations,
    }
