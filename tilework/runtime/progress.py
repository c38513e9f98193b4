"""Progress of long operations, on a terminal only: ``autotuning matmul: 3/12, 4 s left``.

    with Progress("autotuning matmul", total=12) as progress:
        for config in configs:
            measure(config)
            progress.step()

The display is a bar of rich or tqdm if one of them is installed, else one line that is rewritten; it is removed at the
end. Nothing is shown before `delay` seconds, and of nested progresses only the outermost is. TILEWORK_PROGRESS=0
disables the display. If standard error is no terminal nothing is written, or with `is_listed` a line per step.
"""

import sys
import threading
import time
from collections.abc import Callable
from importlib.util import find_spec
from types import TracebackType
from typing import Any

from tilework import knobs

CLEAR = "\r\x1b[K"
INTERVAL = 0.1  # seconds between two updates
DELAY = 0.5  # seconds without a display
SHOWN: "list[Progress]" = []  # the one that has the terminal


class LineBar:
    """One line, written again and again."""

    def __init__(self, progress: "Progress") -> None:
        pass

    def show(self, progress: "Progress") -> None:
        sys.stderr.write(f"{CLEAR}{progress}")
        sys.stderr.flush()

    def close(self) -> None:
        sys.stderr.write(CLEAR)
        sys.stderr.flush()


class RichBar:
    """A bar of rich."""

    def __init__(self, progress: "Progress") -> None:
        from rich.console import Console  # an optional package, slow to load
        from rich.progress import Progress as Bars

        self.bars: Any = Bars(console=Console(file=sys.stderr), transient=True)
        self.task: Any = self.bars.add_task(progress.title, total=progress.total)
        self.bars.start()

    def show(self, progress: "Progress") -> None:
        self.bars.update(self.task, completed=progress.done, description=progress.heading)

    def close(self) -> None:
        self.bars.stop()


class TqdmBar:
    """A bar of tqdm."""

    def __init__(self, progress: "Progress") -> None:
        from tqdm import tqdm  # an optional package, slow to load

        self.bar: Any = tqdm(total=progress.total, initial=progress.known, leave=False, file=sys.stderr)

    def show(self, progress: "Progress") -> None:
        self.bar.set_description(progress.heading, refresh=False)
        self.bar.n = progress.done
        self.bar.refresh()

    def close(self) -> None:
        self.bar.close()


BARS: dict[str, Callable[["Progress"], Any]] = {"rich": RichBar, "tqdm": TqdmBar}


def is_wanted() -> bool:
    """Return True if progress is shown: standard error is a terminal, and TILEWORK_PROGRESS allows it."""
    return sys.stderr is not None and sys.stderr.isatty() and knobs.runtime.progress


def made_bar(progress: "Progress") -> Any:
    """Return the best bar that is installed and works."""
    for library, make in BARS.items():
        if find_spec(library) is not None:
            try:
                return make(progress)
            except Exception:  # another package's; the next bar shows the same
                continue
    return LineBar(progress)


class Progress:
    """See the module; the `done` steps of `total` at the start do not count for the time that is left."""

    def __init__(self, title: str, total: int, done: int = 0, *, delay: float = DELAY, is_listed: bool = False) -> None:
        self.title, self.total, self.done, self.known = title, total, done, done
        self.detail = ""
        self.start = time.monotonic()
        self.next = self.start + delay
        self.is_listed = is_listed
        self.is_shown = False
        self.is_even = True  # steps take about the same time
        self.bar: Any = None

    def __enter__(self) -> "Progress":
        if self.done < self.total and not SHOWN and is_wanted():
            SHOWN.append(self)
            self.is_shown = True
            self.update()
        return self

    def step(self, detail: str = "", count: int = 1) -> None:
        """Count steps as done."""
        self.done += count
        self.detail = detail
        if self.is_shown:
            self.update()
        elif self.is_listed and not SHOWN and sys.stderr is not None:
            sys.stderr.write(f"{self}\n")

    def update(self) -> None:
        """Show it, if an update is due."""
        now = time.monotonic()
        if now < self.next:
            return
        self.next = now + INTERVAL
        if self.bar is None:
            self.bar = made_bar(self)
        self.bar.show(self)

    @property
    def heading(self) -> str:
        return f"{self.title} ({self.detail})" if self.detail else self.title

    def __str__(self) -> str:
        left, passed = "", time.monotonic() - self.start
        if not self.is_even:
            left = f", {passed:.0f} s"
        elif self.known < self.done < self.total:
            left = f", {passed / (self.done - self.known) * (self.total - self.done):.0f} s left"
        return f"{self.heading}: {self.done}/{self.total}{left}"

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.is_shown:
            SHOWN.remove(self)
            if self.bar is not None:
                self.bar.close()


class LongStep:
    """Progress with long steps, as those of a compilation: a thread shows it after a while."""

    def __init__(self, title: str, total: int, delay: float = 1.0) -> None:
        self.progress = Progress(title, total, delay=delay)
        self.progress.is_even = False
        self.delay, self.is_over, self.drawing = delay, threading.Event(), threading.Lock()

    def __enter__(self) -> "LongStep":
        self.progress.__enter__()
        if self.progress.is_shown:
            threading.Thread(target=self.watch, daemon=True).start()
        return self

    def step(self, detail: str) -> None:
        """Begin the next step."""
        self.progress.done += self.progress.detail != ""
        self.progress.detail = detail

    def watch(self) -> None:
        wait = self.delay
        while not self.is_over.wait(wait):
            with self.drawing:
                if not self.is_over.is_set():
                    self.progress.update()
            wait = INTERVAL

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.is_over.set()
        with self.drawing:
            self.progress.__exit__(kind, error, at)
