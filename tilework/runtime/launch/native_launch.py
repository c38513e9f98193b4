"""`kernel[grid](*args)` in machine code, for launches like an earlier one.

    launch = add[(1,)]
    launch(x, y, out, 1024, BLOCK=1024)        # through Python: binds, compiles, runs, and describes the launch
    launch(x, y, out, 2048, BLOCK=1024)        # fits the description: no Python code runs

`targets/cpu/run/launcher.py` writes the machine code; here it is loaded, checked against the objects of this Python, and given
its descriptions. A launch that fits none of them takes the Python path with the same arguments, so that the result, the
errors and the hooks are the same. Described are launches of kernels in machine code whose arguments are NumPy arrays, torch
tensors in host memory, numbers, and constants that cannot change. Everything else that the Python path looks at is
watched: driver, caches, hooks, globals of the kernel, debug settings.

There is none on free-threaded Pythons, in subinterpreters, on Windows, or with TILEWORK_NATIVE_LAUNCH=0.
"""

import ctypes
import os
import struct
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Sequence
from functools import cache
from itertools import zip_longest
from typing import Any, NamedTuple
from weakref import WeakSet

from tilework import knobs
from tilework.language import core as tl
from tilework.language.function import ON_CHANGE
from tilework.runtime.devices.active_driver import driver
from tilework.runtime.devices.host import CpuDriver, NativeLauncher
from tilework.runtime.launch.compiled import CompiledKernel
from tilework.runtime.launch.globals import Captured
from tilework.runtime.launch.own_code import own_object
from tilework.runtime.launch.tensor_places import tensor_facts, tensor_places
from tilework.targets.cpu.run import launcher_layout as native

FASTCALL_KEYWORDS, ONE_ARGUMENT = 0x82, 0x08
NAME = "tilework_launcher"  # in the cache
MOST_ENTRIES = 8
MOST_DESCRIPTIONS = 200  # of one kernel: one that needs more is not launched alike

INT_RANGES = {"i32": (-(2**31), 2**31 - 1), "i64": (-(2**63), 2**63 - 1)}
ANY_INT = (-(2**63), 2**63 - 1)
INT_KINDS = ("i64", "i32", "i16", "i8")
COMPARED = {int: native.SAME_INT, str: native.SAME_TEXT, float: native.SAME_FLOAT}


class MethodDefinition(ctypes.Structure):
    """PyMethodDef; the function object made from one does not keep it alive."""

    _fields_ = (("name", ctypes.c_char_p), ("code", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


MADE: "list[Machine | None]" = []  # one item, once somebody has tried
MAKING = [threading.Lock()]


class Machine(NamedTuple):
    """The loaded launcher."""

    library: Any
    bind: MethodDefinition
    launch: MethodDefinition
    constants: tuple[Any, ...]  # what the context points to


def machine() -> Machine | None:
    """The launcher of this process; None where it cannot work, and while it is being made.

    Who comes meanwhile takes the Python path, and does not wait: it may be a signal handler in the thread that makes it.
    """
    lock = MAKING[0]
    if not MADE and lock.acquire(blocking=False):
        try:
            if not MADE:
                MADE.append(load_machine())
        finally:
            lock.release()
    return MADE[0] if MADE else None


def forget_making() -> None:
    """A forked child does not have the thread that may be making the launcher."""
    MAKING[0] = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget_making)


def load_machine() -> Machine | None:
    if not knobs.runtime.native_launch or not is_plain_python() or not arrays_are_as_expected():
        return None
    from tilework.targets.llvm.compile import jit_load

    library = jit_load(launcher_object(time.CLOCK_MONOTONIC), native.EXPORTS)
    launch = MethodDefinition(b"launch", library["launch"], FASTCALL_KEYWORDS, None)
    bind = MethodDefinition(b"bind", library["bind"], ONE_ARGUMENT, None)
    constants = (*(sys.intern(name) for name in ("dtype", "is_cpu", "data_ptr")), True, int, str, tuple, native.MISSING)
    context = (ctypes.c_int64 * len(native.CONTEXT)).from_address(library["launch.context"])
    context[: len(constants) + 1] = [*map(id, constants), ctypes.addressof(launch)]
    return Machine(library, bind, launch, constants)


def launcher_object(clock: int) -> bytes:
    """The object file of the launcher."""

    def make() -> bytes:
        from tilework.targets.cpu.run.launcher import launcher_text
        from tilework.targets.llvm.compile import to_object

        return to_object(launcher_text(clock))

    return own_object(NAME, make, f"-{clock}")


def is_plain_python() -> bool:
    """CPython with a GIL, of 64 bits, in its main interpreter, with objects whose class stands where we read it."""
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    if struct.calcsize("P") != 8 or sys.byteorder != "little" or not hasattr(time, "CLOCK_MONOTONIC"):
        return False
    get_id, get = ctypes.pythonapi.PyInterpreterState_GetID, ctypes.pythonapi.PyInterpreterState_Get
    get.restype, get_id.argtypes, get_id.restype = ctypes.c_void_p, [ctypes.c_void_p], ctypes.c_int64
    objects: tuple[Any, ...] = (1, "", 1.5, (), [], {}, None, True, int)
    return get_id(get()) == 0 and all(pointer_at(id(item) + native.TYPE) == id(type(item)) for item in objects)


def pointer_at(address: int) -> int:
    return ctypes.c_void_p.from_address(address).value or 0


def arrays_are_as_expected() -> bool:
    """Whether the members of NumPy arrays stand where we read them, tried on arrays that differ in all of them."""
    import numpy as np

    base = np.arange(64, dtype=np.float32)
    frozen = np.arange(3)
    frozen.flags.writeable = False
    return all(
        array_is_as_expected(array) for array in (base, base[3::2], frozen, np.zeros((2, 3, 4), "i1"), np.array(2.5))
    )


def array_is_as_expected(array: Any) -> bool:
    here = id(array)
    flags = ctypes.c_int.from_address(here + native.ARRAY_FLAGS).value
    return (
        pointer_at(here + native.ARRAY_DATA) == array.__array_interface__["data"][0]
        and pointer_at(here + native.ARRAY_DTYPE) == id(array.dtype)
        and bool(flags & native.WRITEABLE) == array.flags.writeable
    )


class Tuned(NamedTuple):
    """What a launch of an autotuned kernel has beside its arguments.

    `settings` are the keyword arguments that its configuration adds; the arguments called `exact` must have the same values
    for the configuration to be the same, and `watched` (dict, key, value three by three) and `contents` (list or dict, its
    items two by two) must not change.
    """

    settings: dict[str, Any]
    exact: frozenset[str]
    watched: tuple[Any, ...]
    contents: tuple[Any, ...]


PLAIN = Tuned({}, frozenset(), (), ())


TunedOf = Callable[[tuple[Any, ...], dict[str, Any]], Tuned | None]


def binder_of(fn: Any, tuned: TunedOf = lambda args, kwargs: PLAIN) -> Callable[[Any], Callable[..., Any]] | None:
    """The function that makes `fn[grid]` of a grid, kept in `fn`; None if there is no native launcher for it.

    `fn` is a kernel, or an autotuner whose `tuned` says what a launch with such arguments adds; None: that cannot be said.
    """
    if type(driver.active) is not CpuDriver or not runs_natively() or machine() is None:
        return None
    state: list[Any] = []
    state.append(python_path(fn, tuned, state))
    bind = fn.__dict__["_bind_grid"] = make_binder(state)
    return bind


def make_binder(state: list[Any]) -> Callable[[Any], Callable[..., Any]]:
    """The function that makes a launch of a grid: `state` is what to call where nothing fits, and the entries."""
    loaded, make = machine(), ctypes.pythonapi.PyCFunction_NewEx
    assert loaded is not None, "who asks has seen that there is a launcher"
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return make(ctypes.addressof(loaded.bind), state, None)


def runs_natively() -> bool:
    from tilework.targets.cpu.pipeline import device

    return device() == "native"


def python_path(fn: Any, tuned: TunedOf, state: list[Any]) -> Callable[..., Any]:
    """What is called for a launch that fits no entry: launch, then describe it."""
    left = MOST_DESCRIPTIONS

    def launch(grid: Any, /, *args: Any, **kwargs: Any) -> Any:
        nonlocal left
        kernel = fn.run(*args, grid=grid, warmup=False, **kwargs)
        facts = tuned(args, kwargs) if left else None
        if facts is not None and (entry := describe(fn, kernel, grid, args, kwargs, facts)) is not None:
            left -= 1
            others = [old for old in state[1:MOST_ENTRIES] if not replaces(entry, old)]
            state[1:] = [entry, *others]
        return kernel

    return launch


def replaces(entry: tuple[Any, ...], old: tuple[Any, ...]) -> bool:
    """Whether an entry is for the same calls as an old one, which something watched has made useless."""
    same = (native.KERNEL, native.KEYWORDS, native.TYPES)
    return all(entry[index] is old[index] or entry[index] == old[index] for index in same)


def describe(
    fn: Any, kernel: Any, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any], tuned: Tuned
) -> tuple[Any, ...] | None:
    """The entry for launches like one that has just been done; None if it is not of a kind that can be described."""
    if tuned is not PLAIN:
        fn = fn.fn
    active = driver._active
    run = kernel._loaded.launch if isinstance(kernel, CompiledKernel) else None
    if type(active) is not CpuDriver or type(run) is not NativeLauncher or not (callable(grid) or type(grid) is tuple):
        return None
    if run.needs_scratch:  # the allocator is asked at every launch
        return None
    if not all(
        isinstance(hook, knobs.HookChain) for hook in (knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook)
    ):
        return None
    if not all(is_describable(value) for value in (*args, *kwargs.values())):
        return None
    try:
        kernels, keys, _, _, bind = fn.device_caches[0]
        values, specs, kinds, options = bind(*args, **kwargs, **tuned.settings)
        marker = (specs, kinds, tuple(options.items()) if options else (), *fn.switches())
        key = keys.get(marker)
        slots = run.pack(values)
    except (TypeError, ValueError, OverflowError, KeyError):  # something changed since the launch
        return None
    if key is None or kernels.get(key) is not kernel:
        return None
    guards = argument_guards(fn, kernel, run.interface, values, specs)
    if guards is None or len(slots) > 8 * native.MOST_SLOTS or len(slots) != 8 * len(run.interface.parameters):
        return None
    names = [*fn.arg_names[: len(args)], *kwargs]
    bound = {**dict(zip(fn.arg_names, values, strict=True)), **options}
    chosen = [
        constant_guard(bound[name]) if name in options or name in tuned.exact else guards[fn.arg_names.index(name)]
        for name in names
    ]
    chosen = [found for found in chosen if found is not None]
    if len(chosen) < len(names):
        return None
    DESCRIBED.add(fn)
    watched, hooks = watches(fn, kernel, run, active, kernels, key)
    if (
        any(hooks)
        or (captured := captured_globals({**(fn._globals or {}), **fn._argument_globals.get(key, {})})) is None
    ):
        return None
    given = {name: None if name in names else value for name, value in zip(fn.arg_names, values, strict=True)}
    contents = (*(part for hook in hooks for part in (hook, ())), *tuned.contents)
    watched = (*watched, *captured, *tuned.watched)
    shown = tuple(name if name not in options else None for name in names)
    return entry_of(
        run, kernel.function, kernel, len(args), tuple(kwargs), chosen, slots, watched, contents, shown, given
    )


def entry_of(
    run: NativeLauncher,
    function: Any,
    result: Any,
    positional: int,
    keywords: tuple[str, ...],
    chosen: "Sequence[Chosen]",
    slots: bytes,
    watched: tuple[Any, ...],
    contents: tuple[Any, ...],
    names: tuple[str | None, ...],
    meta: dict[str, Any],
) -> tuple[Any, ...]:
    """An entry as `targets/cpu/run/launcher.py` reads it; a launch that fits it runs `function` and gives `result`."""
    from tilework.targets.cpu.run.pool import POOL
    from tilework.targets.cpu.run.run_grid import thread_count

    interface, cost = run.interface, ctypes.c_double(function.program_ns or 0.0)
    code, work = (ctypes.cast(part, ctypes.c_void_p).value or 0 for part in (function.range, function.work))
    record = native.Record(
        positional, len(keywords), code, interface.arena, ctypes.addressof(cost), work, thread_count(), function.has_forks,
        ctypes.addressof(POOL.words), interface.waits, function.name_address, tuple(guard for guard, _, _ in chosen), slots,
    )  # fmt: skip
    return (
        result,
        keywords,
        watched,
        contents,
        tuple(cls for _, cls, _ in chosen),
        tuple(expected for _, _, expected in chosen),
        record.pack(),
        fault_raiser(interface),
        shared_runner(function, run, cost),
        names,
        meta,
    )


def is_describable(value: Any) -> bool:
    """Whether there is a guard for a value; asked first, because it is cheap."""
    return type(value) in CONSTANTS or is_array_class(type(value)) or is_tensor(value)


DESCRIBED: "WeakSet[Any]" = WeakSet()  # the functions that have entries


def forget_sources() -> None:
    """The source of a function was replaced: what entries watch changes, so that the Python path looks at all hashes."""
    for fn in list(DESCRIBED):
        fn._globals = dict(fn._globals or {})


ON_CHANGE.append(forget_sources)


def watches(
    fn: Any, kernel: Any, run: Any, active: Any, kernels: dict[str, Any], key: str
) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """(dict, key, value three by three, empty lists): the Python path does the same as long as these do not change."""
    enter, leave = knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook
    members = [
        (driver, "_active", active),
        (knobs, "runtime", knobs.runtime),
        (knobs.runtime, "debug", knobs.runtime.debug),
        (knobs.runtime, "sanitize", knobs.runtime.sanitize),
        (knobs.runtime, "sanitize_overflow", knobs.runtime.sanitize_overflow),
        (knobs.compilation, "instrumentation_mode", knobs.compilation.instrumentation_mode),
        (knobs.runtime, "launch_enter_hook", enter),
        (knobs.runtime, "launch_exit_hook", leave),
        (enter, "calls", enter.calls),
        (leave, "calls", leave.calls),
        (fn, "debug", fn.debug),
        (fn, "sanitize", fn.sanitize),
        (fn, "pre_run_hooks", fn.pre_run_hooks),
        (fn, "device_caches", fn.device_caches),
        (fn, "_globals", fn._globals),
        (kernel._loaded, "launch", run),
        (kernel, "function", kernel.function),
    ]
    flat: list[Any] = [fn.device_caches, 0, fn.device_caches[0], kernels, key, kernel]
    for holder, name in knobs.places(knobs.runtime, "num_threads"):
        flat += [holder, name, holder.get(name, native.MISSING)]
    for holder, name, value in members:
        flat += [vars(holder), name, value]
    return tuple(flat), (fn.pre_run_hooks, enter.calls, leave.calls)


def captured_globals(found: Captured) -> list[Any] | None:
    """Watches of the globals that the kernel reads, which the launch has found unchanged; None if one can change inside."""
    flat: list[Any] = []
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


Chosen = tuple[native.Guard, Any, Any]  # the guard, the class, and the object that it expects


def argument_guards(fn: Any, kernel: Any, interface: Any, values: Any, specs: Any) -> list[Chosen | None] | None:
    """The guard of each parameter; None in place of those that must not be passed, None for all if one is unknown."""
    types = list(kernel.src.signature.values())
    kinds, stored = interface.parameters, dict(zip_longest(interface.stored, interface.alignments, fillvalue=1))
    guards: list[Chosen | None] = []
    used = 0
    for param, type, value, (spec, key) in zip(fn.params, types, values, specs, strict=True):
        if type == "constexpr" or spec == "constexpr":
            if type != spec:
                return None
            guards.append(constant_guard(value))
            continue
        if used == len(kinds) or not isinstance(type, str):
            return None
        guards.append(value_guard(param, value, spec, key, kinds[used], used, stored.get(used, 0)))
        used += 1
    return guards if used == len(kinds) else None


def constant_guard(value: Any) -> Chosen | None:
    """A constant that cannot change."""
    cls = type(value)
    if cls not in CONSTANTS:
        return None
    mode, low = COMPARED.get(cls, native.SAME), 0
    if cls is int:
        low = value
        if not -(2**63) <= value < 2**63:
            mode, low = native.SAME, 0
    elif cls is float:
        low = struct.unpack("<q", struct.pack("<d", value))[0]
    return native.Guard(address("guard_constant"), low, 0, mode), cls, value


def value_guard(param: Any, value: Any, spec: str, key: Any, kind: str, slot: int, stored: int) -> Chosen | None:
    """An argument that goes into a slot; `stored` is how memory that the kernel writes to must be aligned, or 0."""
    cls, mask = type(value), max(stored - 1, 0)
    if kind == "ptr" and (is_array_class(cls) or is_tensor(value)):
        mode = native.MULTIPLE if key == "D" else native.OTHER
        if key is None or param.do_not_specialize_on_alignment:
            mode = native.MULTIPLE | native.OTHER
        if not is_array_class(cls) and (facts := tensor_facts(value)) is not None:
            fill_places()
            return native.Guard(address("guard_fields"), *facts, mode, slot, mask=mask), cls, value.dtype
        name = "guard_array" if is_array_class(cls) else "guard_tensor"
        return native.Guard(address(name), 0, 0, mode, slot, stored > 0, mask), cls, value.dtype
    if cls is int and kind in INT_KINDS:
        forced = bool(param.annotation_type)
        if not forced and spec not in INT_RANGES:
            return None
        mode = {"D": native.MULTIPLE, "": native.OTHER, "1": native.ONE}.get(key, 7)
        if not forced and key is not None and param.do_not_specialize_on_alignment:
            mode = native.MULTIPLE | native.OTHER
        low, high = ANY_INT if forced else INT_RANGES[spec]
        if not forced and spec == "i64":
            return i64_guard(value, mode, slot)
        return native.Guard(address("guard_int"), low, high, mode, slot), cls, None
    if cls is float and kind in ("f32", "f64"):
        return native.Guard(address("guard_float"), 0, 0, int(kind == "f64"), slot), cls, None
    if cls is bool and kind == "i1":
        return native.Guard(address("guard_bool"), 0, 0, 0, slot), cls, True
    return None


@cache
def fill_places() -> None:
    """Tell the machine code where torch keeps what it reads; before the first guard that needs it."""
    context = (ctypes.c_int64 * len(native.CONTEXT)).from_address(address("launch.context"))
    context[len(native.CONTEXT) - len(native.PLACES) :] = list(tensor_places() or ())


def i64_guard(value: int, mode: int, slot: int) -> Chosen:
    """An int of 64 bits is one beyond 32 bits, on the same side of zero as the one that was seen."""
    low, high = (2**31, 2**63 - 1) if value > 0 else (-(2**63), -(2**31) - 1)
    return native.Guard(address("guard_int"), low, high, mode, slot), int, None


def address(name: str) -> int:
    loaded = machine()
    assert loaded is not None, "entries are made for a launcher that is loaded"
    return loaded.library[name]


def fault_raiser(interface: Any) -> Callable[..., None]:
    """What the machine code calls when a program has failed."""
    from tilework.targets.cpu.run.run_grid import fault_error

    def fail(code: int, program: int, x: int, y: int, z: int) -> None:
        raise fault_error(interface, (x, y, z), code, program)

    return fail


def shared_runner(function: Any, run: Any, cost: Any) -> Callable[..., None]:
    """What the machine code calls for a grid that may need several threads."""
    interface, launch = run.interface, run.run

    def share(slots: bytes, x: int, y: int, z: int) -> None:
        function.program_ns = cost.value or None
        launch(function, interface, slots, (x, y, z))
        cost.value = function.program_ns or 0.0

    return share


@cache
def is_tensor_class(cls: type) -> bool:
    return f"{cls.__module__}.{cls.__qualname__}" in ("torch.Tensor", "torch.nn.parameter.Parameter")


def is_tensor(value: Any) -> bool:
    """A torch tensor in host memory, of a class whose attributes are torch's own."""
    return is_tensor_class(type(value)) and value.is_cpu is True


@cache
def is_array_class(cls: type) -> bool:
    return f"{cls.__module__}.{cls.__qualname__}" == "numpy.ndarray"


CONSTANTS = frozenset({int, bool, float, str, type(None), tl.dtype})
