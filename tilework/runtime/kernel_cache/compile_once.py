"""Compile each kernel once: of the processes of a machine that need the same one, the first compiles it.

    with making(key, "add", "compiles add") as claim:
        files = claim.found or build(...)
        claim.is_done = bool(store_entry(key, "add", files))

The other processes wait for the entry, for TILEWORK_COMPILE_WAIT seconds at most. If the compilation fails, or its
result cannot be stored, each of them compiles the kernel and reports the error to its own user.

Of the machines with a shared cache one compiles: it reserves the compilation there for `RESERVED_SECONDS`, and renews
the reservation while it compiles. On each other machine one process, the owner of the claim, waits until the entry
exists or the reservation has ended.
"""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tilework import knobs
from tilework.process.events import is_worker
from tilework.process.metrics import count
from tilework.runtime.kernel_cache.claims import DONE, Claim, claimed
from tilework.runtime.kernel_cache.entry import EntryStore
from tilework.runtime.kernel_cache.key import folder_of
from tilework.runtime.kernel_cache.managers import has_shared_cache, load_entry, load_local
from tilework.runtime.progress import LongStep

RESERVED_SECONDS = 10.0  # after which a machine that is gone is no longer waited for
RENEW_SECONDS = 3.0
SHORTEST, LONGEST = 0.02, 0.5  # seconds between two questions to a shared cache


@contextmanager
def making(key: str, name: str, title: str, is_shared: bool = True, kernel: str = "") -> Iterator[Claim]:
    """Yield a claim to make an entry; its `found` are the files if another process has made it.

    Without `is_shared` nothing is claimed. The seconds of waiting are counted for `kernel`.
    """
    patience = patience_of_this_process() if is_shared else 0
    path = EntryStore(knobs.cache.dir).claim_path(folder_of(key)) if patience > 0 else None
    with claimed(path, patience, lambda: load_local(key, name), title=title) as claim:
        if claim.found is None and claim.is_ours and has_shared_cache():
            with reserved(claim, key, name, patience / 2, title):  # processes of this machine wait for this one
                count_waiting(claim, kernel)
                yield claim
        else:
            count_waiting(claim, kernel)
            yield claim


def count_waiting(claim: Claim, kernel: str) -> None:
    if claim.waited and kernel:
        labels = {"kernel": kernel, "outcome": DONE if claim.found is not None else claim.outcome}
        count("waits", 1, **labels)
        count("wait_seconds", claim.waited, **labels)


def patience_of_this_process() -> float:
    """Return the seconds to wait for others; a worker has its own limit, after which it is killed."""
    patience, limit = knobs.cache.compile_wait, knobs.autotuning.worker_timeout
    return min(patience, limit / 2) if is_worker() and limit > 0 else patience


@contextmanager
def reserved(claim: Claim, key: str, name: str, patience: float, title: str) -> Iterator[None]:
    """Reserve an entry among the machines, or wait for the machine that has reserved it."""
    # lazily: few have one, and it is loaded by now
    from tilework.runtime.kernel_cache.remote import shared_cache

    owner = this_machine()
    is_reserved = shared_cache.claim(key, name, owner, RESERVED_SECONDS)
    if is_reserved:
        claim.found = load_entry(key, name)  # made between the caller's look and the reservation
    elif is_reserved is False:
        start = time.monotonic()
        with LongStep(f"waiting for {shared_cache.holder(key, name) or 'another machine'}, which {title}", 1):
            claim.found = awaited(key, name, start + patience)
        claim.waited += time.monotonic() - start
    claim.is_done = claim.found is not None
    if not is_reserved:
        yield
        return
    over = threading.Event()

    def renew() -> None:
        while not over.wait(RENEW_SECONDS) and shared_cache.claim(key, name, owner, RESERVED_SECONDS):
            pass

    try:
        threading.Thread(target=renew, name="tilework reservation", daemon=True).start()
    except RuntimeError:  # no more threads: it is reserved for some seconds
        over.set()
    try:
        yield
    finally:
        over.set()
        if claim.is_ours:  # not in a forked child
            shared_cache.release(key, name, owner)  # after what was sent before


def awaited(key: str, name: str, end: float) -> dict[str, bytes] | None:
    """Wait while another machine makes an entry, and return its files; None if there are none, or at the time `end`."""
    # lazily: few have one, and it is loaded by now
    from tilework.runtime.kernel_cache.remote import shared_cache

    pause = SHORTEST
    while (now := time.monotonic()) < end:
        if shared_cache.holder(key, name) is None:
            return load_entry(key, name)
        time.sleep(min(pause, end - now))
        pause = min(pause * 1.5, LONGEST)
    return None


def this_machine() -> str:
    """Return the name of this machine among those that share a cache; it is made from its cache folder, which all its
    processes share."""
    try:
        folder = os.stat(knobs.cache.dir)
        return f"{os.uname().nodename}-{folder.st_dev:x}-{folder.st_ino:x}"
    except OSError:
        return f"{os.uname().nodename}-{os.getpid()}"
