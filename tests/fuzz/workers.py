"""Many small pieces of work in processes of their own, any of which may die or hang.

    for seed, found in results(problem_of, range(100), jobs=4, limit=60): ...

Results come as they are made. Where one does not come, a `Lost` says why, and a new process goes on with the others.
"""

import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import inf
from multiprocessing.connection import Connection, wait
from threading import Thread
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
START = multiprocessing.get_context("spawn")  # a process with LLVM's threads in it cannot be forked


@dataclass(frozen=True)
class Lost:
    """Why there is no result."""

    why: str


@dataclass(frozen=True)
class Last(Generic[Result]):
    """A result after which its process must do no more, such as one whose GPU context is dead."""

    result: Result


def results(
    work: Callable[[Item], Result | Last[Result]],
    items: Iterable[Item],
    jobs: int,
    limit: float = inf,
    end: float = inf,
) -> Iterator[tuple[Item, Result | Lost]]:
    """(item, result) of all items, which are asked for when a process has time for one.

    `limit`: seconds for one item. `end`: the reading of `time.monotonic` at which all is over, finished or not."""
    waiting = iter(items)
    workers = [Worker(work) for _ in range(jobs)]
    try:
        busy = [worker for worker in workers if worker.begin(waiting)]
        while busy and time.monotonic() < end:
            over = min(end, *(worker.since + limit for worker in busy))
            ready = wait([worker.pipe for worker in busy], None if over == inf else max(over - time.monotonic(), 0))
            for worker in busy:
                if worker.pipe in ready or time.monotonic() > worker.since + limit:
                    yield worker.item, worker.result(limit)
            busy = [worker for worker in busy if not worker.is_idle or worker.begin(waiting)]
    finally:
        for worker in workers:
            worker.process.kill()


class Worker:
    """A process that does one item after the other; a new one stands up where it fell."""

    def __init__(self, work: Callable[[Any], Any]) -> None:
        self.work, self.since, self.is_idle = work, 0.0, True
        self.item: Any = None
        self.start()

    def start(self) -> None:
        self.pipe, theirs = START.Pipe()
        self.process = START.Process(target=serve, args=(self.work, theirs), daemon=True)
        self.process.start()
        theirs.close()

    def begin(self, waiting: Iterator[Any]) -> bool:
        """Begin the next task; return True if there was one."""
        for self.item in waiting:
            self.since, self.is_idle = time.monotonic(), False
            self.pipe.send(self.item)
            return True
        return False

    def result(self, limit: float) -> Any:
        self.is_idle = True
        try:
            if self.pipe.poll():
                found = self.pipe.recv()
                if not isinstance(found, Last):
                    return found
                self.replace()
                return found.result
            why = f"no result within {limit:.0f} s"
        except (EOFError, ConnectionResetError):
            self.process.join()
            why = f"the process died with exit code {self.process.exitcode}"
        self.replace()
        return Lost(why)

    def replace(self) -> None:
        """Go on in a new process."""
        self.process.kill()
        self.start()


def serve(work: Callable[[Any], Any], pipe: Connection) -> None:
    """The life of a worker, which ends with its parent's, however that ended."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()
    try:
        while True:
            pipe.send(work(pipe.recv()))
    except EOFError:
        return
