"""Hooks of users for launches and compilations; the knobs hold them (`knobs.runtime.launch_enter_hook`,
`compilation.listener`).

chain = HookChain()
chain.add(print)
chain("launched")
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple


class HookChain:
    """Functions called one after the other, in the order they were added or the opposite one. Results are dropped."""

    def __init__(self, reversed: bool = False) -> None:
        self.calls: list[Callable[..., Any]] = []
        self.reversed = reversed

    def add(self, func: Callable[..., Any]) -> None:
        """Call `func` too; adding it twice does nothing."""
        if func not in self.calls:
            self.calls.append(func)

    def remove(self, func: Callable[..., Any]) -> None:
        """Stop calling `func`; nothing happens if it was not there."""
        self.calls[:] = [call for call in self.calls if call != func]  # the same list: native launches watch it

    def __bool__(self) -> bool:
        return bool(self.calls)

    def copy(self) -> "HookChain":
        """A chain with the same functions."""
        other = HookChain(self.reversed)
        other.calls = list(self.calls)
        return other

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        for call in self.calls[::-1] if self.reversed else tuple(self.calls):
            call(*args, **kwargs)


class CompileTimes(NamedTuple):
    """The microseconds of a compilation by stage, for `compilation.listener`."""

    ir_initialization: int
    lowering_stages: list[tuple[str, int]]
    store_results: int

    @property
    def total_lowering(self) -> int:
        """All stages together."""
        return sum(time for _, time in self.lowering_stages)

    @property
    def total(self) -> int:
        """Everything."""
        return self.ir_initialization + self.total_lowering + self.store_results


# Listeners for events that happen once per specialisation or tuning; usually there is none.
#
#   new        a launch needs a specialisation that this process does not have yet: fn, values
#   compiled   a kernel was compiled, or found on disk: source, target, backend, options, environment, kernel, hit,
#              seconds
#   needed     the code of a specialisation was needed, and is there, wherever it came from: specialization, backend
#   ready      the launch of `new` has its kernel, and comes next: fn, values, grid, kernel, options
#   measuring  an autotuner begins to time a configuration, or ends: tuner, begins
#   tuned      an autotuner has chosen: tuner, key (`tuner.tunings[key]` has the rest)
#   chosen     a launch with a configuration of an autotuner, new or known, comes next: tuner, config, args, kwargs
LISTENERS: list[Callable[[str, dict[str, Any]], None]] = []


# The bundles that serve kernels and choices of autotuners, the latest first (`runtime/bundle/serving.py`).
SERVERS: list[Any] = []


# The id of this process if it compiles for another one (`runtime/workers/worker.py`): nothing is recorded there.
WORKERS: list[int] = []


# Functions that remember the releases of programs of the CUDA toolkit: keeper(identity of a program, its query).
RELEASE_KEEPERS: list[Callable[[str, Callable[[], str | None]], str | None]] = []


# Modules of layers above the runtime that it calls: they import it, so it knows them by name.
ABOVE = {
    "explain": "tilework.inspect.explain.kernels",
    "explore": "tilework.inspect.explorer.interactive",
    "watch": "tilework.inspect.explain.kernels",
}


def above(name: str) -> Any:
    """Import a module of a layer above the runtime."""
    return import_module(ABOVE[name])


def tell(what: str, **facts: Any) -> None:
    """Call all listeners."""
    for listener in tuple(LISTENERS):
        listener(what, facts)
