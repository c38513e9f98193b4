"""`kernel.run(x, y, z, stream, ...)` in machine code, for code that launches one compiled kernel again and again.

    run = kernel.run                                       # torch's Inductor keeps it with each kernel
    run(64, 1, 1, 0, kernel.function, packed, None, enter, leave, x, out, 256)   # Python: packs, runs, makes an entry
    run(64, 1, 1, 0, kernel.function, packed, None, enter, leave, y, out, 256)   # fits the entry

The machine code is that of `machine.py`: a launch that fits no entry takes the Python path, with the same result. There
is less to compare than for `kernel[grid]`, because the kernel is chosen already and the caller of `run` guarantees that
the arguments are those it was compiled for. Only their classes count, and what the device adds: on the host the number
of threads, on a GPU the context. Each stream has entries of its own.
"""

from collections.abc import Callable, Sequence
from typing import Any

from tilework.runtime.devices.launcher import Extent, Hook, Launcher
from tilework.runtime.launch.facts import NOTHING
from tilework.runtime.launch.native import layout as native
from tilework.runtime.launch.native.entries import (
    Entries,
    Entry,
    Guards,
    Undescribable,
    entry_of,
    is_describable,
)
from tilework.runtime.launch.native.machine import machine, make_binder

MOST_GRIDS = 64


class OneStream:
    """The driver of launches into one stream, as far as a launcher needs one."""

    def __init__(self, stream: int) -> None:
        self.get_stream = {0: stream}.__getitem__

    def stream_call(self) -> tuple[Callable[[int], int], int, tuple[int, int]]:
        return self.get_stream, 0, (0, 0)


def repeated(
    launcher: Launcher, function: object, check: Callable[[Sequence[object]], None] | None = None
) -> Callable[..., None]:
    """Return a function that launches `function` as the launcher does; the launcher itself where there is no machine
    code for that.

    `check` sees the arguments of launches that are like none before.
    """
    types = launcher.signature
    if (launcher.needs_scratch and not launcher.natively_scratched) or types is None or machine() is None:
        return launcher
    binders: dict[int, Callable[[object], Callable[..., object]]] = {}  # by stream
    launches: dict[tuple[int, int, int, int], Callable[..., object]] = {}

    def made(x: int, y: int, z: int, stream: int) -> Callable[..., object]:
        if len(launches) >= MOST_GRIDS:
            launches.clear()
            binders.clear()
        if stream not in binders:
            entries = Entries(launcher, {str(position): NOTHING for position in range(len(types))})
            entries.state[native.PYTHON] = python_path(launcher, function, stream, entries, check)
            binders[stream] = make_binder(entries.state)
        launches[x, y, z, stream] = launch = binders[stream]((x, y, z))
        return launch

    def run(
        x: int,
        y: int,
        z: int,
        stream: int,
        given: object,
        packed_metadata: object,
        launch_metadata: object,
        enter_hook: Hook,
        exit_hook: Hook,
        *args: object,
    ) -> None:
        """As the launcher."""
        if given != function or enter_hook or exit_hook:
            return launcher(x, y, z, stream, given, packed_metadata, launch_metadata, enter_hook, exit_hook, *args)
        (launches.get((x, y, z, stream)) or made(x, y, z, stream))(*args)

    return run


def python_path(
    launcher: Launcher,
    function: object,
    stream: int,
    entries: Entries,
    check: Callable[[Sequence[object]], None] | None,
) -> Callable[..., None]:
    """Return the function for launches that fit no entry: it launches, then describes the launch."""

    def launch(grid: Extent, /, *args: object) -> None:
        if len(args) != (count := len(launcher.signature or ())):
            raise TypeError(f"{launcher.name} takes {count} arguments, constants included, and is given {len(args)}")
        if check is not None:
            check(args)
        launcher(*grid, stream, function, None, None, None, None, *args)
        if entries.is_wanted(entries.key(*args)):
            made = describe(launcher, function, stream, args)
            entries.add(entries.key(*args), made)

    return launch


def describe(launcher: Launcher, function: object, stream: int, args: tuple[object, ...]) -> Entry | None:
    """Return the entry for launches like one that has just been done; None if it cannot be described."""
    if not all(is_describable(arg, launcher.memory_of) for arg in args):
        return None
    if (adds := launcher.native(OneStream(stream), function, args)) is None:
        return None
    guards = Guards(adds, len(args))
    try:
        for position, (type, arg) in enumerate(zip(launcher.signature or (), args, strict=True)):
            guards.argument(NOTHING, type, *unspecialised(type), arg, position)
        guards.finish()
    except Undescribable:
        return None
    return entry_of(adds, guards, launcher, len(args), ())


def unspecialised(type: object) -> tuple[Any, Any]:
    """(spec, key) of a type, as they are for an argument about which nothing else is known."""
    if isinstance(type, tuple):
        return tuple(unspecialised(inner)[0] for inner in type), tuple(unspecialised(inner)[1] for inner in type)
    return type, None
