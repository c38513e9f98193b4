"""Compute a function of an index in several processes; a process that dies is an error of its index only.

    for index, result, error in results(lambda index: work(jobs[index]), len(jobs), workers=4): ...

Workers are forks, so the function may be any one, and what it returns is pickled. A worker gets its next index when it
has answered, so the index that it was working on when it died is known.

`runtime/workers/pool.py` does not fork, because it runs inside programs that may have threads and a GPU in use; its
workers compile one kernel that a message describes. Here the function may be any one and sees the memory of the caller.
"""

import multiprocessing
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any

from tilework import knobs
from tilework.errors import CompilationError

Answer = tuple[int, Any, str | None]  # index, result, error


def results(
    function: Callable[[int], Any], count: int, workers: int, died: str = "%s", seconds: float | None = None
) -> Iterator[Answer]:
    """The answers, in the order in which they come; `died` says how one ended. After so many `seconds` without an
    answer all are given up."""
    context = multiprocessing.get_context("fork")
    waiting, running = list(range(count))[::-1], {}  # by connection: process and the index that it works on

    def start() -> None:
        here, there = context.Pipe()
        process = context.Process(target=work, args=(there, function), daemon=True)
        process.start()
        there.close()
        running[here] = process, None
        give(here)

    def give(connection: Connection) -> None:
        process, _ = running[connection]
        index = waiting.pop() if waiting else None
        running[connection] = process, index
        with suppress(BrokenPipeError):
            connection.send(index)

    try:
        for _ in range(min(workers, count)):
            start()
        while running:
            answered = wait(list(running), seconds)
            for index in [index for _, index in running.values() if index is not None and not answered]:
                yield index, None, f"no answer in {seconds:.0f} s"
            if not answered:
                return
            for connection in answered:
                assert isinstance(connection, Connection)
                process, index = running[connection]
                try:
                    yield connection.recv()
                    give(connection)
                except (EOFError, OSError):
                    process.join()
                    del running[connection]
                    connection.close()
                    if index is not None:
                        yield index, None, died % ended(process.exitcode)
                    if waiting:
                        start()
    finally:
        for process, _ in running.values():
            process.kill()
            process.join()


def work(connection: Connection, function: Callable[[int], Any]) -> None:
    """The loop of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    while (index := connection.recv()) is not None:
        try:
            answer = index, function(index), None
        except (Exception, SystemExit) as error:
            answer = index, None, error_text(error)
        connection.send(answer)
    connection.close()
    if (guard := sys.modules.get("tilework.runtime.kernel_cache.remote.guard")) is not None:
        guard.finish()
    os._exit(0)  # nothing else to clean up, and modules of the user may have left threads


def ended(code: int | None) -> str:
    if code is not None and code < 0:
        with suppress(ValueError):
            return f"signal {signal.Signals(-code).name}"
    return f"exit code {code}"


def error_text(error: BaseException) -> str:
    """The message of an error; with its traceback if TRITON_FRONT_END_DEBUGGING is set."""
    if knobs.compilation.front_end_debugging:
        return "".join(traceback.format_exception(error))
    if isinstance(error, CompilationError):
        return error.diagnostic().render()
    return f"{type(error).__name__}: {error}"
