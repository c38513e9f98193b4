"""Forks while other threads are busy: the child never waits for a thread that it does not have."""

import importlib
import importlib._bootstrap as bootstrap
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tilework.process import forks
from tilework.runtime.recording import manifest, recorder
from tilework.targets.amd import libhip
from tilework.targets.nvidia import libcuda

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
SECONDS = 10


def in_child(work: Callable[[], bool]) -> bool:
    """Return the result of `work` in a forked child, which has `SECONDS`."""
    process = os.fork()
    if process == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(SECONDS)
        os._exit(0 if work() else 1)
    return os.waitpid(process, 0)[1] == 0


@pytest.fixture
def import_elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """A thread that is in the middle of importing a module, and then does something more."""
    monkeypatch.setattr(forks, "LOCKS", forks.LOCKS[:])
    threads: list[threading.Thread] = []

    def start(name: str, then: Callable[[], object] = lambda: None) -> None:
        inside = threading.Event()

        def run() -> None:
            manager: Any = bootstrap
            with manager._ModuleLockManager(name):
                inside.set()
                time.sleep(0.1)
                then()

        threads.append(threading.Thread(target=run))
        threads[-1].start()
        inside.wait()

    yield start
    for thread in threads:
        thread.join()


def imports(name: str) -> bool:
    manager: Any = bootstrap
    with manager._ModuleLockManager(name):
        return True


def test_a_module_that_another_thread_imports(import_elsewhere: Callable[..., None]) -> None:
    import_elsewhere("tilework.slow")
    assert in_child(lambda: imports("tilework.slow"))


def test_a_module_of_its_own_delays_nothing() -> None:
    manager: Any = bootstrap
    with manager._ModuleLockManager("tilework.own"):
        start = time.monotonic()
        assert in_child(lambda: True)
    assert time.monotonic() - start < forks.LONGEST / 2


def test_a_lock_that_comes_while_a_fork_waits(import_elsewhere: Callable[..., None]) -> None:
    """It is released as often as it was taken, in parent and child."""
    lock = threading.Lock()
    import_elsewhere("tilework.slow", lambda: forks.held_at_fork(lock))
    assert in_child(lambda: lock.acquire(blocking=False))
    assert lock.acquire(blocking=False)


def test_an_import_that_needs_a_lock_of_forks(import_elsewhere: Callable[..., None]) -> None:
    """The fork gives it back, and tries again."""
    lock = threading.Lock()
    forks.LOCKS.append(lock)

    def take() -> None:
        with lock:
            pass

    import_elsewhere("tilework.slow", take)
    assert in_child(lambda: lock.acquire(blocking=False) and imports("tilework.slow"))


class Disturbed:
    """A lock during whose acquisition something else happens, once."""

    def __init__(self, happens: Callable[[], object]) -> None:
        self.happens: Callable[[], object] | None = happens

    def acquire(self, blocking: bool = True) -> bool:
        happens, self.happens = self.happens, None
        if happens is not None:
            happens()
        return True

    def release(self) -> None:
        pass


def is_free(lock: Any) -> bool:
    """For another thread."""
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(lock.acquire(blocking=False)))
    thread.start()
    thread.join()
    return found[0]


def forked() -> None:
    """As far as we have a part in it: locks of others (`concurrent.futures`) cannot be taken twice."""
    forks.before_fork()
    forks.after_fork()


def interrupted() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("happens", [forked, interrupted])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_signal_handler_while_a_fork_waits(happens: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """The locks that the fork takes are released if the handler forks too, or raises."""
    first, last = threading.RLock(), threading.RLock()
    monkeypatch.setattr(forks, "LOCKS", [last, Disturbed(happens), first])
    assert in_child(lambda: is_free(first) and is_free(last))
    assert is_free(first) and is_free(last) and not forks.TAKEN.locks


class Slow:
    """Whose property takes some time."""

    inside = threading.Event()

    @forks.cached_property
    def value(self) -> int:
        self.inside.set()
        time.sleep(0.1)
        return 7


def test_a_property_that_another_thread_computes() -> None:
    """Of another object of the class: in Python 3.11 they share a lock, which the child would find held."""
    thread = threading.Thread(target=lambda: Slow().value)
    thread.start()
    Slow.inside.wait()
    assert in_child(lambda: Slow().value == 7)
    thread.join()
    package = Path(forks.__file__).parents[1]
    others = [
        path for path in package.rglob("*.py") if path.name != "forks.py" and "cached_property" in path.read_text()
    ]
    assert all("from tilework.process.forks import" in path.read_text() for path in others)


@pytest.mark.parametrize("lock", [recorder.RECORDING, manifest.INSTALLING, libcuda.FOUND.lock, libhip.FOUND.lock])
def test_a_lock_that_another_thread_holds(lock: Any) -> None:
    inside = threading.Event()

    def hold() -> None:
        with lock:
            inside.set()
            time.sleep(0.1)

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait()
    assert in_child(lambda: lock.acquire(blocking=False))
    thread.join()


@pytest.mark.parametrize("backwards", [False, True])
def test_another_thread_takes_locks_in_any_order(backwards: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    locks, inside = [threading.RLock(), threading.RLock()], threading.Event()
    monkeypatch.setattr(forks, "LOCKS", locks[:])

    def hold() -> None:
        first, second = locks[::-1] if backwards else locks
        with first:
            inside.set()
            time.sleep(0.1)
            with second:
                pass

    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    inside.wait()
    assert in_child(lambda: all(map(is_free, locks)))
    thread.join()


def test_the_lock_of_llvmlite() -> None:
    lock = importlib.import_module("tilework.targets.llvm.compile").LibraryLock()
    lock.acquire()
    assert not is_free(lock)
    lock.release()

    def take() -> bool:
        try:
            return lock.acquire(blocking=False)
        finally:
            lock.release()

    assert is_free(SimpleNamespace(acquire=lambda blocking: take()))
