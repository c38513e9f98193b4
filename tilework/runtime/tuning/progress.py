"""``autotuning matmul: 3/12, 4 s left``: rewritten in place on a terminal, a line per step if asked for, quiet otherwise."""

import sys
import time
from types import TracebackType

from tilework import knobs

CLEAR = "\r\x1b[K"


class Progress:
    """See the module; `done` of `total` steps cost nothing."""

    def __init__(self, title: str, total: int, done: int = 0) -> None:
        self.title, self.total, self.done, self.known = title, total, done, done
        self.start = time.monotonic()
        self.is_terminal = sys.stderr is not None and sys.stderr.isatty()

    def __enter__(self) -> "Progress":
        if self.done < self.total:
            self.show()
        return self

    def step(self) -> None:
        """One more is done."""
        self.done += 1
        self.show()

    def show(self) -> None:
        if self.is_terminal:
            sys.stderr.write(f"{CLEAR}{self}")
            sys.stderr.flush()
        elif knobs.autotuning.print and self.done > self.known and sys.stderr is not None:
            sys.stderr.write(f"{self}\n")

    def __str__(self) -> str:
        left = ""
        if self.known < self.done < self.total:
            seconds = (time.monotonic() - self.start) / (self.done - self.known) * (self.total - self.done)
            left = f", {seconds:.0f} s left"
        return f"{self.title}: {self.done}/{self.total}{left}"

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.is_terminal:
            sys.stderr.write(CLEAR)
            sys.stderr.flush()
