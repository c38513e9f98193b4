"""`kernel[grid](*args)` in machine code, for launches like an earlier one.

    launch = add[(1,)]
    launch(x, y, out, 1024, BLOCK=1024)        # through Python: binds, compiles, runs, and describes the launch
    launch(x, y, out, 2048, BLOCK=1024)        # fits the description: no Python code runs

The machine code is that of `machine.py`; this module gives it entries (`entries.py`), for every device whose launcher
supports that (`Launcher.native`): for `kernel[grid]`, and for `kernel.run` at the end of this file. A launch that fits
no entry takes the Python path with the same arguments, so that the result, the errors and the hooks are the same.
Entries watch everything else that the Python path depends on: driver, caches, hooks, globals of the kernel, debug
settings.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakSet

from tilework import knobs
from tilework.language import core as tl
from tilework.language.function import ON_CHANGE
from tilework.runtime.compile.compiled import CompiledKernel
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.devices.launcher import Extent, Hook, Launcher
from tilework.runtime.launch.native import layout as native
from tilework.runtime.launch.native.entries import (
    CONSTANTS,
    Entries,
    Entry,
    Guards,
    Undescribable,
    entry_of,
    is_describable,
)
from tilework.runtime.launch.native.launch_log import is_refusing
from tilework.runtime.launch.native.machine import MADE, machine, make_binder
from tilework.runtime.launch.python.dynamo_rules import untraced
from tilework.runtime.launch.python.specialization import Captured
from tilework.runtime.launch.python.specialize import NOTHING, VALUE, facts_of

if TYPE_CHECKING:
    from tilework.runtime.launch.python.jit import BindGrid, Kernels


class Tuned(NamedTuple):
    """The inputs of a launch of an autotuned kernel beside its arguments.

    `settings` are the keyword arguments that its configuration adds; the arguments called `exact` must have the same
    values for the configuration to be the same, and `watched` (dictionary, key, value triples) and `contents`
    (container, items pairs) must not change.
    """

    settings: dict[str, object]
    exact: frozenset[str]
    watched: tuple[object, ...]
    contents: tuple[object, ...]


PLAIN = Tuned({}, frozenset(), (), ())


TunedOf = Callable[[tuple[object, ...], dict[str, object]], Tuned | None]


def binder_of(fn: Any, tuned: TunedOf = lambda args, kwargs: PLAIN) -> "BindGrid | None":
    """The function that makes `fn[grid]` of a grid, kept in `fn`; None if the active driver does not launch natively.

    `fn` is a kernel, or an autotuner whose `tuned` returns what a launch with such arguments adds, or None if each
    launch needs Python.
    """
    if knobs.runtime.bundle:
        from tilework.runtime.bundle.serving import begin  # lazily: few programs are served

        begin()  # a bundle may contain the launcher
    if not driver.active.launches_natively():
        return None
    if machine(waits=False) is None:
        if not MADE:  # it is being compiled
            return fn.by_python
        bind = fn.__dict__["_bind_grid"] = fn.in_python  # this process has no launcher: never look again
        return bind
    params: Any = fn.fn.params if hasattr(fn.fn, "params") else fn.params  # of the kernel that an autotuner tunes
    exact = getattr(fn, "keys", ())
    facts = {param.name: VALUE if param.name in exact else facts_of(param) for param in params}
    entries = Entries(fn.run, facts)
    entries.state[native.PYTHON] = python_path(fn, tuned, entries)
    bind = fn.__dict__["_bind_grid"] = make_binder(entries.state)
    return bind


def python_path(fn: Any, tuned: TunedOf, entries: Entries) -> Callable[..., Any]:
    """Return the function for launches that fit no entry: it launches, then describes the launch."""

    @untraced
    def launch(grid: object, /, *args: object, **kwargs: object) -> Any:
        if driver._host is not None and (elsewhere := driver.elsewhere(fn, args, kwargs)) is not None:
            with elsewhere:
                return launch(grid, *args, **kwargs)
        kernel = fn.run(*args, grid=grid, warmup=False, **kwargs)
        if not is_watched() and entries.is_wanted(entries.key(*args, **kwargs)):
            adds = tuned(args, kwargs)
            made = None if adds is None else describe(fn, kernel, grid, args, kwargs, adds)
            entries.add(entries.key(*args, **kwargs), made)  # again: `describe` registers classes, which changes keys
        return kernel

    return launch


def is_watched() -> bool:
    """Return True if hooks or a listener need launches to run in Python, so that no entry would fit."""
    runtime = knobs.runtime
    hooks = (runtime.launch_enter_hook, runtime.launch_exit_hook, runtime.add_stages_inspection_hook)
    return any(map(bool, hooks)) or is_refusing()


def describe(
    fn: Any, kernel: Any, grid: object, args: tuple[object, ...], kwargs: dict[str, object], tuned: Tuned
) -> Entry | None:
    """Return the entry for launches like one that has just been done; None if it cannot be described."""
    if tuned is not PLAIN:
        fn = fn.fn
    active = driver.active
    run = kernel._loaded.launch if isinstance(kernel, CompiledKernel) else None
    if not isinstance(run, Launcher) or not (callable(grid) or type(grid) is tuple):
        return None
    if run.needs_scratch and not run.natively_scratched:
        return None
    if not all(
        isinstance(hook, knobs.HookChain) for hook in (knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook)
    ):
        return None
    if not all(is_describable(value, run.memory_of) for value in (*args, *kwargs.values())):
        return None
    try:
        device = driver.cache_key(active)
        kernels, keys, _, _, bind = fn.device_caches[device]
        values, specs, kinds, options = bind(*args, **kwargs, **tuned.settings)
        marker = (specs, kinds, tuple(options.items()) if options else (), *fn.switches())
        key = keys.get(marker)
        follows = driver._host is not None and active.is_chosen_by(values)
        adds = run.native(active, kernel.function, values, follows=follows)
        if adds is None or key is None or (chosen := kernels.get(key)) is None:
            return None
        if chosen is not kernel:
            if kernel is not chosen._loaded.plain:
                return None
            if isinstance(guarded := chosen._loaded.launch, Launcher):  # there is none if it needs too much memory
                adds = guarded.refusing(adds)
        names = [*fn.arg_names[: len(args)], *kwargs]
        guards = Guards(adds, len(names))
        positions = {name: index for index, name in enumerate(names)}
        for param, type_, value, (spec, of_key) in zip(
            fn.params, kernel.src.signature.values(), values, specs, strict=True
        ):
            source = positions.get(param.name)
            is_exact = source is not None and param.name in tuned.exact
            guards.argument(facts_of(param), type_, spec, of_key, value, None if is_exact else source)
            if source is not None and is_exact:
                guards.constant(value, source)
        for name in options.keys() & positions:
            guards.constant(options[name], positions[name])
        guards.finish()
    except (Undescribable, TypeError, ValueError, OverflowError, KeyError):  # or something changed since the launch
        return None
    DESCRIBED.add(fn)
    watched, hooks = watches(fn, kernel, device, kernels, key, chosen)
    if (
        any(hooks)
        or any(type(hook) is not list for hook in hooks)
        or (captured := captured_globals({**(fn._globals or {}), **fn._argument_globals.get(key, {})})) is None
    ):
        return None
    given = {name: None if name in names else value for name, value in zip(fn.arg_names, values, strict=True)}
    watched = (*watched, *captured, *tuned.watched)
    shown = tuple(name if name in fn.arg_names else None for name in names)
    return entry_of(adds, guards, kernel, len(args), tuple(kwargs), watched, tuned.contents, hooks, shown, given)


DESCRIBED: "WeakSet[Any]" = WeakSet()  # the functions that have entries


def forget_sources() -> None:
    """Invalidate all entries after the source of a function was replaced: the Python path then compares the hashes."""
    for fn in list(DESCRIBED):
        fn._globals = dict(fn._globals or {})


ON_CHANGE.append(forget_sources)


def watches(
    fn: Any, kernel: CompiledKernel, device: object, kernels: "Kernels", key: str, chosen: object
) -> tuple[tuple[object, ...], tuple[Sequence[object], ...]]:
    """Return the inputs of the Python path: (dictionary, key, value) triples in one tuple, and lists that must be
    empty.

    The path chooses `chosen` for such arguments, and launched `kernel`.
    """
    runtime, enter, leave = knobs.runtime, knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook
    members: tuple[tuple[Any, tuple[str, ...]], ...] = (
        (driver, ("_active", "_host")),
        (knobs, ("runtime",)),
        (runtime, ("debug", "sanitize", "sanitize_overflow", "reproducible", "launch_enter_hook", "launch_exit_hook")),
        (runtime, ("add_stages_inspection_hook",)),
        (knobs.compilation, ("instrumentation_mode",)),
        (knobs.language, ("triton_version",)),
        (enter, ("calls",)),
        (leave, ("calls",)),
        (fn, ("debug", "sanitize", "reproducible", "run", "pre_run_hooks", "device_caches", "_globals")),
        (kernel._loaded, ("launch",)),
        (kernel, ("function",)),
    )
    flat: list[object] = [fn.device_caches, device, fn.device_caches[device], kernels, key, chosen]
    for holder, names in members:
        for name in names:
            flat += [vars(holder), name, vars(holder).get(name, native.MISSING)]
    return tuple(flat), (fn.pre_run_hooks, enter.calls, leave.calls)


def captured_globals(found: Captured) -> list[object] | None:
    """Return watches of the globals that the kernel reads, which the launch has found unchanged; None if one is
    mutable.
    """
    flat: list[object] = []
    for name, scope in ((name, scope) for (name, _), (_, scope) in found.items()):
        value = scope.get(name)
        if type(scope) is not dict:
            return None
        flat += [scope, name, value]
        if isinstance(value, tl.constexpr):
            flat += [vars(value), "value", value.value]
            value = value.value
        if type(value) not in CONSTANTS:
            return None
    return flat


# ---- `kernel.run(x, y, z, stream, ...)` in machine code, for code that launches one compiled kernel again and again
#
#     run = kernel.run                                       # torch's Inductor keeps it with each kernel
#     run(64, 1, 1, 0, kernel.function, packed, None, enter, leave, x, out, 256)   # Python: packs, runs, makes an entry
#     run(64, 1, 1, 0, kernel.function, packed, None, enter, leave, y, out, 256)   # fits the entry
#
# The machine code is that of `machine.py`: a launch that fits no entry takes the Python path, with the same result.
# There is less to compare than for `kernel[grid]`, because the kernel is chosen already and the caller of `run`
# guarantees that the arguments are those it was compiled for. Only their classes count, and what the device adds: on
# the host the number of threads, on a GPU the context. Each stream has entries of its own.


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
            entries.state[native.PYTHON] = run_python_path(launcher, function, stream, entries, check)
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


def run_python_path(
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
            made = describe_run(launcher, function, stream, args)
            entries.add(entries.key(*args), made)

    return launch


def describe_run(launcher: Launcher, function: object, stream: int, args: tuple[object, ...]) -> Entry | None:
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
