"""The first lines of the compile server, run as a file by `server_place.start`: nothing is imported before it is known that a
server is needed, for many processes may want one at the same time.

Who holds the lock of the folder looks whether somebody answers at the socket; if nobody does, the file is a left-over, and the
new server takes the name. Clients connect at once, and wait for the compiler to be loaded; those who will not wait look whether the
socket can be executed, which says that it is.
"""

import fcntl
import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

BACKLOG = 256
LOADING, READY = 0o600, 0o700  # the permissions of the socket
MOST_FILES = 1 << 16


@contextmanager
def locked(folder: str) -> Iterator[None]:
    """Alone among those who make or remove sockets in a folder; the lock ends with its process."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def listen(path: str) -> socket.socket | None:
    """A listening socket at a path; None if another server has it."""
    with locked(os.path.dirname(path)):
        with socket.socket(socket.AF_UNIX) as probe:
            probe.setblocking(False)
            try:
                probe.connect(path)
                return None
            except BlockingIOError:  # it listens, and more are waiting than it has places for
                return None
            except OSError:
                with suppress(FileNotFoundError):
                    os.unlink(path)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        os.chmod(path, LOADING)
        listener.listen(BACKLOG)
    return listener


def remove(path: str, listener: socket.socket) -> None:
    """Stop listening; those who wait at the door are turned away and ask for another server."""
    with locked(os.path.dirname(path)):
        with suppress(OSError):
            os.unlink(path)
        listener.close()


def main(
    path: str, search: list[str], package: str, target: list[Any] | None, in_background: bool, owner: int | None
) -> None:
    """Become the server for a socket, as a process that nobody waits for."""
    if os.fork():
        os._exit(0)
    os.setsid()
    os.chdir("/")
    os.closerange(3, MOST_FILES)  # what libraries of who started us have left open
    os.umask(0o077)
    try:
        ends = None if owner is None else os.pidfd_open(owner)
    except OSError:  # it is gone already
        return
    listener = listen(path)
    if listener is None:
        return
    try:
        sys.path[:] = search
        from tilework.runtime.workers.compile_server import serve  # after the socket: it loads the compiler

        serve(listener, package, target, in_background, ends, lambda: os.chmod(path, READY))
    finally:
        remove(path, listener)


if __name__ == "__main__":
    main(*json.loads(sys.argv[1]))
