"""Kernels of a process that has not loaded the compiler, from the compile server of its user: loading takes longer than compiling.

    this process                                     server, worker
    the kernel's text, options, the key       ──▶    makes the kernel again, compiles it into the disk cache
    takes it from the disk cache              ◀──    "compiled", if nothing was said meanwhile

An answer counts only if the compilation worked and was silent. In all other cases (an error, a warning, a kernel that cannot be sent,
somebody who watches compilations, a server that dies or says nothing for `PATIENCE` seconds) the kernel is compiled here as if
nobody had been asked, so that whatever there is to say is said here. Where no server runs, one may be started for the processes
that come next (TILEWORK_COMPILE_SERVER).
"""

import atexit
import os
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from tilework import knobs
from tilework.knobs.hooks import LISTENERS
from tilework.runtime.compile.sources import ASTSource
from tilework.runtime.kernel_cache import managers as cache
from tilework.runtime.kernel_cache.files import FileCacheManager, can_write
from tilework.runtime.kernel_cache.key import is_assumed_rightly
from tilework.runtime.workers import server_place
from tilework.runtime.workers.process_context import context_of_process, is_as_written
from tilework.runtime.workers.sent_kernel import described

PATIENCE = 0.4  # seconds without a sign of life, after which a server counts as dead
WATCHING = ("TRITON_REPRODUCER_PATH",)  # variables without a knob that make a compilation write something
WANTED: list[tuple[int, str, tuple[Any, ...]]] = []  # a server that is missing: who noticed, its path, a target
OPEN: "list[Connection]" = []  # that nobody uses now
WAITING = ("ready", "loaded", "working")


def is_asked(source: Any, backend: Any, environment: Mapping[str, str]) -> bool:
    """Whether another process would compile this as this one does; what is unusual stays here."""
    compilation = knobs.compilation
    is_watched = compilation.listener is not None or LISTENERS or any(map(knobs.is_on, WATCHING))
    speaks = compilation.dump_ir or compilation.front_end_debugging or knobs.nvidia.dump_ptxas_log
    is_changed = environment or compilation.allow_non_constexpr_globals or sys.flags.optimize
    return (
        type(source) is ASTSource
        and not (is_watched or speaks or is_changed)
        and can_share()
        and type(backend).__module__.startswith("tilework.")  # others may know what no key tells
    )


def can_share() -> bool:
    """Whether others may work for this process, and what they leave in the cache is found here."""
    is_on_disk = cache.manager_class() is FileCacheManager and can_write(knobs.cache.dir)
    return knobs.autotuning.workers != 0 and is_on_disk


def files_from_server(
    source: Any, target: Any, backend: Any, options: Mapping[str, Any], environment: Mapping[str, str], key: str
) -> dict[str, bytes] | None:
    """The files of a kernel that the cache does not have; None if it is to be compiled here."""
    if not is_asked(source, backend, environment) or not is_as_written(type(backend)):
        return None
    context, request = context_of_process(), described(source, target, options, key)
    if context is None or request is None:
        return None
    connection = connected(vars(context), request["target"])
    if connection is None:
        return None
    connection.channel.send({"id": 0, "request": request})
    return files_from(connection, key, cache.file_stem(source.name))


def files_from(connection: "Connection", key: str, name: str) -> dict[str, bytes] | None:
    """What was asked for on a connection, from the cache; None if it is to be compiled here."""
    is_kept = False
    try:
        is_kept = is_compiled(connection.channel)
    finally:
        (OPEN.append if is_kept else Connection.close)(connection)
    return cache.load_entry(key, name) if is_kept else None


def ask_for_own(own: Any, target: tuple[Any, ...]) -> "Connection | None":
    """Let a server make an object of the runtime (`own_code.py`); None if it is to be made here."""
    context = context_of_process() if can_share() else None
    connection = None if context is None else connected(vars(context), target)
    if connection is not None:
        request = {"own": own.name, "arguments": own.arguments, "functions": [], "entry_key": own.key()}
        connection.channel.send({"id": 0, "request": {**request, "target": target}})
    return connection


class Connection:
    """A process's way to the server, which knows its context; it is kept, for workers wait for more of the same process."""

    def __init__(self, channel: Any, context: dict[str, Any]) -> None:
        self.channel, self.context, self.process = channel, context, os.getpid()

    def is_good(self, context: dict[str, Any]) -> bool:
        """Whether it is this process's, as it is now, and somebody is at the other end."""
        return self.process == os.getpid() and self.context == context and self.channel.receive() is not None

    def close(self) -> None:
        self.channel.close()


def connected(context: dict[str, Any], target: tuple[Any, ...]) -> Connection | None:
    """A connection that no other thread uses; None if no server is ready."""
    while OPEN:
        with suppress(IndexError):  # another thread has taken the last one
            connection = OPEN.pop()
            if connection.is_good(context):
                return connection
            connection.close()
    path = server_place.socket_path()
    if path is None:
        return None
    channel = server_place.connect(path)
    if channel is None:
        WANTED[:] = [(os.getpid(), path, target)]
        return None
    if not server_place.is_ready(path):
        channel.close()
        return None
    channel.send({"context": context, "limit": 1})
    return Connection(channel, context)


def close_all() -> None:
    while OPEN:
        OPEN.pop().close()


atexit.register(close_all)  # Python would warn of them


def is_compiled(channel: Any) -> bool:
    """Wait for the answer, as long as there are signs of life."""
    if not is_assumed_rightly():
        return False
    deadline = time.monotonic() + PATIENCE
    while (left := deadline - time.monotonic()) > 0:
        channel.wait(left)
        messages = channel.receive()
        if messages is None:
            return False
        for message in messages:
            if message.get("state") not in WAITING:
                return message.get("state") == "compiled"
            deadline = time.monotonic() + PATIENCE
    return False


def start_for_others() -> None:
    """Start the server that was missing, after the kernel was compiled here, if somebody is likely to come again."""
    wanted, WANTED[:] = WANTED[:], []
    for process, path, target in wanted:
        if process == os.getpid() and server_place.is_for_others():
            server_place.start(path, target, in_background=True)
