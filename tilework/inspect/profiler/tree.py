"""A profile as a tree, and the file of it that Hatchet and `proton-viewer` read.

    [ {"children": [...], "frame": {"name": "ROOT", "type": "function"}, "metrics": {"count": 0, "time (ns)": 0}},
      {"CUDA": {"0": {"arch": "90", "num_sms": 132, ...}}} ]

Every scope is a node, and every kernel one below its path. The metrics of the root are 0: they name those that are summed up the tree.
"""

import json
from typing import Any

from tilework.inspect.profiler.device_facts import Devices
from tilework.inspect.profiler.launches import Launches
from tilework.inspect.profiler.metric_names import Metric, Number, joined
from tilework.inspect.profiler.stacks import Path

ROOT = "ROOT"


class Node:
    """A frame: its metrics and those below it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.metrics: dict[str, Number | str] = {}
        self.children: dict[str, Node] = {}

    def at(self, path: Path) -> "Node":
        """The node at a path below this one, which is made if it is not there."""
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
    """What a session with ``data="tree"`` collects."""

    suffix = "hatchet"
    formats = ("hatchet",)

    def __init__(self) -> None:
        self.root = Node(ROOT)
        self.inclusive = {"count", "time (ns)"}
        self.devices = Devices()

    def touch(self, path: Path) -> None:
        """A scope was entered."""
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
