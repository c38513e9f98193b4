"""Parts of a program that get a place of their own in the tree, with metrics if you like.

    with scope("forward", metrics={"flops": 2 * M * N * K}):
        matmul[grid](a, b, c)

    @scope("step")
    def step(): ...

They nest, each thread has its own, and they cost nothing while nothing is profiled.
"""

import time
from contextlib import ContextDecorator
from typing import Any, Self

from tilework.inspect.profiler import stacks
from tilework.inspect.profiler.flags import flags
from tilework.inspect.profiler.metric_names import Number, checked
from tilework.inspect.profiler.recorder import RECORDER

Metrics = dict[str, Number]


class scope(ContextDecorator):
    """A part of the program that gets a place of its own in the tree, with metrics if you like: a context manager and a decorator.

    Example:
        import pathlib, tempfile
        import tilework.profiler as proton

        with tempfile.TemporaryDirectory() as folder:
            proton.start(f"{folder}/step")
            with proton.scope("forward", metrics={"tokens": 128}):
                pass  # launches here are below "forward"
            proton.finalize()
            assert "tokens" in pathlib.Path(folder, "step.hatchet").read_text()
    """

    def __init__(self, name: str, metrics: Metrics | None = None) -> None:
        self.name, self.metrics = name, metrics

    def __enter__(self) -> Self:
        enter_scope(self.name, metrics=self.metrics)
        return self

    def __exit__(self, *exception: Any) -> None:
        exit_scope(self.name)

    def _recreate_cm(self) -> Self:
        """One for each call of a function that it decorates."""
        return type(self)(self.name, self.metrics)


class cpu_timed_scope(scope):
    """A scope that also has the time that it took on the host, as ``cpu_time (ns)``.

    Example:
        import pathlib, tempfile
        import tilework.profiler as proton

        with tempfile.TemporaryDirectory() as folder:
            proton.start(f"{folder}/step")
            with proton.cpu_timed_scope("forward"):
                sum(range(1000))
            proton.finalize()
            assert "cpu_time" in pathlib.Path(folder, "step.hatchet").read_text()
    """

    def __init__(self, name: str, metrics: Metrics | None = None) -> None:
        if metrics is not None and "cpu_time" in metrics:
            raise ValueError("The metric name 'cpu_time' is reserved.")
        super().__init__(name, metrics)
        self.start = 0

    def __enter__(self) -> Self:
        super().__enter__()
        self.start = time.perf_counter_ns()
        return self

    def __exit__(self, *exception: Any) -> None:
        took = time.perf_counter_ns() - self.start
        exit_scope(self.name, metrics={"cpu_time (ns)(exc)": took})


def enter_scope(name: str, *, metrics: Metrics | None = None) -> int | None:
    """Enter a scope; the number of this time, None while nothing is profiled.

    Example:
        import pathlib, tempfile
        import tilework.profiler as proton

        with tempfile.TemporaryDirectory() as folder:
            proton.start(f"{folder}/step")
            proton.enter_scope("forward")
            proton.exit_scope("forward")
            proton.finalize()
            assert "forward" in pathlib.Path(folder, "step.hatchet").read_text()
    """
    if not flags.profiling_on:
        return None
    number = stacks.enter(name)
    if metrics:
        RECORDER.add_metrics(stacks.scope_path(), checked(metrics))
    else:
        RECORDER.touch(stacks.scope_path())
    return number


def exit_scope(name: str | None = None, *, metrics: Metrics | None = None) -> int | None:
    """Leave the innermost scope, which is `name` if that is given; more metrics for it; its number, None while nothing is profiled.

    Example:
        import pathlib, tempfile
        import tilework.profiler as proton

        with tempfile.TemporaryDirectory() as folder:
            proton.start(f"{folder}/step")
            proton.enter_scope("forward")
            proton.exit_scope("forward", metrics={"tokens": 128})
            proton.finalize()
            assert "tokens" in pathlib.Path(folder, "step.hatchet").read_text()
    """
    if not flags.profiling_on:
        return None
    if metrics:
        RECORDER.add_metrics(stacks.scope_path(), checked(metrics))
    return stacks.leave(name)
