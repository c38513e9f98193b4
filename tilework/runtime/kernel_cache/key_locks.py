"""A lock per key.

    with locks.held("key"):          # threads that want the same key wait
        ...

The locks are reentrant, because a kernel's hook may launch the kernel. Two threads that wait for each other in such
hooks do not deadlock: after `PATIENCE` seconds one of them continues without the lock.
"""

import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any

from tilework.process.forks import in_child

PATIENCE = 60.0  # seconds


class KeyLocks:
    """The locks; see the module."""

    def __init__(self) -> None:
        self.forget()
        in_child(self.forget)

    def forget(self) -> None:
        """Drop all locks: a forked child does not have the threads that held them."""
        self.guard = threading.Lock()
        self.entries: dict[Hashable, tuple[Any, list[int]]] = {}  # a lock, and the number of threads that use it

    @contextmanager
    def held(self, key: Hashable) -> Iterator[None]:
        with self.guard:
            lock, users = self.entries.setdefault(key, (threading.RLock(), [0]))
            users[0] += 1
        got = lock.acquire(timeout=PATIENCE)
        try:
            yield
        finally:
            if got:
                lock.release()
            with self.guard:
                users[0] -= 1
                if not users[0]:
                    self.entries.pop(key, None)
