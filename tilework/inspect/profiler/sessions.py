"""Sessions of the profiler, and the data that they collect: a tree of metrics, or a trace.

A session is made by `start`, and collects launches and metrics while it is active. `finalize` writes its file and
forgets it. Ids count up from 0 and are not reused. `TreeData` writes the file that Hatchet and `proton-viewer` read:

    [ {"children": [...], "frame": {"name": "ROOT", "type": "function"}, "metrics": {"count": 0, "time (ns)": 0}},
      {"CUDA": {"0": {"arch": "90", "num_sms": 132, ...}}} ]

Every scope is a node, and every kernel one below its path. The metrics of the root are 0: they name those that are
summed up the tree. `TraceData` writes Chrome's trace format (https://ui.perfetto.dev, chrome://tracing), a line of JSON
for each stream; on the host every thread that launches is one. Times are microseconds since the first kernel.
"""

import itertools
import json
import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any

from tilework.inspect.profiler import stacks
from tilework.inspect.profiler.launches import Launches, Metric, Number, Path, joined
from tilework.inspect.profiler.recorder import RECORDER, python_path
from tilework.inspect.profiler.stacks import flags
from tilework.runtime.devices.active_driver import driver
from tilework.targets.cpu.target import available_cores

ROOT = "ROOT"


class Node:
    """A frame: its metrics and those below it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.metrics: dict[str, Number | str] = {}
        self.children: dict[str, Node] = {}

    def at(self, path: Path) -> "Node":
        """Return the node at a path below this one; create it if needed."""
        node = self
        for name in path:
            found = node.children.get(name)
            if found is None:
                found = node.children[name] = Node(name)
            node = found
        return node

    def add(self, metric: Metric, value: Number | str) -> None:
        self.metrics[metric.name] = joined(metric.name, metric.kind, self.metrics.get(metric.name), value)

    def as_json(self) -> dict[str, Any]:
        children = [child.as_json() for child in self.children.values()]
        return {"children": children, "frame": {"name": self.name, "type": "function"}, "metrics": self.metrics}


class TreeData:
    """The data of a session with ``data="tree"``."""

    suffix = "hatchet"
    formats = ("hatchet",)

    def __init__(self) -> None:
        self.root = Node(ROOT)
        self.inclusive = {"count", "time (ns)"}
        self.devices = Devices()

    def touch(self, path: Path) -> None:
        """Record that a scope was entered."""
        self.root.at(path)

    def add_metrics(self, path: Path, metrics: dict[str, Number]) -> None:
        node = self.root.at(path)
        for text, value in metrics.items():
            metric = Metric.named(text)
            if metric.kind == "inc":
                self.inclusive.add(metric.name)
            node.add(metric, value)

    def add(self, launches: Launches) -> None:
        path = (*launches.path, launches.name)
        node, count = self.root.at(path), len(launches.durations)
        node.add(Metric("time (ns)", "inc"), sum(launches.durations))
        node.add(Metric("count", "inc"), count)
        node.metrics["device_id"], node.metrics["device_type"] = str(launches.device), launches.device_type
        self.devices.add(launches.device_type, launches.device)
        if launches.metrics:
            self.add_metrics(path, launches.metrics)

    def text(self) -> str:
        """The file: keys in order, indented by 4, behind an empty line."""
        root = self.root.as_json()
        root["metrics"] = dict.fromkeys(self.inclusive, 0)
        return "\n" + json.dumps([root, self.devices.facts], indent=4, sort_keys=True)


class TraceData:
    """The data of a session with ``data="trace"``."""

    suffix = "chrome_trace"
    formats = ("chrome_trace",)

    def __init__(self) -> None:
        self.launches: list[Launches] = []

    def touch(self, path: Path) -> None:
        """A scope shows in the call stacks of its kernels."""

    def add_metrics(self, path: Path, metrics: dict[str, Number]) -> None:
        """A trace does not contain metrics."""

    def add(self, launches: Launches) -> None:
        self.launches.append(launches)

    def events(self, first: int) -> Iterator[dict[str, Any]]:
        """An event of the trace for each launch; times count from `first`."""
        for found in self.launches:
            call_stack = {"call_stack": [ROOT, *found.path, found.name]}
            for start, took in zip(found.starts, found.durations, strict=True):
                yield trace_event(found.name, "kernel", start - first, took, found.stream, call_stack)

    def text(self) -> str:
        """Return the contents of the file."""
        streams: dict[int, list[dict[str, Any]]] = {}
        for event in self.events(min((min(found.starts) for found in self.launches), default=0)):
            streams.setdefault(event["tid"], []).append(event)
        lines = [
            {"displayTimeUnit": "us", "traceEvents": sorted(events, key=lambda event: event["ts"])}
            for _, events in sorted(streams.items())
        ]
        return "\n".join(json.dumps(line) for line in lines or [{"displayTimeUnit": "us", "traceEvents": []}]) + "\n"


def trace_event(
    name: str, category: str, start: int, took: float, thread: int | str, args: dict[str, Any]
) -> dict[str, Any]:
    """A complete event of Chrome's trace format, from nanoseconds."""
    times = {"ts": start / 1e3, "dur": took / 1e3}
    return {"name": name, "cat": category, "ph": "X", **times, "tid": thread, "args": args}


class Devices:
    """The devices that kernels ran on, by kind and index."""

    def __init__(self) -> None:
        self.facts: dict[str, dict[str, dict[str, Any]]] = {}

    def add(self, kind: str, index: int) -> None:
        known = self.facts.setdefault(kind, {})
        if str(index) not in known:
            known[str(index)] = facts_of(kind, index)


def facts_of(kind: str, index: int) -> dict[str, Any]:
    """Architecture, units, clocks in kHz; 0 for what the host does not report."""
    if kind == "CPU":
        unknown = dict.fromkeys(("clock_rate", "memory_clock_rate", "bus_width"), 0)
        return {"arch": platform.machine(), "num_sms": available_cores(), **unknown}
    active = driver.active
    found = active.utils.get_device_properties(index)
    return {
        "arch": str(active.get_current_target().arch),
        "num_sms": found["multiprocessor_count"],
        "clock_rate": found["sm_clock_rate"],
        "memory_clock_rate": found["mem_clock_rate"],
        "bus_width": found["mem_bus_width"],
    }


CONTEXTS = ("shadow", "python")
DATA: dict[str, Callable[[], Any]] = {"tree": TreeData, "trace": TraceData}


@dataclass
class Session:
    """One of them; `data` is what it has collected."""

    id: int
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
        """Record that a scope was entered."""
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
    """The sessions of this process."""

    def __init__(self) -> None:
        self.ids = itertools.count()
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
        return self.add(Session(next(self.ids), name, context, DATA[data](), backend, mode))

    def add(self, session: Session) -> Session:
        self.known[session.id] = session
        return session

    def get(self, id: int) -> Session:
        if id not in self.known:
            raise RuntimeError(f"Session has not been initialized: {id}")
        return self.known[id]

    def active(self) -> list[Session]:
        return [session for session in self.known.values() if session.is_active]

    def set_active(self, sessions: list[Session], is_active: bool) -> None:
        """Let sessions collect from now on, or not any more; what happened before belongs to those that were active
        then."""
        if all(session.is_active == is_active for session in sessions):
            return
        active = [session for session in self.active() if session not in sessions]
        RECORDER.set_sinks([*active, *sessions] if is_active else active)
        for session in sessions:
            session.is_active = is_active

    def forget(self, session: Session) -> None:
        """Stop it, and write its file."""
        self.set_active([session], False)
        del self.known[session.id]
        session.write()


SESSIONS = Sessions()


def depth(session: int | None = 0) -> int | None:
    """Return the length of the path under which a kernel would be filed now; None while nothing is profiled."""
    if not flags.profiling_on:
        return None
    found = SESSIONS.get(session or 0)
    return len(python_path() if found.context == "python" else stacks.current())
