"""How long kernels run on a GPU, where CUPTI does not tell: an event in the stream before each launch, and one behind it.

Launches in machine code take pairs of events from a block (`launch_log.give_events`), those through Python one by one. What they took is
asked of the driver later, when the device has reached them. Launches inside of a graph that is being captured have no time of
their own: their events belong to the graph.
"""

import ctypes
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from tilework.inspect.profiler.launches import Launches
from tilework.inspect.profiler.stacks import Path
from tilework.runtime.launch.native import launch_log

WITH_TIMES = 0  # flags of an event
POINTER = ctypes.sizeof(ctypes.c_void_p)
PYTHON_PAIRS = 64
MOST_BLOCKS = 3  # that are waited for


class EventBlock:
    """Handles of events, two for each launch."""

    def __init__(self, library: Any, pairs: int) -> None:
        self.library = library
        self.handles = (ctypes.c_void_p * (2 * pairs))()
        self.start = ctypes.addressof(self.handles)
        self.end = self.start + 2 * pairs * POINTER
        for place in range(self.start, self.end, POINTER):
            library.create_event(ctypes.byref(ctypes.c_void_p.from_address(place)), WITH_TIMES)

    def pairs(self) -> list[tuple[int, int]]:
        return list(zip(self.handles[::2], self.handles[1::2], strict=True))


class Waiting(NamedTuple):
    """Launches whose times are not known yet: their events, and the block these are from (None: single pairs)."""

    launches: Launches
    events: list[tuple[int, int]]
    block: EventBlock | None


class EventClock:
    """The events of the current device, and the launches that wait for them."""

    def __init__(self, gpus: Any) -> None:
        gpus.ensure_context()
        self.library = gpus.library()
        self.blocks: list[EventBlock] = []
        self.free_pairs: list[tuple[int, int]] = []
        self.given: EventBlock | None = None
        self.waiting: list[Waiting] = []
        self.untimed = 0
        self.base, _ = self.pair()
        self.library.record_event(self.base, gpus.current_stream())
        self.library.wait_for_event(self.base)
        self.base_moment = time.perf_counter_ns()

    # events

    def pair(self) -> tuple[int, int]:
        """Two events for a launch through Python."""
        if not self.free_pairs:
            self.free_pairs = EventBlock(self.library, PYTHON_PAIRS).pairs()
        return self.free_pairs.pop()

    def refill(self) -> None:
        """Let there be events for all launches until the log is read again."""
        if self.given is not None and launch_log.events_left() >= launch_log.MOST_LINES:
            return
        used = {id(item.block) for item in self.waiting}
        free = [block for block in self.blocks if id(block) not in used and block is not self.given]
        if not free:
            free = [EventBlock(self.library, 2 * launch_log.MOST_LINES)]
            self.blocks += free
        self.given = free[0]
        launch_log.give_events(self.library.address("record_event"), self.given.start, self.given.end)

    def start(self) -> bool:
        return True

    def stop(self) -> None:
        """Events stay for the next time."""

    def enter(self, path: Path) -> None:
        """Launches know their path."""

    def before(self, stream: int) -> tuple[int, int]:
        """A launch through Python comes next in this thread."""
        pair = self.pair()
        self.library.code("record_event", pair[0], stream)
        return pair

    def behind(self, pair: tuple[int, int], stream: int) -> None:
        """It is in the stream."""
        self.library.code("record_event", pair[1], stream)

    def wait_for(self, pair: tuple[int, int], launches: Launches) -> None:
        """What it was."""
        self.waiting.append(Waiting(launches, [pair], None))

    # times

    def wait(self, launches: Launches, places: list[int]) -> None:
        """Launches in machine code have taken the events at some places."""
        holding = [block for block in self.blocks if block.start <= max(places, default=0) < block.end]
        self.waiting.append(Waiting(launches, [pair_at(place) for place in places], holding[0] if holding else None))

    def settled(self, *, everything: bool) -> Iterator[Launches]:
        """Launches with their times: all, after waiting for the device, or the oldest, where too many wait."""
        while self.waiting and (everything or len({id(item.block) for item in self.waiting}) > MOST_BLOCKS):
            item = self.waiting.pop(0)
            times = [self.elapsed(*pair) if pair[0] else None for pair in item.events]
            known = [index for index, time in enumerate(times) if time is not None]
            self.untimed += len(times) - len(known)
            if item.block is None:
                self.free_pairs += item.events
            if known:
                launches = item.launches
                yield replace(
                    launches,
                    starts=[self.moment(item.events[index][0]) for index in known],
                    durations=[times[index] or 0 for index in known],
                    overheads=[launches.overheads[index] for index in known] if launches.overheads else (),
                )

    def elapsed(self, first: int, last: int) -> int | None:
        """Nanoseconds between two events, once they are reached; None if one was not recorded in a stream."""
        milliseconds = ctypes.c_float()
        failed = self.library.code("wait_for_event", last)
        failed = failed or self.library.code("elapsed_time", ctypes.byref(milliseconds), first, last)
        if failed:
            self.library.forget_error()
            return None
        return round(milliseconds.value * 1e6)

    def moment(self, handle: int) -> int:
        """When an event was reached, by the host's clock."""
        return self.base_moment + (self.elapsed(self.base, handle) or 0)


def pair_at(address: int) -> tuple[int, int]:
    """The handles of the two events at a place; none at 0."""
    if not address:
        return 0, 0
    first, last = (ctypes.c_void_p.from_address(address + POINTER * index).value or 0 for index in range(2))
    return first, last
