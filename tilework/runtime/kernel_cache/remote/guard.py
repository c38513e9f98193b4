"""Limit the time that a server may cost a job: launches reach every `RemoteStore` through a `Guard`.

    guard = Guard(store)
    guard.get("kernels/1/VOV2XK5L/add")          the bytes, or None: it is not there, or the server is not asked
    guard.put("kernels/1/VOV2XK5L/add", data)    returns at once; a thread sends it

- **Time-outs.** A thread of the guard asks, and its caller waits for at most `Timeouts.object` seconds, whatever the
  client does: one that looks up a name or waits for a credential has no time-out of its own.
- **An allowance.** All waits together are at most `START` seconds, plus the seconds of compilation that hits have
  saved, plus a tenth of the seconds spent on compilations. When the allowance is used up, the server is not asked.
- **A circuit breaker.** After one failure of the server no caller asks it until a background thread has received an
  answer; the pauses between its attempts double. The failure is noted in the cache folder for a minute, so that the
  next process need not find out again. A failure that only writes have (a full memory) stops only writes.
- **Sending** happens in a thread behind a bounded queue. At its end a process waits until all is sent, as long as
  the allowance and the other nine tenths of the seconds spent on compilations permit: an entry saves others as much. So
  all waits together are never longer than `START` plus the compilations that were saved or made.
- **Forks.** A child begins anew: it has neither the threads nor the connections of its parent.

Each kind of failure is warned about once per process; all are counted (`tilework.metrics`).
"""

import atexit
import hashlib
import os
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Hashable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from tilework import knobs
from tilework.process.forks import in_child
from tilework.process.metrics import count
from tilework.runtime.kernel_cache.entry import NOTES, make_folders
from tilework.runtime.kernel_cache.remote import statistics
from tilework.runtime.kernel_cache.remote.store import Failure, RemoteStore, Timeouts

T = TypeVar("T")

START = 2.0  # seconds that a job may wait in any case
SHARE = 0.1  # of the seconds that it compiles, which it may wait too
LONGEST_TEXT = 300  # characters of a server's or client's message in a warning
LEAST = 0.005  # seconds below which asking is in vain
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds between attempts of the background
NOTED_FOR = 60.0  # seconds that other processes believe a note of a failure
QUEUE_ENTRIES, QUEUE_BYTES = 256, 64 << 20  # what may wait for being sent

SERVER, WRITES, OBJECT = "the server", "writing", "one object"
# what a kind of failure is about, and the advice for it
KINDS: dict[str, tuple[str, str]] = {
    "unreachable": (SERVER, ""),
    "time-out": (SERVER, "TILEWORK_CACHE_TIMEOUT and TILEWORK_CACHE_CONNECT_TIMEOUT set how long it may take"),
    "password": (SERVER, "the URL needs the right user and password"),
    "TLS": (SERVER, "?ca=FILE names the certificate of the authority that signed the server's"),
    "refused": (SERVER, ""),
    "full": (WRITES, "a Redis with `maxmemory-policy allkeys-lru` makes room by itself"),
    "read-only": (WRITES, ""),
    "permission": (WRITES, "the user of the URL may not do this"),
    "wrong type": (OBJECT, "something else has put it there"),
    "unreadable": (OBJECT, "the umask of who writes a file decides who may read it"),
    "damaged": (OBJECT, ""),
    "signature": (OBJECT, "TILEWORK_CACHE_KEY must be the key of whoever compiles"),
}


class Unavailable(Exception):
    """The server was not asked (the text is "skipped"), did not answer ("failed"), or the object is bad ("refused")."""


class Job(Generic[T]):
    """A call that a `Lane` thread makes."""

    def __init__(self, call: Callable[[], T]) -> None:
        self.call, self.done = call, threading.Event()
        self.value: T | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.value = self.call()
        except BaseException as error:
            self.error = error
        self.done.set()


class Lane:
    """A thread that makes calls for other threads. It ends after a call whose caller no longer waits."""

    def __init__(self) -> None:
        self.jobs: SimpleQueue[Job[Any] | None] = SimpleQueue()
        threading.Thread(target=self.work, name="tilework shared cache", daemon=True).start()

    def work(self) -> None:
        while (job := self.jobs.get()) is not None:
            job.run()
            del job


class Guard:
    """A store with limits on what it may cost; see the module docstring."""

    def __init__(self, store: RemoteStore, timeouts: Timeouts | None = None) -> None:
        self.store, self.timeouts = store, timeouts or store.timeouts
        self.lock = threading.Lock()
        self.allowance = START
        self.end_allowance = 0.0  # seconds that the end of the process may wait in addition
        self.is_down = False
        self.pause = FIRST_PAUSE
        self.lanes: list[Lane] = []
        self.warned: set[str] = set()
        self.missing: set[str] = set()  # objects that were not received, and are counted
        self.queue: deque[tuple[int, Callable[[], object]]] = deque()
        self.queued_bytes = 0
        self.changed = threading.Condition(self.lock)
        self.sends = False  # a thread does
        self.is_sending = False  # it is in the middle of one
        self.finished = 0  # calls that it has made
        self.no_writes_before = 0.0
        self.write_pause = FIRST_PAUSE
        self.note = os.path.join(
            knobs.cache.dir, NOTES, hashlib.sha256(str(store.address).encode()).hexdigest()[:16] + ".down"
        )
        at_end(statistics.keep)
        self.look_at_note()

    # ---- what launches wait for

    def get(self, name: str) -> bytes | None:
        """Return an object; None if there is none, or the server is not asked."""
        try:
            data = self.ask(lambda: self.store.get(name))
        except Unavailable as error:
            return self.missed(name, str(error))
        if data is None:
            return self.missed(name, "miss")
        count("remote_bytes", len(data), direction="received")
        return data

    def missed(self, name: str, outcome: str) -> None:
        """Count an object that cannot be used: once, however often it is asked for until it is sent or received."""
        with self.lock:
            is_new = name not in self.missing
            self.missing.add(name)
        if is_new:
            count("remote_requests", outcome=outcome)

    def received(self, name: str, seconds: float) -> None:
        """Count an object that is used, and whose compilation took some seconds elsewhere."""
        with self.lock:
            self.missing.discard(name)
            self.allowance += seconds
        count("remote_requests", outcome="hit")
        count("remote_entries", direction="received")
        count("remote_seconds", seconds, what="saved")

    def claim(self, name: str, owner: str, seconds: float) -> bool | None:
        """As `RemoteStore.claim`; None if the server is not asked."""
        try:
            return self.ask(lambda: self.store.claim(name, owner, seconds), writing=True)
        except Unavailable:
            return None

    def holder(self, name: str) -> str | None:
        """As `RemoteStore.holder`; None also if the server is not asked."""
        try:
            return self.ask(lambda: self.store.holder(name))
        except Unavailable:
            return None

    def ask(self, call: Callable[[], T], writing: bool = False) -> T:
        """Return the answer to a call; raise `Unavailable` if the server is not asked or does not answer."""
        self.look_at_note()
        limit = min(self.timeouts.object, self.allowance)
        if self.is_down or limit < LEAST or (writing and time.monotonic() < self.no_writes_before):
            raise Unavailable("skipped")
        job, began = Job(call), time.monotonic()
        try:
            self.wait_for(job, limit)
        finally:
            waited = time.monotonic() - began
            with self.lock:
                self.allowance -= waited
            count("remote_seconds", waited, what="waited")
        if not job.done.is_set():
            if limit >= min(self.timeouts.object, START) / 2:  # else it is the allowance that was too small
                self.failed(Failure("time-out", f"no answer in {limit:.2g} s"))
            raise Unavailable("failed")
        if job.error is not None:
            if not isinstance(job.error, Exception):
                raise job.error
            raise Unavailable(self.failed(self.store.failure(job.error), writing))
        self.pause = FIRST_PAUSE
        return job.value  # pyright: ignore[reportReturnType]

    def wait_for(self, job: Job[Any], limit: float) -> None:
        """Have a lane make the call, and wait for it."""
        with self.lock:
            lane = self.lanes.pop() if self.lanes else None
        try:
            lane = lane or Lane()
        except RuntimeError:  # the process ends, and can start no more threads
            return job.run()
        lane.jobs.put(job)
        try:
            job.done.wait(limit)
        finally:
            if job.done.is_set():
                self.lanes.append(lane)
            else:
                lane.jobs.put(None)

    def compiled(self, seconds: float) -> None:
        """Add the seconds that a compilation took to what this process may wait."""
        with self.lock:
            self.allowance += SHARE * seconds
            self.end_allowance += (1 - SHARE) * seconds

    # ---- failures

    def failed(self, failure: Failure, writing: bool = False) -> str:
        """Count a failure, warn once, and stop asking for a while if the server is the cause; return the outcome."""
        scope = KINDS.get(failure.kind, KINDS["refused"])[0]
        if scope is OBJECT:
            self.report_object("", failure)
            return "refused"
        if writing and scope is not SERVER:
            with self.lock:
                self.no_writes_before = time.monotonic() + self.write_pause
                self.write_pause = min(2 * self.write_pause, LONGEST_PAUSE)
            self.report(failure, "takes no kernels now", "It is tried again later.")
            return "failed"
        with self.changed:
            was_down, self.is_down = self.is_down, True
        self.drop()
        if not was_down:
            self.take_note()
            self.in_background(lambda: self.revive(self.pause))
        self.report(
            failure, "is not used now", "Kernels are compiled instead, and it is tried again in the background."
        )
        return "failed"

    def refuse(self, name: str, kind: str, why: str) -> None:
        """Count an object that is not used, and warn once."""
        self.missed(name, "refused")
        self.report_object(name, Failure(kind, why))

    def report_object(self, name: str, failure: Failure) -> None:
        self.report(failure, f"has an entry that is not used{name and ', '}{name}", "It is compiled instead.")

    def report(self, failure: Failure, effect: str, then: str) -> None:
        with self.lock:
            is_new = failure.kind not in self.warned
            self.warned.add(failure.kind)
        try:
            if is_new:
                self.warn(failure, effect, then)
        finally:
            count("remote_failures", kind=failure.kind)

    def warn(self, failure: Failure, effect: str, then: str) -> None:
        """Warn about a failure, its effect and what to do; the text has no password."""
        advice = KINDS.get(failure.kind, ("", ""))[1]
        text = self.store.address.hidden(failure.text)
        text = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
        text = text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + "..."
        said = f"the shared cache {self.store.address} {effect} ({failure.kind}: {text}). {then}"
        with suppress(*(() if threading.current_thread() is threading.main_thread() else (Warning,))):
            warnings.warn(f"{said} {advice[:1].upper()}{advice[1:]}{'.' if advice else ''}".rstrip(), stacklevel=2)

    def revive(self, pause: float) -> None:
        """Ask in the background until the server answers."""
        while True:
            time.sleep(pause)
            try:
                self.store.ping()
            except Exception:  # of any kind of client: the server does not answer yet
                pause = self.pause = min(max(2 * pause, FIRST_PAUSE), LONGEST_PAUSE)
                continue
            with suppress(OSError):
                os.unlink(self.note)
            self.is_down = False
            return

    def in_background(self, work: Callable[[], None]) -> None:
        """Start a thread, unless the process is ending."""
        with suppress(RuntimeError):
            threading.Thread(target=work, name="tilework shared cache", daemon=True).start()

    def look_at_note(self) -> None:
        """Treat the server as down if a note of another process says so, until it answers this process."""
        if self.is_down or not self.is_noted():
            return
        with self.lock:
            if (was_down := self.is_down) is False:
                self.is_down = True
        if not was_down:
            self.in_background(lambda: self.revive(0.0))

    def is_noted(self) -> bool:
        """Return True if a process of this machine has just failed to use the server."""
        try:
            return abs(time.time() - os.stat(self.note).st_mtime) < NOTED_FOR
        except OSError:
            return False

    def take_note(self) -> None:
        """Write the note from which other processes read that the server is down."""
        with suppress(OSError):
            make_folders(os.path.dirname(self.note))
            with open(self.note, "w"):
                os.utime(self.note)

    # ---- sending

    def put(self, name: str, data: bytes) -> None:
        """Send an object in the background."""
        self.put_made(name, lambda: data, len(data))

    def put_made(self, name: str, make: Callable[[], bytes], size: int) -> None:
        """Send an object of about `size` bytes in the background; `make` is called there."""
        with self.lock:
            self.missing.discard(name)

        def send() -> None:
            data = make()
            self.store.put(name, data)
            count("remote_entries", direction="sent")
            count("remote_bytes", len(data), direction="sent")

        if not self.later(send, size):
            count("remote_entries", direction="dropped")

    def release(self, name: str, owner: str) -> None:
        """Release a claim, after the objects that were put before have been sent."""
        self.later(lambda: self.store.release(name, owner), 0)

    def later(self, call: Callable[[], object], size: int) -> bool:
        """Queue a call for the background; return False if it will not be made."""
        with self.changed:
            is_full = len(self.queue) >= QUEUE_ENTRIES or self.queued_bytes + size > QUEUE_BYTES
            if self.is_down or is_full or time.monotonic() < self.no_writes_before:
                return False
            self.queue.append((size, call))
            self.queued_bytes += size
            starts, self.sends = not self.sends, True
            self.changed.notify_all()
        if starts:
            at_end(self.finish)
            try:
                threading.Thread(target=self.send_all, name="tilework shared cache", daemon=True).start()
            except RuntimeError:  # the process is ending
                with self.lock:
                    self.sends = False
                    self.queue.clear()  # it has this call only
                    self.queued_bytes = 0
                return False
        return True

    def send_all(self) -> None:
        while True:
            with self.changed:
                self.finished += self.is_sending
                self.is_sending = False
                self.changed.notify_all()
                while not self.queue:
                    self.changed.wait()
                size, call = self.queue.popleft()
                self.queued_bytes -= size
                self.is_sending = True
            try:
                call()
                self.write_pause = FIRST_PAUSE
            except Exception as error:
                if size:
                    count("remote_entries", direction="dropped")
                self.failed(self.store.failure(error), writing=True)

    def drop(self) -> None:
        """Send nothing of what is left, and count it."""
        with self.changed:
            dropped = sum(size > 0 for size, _ in self.queue)  # the others release claims
            self.queue.clear()
            self.queued_bytes = 0
            self.changed.notify_all()
        if dropped:
            count("remote_entries", dropped, direction="dropped")

    def finish(self) -> None:
        """Send what is left at the end of the process, as far as its allowances permit."""
        began = time.monotonic()
        if not self.flush():
            self.drop()
        count("remote_seconds", time.monotonic() - began, what="waited")

    def flush(self, limit: float | None = None) -> bool:
        """Wait until all is sent, for `limit` seconds; by default as long as the allowances permit, and for each entry
        no longer than its time-out. Return False if something is left."""
        whole, each = limit, limit
        if whole is None or each is None:
            whole, each = self.allowance + self.end_allowance, self.timeouts.object
        began = since = time.monotonic()
        with self.changed:
            finished = self.finished
            while (self.queue or self.is_sending) and not self.is_down:
                now = time.monotonic()
                if finished != self.finished:
                    finished, since = self.finished, now
                if (left := min(began + whole, since + each) - now) <= 0:
                    return False
                self.changed.wait(left)
            return not (self.queue or self.is_sending)


# ---- one for each server and process

GUARDS: dict[Hashable, Guard] = {}
LOCK = threading.Lock()


def guard_of(identity: Hashable, make: Callable[[], RemoteStore]) -> Guard:
    """Return the guard of a server in this process. The first caller makes its client, which may raise errors about
    settings."""
    with LOCK:
        if (found := GUARDS.get(identity)) is None:
            found = GUARDS[identity] = Guard(make())
    return found


def flush_all(limit: float | None = None) -> bool:
    """Wait until all guards have sent what was put, for `limit` seconds each; return False if one has not."""
    done = [guard.flush(limit) for guard in tuple(GUARDS.values())]
    return all(done)


def finish() -> None:
    """Send what is left and keep the statistics: for processes that end by `os._exit`."""
    for guard in tuple(GUARDS.values()):
        guard.finish()
    if GUARDS:
        statistics.keep()


def forget() -> None:
    """Drop all guards in a forked child, which has neither their threads nor their connections."""
    global LOCK
    GUARDS.clear()
    LOCK = threading.Lock()


in_child(forget)


def at_end(call: Callable[[], object]) -> None:
    """Call something at the end of this process; children of multiprocessing end without `atexit`."""
    process = os.getpid()
    atexit.register(lambda: process == os.getpid() and call())
    if (multiprocessing := sys.modules.get("multiprocessing.util")) is not None:
        multiprocessing.Finalize(None, call, exitpriority=10)
