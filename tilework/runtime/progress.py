"""Progress of long operations, on terminals and in notebooks: ``autotuning matmul: 3/12, 4 s left``.

    with Progress("autotuning matmul", total=12) as progress:
        for config in configs:
            measure(config)
            progress.step()

On a terminal the display is a bar of rich or tqdm if one of them is installed, else one line that is rewritten; in a
notebook tqdm's widget if tqdm and ipywidgets are installed, else a bar of the browser. It is removed at the end.
Nothing is shown before `delay` seconds, and of nested progresses only the outermost is. TILEWORK_PROGRESS=0 disables
the display. Elsewhere nothing is written, or with `is_listed` a line per step.
"""

import sys
import threading
import time
from collections.abc import Callable, Sequence
from html import escape
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
    """A bar of tqdm, in notebooks its widget."""

    def __init__(self, progress: "Progress") -> None:
        from tqdm.auto import tqdm  # an optional package, slow to load

        self.bar: Any = tqdm(total=progress.total, initial=progress.known, leave=False, file=sys.stderr)

    def show(self, progress: "Progress") -> None:
        self.bar.set_description(progress.heading, refresh=False)
        self.bar.n = progress.done
        self.bar.refresh()

    def close(self) -> None:
        self.bar.total = self.bar.n  # in a notebook a bar that is not full would remain
        self.bar.close()


class DisplayBar:
    """A bar of the browser in the output of a notebook's cell."""

    def __init__(self, progress: "Progress") -> None:
        from IPython.display import DisplayHandle  # only notebooks need it

        self.handle: Any = DisplayHandle()
        self.display: Any = self.handle.display  # and then `update`

    def show(self, progress: "Progress") -> None:
        bar = f'<progress value="{progress.done}" max="{progress.total}"></progress> {escape(str(progress))}'
        self.display({"text/html": bar, "text/plain": str(progress)}, raw=True)
        self.display = self.handle.update

    def close(self) -> None:
        self.handle.update({"text/html": "", "text/plain": ""}, raw=True)


Bars = Sequence[tuple[Sequence[str], Callable[["Progress"], Any]]]  # the packages that each needs
BARS: Bars = ((["rich"], RichBar), (["tqdm"], TqdmBar))
NOTEBOOK_BARS: Bars = ((["tqdm", "ipywidgets"], TqdmBar), ([], DisplayBar))


def is_wanted() -> bool:
    """Return True if progress is shown: there is a terminal or a notebook, and TILEWORK_PROGRESS allows it."""
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    return (is_terminal or is_notebook()) and knobs.runtime.progress


def is_notebook() -> bool:
    """Return True in the process of a notebook, whose output is shown in a browser."""
    shell = sys.modules.get("IPython")
    return shell is not None and hasattr(shell.get_ipython(), "kernel")


def made_bar(progress: "Progress") -> Any:
    """Return the best bar that is installed and works."""
    for packages, make in NOTEBOOK_BARS if is_notebook() else BARS:
        if all(find_spec(package) is not None for package in packages):
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
