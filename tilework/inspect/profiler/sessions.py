"""Sessions: who wants to know what from when on, and what they have collected so far.

A session is made by `start`, and collects launches and metrics while it is active. `finalize` writes its file and forgets it. Numbers
count up from 0 and are not used twice.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any

from tilework.inspect.profiler.launches import Launches
from tilework.inspect.profiler.metric_names import Number
from tilework.inspect.profiler.recorder import RECORDER, python_path
from tilework.inspect.profiler.stacks import Path
from tilework.inspect.profiler.trace import TraceData
from tilework.inspect.profiler.tree import TreeData

CONTEXTS = ("shadow", "python")
DATA: dict[str, Callable[[], Any]] = {"tree": TreeData, "trace": TraceData}


@dataclass
class Session:
    """One of them; `data` is what it has collected."""

    number: int
    name: str
    context: str
    data: Any
    backend: str
    mode: str
    hooks: tuple[Any, ...] = ()
    is_active: bool = False

    def add(self, launches: Launches) -> None:
        self.data.add(replace(launches, path=launches.python) if self.context == "python" else launches)

    def add_metrics(self, path: Path, metrics: dict[str, Number]) -> None:
        """Metrics of a scope; where the call stack is the path, the scope is an entry below it."""
        self.data.add_metrics(path if self.context == "shadow" else (*python_path(), path[-1]), metrics)

    def touch(self, path: Path) -> None:
        """A scope was entered."""
        if self.context == "shadow":
            self.data.touch(path)

    def write(self) -> None:
        """Its file, or what it would be on standard output for the name ``-``, or none."""
        if self.name in ("", "-"):
            print(self.data.text())
            return
        path = FilePath(f"{self.name}.{self.data.suffix}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.data.text())
        except OSError as error:
            raise RuntimeError(f"the profile cannot be written to {path}: {error.strerror}") from None


class Sessions:
    """All of this process."""

    def __init__(self) -> None:
        self.numbers = itertools.count()
        self.known: dict[int, Session] = {}

    def make(self, name: str, context: str, data: str, backend: str, mode: str) -> Session:
        if context not in CONTEXTS:
            raise ValueError(f"Unknown context source: {context}")
        if data not in DATA:
            raise ValueError(f"Unknown data: {data}")
        for other in self.known.values():
            if other.backend == backend and other.mode != mode:
                raise RuntimeError(
                    "Cannot add a session with the same profiler but a different mode than existing sessions"
                )
        return self.add(Session(next(self.numbers), name, context, DATA[data](), backend, mode))

    def add(self, session: Session) -> Session:
        self.known[session.number] = session
        return session

    def get(self, number: int) -> Session:
        if number not in self.known:
            raise RuntimeError(f"Session has not been initialized: {number}")
        return self.known[number]

    def active(self) -> list[Session]:
        return [session for session in self.known.values() if session.is_active]

    def set_active(self, sessions: list[Session], is_active: bool) -> None:
        """Let sessions collect from now on, or not any more; what happened before belongs to those that were active then."""
        if all(session.is_active == is_active for session in sessions):
            return
        active = [session for session in self.active() if session not in sessions]
        RECORDER.set_sinks([*active, *sessions] if is_active else active)
        for session in sessions:
            session.is_active = is_active

    def forget(self, session: Session) -> None:
        """Stop it, and write its file."""
        self.set_active([session], False)
        del self.known[session.number]
        session.write()


SESSIONS = Sessions()
