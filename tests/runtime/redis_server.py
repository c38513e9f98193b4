"""A real Redis for tests: Debian's redis-server, or valkey-server; skipped where neither is."""

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PROGRAM = shutil.which("redis-server") or shutil.which("valkey-server")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def knows_tls() -> bool:
    """Return True if the server was built with TLS: one without it does not know the setting."""
    if PROGRAM is None:
        return False
    # an invalid value of another setting ends it at once, with or without TLS
    command = [PROGRAM, "--tls-port", "0", "--port", "none"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=20)
    return "tls-port" not in answer.stdout + answer.stderr


class RedisServer:
    """A server that stores nothing on disk; `client` gives tests direct access to it."""

    def __init__(self, folder: Path, *arguments: str, port: int | None = None) -> None:
        if PROGRAM is None:
            pytest.skip("there is no redis-server")
        pytest.importorskip("redis")
        self.folder, self.arguments = folder, arguments
        self.port = port or free_port()
        self.password = arguments[arguments.index("--requirepass") + 1] if "--requirepass" in arguments else None
        self.start()

    def start(self) -> None:
        """Start it, also again after `kill`."""
        ports = () if "--tls-port" in self.arguments else ("--port", str(self.port))
        command = [str(PROGRAM), *ports, "--save", "", "--bind", "127.0.0.1", "--dir", str(self.folder)]
        self.process = subprocess.Popen([*command, *self.arguments], stdout=subprocess.DEVNULL)
        end = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                assert time.monotonic() < end and self.process.poll() is None, "redis-server does not start"
                time.sleep(0.02)

    @property
    def url(self) -> str:
        """The URL, with the password if there is one."""
        return f"redis://{f':{self.password}@' if self.password else ''}127.0.0.1:{self.port}/0"

    @property
    def client(self) -> Any:
        import redis

        return redis.Redis.from_url(self.url)

    def keys(self) -> list[str]:
        return [key.decode() for key in self.client.scan_iter()]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """Stop the server: connections are accepted, and requests get no answer."""
        os.kill(self.process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)


@contextmanager
def redis_server(folder: Path, *arguments: str) -> Iterator[RedisServer]:
    """Run a server until the end of the block."""
    server = RedisServer(folder, *arguments)
    try:
        yield server
    finally:
        server.kill()
