"""What a part of the program is doing, whatever scopes it enters: the entry right above its kernels.

    with scope("train"), state("warm up"):
        with scope("layer0"):
            kernel[grid](x)                  # train -> layer0 -> warm up -> kernel

There is one state at a time: the innermost one.
"""

from functools import wraps
from typing import Any, Self

from tilework.profiler import stacks
from tilework.profiler.flags import flags


class state:
    """A context manager and a decorator; see the module docstring."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.before: str | None = None

    def __enter__(self) -> Self:
        self.before = stacks.LOCAL.stack.state
        enter_state(self.name)
        return self

    def __exit__(self, *exception: Any) -> None:
        if flags.profiling_on:
            stacks.set_state(self.before)

    def __call__(self, function: Any) -> Any:
        @wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with state(self.name):
                return function(*args, **kwargs)

        return inside


def enter_state(name: str) -> None:
    """This thread is in a state from now on."""
    if flags.profiling_on:
        stacks.set_state(name)


def exit_state() -> None:
    """This thread is in no state any more."""
    if flags.profiling_on:
        stacks.set_state(None)
