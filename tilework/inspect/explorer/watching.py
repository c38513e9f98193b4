"""The kernels that a program compiles and launches, as requests for a page.

    with watching() as seen:
        softmax[grid](out, x, n, BLOCK=1024)
    build(seen.requests())

Each compiled kernel counts once, with the arguments of its first launch (copies of them, for the emulator). Launches cost more than
usual meanwhile.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tilework import knobs
from tilework.inspect.explain.cases import settings_for
from tilework.inspect.explorer.collect import Request
from tilework.inspect.explorer.counting import Launch
from tilework.targets.base import GPUTarget, find_backend


@dataclass
class Seen:
    """Kernels by their hash: what they are, how they were first launched, and the moment of the last launch."""

    keeps_arguments: bool = True
    kernels: dict[str, tuple[Any, Mapping[str, Any]]] = field(default_factory=dict)
    launches: dict[str, Launch | None] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)
    moment: int = 0

    def compiled(self, *, src: Any, metadata: Mapping[str, Any], **rest: Any) -> None:
        """What `knobs.compilation.listener` calls."""
        self.kernels.setdefault(metadata["hash"], (src, metadata))

    def launched(self, metadata: Any) -> None:
        """What `knobs.runtime.launch_enter_hook` calls."""
        launch = getattr(metadata, "launch", None)
        if launch is None:
            return
        kernel, grid, arguments = launch
        self.moment += 1
        self.last[kernel.hash] = self.moment
        self.kernels.setdefault(kernel.hash, (kernel.src, kernel.metadata._asdict()))
        if kernel.hash not in self.launches and self.keeps_arguments:
            self.launches[kernel.hash] = Launch.of(grid, arguments)

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
    before, enter = knobs.compilation.listener, knobs.runtime.launch_enter_hook

    def listener(**told: Any) -> None:
        seen.compiled(**told)
        if before is not None:
            before(**told)

    knobs.compilation.listener = listener
    enter.add(seen.launched)
    try:
        yield seen
    finally:
        enter.remove(seen.launched)
        if knobs.compilation.listener is listener:
            knobs.compilation.listener = before


def target_of(metadata: Mapping[str, Any]) -> GPUTarget:
    target = metadata["target"]
    return GPUTarget(**target) if isinstance(target, Mapping) else target


def request_for(source: Any, metadata: Mapping[str, Any], target: GPUTarget, launch: Launch | None) -> Request:
    """What compiles a kernel again: the options that are not those of its own target by themselves."""
    compiled = target_of(metadata)
    settings = settings_for(metadata.get("asked") or metadata, compiled, target)
    if target != compiled:
        settings = {**find_backend(target).launch_defaults(), **settings}
    return Request(source, target, settings, launch)
