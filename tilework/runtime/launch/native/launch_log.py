"""A log of all launches while a listener is registered: profilers use it. Without a listener nothing of it runs.

    begin(listener)                     # a `Listener`
    kernel[grid](x, y)                  # through Python: `watch` is called instead of `launcher.start`, and calls it
    kernel[grid](x, y)                  # in machine code: writes a line (`LINE_FIELDS`), some dozens of nanoseconds
    flush()                             # `lines` gets the new lines; it is also called when the buffer is full
    end()

A line has the identity of its entry: `LOGGED[identity]` is the kernel, with the `work` that the listener found for the
launch that the entry was made from. With `fits=SAME_INTEGERS_FIT` only launches with the same grid and integers run in
machine code, so that their work is the same; others take the Python path, where `watch` sees their arguments. Of a
kernel with very many grids and integers only some are distinguished.
"""

import ctypes
import itertools
import threading
from collections import Counter
from typing import Any, Protocol
from weakref import WeakValueDictionary

from tilework.process.forks import in_child
from tilework.runtime.devices.launcher import Extent, Launcher, Scratch
from tilework.runtime.launch.native import layout as native
from tilework.runtime.launch.native.layout import ALL_FIT

MOST_LINES = 1024
MOST_WAYS = 32
COUNTER = itertools.count(1)


class Listener(Protocol):
    """The receiver of launches."""

    def watch(
        self,
        launcher: Launcher,
        grid: Extent,
        stream: int,
        function: object,
        args: object,
        scratch: Scratch,
        metadata: object,
    ) -> Any:
        """Start a launch; return the `work` of the entry that is made from it."""

    def lines(self, data: bytes) -> None:
        """Receive the lines of launches that have been done."""


class Logged:
    """The kernel of an entry, in the log."""

    def __init__(self, result: object, work: object) -> None:
        self.identity, self.result, self.work = next(COUNTER), result, work
        LOGGED[self.identity] = self
        if STATE.listener is not None:
            STATE.kept.append(self)


LOGGED: "WeakValueDictionary[int, Logged]" = WeakValueDictionary()


class LineBuffer:
    """A buffer of lines, zero where nothing is written yet; no line has the identity 0."""

    def __init__(self) -> None:
        self.memory = ctypes.create_string_buffer(native.LINE * (MOST_LINES + 1))
        self.start = ctypes.addressof(self.memory)
        self.end = self.start + native.LINE * MOST_LINES

    def taken(self, end: int) -> bytes:
        """Return what is written, at least up to `end`, and clear it."""
        while end < self.end and ctypes.c_int64.from_address(end).value:
            end += native.LINE
        data = ctypes.string_at(self.start, end - self.start)
        ctypes.memset(self.start, 0, len(data))
        return data


class State:
    """The listener, and the memory that machine code writes to, which never moves: launches may be under way."""

    def __init__(self) -> None:
        self.listener: Listener | None = None
        self.pointers: list[Any] = []  # to the block, in the launcher's context, once it is loaded
        self.kept: list[Logged] = []  # alive until their lines have been read
        self.buffers: list[LineBuffer] = []  # the first is written to
        self.block: Any = None
        self.lock, self.is_reading = threading.RLock(), False
        self.thread = threading.local()  # its `last` launch through Python: (grid, work)
        self.ways: Counter[int] = Counter()  # how many works are known of a kernel

    def prepare(self) -> None:
        if self.block is None:
            self.buffers = [LineBuffer(), LineBuffer()]
            self.block = (ctypes.c_int64 * (native.LOG.size // 8))()
            self.block[:4] = [self.buffers[0].start, self.buffers[0].end, ALL_FIT, id(flush)]


STATE = State()


def forget_lock() -> None:
    """A forked child does not have the thread that may hold it."""
    STATE.lock, STATE.is_reading = threading.RLock(), False


in_child(forget_lock)


def attach(location: int) -> None:
    """Note the location from which the loaded launcher reads the address of the block."""
    STATE.pointers.append(ctypes.c_int64.from_address(location))
    if STATE.listener is not None:
        point(ctypes.addressof(STATE.block))


def point(block: int) -> None:
    for pointer in STATE.pointers:
        pointer.value = block


def begin(listener: Listener, *, fits: int = ALL_FIT) -> None:
    """Register the listener of all launches from now on; there is one at a time."""
    assert STATE.listener is None, "there is a listener already"
    STATE.prepare()
    STATE.block[native.LOG_FITS // 8] = fits
    STATE.kept = list(LOGGED.values())
    STATE.ways.clear()
    STATE.listener = listener
    Launcher.watch = watch
    point(ctypes.addressof(STATE.block))


def end() -> None:
    """Remove the listener."""
    point(0)
    Launcher.watch = None
    flush()
    STATE.listener = None
    STATE.kept = []


def flush() -> None:
    """Give the listener the lines that have been written."""
    if STATE.block is None or STATE.block[0] == STATE.buffers[0].start:
        return
    with STATE.lock:
        if STATE.is_reading or STATE.listener is None:  # a signal handler may launch while lines are read
            return
        STATE.is_reading = True
        try:
            full, other = STATE.buffers
            end = STATE.block[0]
            STATE.block[0:2] = [other.start, other.end]  # at once: between two lines of Python others may launch
            STATE.buffers = [other, full]
            if data := full.taken(end):
                STATE.listener.lines(data)
        finally:
            STATE.is_reading = False


def give_events(record: int, first: int, end: int) -> None:
    """Set the events for launches on a GPU: the function that records one, and their handles, two for each launch."""
    STATE.prepare()
    STATE.block[native.LOG_RECORD // 8 : native.LOG_EVENTS_END // 8 + 1] = [record, first, end]


def events_left() -> int:
    """Return the number of launches that there are events for."""
    if STATE.block is None:
        return 0
    return (STATE.block[native.LOG_EVENTS_END // 8] - STATE.block[native.LOG_EVENTS // 8]) // 16


def watch(
    launcher: Launcher, grid: Extent, stream: int, function: Any, args: Any, scratch: Scratch, metadata: object
) -> None:
    """Report a launch through Python to the listener."""
    listener = STATE.listener
    if listener is None:
        return launcher.start(grid, stream, function, args, scratch)
    STATE.thread.last = None
    STATE.thread.last = grid, listener.watch(launcher, grid, stream, function, args, scratch, metadata)


def last_launch(result: object) -> tuple[Extent, Any] | None:
    """Return (grid, work) of this thread's last launch through Python, from which an entry is made.

    None without a listener, or if `result` has so many entries that the next one shall fit any integers.

    """
    last = getattr(STATE.thread, "last", None)
    STATE.thread.last = None
    if last is None or STATE.listener is None:
        return None
    STATE.ways[id(result)] += 1
    return last if STATE.ways[id(result)] <= MOST_WAYS else None


def is_refusing() -> bool:
    """Return True if the listener needs all launches to take the Python path."""
    return STATE.listener is not None and STATE.block[native.LOG_FITS // 8] == native.NONE_FIT
