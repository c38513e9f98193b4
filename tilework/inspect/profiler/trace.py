"""A profile as a list of what ran when, in the format of Chrome's tracing (open it in https://ui.perfetto.dev or chrome://tracing).

One line of JSON for each stream; on the host every thread that launches is one. Times are microseconds from the first kernel on.
"""

import json
from typing import Any

from tilework.inspect.profiler.launches import Launches
from tilework.inspect.profiler.metric_names import Number
from tilework.inspect.profiler.stacks import Path
from tilework.inspect.profiler.tree import ROOT


class TraceData:
    """What a session with ``data="trace"`` collects."""

    suffix = "chrome_trace"
    formats = ("chrome_trace",)

    def __init__(self) -> None:
        self.launches: list[Launches] = []

    def touch(self, path: Path) -> None:
        """A scope shows in the call stacks of its kernels."""

    def add_metrics(self, path: Path, metrics: dict[str, Number]) -> None:
        """A trace has no place for them."""

    def add(self, launches: Launches) -> None:
        self.launches.append(launches)

    def text(self) -> str:
        """The file."""
        first = min((min(found.starts) for found in self.launches), default=0)
        streams: dict[int, list[dict[str, Any]]] = {}
        for found in self.launches:
            stack = [ROOT, *found.path, found.name]
            for start, took in zip(found.starts, found.durations, strict=True):
                event = {"name": found.name, "cat": "kernel", "ph": "X", "ts": (start - first) / 1e3, "dur": took / 1e3}
                event |= {"tid": found.stream, "args": {"call_stack": stack}}
                streams.setdefault(found.stream, []).append(event)
        lines = [
            {"displayTimeUnit": "us", "traceEvents": sorted(events, key=lambda event: event["ts"])}
            for _, events in sorted(streams.items())
        ]
        return "\n".join(json.dumps(line) for line in lines or [{"displayTimeUnit": "us", "traceEvents": []}]) + "\n"
