"""The native launcher: generated machine code, loaded and checked against the object layouts of this Python.

`runtime/launch/native/code/launcher.py` writes it. There is none on free-threaded Pythons, in subinterpreters, on
Windows, or with TILEWORK_NATIVE_LAUNCH=0.
"""

import ctypes
import struct
import sys
import threading
import time
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from tilework import knobs
from tilework.language.grid import BoundLaunch
from tilework.process.forks import in_child
from tilework.runtime.devices.host.own_code import OwnObject
from tilework.runtime.launch.native import layout as native
from tilework.runtime.launch.native.launch_log import attach
from tilework.targets.llvm.object_loader import load_object

FASTCALL_KEYWORDS, ONE_ARGUMENT = 0x82, 0x08
NAME = "tilework_launcher"  # in the cache


class MethodDefinition(ctypes.Structure):
    """PyMethodDef; the function object made from one does not keep it alive."""

    _fields_ = (("name", ctypes.c_char_p), ("code", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


MADE: "list[Machine | None]" = []  # one item, once loading was tried
MAKING = [threading.Lock()]


class Machine(NamedTuple):
    """The loaded launcher."""

    library: Any
    bind: MethodDefinition
    launch: MethodDefinition
    bound: MethodDefinition
    key: MethodDefinition
    constants: tuple[Any, ...]  # what the context points to
    watcher: int | None  # the id of the dictionary watcher


def machine(*, waits: bool = True) -> Machine | None:
    """The launcher of this process; None where it cannot work, and while it is being made.

    A thread that arrives while the launcher is being loaded takes the Python path instead of waiting, because it may be
    a signal handler that interrupts the loading thread. Without `waits`, the first caller does not wait for a
    compilation either.
    """
    lock = MAKING[0]
    if not MADE and lock.acquire(blocking=False):
        try:
            if not MADE and (
                waits or not is_possible() or launcher_object(time.CLOCK_MONOTONIC, tuple_items()).begin()
            ):
                MADE.append(load_machine() if is_possible() else None)
        finally:
            lock.release()
    return MADE[0] if MADE else None


def is_possible() -> bool:
    """Return True if the native launcher supports this interpreter and platform."""
    if not (knobs.runtime.native_launch and is_plain_python()):
        return False
    return launcher_object(time.CLOCK_MONOTONIC, tuple_items()).is_possible()


def forget_making() -> None:
    """A forked child does not have the thread that may be making the launcher."""
    MAKING[0] = threading.Lock()


in_child(forget_making)


def load_machine() -> Machine:
    library = load_object(launcher_object(time.CLOCK_MONOTONIC, tuple_items()).take(), native.EXPORTS)
    launch = MethodDefinition(b"launch", library["launch"], FASTCALL_KEYWORDS, None)
    bound = MethodDefinition(b"launch", library["launch_bound"], FASTCALL_KEYWORDS, None)
    key = MethodDefinition(b"launch_key", library["launch_key"], FASTCALL_KEYWORDS, None)
    bind = MethodDefinition(b"bind", library["bind"], ONE_ARGUMENT, None)
    constants = (*map(sys.intern, native.NAMES_READ), int, str, tuple, float, None, native.MISSING, KeyError)
    context = (ctypes.c_int64 * len(native.CONTEXT)).from_address(library["launch.context"])
    # up to Python 3.13 dictionaries have a version, which every change changes
    has_versions = dict.__basicsize__ >= native.DICT_VERSION + 8 and counts_changes(version_of)
    values = [*map(id, constants), ctypes.addressof(launch), int(has_versions), digits()]
    context[: len(values)] = values
    context[native.CONTEXT.index("dictionary")] = dictionary_offset()
    attach(library["launch.context"] + 8 * native.CONTEXT.index("log"))
    made = Machine(library, bind, launch, bound, key, constants, watcher_of(library))
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(made))  # launches may outlive this module when a process ends
    return made


class Holder:
    """An object with a `__dict__`, whose layout is examined."""

    def __init__(self) -> None:
        self.name: object = None


def counts_changes(
    count: Callable[[dict[str, object]], int], begin: Callable[[dict[str, object]], object] = id
) -> bool:
    """Return True if `count` changes with every change of a dictionary for which `begin` was called, and only then."""

    holder, plain = Holder(), dict[str, object](name=None)
    for dictionary in (plain, vars(holder)):
        begin(dictionary)

    def assign(value: object) -> None:
        holder.name = value

    changes: tuple[tuple[dict[str, object], Callable[[Any], Any]], ...] = (
        (plain, lambda value: plain.update(name=value)),
        (vars(holder), assign),
        (vars(holder), lambda value: vars(holder).update(name=value)),
        (plain, lambda value: plain.pop("name")),
    )
    for holder_of, change in changes:
        for _ in range(40):  # Python replaces what runs often by something faster
            plain.setdefault("name", None)
            seen = count(holder_of)
            if count(holder_of) != seen:
                return False
            change(object())
            if count(holder_of) == seen:
                return False
    return True


def dictionary_offset() -> int:
    """Return the offset of an object's `__dict__`, as in Python 3.11 and later; 0 if it is elsewhere.

    Before the first use there may be no dictionary: then the pointer is null or odd.
    """

    def pointer(holder: Holder) -> int:
        return pointer_at(id(holder) + native.DICTIONARY)

    def is_there(holder: Holder) -> bool:
        return id(vars(holder)) == pointer(holder)

    for _ in range(40):  # Python replaces what runs often by something faster
        first, second = Holder(), Holder()
        if any(at and not at & 1 and at != id(vars(holder)) for holder in (first, second) for at in [pointer(holder)]):
            return 0
        second.__dict__ = {"other": 1}
        if not (is_there(first) and is_there(second)):
            return 0
        first.name = second
        if not is_there(first):
            return 0
    return native.DICTIONARY


def watcher_of(library: Any) -> int | None:
    """Register the machine code as a dictionary watcher, which Python has since 3.12; its id, for `watch`."""
    try:
        add, clear = ctypes.pythonapi.PyDict_AddWatcher, ctypes.pythonapi.PyDict_ClearWatcher
        add.argtypes = [ctypes.c_void_p]
        watcher: int = add(library["dictionary_changes"])
    except (AttributeError, RuntimeError):  # this Python has none, or no more
        return None
    changes = ctypes.c_int64.from_address(library["launch.context"] + 8 * native.CONTEXT.index("changes"))
    if counts_changes(lambda dictionary: changes.value, lambda dictionary: add_watch(watcher, dictionary)):
        return watcher
    clear(watcher)
    changes.value = 0
    return None


def add_watch(watcher: int, dictionary: dict[str, object]) -> None:
    ctypes.pythonapi.PyDict_Watch(watcher, ctypes.py_object(dictionary))


def watch(dictionary: dict[str, object]) -> None:
    """Count changes of a dictionary, if this Python supports that."""
    loaded = machine()
    if loaded is not None and loaded.watcher is not None:
        add_watch(loaded.watcher, dictionary)


def digits() -> int:
    """The representation of ints of one digit in this Python, verified on some and on longer ones."""
    short, long = (0, 1, -1, 16, 1000, 2**30 - 1, 1 - 2**30), (2**30, -(2**30), 2**62, -(2**62))
    signs: dict[int, Callable[[int], int | None]] = {
        native.DIGITS_BY_SIZE: lambda size: size if size in (-1, 0, 1) else None,
        native.DIGITS_BY_TAG: lambda tag: 1 - (tag & 3) if 0 <= tag < 16 else None,
    }

    def read(value: int, sign_of: Callable[[int], int | None]) -> int | None:
        sign = sign_of(ctypes.c_int64.from_address(id(value) + native.SIZE).value)
        return None if sign is None else sign * ctypes.c_uint32.from_address(id(value) + native.DIGIT).value

    for kind, sign_of in signs.items():
        if all(read(value, sign_of) == value for value in short) and all(
            read(value, sign_of) is None for value in long
        ):
            return kind
    return native.DIGITS_UNKNOWN


def version_of(dictionary: dict[str, object]) -> int:
    return ctypes.c_uint64.from_address(id(dictionary) + native.DICT_VERSION).value


@cache
def launcher_object(clock: int, items: int) -> OwnObject:
    """The object file of the launcher; see `launcher_text`."""

    def text() -> str:
        # lazily: one from the cache does not need it
        from tilework.runtime.launch.native.code.launcher import launcher_text

        return launcher_text(clock, items)

    return OwnObject(NAME, text, arguments=(clock, items))


def tuple_items() -> int:
    """The offset of the items of a tuple; 0 if it is not found."""
    items = (object(), object(), object())
    offsets = [
        at
        for at in range(native.SIZE + 8, 48, 8)
        if all(pointer_at(id(items) + at + 8 * i) == id(items[i]) for i in range(3))
    ]
    return offsets[0] if len(offsets) == 1 else 0


def is_plain_python() -> bool:
    """Return True for 64-bit CPython with a GIL, in its main interpreter, with the object layouts that the machine code
    reads.
    """
    if sys.implementation.name != "cpython" or "t" in sys.abiflags:
        return False
    if struct.calcsize("P") != 8 or sys.byteorder != "little" or not hasattr(time, "CLOCK_MONOTONIC"):
        return False
    get_id, get = ctypes.pythonapi.PyInterpreterState_GetID, ctypes.pythonapi.PyInterpreterState_Get
    get.restype, get_id.argtypes, get_id.restype = ctypes.c_void_p, [ctypes.c_void_p], ctypes.c_int64
    sized: tuple[Any, ...] = ((), (1,), (1, 2, 3), [], [4, 5])
    if not tuple_items() or any(pointer_at(id(item) + native.SIZE) != len(item) for item in sized):
        return False
    if any(pointer_at(pointer_at(id(sized[4]) + native.LIST_ITEMS) + 8 * i) != id(sized[4][i]) for i in range(2)):
        return False
    record = bytearray(b"record")
    if pointer_at(id(record) + native.BYTES_START) != ctypes.addressof(ctypes.c_char.from_buffer(record)):
        return False
    objects: tuple[Any, ...] = (1, "", 1.5, (), [], {}, None, True, int)
    return get_id(get()) == 0 and all(pointer_at(id(item) + native.TYPE) == id(type(item)) for item in objects)


def pointer_at(address: int) -> int:
    return ctypes.c_void_p.from_address(address).value or 0


def make_function(definition: MethodDefinition, self: object) -> Callable[..., Any]:
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    return make(ctypes.addressof(definition), self, None)


def make_binder(state: list[Any]) -> Callable[[Any], Callable[..., Any]]:
    """Return the function from a grid to its launch; `state` holds the Python path and the entries."""
    loaded = machine()
    assert loaded is not None, "callers check that there is a launcher"
    return make_function(loaded.bind, [state, None])  # and the launch of the last grid


def make_key(index: tuple[object, ...]) -> Callable[..., int]:
    """The function from the arguments of a launch to their key, by an index (`code/launcher.py`)."""
    loaded = machine()
    assert loaded is not None, "entries are made for a launcher that is loaded"
    return make_function(loaded.key, index)


def set_context(name: str, value: int) -> None:
    """Store an address in `launch.context`, where the machine code reads it."""
    location = address("launch.context") + 8 * native.CONTEXT.index(name)
    ctypes.c_int64.from_address(location).value = value


def make_bound(state: list[Any], bound: BoundLaunch) -> Callable[..., Any]:
    """Return a bound launch in machine code, which calls `bound` for calls that it does not support."""
    loaded, keywords = machine(), bound.names[bound.positional :]
    if loaded is None or len(bound.values) >= native.MOST_OBJECTS:
        return bound
    names, values = (*bound.names, "grid"), (*bound.values, bound.grid)
    named = type(repr(bound), (tuple,), {})  # the name in the repr of the built-in method
    return make_function(loaded.bound, named((state, bound, names, values, keywords or None)))


@cache
def has_versions() -> bool:
    """Return True if the machine code uses the versions of dictionaries."""
    return bool(ctypes.c_int64.from_address(address("launch.context") + 8 * native.CONTEXT.index("versions")).value)


@cache
def address(name: str) -> int:
    """The address of a function of the launcher."""
    loaded = machine()
    assert loaded is not None, "entries are made for a launcher that is loaded"
    return loaded.library[name]
