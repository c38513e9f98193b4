"""A lock for each key that somebody works on.

    with locks.held("key"):          # others who ask for the same key wait, others go on
        ...

The same thread may ask again, for a kernel's hook may launch the kernel. Nobody waits for ever: two threads may wait for each
other in such hooks, and one of them then works without the lock.
"""

import threading
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any

from tilework.process.forks import in_child

PATIENCE = 60.0  # seconds


class KeyLocks:
    """See the module."""

    def __init__(self) -> None:
        self.forget()
        in_child(self.forget)

    def forget(self) -> None:
        """Nobody works on anything; so it is in a forked child, whatever its memory says."""
        self.guard = threading.Lock()
        self.entries: dict[Hashable, tuple[Any, list[int]]] = {}  # a lock, and how many want it

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
