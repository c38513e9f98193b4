"""Files of profiles as trees that can be filtered, summed up and printed: what the viewer works on, without pandas or Hatchet.

tree, devices = read("matmul.hatchet")
tree.root.children[0].metrics["time (ns)"]
tree.dataframe                               # one row per frame, if pandas is installed
"""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

Value = Any


class ProfileError(ValueError):
    """A profile, or what is asked of it, is not as it should be."""


@dataclass
class Frame:
    """A node: its metrics are numbers and texts of the file, and columns that are derived from them."""

    name: str
    metrics: dict[str, Value]
    children: list["Frame"] = field(default_factory=list)

    def walk(self) -> Iterator["Frame"]:
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass
class FrameTree:
    """A profile: its frames, and which metrics are summed up the tree."""

    root: Frame
    inclusive: list[str]
    exclusive: list[str]

    @property
    def inc_metrics(self) -> list[str]:
        return self.inclusive

    @property
    def exc_metrics(self) -> list[str]:
        return self.exclusive

    @property
    def dataframe(self) -> Any:
        """One row per frame, as pandas has it."""
        try:
            import pandas as pd  # an optional package, for those who want to compute with profiles
        except ImportError:
            raise ImportError(
                "`dataframe` needs pandas: pip install pandas. `tree.root.walk()` needs nothing"
            ) from None
        return pd.DataFrame([{"name": frame.name, **frame.metrics} for frame in self.root.walk()])

    def kept(self, keeps: Callable[[Frame, tuple[Frame, ...]], bool]) -> "FrameTree":
        """With the frames only for which `keeps(frame, those above it)` holds, and those above them."""

        def visit(frame: Frame, above: tuple[Frame, ...]) -> Frame | None:
            children = [kept for child in frame.children if (kept := visit(child, (*above, frame))) is not None]
            if not children and not keeps(frame, above) and above:
                return None
            return Frame(frame.name, frame.metrics, children)

        root = visit(self.root, ())
        assert root is not None, "the root stays"
        return FrameTree(root, self.inclusive, self.exclusive)

    def without(self, drops: Callable[[Frame], bool]) -> "FrameTree":
        """Without frames for which `drops` holds, and all below them; the root stays."""

        def visit(frame: Frame) -> Frame:
            return Frame(frame.name, frame.metrics, [visit(child) for child in frame.children if not drops(child)])

        return FrameTree(visit(self.root), self.inclusive, self.exclusive)


def drawn(
    node: Any, below: Callable[[Any, int], Sequence[Any]], head: str = "", rest: str = "", level: int = 0
) -> Iterator[tuple[str, Any]]:
    """(what is drawn in front of it, node) of a tree, line by line; `below` gives the nodes below one at a level."""
    yield head, node
    nodes = below(node, level)
    for index, child in enumerate(nodes):
        corner, line = ("└─ ", "   ") if index == len(nodes) - 1 else ("├─ ", "│  ")
        yield from drawn(child, below, rest + corner, rest + line, level + 1)


def read(filename: Any) -> tuple[FrameTree, list[str], list[str], dict[str, Any]]:
    """(tree, inclusive metrics, exclusive metrics, devices) of a file; inclusive metrics are summed up the tree."""
    try:
        text = filename.read() if hasattr(filename, "read") else open(filename).read()  # noqa: SIM115
        data = json.loads(text)
        root, devices = data[0], data[1] if len(data) > 1 else {}
        frame = frame_of(root)
    except OSError as error:
        raise ProfileError(f"the profile {filename} cannot be read: {error.strerror}") from None
    except (ValueError, LookupError, TypeError):
        name = getattr(filename, "name", filename)
        raise ProfileError(
            f"{name} is no profile of the viewer's format: it reads .hatchet files of data='tree'"
        ) from None
    inclusive = sorted(frame.metrics)
    frame.metrics = {}
    drop_internal(frame)
    names = {name: None for found in frame.walk() for name in found.metrics}
    exclusive = [name for name in names if name not in inclusive]
    total(frame, inclusive)
    tree = FrameTree(frame, inclusive, exclusive)
    return tree, inclusive, exclusive, devices


def frame_of(node: dict[str, Any]) -> Frame:
    return Frame(node["frame"]["name"], dict(node["metrics"]), [frame_of(child) for child in node["children"]])


def drop_internal(frame: Frame) -> None:
    """Leave out what a launch's metadata launched, and what holds nothing."""
    for child in frame.children:
        drop_internal(child)
    frame.children = [
        child
        for child in frame.children
        if child.name != "__proton_launch_metadata" and (child.children or child.metrics)
    ]


def total(frame: Frame, inclusive: list[str]) -> None:
    """Inclusive metrics of a frame are its own and those below it."""
    for child in frame.children:
        total(child, inclusive)
    for name in inclusive:
        values = [part.metrics[name] for part in (frame, *frame.children) if name in part.metrics]
        if values:
            frame.metrics[name] = sum(values)


def number(value: Value) -> float:
    """A metric as a number; one that a frame does not have is none."""
    return math.nan if value is None or isinstance(value, str) else float(value)
