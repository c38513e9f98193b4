"""Work with LLVM in a thread of its own, where no exception can come from outside.

    @apart
    def to_object(text):
        with ExitStack() as owner:
            context = owner.enter_context(llvm.create_context())
            module = owner.enter_context(llvm.parse_assembly(text, context))
            return machine.emit_object(module)           # text in, bytes out: no object of LLVM leaves the block

An LLVM module must be disposed before its context. Ctrl-C, a time-out in a test runner or any other exception that a
signal handler raises can strike between two bytecodes, also inside of llvmlite, and a traceback that is kept in a
reference cycle leaves the objects to the garbage collector, which takes them in any order: the process dies. Signal
handlers run in the main thread, and asynchronous exceptions in the thread they are meant for; so the caller waits here
(and can be interrupted: the work then ends in the background), and every object is closed by the `ExitStack` that made
it, the last one first.

Another thread opens LLVM's library while Python loads the compiler: it takes a hundredth of a second, and no
interpreter.

    open_ahead()                                                # returns at once
    from tilework.targets.llvm.compile import llvm              # later: finds the library open, or waits for it
"""

import ctypes
import functools
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import Any, ParamSpec, TypeVar

from tilework.process.forks import held_at_fork

P = ParamSpec("P")
T = TypeVar("T")

HERE = threading.local()


def apart(function: Callable[P, T]) -> Callable[P, T]:
    """`function`, run in another thread while the caller waits; nested calls run in that same thread."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        if getattr(HERE, "is_apart", False):
            return function(*args, **kwargs)
        return begin(function, *args, **kwargs).result()

    return call


def begin(function: Callable[P, Any], *args: P.args, **kwargs: P.kwargs) -> "Work":
    """The same, and the caller goes on: `result` waits."""
    work = Work(functools.partial(function, *args, **kwargs))
    try:
        threading.Thread(target=copy_context().run, args=(work.run,), name=f"tilework {function.__name__}").start()
    except RuntimeError:  # no more threads: Python is ending, or the system has no memory
        work.value = function(*args, **kwargs)
        work.running.release()
    return work


class Work:
    """A call that another thread makes."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.call = call
        self.value: Any = None
        self.error: BaseException | None = None
        self.running = threading.Lock()
        self.running.acquire()

    def run(self) -> None:
        HERE.is_apart = True
        try:
            self.value = self.call()
        except BaseException as error:
            self.error = error
        finally:
            self.running.release()

    def result(self) -> Any:
        """Wait for the call; its value, or its exception."""
        self.running.acquire()
        self.running.release()
        error, self.error = self.error, None
        try:
            if error is not None:
                raise error
            return self.value
        finally:
            del error  # it holds this frame


OPENING = held_at_fork(threading.Lock())  # a child of a fork would find the locks of the linker taken for ever


def open_ahead() -> None:
    """Begin to open the library, unless it is."""
    if sys.platform == "linux" and "llvmlite.binding" not in sys.modules:
        with suppress(RuntimeError):  # no more threads
            threading.Thread(target=open_library, name="tilework open LLVM").start()


def open_library() -> None:
    """Open the file that llvmlite is going to open. Errors are left to llvmlite, which reports them."""
    import llvmlite  # lazily, as the next: says where it is, and opens nothing
    from llvmlite.utils import get_library_name

    path = os.path.join(os.path.dirname(llvmlite.__file__), "binding", get_library_name())
    with OPENING, suppress(AttributeError):
        dlopen = ctypes.CDLL(None).dlopen  # Python's import would hold the GIL during the load
        dlopen.argtypes, dlopen.restype = (ctypes.c_char_p, ctypes.c_int), ctypes.c_void_p
        dlopen(os.fsencode(path), os.RTLD_NOW)
