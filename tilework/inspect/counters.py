"""Counters of a kernel by source line: a launch of it is repeated on an emulated GPU, with copies of its arguments.

    launch = Launch.of(add, (x, y, out, n, 1024), (4,)).copied()
    count(source, GPUTarget.parse("cuda:90"), {}, launch)["total"]["sectors"]

A launch in the emulator takes about a million times as long as on a GPU, so only the first programs of a grid run. PTX
is counted: AMD GPUs and CPUs are not.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tilework.errors import SanitizerError
from tilework.inspect.replay import (
    Died,
    Kept,
    Launch,
    OutOfReach,
    active,
    isolated,
    launched,
    limited,
    names_of,
    silence,
)
from tilework.targets.base import GPUTarget

PROGRAMS = 4  # that are run
PATIENCE = 400_000  # instructions of a block
UNPLACED = "PTX"  # the file of code that has no line
COUNTING_SECONDS = 20.0
COUNTS = ("wavefronts", "conflicts", "tile_sectors", "least_sectors", "sectors", "requests")


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
        "programs": min(launch.programs, PROGRAMS),
        "of": launch.programs,
        "total": shown_counts(counters.total),
        "lines": [(line, shown_counts(counts)) for line, counts in counted_lines(counters)],
        "findings": found,
    }


def counted_lines(counters: Any) -> list[tuple[tuple[str, int], Any]]:
    """((file, line), counts) of all code that has a source line, in order."""
    return [(line, counts) for line, counts in sorted(counters.lines.items()) if line[0] != UNPLACED]


@contextmanager
def emulating(arch: str) -> Iterator[None]:
    """Launch on an emulated GPU that runs the first programs of a grid only; nothing is recorded."""
    from tilework.runtime.devices.cuda.device import GPUS  # lazily: with the emulator

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
        chosen = kernel.justified(launch.grid, launch.values)
        try:
            launch_kernel(chosen, launch.grid, stream, launch.values)
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


def counts_apart(launch: Launch, target: GPUTarget) -> dict[str, Any]:
    """The same as `counts_of`, in a copy of the process."""
    found = isolated(lambda: counts_of(launch, target))
    return {"why": f"the emulator's process ended: {found.how}"} if isinstance(found, Died) else found


def counts_of(launch: Launch, target: GPUTarget) -> dict[str, Any]:
    """Counts of the first programs of a launch, by line; `why` there are none, if so."""
    print(f"tilework explain: counting {launch.fn.__name__} in the emulator ({target})", file=sys.stderr)
    try:
        with Kept(list(names_of(launch.fn, launch.values))), limited(COUNTING_SECONDS), emulating(f"sm_{target.arch}"):
            counters = launched(launch).counters
    except OutOfReach as error:
        return {"why": str(error)}
    except Exception as error:  # a kernel that fails in the emulator is no reason not to say the rest
        return {"why": f"{type(error).__name__}: {error}"}
    lines = [
        {"file": file, "line": line, **{name: getattr(counts, name) for name in COUNTS}}
        for (file, line), counts in counted_lines(counters)
    ]
    return {"programs": min(launch.programs, PROGRAMS), "lines": lines}
