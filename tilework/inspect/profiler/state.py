"""What a part of the program is doing, whatever scopes it enters: the entry right above its kernels.

    with scope("train"), state("warm up"):
        with scope("layer0"):
            kernel[grid](x)                  # train -> layer0 -> warm up -> kernel

There is one state at a time: the innermost one.
"""

from contextlib import ContextDecorator
from typing import Any, Self

from tilework.inspect.profiler import stacks
from tilework.inspect.profiler.flags import flags


class state(ContextDecorator):
    """What a part of the program is doing, whatever scopes it enters; a context manager and a decorator.

    It is the entry right above the kernels that are launched in it. There is one state at a time: the innermost one.

    Example:
        import pathlib, tempfile
        import tilework.profiler as proton

        @tilework.jit
        def kernel(out):
            tl.store(out, 1)

        with tempfile.TemporaryDirectory() as folder:
            proton.start(f"{folder}/step")
            with proton.state("warm up"):
                kernel[(1,)](np.zeros(1))
            proton.finalize()
            assert "warm up" in pathlib.Path(folder, "step.hatchet").read_text()
    """

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

    def _recreate_cm(self) -> Self:
        """One for each call of a function that it decorates."""
        return type(self)(self.name)


def enter_state(name: str) -> None:
    """This thread is in a state from now on.

    Example:
        import tilework.profiler as proton

        proton.enter_state("warm up")  # the entry right above its kernels
        proton.exit_state()
    """
    if flags.profiling_on:
        stacks.set_state(name)


def exit_state() -> None:
    """This thread is in no state any more.

    Example:
        import tilework.profiler as proton

        proton.enter_state("warm up")
        proton.exit_state()
    """
    if flags.profiling_on:
        stacks.set_state(None)
