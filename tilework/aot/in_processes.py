"""Compute a function of an index in several processes; a process that dies is an error of its index only.

    for number, result, error in results(lambda number: work(jobs[number]), len(jobs), workers=4): ...

Workers are forks, so the function may be any one, and what it returns is pickled. They are not given the next number
before they have answered: what a worker was doing when it died is known.
"""

import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any

from tilework import knobs
from tilework.errors import CompilationError

Answer = tuple[int, Any, str | None]  # number, result, error


def results(
    function: Callable[[int], Any], count: int, workers: int, died: str = "%s", seconds: float | None = None
) -> Iterator[Answer]:
    """The answers, in the order in which they come; `died` says how one ended. After so many `seconds` without an
    answer all are given up."""
    context = multiprocessing.get_context("fork")
    waiting, running = list(range(count))[::-1], {}  # by connection: process and the number that it works on

    def start() -> None:
        here, there = context.Pipe()
        process = context.Process(target=work, args=(there, function), daemon=True)
        process.start()
        there.close()
        running[here] = process, None
        give(here)

    def give(connection: Connection) -> None:
        process, _ = running[connection]
        number = waiting.pop() if waiting else None
        running[connection] = process, number
        with suppress(BrokenPipeError):
            connection.send(number)

    try:
        for _ in range(min(workers, count)):
            start()
        while running:
            answered = wait(list(running), seconds)
            for number in [number for _, number in running.values() if number is not None and not answered]:
                yield number, None, f"no answer in {seconds:.0f} s"
            if not answered:
                return
            for connection in answered:
                assert isinstance(connection, Connection)
                process, number = running[connection]
                try:
                    yield connection.recv()
                    give(connection)
                except (EOFError, OSError):
                    process.join()
                    del running[connection]
                    connection.close()
                    if number is not None:
                        yield number, None, died % ended(process.exitcode)
                    if waiting:
                        start()
    finally:
        for process, _ in running.values():
            process.kill()
            process.join()


def work(connection: Connection, function: Callable[[int], Any]) -> None:
    """The loop of a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    while (number := connection.recv()) is not None:
        try:
            answer = number, function(number), None
        except (Exception, SystemExit) as error:
            answer = number, None, error_text(error)
        connection.send(answer)
    connection.close()
    os._exit(0)  # nothing to clean up, and modules of the user may have left threads


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
