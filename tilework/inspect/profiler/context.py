"""The depth of the current thread's path in the tree: `context.depth()`."""

from tilework.inspect.profiler import stacks
from tilework.inspect.profiler.recorder import python_path
from tilework.inspect.profiler.sessions import SESSIONS
from tilework.inspect.profiler.stacks import flags


def depth(session: int | None = 0) -> int | None:
    """Return the length of the path under which a kernel would be filed now; None while nothing is profiled."""
    if not flags.profiling_on:
        return None
    found = SESSIONS.get(session or 0)
    return len(python_path() if found.context == "python" else stacks.current())
