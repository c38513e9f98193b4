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
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tilework.errors import DoesNotFit
from tilework.runtime.workers.compile_requests import (
    Context,
    Refused,
    Request,
    adopt,
    compile_into_cache,
    specialization_of,
)
from tilework.runtime.workers.line_channel import Channel, Message

PR_SET_PDEATHSIG = 1
MOST_FILES = 1 << 20


def fork_worker() -> tuple[int, Channel]:
    """The process and the channel of a new worker."""
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
        work(there)
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


def work(connection: socket.socket) -> None:
    """Serve until the server closes the channel."""
    channel, context = Channel(connection), None
    while (messages := channel.receive()) is not None:
        for message in messages:
            if context is None:
                context = Context(**message)
                continue
            for answer in serve(Request(**message), context):
                channel.send(answer)
        channel.wait()


def serve(request: Request, context: Context) -> Iterator[Message]:
    """The answers to one request of a client."""
    loaded = False
    printed: dict[str, str] = {}
    try:
        with captured({}):
            adopt(context, request)
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
