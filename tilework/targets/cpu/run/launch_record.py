"""A launch in memory: what Python writes, the threads of the pool change, and both read. Nothing of the compiler is
imported.

>>> LAUNCH_PLACES["fault"]
52

Fields lie one after the other, each with a letter of Python's `struct`: Q is an address. `machine_code.py` reads them
by name.
"""

import signal
import struct
from collections.abc import Mapping
from itertools import accumulate

EXPORTS = (
    *("pool_launch", "pool_share", "pool_serve", "pool_reset", "pool_poll", "pool_main", "pool_watch"),
    *("running", "ready", "crowded"),
)
MOST_EXTRA = 1024  # threads that one launch may start for programs that wait
FATAL = ("SIGSEGV", "SIGBUS", "SIGABRT", "SIGILL", "SIGFPE")


def fatal_signals() -> list[int]:
    """The signals of this system that end a process whose memory or code is broken."""
    return [int(getattr(signal, name)) for name in FATAL if hasattr(signal, name)]


def watched_signals() -> int:
    """Those that the user has no handler for and does not ignore, as a set of bits."""
    handlers = {number: signal.getsignal(number) for number in fatal_signals()}
    return sum(1 << number for number, now in handlers.items() if now is None or now is signal.SIG_DFL)


def places_of(fields: Mapping[str, str]) -> dict[str, int]:
    """The offset of each field, in bytes."""
    return dict(zip(fields, accumulate(map(struct.calcsize, fields.values()), initial=0), strict=False))


# arguments of the launch: `arena` is in bytes, `sharers` are the threads that share nests
GIVEN = {
    **{"code": "Q", "slots": "Q", "next": "q", "total": "q", "chunk": "q", "x": "i", "y": "i", "z": "i", "fault": "i"},
    **{"arena": "q", "sharers": "q", "program": "q", "count": "q"},  # the program that failed, those that the owner ran
}
# the owner's arena and when it looks for signals, what a handler raised; the last program known to begin, and when; a
# lock, threads that were started and are there; the name of the kernel; the program whose turn it is at ordered atomics
OWN = {
    **{"owner": "Q", "deadline": "q", "exception": "Q", "value": "Q", "trace": "Q"},
    **{"seen": "q", "since": "q", "starting": "q", "extra": "q", "started": "q", "name": "Q", "turn": "q"},
}
LAUNCH_FIELDS = GIVEN | OWN
LAUNCH_PLACES = places_of(LAUNCH_FIELDS)
LAUNCH = struct.Struct(f"<{''.join(GIVEN.values())}{8 * len(OWN)}x")
# of the pool: how to launch, workers that were asked for, how a program looks up, the name of the kernel that is
# running, how many workers are awake without work; how long launches took that followed each other and would have been
# shared with those, when the last of them ended; until when workers have no core of their own
POOL_FIELDS = {
    **{"launch": "Q", "workers": "q", "poll": "Q", "running": "Q", "ready": "Q"},
    **{"missed": "q", "ended": "q", "crowded": "Q"},
}
WORKER_FIELDS = {"arena": "Q", "size": "q", "block": "Q"}  # the arena, its bytes, the block it lies in
WORKER = struct.Struct(f"<{''.join(WORKER_FIELDS.values())}")
