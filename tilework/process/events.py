"""Events of the runtime and their listeners, and the process-wide state that several of its packages share.

Listeners are called for events that happen once per specialisation or tuning; usually there is none.

    new        a launch needs a specialisation that this process does not have yet: fn, values
    compiled   a kernel was compiled, or found on disk: source, target, backend, options, environment, kernel, hit,
               seconds
    needed     the code of a specialisation was needed, and is there, wherever it came from: specialization, backend
    ready      the launch of `new` has its kernel, and comes next: fn, values, grid, kernel, options
    measuring  an autotuner begins to time a configuration, or ends: tuner, begins
    tuned      an autotuner has chosen: tuner, key (`tuner.tunings[key]` has the rest)
    chosen     a launch with a configuration of an autotuner, new or known, comes next: tuner, config, args, kwargs
"""

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

LISTENERS: list[Callable[[str, dict[str, Any]], None]] = []
BUNDLES: list[Any] = []  # open bundles that serve kernels and choices of autotuners, the latest first
WORKER: list[int] = []  # the id of this process, if it is a worker process (`runtime/workers/worker.py`)

# modules of layers above the runtime that it calls: they import it, so it knows them by name
ABOVE = {
    "explain": "tilework.inspect.explain.kernels",
    "explore": "tilework.inspect.explorer.document",
    "watch": "tilework.inspect.explain.kernels",
}


def notify(event: str, **facts: Any) -> None:
    """Call all listeners."""
    for listener in tuple(LISTENERS):
        listener(event, facts)


def is_worker() -> bool:
    """Return True if this process compiles for another one, which records what is compiled."""
    return os.getpid() in WORKER


def above(name: str) -> Any:
    """Import a module of a layer above the runtime."""
    return import_module(ABOVE[name])
