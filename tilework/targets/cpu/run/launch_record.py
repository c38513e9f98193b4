"""The record of a launch in memory, which Python and the threads of the pool share. Imports nothing of the compiler.

>>> LAUNCH_OFFSETS["fault"]
52

Fields are stored one after the other, each with a format character of `struct`: Q is an address. `machine_code.py`
reads them by name.
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
    """The fatal signals that the user neither handles nor ignores, as a set of bits."""
    handlers = {each: signal.getsignal(each) for each in fatal_signals()}
    return sum(1 << each for each, now in handlers.items() if now is None or now is signal.SIG_DFL)


def offsets_of(fields: Mapping[str, str]) -> dict[str, int]:
    """The offset of each field, in bytes."""
    return dict(zip(fields, accumulate(map(struct.calcsize, fields.values()), initial=0), strict=False))


# arguments of the launch: `arena` is in bytes, `sharers` are the threads that share nests
GIVEN = {
    **{"code": "Q", "slots": "Q", "next": "q", "total": "q", "chunk": "q", "x": "i", "y": "i", "z": "i", "fault": "i"},
    **{"arena": "q", "sharers": "q", "program": "q", "count": "q"},  # the program that failed, those that the owner ran
}
# the owner's arena, when it checks for signals next, the exception of a handler; the last program known to begin, and
# when; a lock, threads that were started and still run; the name of the kernel; the next program at ordered atomics
OWN = {
    **{"owner": "Q", "deadline": "q", "exception": "Q", "value": "Q", "trace": "Q"},
    **{"seen": "q", "since": "q", "starting": "q", "extra": "q", "started": "q", "name": "Q", "ticket": "q"},
}
LAUNCH_FIELDS = GIVEN | OWN
LAUNCH_OFFSETS = offsets_of(LAUNCH_FIELDS)
LAUNCH = struct.Struct(f"<{''.join(GIVEN.values())}{8 * len(OWN)}x")
# of the pool: the launch function, the workers requested, the poll function, the name of the running kernel, the number
# of workers that are awake without work; how long successive launches took that could have been shared with awake
# workers, when the last of them ended; until when workers share their cores with other programs
POOL_FIELDS = {
    **{"launch": "Q", "workers": "q", "poll": "Q", "running": "Q", "ready": "Q"},
    **{"missed": "q", "ended": "q", "crowded": "Q"},
}
WORKER_FIELDS = {"arena": "Q", "size": "q", "block": "Q"}  # the arena, its size, the block that holds it
WORKER = struct.Struct(f"<{''.join(WORKER_FIELDS.values())}")
