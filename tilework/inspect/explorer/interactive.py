"""`kernel.explore()`: a page about compiled kernels, from a program or a notebook.

    add[grid](x, y, out, n, BLOCK=1024)
    add.explore()                                      # every version of `add` that was compiled
    add.explore(x, y, out, n, BLOCK=1024, grid=(4,))   # launched with these arguments, with counters by line
    add.explore(target="cuda:90", output="add.html", open=False)

    with watching() as seen:                           # the kernels that a program compiles and launches
        softmax[grid](out, x, n, BLOCK=1024)
    build(seen.requests())

Each compiled kernel counts once, with copies of the arguments of its first launch, for the emulator.
"""

import tempfile
import webbrowser
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilework import knobs
from tilework.inspect.compilation import Request, request_for, requests_of, target_of
from tilework.inspect.explorer.document import NotExplored, build, file_name, write
from tilework.inspect.replay import Launch
from tilework.process.events import LISTENERS
from tilework.runtime.tuning.heuristics import jit_function
from tilework.targets.base import GPUTarget


def explore_kernel(
    kernel: Any,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    grid: Any,
    target: str | None,
    output: str | Path | None,
    open: bool,
) -> Path:
    """Write the page of a kernel, or of something around one, and show it; where it is."""
    targets = targets_of(target)
    if args or kwargs:
        if grid is None:
            raise TypeError("explore(...) launches the kernel with these arguments: it needs a grid, as grid=(4,)")
        with watching() as seen:
            kernel[grid](*args, **kwargs)
        requests = seen.requests(targets)
    else:
        requests = [
            request
            for entry in getattr(jit_function(kernel), "device_caches", {}).values()
            for compiled in entry[0].values()
            for request in requests_of(compiled, targets)
        ]
    if not requests:
        raise NotExplored(
            f"{getattr(kernel, '__name__', 'the kernel')} has not been compiled: launch it first,"
            " or give explore() its arguments and a grid"
        )
    return show(requests, output, open)


def explore_compiled(kernel: Any, target: str | None, output: str | Path | None, open: bool) -> Path:
    """Write the page of one compiled kernel, and show it; where it is."""
    return show(requests_of(kernel, targets_of(target)), output, open)


def targets_of(text: str | None) -> tuple[GPUTarget, ...]:
    """``cpu,cuda:90``"""
    return tuple(GPUTarget.parse(part.strip()) for part in (text or "").split(",") if part.strip())


def show(requests: Sequence[Request], output: str | Path | None, open: bool) -> Path:
    """Write a page, to a temporary folder if `output` is None, and open it in a browser."""
    path = Path(output) if output else Path(tempfile.mkdtemp(prefix="tilework-explore-"), file_name(requests))
    write(build(requests), path)
    if open and path.suffix != ".json":
        webbrowser.open(path.resolve().as_uri())
    return path


@dataclass
class Seen:
    """Kernels by their hash: what they are, how they were first launched, and the moment of the last launch."""

    keeps_arguments: bool = True
    kernels: dict[str, tuple[Any, Mapping[str, Any]]] = field(default_factory=dict)
    launches: dict[str, Launch | None] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)
    moment: int = 0

    def listen(self, what: str, facts: Mapping[str, Any]) -> None:
        """An event of `process/events.py`."""
        if what == "compiled":
            self.add(facts["kernel"])

    def add(self, kernel: Any) -> None:
        self.kernels.setdefault(kernel.hash, (kernel.src, kernel.metadata._asdict()))

    def launched(self, metadata: Any) -> None:
        """Called as `knobs.runtime.launch_enter_hook`."""
        launch = getattr(metadata, "launch", None)
        if launch is None:
            return
        kernel, grid, arguments = launch
        self.moment += 1
        self.last[kernel.hash] = self.moment
        self.add(kernel)
        if kernel.hash not in self.launches and self.keeps_arguments:
            fn = getattr(kernel.src, "fn", None)  # none of a kernel that was compiled from a file of IR
            self.launches[kernel.hash] = Launch.of(fn, arguments, grid).copied()

    def requests(self, targets: tuple[GPUTarget, ...] = (), most: int | None = None) -> list[Request]:
        """One request for each kernel, or for each and every target; of many those that were launched last."""
        recent = sorted(self.kernels, key=lambda key: -self.last.get(key, 0))[:most]
        return [
            request_for(source, metadata, target, self.launches.get(key))
            for key, (source, metadata) in self.kernels.items()
            if key in recent
            for target in targets or (target_of(metadata),)
        ]


@contextmanager
def watching(keeps_arguments: bool = True) -> Iterator[Seen]:
    """See the kernels that are compiled and launched inside the `with`."""
    seen = Seen(keeps_arguments)
    LISTENERS.append(seen.listen)
    knobs.runtime.launch_enter_hook.add(seen.launched)
    try:
        yield seen
    finally:
        knobs.runtime.launch_enter_hook.remove(seen.launched)
        LISTENERS.remove(seen.listen)
