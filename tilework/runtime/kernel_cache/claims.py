"""Claims: of the processes that need the same work done, one does it and the others wait for the result.

    with claimed(path, find=lambda: load(key), patience=300) as claim:
        if claim.found is None:              # this process does it; otherwise another one has
            store(key, make())
            claim.is_done = True             # processes that wait will find it

A claim is a file, which its owner locks (`flock`), stamps every second, and removes at the end. A process that waits
notices within `SHORTEST` to `LONGEST` seconds that

- it is removed: `find` returns the result, or the owner wrote `FAILED` into it and each process does the work itself;
- it is unlocked: the owner is dead, and one of the waiting processes is the next owner;
- its stamp does not change for `STALE_SECONDS`: the owner is stopped (SIGSTOP), or its machine is gone. The first
  process that notices removes the file and makes a new one, for which the others wait.

No clocks are compared: a waiting process measures how long it has seen the same stamp. Where files cannot be locked
(some network file systems) the process that creates the file is the owner, and only its stamp shows that it is alive.
If the folder cannot be written, no process claims or waits.

A thread waits only for claims of a higher rank than those that it owns (a tuning for compilations, a compilation for
nothing), so threads and processes cannot wait for each other in a circle. A forked child closes the claims of its
parent, whose locks it would otherwise keep alive; for this rule those of the thread that forked are its own, because
that thread may wait for it.
"""

import errno
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any

from tilework.process.forks import held_at_fork, in_child
from tilework.runtime.progress import LongStep

try:
    import fcntl
except ImportError:  # not every system has it
    fcntl = None

BEAT_SECONDS = 1.0  # between two stamps
STALE_SECONDS = 5.0  # without a new stamp after which an owner is stopped or gone
LOOK_SECONDS = 0.5  # between two looks at the stamp
SHORTEST, LONGEST = 0.002, 0.02  # seconds between two attempts to lock
FAILED = b"failed"

MEASURING, COMPILING = 0, 1  # ranks
OURS, BUSY, DONE, UNFINISHED, STALE, LATE = "ours", "busy", "done", "unfinished", "stale", "late"
IMPOSSIBLE = "impossible"  # there is no file to lock
UNSUPPORTED = frozenset({errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})  # no locks on this file system


class Claim:
    """A claim, made or waited for; `found` is what another process has made."""

    def __init__(self, path: str = "", rank: int = COMPILING) -> None:
        self.path, self.rank = path, rank
        self.thread = threading.get_ident()
        self.handle: int | None = None
        self.is_creator = False
        self.is_ours = False
        self.is_done = False
        self.found: Any = None
        self.outcome = IMPOSSIBLE
        self.waited = 0.0  # seconds

    def open(self) -> bool:
        """Open the file; return False if it cannot be created."""
        with GUARD:
            for flags in (os.O_CREAT | os.O_EXCL, os.O_CREAT):
                try:
                    self.handle = os.open(self.path, flags | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
                except FileExistsError:
                    continue
                except OSError:
                    return False
                self.is_creator = bool(flags & os.O_EXCL)
                OPEN.add(self)
                return True
        return False

    def attempt(self) -> str:
        """Take the claim if it is free: OURS or BUSY, or what the owner has left: DONE, UNFINISHED."""
        with GUARD:  # a fork now would give the child a lock that it does not know of
            if self.handle is None or fcntl is None:  # without a handle this is a forked child
                return IMPOSSIBLE
            try:
                fcntl.flock(self.handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return BUSY
            except OSError as error:
                if error.errno not in UNSUPPORTED:
                    return IMPOSSIBLE
                if not self.is_creator and self.is_current():
                    return BUSY
            if not self.is_current():
                return UNFINISHED if os.pread(self.handle, len(FAILED), 0) == FAILED else DONE
            self.is_ours = True
            HELD[self.path] = self
        with suppress(OSError):  # a full disk: the label is for people
            label = {"process": os.getpid(), "host": os.uname().nodename, "since": time.time()}
            os.ftruncate(self.handle, 0)
            os.pwrite(self.handle, json.dumps(label).encode(), 0)
        begin_beating()
        return OURS

    def is_current(self) -> bool:
        """Return True if the path still leads to the open file."""
        try:
            return self.handle is not None and os.path.samestat(os.fstat(self.handle), os.stat(self.path))
        except OSError:
            return False

    def wait(self, end: float) -> str:
        """Wait until the claim is ours, or its owner is done, stopped or gone, or until the time `end`."""
        looked = since = last = time.monotonic()
        stamp, pause = self.stamp(), SHORTEST
        while (state := self.attempt()) == BUSY:
            now = time.monotonic()
            if now >= end:
                return LATE
            if now - last > STALE_SECONDS / 2:  # this process was stopped, and perhaps the owner with it
                since = now
            last = now
            if now - looked >= LOOK_SECONDS:
                if not self.is_current():  # its owner was stopped, and another process has the next file
                    return DONE
                looked, seen = now, self.stamp()
                if seen != stamp:
                    stamp, since = seen, now
                elif now - since >= STALE_SECONDS:
                    return STALE
            time.sleep(min(pause, max(end - now, 0)))
            pause = min(pause * 1.5, LONGEST)
        return state

    def stamp(self) -> int:
        """The time of the last heartbeat; opening the file has a network file system look for it."""
        with suppress(OSError):
            file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                return os.fstat(file).st_mtime_ns
            finally:
                os.close(file)
        return 0

    def owner(self) -> str:
        """Return the name of the process that owns the claim, for messages."""
        try:
            label = json.loads(os.pread(self.handle or -1, 4096, 0))
            here = label["host"] == os.uname().nodename
            return f"process {label['process']}" + ("" if here else f" on {label['host']}")
        except (OSError, ValueError, TypeError, KeyError):
            return "another process"

    def beat(self) -> None:
        """Show that this process is alive."""
        with GUARD, suppress(OSError):
            if self.handle is not None:
                os.utime(self.handle)

    def remove(self) -> None:
        """Remove the file, unless it is another one by now."""
        with suppress(OSError):
            if self.is_current():
                os.unlink(self.path)

    def close(self) -> None:
        """End the claim, or the waiting for it."""
        with GUARD:
            OPEN.discard(self)
            if self in INHERITED:
                INHERITED.remove(self)
            if self.is_ours:
                HELD.pop(self.path, None)
                if not HELD:
                    end_beating()
        handle, self.handle = self.handle, None
        if handle is None:
            return
        if self.is_ours:
            self.is_ours = False
            with suppress(OSError):
                if not self.is_done:
                    os.pwrite(handle, FAILED, 0)
            with suppress(OSError):
                if os.path.samestat(os.fstat(handle), os.stat(self.path)):
                    os.unlink(self.path)
        if fcntl is not None:
            with suppress(OSError):  # for all that have it open: a child between `fork` and `exec` has, too
                fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


GUARD = held_at_fork(threading.RLock())  # opening and locking: what a child closes must be known when it is forked
OPEN: set[Claim] = set()
HELD: dict[str, Claim] = {}  # by path
INHERITED: list[Claim] = []  # of the thread that has forked this process
BEATING: list[threading.Event] = []  # the thread with the heartbeats ends when its event is set


def begin_beating() -> None:
    """Have a thread stamp all claims of this process, as long as there are any."""
    with GUARD:
        if BEATING or not HELD:
            return
        BEATING.append(over := threading.Event())
    try:
        threading.Thread(target=beat_until, args=(over,), name="tilework claims", daemon=True).start()
    except RuntimeError:  # no more threads: locks alone show that this process is alive
        BEATING.remove(over)


def end_beating() -> None:
    while BEATING:
        BEATING.pop().set()


def beat_until(over: threading.Event) -> None:
    while not over.wait(BEAT_SECONDS):
        for claim in list(HELD.values()):
            claim.beat()


def forget() -> None:
    """In a forked child: the claims are its parent's, and end with the parent although the child lives. The thread that
    has forked may wait for the child, so the child does not wait for claims of that thread."""
    me = threading.get_ident()
    INHERITED.extend(claim for claim in HELD.values() if claim.thread == me)
    for claim in OPEN:
        if claim.handle is not None:
            with suppress(OSError):
                os.close(claim.handle)
        claim.handle, claim.is_ours = None, False
    OPEN.clear()
    HELD.clear()
    BEATING.clear()


in_child(forget)


def may_wait(rank: int) -> bool:
    """Return True if this thread, or the one that has forked it, owns only claims of lower ranks."""
    me = threading.get_ident()
    return all(claim.rank < rank for claim in (*HELD.values(), *INHERITED) if claim.thread == me)


@contextmanager
def claimed(
    path: str | None,
    patience: float,
    find: Callable[[], object] = lambda: None,
    *,
    rank: int = COMPILING,
    title: str = "",
) -> Iterator[Claim]:
    """Wait for at most `patience` seconds, and yield a claim: it belongs to this process, or `found` is what another
    process has made, or, with another `outcome`, neither. `title` describes the owner's work in messages.
    """
    claim = Claim(path or "", rank)
    try:
        if path is not None:
            claim.outcome = take(claim, patience, find, title)
        yield claim
    finally:
        claim.close()


def take(claim: Claim, patience: float, find: Callable[[], object], title: str) -> str:
    """Take a claim, or wait for it, and return the outcome."""
    end = time.monotonic() + patience
    while claim.open():
        if (state := claim.attempt()) == BUSY and patience > 0 and may_wait(claim.rank):
            start = time.monotonic()
            with waiting_step(claim, title):
                state = claim.wait(end)
            claim.waited += time.monotonic() - start
        if state == OURS:
            claim.found = find()  # made between the caller's look and the claim
            claim.is_done = claim.found is not None
            return state
        if state == STALE:
            claim.remove()
        claim.close()  # not to have others wait for a file that is no longer there
        if state == DONE:
            claim.found = find()
        if claim.found is not None or state not in (DONE, STALE):
            return LATE if state == BUSY else state
    return IMPOSSIBLE


def waiting_step(claim: Claim, title: str) -> AbstractContextManager[object]:
    return LongStep(f"waiting for {claim.owner()}, which {title}", 1) if title else nullcontext()
