"""Locks that a fork waits for, and state that a child resets: it has one thread only.

    LOCK = held_at_fork(threading.RLock())      no other thread holds it during a fork: the child can use what it guards
    in_child(forget)                            called in every child

A fork also waits until no other thread imports a part of tilework. A first launch imports a hundred modules; no thread
of the child would finish one that is half imported, and an import of it there would wait for ever.
`cached_property` is Python's without the lock that it has in 3.11: one for each property of a class, which another
thread may hold.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property as cached_property
else:

    class cached_property:
        """A cached property, computed at its first use; by two threads at the same time perhaps twice."""

        def __init__(self, func: Callable[[Any], Any]) -> None:
            self.func, self.__doc__ = func, func.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self.attrname = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            found = instance.__dict__[self.attrname] = self.func(instance)
            return found


# what launches and compilations import, and the clients of shared caches, some of which import while they work
ROOTS = frozenset(
    {
        *("tilework", "xdsl", "llvmlite", "numpy", "ml_dtypes"),
        *("redis", "s3fs", "fsspec", "aiobotocore", "botocore", "aiohttp", "cryptography"),
    }
)
LONGEST = 20.0  # seconds that a fork waits for imports at most
LOOK_EVERY = 0.001


class Lock(Protocol):
    def acquire(self, blocking: bool = True) -> bool: ...

    def release(self) -> object: ...


AnyLock = TypeVar("AnyLock", bound=Lock)
LOCKS: list[Lock] = []


class Taken(threading.local):
    """The locks that the forking thread holds, for each of its forks: a signal handler may fork while a fork waits."""

    def __init__(self) -> None:
        self.locks: list[list[Lock]] = []


TAKEN = Taken()


def held_at_fork(lock: AnyLock) -> AnyLock:
    """Let every fork wait for `lock`."""
    LOCKS.append(lock)
    return lock


def in_child(function: Callable[[], None]) -> None:
    """Call `function` in every child that is forked from now on."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)


def before_fork() -> None:
    """Take all locks at a moment when no other thread imports: none runs between that and the fork.

    An interrupting signal cannot stop the fork: it goes on without locks.
    """
    taken: list[Lock] = []
    TAKEN.locks.append(taken)
    deadline = time.monotonic() + LONGEST
    try:
        while True:
            take_all(taken)
            if not others_import() or time.monotonic() > deadline:
                return
            release(taken)
            time.sleep(LOOK_EVERY)
    except BaseException:
        release(taken)
        raise


def take_all(taken: list[Lock]) -> None:
    """Take all locks into a list, never waiting for one while holding another: other threads may take them in any
    order."""
    first: Lock | None = None
    while True:
        for lock in (*([first] if first is not None else ()), *(lock for lock in LOCKS if lock is not first)):
            if not lock.acquire(lock is first):
                break
            taken.append(lock)
        else:
            return
        release(taken)
        first = lock


def after_fork() -> None:
    """Release the locks after a fork, in parent and child."""
    if TAKEN.locks:  # empty if this was imported during a fork
        release(TAKEN.locks.pop())


def release(locks: list[Lock]) -> None:
    """Release locks, the last one first."""
    while locks:
        locks.pop().release()


def others_import() -> bool:
    """Return True if another thread holds the lock of a module of `ROOTS`."""
    me = threading.get_ident()
    bootstrap: Any = sys.modules["_frozen_importlib"]
    locks = (
        reference() for name, reference in list(bootstrap._module_locks.items()) if name.partition(".")[0] in ROOTS
    )
    return any(lock is not None and lock.owner not in (None, me) for lock in locks)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=before_fork, after_in_parent=after_fork, after_in_child=after_fork)


# ---- A lock per key
#
#     with locks.held("key"):          # threads that want the same key wait
#         ...
#
# The locks are reentrant, because a kernel's hook may launch the kernel. Two threads that wait for each other in such
# hooks do not deadlock: after `PATIENCE` seconds one of them continues without the lock.


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
