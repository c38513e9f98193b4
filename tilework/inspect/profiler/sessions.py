"""Sessions of the profiler, and the data that they collect: a tree of metrics, or a trace.

A session is made by `start`, and collects launches and metrics while it is active. `finalize` writes its file and
forgets it. Ids count up from 0 and are not reused. `TreeData` writes the file that Hatchet and `proton-viewer` read:

    [ {"children": [...], "frame": {"name": "ROOT", "type": "function"}, "metrics": {"count": 0, "time (ns)": 0}},
      {"CUDA": {"0": {"arch": "90", "num_sms": 132, ...}}} ]

Every scope is a node, and every kernel one below its path. The metrics of the root are 0: they name those that are
summed up the tree. `TraceData` writes Chrome's trace format (https://ui.perfetto.dev, chrome://tracing), a line of JSON
for each stream; on the host every thread that launches is one. Times are microseconds since the first kernel. What a
session collects is divided into phases (`tilework/inspect/profiler/data.py`), each of which is a file of its own.
"""

import itertools
import json
import math
import platform
import struct
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path as FilePath
from typing import Any

from tilework.inspect.profiler import stacks
from tilework.inspect.profiler.launches import Launches, Metric, Path, Unread, Value, joined
from tilework.inspect.profiler.recorder import RECORDER, python_path
from tilework.inspect.profiler.stacks import flags
from tilework.runtime.devices.active_driver import driver
from tilework.targets.cpu.target import available_cores

ROOT = "ROOT"


class Node:
    """A frame: its metrics and those below it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.metrics: dict[str, Value | str] = {}
        self.children: dict[str, Node] = {}
        self.mismatched: set[str] = set()  # the metrics that a launch gave values of another kind

    def at(self, path: Path) -> "Node":
        """Return the node at a path below this one; create it if needed."""
        node = self
        for name in path:
            found = node.children.get(name)
            if found is None:
                found = node.children[name] = Node(name)
            node = found
        return node

    def add(self, metric: Metric, value: Value | str) -> None:
        self.metrics[metric.name] = joined(metric.name, metric.kind, self.metrics.get(metric.name), value)

    def add_launched(self, metric: Metric, value: Value | str) -> None:
        """Add a metric of a launch as `add` does, but without errors, because a metric must not end a launch: an
        integer and a float add up to a float, and values that cannot be added are left out with one warning."""
        before = self.metrics.get(metric.name)
        if metric.kind != "pty" and isinstance(before, int | float) and isinstance(value, int | float):
            is_float = isinstance(before, float) or isinstance(value, float)
            self.metrics[metric.name] = nearest_float(before) + nearest_float(value) if is_float else before + value
            return
        try:
            self.add(metric, value)
        except RuntimeError as error:
            if metric.name not in self.mismatched:
                self.mismatched.add(metric.name)
                warnings.warn(f"{error}; such values are left out", RuntimeWarning, stacklevel=2)

    def as_json(self) -> dict[str, Any]:
        children = [child.as_json() for child in self.children.values()]
        return {"children": children, "frame": {"name": self.name, "type": "function"}, "metrics": self.metrics}


class TreeData:
    """The data of a session with ``data="tree"``."""

    formats = ("hatchet", "hatchet_msgpack")

    def __init__(self) -> None:
        self.root = Node(ROOT)
        self.inclusive = {"count", "time (ns)"}
        self.devices = Devices()

    def touch(self, path: Path) -> None:
        """Record that a scope was entered."""
        self.root.at(path)

    def add_metrics(self, path: Path, metrics: dict[str, Value]) -> None:
        """Add the metrics of a scope."""
        self.add_to(self.root.at(path).add, metrics)

    def add_to(self, add: Callable[[Metric, Value], None], metrics: dict[str, Value]) -> None:
        for text, value in metrics.items():
            metric = Metric.named(text)
            if metric.kind == "inc" and not isinstance(value, list):
                self.inclusive.add(metric.name)
            add(metric, value)

    def add(self, launches: Launches) -> None:
        path = (*launches.path, launches.name)
        node, count = self.root.at(path), len(launches.durations)
        node.add_launched(Metric("time (ns)", "inc"), sum(launches.durations))
        node.add_launched(Metric("count", "inc"), count)
        node.metrics["device_id"], node.metrics["device_type"] = str(launches.device), launches.device_type
        self.devices.add(launches.device_type, launches.device)
        known = {name: value for name, value in launches.metrics.items() if not isinstance(value, Unread)}
        self.add_to(node.add_launched, known)

    def tree(self) -> list[dict[str, Any]]:
        """Return what the file contains: the root, and the devices."""
        root = self.root.as_json()
        root["metrics"] = dict.fromkeys(self.inclusive, 0)
        return [root, self.devices.facts]

    def contents(self, format: str) -> bytes:
        """Return the file: MessagePack, or JSON with its keys in order, indented by 4, behind an empty line."""
        if format == "hatchet_msgpack":
            return message_pack(self.tree())
        return ("\n" + json.dumps(self.tree(), indent=4, sort_keys=True)).encode()


class TraceData:
    """The data of a session with ``data="trace"``."""

    formats = ("chrome_trace",)

    def __init__(self) -> None:
        self.launches: list[Launches] = []

    def touch(self, path: Path) -> None:
        """A scope shows in the call stacks of its kernels."""

    def add_metrics(self, path: Path, metrics: dict[str, Value]) -> None:
        """A trace does not contain metrics."""

    def add(self, launches: Launches) -> None:
        self.launches.append(launches)

    def events(self, first: int) -> Iterator[dict[str, Any]]:
        """An event of the trace for each launch; times count from `first`."""
        for found in self.launches:
            call_stack = {"call_stack": [ROOT, *found.path, found.name]}
            for start, took in zip(found.starts, found.durations, strict=True):
                yield trace_event(found.name, "kernel", start - first, took, found.stream, call_stack)

    def contents(self, format: str) -> bytes:
        """Return the file."""
        streams: dict[int, list[dict[str, Any]]] = {}
        for event in self.events(min((min(found.starts) for found in self.launches), default=0)):
            streams.setdefault(event["tid"], []).append(event)
        lines = [
            {"displayTimeUnit": "us", "traceEvents": sorted(events, key=lambda event: event["ts"])}
            for _, events in sorted(streams.items())
        ]
        text = "\n".join(json.dumps(line) for line in lines or [{"displayTimeUnit": "us", "traceEvents": []}]) + "\n"
        return text.encode()


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
DATA: dict[str, type[Any]] = {"tree": TreeData, "trace": TraceData}


def message_pack(value: Any) -> bytes:
    """Return a value of JSON in the format of https://msgpack.org."""
    if isinstance(value, dict):
        items = [message_pack(part) for item in value.items() for part in item]
        return prefix(len(value), (0x80, 16), (0xDE, 2), (0xDF, 4)) + b"".join(items)
    if isinstance(value, list | tuple):
        return prefix(len(value), (0x90, 16), (0xDC, 2), (0xDD, 4)) + b"".join(map(message_pack, value))
    if isinstance(value, str):
        text = value.encode()
        return prefix(len(text), (0xA0, 32), (0xD9, 1), (0xDA, 2), (0xDB, 4)) + text
    if value is None or isinstance(value, bool):
        return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if not -(1 << 63) <= value < 1 << 64:
        return message_pack(nearest_float(value))  # the format has no such integers
    if -32 <= value < 0:
        return struct.pack(">b", value)
    if value < 0:
        return b"\xd3" + struct.pack(">q", value)
    return prefix(value, (0, 128), (0xCC, 1), (0xCD, 2), (0xCE, 4), (0xCF, 8))


def nearest_float(value: float) -> float:
    """Return a number as a float, an infinity beyond the range of floats."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def prefix(number: int, short: tuple[int, int], *longer: tuple[int, int]) -> bytes:
    """Return a number or a length: in the tag itself, whose values begin at ``short[0]``, if it is less than
    ``short[1]``, else behind the first tag of `longer` with so many bytes that it fits in."""
    tag, end = short
    if number < end:
        return bytes([tag + number])
    for tag, size in longer:
        if number < 1 << 8 * size:
            return bytes([tag]) + number.to_bytes(size, "big")
    raise OverflowError(f"MessagePack has no object of length {number}")


@dataclass
class Session:
    """A session. `phases` has the collected data by phase; `advance` begins the next one. With a `part_format`, the
    file of a phase is written when the phase ends."""

    id: int
    name: str
    context: str
    kind: str
    backend: str
    mode: str
    hooks: tuple[Any, ...] = ()
    is_active: bool = False
    part_format: str | None = None
    phase: int = 0
    phases: dict[int, Any] = field(default_factory=dict)
    data: Any = field(init=False)  # of the current phase

    def __post_init__(self) -> None:
        self.collect(self.phase)

    def collect(self, phase: int) -> None:
        """Collect into new data from now on, that of a phase. Launches of other threads read `data` only, which is
        valid at every moment."""
        self.data = self.phases[phase] = DATA[self.kind]()
        self.phase = phase

    def add(self, launches: Launches) -> None:
        self.data.add(replace(launches, path=launches.python) if self.context == "python" else launches)

    def add_metrics(self, path: Path, metrics: dict[str, Value]) -> None:
        """Metrics of a scope; where the call stack is the path, the scope is an entry below it."""
        self.data.add_metrics(path if self.context == "shadow" else (*python_path(), path[-1]), metrics)

    def touch(self, path: Path) -> None:
        """Record that a scope was entered."""
        if self.context == "shadow":
            self.data.touch(path)

    def advance(self) -> int:
        """Begin a phase, and return its number."""
        over = self.phase
        self.collect(over + 1)
        if self.part_format is not None:
            self.write_phase(over, self.part_format)
            del self.phases[over]
        return self.phase

    def clear(self, first: int, last: int) -> None:
        """Forget what some phases have collected; the current one goes on."""
        for phase in [phase for phase in self.phases if first <= phase <= last]:
            if phase == self.phase:
                self.collect(phase)
            else:
                del self.phases[phase]

    def write(self, format: str | None) -> None:
        """Its files, one for each phase that is not cleared, or what one would be on standard output for the name
        ``-``."""
        for phase in self.phases:
            self.write_phase(phase, format or self.part_format or self.data.formats[0])

    def write_phase(self, phase: int, format: str) -> None:
        contents = self.phases[phase].contents(format)
        if self.name in ("", "-"):
            print(contents.decode(errors="replace"))
            return
        part = f".part_{phase}" if self.phase or self.part_format is not None else ""
        path = FilePath(f"{self.name}{part}.{format}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(contents)
        except OSError as error:
            raise RuntimeError(f"the profile cannot be written to {path}: {error.strerror}") from None


class Sessions:
    """The sessions of this process."""

    def __init__(self) -> None:
        self.ids = itertools.count()
        self.known: dict[int, Session] = {}

    def make(
        self, name: str, context: str, data: str, backend: str, mode: str, part_format: str | None = None
    ) -> Session:
        if context not in CONTEXTS:
            raise ValueError(f"Unknown context source: {context}")
        if data not in DATA:
            raise ValueError(f"Unknown data: {data}")
        if part_format and part_format not in DATA[data].formats:
            raise ValueError(f"Unknown output format: {part_format}")
        for other in self.known.values():
            if other.backend == backend and other.mode != mode:
                raise RuntimeError(
                    "Cannot add a session with the same profiler but a different mode than existing sessions"
                )
        if part_format == "":
            part_format = DATA[data].formats[0]
        return self.add(Session(next(self.ids), name, context, data, backend, mode, part_format=part_format))

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

    def forget(self, session: Session, format: str | None = None) -> None:
        """Stop it, and write its files."""
        self.set_active([session], False)
        del self.known[session.id]
        session.write(format)


SESSIONS = Sessions()


def depth(session: int | None = 0) -> int | None:
    """Return the length of the path under which a kernel would be filed now; None while nothing is profiled."""
    if not flags.profiling_on:
        return None
    found = SESSIONS.get(session or 0)
    return len(python_path() if found.context == "python" else stacks.current())
