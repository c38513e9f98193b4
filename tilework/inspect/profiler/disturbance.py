"""Did anything else use the machine while its limits were measured?

    seen = Disturbance()
    with seen:
        times = [...]                       of calls that should all take as long, on all processors
    seconds = seen.best(times)
    seen.reason                             "" or "other programs used 62 % of the processors"

Linux counts the time of its processors for all programs; elsewhere only the times of the calls can tell, which differ
where another program runs now and then.
"""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Self

COUNTERS = Path("/proc/stat")
USED = (0, 1, 2, 5, 6, 7)  # columns of COUNTERS: user, nice, system, interrupts (2), time of other virtual machines
BUSY = 0.1  # the share of the processors that others may use
SPREAD = 1.2  # a quarter of the calls must not take longer than this times the fastest one
SHORT = 0.1  # seconds: the counters have steps of 10 ms


class Disturbance:
    """See the module docstring."""

    def __init__(self) -> None:
        self.reason = ""

    def __enter__(self) -> Self:
        self.before = moment()
        return self

    def __exit__(self, *error: object) -> None:
        share = share_of_others(self.before, moment())
        if share is not None and share > BUSY:
            self.reason = f"other programs used {100 * share:.0f} % of the processors"

    def best(self, times: Sequence[float]) -> float:
        """Return the shortest time, and notice if too few calls were about as fast."""
        fastest, quarter = min(times), sorted(times)[len(times) // 4]
        if quarter > SPREAD * fastest:
            self.reason = f"most calls took at least {100 * (quarter / fastest - 1):.0f} % longer than the fastest"
        return fastest


class Moment(NamedTuple):
    """Seconds by the clock, those that this process has worked, and all processors; how many there are."""

    clock: float
    own: float
    used: float | None
    processors: int


def moment() -> Moment:
    return Moment(time.perf_counter(), time.process_time(), *all_processors())


def share_of_others(before: Moment, after: Moment) -> float | None:
    """Return the part of the processors that other processes used between two moments; None if it is not known."""
    seconds = after.clock - before.clock
    if before.used is None or after.used is None or seconds < SHORT or after.used == before.used:
        return None  # some sandboxes show counters that never change
    others = after.used - before.used - (after.own - before.own)
    return max(0.0, others) / (before.processors * seconds)


def all_processors() -> tuple[float | None, int]:
    """Return the seconds that all processors together have worked since the start of the system, and their number."""
    try:
        lines = COUNTERS.read_text().splitlines()
        columns = [int(value) for value in lines[0].split()[1:]]
        ticks = sum(columns[index] for index in USED)
    except (OSError, ValueError, IndexError):
        return None, 1
    return ticks / os.sysconf("SC_CLK_TCK"), sum(line.startswith("cpu") for line in lines) - 1
