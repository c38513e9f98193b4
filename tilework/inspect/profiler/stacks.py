"""The path of each thread in the tree (its scopes and its state), and the flags of the profiler.

    enter("forward"); enter("layer0")        path_of(thread) == ("forward", "layer0")
    set_state("warmup")                      path_of(thread) == ("forward", "layer0", "warmup")

The log of native launches names the thread and is read later. So a thread calls `BEFORE_CHANGE` before its path changes
and `AFTER_CHANGE` afterwards: the launches until then belong to the old path. A thread that has entered nothing has the
path of the main thread.
"""

import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from weakref import ref

Path = tuple[str, ...]
ENTRIES = itertools.count(1)
BEFORE_CHANGE: list[Callable[[], None]] = []
AFTER_CHANGE: list[Callable[[Path], None]] = []


class Stack:
    """The scopes of one thread, outermost first, with an id for each entry."""

    def __init__(self, inherited: Path = ()) -> None:
        self.inherited = inherited
        self.scopes: list[tuple[str, int]] = []
        self.state: str | None = None
        self.path: Path = inherited
        self.thread = ref(threading.current_thread())

    def changed(self) -> None:
        state = () if self.state is None else (self.state,)
        self.path = (*self.inherited, *(name for name, _ in self.scopes), *state)
        for listener in AFTER_CHANGE:
            listener(self.path)


class Local(threading.local):
    """The stack of the current thread."""

    def __init__(self) -> None:
        is_main = threading.current_thread() is threading.main_thread()
        self.stack = Stack(() if is_main else path_of(threading.main_thread().ident or 0))
        STACKS[threading.get_ident()] = self.stack


STACKS: dict[int, Stack] = {}
LOCAL = Local()


def path_of(thread: int) -> Path:
    """Return the path of a thread."""
    found = STACKS.get(thread)
    if found is not None and (owner := found.thread()) is not None and owner.ident == thread:
        return found.path
    main = STACKS.get(threading.main_thread().ident or 0)
    return main.path if main is not None else ()


def current() -> Path:
    """Return the path of this thread."""
    return LOCAL.stack.path


def scope_path() -> Path:
    """Return the path of this thread without its state."""
    stack = LOCAL.stack
    return (*stack.inherited, *(name for name, _ in stack.scopes))


def enter(name: str) -> int:
    """Enter a scope in this thread; return the id of this entry."""
    call_listeners()
    entry = next(ENTRIES)
    LOCAL.stack.scopes.append((name, entry))
    LOCAL.stack.changed()
    return entry


def leave(name: str | None) -> int:
    """Leave the innermost scope of this thread, which must be `name` if that is given. Return the id of its entry."""
    stack = LOCAL.stack
    if not stack.scopes:
        raise ValueError("Context stack is empty: exit_scope was called more often than enter_scope")
    call_listeners()
    found, entry = stack.scopes.pop()
    stack.changed()
    if name is not None and name != found:
        raise ValueError(f"Scope name mismatch: {name} != {found}")
    return entry


def set_state(name: str | None) -> None:
    """Set the state of this thread; None ends it."""
    call_listeners()
    LOCAL.stack.state = name
    LOCAL.stack.changed()


def call_listeners() -> None:
    for listener in BEFORE_CHANGE:
        listener()


@dataclass
class ProfilerFlags:
    """The state of the profiler: there are sessions, kernels are to be instrumented, the `proton` command runs the
    program."""

    profiling_on: bool = False
    instrumentation_on: bool = False
    command_line: bool = False


flags = ProfilerFlags()
