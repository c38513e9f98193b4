"""Compile servers of tests: in a folder of their own, and gone afterwards."""

import os
import signal
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tilework.runtime.workers import server_place


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder for sockets, short enough for them; the servers of this file end with it."""
    with tempfile.TemporaryDirectory(prefix="tw") as folder:
        os.chmod(folder, 0o700)
        yield Path(folder)
        end_servers(Path(folder))


def server_process() -> int:
    """The server that answers here."""
    path = server_place.socket_path()
    assert path is not None
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        return server_place.CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]


def kill(process: int) -> None:
    os.kill(process, signal.SIGKILL)
    assert all_gone([process], within=20)


def end_servers(folder: Path) -> None:
    for path in (folder / "tilework").iterdir() if (folder / "tilework").exists() else ():
        with socket.socket(socket.AF_UNIX) as connection:
            try:
                connection.connect(str(path))
                data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            except OSError:
                continue
        os.kill(server_place.CREDENTIALS.unpack(data)[0], signal.SIGKILL)


def all_gone(pids: list[int], within: float) -> bool:
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        if not any(is_running(pid) for pid in pids):
            return True
        time.sleep(0.1)
    return False


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
