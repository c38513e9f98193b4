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

from tilework.runtime.launch.native_entry import (
    MOST_DESCRIPTIONS,
    Guards,
    Undescribable,
    entry_of,
    is_describable,
    with_entry,
)
from tilework.runtime.launch.native_machine import machine, make_binder

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
            state[1:] = with_entry(state[1:], entry)

    return launch


def describe(launcher: Any, function: Any, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The entry for launches like one that has just been done; None if it is not of a kind that can be described."""
    adds = launcher.native(None, function, args)
    if not all(is_describable(arg, launcher.memory_of) for arg in args) or adds is None:
        return None
    guards = Guards(adds, len(args))
    try:
        for position, (type, arg) in enumerate(zip(launcher.signature, args, strict=True)):
            guards.argument(CHOSEN_ALREADY, type, *unspecialised(type), arg, position)
        guards.finish()
    except Undescribable:
        return None
    return entry_of(adds, guards, launcher, len(args), ())


def unspecialised(type: Any) -> tuple[Any, Any]:
    """(spec, key) of a type, as they are for an argument about which nothing else is known."""
    if isinstance(type, tuple):
        return tuple(unspecialised(inner)[0] for inner in type), tuple(unspecialised(inner)[1] for inner in type)
    return type, None
