"""`kernel.run(x, y, z, stream, ...)` in machine code, for code that launches one compiled kernel again and again.

    run = kernel.run                                       # as torch's Inductor keeps it, with each kernel that it generates
    run(64, 1, 1, 0, kernel.function, packed, None, enter, leave, x, out, 256)        # packs the arguments, runs, describes
    run(64, 1, 1, 0, kernel.function, packed, None, enter, leave, y, out, 256)        # fits the description

The machine code is that of `native_machine.py`, and so is the rule: what fits no description takes the Python path, with the same
result. There is less to compare than for `kernel[grid]`: the kernel is chosen already, and whoever calls `run` has seen to it that the
arguments are what it was compiled for. So only their classes count, and how many threads there shall be.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from tilework import knobs
from tilework.runtime.devices.host.native_entry import (
    MOST_DESCRIPTIONS,
    MOST_ENTRIES,
    Chosen,
    constant_guard,
    entry_of,
    is_describable,
    replaces,
    value_guard,
)
from tilework.runtime.devices.host.native_machine import machine, make_binder
from tilework.targets.cpu.run import launcher_layout as native

MOST_GRIDS = 64
CHOSEN_ALREADY = SimpleNamespace(annotation_type=True, do_not_specialize_on_alignment=False)  # any integer fits


def repeated(launcher: Any, function: Any) -> Callable[..., None]:
    """What launches `function` as the launcher does; the launcher itself where there is no machine code for that."""
    if launcher.needs_scratch or launcher.signature is None or machine() is None:
        return launcher
    state: list[Any] = []
    state.append(python_path(launcher, function, state))
    bind = make_binder(state)
    by_grid: dict[tuple[int, int, int], Callable[..., Any]] = {}

    def run(
        x: int,
        y: int,
        z: int,
        stream: int,
        given: Any,
        packed_metadata: Any,
        launch_metadata: Any,
        enter_hook: Any,
        exit_hook: Any,
        *args: Any,
    ) -> None:
        """As the launcher."""
        if given is not function or enter_hook or exit_hook:
            return launcher(x, y, z, stream, given, packed_metadata, launch_metadata, enter_hook, exit_hook, *args)
        launch = by_grid.get((x, y, z))
        if launch is None:
            if len(by_grid) == MOST_GRIDS:
                by_grid.clear()
            launch = by_grid[x, y, z] = bind((x, y, z))
        launch(*args)

    return run


def python_path(launcher: Any, function: Any, state: list[Any]) -> Callable[..., None]:
    """What is called for a launch that fits no entry: launch, then describe it."""
    left = MOST_DESCRIPTIONS

    def launch(grid: tuple[int, int, int], /, *args: Any) -> None:
        nonlocal left
        if len(args) != (count := len(launcher.signature)):
            raise TypeError(f"{launcher.name} takes {count} arguments, constants included, and is given {len(args)}")
        launcher(*grid, 0, function, None, None, None, None, *args)
        if left and (entry := describe(launcher, function, args)) is not None:
            left -= 1
            state[1:] = [entry, *(old for old in state[1:MOST_ENTRIES] if not replaces(entry, old))]

    return launch


def describe(launcher: Any, function: Any, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The entry for launches like one that has just been done; None if it is not of a kind that can be described."""
    if not all(map(is_describable, args)) or (chosen := guards_of(launcher, args)) is None:
        return None
    slots = launcher.pack(args)
    if len(slots) > 8 * native.MOST_SLOTS or len(slots) != 8 * len(launcher.interface.parameters):
        return None
    watched: list[Any] = []
    for holder, name in knobs.places(knobs.runtime, "num_threads"):
        watched += [holder, name, holder.get(name, native.MISSING)]
    return entry_of(launcher, function, launcher, len(args), (), chosen, slots, tuple(watched), (), (), {})


def guards_of(launcher: Any, args: tuple[Any, ...]) -> list[Chosen] | None:
    """The guard of each argument; None if one of them has none."""
    interface, found, used = launcher.interface, [], 0
    alignments = dict(zip(interface.stored, (*interface.alignments, *(1,) * len(interface.stored)), strict=False))
    for type, arg in zip(launcher.signature, args, strict=True):
        if type == "constexpr":
            guard = constant_guard(arg)
        elif not isinstance(type, str) or used == len(interface.parameters):
            return None
        else:
            guard = value_guard(
                CHOSEN_ALREADY, arg, "", None, interface.parameters[used], used, alignments.get(used, 0)
            )
            used += 1
        if guard is None:
            return None
        found.append(guard)
    return found if used == len(interface.parameters) else None
