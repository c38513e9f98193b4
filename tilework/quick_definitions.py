"""Import in half of the time: methods that classes may never need are made when they are first called.

    with quick_definitions():
        from tilework.frontend.generator import compile_to_ttir

xDSL and tilework define some 300 dataclasses, and Python compiles five methods for each from text, 80 us apiece: half of the
time that loading them takes. Here the methods of their classes (nobody else's) are compiled when they are first called. The
garbage collector, which would look through all those classes again and again and find nothing, runs less often meanwhile.
"""

import dataclasses
import gc
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

OWNERS = ("xdsl", "tilework")
OBJECTS = 300_000  # between two looks of the garbage collector
MODULES = 50  # that many new ones are worth a promotion

LOADING = threading.Lock()


@contextmanager
def quick_definitions() -> Iterator[None]:
    """Define classes quickly inside of the block; one thread at a time, others define theirs as Python does."""
    if not LOADING.acquire(blocking=False):
        yield
        return
    plain, thresholds, modules = getattr(dataclasses, "_create_fn", None), gc.get_threshold(), len(sys.modules)
    try:
        gc.set_threshold(max(OBJECTS, thresholds[0]) if thresholds[0] else 0, *thresholds[1:])
        if plain is not None:  # Python 3.13 compiles the methods of a class at once
            dataclasses._create_fn = deferring(plain)  # pyright: ignore[reportAttributeAccessIssue]
        yield
    finally:
        if plain is not None:
            dataclasses._create_fn = plain  # pyright: ignore[reportAttributeAccessIssue]
        if len(sys.modules) - modules >= MODULES:
            promote()
        gc.set_threshold(*thresholds)
        LOADING.release()


def promote() -> None:
    """Let the garbage collector count all objects among the old ones: it need not find out that classes stay."""
    if gc.get_freeze_count() == 0:  # otherwise somebody wants some of them not to be looked at, ever
        gc.freeze()
        gc.unfreeze()


def deferring(create: Callable[..., Any]) -> Callable[..., Any]:
    """`dataclasses._create_fn` that gives classes of `OWNERS` methods which compile themselves when they are called."""

    def create_later(name: str, args: Any, body: Any, *, globals: Any = None, **details: Any) -> Any:
        if str((globals or {}).get("__name__")).partition(".")[0] not in OWNERS:
            return create(name, args, body, globals=globals, **details)
        made: Any = None

        def method(self: Any, *given: Any, **named: Any) -> Any:
            nonlocal made
            if made is None:
                made = create(name, args, body, globals=globals, **details)
                made.__qualname__ = method.__qualname__
                for cls in type(self).__mro__:
                    if vars(cls).get(name) is method:
                        setattr(cls, name, made)
            return made(self, *given, **named)

        method.__name__ = name
        return method

    return create_later
