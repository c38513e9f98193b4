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
"""

import functools
import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import Any, ParamSpec, TypeVar

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
