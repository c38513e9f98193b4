"""A process that compiles for one client; forked from the compile server, which has the compiler loaded.

It reads the client's context and then requests, one at a time, and answers each with ``{"state": "loaded"}`` (the kernel is
there; from now on it is the compiler's fault) and then one of ``{"state": "compiled" | "refused" | "failed" | "pruned",
"detail": ..., "output": ..., "errors": ...}``. What is printed while a kernel is compiled is sent along; what its module prints
was printed when the client imported it. It ends when nobody asks any more, or with the server.
"""

import ctypes
import gc
import os
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from tilework.errors import DoesNotFit
from tilework.knobs.hooks import WORKERS
from tilework.runtime.workers.compile_requests import (
    Refused,
    Request,
    adopt,
    compile_described,
    compile_into_cache,
    described_work,
    specialization_of,
)
from tilework.runtime.workers.line_channel import Channel, Message
from tilework.runtime.workers.process_context import Context
from tilework.runtime.workers.warm_compiler import exercises

EVERY = 0.1  # seconds between two signs of life
MOST_OF_A_CHECK = 0.01  # processor seconds that looking may take
PR_SET_PDEATHSIG = 1
MOST_FILES = 1 << 20


def fork_worker(targets: Sequence[Any] = (), is_thorough: bool = False) -> tuple[int, Channel]:
    """The process and the channel of a new worker, which first compiles a simple kernel for some targets, or more than that."""
    for thread in set(threading.enumerate()) - {threading.current_thread()}:
        thread.join()  # a fork has only the thread that makes it, and what others hold stays locked
    here, there = socket.socketpair()
    server = os.getpid()
    process = os.fork()
    if process:
        there.close()
        return process, Channel(here)
    try:
        become_worker(there.fileno(), server)
        channel = Channel(there)
        for request, context in exercises(targets, is_thorough):
            serve_described(request, context, Nobody())
        channel.send({"state": "warm"})
        work(channel)
    finally:
        os._exit(0)  # nothing to clean up, and user modules may have left threads


def become_worker(channel: int, server: int) -> None:
    """End with the server; leave its connections alone."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != server:
        os._exit(0)
    os.closerange(3, channel)
    os.closerange(channel + 1, MOST_FILES)
    gc.enable()
    WORKERS[:] = [os.getpid()]


def work(channel: Channel) -> None:
    """Serve until the server closes the channel."""
    context = None
    while (messages := channel.receive()) is not None:
        for message in messages:
            if context is None:
                context = Context(**message)
                continue
            if "functions" in message:
                serve_described(message, context, channel)
                continue
            for answer in serve(message, context):
                channel.send(answer)
        channel.wait()


def serve(message: Message, context: Context) -> Iterator[Message]:
    """The answers to one request of a client."""
    loaded = False
    printed: dict[str, str] = {}
    try:
        request = Request(**message)
        with captured({}):
            adopt(context, request.target, request.properties)
            specialization = specialization_of(request)
        loaded = True
        yield {"state": "loaded"}
        with captured(printed):
            compile_into_cache(request, specialization)
        yield {"state": "compiled", **printed}
    except Refused as refusal:
        yield {"state": "refused", "detail": str(refusal)}
    except DoesNotFit as error:
        yield {"state": "pruned", "needs": [error.required, error.limit, error.name]}
    except (Exception, SystemExit) as error:  # the client meets the same error again, and raises it for the user
        yield {"state": "failed" if loaded else "refused", "detail": f"{type(error).__name__}: {error}"}


class Nobody:
    """Who asks for what a worker compiles for exercise."""

    def send(self, message: Message) -> None:
        pass


def serve_described(request: Message, context: Context, channel: Channel | Nobody) -> None:
    """Compile a kernel that came as a message, and say nothing but how that went; whoever asked will find out more."""
    printed: dict[str, str] = {}
    try:
        with captured(printed), warnings.catch_warnings():
            warnings.simplefilter("always")
            adopt(context, request["target"], {})
            work = described_work(request)
            channel.send({"state": "loaded"})
            with SignsOfLife(channel):
                compile_described(work, request)
    except (Exception, SystemExit) as error:
        channel.send({"state": "failed", "detail": f"{type(error).__name__}: {error}"})
        return
    channel.send({"state": "spoke" if any(printed.values()) else "compiled"})


class SignsOfLife:
    """While a compilation goes on, and processor time is used for it, say so."""

    def __init__(self, channel: Channel | Nobody) -> None:
        self.channel, self.ended = channel, threading.Event()
        self.thread = threading.Thread(target=self.speak, daemon=True)

    def __enter__(self) -> None:
        self.thread.start()

    def __exit__(self, *_: Any) -> None:
        self.ended.set()
        self.thread.join()

    def speak(self) -> None:
        used = ticks_used()
        while not self.ended.wait(EVERY):
            now = ticks_used()
            if now != used:
                self.channel.send({"state": "working"})
            used = now


def ticks_used() -> list[str]:
    """Processor time of this process and of the programs that it runs, such as assemblers."""
    used = [str(time.process_time() // MOST_OF_A_CHECK)]
    with suppress(OSError):
        for task in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{task}/children") as file:
                for child in file.read().split():
                    with open(f"/proc/{child}/stat") as status:
                        used.append(" ".join(status.read().rpartition(")")[2].split()[11:13]))
    return used


@contextmanager
def captured(printed: dict[str, str]) -> Iterator[None]:
    """Catch what is written to standard output and error, by Python and by libraries: ``{"output": ..., "errors": ...}``."""
    files = {name: os.memfd_create(name) for name in ("output", "errors")}
    try:
        for number, file in enumerate(files.values(), start=1):
            os.dup2(file, number)
        yield
    finally:
        flush(sys.stdout, sys.stderr)
        for name, file in files.items():
            printed[name] = os.pread(file, os.fstat(file).st_size, 0).decode(errors="replace")
            os.close(file)
        with open(os.devnull, "w") as nothing:
            os.dup2(nothing.fileno(), 1)
            os.dup2(nothing.fileno(), 2)


def flush(*streams: Any) -> None:
    for stream in streams:
        if stream is not None:
            stream.flush()
