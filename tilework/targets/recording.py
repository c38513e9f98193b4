"""Everything that a compilation does, kept for who looks at it afterwards (`tilework explore`).

    with recording() as seen:
        lower(source, target, ["ttgir"])
    [(step.name, step.seconds) for run in seen.runs for step in run.steps]

Nobody records most of the time, and then a stage asks once whether somebody does. While somebody does, passes are asked for their
remarks, too, and code for the host has line tables.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Step:
    """One pass: as the pipeline names it, how long it took, and the module behind it, with locations."""

    name: str
    seconds: float
    text: str


@dataclass
class PassRun:
    """The passes that ran one after the other on one module: `tag` names them, `text` is what they got."""

    tag: str
    text: str
    steps: list[Step] = field(default_factory=list)


@dataclass
class Recording:
    """What was seen: runs of passes, remarks (`transforms/remarks.py`), and what the assembler printed."""

    runs: list[PassRun] = field(default_factory=list)
    remarks: list[Any] = field(default_factory=list)
    assembler: str = ""
    overhead: float = 0.0  # seconds that the recording itself took


RECORDING: ContextVar[Recording | None] = ContextVar("recording", default=None)


def is_recording() -> bool:
    """Whether somebody wants to see everything."""
    return RECORDING.get() is not None


@contextmanager
def recording() -> Iterator[Recording]:
    """Record what is compiled inside the `with`, in this thread."""
    seen = Recording()
    token = RECORDING.set(seen)
    try:
        yield seen
    finally:
        RECORDING.reset(token)
