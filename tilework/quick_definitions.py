"""Import in half of the time: what classes may never need is made when it is first asked for.

    with quick_definitions():
        from tilework.frontend.generator import compile_to_ttir

xDSL and tilework define some 300 dataclasses, and Python looks at their fields and compiles five methods for each from text: half of
the time that loading them takes. Here their classes (nobody else's) find their fields when one is made, compared or asked for
them, and compile a method when it is first called. The
garbage collector, which would look through all those classes again and again and find nothing, runs less often meanwhile.
"""

import dataclasses
import gc
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from tilework.forks import held_at_fork, in_child
from tilework.quick_finder import QuickFinder
from tilework.quick_methods import method_of

OWNERS = ("xdsl", "tilework")
OBJECTS = 300_000  # between two looks of the garbage collector
MODULES = 50  # that many new ones are worth a promotion

FINDER = QuickFinder((*OWNERS, "llvmlite"))
LOADING = threading.Lock()
HELD: dict[str, Any] = {}  # who holds it, and what it had found


@contextmanager
def quick_definitions() -> Iterator[None]:
    """Define classes quickly inside of the block; one thread at a time, others define theirs as Python does."""
    if not LOADING.acquire(blocking=False):
        yield
        return
    thresholds, modules = gc.get_threshold(), len(sys.modules)
    HELD.update(thread=threading.get_ident(), thresholds=thresholds)
    try:
        gc.set_threshold(max(OBJECTS, thresholds[0]) if thresholds[0] else 0, *thresholds[1:])
        dataclasses.dataclass = put_off  # pyright: ignore[reportAttributeAccessIssue]
        with FINDER.installed():
            yield
    finally:
        dataclasses.dataclass = PLAIN
        if len(sys.modules) - modules >= MODULES:
            promote()
        gc.set_threshold(*thresholds)
        HELD.clear()
        LOADING.release()


def end_for_others() -> None:
    """In a child of a fork, which does not have the thread that would have ended it."""
    global LOADING
    if HELD and HELD["thread"] != threading.get_ident():
        dataclasses.dataclass = PLAIN
        gc.set_threshold(*HELD["thresholds"])
        FINDER.remove()
        HELD.clear()
        LOADING = threading.Lock()


in_child(end_for_others)


def promote() -> None:
    """Let the garbage collector count all objects among the old ones: it need not find out that classes stay."""
    if gc.get_freeze_count() == 0:  # otherwise somebody wants some of them not to be looked at, ever
        gc.freeze()
        gc.unfreeze()


def is_ours(module: object) -> bool:
    return str(module).partition(".")[0] in OWNERS


# Classes

PLAIN: Any = dataclasses.dataclass
OPTIONS = {"init": True, "repr": True, "eq": True, "frozen": False, "kw_only": False}  # of classes that can wait
FOUND = (
    "__dataclass_params__",
    "__match_args__",
    "__dataclass_fields__",
)  # about fields; these last, as they are asked for
CAN_WAIT = sys.version_info < (3, 14)  # later ones have annotations that wait themselves
DEFINING = held_at_fork(threading.RLock())
WAITING: dict[type, "Waiting"] = {}
PARAMS: dict[tuple[bool, ...], Any] = {}  # by the values of OPTIONS
CLASS_VARIABLE: Any = dataclasses._FIELD_CLASSVAR  # pyright: ignore[reportAttributeAccessIssue]


def put_off(cls: Any = None, /, **options: Any) -> Any:
    """`dataclasses.dataclass`; classes of `OWNERS` wait."""
    if cls is None:
        return lambda cls: put_off(cls, **options)
    chosen = {**OPTIONS, **options}
    frozen_by_hand = chosen["frozen"] and not vars(cls).keys().isdisjoint(("__setattr__", "__delattr__"))
    if chosen.keys() != OPTIONS.keys() or frozen_by_hand or not CAN_WAIT or not is_ours(cls.__module__):
        return PLAIN(cls, **options)
    WAITING[cls] = Waiting(cls, chosen)
    return cls


class Waiting:
    """How a class was written. Until its fields are looked at, and each of its methods is called, others stand in for them."""

    def __init__(self, cls: Any, options: dict[str, Any]) -> None:
        self.options = options
        self.written: dict[str, Any] = {}
        given = vars(cls)
        for name in given.get("__annotations__", ()):
            if name in given:
                self.written[name] = value = given[name]
                if isinstance(value, dataclasses.Field):
                    leave_default(cls, name, value)
        names = [name for name, key in (("__init__", "init"), ("__repr__", "repr"), ("__eq__", "eq")) if options[key]]
        names = [name for name in names if name not in given]
        if options["eq"] and (given.get("__hash__", None) is None and ("__eq__" in given or "__hash__" not in given)):
            if options["frozen"]:
                names.append("__hash__")
            else:
                cls.__hash__ = None
        for name in names:
            setattr(cls, name, waiting_method(cls, name, self))
        if options["frozen"]:
            cls.__setattr__, cls.__delattr__ = refusing(cls)
        for name in FOUND:
            if name not in given:
                setattr(cls, name, Unknown(cls, name))
        if hasattr(dataclasses, "_replace"):  # from Python 3.13 on
            cls.__replace__ = dataclasses._replace  # pyright: ignore[reportAttributeAccessIssue]


def leave_default(cls: Any, name: str, field: Any) -> None:
    """What a class keeps of ``field(default=3)``: the value."""
    if field.default is dataclasses.MISSING:
        delattr(cls, name)
    else:
        setattr(cls, name, field.default)


class Unknown:
    """Something about the fields of a class, that is known when it is asked for."""

    def __init__(self, cls: type, name: str) -> None:
        self.cls = cls
        self.name = name

    def __get__(self, instance: object, owner: Any = None) -> Any:
        define(self.cls)
        return vars(self.cls)[self.name]


def waiting_method(cls: Any, name: str, waiting: Waiting) -> Callable[..., Any]:
    """A method that is made when it is first called. Nothing that the class has is missing meanwhile: other threads may use it."""

    def method(self: Any, *given: Any, **named: Any) -> Any:
        with DEFINING:
            if vars(cls).get(name) is method:
                setattr(cls, name, made_method(cls, name, waiting))
        return vars(cls)[name](self, *given, **named)

    method.__name__ = name
    method.__qualname__ = f"{cls.__qualname__}.{name}"
    return method


def refusing(cls: Any) -> tuple[Callable[..., None], Callable[..., None]]:
    """`__setattr__` and `__delattr__` of a frozen class; subclasses may have attributes that are no fields."""

    def check(self: Any, name: str, word: str) -> None:
        if type(self) is cls or name in cls.__dataclass_fields__:
            raise dataclasses.FrozenInstanceError(f"cannot {word} field {name!r}")

    def set_attribute(self: Any, name: str, value: object) -> None:
        check(self, name, "assign to")
        super(cls, self).__setattr__(name, value)

    def delete_attribute(self: Any, name: str) -> None:
        check(self, name, "delete")
        super(cls, self).__delattr__(name)

    return set_attribute, delete_attribute


def made_method(cls: Any, name: str, waiting: Waiting) -> Any:
    """A method of a class, which may have been made for another one."""
    if (made := method_of(cls, name, waiting.options["frozen"])) is None:
        made = vars(shadow(cls, waiting, name))[name]
    return made


def define(cls: Any) -> None:
    """Find the fields of a class, once."""
    with DEFINING:
        if (waiting := WAITING.get(cls)) is None:
            return
        fields = inherited_fields(cls, waiting) | own_fields(cls, waiting)
        given = [field for field in fields.values() if field._field_type is not CLASS_VARIABLE]
        order = tuple(field.name for field in given if field.init and not field.kw_only)
        found = {"__dataclass_fields__": fields, "__match_args__": order, "__dataclass_params__": params_of(waiting)}
        for name in FOUND:
            if isinstance(vars(cls).get(name), Unknown):
                setattr(cls, name, found[name])
        del WAITING[cls]


def inherited_fields(cls: Any, waiting: Waiting) -> dict[str, Any]:
    """Those of the bases, which are as frozen as the class."""
    inherited: dict[str, Any] = {}
    for base in cls.__mro__[-1:0:-1]:
        if (fields := getattr(base, "__dataclass_fields__", None)) is not None:
            inherited |= fields
            if base.__dataclass_params__.frozen != waiting.options["frozen"]:
                raise TypeError(f"{cls.__name__} and {base.__name__}: only one of them is frozen")
    return inherited


def own_fields(cls: Any, waiting: Waiting) -> dict[str, Any]:
    """Those that a class is written with, as Python finds them."""
    notes = vars(cls).get("__annotations__", {})
    if any(note is dataclasses.KW_ONLY or (isinstance(note, str) and "KW_ONLY" in note) for note in notes.values()):
        found = vars(shadow(cls, waiting))["__dataclass_fields__"]
        return {name: found[name] for name in notes if name in found}
    written, is_named = SimpleNamespace(**values_of(cls, waiting)), waiting.options["kw_only"]
    written.__module__ = cls.__module__
    return {name: dataclasses._get_field(written, name, note, is_named) for name, note in notes.items()}  # pyright: ignore[reportAttributeAccessIssue]


def values_of(cls: Any, waiting: Waiting) -> dict[str, Any]:
    """What stands for a field in a class or, as in Python, in one that it inherits from."""
    inherited = {
        name: getattr(cls, name)
        for name in vars(cls).get("__annotations__", ())
        if name not in waiting.written and hasattr(cls, name)
    }
    return {**waiting.written, **inherited}


def params_of(waiting: Waiting) -> Any:
    """What `dataclass` was called with: one for all who called it so."""
    key = tuple(waiting.options.values())
    if (params := PARAMS.get(key)) is None:
        called = PLAIN(type("Called", (), {"__doc__": "so that none is made"}), init=False, repr=False, eq=False)
        params = PARAMS[key] = called.__dataclass_params__
        for name in waiting.options.keys() & set(dir(params)):
            setattr(params, name, waiting.options[name])
    return params


def shadow(cls: Any, waiting: Waiting, method: str = "") -> Any:
    """A dataclass with the fields of `cls`, perhaps one of its methods, and nothing else of it."""
    inherited = inherited_fields(cls, waiting)
    is_frozen = bool(method) and waiting.options["frozen"]
    known = {"__dataclass_fields__": inherited, "__dataclass_params__": SimpleNamespace(frozen=is_frozen)}
    body = {
        **values_of(cls, waiting),
        "__annotations__": vars(cls).get("__annotations__", {}),
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": "as the other one",
    }
    if hasattr(cls, "__post_init__"):
        body["__post_init__"] = None
    bases = (type("Base", (), known),) if inherited else ()
    methods = {option: f"__{option}__" == method for option in ("init", "repr", "eq")}
    return PLAIN(type(cls.__name__, bases, body), frozen=is_frozen, kw_only=waiting.options["kw_only"], **methods)
