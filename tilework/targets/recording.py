"""Record everything that a compilation does, for tools that show it (`tilework explore`).

    with recording() as seen:
        lower(source, target, ["ttgir"])
    [(step.name, step.seconds) for run in seen.runs for step in run.steps]

Most of the time no recording is active, which a stage checks once. During a recording passes emit their remarks too,
and code for the host has line tables.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

# plain classes: every compilation imports this file, and dataclasses take a millisecond to be made


class Step:
    """One pass: as the pipeline names it, how long it took, and the module behind it, with locations."""

    def __init__(self, name: str, seconds: float, text: str) -> None:
        self.name, self.seconds, self.text = name, seconds, text


class PassRun:
    """The passes that ran one after the other on one module: `tag` names them, `text` is what they got."""

    def __init__(self, tag: str, text: str) -> None:
        self.tag, self.text = tag, text
        self.steps: list[Step] = []


class Recording:
    """A record of a compilation: runs of passes, remarks (`transforms/remarks.py`), output of the assembler, seconds
    that recording itself took.
    """

    def __init__(self, with_texts: bool = True) -> None:
        self.with_texts = with_texts
        self.runs: list[PassRun] = []
        self.remarks: list[Any] = []
        self.assembler = ""
        self.overhead = 0.0


RECORDING: ContextVar[Recording | None] = ContextVar("recording", default=None)


def is_recording() -> bool:
    """Return True if a recording is active."""
    return RECORDING.get() is not None


@contextmanager
def recording(with_texts: bool = True) -> Iterator[Recording]:
    """Record what is compiled inside the `with`, in this thread; without texts there are no runs of passes in it."""
    seen = Recording(with_texts)
    token = RECORDING.set(seen)
    try:
        yield seen
    finally:
        RECORDING.reset(token)
